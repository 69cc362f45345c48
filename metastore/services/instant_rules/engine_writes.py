"""Refuses rows that engines write past the timeline of a keyed or lake table, where their calls tell of them.

Readers of the timeline never see such rows. Spark, Hive and Trino write files first and report them afterwards, by
partitions that they add or alter, by statistics, or not at all. Such a report is refused if the directory has files
that no writer of the timeline has left there. A change of definitions alone finds none, and passes.
"""

from collections.abc import Mapping

from lake.protocol.formats.keyed_table import ALLOW_EXTERNAL_WRITES, is_own_file
from lake.protocol.hive import MetaException, Table
from metastore.services.instant_rules.keyed_tables import is_keyed, is_parquet, names_key
from metastore.services.instant_rules.paths import base_of, below
from metastore.services.model import basic_statistics, hive_objects, statistics_state
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import data_files
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants
from metastore.warehouse import Warehouse
from metastore.warehouse.directories import is_hidden

_REPORTED = frozenset(
    {
        *basic_statistics.FAST,
        basic_statistics.ROW_COUNT,
        basic_statistics.RAW_SIZE,
        basic_statistics.DO_NOT_UPDATE,
        basic_statistics.GENERATED_BY,
        "STATS_GENERATED_VIA_STATS_TASK",
        "numFilesErasureCoded",
        statistics_state.ACCURATE,
        "transient_lastDdlTime",
        "presto_query_id",
        "trino_query_id",
    }
)
_SPARKS_STATISTICS = "spark.sql.statistics."


def check_places(
    tx: Transaction, row: TableRow, warehouse: Warehouse, places: Mapping[str, str | None], *, new: bool
) -> None:
    """Raises MetaException if an engine has left rows in directories of a table whose rows belong to the timeline.

    `places`: the locations of partitions, by name; that of a table without keys by an empty name. `new`: the partitions
    are added by this call. Else those of a lake table without a primary key aren't checked that have no files in the
    timeline: they may be older than the timeline. Raises WarehouseError.
    """
    if not _has_own_rows(tx, row):
        return
    checked = set(places)
    if not new and not is_keyed(row):
        checked = {each.name for each in data_files.sums(tx, row.id, checked) if each.files}
    for name in sorted(checked):
        place = places[name]
        if place and (found := foreign_files(tx, row, warehouse, name, place)):
            raise MetaException(_advice(row, f"{place} has files that are not of its timeline, such as {found[0]}"))


def check_report(tx: Transaction, row: TableRow) -> None:
    """Raises MetaException for a report that rows were or will be written, if they belong to the table's timeline."""
    if _has_own_rows(tx, row):
        raise MetaException(_advice(row, "this writes rows past it"))


def only_reports(old: Table, new: Table) -> bool:
    """Whether an altered table without partition keys has other statistics and no other definition."""
    return not old.partitionKeys and old.sd == new.sd and _defined(old) == _defined(new)


def _defined(table: Table) -> dict[str, str]:
    parameters = table.parameters or {}
    return {
        name: value
        for name, value in parameters.items()
        if name not in _REPORTED and not name.startswith(_SPARKS_STATISTICS)
    }


def foreign_files(tx: Transaction, row: TableRow, warehouse: Warehouse, name: str, place: str) -> list[str]:
    """The names of the files in a partition's directory that no writer of the timeline has left. Raises WarehouseError.

    Most of a keyed table's files are known by their names. All others are in one of the table's snapshots, or links to
    such files.
    """
    found = {each for each in warehouse.names(place) if not is_hidden(each)}
    if is_keyed(row):
        # Hive has the rows of each part of a union in a directory of their own.
        found |= {each for each in warehouse.children(place) if not is_hidden(each)}
        found = {each for each in found if not is_own_file(each)}
    if not found:
        return []
    inside = place.removeprefix(base_of(row.location or "")).strip("/")
    known = data_files.paths_of_partitions(tx, row.id, [name])
    known |= data_files.pending_among(tx, row.id, [below(inside, each) for each in found])
    return sorted(found - {each.rpartition("/")[2] for each in known})


def _has_own_rows(tx: Transaction, row: TableRow) -> bool:
    """Whether the rows of a table belong to its timeline: all of a keyed table's, and a Parquet table's with files in
    its latest snapshot. Tables of Hudi and Iceberg have writers of their own."""
    if hive_objects.is_true(row.parameters.get(ALLOW_EXTERNAL_WRITES)):
        return False
    if names_key(row.parameters):
        return is_keyed(row)
    is_ours = is_parquet(hive_objects.table_of(row)) and instants.has_timeline(tx, row.id)
    return is_ours and data_files.has_live(tx, row.id)


def _advice(row: TableRow, what: str) -> str:
    keyed = is_keyed(row)
    kind = "a timeline, by its primary key" if keyed else "a timeline"
    repair = " `metastore partitions check --repair` sets files aside that came all the same." if keyed else ""
    return (
        f"{row.name} has {kind}, and {what}: readers of the timeline don't see such rows. Write with Spark and the"
        " extension of lake-metastore, or with `write` of lake.spark or `upsert` of lake.tables."
        f"{repair} The table property {ALLOW_EXTERNAL_WRITES}=true allows such writes"
    )
