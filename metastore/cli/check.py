"""`metastore partitions check` and `metastore check`: files that are gone, and rows written past timelines."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lake.cli.confirming import confirm, confirming_options
from lake.cli.connection import uri_option
from lake.cli.lake import lake, partition_states, table_argument
from lake.cli.output import counted, json_option, print_json, print_table, with_progress
from lake.protocol.errors import UsageError, UserError
from lake.protocol.formats.keyed_table import PRIMARY_KEY, is_own_file

if TYPE_CHECKING:
    from lake.protocol.connection.thrift_client import ThriftClient
    from lake.protocol.hive import Table
    from lake.protocol.lake import PartitionState
    from metastore.warehouse import Warehouse

DIRECTORIES_AT_ONCE = 8
TABLES_AT_ONCE = 100

MISSING, EMPTY, UNKNOWN = "missing", "empty", "unknown files"
NO_PARTITION = "no partition"

SET_ASIDE = ".set-aside"
"""The directory below a keyed table's into which a repair moves files; readers pass over names with a dot in front."""


@dataclass(frozen=True)
class Finding:
    """What is wrong with a partition's directory: it is `missing`, `empty` of all but hidden files, or, of a table with
    a primary key, has `unknown files`, that many of them. The partition of a table without keys is empty.

    The state of a directory of a keyed table that is no partition's is `no partition`; `partition` is its path.
    """

    partition: str
    state: str
    finding: str
    location: str
    files: int = 0
    moved_to: str | None = None
    dropped: bool = False


@dataclass(frozen=True)
class _Found:
    """A finding, with the paths of the unknown files below its location. `foreign`: the timeline never had the
    partition."""

    finding: Finding
    names: Sequence[str] = field(default=())
    foreign: bool = False


@click.command("check")
@table_argument
@click.option("--repair", is_flag=True, help="Of a table with a primary key: set unknown files aside.")
@confirming_options
@uri_option
@json_option
def check(table: tuple[str, ...], repair: bool, yes: bool, dry_run: bool, uri: str, as_json: bool) -> None:
    """Find partitions without files, or with files of others.

    Reports a partition whose directory is missing, or holds no data. Uncommitted partitions are checked too. A missing
    directory is left, for example, when Spark overwrites a table in its static mode, which removes the files of
    partitions that are hidden from it. An empty directory can be right: a partition that never got a row.

    Of a table with a primary key, also reports directories with files that no writer of keyed tables has left, such as
    those of an INSERT. Directory readers find such rows, readers of the timeline don't.

    With --repair these files are moved into the directory .set-aside below the table's, which readers pass over. A
    partition that only an engine has added is dropped from the metastore, without its files. Nothing is deleted: read
    the files that were set aside, and upsert their rows. Repair a table while no engine writes into it.

    The command reads the storage itself, with this machine's access to it. Exits with 1 if a directory is missing or
    has unknown files that stay.

    \b
    Examples:
      metastore partitions check shop.orders
      metastore partitions check shop.orders --json
      metastore partitions check shop.orders --repair
    """
    with lake(uri) as client:
        database = f"@{table[0]}#{table[-2]}" if len(table) > 2 else table[-2]
        described = client.call("get_table", database, table[-1])
        if repair and not _is_keyed(described):
            raise UsageError(f"{'.'.join(table)} has no primary key: only tables with one are repaired")
        states, found = _look(client, table, described)
        if repair and not dry_run and any(each.names for each in found):
            files = sum(each.finding.files for each in found)
            confirm(f"This moves {counted(files, 'file')} of {'.'.join(table)} away from its readers. Go on?", yes=yes)
            found = _repaired(client, (database, table[-1]), _base(described), found)
    findings = [each.finding for each in found]
    counts = Counter(finding.finding for finding in findings if finding.moved_to is None)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        if findings:
            print_table(
                ("partition", "state", "directory", "location"),
                [(each.partition, each.state, _described(each), each.moved_to or each.location) for each in findings],
            )
        unknown = f", {counts[UNKNOWN]:,} with {UNKNOWN}" if counts[UNKNOWN] else ""
        click.echo(
            f"{states:,} {'partitions' if described.partitionKeys else 'directory'} checked:"
            f" {counts[MISSING]:,} without a directory, {counts[EMPTY]:,} with an empty one{unknown}",
            err=True,
        )
    if counts[MISSING] or counts[UNKNOWN]:
        sys.exit(1)


@click.command("check")
@click.argument("database", default="*")
@uri_option
@json_option
def check_tables(database: str, uri: str, as_json: bool) -> None:
    """List tables with rows past their timelines.

    Looks through the directories of all tables with a primary key, of DATABASE or of all databases. Files that no
    writer of keyed tables has left are those of an INSERT of an engine, or older than the key. Readers of the timeline
    don't see their rows. `metastore partitions check` shows where they are, and its option --repair sets them aside.

    The command reads the storage itself, with this machine's access to it. Exits with 1 if there are such tables.

    \b
    Examples:
      metastore check
      metastore check shop --json
    """
    rows: list[dict[str, Any]] = []
    looked = 0
    with lake(uri) as client:
        for described in _keyed_tables(client, database):
            looked += 1
            name = (described.dbName or "", described.tableName or "")
            _, found = _look(client, name, described)
            unknown = [each.finding for each in found if each.names]
            if unknown:
                files = sum(each.files for each in unknown)
                rows.append({"table": ".".join(name), "directories": len(unknown), "files": files})
    if as_json:
        print_json(rows)
    else:
        if rows:
            print_table(("table", "directories", "unknown files"), [tuple(map(str, row.values())) for row in rows])
        click.echo(f"{counted(looked, 'table')} with a primary key: {len(rows):,} with {UNKNOWN}", err=True)
    if rows:
        sys.exit(1)


def _keyed_tables(client: "ThriftClient", database: str) -> "Iterator[Table]":
    by_database: dict[str, list[str]] = {}
    for each in client.call("get_table_meta", database, "*", ["MANAGED_TABLE", "EXTERNAL_TABLE"]):
        by_database.setdefault(each.dbName, []).append(each.tableName)
    for name, tables in sorted(by_database.items()):
        for begin in range(0, len(tables), TABLES_AT_ONCE):
            some = client.call("get_table_objects_by_name", name, sorted(tables)[begin : begin + TABLES_AT_ONCE])
            yield from filter(_is_keyed, some)


def _is_keyed(table: "Table") -> bool:
    """Whether a table is a keyed one. Other systems have tables with such a property, too, and formats of their own."""
    names_key = bool((table.parameters or {}).get(PRIMARY_KEY, "").strip())
    input_format = (table.sd and table.sd.inputFormat) or ""
    return names_key and input_format.endswith("MapredParquetInputFormat")


def _base(table: "Table") -> str:
    from metastore.services.instant_rules.paths import base_of

    return base_of((table.sd and table.sd.location) or "")


def _look(client: "ThriftClient", name: tuple[str, ...], table: "Table") -> tuple[int, list[_Found]]:
    """The number of a table's partitions, 1 for one without keys, and what is wrong. Raises UserError."""
    from lake.protocol.lake import PartitionState
    from metastore.warehouse import Warehouse, WarehouseError

    if table.partitionKeys:
        states = list(partition_states(client, name))
    else:
        place = table.sd.location if table.sd else None
        states = [PartitionState(name="", ready=True, location=place, changedAt=0)]
    # Locations are complete: where the warehouse is doesn't matter.
    warehouse = Warehouse(str(Path("/")))
    keyed = _is_keyed(table)
    located = [state for state in states if state.location]
    found: list[_Found] = []
    try:
        with ThreadPoolExecutor(DIRECTORIES_AT_ONCE) as threads:
            looked = threads.map(lambda state: _finding(warehouse, state, is_keyed=keyed), located)
            shown = with_progress(looked, "looking at directories", total=len(located))
            found += [each for each in shown if each is not None]
        if keyed:
            places = {str(state.location) for state in located}
            found += _beside_partitions(warehouse, _base(table), "", places)
    except WarehouseError as error:
        raise UserError(str(error)) from None
    return len(states), found


def _finding(warehouse: "Warehouse", state: "PartitionState", *, is_keyed: bool) -> _Found | None:
    """What is wrong with a partition's directory."""
    location = str(state.location)
    readiness = "ready" if state.ready else "uncommitted"
    if not warehouse.is_directory(location):
        return _Found(Finding(str(state.name), readiness, MISSING, location))
    files = [each for each in warehouse.files(location, within=location) if not _is_hidden(each)]
    unknown = sorted(each for each in files if is_keyed and not is_own_file(each.rpartition("/")[2]))
    if unknown:
        finding = Finding(str(state.name), readiness, UNKNOWN, location, len(unknown))
        return _Found(finding, unknown, foreign=state.changedAt is None)
    # Hive's directories of a keyed table are empty until it is published.
    return None if files or is_keyed else _Found(Finding(str(state.name), readiness, EMPTY, location))


def _beside_partitions(warehouse: "Warehouse", base: str, path: str, places: set[str]) -> Iterator[_Found]:
    """Directories with unknown files that are no partition's, such as those of an INSERT that was refused."""
    place = f"{base}/{path}" if path else base
    if place in places:
        return
    unknown = sorted(each for each in warehouse.names(place) if not _is_hidden(each) and not is_own_file(each))
    if unknown:
        yield _Found(Finding(path, NO_PARTITION, UNKNOWN, place, len(unknown)), unknown)
    for name in sorted(warehouse.children(place)):
        if not _is_hidden(name):
            yield from _beside_partitions(warehouse, base, f"{path}/{name}" if path else name, places)


def _repaired(client: "ThriftClient", name: tuple[str, str], base: str, found: Sequence[_Found]) -> list[_Found]:
    """Sets unknown files aside, then drops the partitions that the timeline never had. Raises UserError.

    Returns the findings with what was done.
    """
    from metastore.warehouse import Warehouse

    warehouse = Warehouse(str(Path("/")))
    aside = f"{base}/{SET_ASIDE}/{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
    done: list[_Found] = []
    for each in found:
        if not each.names:
            done.append(each)
            continue
        finding = each.finding
        # A partition that was published lies elsewhere than in the directory of its name, which may have files, too.
        beside = "/no-partition" if finding.state == NO_PARTITION else ""
        target = f"{aside}{beside}/{finding.partition}".rstrip("/")
        moves = [(f"{finding.location}/{file}", f"{target}/{file}") for file in each.names]
        if failed := [error for error in warehouse.move_files(moves) if error is not None]:
            raise UserError(f"{counted(len(failed), 'file')} of {finding.location} not moved: {failed[0]}")
        if each.foreign:
            client.call("drop_partition_by_name", *name, finding.partition, False)
        done.append(_Found(Finding(**{**asdict(finding), "moved_to": target, "dropped": each.foreign}), each.names))
    return done


def _described(finding: Finding) -> str:
    if not finding.files:
        return finding.finding
    if finding.moved_to is None:
        return f"{finding.files:,} {UNKNOWN}"
    return f"{counted(finding.files, 'file')} set aside{', partition dropped' if finding.dropped else ''}"


def _is_hidden(file: str) -> bool:
    """Whether readers pass over a file: a part of its path begins so."""
    return any(part.startswith(("_", ".")) for part in file.split("/"))
