"""`metastore partitions check`: partitions whose files are gone, or that have files of others."""

import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lake.cli.connection import uri_option
from lake.cli.lake import lake, partition_states, table_argument
from lake.cli.output import json_option, print_json, print_table, with_progress
from lake.protocol.errors import UserError
from lake.protocol.formats.keyed_table import PRIMARY_KEY, is_own_file

if TYPE_CHECKING:
    from lake.protocol.hive import Table
    from lake.protocol.lake import PartitionState
    from metastore.warehouse import Warehouse

DIRECTORIES_AT_ONCE = 8

MISSING, EMPTY, UNKNOWN = "missing", "empty", "unknown files"


@dataclass(frozen=True)
class Finding:
    """What is wrong with a partition's directory: it is `missing`, `empty` of all but hidden files, or, of a table with
    a primary key, has `unknown files`, that many of them. The partition of a table without keys is empty."""

    partition: str
    state: str
    finding: str
    location: str
    files: int = 0


@click.command()
@table_argument
@uri_option
@json_option
def check(table: tuple[str, ...], uri: str, as_json: bool) -> None:
    """Find partitions without files, or with files of others.

    Reports a partition whose directory is missing, or holds no data. Uncommitted partitions are checked too. A missing
    directory is left, for example, when Spark overwrites a table in its static mode, which removes the files of
    partitions that are hidden from it. An empty directory can be right: a partition that never got a row.

    Of a table with a primary key, also reports directories with files that no writer of keyed tables has left, such as
    those of an INSERT. Hive finds such rows, readers of the timeline don't: move the files away, and upsert their rows.

    The command reads the storage itself, with this machine's access to it. Exits with 1 if a directory is missing or
    has unknown files.

    \b
    Examples:
      metastore partitions check shop.orders
      metastore partitions check shop.orders --json
    """
    from lake.protocol.lake import PartitionState

    with lake(uri) as client:
        described = client.call("get_table", f"@{table[0]}#{table[-2]}" if len(table) > 2 else table[-2], table[-1])
        if described.partitionKeys:
            states = list(partition_states(client, table))
        else:
            place = described.sd.location if described.sd else None
            states = [PartitionState(name="", ready=True, location=place)]
    found = list(_findings(states, is_keyed=_is_keyed(described)))
    counts = Counter(finding.finding for finding in found)
    if as_json:
        print_json([asdict(finding) for finding in found])
    else:
        if found:
            print_table(
                ("partition", "state", "directory", "location"),
                [
                    (
                        finding.partition,
                        finding.state,
                        f"{finding.files:,} {UNKNOWN}" if finding.files else finding.finding,
                        finding.location,
                    )
                    for finding in found
                ],
            )
        unknown = f", {counts[UNKNOWN]:,} with {UNKNOWN}" if counts[UNKNOWN] else ""
        click.echo(
            f"{len(states):,} {'partitions' if described.partitionKeys else 'directory'} checked:"
            f" {counts[MISSING]:,} without a directory, {counts[EMPTY]:,} with an empty one{unknown}",
            err=True,
        )
    if counts[MISSING] or counts[UNKNOWN]:
        sys.exit(1)


def _is_keyed(table: "Table") -> bool:
    """Whether a table is a keyed one. Other systems have tables with such a property, too, and formats of their own."""
    names_key = bool((table.parameters or {}).get(PRIMARY_KEY, "").strip())
    input_format = (table.sd and table.sd.inputFormat) or ""
    return names_key and input_format.endswith("MapredParquetInputFormat")


def _findings(states: "list[PartitionState]", *, is_keyed: bool) -> Iterator[Finding]:
    from metastore.warehouse import Warehouse, WarehouseError

    # Locations are complete: where the warehouse is doesn't matter.
    warehouse = Warehouse(str(Path("/")))
    located = [state for state in states if state.location]
    try:
        with ThreadPoolExecutor(DIRECTORIES_AT_ONCE) as threads:
            looked = threads.map(lambda state: _finding(warehouse, str(state.location), is_keyed=is_keyed), located)
            shown = with_progress(looked, "looking at directories", total=len(located))
            for state, (finding, files) in zip(located, shown, strict=True):
                if finding is not None:
                    readiness = "ready" if state.ready else "uncommitted"
                    yield Finding(str(state.name), readiness, finding, str(state.location), files)
    except WarehouseError as error:
        raise UserError(str(error)) from None


def _finding(warehouse: "Warehouse", location: str, *, is_keyed: bool) -> tuple[str | None, int]:
    """What is wrong with a directory, None for nothing, and how many unknown files it has."""
    if not warehouse.is_directory(location):
        return MISSING, 0
    files = [each for each in warehouse.files(location, within=location) if not _is_hidden(each)]
    unknown = [each for each in files if is_keyed and not is_own_file(each.rpartition("/")[2])]
    if unknown:
        return UNKNOWN, len(unknown)
    # Hive's directories of a keyed table are empty until it is published.
    return (None if files or is_keyed else EMPTY), 0


def _is_hidden(file: str) -> bool:
    """Whether readers pass over a file: a part of its path begins so."""
    return any(part.startswith(("_", ".")) for part in file.split("/"))
