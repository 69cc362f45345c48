"""`metastore partitions check`: partitions whose files are gone."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metastore.cli.connection import uri_option
from metastore.cli.lake import lake, partition_states, table_argument
from metastore.cli.output import json_option, print_json, print_table, with_progress
from metastore.errors import UserError

if TYPE_CHECKING:
    from metastore.warehouse import Warehouse
    from metastore.wire.lake import PartitionState

DIRECTORIES_AT_ONCE = 8


@dataclass(frozen=True)
class Finding:
    """A partition without files: its directory is `missing`, or `empty` of all but hidden files."""

    partition: str
    state: str
    finding: str
    location: str


@click.command()
@table_argument
@uri_option
@json_option
def check(table: tuple[str, ...], uri: str, as_json: bool) -> None:
    """Find partitions without files.

    Reports a partition whose directory is missing, or holds no data. Uncommitted partitions are checked too. A missing
    directory is left, for example, when Spark overwrites a table in its static mode, which removes the files of
    partitions that are hidden from it. An empty directory can be right: a partition that never got a row.

    The command reads the storage itself, with this machine's access to it. Exits with 1 if a directory is missing.

    \b
    Examples:
      metastore partitions check shop.orders
      metastore partitions check shop.orders --json
    """
    with lake(uri) as client:
        states = list(partition_states(client, table))
    found = list(_findings(states))
    missing = sum(finding.finding == "missing" for finding in found)
    if as_json:
        print_json([asdict(finding) for finding in found])
    else:
        if found:
            print_table(
                ("partition", "state", "directory", "location"),
                [(finding.partition, finding.state, finding.finding, finding.location) for finding in found],
            )
        click.echo(
            f"{len(states):,} partitions checked: {missing:,} without a directory, "
            f"{len(found) - missing:,} with an empty one",
            err=True,
        )
    if missing:
        sys.exit(1)


def _findings(states: "list[PartitionState]") -> Iterator[Finding]:
    from metastore.warehouse import Warehouse, WarehouseError

    # Locations are complete: where the warehouse is doesn't matter.
    warehouse = Warehouse(str(Path("/")))
    located = [state for state in states if state.location]
    try:
        with ThreadPoolExecutor(DIRECTORIES_AT_ONCE) as threads:
            looked = threads.map(lambda state: _finding(warehouse, str(state.location)), located)
            shown = with_progress(looked, "looking at directories", total=len(located))
            for state, finding in zip(located, shown, strict=True):
                if finding is not None:
                    readiness = "ready" if state.ready else "uncommitted"
                    yield Finding(str(state.name), readiness, finding, str(state.location))
    except WarehouseError as error:
        raise UserError(str(error)) from None


def _finding(warehouse: "Warehouse", location: str) -> str | None:
    if not warehouse.is_directory(location):
        return "missing"
    files = warehouse.files(location, within=location)
    return None if any(not _is_hidden(file) for file in files) else "empty"


def _is_hidden(file: str) -> bool:
    """Whether readers pass over a file: a part of its path begins so."""
    return any(part.startswith(("_", ".")) for part in file.split("/"))
