"""Conditions skip partitions and buckets, on both of Spark's lines, and lose no row."""

import re
from typing import Any

import pytest

from tests.spark.session import SparkSession

#: Conditions, and of how many of the 4 x 6 buckets their rows can be.
CONDITIONS = {
    "day = '2'": 8,
    "day IN ('1', '2') AND hour = 0": 8,
    "day IN ('1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12') AND hour = 1": 12,
    "day >= '2' AND hour < 1": 8,
    "day <= '2' AND hour > 0": 8,
    "NOT day = '2'": 16,
    "day NOT IN ('1', '3')": 8,
    "day LIKE '2%'": 8,
    "day LIKE '%2' AND hour IS NOT NULL": 8,
    "day <=> '2'": 8,
    "dated = date'2026-01-02'": 8,
    "dated BETWEEN date'2026-01-02' AND date'2026-01-03' AND hour = 0": 8,
    "(day = '1' AND hour = 0) OR (day = '3' AND hour = 1)": 8,
    "id = 7": 6,
    "id IN (7, 7)": 6,
    "id = 7 AND day = '2' AND hour = 0": 1,
    "id = 7 AND v > 0 AND day = '2'": 2,
    "id > 7 AND day = '2'": 8,
    "v = 3": 24,
}


def rows(spark: SparkSession, query: str) -> list[list[Any]]:
    return [list(row) for row in spark.sql(query)]


def planned(spark: SparkSession, statement: str) -> list[int]:
    """How many buckets each scan of a statement's plan reads."""
    text = rows(spark, f"EXPLAIN {statement}")[0][0]
    return [int(found) for found in re.findall(r"buckets: (\d+)", text)]


@pytest.fixture
def table(spark: SparkSession, database: str) -> str:
    name = f"{database}.t"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, v INT, day STRING, hour INT, dated DATE) USING parquet"
        " PARTITIONED BY (day, hour, dated) TBLPROPERTIES ('primary-key' = 'id,day,hour,dated', 'bucket' = '4')"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT i.id, CAST(i.id % 5 AS INT), CAST(d.id AS STRING), CAST(d.id % 2 AS INT),"
        " date_add(date'2026-01-01', CAST(d.id AS INT) - 1) FROM range(1, 41) i CROSS JOIN range(1, 4) d"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT i.id, CAST(i.id % 5 AS INT), CAST(d.id AS STRING), CAST((d.id + 1) % 2 AS INT),"
        " date_add(date'2026-01-01', CAST(d.id AS INT) - 1) FROM range(1, 41) i CROSS JOIN range(1, 4) d"
    )
    return name


def test_conditions_skip_what_cannot_have_their_rows(spark: SparkSession, table: str) -> None:
    held = ", ".join(f"({condition})" for condition in CONDITIONS)
    everything = rows(spark, f"SELECT id, day, hour, {held} FROM {table}")
    assert len(everything) == 240
    for number, (condition, most) in enumerate(CONDITIONS.items(), 3):
        query = f"SELECT id, day, hour FROM {table} WHERE {condition}"
        assert planned(spark, query) == [most], condition
        assert sorted(rows(spark, query)) == sorted(each[:3] for each in everything if each[number]), condition


def test_statements_skip_them_too(spark: SparkSession, table: str) -> None:
    for statement in (
        f"UPDATE {table} SET v = 9 WHERE day = '2' AND hour = 0 AND id = 7",
        f"DELETE FROM {table} WHERE day = '2' AND hour = 0 AND id = 7",
    ):
        assert planned(spark, statement) == [1], statement
        spark.sql(statement)
    assert rows(spark, f"SELECT count(*) FROM {table}") == [[239]]


def test_changes_skip_partitions(spark: SparkSession, table: str) -> None:
    spark.sql(f"UPDATE {table} SET v = 9 WHERE id = 7")
    changes = f"SELECT id, day, hour FROM lake_changes('{table}', 2, 3)"
    assert planned(spark, changes) == [6]
    assert planned(spark, f"{changes} WHERE day = '2'") == [2]
    assert len(rows(spark, f"{changes} WHERE day = '2'")) == 4
