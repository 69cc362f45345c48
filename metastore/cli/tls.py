"""`metastore tls`: a certificate for a first try."""

import socket
from pathlib import Path

import click

from lake.cli.group import Group
from lake.protocol.errors import UserError

DAYS = 365


@click.group(cls=Group)
def tls() -> None:
    """Make a certificate for a first try of TLS."""


@tls.command("self-signed")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A name or address of the server; repeatable.")
@click.option(
    "--days", type=click.IntRange(1, 3650), default=DAYS, show_default=True, help="Validity of the certificate."
)
def self_signed(directory: Path, hosts: tuple[str, ...], days: int) -> None:
    """Write a certificate and its key into a directory.

    Clients trust it only if they are given certificate.pem. Without --host it is for localhost and this machine's name.
    Files that exist are not replaced.

    \b
    Example:
      metastore tls self-signed /srv/metastore/tls --host metastore.example
    """
    from metastore.server.credentials.self_signed import write

    certificate, key = directory / "certificate.pem", directory / "key.pem"
    names = hosts or ("localhost", "127.0.0.1", "::1", socket.gethostname())
    try:
        write(certificate, key, names, days)
    except FileExistsError as error:
        raise UserError(f"{error.filename} exists already: name another directory, or remove it") from None
    except OSError as error:
        raise UserError(f"can't write {error.filename}: {error.strerror}") from None
    click.echo(
        f"""The server:
  metastore serve --tls-certificate {certificate} --tls-key {key}

Clients:
  metastore status --tls-ca {certificate}
  keytool -importcert -noprompt -alias metastore -file {certificate} -keystore truststore.jks -storepass changeit
  Spark: spark.hadoop.hive.metastore.use.SSL=true
         spark.hadoop.hive.metastore.truststore.path=truststore.jks
         spark.hadoop.hive.metastore.truststore.password=changeit"""
    )
