"""`metastore db`: the schema of the database, and what an operator has to say about it."""

from pathlib import Path

import click

from lake.cli.group import Group
from lake.cli.output import json_option, print_json, print_list
from lake.protocol import logging
from metastore.cli.database import (
    check_schema,
    database,
    schema_revision,
    schema_verdict,
    undeletable_files,
    upgrade_schema,
)
from metastore.cli.options import load_settings, settings_options


@click.group(cls=Group)
def db() -> None:
    """Upgrade the database's schema; declare a restore.

    `metastore serve` upgrades the schema when it starts, unless `schema_upgrade` is off. `db upgrade` does it at a time
    of your choice, also while servers of the version before are running.
    Without a database URL these commands use the embedded Postgres in the data directory.
    """
    logging.configure("warning", "text")


@db.command()
@settings_options("database_url", "data_dir")
def upgrade(config: Path | None, **flags: object) -> None:
    """Upgrade the schema to this version's.

    \b
    Example:
      METASTORE_DATABASE_URL=$URL metastore db upgrade
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
    """Print the schema's revision, and whether it fits.

    It fits if servers of this version can work with it.

    \b
    Example:
      metastore db current --data-dir /srv/metastore
    """
    settings, _ = load_settings(config, **flags)
    with database(settings, create=False) as url:
        revision, verdict = schema_revision(url), schema_verdict(url)
    click.echo(f"{revision or 'no schema'} ({verdict})")


@db.command("new-epoch")
@settings_options("database_url", "data_dir")
@click.option(
    "--nothing-lost",
    is_flag=True,
    help="The database was moved or copied as a whole: groups are not notified.",
)
@click.option("--reason", help="The reason, shown to subscribers.")
@json_option
def new_epoch(config: Path | None, nothing_lost: bool, reason: str | None, as_json: bool, **flags: object) -> None:
    """Declare that the database was restored from a backup.

    Events that were delivered and are no longer in the log are undone. Outlets remove them where they can, and
    subscribers are notified to read the tables' current state again. Servers detect most restores by themselves; run
    this command after a restore that leaves no trace, such as a snapshot of the disk.

    \b
    Examples:
      METASTORE_DATABASE_URL=$URL metastore db new-epoch
      metastore db new-epoch --nothing-lost --reason "moved to another cluster"
    """
    from sqlalchemy import NullPool, create_engine

    from eventbus.log import epochs, log
    from metastore.services.maintenance.restore import after_restore

    settings, _ = load_settings(config, **flags)
    with database(settings, create=False) as url:
        check_schema(url)
        engine = create_engine(url, poolclass=NullPool)
        with engine.begin() as tx:
            log.number(tx)
            epochs.put_down(tx)
            usual = "moved without loss" if nothing_lost else "restored from a backup"
            epoch = epochs.begin(tx, reason or usual, lossy=not nothing_lost)
            if not nothing_lost:
                after_restore(tx)
        engine.dispose()
    if as_json:
        print_json({"epoch": epoch.name, "after": epoch.after, "lossy": epoch.lossy, "reason": epoch.reason})
    else:
        click.echo(f"epoch {epoch.name} begins after event {epoch.after}")


@db.command()
@json_option
@settings_options("database_url", "data_dir")
def undeletable(config: Path | None, as_json: bool, **flags: object) -> None:
    """List tables with files that the servers can't delete.

    Shows one file of each table with the reason. Servers try again after growing pauses, a day at most.

    \b
    Example:
      METASTORE_DATABASE_URL=$URL metastore db undeletable
    """
    settings, _ = load_settings(config, **flags)
    with database(settings, create=False) as url:
        found = undeletable_files(url)
    if as_json:
        print_json([{**each._asdict(), "table": str(each.table)} for each in found])
        return
    print_list(
        "table",
        ("table", "files", "one of them", "attempts", "next attempt", "failure"),
        [
            (str(each.table), each.files, each.path, each.attempts, each.next_attempt_at.isoformat(), each.failure)
            for each in found
        ],
    )
