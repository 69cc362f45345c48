"""Helpers for PySpark sessions on this metastore.

from pyspark.sql import SparkSession
from metastore.spark import configure

spark = configure(SparkSession.builder, "thrift://metastore:9083").getOrCreate()
spark.sql("SELECT /*+ includeUnCommit(true) */ count(*) FROM shop.orders")
"""

from metastore.spark.configuration import configure

__all__ = ["configure"]
