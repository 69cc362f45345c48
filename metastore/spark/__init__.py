"""Helpers for PySpark sessions on this metastore.

from pyspark.sql import SparkSession
from metastore.spark import configure, read, write

spark = configure(SparkSession.builder, "thrift://metastore:9083").getOrCreate()
spark.sql("SELECT /*+ includeUnCommit(true) */ count(*) FROM shop.orders")
write(rows, "shop.orders", operation="replace_partitions")
read(spark, "shop.orders", filter="dt >= '2026-01-31'").show()
"""

from typing import TYPE_CHECKING, Any

from metastore.spark.configuration import configure

if TYPE_CHECKING:
    from metastore.spark.lake_reading import read
    from metastore.spark.lake_writing import write

__all__ = ["configure", "read", "write"]


def __getattr__(name: str) -> Any:
    # Late, so that `metastore spark-conf` works where there is no PySpark.
    if name == "read":
        from metastore.spark.lake_reading import read

        return read
    if name == "write":
        from metastore.spark.lake_writing import write

        return write
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
