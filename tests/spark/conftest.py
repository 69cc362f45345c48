"""Spark sessions of both lines on the server under test: one of each for the whole run."""

import itertools
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.session import LINES, SparkSession, mark_spark_tests

NUMBERS = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Both lines have the same client of Hive's: on the older one a sixth of the tests does.
    mark_spark_tests(items, Path(__file__).parent, on_older_line=lambda test: zlib.crc32(test.encode()) % 6 == 0)


@pytest.fixture(scope="session", params=list(LINES), ids=lambda line: f"spark{line}")
def spark(request: pytest.FixtureRequest, spark_session: Callable[[str], SparkSession]) -> SparkSession:
    """A session of each Spark line."""
    return spark_session(request.param)


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    """A database of the test's own, the session's current one; dropped afterwards."""
    name = f"spark_{next(NUMBERS)}"
    spark.sql(f"CREATE DATABASE {name}")
    spark.sql(f"USE {name}")
    yield name
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")
