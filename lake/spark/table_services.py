"""Table services as functions on a Spark session: a plan, and apart from it its run.

planned = plan_compaction(spark, "shop.customers")  # of a table with a primary key; else plan_clustering
if planned.instant is not None:
    run_plan(spark, "shop.customers", planned.instant.timestamp)
publish(spark, "shop.customers")
"""

from collections.abc import Sequence

from pyspark.sql import SparkSession

from lake.client.lake_types import Completed, DataFile
from lake.protocol.hive import NoSuchObjectException
from lake.protocol.lake import TableReference
from lake.spark import clustering as rewriting
from lake.spark.keyed import extension
from lake.spark.session_client import check_extension, lake_table
from lake.spark.written import refresh_listings
from lake.tables import clustering, compaction, publishing
from lake.tables.clustering import CLUSTERING, Curve
from lake.tables.clustering_runs import Job, run_clustering
from lake.tables.compaction import Planned, Work
from lake.tables.lake import LakeTable, Writing
from lake.tables.publishing import Published


def plan_compaction(
    spark: SparkSession,
    table: str,
    *,
    partitions: Sequence[str] | None = None,
    filter: str | None = None,
    min_log_files: int = 1,
    uri: str | None = None,
) -> Planned:
    """Plans the compaction of the buckets of a merge-on-read table that have so many log files.

    Give either the names of `partitions` or a `filter` on their keys, in Hive's grammar, or neither for all. Leaves a
    requested instant, or says why not. Raises NotKeyed.
    """
    lake = lake_table(spark, table, uri)
    return compaction.plan_compaction(lake, partitions=partitions, filter=filter, min_log_files=min_log_files)


def plan_clustering(
    spark: SparkSession,
    table: str,
    *,
    filter: str | None = None,
    small_file_bytes: int = 64 * clustering.MIB,
    target_file_bytes: int = 256 * clustering.MIB,
    order_by: Sequence[str] | None = None,
    curve: Curve = "linear",
    uri: str | None = None,
) -> clustering.Planned:
    """Plans to rewrite the small files of a table without a primary key, if they become fewer.

    With `order_by` all files that aren't sorted so yet: `linear` sorts by the first column, then the next; `z-order` by
    1 to 4 columns alike, numbers, dates, timestamps or strings. `filter` is on partition keys, in Hive's grammar.
    Leaves a requested instant, or says why not. Raises NotClusterable, ValueError for arguments that mean nothing.
    """
    return clustering.plan_clustering(
        lake_table(spark, table, uri),
        filter=filter,
        small_file_bytes=small_file_bytes,
        target_file_bytes=target_file_bytes,
        order_by=order_by,
        curve=curve,
    )


def run_plan(
    spark: SparkSession,
    table: str | TableReference,
    timestamp: str,
    *,
    heartbeat_seconds: float = 20.0,
    uri: str | None = None,
) -> Completed:
    """Runs a plan on the session's executors. A plan that was completed already is a success, and changes nothing.

    Raises NoSuchObjectException without the plan, NoExtension for a compaction in a session that `configure` hasn't
    made, InvalidOperationException if another process runs it, InstantConflict if writers changed what it rewrites;
    whatever is raised, Spark's errors too, the plan stays and can be run again. A clustering that met an
    InstantConflict can't, and is aborted: plan again.
    """
    lake = lake_table(spark, table, uri)
    if _action_of(lake, timestamp) == CLUSTERING:

        def rewrite(writing: Writing, job: Job) -> list[DataFile]:
            return rewriting.rewrite(spark, writing, job)

        files = rewriting.SessionFiles(spark)
        done = run_clustering(lake, timestamp, rewrite, files, heartbeat_seconds=heartbeat_seconds)
        refresh_listings(spark, lake)
        return done

    check_extension(spark)

    def run(work: Work) -> list[DataFile]:
        return extension.compacted(spark, lake, work, uri=uri)

    return compaction.run_compaction(lake, timestamp, run_tasks=run, heartbeat_seconds=heartbeat_seconds)


def publish(
    spark: SparkSession, table: str, *, filter: str | None = None, waiting: bool = False, uri: str | None = None
) -> Published:
    """Gives Hive the rows of a keyed table's latest position, as `lake.tables.publishing.publish` does.

    Files are linked or copied by the driver. The session's listings of the table are dropped; other sessions keep
    theirs. Raises NotKeyed, InvalidOperationException.
    """
    lake = lake_table(spark, table, uri)
    published = publishing.publish(lake, filter=filter, waiting=waiting)
    if published.instant is not None:
        refresh_listings(spark, lake)
    return published


def _action_of(lake: LakeTable, timestamp: str) -> str:
    """The action of a plan. Raises NoSuchObjectException without it."""
    try:
        return lake.details(timestamp, CLUSTERING).instant.begun_as
    except NoSuchObjectException:
        return lake.details(timestamp, compaction.COMPACTION).instant.begun_as
