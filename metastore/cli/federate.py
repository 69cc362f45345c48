"""`metastore federate`: one Hive interface over several metastores."""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lake.cli.connection import uri_option
from lake.cli.group import Group
from metastore.cli.options import settings_flags
from metastore.settings import Settings, default_data_dir, load

if TYPE_CHECKING:
    from metastore.federation.configuration import Configuration

THREADS = 64
"""Requests of a worker at the same time, by default: they wait for backends, most of the time."""

POOL = 8
"""Connections of a worker to the database with the merged notification log, by default."""

_GROUPS = (
    "max_", "tls_", "login_", "password_", "ldap_", "kerberos_", "jwt_", "audit", "log_", "http_",
)  # fmt: skip
_SINGLE = (
    "host", "port", "data_dir", "database_url", "database_pool_size", "schema_upgrade", "event_retention_days",
    "event_retention_count", "workers", "threads", "receive_timeout_seconds", "write_timeout_seconds",
    "idle_timeout_seconds", "drain_seconds", "authentication", "certificate_user", "credentials_without_tls",
    "auth_to_local", "proxy_users", "metrics_anonymous", "authorization", "authorization_seconds", "policy_file",
    "admins", "trust_unproven_users", "allowed_locations", "only_allowed_locations",
)  # fmt: skip
SETTINGS = tuple(
    name
    for name in Settings.model_fields
    if (name in _SINGLE or name.startswith(_GROUPS)) and name != "max_partitions_per_request"
)
"""The settings of a server that a front has."""

_FLAGS = ("host", "port", "data_dir", "database_url", "workers", "threads", "http_port", "log_level", "log_format")
_file_option = click.option(
    "--config",
    "file",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="TOML file with the metastores and their names; see docs/federation.md.",
)


@click.group(cls=Group, invoke_without_command=True)
@click.option(
    "--config",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="TOML file with the metastores and their names; see docs/federation.md.",
)
@settings_flags(*_FLAGS)
@click.pass_context
def federate(context: click.Context, /, file: Path | None, **flags: object) -> None:
    """Run one Hive interface over several metastores.

    It runs until SIGTERM or Ctrl-C. It prints "metastore ready thrift://HOST:PORT" on stdout when it accepts
    connections. The file is read again when it changes.

    \b
    Examples:
      metastore federate --config federation.toml
      metastore federate explain --config federation.toml eu_sales.orders
    """
    if context.invoked_subcommand is not None:
        return
    if file is None:
        raise click.UsageError("name the file with the metastores by --config")
    from lake.protocol import logging
    from metastore.federation.configuration import IcebergLocations
    from metastore.federation.mapping import Mapping

    mapping = Mapping.load(file)
    settings = server_settings(mapping.configuration, {key: each for key, each in flags.items() if each is not None})
    logging.configure(settings.log_level, settings.log_format)

    from metastore.cli.database import check_schema, upgrade_schema
    from metastore.server import federated
    from metastore.server.supervisor import Supervisor

    keeps_log = bool(mapping.followed)
    worker = partial(federated.run, file=file.absolute(), keeps_log=keeps_log)
    upgrade = upgrade_schema if settings.schema_upgrade else check_schema
    now = mapping.configuration.federation.iceberg_locations
    roots = IcebergLocations(file.absolute(), now) if now else None
    sys.exit(Supervisor(settings, worker=worker, migrate=upgrade if keeps_log else None, roots=roots).run())


@federate.command()
@_file_option
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
def explain(file: Path, names: tuple[str, ...]) -> None:
    """Say where names go, and why.

    They are databases or tables, with a catalog if need be.

    \b
    Example:
      metastore federate explain --config federation.toml eu_sales.orders
    """
    from metastore.federation.mapping import Mapping, named

    mapping = Mapping.load(file)
    for each in names:
        database, _ = named(each)
        click.echo(mapping.explain(database))


@federate.command()
@uri_option
def status(uri: str) -> None:
    """Show which metastores a front reaches.

    It shows what one of the front's workers knows.

    \b
    Example:
      metastore federate status --uri thrift://front:9083
    """
    from lake.protocol.connection.thrift_client import ThriftClient

    with ThriftClient.from_uri(uri) as client:
        click.echo(client.getStatusDetails())


def server_settings(configuration: "Configuration", flags: Mapping[str, object]) -> Settings:
    """The settings of a front's server: flags come before the environment, that before the file.

    Raises SettingsError, FederationError.
    """
    from metastore.federation.configuration import FederationError
    from metastore.warehouse.locations import Location

    for name in configuration.server:
        if name not in SETTINGS:
            raise FederationError(f"server.{name}: a front has no such setting; docs/federation.md lists those it has")
    defaults: dict[str, Any] = {
        "threads": THREADS,
        "database_pool_size": POOL,
        "iceberg_rest": bool(configuration.federation.iceberg_locations),
    }
    defaults["data_dir"] = f"{default_data_dir()}-front"  # not that of a server on the same machine
    settings, _ = load(flags, table=defaults | configuration.server, only=SETTINGS)
    if settings.authorization in ("sql-standard", "storage"):
        raise FederationError(
            f"server.authorization: a front keeps neither grants nor directories, so it can't decide by"
            f" {settings.authorization}: use policy or python:package.module:factory"
        )
    for each in settings.allowed_locations:
        root = each.partition("=")[2] if each.startswith(("database:", "role:")) else each
        if not Location.parse(root).scheme:
            raise FederationError(
                f"server.allowed_locations: {root} has no scheme, and each backend would take it for a directory of its"
                " own file system: write file:, hdfs://HOST, s3a:// or another one before it"
            )
    if any(each.proves for each in configuration.backends.values()) and settings.authentication == ("none",):
        raise FederationError(
            "the front logs in to backends as its callers, so callers have to prove who they are: set"
            " server.authentication"
        )
    return settings
