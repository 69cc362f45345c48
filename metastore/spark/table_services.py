"""Table services as functions on a Spark session: a plan, and apart from it its run.

planned = plan_compaction(spark, "shop.orders")
if planned.instant is not None:
    run_plan(spark, "shop.orders", planned.instant.timestamp)
publish(spark, "shop.orders")
"""

import json
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from metastore.client import compaction, publishing
from metastore.client.buckets import Bucket, BucketWriter, received, sent
from metastore.client.compaction import Planned, Task, compacted
from metastore.client.lake_types import Completed, DataFile
from metastore.client.publishing import Published
from metastore.spark.executor_tasks import over_texts
from metastore.spark.session_client import lake_table
from metastore.spark.written import refresh_listings


def plan_compaction(
    spark: SparkSession, table: str, *, filter: str | None = None, min_log_files: int = 1, uri: str | None = None
) -> Planned:
    """Plans the compaction of the buckets of a merge-on-read table that have so many log files.

    `filter` is on partition keys, in Hive's grammar. Leaves a requested instant, or says why not. Raises NotKeyed.
    """
    return compaction.plan_compaction(lake_table(spark, table, uri), filter=filter, min_log_files=min_log_files)


def run_plan(
    spark: SparkSession, table: str, timestamp: str, *, heartbeat_seconds: float = 20.0, uri: str | None = None
) -> Completed:
    """Runs a plan on the session's executors. A plan that was completed already is a success, and changes nothing.

    Raises NoSuchObjectException without the plan, InvalidOperationException if another process runs it, InstantConflict
    if writers changed what it rewrites; whatever is raised, Spark's errors too, the plan stays and can be run again.
    """

    def run(writer: BucketWriter, tasks: Sequence[Task]) -> list[DataFile]:
        return _run_in_tasks(spark, writer, tasks)

    return compaction.run_compaction(
        lake_table(spark, table, uri), timestamp, run_tasks=run, heartbeat_seconds=heartbeat_seconds
    )


def publish(spark: SparkSession, table: str, *, filter: str | None = None, uri: str | None = None) -> Published:
    """Gives Hive the rows of a keyed table's latest position, as `metastore.client.publishing.publish` does.

    Files are linked or copied by the driver. The session's listings of the table are dropped; other sessions keep
    theirs. Raises NotKeyed, InvalidOperationException.
    """
    lake = lake_table(spark, table, uri)
    published = publishing.publish(lake, filter=filter)
    if published.instant is not None:
        refresh_listings(spark, lake)
    return published


def _run_in_tasks(spark: SparkSession, writer: BucketWriter, tasks: Sequence[Task]) -> list[DataFile]:
    if not tasks:
        return []
    texts = [json.dumps([*bucket, *map(sent, files)]) for bucket, files in tasks]
    written = over_texts(spark, texts, _compacting(writer), StructType().add("file", "string")).collect()
    files = [received(each.file) for each in written]
    writer.remove_others(files)
    return files


def _compacting(writer: BucketWriter) -> Callable[[str], Iterator[pa.RecordBatch]]:
    def run(text: str) -> Iterator[pa.RecordBatch]:
        partition, group, *files = json.loads(text)
        written = compacted(writer, (Bucket(partition, group), [received(each) for each in files]))
        yield pa.RecordBatch.from_arrays([pa.array(list(map(sent, written)), pa.string())], ["file"])

    return run
