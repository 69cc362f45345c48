"""`metastore hudi import`: the timeline of a Hudi table, read from its own files and sent to the server."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lake.cli.connection import uri_option
from lake.cli.group import Group
from lake.cli.lake import lake, reference, table_parts
from lake.cli.output import counted, json_option, print_json, with_progress
from lake.protocol.errors import UserError

if TYPE_CHECKING:
    from lake.protocol.connection.thrift_client import ThriftClient
    from lake.protocol.lake import HudiInstant, ImportHudiResponse, TableReference
    from metastore.warehouse.hudi_folder import HudiFolder

AT_ONCE = 100
"""Instants in one call, at most."""

BYTES_AT_ONCE = 8 << 20
"""Bytes of metadata in one call, about."""

KNOWN = 10_000
"""Instants in the reply to one request. The server skips further ones that it knows."""


@click.group(cls=Group)
def hudi() -> None:
    """Import Hudi tables."""


@hudi.command("import")
@click.argument("base_path", metavar="BASE_PATH")
@click.option("--table", metavar="DATABASE.TABLE", help="Its name here.  [default: its name in Hudi]")
@click.option("--table-id", type=int, help="Its id here: a table that was dropped is neither added nor replaced.")
@uri_option
@json_option
def import_timeline(base_path: str, table: str | None, table_id: int | None, uri: str, as_json: bool) -> None:
    """Import the timeline of the Hudi table at BASE_PATH.

    The timeline is read from the table's `.hoodie` folder. The table is added if it isn't there. A later import adds
    what has happened since.

    \b
    Examples:
      metastore hudi import s3://lake/shop/orders
      metastore hudi import /lake/clicks --table shop.clicks --json
    """
    from metastore.warehouse import Warehouse, WarehouseError
    from metastore.warehouse.hudi_folder import HudiFolder

    place = base_path if ":" in base_path else str(Path(base_path).absolute())
    try:
        folder = HudiFolder(Warehouse("/"), place)
        named = _named(table, folder).replace(id=table_id)
        with lake(uri) as client:
            answers = _import(client, folder, named)
    except WarehouseError as error:
        raise UserError(str(error)) from None
    fresh = [each for answer in answers for each in answer.instants or () if each.fresh]
    passed_over = [each for answer in answers for each in answer.instants or () if each.remark]
    added = any(answer.tableAdded for answer in answers)
    if as_json:
        print_json(
            {
                "table": f"{named.database}.{named.table}",
                "table_added": added,
                "position": answers[-1].position,
                "archived": folder.has_archive,
                "imported": [{"timestamp": i.timestamp, "action": i.action, "state": i.state} for i in fresh],
                "passed_over": [{"timestamp": i.timestamp, "action": i.action, "why": i.remark} for i in passed_over],
            }
        )
        return
    for each in passed_over:
        click.echo(f"passed over {each.timestamp} {each.action}: {each.remark}", err=True)
    if folder.has_archive:
        click.echo(
            "Hudi has archived older instants: their files are there as one commit, what each of them did is not known",
            err=True,
        )
    what = "added, " if added else ""
    click.echo(
        f"{named.database}.{named.table}: {what}{counted(len(fresh), 'instant')}, position {answers[-1].position:,}"
    )


def _import(client: "ThriftClient", folder: "HudiFolder", table: "TableReference") -> "list[ImportHudiResponse]":
    from lake.protocol.lake import ImportHudiRequest, InstantKey

    keys = [InstantKey(each.timestamp, each.action) for each in folder.instants]
    # An empty import adds the table, and removes instants that Hudi rolled back, before later ones are added.
    opening = ImportHudiRequest(table, folder.location, dict(folder.properties), [], keys)
    answers = [client.call("lake_import_hudi", opening)]
    table = table.replace(id=client.call("lake_timeline_position", table).tableId)  # the rest is of the same table
    opening = opening.replace(table=table)
    if folder.has_archive and not answers[0].position:
        answers.append(client.call("lake_import_hudi", opening.replace(olderFiles=folder.older_files())))
    steps = folder.steps(_done(client, table))
    shown = with_progress(steps, "importing instants", total=len(steps))
    instants = (each for each in map(folder.to_thrift, shown) if each is not None)
    for some in _batches(instants):
        request = opening.replace(instants=some, folder=None, properties={})
        answers.append(client.call("lake_import_hudi", request))
    return answers


def _done(client: "ThriftClient", table: "TableReference") -> set[tuple[str, str]]:
    """Completed instants that the server knows, by timestamp and the action they began as: needn't be read again."""
    from lake.protocol.lake import ListInstantsRequest

    request = ListInstantsRequest(table, states=["completed"], limit=KNOWN, latestFirst=True, includeArchived=True)
    return {(each.timestamp, each.begunAs or each.action) for each in client.call("lake_list_instants", request)}


def _batches(instants: "Iterator[HudiInstant]") -> "Iterator[list[HudiInstant]]":
    some: list[HudiInstant] = []
    size = 0
    for each in instants:
        if some and (len(some) == AT_ONCE or size + len(each.metadata or b"") > BYTES_AT_ONCE):
            yield some
            some, size = [], 0
        some.append(each)
        size += len(each.metadata or b"")
    if some:
        yield some


def _named(table: str | None, folder: "HudiFolder") -> "TableReference":
    """The table as it is called on the command line, or else by Hudi."""
    if table is not None:
        return reference(table_parts(table))
    name = folder.properties.get("hoodie.table.name")
    if not name:
        raise UserError(f"the properties of {folder.location} name no table: give --table")
    return reference((folder.properties.get("hoodie.database.name") or "default", name))
