"""Runs the cases, each on every kind of table that it is about. An ordinary run has a sample of them."""

import itertools
from collections.abc import Iterator

import pytest

from lake.tables.lake import LakeClient
from tests.spark.session import SparkSession
from tests.spark_extension.lake import Lake
from tests.spark_extension.traps import (
    changes,
    definitions,
    inserts,
    merges,
    overwrites,
    partitions,
    queries,
    sessions,
    values,
)
from tests.spark_extension.traps.cases import Case, Run, parameters

NUMBERS = itertools.count(1)

THEMES = (merges, changes, inserts, overwrites, partitions, definitions, values, queries, sessions)
CASES = [case for theme in THEMES for case in theme.CASES]
CAUGHT = [case for case in CASES if case.caught]
OTHERS = [case for case in CASES if not case.caught]


@pytest.fixture(scope="module")
def traps(spark: SparkSession) -> Iterator[str]:
    """A database for all cases of a session."""
    name = f"traps_{spark.line.replace('.', '')}"
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture(scope="module")
def client(lake: Lake) -> Iterator[LakeClient]:
    with LakeClient(lake.server.uri) as client:
        yield client


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("case", "kind"), parameters(CAUGHT))
def test_trap_that_caught_us(spark: SparkSession, client: LakeClient, traps: str, case: Case, kind: str) -> None:
    Run(spark, client, traps, case, kind, next(NUMBERS)).run()


@pytest.mark.sampled(40)
@pytest.mark.parametrize(("case", "kind"), parameters(OTHERS))
def test_trap(spark: SparkSession, client: LakeClient, traps: str, case: Case, kind: str) -> None:
    Run(spark, client, traps, case, kind, next(NUMBERS)).run()


def test_cases_have_names_of_their_own() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names))
    assert len(names) >= 100
