"""Writes DataFrames into keyed tables: the rows go to the executors that write their buckets, and nowhere else.

Spark hashes the keys and brings the rows of a bucket together; a Python worker per task merges them in Arrow and writes
the bucket's files. The driver learns the names of the files alone.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, DateType, StructField, StructType, TimestampNTZType, TimestampType

from lake.client.lake_types import DataFile, Schema, from_millis, to_millis
from lake.protocol.formats.keyed_table import DELETED, ChangelogProducer, KeyedTable
from lake.protocol.formats.partition_names import DEFAULT_PARTITION, make_name
from lake.spark.executor_tasks import over_batches
from lake.spark.store_assignment import assigned
from lake.spark.table_schema import columns_of, quoted
from lake.tables.buckets import Bucket, BucketWriter, Layout, by_bucket, event_times, in_partitions, received, sent
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed.files import fitted
from lake.tables.keyed.schema import of_hive
from lake.tables.keyed_tables import ONE_DATE, layout_of
from lake.tables.keyed_writes import KeyedOperation, check_columns, updated_columns, written_rows
from lake.tables.lake import LakeTable, Writing

_BUCKET = "_metastore_bucket"
_PLACE = "_metastore_partition_"
_SEPARATOR = 0x1F


_ANSWER = (
    StructType()
    .add("file", "string")
    .add("file_group", "string")
    .add("rows", "long")
    .add("first_event", "long")
    .add("unfit", "string")
)
"""What a task says of its files: one per row, the number of rows once, the batch's least event time in milliseconds.

A file group without a file had nothing to change.
"""


class WrittenBuckets(NamedTuple):
    """What the tasks have written. `rows`: of the batch. `least_event_time`: of the batch's rows alone.

    `rows_of`: the batch's rows by partition. Those that may move to another one are counted once. `read_groups`: as of
    `Completion`.
    """

    files: list[DataFile]
    rows: int
    least_event_time: datetime | None
    rows_of: dict[str, int]
    read_groups: set[str]


@dataclass(frozen=True)
class Prepared:
    """A batch that is ready to be written: the table's data columns, the partition's values as text, the bucket.

    `updated`: the columns that it updates, which it then has alone beside those of the key; None where rows are whole.
    """

    rows: DataFrame
    schema: Schema
    layout: Layout
    updated: tuple[str, ...] | None = None

    @property
    def places(self) -> list[str]:
        return [f"{_PLACE}{number}" for number in range(len(self.layout.table.partition_columns))]


def prepare(rows: DataFrame, lake: LakeTable, schema: Schema, operation: KeyedOperation) -> Prepared:
    """The batch in the table's types. Raises UnfitRows for columns that don't fit, NotKeyed."""
    layout = layout_of(lake.name, schema, "")
    columns = columns_of(rows.sparkSession, schema, to_write=True)
    given = [name.lower() for name in rows.columns]
    check_columns(given, layout.table, layout.schema.names, operation)
    table = layout.table
    updated = updated_columns(layout, given) if operation == "update_columns" else None
    rows = rows.toDF(*given)  # whatever their case: the session may tell names apart by it
    data = [_lower(each) for each in columns.data if updated is None or each.name.lower() in (*table.key, *updated)]
    keys = [_lower(each) for each in columns.keys]
    says_place = not (table.is_table_wide and operation == "delete")  # else the row is wherever its key is
    further = [rows.schema[CHANGE_TYPE]] if operation == "merge" else []
    taken = [each for each in (*data, *(keys if says_place else ()), *further) if each.name in given]
    rows = assigned(
        rows.select(*(quoted(each.name) for each in taken)),
        lake.name,
        StructType([*data, *keys, *further]),
        # By way of the key's own type: `07` of a number is 7.
        parsed=[each.name for each in keys],
    )
    selected = [
        *(sf.col(quoted(each.name)) for each in data),
        *(sf.col(quoted(each.name)).cast("string").alias(f"{_PLACE}{number}") for number, each in enumerate(keys)),
    ]
    if operation == "delete":
        selected.append(sf.lit(True).alias(DELETED))
    elif operation == "merge":
        takes_images = table.changelog_producer is ChangelogProducer.INPUT
        if not takes_images:
            rows = rows.where(~sf.col(CHANGE_TYPE).eqNullSafe(str(ChangeType.UPDATE_PREIMAGE)))
        # A kind that isn't known, or missing, becomes null, which the writer of the bucket refuses.
        others = [str(each) for each in ChangeType if each is not ChangeType.DELETE]
        kinds = sf.when(sf.col(CHANGE_TYPE) == str(ChangeType.DELETE), True).when(
            sf.col(CHANGE_TYPE).isin(others), False
        )
        selected.append(kinds.alias(DELETED))
        if takes_images:
            selected.append(sf.col(CHANGE_TYPE).cast("string").alias(CHANGE_TYPE))
    batch = rows.select(*selected)
    return Prepared(batch.withColumn(_BUCKET, bucket_of(table, columns.data)), schema, layout, updated)


def _lower(field: StructField) -> StructField:
    return StructField(field.name.lower(), field.dataType, field.nullable, field.metadata)


def bucket_of(table: KeyedTable, columns: StructType) -> Column:
    """The bucket of a row, as `lake.tables.keyed.hashing` has it. Raises UnfitRows for a key that can't be hashed."""
    types = {each.name.lower(): each.dataType for each in columns}
    parts: list[Column] = []
    for name in table.key:
        column, kind = sf.col(quoted(name)), types[name]
        if isinstance(kind, TimestampNTZType):
            raise UnfitRows(f"the key column {name} is a timestamp without a zone, which can't be hashed")
        if isinstance(kind, DateType):
            column = sf.expr(f"cast(unix_date({quoted(name)}) as string)")
        elif isinstance(kind, TimestampType):
            column = sf.expr(f"cast(unix_micros({quoted(name)}) as string)")
        elif not isinstance(kind, BinaryType):
            column = column.cast("string")
        if parts:
            parts.append(sf.lit(bytearray([_SEPARATOR])))
        parts.append(column.cast("binary"))
    return (sf.crc32(sf.concat(*parts)) % table.buckets).cast("int")


def write_buckets(
    prepared: Prepared, lake: LakeTable, writing: Writing, event_time: str | None, *, replaces: bool = False
) -> "WrittenBuckets":
    """Writes a batch below the instant's directory.

    `replaces`: nothing of what is in the buckets stays. Raises UnfitRows.
    """
    snapshot = lake.snapshot(
        writing.instant.read_position, include_uncommitted=True, partitions=[] if replaces else None
    )
    layout = layout_of(lake.name, prepared.schema, snapshot.location)
    if replaces:  # what it changes is found by comparing snapshots
        layout = replace(layout, table=replace(layout.table, changelog_producer=ChangelogProducer.NONE))
    writer = BucketWriter(
        layout,
        writing.instant.timestamp,
        writing.directory,
        writing.path,
        event_time and event_time.lower(),
        prepared.updated,
    )
    spark = prepared.rows.sparkSession
    existing = spark.sparkContext.broadcast(by_bucket(snapshot))
    places = prepared.places
    # Rows of a key that is unique over all partitions come together from all of them.
    marks = [_BUCKET] if layout.table.is_table_wide else [*places, _BUCKET]
    together = prepared.rows.repartition(*marks).sortWithinPartitions(*marks)
    dates = frozenset(key.name.lower() for key in prepared.schema.keys if pa.types.is_date(of_hive(key.type)))
    written = over_batches(together, _writing(writer, places, dates, existing), _ANSWER)
    found = written.collect()
    existing.destroy()
    if unfit := sorted(each.unfit for each in found if each.unfit is not None):
        raise UnfitRows(unfit[0])
    first = min((each.first_event for each in found if each.first_event is not None), default=None)
    files = [received(each.file) for each in found if each.file is not None]
    writer.remove_others(files)
    rows_of: dict[str, int] = {}
    for each in found:
        if each.file is not None:
            partition = received(each.file).partition
            rows_of[partition] = rows_of.get(partition, 0) + each.rows
    return WrittenBuckets(
        files,
        sum(each.rows for each in found),
        None if first is None else from_millis(first),
        rows_of,
        {each.file_group for each in found} if layout.table.is_table_wide else set(),
    )


def _writing(
    writer: BucketWriter, places: Sequence[str], dates: Collection[str], existing: Any
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does with its rows, which are sorted by bucket."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files: Mapping[Bucket, Sequence[DataFile]] = existing.value
        texts: list[str | None] = []
        groups: list[str | None] = []
        counts: list[int] = []
        events: list[int] = []
        try:
            for bucket, some in _by_bucket(batches, writer, places, dates):
                new = written_rows(some)
                least, _ = event_times(new, writer.event_time)
                events += [] if least is None else [to_millis(least)]
                if writer.layout.table.is_table_wide:
                    made = writer.write_anywhere(bucket.file_group, some, in_partitions(files, bucket.file_group))
                else:
                    made = writer.write(bucket, some, files.get(bucket, ()))
                texts += [sent(each) for each in made] or [None]
                counts += [new.num_rows] + [0] * (len(texts) - len(counts) - 1)
                groups += [bucket.file_group] * (len(texts) - len(groups))
        except UnfitRows as error:  # the rows' fault: the task isn't to be tried again
            yield _answer([None], [None], [0], None, str(error))
            return
        if any(counts):
            yield _answer(texts, groups, counts, min(events, default=None), None)

    return write


def _answer(
    texts: list[str | None], groups: list[str | None], counts: list[int], first_event: int | None, unfit: str | None
) -> pa.RecordBatch:
    columns = [
        pa.array(texts, pa.string()),
        pa.array(groups, pa.string()),
        pa.array(counts, pa.int64()),
        pa.array([first_event] * len(texts), pa.int64()),
        pa.array([unfit] * len(texts), pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, _ANSWER.names)


def _by_bucket(
    batches: Iterator[pa.RecordBatch], writer: BucketWriter, places: Sequence[str], dates: Collection[str]
) -> Iterator[tuple[Bucket, pa.Table]]:
    """The rows of each bucket, from batches that are sorted by bucket."""
    last: Bucket | None = None
    pending: list[pa.Table] = []
    for batch in batches:
        for bucket, rows in _runs(pa.Table.from_batches([batch]), writer, places, dates):
            if bucket != last and pending:
                assert last is not None
                yield last, pa.concat_tables(pending)
                pending = []
            last = bucket
            pending.append(rows)
    if last is not None and pending:
        yield last, pa.concat_tables(pending)


def _runs(
    rows: pa.Table, writer: BucketWriter, places: Sequence[str], dates: Collection[str]
) -> Iterator[tuple[Bucket, pa.Table]]:
    """The stretches of a batch's rows that belong to one bucket.

    Of a table whose key is unique over all partitions, rows of all partitions are together, with their partition
    columns; the bucket's partition is then ''. `dates`: the partition columns that are dates.
    """
    table = writer.layout.table
    if rows.column(_BUCKET).null_count:
        raise UnfitRows(f"the column {_null_key(rows, table)} belongs to the key and is null in some rows")
    for name, column in zip(table.partition_columns, places, strict=True):
        _check_place(table, name, rows, column)
        if name in dates and pc.any(pc.invert(pc.match_substring_regex(rows.column(column), ONE_DATE))).as_py():
            raise UnfitRows(f"the column {name} partitions the table: its dates are of the years 1 to 9999")
    data = fitted(rows, writer.batch_schema)
    if DELETED in rows.column_names:
        if rows.column(DELETED).null_count:
            raise UnfitRows(f"{CHANGE_TYPE} is one of {', '.join(ChangeType)}, and something else in some rows")
        data = data.append_column(DELETED, rows.column(DELETED))
    if CHANGE_TYPE in rows.column_names:
        data = data.append_column(CHANGE_TYPE, rows.column(CHANGE_TYPE))
    marks = [*places, _BUCKET]
    if table.is_table_wide:
        for name, column in zip(table.partition_columns, places, strict=True):
            data = data.append_column(name, rows.column(column))
        marks = [_BUCKET]
    starts = [0, *_changes(rows.select(marks)), rows.num_rows]
    for start, end in pairwise(starts):
        if start == end:
            continue
        *values, number = (rows.column(column)[start].as_py() for column in marks)
        partition = make_name(table.partition_columns, values) if values else ""
        yield Bucket(partition, table.file_group(number)), data.slice(start, end - start)


def _check_place(table: KeyedTable, name: str, rows: pa.Table, column: str) -> None:
    """Raises UnfitRows for a null in a column that partitions the table, and for values of which the partition's name
    makes one. `column`: its texts. Deletes by a key that is unique over all partitions need none."""
    texts = rows.column(column)
    missing = texts.is_null()
    if table.is_table_wide and DELETED in rows.column_names:
        missing = pc.and_not(missing, pc.fill_null(rows.column(DELETED), False))
    what = "partitions the table" if table.is_table_wide else "belongs to the key"
    if pc.any(missing).as_py():
        raise UnfitRows(f"the column {name} {what} and is null in some rows")
    if pc.any(pc.equal(texts, "")).as_py():
        raise UnfitRows(f"the column {name} {what} and is empty in some rows")
    if pc.any(pc.equal(texts, DEFAULT_PARTITION)).as_py():
        raise UnfitRows(f"the column {name} {what} and has {DEFAULT_PARTITION}, Hive's name for null, in some rows")


def _changes(marks: pa.Table) -> list[int]:
    """The rows that differ from the one before."""
    count = marks.num_rows
    if count < 2:
        return []
    differs = None
    for column in marks.columns:
        here = pc.not_equal(column.slice(1), column.slice(0, count - 1))
        differs = here if differs is None else pc.or_(differs, here)
    assert differs is not None
    return [index + 1 for index in pc.indices_nonzero(differs.combine_chunks()).to_pylist()]


def _null_key(rows: pa.Table, table: KeyedTable) -> str:
    return next((name for name in table.key if rows.column(name).null_count), table.key[0])
