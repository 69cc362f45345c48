"""Sessions of both Spark lines, as the tests of Spark have them."""

from tests.spark.conftest import spark

__all__ = ["spark"]
