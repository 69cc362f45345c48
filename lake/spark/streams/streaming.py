"""Writes a Structured Streaming query into a partitioned table, exactly once, and reports its event time.

    write = partitioned_writer(
        "thrift://metastore:9083",
        "shop.orders",
        event_time="at",
        partitions={"dt": "date_format(at, 'yyyy-MM-dd')", "hr": "date_format(at, 'HH')"},
        source="shard",
    )
    stream.writeStream.foreachBatch(write).option("checkpointLocation", "…").start()

The table's properties say when partitions become ready and where late rows go; `lake.client.batches` does the
talking. Spark's catalog takes no part in the writing. Nothing here needs a Python worker on the executors.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from lake.client.batches import Batch, BatchWriter, Outcome, Staged
from lake.client.lake_types import Column as LakeColumn
from lake.client.lake_types import Schema
from lake.client.reconnecting import Connect
from lake.protocol.formats.partition_names import DEFAULT_PARTITION, values_in
from lake.protocol.hive import Table
from lake.spark.hadoop_files import HadoopFiles
from lake.spark.store_assignment import as_stored, assigned
from lake.spark.table_schema import LakeColumns, NotParquet, columns_of, quoted
from lake.tables.keyed.errors import UnfitRows

logger = logging.getLogger(__name__)

# Columns that go beside the table's own while a batch is measured.
_SOURCE, _MILLIS = "__source", "__event_millis"

Values = tuple[str, ...]


class StreamError(Exception):
    """Stream and table don't fit together; the message says in what."""


@dataclass(frozen=True)
class BatchSummary:
    """What became of a batch: its number, its rows, and the outcome (None: an earlier run of it was accepted)."""

    batch: int
    rows: int
    outcome: Outcome | None


def table_columns(spark: SparkSession, table: Table) -> LakeColumns:
    """What a writer must know of a table. Raises StreamError if it has no partitions, or other files than Parquet."""
    name = f"{table.dbName}.{table.tableName}"
    storage = table.sd
    columns, keys = (
        [LakeColumn(each.name or "", each.type or "") for each in some or ()]
        for some in ((storage and storage.cols), table.partitionKeys)
    )
    schema = Schema(0, columns, keys, table.parameters or {}, (storage and storage.inputFormat) or "")
    try:
        found = columns_of(spark, schema, to_write=True)
    except NotParquet as error:
        raise StreamError(f"{name}: {error}") from None
    if not keys:
        raise StreamError(f"{name} has no partitions")
    return found


def partitioned_writer(
    connect: str | Connect,
    table: str,
    *,
    event_time: str,
    partitions: Mapping[str, str | Column],
    source: str | None = None,
    writer: str | None = None,
    chain: str | None = None,
    files_per_partition: int = 1,
    retry_seconds: float = 300.0,
    after_batch: Callable[[BatchSummary], None] | None = None,
) -> Callable[[DataFrame, int], None]:
    """The function for `foreachBatch` that writes each batch of a stream into the Parquet table `database.table`.

    The table's `partition.commit.mode` says who makes its partitions ready; a table without one takes no batches.

    `connect` is the metastore's URI, `thrift://host:port` (several with commas), or makes a client. `event_time` is the
    stream's timestamp column; `source` the one that says where a row came from, for a watermark per source; without it
    the writer is the source.
    `partitions` gives the value of each partition key, as a column or an SQL expression over the stream; mind that a
    timestamp's text follows `spark.sql.session.timeZone`, which should be the table's
    `sink.partition-commit.watermark-time-zone`. The table's other columns are taken from the stream by name and
    converted to their types by Spark's rules of store assignment (ANSI). Texts are read as values of the column's type.
    A value that doesn't fit ends the query. What else the stream has is left out.

    `writer` names the query: the same after a restart, another once its checkpoint was deleted (default: the query's
    id, which Spark keeps in the checkpoint). `chain` names the copy, where several queries write the same data:
    whichever is ahead makes partitions ready. `files_per_partition` is how many tasks share one partition's rows of a
    batch. `retry_seconds` is how long a metastore that is away is waited for. `after_batch` is called with each batch's
    summary.

    The function raises StreamError if stream and table don't fit, `lake.client.batches.BatchError` if reports are
    refused for good, and the server's own exceptions. The query then ends; started again, it repeats the batch.
    """
    if files_per_partition < 1:
        raise ValueError("files_per_partition is 1 or more")
    settings = _Settings(
        event_time=event_time,
        source=source,
        partitions={
            key.lower(): sf.expr(value) if isinstance(value, str) else value for key, value in partitions.items()
        },
        files_per_partition=files_per_partition,
    )
    writers: dict[str, BatchWriter] = {}

    def writer_for(spark: SparkSession) -> BatchWriter:
        name = writer or spark.sparkContext.getLocalProperty("sql.streaming.queryId")
        if not name:
            raise StreamError("outside a streaming query the writer needs a name")
        if name not in writers:
            files = HadoopFiles(spark)
            writers[name] = BatchWriter(
                connect, table, name, chain=chain, retry_seconds=retry_seconds, directories=files
            )
        return writers[name]

    def write(stream: DataFrame, number: int) -> None:
        batch_writer = writer_for(stream.sparkSession)
        batch = batch_writer.begin(number)
        if batch is None:
            logger.info("batch %d of %s was accepted before", number, batch_writer.writer)
            summary = BatchSummary(number, 0, None)
        else:
            # Another query is another source: the watermark must wait for both.
            own = replace(settings, unnamed_source=batch_writer.writer)
            summary = _write_batch(stream, batch, table_columns(stream.sparkSession, batch_writer.describe()), own)
        if after_batch is not None:
            after_batch(summary)

    return write


@dataclass(frozen=True)
class _Settings:
    event_time: str
    source: str | None
    partitions: Mapping[str, str | Column]
    files_per_partition: int
    unnamed_source: str = ""  # of rows that don't say theirs


@dataclass
class _Measure:
    """What a batch consists of: the smallest event time by source in milliseconds, rows by partition values."""

    event_times: dict[str, int] = field(default_factory=dict)
    rows: dict[Values, int] = field(default_factory=dict)


def _write_batch(stream: DataFrame, batch: Batch, columns: LakeColumns, settings: _Settings) -> BatchSummary:
    """Stages and reports a batch: the stream is read once, for two Spark jobs."""
    table = batch.writer.table
    name = f"{table.database}.{table.table}"
    rows = _table_rows(stream, name, columns, settings).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        measure = _measure(rows, columns.key_names)
        staged = _stage(rows, batch, columns, measure, settings.files_per_partition) if measure.rows else {}
    finally:
        rows.unpersist()
    outcome = batch.report(measure.event_times, staged)
    return BatchSummary(batch.number, sum(measure.rows.values()), outcome)


def _table_rows(stream: DataFrame, table: str, columns: LakeColumns, settings: _Settings) -> DataFrame:
    """The table's columns, its keys as text, and what the batch is measured by. Raises StreamError."""
    keys = StructType([StructField(each.name.lower(), each.dataType) for each in columns.keys])
    if {*settings.partitions} != {*keys.names}:
        wanted, given = ", ".join(keys.names), ", ".join(settings.partitions)
        raise StreamError(f"the table's partition keys are {wanted}; values are given for {given}")
    present = {name.lower() for name in stream.columns}
    needed = [*columns.data.names, settings.event_time, *([settings.source] if settings.source else [])]
    if missing := [name for name in dict.fromkeys(needed) if name.lower() not in present]:
        raise StreamError(f"the stream has no column {', '.join(missing)}")
    values = {key: sf.expr(it) if isinstance(it, str) else it for key, it in settings.partitions.items()}
    source = sf.col(quoted(settings.source)).cast("string") if settings.source else sf.lit(None)
    marks = StructType().add(_SOURCE, StringType()).add(_MILLIS, LongType())
    selected = stream.select(
        *(sf.col(quoted(name)).alias(name) for name in columns.data.names),
        *(values[key].alias(key) for key in keys.names),
        sf.coalesce(source, sf.lit(settings.unnamed_source)).alias(_SOURCE),
        sf.expr(f"unix_millis(cast({quoted(settings.event_time)} as timestamp))").alias(_MILLIS),
    )
    try:
        # Streams of JSON have texts. The keys go by way of their own type: `07` of a number is 7.
        atomic = [each.name for each in columns.data if not isinstance(each.dataType, ArrayType | MapType | StructType)]
        found = assigned(selected, table, StructType([*columns.data, *keys, *marks]), parsed=[*atomic, *keys.names])
    except UnfitRows as error:
        raise StreamError(str(error)) from None
    return found.select(
        *map(quoted, columns.data.names),
        *(sf.col(quoted(key)).cast("string").alias(key) for key in keys.names),
        *marks.names,
    )


def _measure(rows: DataFrame, keys: list[str]) -> _Measure:
    grouped = rows.groupBy(_SOURCE, *keys).agg(sf.min(_MILLIS), sf.count(sf.lit(1)))
    measure = _Measure()
    for source, *values, first, count in grouped.collect():
        if first is not None:
            measure.event_times[source] = min(first, measure.event_times.get(source, first))
        name = tuple(value or DEFAULT_PARTITION for value in values)
        measure.rows[name] = measure.rows.get(name, 0) + count
    return measure


def _stage(
    rows: DataFrame, batch: Batch, columns: LakeColumns, measure: _Measure, files_per_partition: int
) -> dict[str, Staged]:
    """Writes a batch's rows to its staging location; by partition name, which files hold how many."""
    keys = columns.key_names
    share = [sf.floor(sf.rand(0) * files_per_partition)] if files_per_partition > 1 else []
    tasks = min(len(measure.rows) * files_per_partition, rows.sparkSession.sparkContext.defaultParallelism)
    spread = rows.select(*map(quoted, [*columns.data.names, *keys])).repartition(tasks, *map(quoted, keys), *share)
    as_stored(spread).write.mode("append").partitionBy(*keys).parquet(batch.staging_location)
    files = HadoopFiles(rows.sparkSession)
    names: dict[str, list[str]] = {}
    for count, path in enumerate(files.files(batch.staging_location, ".parquet")):
        # Spark's directories have the names of Hive's partitions. Its files' names are only unique within one of them.
        name = batch.file_name(count)
        files.rename(batch.staging_location, path, name)
        names.setdefault(path.rpartition("/")[0], []).append(name)
    counts = {name: measure.rows.get(tuple(values_in(name))) for name in names}
    if None in counts.values() or len(counts) != len(measure.rows):
        raise StreamError("the batch had other rows when it was written than when it was counted: is it random?")
    return {name: Staged(names[name], count) for name, count in counts.items() if count is not None}
