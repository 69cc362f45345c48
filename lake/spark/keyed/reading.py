"""Reads keyed tables into DataFrames.

Buckets whose base file is all there is are read by Spark's own Parquet reader. Those with log files are merged in Arrow
by the executors, a bucket at a time. No row passes through the driver.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lake.client.lake_types import DataFile, Schema
from lake.protocol.formats.keyed_table import INSTANT
from lake.protocol.formats.partition_names import DEFAULT_PARTITION, values_of
from lake.spark.executor_tasks import over_texts
from lake.spark.snapshot_files import SnapshotFile, data_frame
from lake.spark.table_schema import LakeColumns, columns_of, quoted
from lake.tables.buckets import Bucket, Layout, by_bucket, completed_at, needs_merging, received, sent
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType
from lake.tables.keyed.wide_types import narrowed, pieces
from lake.tables.keyed_tables import (
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    Commits,
    TouchedBucket,
    TouchedBuckets,
    changes_of,
    layout_of,
)
from lake.tables.lake import LakeTable

MARKS = [
    StructField(CHANGE_TYPE, StringType()),
    StructField(COMMIT_VERSION, LongType()),
    StructField(COMMIT_TIMESTAMP, TimestampType()),
]
"""The columns that changes have beside the table's."""

_PLACE = "_metastore_partition_"


def snapshot_rows(
    spark: SparkSession, lake: LakeTable, schema: Schema, location: str, files: Iterable[DataFile]
) -> DataFrame:
    """The rows that the files of a snapshot hold, merged by key."""
    columns = columns_of(spark, schema)
    layout = layout_of(lake.name, schema, location)
    clean: dict[tuple[str, ...], list[SnapshotFile]] = {}
    dirty: dict[Bucket, list[DataFile]] = {}
    names_at: dict[int | None, tuple[str, ...]] = {}
    for bucket, found in by_bucket(files).items():
        if needs_merging(found):
            dirty[bucket] = found
            continue
        for each in found:
            if each.kind == "base":
                file = SnapshotFile(layout.uri(each), each.size, each.partition)
                position = completed_at(each)
                if position not in names_at:
                    names_at[position] = _stored_names(layout, each, columns.data)
                clean.setdefault(names_at[position], []).append(file)
    if not clean and not dirty:
        clean[tuple(name.lower() for name in columns.data.names)] = []
    parts = [_by_spark(spark, some, names, columns) for names, some in clean.items()]
    if not dirty:
        return reduce(DataFrame.union, parts)
    tasks = [_task(bucket.partition, {"files": found}) for bucket, found in dirty.items()]
    size = sum(each.size for found in dirty.values() for each in found)
    merged = _in_tasks(spark, tasks, size, columns, StructType(), _merging(layout))
    return reduce(DataFrame.union, [*parts, merged])


def _stored_names(layout: Layout, file: DataFile, data: StructType) -> tuple[str, ...]:
    """The names of the columns in a file, in lower case as there. Others get one that no file has."""
    names = layout.names_in(file)
    found = [names.get(each.name.lower(), each.name.lower()) for each in data]
    return tuple(f"_metastore_absent_{place}" if name is None else name for place, name in enumerate(found))


def _by_spark(
    spark: SparkSession, files: Sequence[SnapshotFile], names: Sequence[str], columns: LakeColumns
) -> DataFrame:
    """The rows of base files that have the columns under some names."""
    # The session may tell names apart by their case.
    fields = zip(names, columns.data, strict=True)
    stored = StructType([StructField(name, each.dataType, True, each.metadata) for name, each in fields])
    return data_frame(spark, files, stored, columns.keys).toDF(*columns.data.names, *columns.keys.names)


def change_rows(
    spark: SparkSession, lake: LakeTable, after: int, up_to: int, *, of_each_commit: bool = False, **scope: Any
) -> DataFrame:
    """The net changes of rows after one position up to another, with `_change_type` and the commit's columns.

    `of_each_commit`: the changes of each completion instead. `scope`: `filter` and `include_uncommitted`, as of `read`.
    """
    ranges = TouchedBuckets.in_ranges(lake, after, up_to, of_each_commit=of_each_commit, **scope)
    schema = ranges[-1].schema if ranges else lake.schema()
    tasks = [
        _task(bucket.partition, each._asdict(), number)
        for number, found in enumerate(ranges)
        for bucket, each in found.buckets.items()
    ]
    read = _comparing([(found.layout, found.commits) for found in ranges])
    size = sum(file.size for found in ranges for each in found.buckets.values() for some in each for file in some)
    return _in_tasks(spark, tasks, size, columns_of(spark, schema), StructType(MARKS), read)


def latest_of(changes: DataFrame) -> DataFrame:
    """The inserted rows and the post-images alone, without the columns that say so."""
    kinds = [str(ChangeType.INSERT), str(ChangeType.UPDATE_POSTIMAGE)]
    return changes.where(sf.col(CHANGE_TYPE).isin(kinds)).drop(CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)


def as_inserts(lake: LakeTable, rows: DataFrame, position: int) -> DataFrame:
    """The rows of the snapshot at a position as changes: inserts of the completion at that position.

    Raises NotKeyed for a table whose changes nobody can tell.
    """
    layout_of(lake.name, lake.schema(), "")
    [time] = Commits.at(lake, position).times.values()
    return rows.withColumns(
        {
            CHANGE_TYPE: sf.lit(str(ChangeType.INSERT)),
            COMMIT_VERSION: sf.lit(position).cast("long"),
            COMMIT_TIMESTAMP: sf.lit(time),
        }
    )


def _merging(layout: Layout) -> "_Read":
    def merge(files: Mapping[str, Sequence[DataFile]], _: int) -> pa.Table:
        return layout.read(files["files"]).rows.drop_columns([INSTANT])

    return merge


def _comparing(ranges: Sequence[tuple[Layout, Commits]]) -> "_Read":
    def compare(files: Mapping[str, Sequence[DataFile]], number: int) -> pa.Table:
        layout, commits = ranges[number]
        touched = TouchedBucket(**files)
        bucket = next(Bucket(each.partition, each.file_group) for some in touched for each in some)
        return commits.marked(bucket, changes_of(layout, touched))

    return compare


_Read: TypeAlias = Callable[[Mapping[str, Sequence[DataFile]], int], pa.Table]
"""Reads the files of a task. The number says of which of several ranges they are."""


def _in_tasks(
    spark: SparkSession,
    tasks: Sequence[str],
    size: int,
    columns: LakeColumns,
    marks: StructType,
    read: _Read,
) -> DataFrame:
    """The rows that `read` makes of each task's files: the data columns, those of the partition, then `marks`.

    `size`: the bytes of all of these files.
    """
    names = [key.name.lower() for key in columns.keys]
    places = [StructField(f"{_PLACE}{number}", StringType()) for number in range(len(names))]
    whole = StructType([*columns.data, *marks, *places])

    def run(text: str) -> Iterator[pa.RecordBatch]:
        partition, files, number = _received(text)
        rows = read(files, number)
        for value in values_of(partition, names) if names else ():
            known = None if value == DEFAULT_PARTITION else value
            rows = rows.append_column("", pa.repeat(pa.scalar(known, pa.string()), rows.num_rows))
        for each in pieces(rows.rename_columns(whole.names)):
            yield from narrowed(each).to_batches()

    found = over_texts(spark, tasks, run, whole, size=size)
    return found.select(
        *(sf.col(quoted(each.name)) for each in columns.data),
        *(
            sf.col(place.name).cast(key.dataType).alias(key.name)
            for place, key in zip(places, columns.keys, strict=True)
        ),
        *(sf.col(each.name) for each in marks),
    )


def _task(partition: str, files: Mapping[str, Sequence[DataFile]], number: int = 0) -> str:
    return json.dumps([partition, {name: [sent(each) for each in some] for name, some in files.items()}, number])


def _received(text: str) -> tuple[str, dict[str, list[DataFile]], int]:
    partition, files, number = json.loads(text)
    return partition, {name: [received(each) for each in some] for name, some in files.items()}, number
