"""`metastore db`: the schema of the database."""

from pathlib import Path

import click

from metastore.cli.database import database, schema_revision, schema_verdict, upgrade_schema
from metastore.cli.options import load_settings, settings_options
from metastore.server import logging


@click.group()
def db() -> None:
    """Look after the database's schema.

    `metastore serve` upgrades the schema when it starts, unless `schema_upgrade` is off; these commands do it at a time
    of one's own, also while servers of the version before are running.
    Without --database-url they use the embedded Postgres in the data directory.
    """
    logging.configure("warning", "text")


@db.command()
@settings_options("database_url", "data_dir")
def upgrade(config: Path | None, **flags: object) -> None:
    """Bring the schema to this version's.

    \b
    Example:
      metastore db upgrade --database-url postgresql://user:secret@db:5432/metastore
    """
    settings, _ = load_settings(config, **flags)
    with database(settings, create=True) as url:
        before = schema_revision(url)
        upgrade_schema(url)
        after = schema_revision(url)
    change = f"is at {after}, as before" if before == after else f"upgraded from {before or 'nothing'} to {after}"
    click.echo(f"schema {change}")


@db.command()
@settings_options("database_url", "data_dir")
def current(config: Path | None, **flags: object) -> None:
    """Print the schema's revision, and how it suits this version.

    \b
    Example:
      metastore db current --data-dir /srv/metastore
    """
    settings, _ = load_settings(config, **flags)
    with database(settings, create=False) as url:
        revision, verdict = schema_revision(url), schema_verdict(url)
    click.echo(f"{revision or 'no schema'} ({verdict})")
