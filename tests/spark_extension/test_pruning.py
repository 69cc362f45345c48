"""Conditions skip partitions and buckets, on both of Spark's lines, and lose no row."""

import re
from typing import Any

import pyarrow as pa
import pytest

from lake.tables.lake import LakeClient
from tests.spark.session import SparkSession
from tests.spark_extension.lake import Lake

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


def test_some_columns_of_the_key_say_the_bucket(spark: SparkSession, database: str, lake: Lake) -> None:
    name = f"{database}.lines"
    spark.sql(
        f"CREATE TABLE {name} (v STRING, Ord BIGINT, nr INT) USING parquet"
        " TBLPROPERTIES ('primary-key' = 'ord,nr', 'bucket-key' = 'ORD', 'bucket' = '4')"
    )
    assert spark.properties(name)["table-type"] == "copy-on-write+bucket-key"
    spark.sql(f"INSERT INTO {name} SELECT 'a', o.id, CAST(n.id AS INT) FROM range(40) o CROSS JOIN range(5) n")
    for condition, most in {"ord = 7": 1, "ord IN (7, 7) AND v = 'a'": 1, "nr = 3": 4, "ord = 7 AND nr = 3": 1}.items():
        assert planned(spark, f"SELECT * FROM {name} WHERE {condition}") == [most], condition
    assert rows(spark, f"SELECT count(*), sum(nr) FROM {name} WHERE ord = 7") == [[5, 10]]
    spark.sql(f"UPDATE {name} SET v = 'b' WHERE ord = 7")
    spark.sql(f"DELETE FROM {name} WHERE ord = 7 AND nr = 0")
    schema = pa.schema([("v", pa.string()), ("ord", pa.int64()), ("nr", pa.int32())])
    with LakeClient(lake.server.uri) as client:
        client.table(name).upsert(pa.table([["c", "c"], [7, 7], [1, 9]], schema))
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT 7L AS ord, explode(array(2, 8)) AS nr) s ON t.ord = s.ord AND t.nr = s.nr"
        " WHEN MATCHED THEN UPDATE SET v = 'd' WHEN NOT MATCHED THEN INSERT (v, ord, nr) VALUES ('d', s.ord, s.nr)"
    )
    expected = [["c", 1], ["d", 2], ["b", 3], ["b", 4], ["d", 8], ["c", 9]]
    assert rows(spark, f"SELECT v, nr FROM {name} WHERE ord = 7 ORDER BY nr") == expected, "all write into one bucket"
    with LakeClient(lake.server.uri) as client:
        found = client.table(name).lookup([{"ord": 7, "nr": nr} for _, nr in expected]).to_pylist()
    assert sorted([each["nr"], each["v"]] for each in found) == [[nr, v] for v, nr in expected]
    assert rows(spark, f"SELECT count(*) FROM {name}") == [[201]]


def test_changes_skip_partitions(spark: SparkSession, table: str) -> None:
    spark.sql(f"UPDATE {table} SET v = 9 WHERE id = 7")
    changes = f"SELECT id, day, hour FROM lake_changes('{table}', 2, 3)"
    assert planned(spark, changes) == [6]
    assert planned(spark, f"{changes} WHERE day = '2'") == [2]
    assert len(rows(spark, f"{changes} WHERE day = '2'")) == 4
