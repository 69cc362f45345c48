"""Helpers for PySpark sessions on this metastore.

from pyspark.sql import SparkSession
from metastore.spark import configure, read, write

spark = configure(SparkSession.builder, "thrift://metastore:9083").getOrCreate()
spark.sql("SELECT /*+ includeUnCommit(true) */ count(*) FROM shop.orders")
write(rows, "shop.orders", operation="replace_partitions")
read(spark, "shop.orders", filter="dt >= '2026-01-31'").show()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from metastore.spark.configuration import configure

if TYPE_CHECKING:
    from metastore.spark.increments import for_each_increment
    from metastore.spark.keyed_commits import write_together
    from metastore.spark.lake_reading import read
    from metastore.spark.lake_sql import sql
    from metastore.spark.lake_writing import write
    from metastore.spark.stream_reading import read_stream
    from metastore.spark.stream_writing import write_stream
    from metastore.spark.table_services import plan_clustering, plan_compaction, publish, run_plan

__all__ = [
    "configure",
    "for_each_increment",
    "plan_clustering",
    "plan_compaction",
    "publish",
    "read",
    "read_stream",
    "run_plan",
    "sql",
    "write",
    "write_stream",
    "write_together",
]

_MODULES = {
    "for_each_increment": "metastore.spark.increments",
    "read_stream": "metastore.spark.stream_reading",
    "write_stream": "metastore.spark.stream_writing",
    "read": "metastore.spark.lake_reading",
    "sql": "metastore.spark.lake_sql",
    "write": "metastore.spark.lake_writing",
    "write_together": "metastore.spark.keyed_commits",
    "plan_clustering": "metastore.spark.table_services",
    "plan_compaction": "metastore.spark.table_services",
    "publish": "metastore.spark.table_services",
    "run_plan": "metastore.spark.table_services",
}


def __getattr__(name: str) -> Any:
    # Late, so that `metastore spark-conf` works where there is no PySpark.
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
