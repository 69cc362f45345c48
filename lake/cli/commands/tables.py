"""`metastore tables`: which tables there are, and what is known of one."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from lake.cli.connection import uri_option
from lake.cli.group import Group
from lake.cli.lake import lake, reference, table_argument
from lake.cli.moments import iso
from lake.cli.output import json_option, print_json, print_list, print_record, print_table

if TYPE_CHECKING:
    from lake.protocol.hive import FieldSchema, Table


@click.group(cls=Group)
def tables() -> None:
    """List tables, or show one."""


@tables.command("list")
@click.argument("database", required=False)
@click.option("--pattern", default="*", metavar="TEXT", help="Only tables whose name matches; * stands for anything.")
@click.option("--catalog", metavar="NAME", help="The catalog of the databases.  [default: hive]")
@uri_option
@json_option
def list_tables(database: str | None, pattern: str, catalog: str | None, uri: str, as_json: bool) -> None:
    """List the tables and views of DATABASE, or of all databases.

    \b
    Examples:
      metastore tables list
      metastore tables list shop --pattern 'orders*' --json
    """
    # Hive's clients name another catalog in front of the database.
    databases = f"@{catalog}#{database or '*'}" if catalog else database or "*"
    with lake(uri) as client:
        found = client.call("get_table_meta", databases, pattern, None)
    found = sorted(found, key=lambda each: (each.dbName, each.tableName))
    if as_json:
        print_json(
            [
                {"database": each.dbName, "table": each.tableName, "type": each.tableType, "comment": each.comments}
                for each in found
            ]
        )
        return
    print_list(
        "table",
        ("database", "table", "type", "comment"),
        [(each.dbName, each.tableName, each.tableType, each.comments or "") for each in found],
    )


@tables.command()
@table_argument
@uri_option
@json_option
def show(table: tuple[str, ...], uri: str, as_json: bool) -> None:
    """Show a table: columns, location, parameters, partitions.

    Partitions are counted: those that are ready, and those that are uncommitted.

    \b
    Examples:
      metastore tables show shop.orders
      metastore tables show shop.orders --json
    """
    from lake.protocol.hive import GetTableRequest

    named = reference(table)
    with lake(uri) as client:
        request = GetTableRequest(dbName=named.database, tblName=named.table, catName=named.catalog)
        found: Table = client.call("get_table_req", request).table
        progress = client.call("lake_get_watermark", named) if found.partitionKeys else None
        ready = client.call("get_num_partitions_by_filter", *_hive_names(table), "") if found.partitionKeys else 0
    counts = {"partitions": ready, "uncommitted": progress.uncommitted if progress else 0}
    if as_json:
        print_json(_as_json(found, counts))
        return
    storage = found.sd
    print_record(
        {
            "table": ".".join(table),
            "type": found.tableType,
            "owner": found.owner,
            "created": iso((found.createTime or 0) * 1000),
            "location": storage and storage.location,
            "input format": storage and storage.inputFormat,
            "partitions": f"{counts['partitions']:,} ready, {counts['uncommitted']:,} uncommitted"
            if found.partitionKeys
            else "not partitioned",
        }
    )
    click.echo()
    print_table(
        ("column", "type", "comment"),
        [
            *((each.name, each.type, each.comment or "") for each in (storage and storage.cols) or ()),
            *((each.name, each.type, f"partition key{_after(each.comment)}") for each in found.partitionKeys or ()),
        ],
    )
    if found.parameters:
        click.echo()
        print_table(("parameter", "value"), sorted(found.parameters.items()))


def _hive_names(table: tuple[str, ...]) -> tuple[str, str]:
    """Database and table as calls take them that have no field for a catalog."""
    *catalog, database, name = table
    return f"@{catalog[0]}#{database}" if catalog else database, name


def _after(comment: str | None) -> str:
    return f": {comment}" if comment else ""


def _columns(columns: "Iterable[FieldSchema] | None") -> list[dict[str, object]]:
    return [{"name": each.name, "type": each.type, "comment": each.comment} for each in columns or ()]


def _as_json(table: "Table", counts: dict[str, int]) -> dict[str, object]:
    storage = table.sd
    return {
        "catalog": table.catName,
        "database": table.dbName,
        "table": table.tableName,
        "type": table.tableType,
        "owner": table.owner,
        "created": iso((table.createTime or 0) * 1000),
        "location": storage and storage.location,
        "input_format": storage and storage.inputFormat,
        "columns": _columns(storage.cols if storage else ()),
        "partition_keys": _columns(table.partitionKeys),
        "parameters": table.parameters or {},
        "partitions_ready": counts["partitions"],
        "partitions_uncommitted": counts["uncommitted"],
    }
