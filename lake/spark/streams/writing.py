"""Writes streaming DataFrames into lake tables, each micro-batch once.

query = write_stream(changes, "shop.customers", "s3a://lake/checkpoints/customers", operation="upsert")
query.awaitTermination()

A query that was killed repeats its last micro-batch when it starts again. The metastore knows by the query's id and the
batch's number whether that batch is part of the table already, and decides so in the transaction that completes it.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal, TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from lake.client.lake_types import StreamBatch
from lake.protocol.lake import TableReference
from lake.spark.hadoop_files import HadoopFiles
from lake.spark.lake_writing import Operation, check_operation, write
from lake.spark.session_client import OtherTable, lake_table
from lake.spark.table_schema import is_hudi
from lake.spark.written import Written

OutputMode: TypeAlias = Literal["append", "update", "complete"]

CHECKPOINT_MARK = "lake-table.json"
"""The file in a checkpoint's directory that says into which table the query writes."""


def write_stream(
    rows: DataFrame,
    table: str,
    checkpoint: str,
    *,
    operation: Operation = "append",
    output_mode: OutputMode = "append",
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
    stream: str | None = None,
    after_batch: Callable[[int, Written], None] | None = None,
    event_time: str | None = None,
    source: str | None = None,
    add_columns: bool = False,
    options: Mapping[str, str] | None = None,
    heartbeat_seconds: float = 20.0,
    uri: str | None = None,
) -> StreamingQuery:
    """Starts a query that writes a streaming DataFrame into the table `database.table`, and returns it.

    `checkpoint` is the URI of a directory of this query alone, in which Spark keeps how far it is. Every micro-batch is
    written by `write` with `operation`, in one instant, and becomes part of the table once. A micro-batch that has
    several versions of a key needs the table's `sequence.field`.

    `trigger` is what Spark's `DataStreamWriter.trigger` takes: `{"processingTime": "1 minute"}`,
    `{"availableNow": True}`. With `output_mode="update"` aggregates are upserted as they change, with `"complete"` all
    of them come each time, to overwrite. `stream` names the query to the metastore, by default its id, which Spark
    keeps in the checkpoint: a query with a new checkpoint is another stream. `after_batch` is called with each batch's
    number and what was written; `Written.instant` is None for a batch that was part of the table already.

    `source` names the stream in the table's watermark, by default as `stream` does. The rest is as of `write`.

    The query writes into one table, by its id. If that is dropped, and another one has its name, the query ends with
    TableReplaced, and its checkpoint can't be used for the other table.

    Raises ValueError for arguments that don't go together, NoSuchObjectException without the table, OtherTable for the
    checkpoint of another table. What `write` raises ends the query. Started again, it repeats the batch. Needs Spark's
    classic API (not Spark Connect).
    """
    if not rows.isStreaming:
        raise ValueError("the DataFrame isn't a stream: write() writes it")
    spark = rows.sparkSession
    lake = lake_table(spark, table, uri)
    schema = lake.schema()
    if is_hudi(schema):
        raise ValueError(f"{lake.name} is a table of Hudi's: Hudi writes its streams, rows.writeStream.format('hudi')")
    check_operation(lake.name, schema, operation, add_columns=add_columns)
    target = lake.reference
    _check_checkpoint(HadoopFiles(spark), checkpoint, target)

    def write_batch(batch: DataFrame, number: int) -> None:
        name = stream or _query_id(batch.sparkSession)
        written = write(
            batch,
            target,
            operation=operation,
            event_time=event_time,
            source=source or name,
            add_columns=add_columns,
            batch=StreamBatch(name, number),
            options=options,
            heartbeat_seconds=heartbeat_seconds,
            uri=uri,
        )
        if after_batch is not None:
            after_batch(number, written)

    writer = rows.writeStream.foreachBatch(write_batch).option("checkpointLocation", checkpoint).outputMode(output_mode)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    if query_name is not None:
        writer = writer.queryName(query_name)
    return writer.start()


def _check_checkpoint(files: HadoopFiles, checkpoint: str, table: TableReference) -> None:
    """Raises OtherTable for the checkpoint of a query that writes into another table; marks one that has no mark."""
    if table.id is None:  # an older server doesn't tell
        return
    mark = f"{checkpoint.rstrip('/')}/{CHECKPOINT_MARK}"
    known = None
    if files.exists(mark):
        with suppress(ValueError):  # a process died while it wrote the mark
            known = json.loads(files.read(mark)).get("table")
    if known is None:
        files.write(mark, json.dumps({"table": table.id, "name": f"{table.database}.{table.table}"}))
    elif known != table.id:
        raise OtherTable(
            f"the checkpoint {checkpoint} is of a query into another table (id {known}) than {table.database}."
            f"{table.table} is now (id {table.id}): that one was dropped or renamed. Start the query with a new"
            " checkpoint, so that it writes all of its rows into the table that is there now"
        )


def _query_id(spark: SparkSession) -> str:
    """The id of the query whose batch this thread writes."""
    found = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    if not found:
        raise ValueError("Spark doesn't say which query writes: give it a name with stream=…")
    return found
