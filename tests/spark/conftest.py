"""Spark sessions of both lines on the server under test: one of each for the whole run."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.session import LINES, SparkSession

NUMBERS = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    seen: set[str] = set()
    for item in items:
        if here not in item.path.parents:
            continue
        item.add_marker(pytest.mark.spark)
        # Each line has a case of each test; the newer one has all of them, unless there is time for all of both.
        if "spark3.5" in item.name:
            test = item.nodeid.partition("[")[0]
            if test in seen:
                item.add_marker(pytest.mark.long)
            seen.add(test)


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
