"""Reads lake tables by their snapshots: as they are, as they were, or what came between.

    read(spark, "shop.orders", filter="dt >= '2026-01-31'")
    read(spark, "shop.orders", as_of="20260131120000000")
    read(spark, "shop.orders", incremental=("20260131120000000", None))

The metastore prunes the partitions and names the files; no directory is listed. Tables with a primary key are read by
the extension for Spark, others by Spark's own Parquet reader, and tables of Hudi's by Hudi.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from lake.client.lake_types import AsOf, DataFile, Schema
from lake.protocol.errors import UserError
from lake.protocol.lake import SnapshotGone, TableReference
from lake.spark import hudi_tables
from lake.spark.keyed import extension
from lake.spark.session_client import check_extension, keep_readable, lake_table
from lake.spark.snapshot_files import SnapshotFile, data_frame
from lake.spark.table_schema import columns_of, is_hudi
from lake.tables.file_changes import net_changes
from lake.tables.lake import LakeTable, Snapshot

View: TypeAlias = Literal["snapshot", "read_optimized"]

CHANGE = "_change"
"""The column that says whether a row was added or removed: ADDED or REMOVED."""

ADDED, REMOVED = "added", "removed"


class UnreadableFiles(UserError):
    """The snapshot has log files, which can't be read without merging them with base files."""


def read(
    spark: SparkSession,
    table: str | TableReference,
    *,
    as_of: AsOf | None = None,
    incremental: tuple[AsOf, AsOf | None] | None = None,
    view: View = "snapshot",
    include_uncommitted: bool = False,
    filter: str | None = None,
    with_removed: bool = False,
    changes: bool | Literal["all"] = False,
    uri: str | None = None,
) -> DataFrame:
    """The rows of the table `database.table`, or `table` of the current database; or of one table by its reference.

    `as_of` reads the table as it was when an instant was complete (its timestamp), at a position, a time (with a zone)
    or a `Moment`. `incremental` is a pair of those: the rows that were added
    after the first up to the second (None: up to now), and that still exist at the second. `with_removed`: also the
    rows that existed at the first and were removed, with a column `_change` that says which. The rows at the first,
    without the removed and with the added ones, are the rows at the second. The columns are those that the table has
    now. Rows of older files have null in columns that were added later.

    Of a table with a primary key, `incremental` gives the rows that were inserted or updated, as they are at the
    second. `changes` gives all net changes of rows instead, with the columns `_change_type` (insert, update_preimage,
    update_postimage, delete), `_commit_version` (the position of the last commit that changed the row) and
    `_commit_timestamp`. Compactions change no row. `changes="all"` gives the changes of each commit instead: a row that
    several have changed comes as often.

    `filter` is on partition keys, in Hive's grammar (`dt >= '2026-01-31' and hr = 7`): the metastore names the files of
    those partitions alone. Conditions on the DataFrame prune as well, after that. `view="read_optimized"` leaves out
    log files, which a table may have that others write. Partitions that are not ready are hidden unless
    `include_uncommitted`. `uri` is the metastore's, by default that of the session.

    Which files are read is decided by this call: the DataFrame doesn't change with the table. A lease keeps cleans off
    them while the session lives, for 12 hours or `spark.metastore.readerLeaseHours` after the last read. Raises
    NoSuchObjectException without the table or the instant, SnapshotGone for what has been cleaned, TableReplaced for a
    reference to a table that has the name no more, InvalidOperationException for a position of an earlier table of the
    name, unless a reference names this one, MetaException for a bad filter, UnreadableFiles, MixedFiles if files
    don't tell which rows came, NoExtension for a table with a primary key in a session that `configure` hasn't made,
    HudiMissing if Hudi's classes aren't there, ValueError for arguments that don't go together, TypeError for an
    `as_of` that is nothing of the kind.
    """
    if view not in ("snapshot", "read_optimized"):
        raise ValueError(f"{view!r} is no view: snapshot or read_optimized")
    if as_of is not None and incremental is not None:
        raise ValueError("a table is read either as of a moment or incrementally")
    if incremental is not None and (isinstance(incremental, str) or len(incremental) != 2 or incremental[0] is None):
        raise ValueError("incremental is a pair: after what (0 for all), and up to what (None for now)")
    if with_removed and incremental is None:
        raise ValueError("with_removed needs incremental: only an incremental read has removed rows")
    if changes not in (False, True, "all"):
        raise ValueError(f"{changes!r} is no kind of changes: True for net changes, 'all' for those of each commit")
    if changes and (incremental is None or with_removed):
        raise ValueError("changes needs incremental, and says what was removed without with_removed")
    lake = lake_table(spark, table, uri)
    lake.check_named(as_of)
    schema = lake.schema()
    if is_hudi(schema):
        for point in incremental or ():
            lake.check_named(point)
        if with_removed or changes:
            raise ValueError("Hudi's incremental reads don't tell what was removed")
        return hudi_tables.read(
            spark,
            lake,
            as_of=as_of,
            incremental=incremental,
            read_optimized=view == "read_optimized",
            include_uncommitted=include_uncommitted,
            filter=filter,
        )
    is_keyed = schema.keyed_table() is not None
    if is_keyed:
        check_extension(spark)
        if with_removed:
            raise ValueError(f"{lake.name} has a primary key: changes=True says which rows were removed")
    elif changes:
        raise ValueError(f"{lake.name} has no primary-key among its properties: with_removed says what was removed")
    scope = _Scope(view == "read_optimized", include_uncommitted, filter, uri)
    if incremental is not None:
        start, end = (lake.position_of(each) for each in incremental)
        if start > end:
            raise ValueError(f"{lake.name}: position {start} is not before position {end}, the end of the range")
        for point in incremental:
            lake.check_named(point)
        keep_readable(spark, lake, start, uri=uri, changes=True)
        if is_keyed:
            return _changed_rows(spark, lake, start, end, changes, scope)
        return _rows_of_changed_files(spark, lake, start, end, scope, with_removed=with_removed)
    # Of a keyed table, the extension asks for the files.
    snapshot = _kept_snapshot(spark, lake, as_of, scope, page=1 if is_keyed else None)
    then = lake.schema(snapshot.table_version)
    if not is_keyed:
        return _rows(spark, lake, then, snapshot.location, list(snapshot))
    return extension.snapshot_rows(
        spark,
        lake,
        then,
        snapshot.position,
        uri=uri,
        include_uncommitted=include_uncommitted,
        filter=filter,
        base_files=scope.base_files,
        is_latest=as_of is None and then.version == snapshot.table_version,
    )


class _Scope(NamedTuple):
    """What of a table is read; `base_files`: without log files. The others as of `read`."""

    base_files: bool
    include_uncommitted: bool
    filter: str | None
    uri: str | None


def _changed_rows(
    spark: SparkSession, lake: LakeTable, start: int, end: int, changes: bool | Literal["all"], scope: _Scope
) -> DataFrame:
    kind: extension.Kind = "EACH" if changes == "all" else "NET" if changes else "ROWS"
    return extension.change_rows(
        spark,
        lake,
        lake.schema(),  # read after the positions, so that it knows the columns of their files
        start,
        end,
        kind,
        uri=scope.uri,
        include_uncommitted=scope.include_uncommitted,
        filter=scope.filter,
    )


def _rows_of_changed_files(
    spark: SparkSession, lake: LakeTable, start: int, end: int, scope: _Scope, *, with_removed: bool
) -> DataFrame:
    changed = net_changes(lake, start, end, filter=scope.filter, include_uncommitted=scope.include_uncommitted)
    schema, location = lake.schema(), lake.location()
    rows = _rows(spark, lake, schema, location, [each for each in changed.added if _is_wanted(each, scope)])
    if not with_removed:
        return rows
    gone = _rows(spark, lake, schema, location, [each for each in changed.removed if _is_wanted(each, scope)])
    return rows.withColumn(CHANGE, sf.lit(ADDED)).unionByName(gone.withColumn(CHANGE, sf.lit(REMOVED)))


def _is_wanted(file: DataFile, scope: _Scope) -> bool:
    return file.kind == "base" or not scope.base_files


def _kept_snapshot(
    spark: SparkSession, lake: LakeTable, as_of: AsOf | None, scope: _Scope, *, page: int | None
) -> Snapshot:
    """A snapshot that no clean takes from the session. Raises SnapshotGone."""

    def found(at: AsOf | None) -> Snapshot:
        return lake.snapshot(
            at,
            filter=scope.filter,
            include_uncommitted=scope.include_uncommitted,
            read_optimized=scope.base_files,
            page=page,
        )

    snapshot = found(as_of)
    if not snapshot.position:
        return snapshot
    try:
        keep_readable(spark, lake, snapshot.position, uri=scope.uri)
    except SnapshotGone:
        if as_of is not None:
            raise
        # Writers and a clean came between the two calls: what is the latest now has been written a moment ago.
        snapshot = found(None)
        keep_readable(spark, lake, snapshot.position, uri=scope.uri)
    return snapshot


def check_readable(name: str, files: Iterable[DataFile]) -> None:
    """Raises UnreadableFiles unless each file has whole rows by itself. `name`: the table's, for messages."""
    for each in files:
        if each.kind != "base":
            raise UnreadableFiles(
                f"{name} has log files, such as {each.path}: read it by what wrote it, or view='read_optimized'"
            )
        if each.columns is not None:
            raise UnreadableFiles(
                f"{name} has files of some columns alone, such as {each.path}: read it by what wrote it"
            )


def _rows(spark: SparkSession, lake: LakeTable, schema: Schema, location: str, files: Sequence[DataFile]) -> DataFrame:
    columns = columns_of(spark, schema)
    check_readable(lake.name, files)
    found = [SnapshotFile(f"{location}/{each.path}", each.size, each.partition) for each in files]
    return data_frame(spark, found, columns.data, columns.keys)
