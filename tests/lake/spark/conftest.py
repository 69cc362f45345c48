"""Spark's session of the newest line, and tables that it reads and writes by their timelines."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lake.tables.lake import LakeClient, LakeTable
from tests.lake.spark.lake import Lake
from tests.spark.session import SparkSession
from tests.support.target import Target

NUMBERS = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(hinting_session: Callable[[str], SparkSession]) -> SparkSession:
    return hinting_session("4")


@pytest.fixture
def lake(spark: SparkSession, target: Target) -> Iterator[Lake]:
    """A database of the test's own, and how to make tables in it."""
    database = f"spark_io_{next(NUMBERS)}"
    spark.sql(f"CREATE DATABASE {database}")
    with LakeClient(f"thrift://{target.host}:{target.port}") as client:
        yield Lake(spark, client, database)
    spark.sql(f"DROP DATABASE {database} CASCADE")


@pytest.fixture
def table(lake: Lake) -> LakeTable:
    """A table of Spark's by day, whose partitions are ready as they come."""
    return lake.table("t", "id BIGINT, name STRING, dt STRING", "dt")
