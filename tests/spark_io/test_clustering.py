"""Clustering from PySpark: files become few and sorted, and no reader sees another row."""

from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from metastore.client.lake import LakeTable
from metastore.client.lake_types import DataFile
from tests.spark.session import SparkError, SparkSession
from tests.spark_io.lake import Lake
from tests.support.target import local_path

DAY = "dt=2026-01-0{}".format
_BEFORE = "from metastore.spark import plan_clustering, run_plan\n"


@pytest.fixture(
    scope="module", params=["4", pytest.param("3.5", marks=pytest.mark.long)], ids=["spark-4", "spark-3.5"]
)
def spark(request: pytest.FixtureRequest, spark_session: Callable[[str], SparkSession]) -> SparkSession:
    return spark_session(request.param)


def run(lake: Lake, code: str) -> Any:
    return lake.run(_BEFORE + code)


def plan(lake: Lake, table: LakeTable, **options: Any) -> tuple[str, str]:
    """The timestamp of a new plan, or nothing, and the reason."""
    found = run(
        lake,
        f"planned = plan_clustering(spark, {table.name!r}, **{options!r})\n"
        "result = [planned.instant.timestamp if planned.instant else '', planned.reason]",
    )
    return found[0], found[1]


def clustered(lake: Lake, table: LakeTable, **options: Any) -> str:
    """Plans and runs; the instant's timestamp."""
    timestamp, reason = plan(lake, table, **options)
    assert timestamp, reason
    assert run(lake, f"result = run_plan(spark, {table.name!r}, {timestamp!r}).repeated") is False
    return timestamp


def values(table: LakeTable, file: DataFile, *columns: str) -> list[Any]:
    found = pq.read_table(local_path(f"{table.location()}/{file.path}"), columns=[*columns], partitioning=None)
    return [row[columns[0]] if len(columns) == 1 else tuple(row.values()) for row in found.to_pylist()]


def test_small_files_become_one(lake: Lake, table: LakeTable) -> None:
    for number in (1, 2, 3):
        lake.write(table, f"rows_of([{number}]).union(rows_of([10 + {number}], '2026-01-02'))")
    lake.write(table, "rows_of([20], '2026-01-03')")
    last = table.position().position
    assert plan(lake, table, small_file_bytes=10)[0] == ""
    timestamp = clustered(lake, table)
    assert {each.partition: each.rows for each in table.snapshot()} == {DAY(1): 3, DAY(2): 3, DAY(3): 1}
    expected = {DAY(1): [1, 2, 3], DAY(2): [11, 12, 13], DAY(3): [20]}
    assert lake.listed(table) == expected
    for as_of in (last, last + 1, None):
        assert lake.ids(table, as_of=as_of) == [1, 2, 3, 11, 12, 13, 20]
    assert sorted(lake.spark.column(f"SELECT id FROM {table.name}")) == [1, 2, 3, 11, 12, 13, 20]
    details = table.details(timestamp, "clustering")
    assert (details.instant.action, details.partitions) == ("replacecommit", [DAY(1), DAY(2)])
    assert run(lake, f"result = run_plan(spark, {table.name!r}, {timestamp!r}).repeated") is True
    assert table.position().position == last + 1
    assert plan(lake, table) == (
        "",
        "no partition has two files below 67108864 bytes that would become one",
    )
