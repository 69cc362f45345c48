"""Helpers for PySpark sessions on this metastore.

from pyspark.sql import SparkSession
from lake.spark import configure, read, write

spark = configure(SparkSession.builder, "thrift://metastore:9083").getOrCreate()
spark.sql("SELECT /*+ includeUnCommit(true) */ count(*) FROM shop.orders")
write(rows, "shop.orders", operation="replace_partitions")
read(spark, "shop.orders", filter="dt >= '2026-01-31'").show()
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lake.spark.configuration import configure

if TYPE_CHECKING:
    from lake.spark.increments import for_each_increment
    from lake.spark.keyed.commits import write_together
    from lake.spark.lake_reading import read
    from lake.spark.lake_sql import sql
    from lake.spark.lake_writing import write
    from lake.spark.streams.reading import read_stream
    from lake.spark.streams.writing import write_stream
    from lake.spark.table_services import plan_clustering, plan_compaction, publish, run_plan

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
    "for_each_increment": "lake.spark.increments",
    "read_stream": "lake.spark.streams.reading",
    "write_stream": "lake.spark.streams.writing",
    "read": "lake.spark.lake_reading",
    "sql": "lake.spark.lake_sql",
    "write": "lake.spark.lake_writing",
    "write_together": "lake.spark.keyed.commits",
    "plan_clustering": "lake.spark.table_services",
    "plan_compaction": "lake.spark.table_services",
    "publish": "lake.spark.table_services",
    "run_plan": "lake.spark.table_services",
}


def __getattr__(name: str) -> Any:
    # Late, so that `metastore spark-conf` works where there is no PySpark.
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
