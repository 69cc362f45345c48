"""`metastore timeline savepoint` and `delete-savepoint`: which snapshots of a lake table cleans keep."""

import click

from lake.cli.connection import uri_option
from lake.cli.lake import lake_table, table_argument
from lake.cli.output import json_option, print_json


@click.command()
@table_argument
@click.argument("timestamp", required=False)
@click.option("--name", help="What the snapshot can be read as of, besides its timestamp.")
@uri_option
@json_option
def savepoint(table: tuple[str, ...], timestamp: str | None, name: str | None, uri: str, as_json: bool) -> None:
    """Keep cleans off a snapshot, and give it a name.

    It is the snapshot of the instant TIMESTAMP, by default of the last completed one.

    \b
    Examples:
      metastore timeline savepoint shop.orders --name 'before the import'
      metastore timeline savepoint shop.orders 20260131070000000
    """
    with lake_table(uri, table) as lake:
        saved = lake.savepoint(timestamp, name=name)
    if as_json:
        print_json({"timestamp": saved.timestamp, "position": saved.read_position, "name": saved.name})
        return
    click.echo(f"kept the snapshot of {saved.timestamp}, position {saved.read_position:,}", err=True)


@click.command("delete-savepoint")
@table_argument
@click.argument("savepoint")
@uri_option
def delete_savepoint(table: tuple[str, ...], savepoint: str, uri: str) -> None:
    """Let cleans have a snapshot again.

    SAVEPOINT is the savepoint's name or timestamp.

    \b
    Example:
      metastore timeline delete-savepoint shop.orders 'before the import'
    """
    with lake_table(uri, table) as lake:
        lake.delete_savepoint(savepoint)
    click.echo("deleted 1 savepoint", err=True)
