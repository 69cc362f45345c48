"""Writes a Structured Streaming query into a partitioned table, exactly once, and reports its event time.

    write = partitioned_writer(
        "thrift://metastore:9083",
        "shop.orders",
        event_time="at",
        partitions={"dt": "date_format(at, 'yyyy-MM-dd')", "hr": "date_format(at, 'HH')"},
        source="shard",
    )
    stream.writeStream.foreachBatch(write).option("checkpointLocation", "…").start()

The table's properties say when partitions become ready and where late rows go; `metastore.client.batches` does the
talking. Spark's catalog takes no part in the writing. Nothing here needs a Python worker on the executors.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from metastore.client.batches import Batch, BatchWriter, Outcome, Staged
from metastore.client.reconnecting import Connect
from metastore.formats.partition_names import DEFAULT_PARTITION, values_in
from metastore.spark.hadoop_files import HadoopFiles
from metastore.spark.table_schema import NotParquet, check_parquet, spark_schema
from metastore.wire.hive import Table

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


@dataclass(frozen=True)
class TableColumns:
    """A table's columns and its partition keys, with Spark's names for their types."""

    data: Mapping[str, str]
    keys: Mapping[str, str]


def table_columns(table: Table) -> TableColumns:
    """What a writer must know of a table. Raises StreamError if it has no partitions, or other files than Parquet.

    A table that Spark made keeps Spark's own schema among its properties: in the case its creator wrote, and with types
    that Hive doesn't know.
    """
    properties = table.parameters or {}
    storage = table.sd
    try:
        check_parquet(properties, (storage and storage.inputFormat) or "")
    except NotParquet as error:
        raise StreamError(f"{table.dbName}.{table.tableName}: {error}") from None
    keys = [(key.name or "").lower() for key in table.partitionKeys or []]
    if not keys:
        raise StreamError(f"{table.dbName}.{table.tableName} has no partitions")
    if (schema := spark_schema(properties)) is not None:
        types = {each.name: each.dataType.simpleString() for each in schema}
    else:
        columns = [*((storage and storage.cols) or []), *(table.partitionKeys or [])]
        types = {each.name or "": each.type or "" for each in columns}
    return TableColumns(
        data={name: kind for name, kind in types.items() if name.lower() not in keys},
        keys={key: kind for key in keys for name, kind in types.items() if name.lower() == key},
    )


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
    `sink.partition-commit.watermark-time-zone`. The table's other columns are taken from the stream by name and cast to
    their types; what else the stream has is left out.

    `writer` names the query: the same after a restart, another once its checkpoint was deleted (default: the query's
    id, which Spark keeps in the checkpoint). `chain` names the copy, where several queries write the same data:
    whichever is ahead makes partitions ready. `files_per_partition` is how many tasks share one partition's rows of a
    batch. `retry_seconds` is how long a metastore that is away is waited for. `after_batch` is called with each batch's
    summary.

    The function raises StreamError if stream and table don't fit, `metastore.client.batches.BatchError` if reports are
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
            summary = _write_batch(stream, batch, table_columns(batch_writer.describe()), own)
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


def _write_batch(stream: DataFrame, batch: Batch, columns: TableColumns, settings: _Settings) -> BatchSummary:
    """Stages and reports a batch: the stream is read once, for two Spark jobs."""
    rows = _table_rows(stream, columns, settings).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        measure = _measure(rows, list(columns.keys))
        staged = _stage(rows, batch, columns, measure, settings.files_per_partition) if measure.rows else {}
    finally:
        rows.unpersist()
    outcome = batch.report(measure.event_times, staged)
    return BatchSummary(batch.number, sum(measure.rows.values()), outcome)


def _table_rows(stream: DataFrame, columns: TableColumns, settings: _Settings) -> DataFrame:
    """The table's columns, its keys as text, and what the batch is measured by."""
    if set(settings.partitions) != set(columns.keys):
        wanted, given = ", ".join(columns.keys), ", ".join(settings.partitions)
        raise StreamError(f"the table's partition keys are {wanted}; values are given for {given}")
    present = {name.lower() for name in stream.columns}
    needed = [*columns.data, settings.event_time, *([settings.source] if settings.source else [])]
    if missing := [name for name in dict.fromkeys(needed) if name.lower() not in present]:
        raise StreamError(f"the stream has no column {', '.join(missing)}")
    values = {key: sf.expr(it) if isinstance(it, str) else it for key, it in settings.partitions.items()}
    source = sf.col(f"`{settings.source}`").cast("string") if settings.source else sf.lit(None)
    return stream.select(
        *(sf.col(f"`{name}`").cast(kind).alias(name) for name, kind in columns.data.items()),
        # By way of the key's own type: `07` of a number is 7, as it would be in an INSERT.
        *(values[key].cast(kind).cast("string").alias(key) for key, kind in columns.keys.items()),
        sf.coalesce(source, sf.lit(settings.unnamed_source)).alias(_SOURCE),
        sf.expr(f"unix_millis(cast(`{settings.event_time}` as timestamp))").alias(_MILLIS),
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
    rows: DataFrame, batch: Batch, columns: TableColumns, measure: _Measure, files_per_partition: int
) -> dict[str, Staged]:
    """Writes a batch's rows to its staging location; by partition name, which files hold how many."""
    keys = list(columns.keys)
    share = [sf.floor(sf.rand(0) * files_per_partition)] if files_per_partition > 1 else []
    tasks = min(len(measure.rows) * files_per_partition, rows.sparkSession.sparkContext.defaultParallelism)
    rows.select(*columns.data, *keys).repartition(tasks, *keys, *share).write.mode("append").partitionBy(*keys).parquet(
        batch.staging_location
    )
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
