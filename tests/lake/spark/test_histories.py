"""Random histories of keyed tables that Spark and Arrow change by turns: both readers find what the model says."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lake.client.lake_types import Instant
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed_tables import COMMIT_TIMESTAMP, COMMIT_VERSION
from lake.tables.lake import LakeTable
from tests.lake.spark.lake import Lake
from tests.lake.tables.keyed.histories import COLUMNS, NAMES, TABLES, History, Operation, in_order, make_table
from tests.spark.session import SparkSession
from tests.support.long_runs import share_of

_SPARK_TYPES = {**COLUMNS, CHANGE_TYPE: "string"}
_BEFORE = """
from lake.spark.table_services import publish, run_plan
def dictionaries(frame):
    return [row.asDict() for row in frame.drop("_commit_timestamp").collect()]
"""


@pytest.fixture(scope="module", params=["4", pytest.param("3.5", marks=pytest.mark.long)], ids=["spark-4", "spark-3.5"])
def spark(request: pytest.FixtureRequest, hinting_session: Callable[[str], SparkSession]) -> SparkSession:
    return hinting_session(request.param)


class SparkHistory(History):
    """A history of which Spark makes two steps of three. What is read is read by both, and is the same."""

    def __init__(self, lake: Lake, table: LakeTable, seed: int) -> None:
        super().__init__(table, seed)
        self.session = lake

    def is_spark_s_turn(self) -> bool:
        return self.random.random() < 2 / 3

    def run(self, code: str) -> Any:
        return self.session.run(_BEFORE + code)

    def put(self, operation: Operation, rows: pa.Table) -> None:
        if not self.is_spark_s_turn():
            super().put(operation, rows)
            return
        values = [tuple(row.values()) for row in rows.to_pylist()]
        types = ", ".join(f"{name} {_SPARK_TYPES[name]}" for name in rows.column_names)
        frame = f"spark.createDataFrame({values!r}, {types!r})"
        self.run(f"write({frame}, {self.lake.name!r}, operation={operation!r})")

    def run_plan(self, plan: Instant) -> None:
        if self.is_spark_s_turn():
            self.run(f"run_plan(spark, {self.lake.name!r}, {plan.timestamp!r})")
        else:
            super().run_plan(plan)

    def publish(self) -> None:
        if self.is_spark_s_turn():
            self.run(f"publish(spark, {self.lake.name!r})")
        else:
            super().publish()

    def check_spark_s(self, rows: pa.Table, columns: list[str], **options: Any) -> None:
        """What Spark reads with these options of `read` are the same rows."""
        by_spark = self.run(f"result = dictionaries(read(spark, {self.lake.name!r}, **{options!r}))")
        assert in_order(rows.select(columns)) == sorted(repr({name: row[name] for name in columns}) for row in by_spark)

    def rows_at(self, position: int) -> pa.Table:
        rows = super().rows_at(position)
        self.check_spark_s(rows, NAMES, as_of=position)
        return rows

    def changes(self, first: int, last: int, *, of_each_commit: bool = False) -> pa.Table:
        found = super().changes(first, last, of_each_commit=of_each_commit)
        columns = [name for name in found.column_names if name != COMMIT_TIMESTAMP]
        assert {CHANGE_TYPE, COMMIT_VERSION} < set(columns)
        self.check_spark_s(found, columns, incremental=(first, last), changes="all" if of_each_commit else True)
        return found


def run(lake: Lake, seed: int, steps: int) -> None:
    """A history of a table whose kind, merge engine, key and changelog follow from the seed."""
    engine = list(TABLES)[seed % len(TABLES)]
    properties = {
        "bucket": "2",
        "table-type": ("copy-on-write", "merge-on-read")[seed // len(TABLES) % 2],
        "primary-key": "id" if engine in ("latest", "sequence") and seed % 5 == 0 else "id,part",
        "changelog-producer": "lookup" if seed % 4 == 0 else "none",
        **TABLES[engine],
    }
    history = SparkHistory(lake, make_table(lake.client, properties, COLUMNS), seed)
    for _ in range(steps):
        history.step()
    try:
        history.check()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}, {properties}: {error}") from error


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.long) for each in (1, 2))])
def test_a_history(lake: Lake, seed: int) -> None:
    run(lake, seed, steps=7)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_many_histories(lake: Lake, part: int) -> None:
    for seed in range(share_of(30)):
        run(lake, 1000 + part * 100 + seed, steps=4 + seed % 8)
