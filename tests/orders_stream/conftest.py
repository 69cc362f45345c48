"""Sessions of both Spark lines, as the tests of Spark have them."""

from tests.spark.conftest import spark, spark_session

__all__ = ["spark", "spark_session"]
