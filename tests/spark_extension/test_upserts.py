"""A MERGE by the whole key that sets and inserts all columns is an upsert: it reads no row to join with its source."""

import random
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark.session import SparkError, SparkSession
from tests.spark_extension.lake import Lake
from tests.spark_extension.test_keyed_conflicts import Meet, made, meet, states
from tests.spark_extension.test_keyed_select import merged, rows

__all__ = ["meet"]  # a fixture

BOTH = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
JOINED = "WHEN MATCHED AND 1 = 1 THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"

KINDS = {
    "one partition": ("", "id", "'bucket' = '2'", "t.id = s.id"),
    "copy-on-write": (" PARTITIONED BY (dt)", "id,dt", "'bucket' = '2'", "s.DT = t.dt AND t.id = s.id"),
    "merge-on-read": (
        " PARTITIONED BY (dt)",
        "dt,id",
        "'table-type' = 'merge-on-read', 'insert.duplicate-key' = 'ignore'",
        "t.id = s.id AND t.dt = s.dt AND s.id = t.id",
    ),
    "sequence": (
        " PARTITIONED BY (dt)",
        "id,dt",
        "'table-type' = 'merge-on-read', 'sequence.field' = 'n'",
        "(t.dt = s.dt) AND t.id = s.id",
    ),
    "over all partitions": (" PARTITIONED BY (dt)", "id", "'insert.duplicate-key' = 'fail'", "T.id = S.ID"),
    "families": ("", "id", "'column-families' = 'a: v; b: n'", "t.id = s.id"),
    "lookup": ("", "id", "'table-type' = 'merge-on-read', 'changelog-producer' = 'lookup'", "t.id = s.id"),
}

KEY = "id,dt"

#: What a row that is written may say, beside its key.
COLUMNS = "dt INT, v STRING, n BIGINT"


def create(spark: SparkSession, name: str, kind: str) -> None:
    partitioned, key, properties, _ = KINDS[kind]
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, {COLUMNS}) USING parquet{partitioned}"
        f" TBLPROPERTIES ('primary-key' = '{key}', {properties})"
    )


def reads(spark: SparkSession, statement: str) -> bool:
    """Whether a statement's plan reads a keyed table."""
    return re.search(r"buckets: \d", rows(spark, f"EXPLAIN {statement}")[0][0]) is not None


@pytest.mark.long
def test_equal_what_a_join_comes_to(spark: SparkSession, database: str) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for number, kind in enumerate(chance.sample(sorted(KINDS), 3)):
        names = [f"{database}.{side}{number}" for side in ("upserted", "joined")]
        for name in names:
            create(spark, name, kind)
        for version in range(1, 4):
            keys = chance.sample([(id, dt) for id in range(6) for dt in range(2)], 5)
            keys = keys if "dt" in KINDS[kind][1] else [(id, dt) for id, dt in dict(keys).items()]
            values = ", ".join(f"({id}L, {dt}, 'v{version}', {version + id}L)" for id, dt in keys)
            source = f"(SELECT * FROM VALUES {values} AS s(id, dt, v, n))"
            for name, clauses in zip(names, (BOTH, JOINED), strict=True):
                statement = f"MERGE INTO {name} t USING {source} s ON {KINDS[kind][3]} {clauses}"
                assert version > 1 or reads(spark, statement) is (clauses == JOINED), kind
                spark.sql(statement)
        found = [rows(spark, f"SELECT id, {', '.join(COLUMNS.split()[::2])} FROM {name}") for name in names]
        assert found[0] == found[1], kind
        assert rows(spark, f"SELECT * FROM {names[0]}") == merged(spark, names[0])


@pytest.fixture
def table(spark: SparkSession, database: str) -> str:
    made(spark, f"{database}.t", "'bucket' = '1', 'table-type' = 'merge-on-read'", KEY)
    spark.sql(f"INSERT INTO {database}.t VALUES (1, 'a', 1, 1), (2, 'b', 2, 1)")
    return f"{database}.t"


SOURCE = "(SELECT * FROM VALUES (2L, 'new', 9, 1), (3L, 'new', 9, 1) AS s(id, v, n, dt))"

#: What needs the table's rows, or may.
OTHERS = {
    "a part of the key": f"{{t}} t USING {SOURCE} s ON t.id = s.id {BOTH}",
    "more than the key": f"{{t}} t USING {SOURCE} s ON t.id = s.id AND t.dt = s.dt AND t.n = s.n {BOTH}",
    "a condition": f"{{t}} t USING {SOURCE} s ON t.id = s.id AND t.dt = s.dt AND s.n > 1 {BOTH}",
    "or": f"{{t}} t USING {SOURCE} s ON t.id = s.id OR t.dt = s.dt {BOTH}",
    "another name": f"{{t}} t USING {SOURCE} s ON t.id = s.n AND t.dt = s.dt {BOTH}",
    "the same names": f"{{t}} t USING {SOURCE} s ON t.id = t.id AND t.dt = s.dt {BOTH}",
    "no names": f"{{t}} t USING (SELECT id AS i, v, n, dt FROM {SOURCE}) s ON id = i AND t.dt = s.dt "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id, dt, n) VALUES (i, s.dt, s.n)",
    "other types": f"{{t}} t USING (SELECT CAST(id AS INT) AS id, v, n, dt FROM {SOURCE}) s "
    f"ON t.id = s.id AND t.dt = s.dt {BOTH}",
    "clauses with conditions": f"{{t}} t USING {SOURCE} s ON t.id = s.id AND t.dt = s.dt {JOINED}",
    "some columns": f"{{t}} t USING {SOURCE} s ON t.id = s.id AND t.dt = s.dt "
    "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *",
    "updates alone": f"{{t}} t USING {SOURCE} s ON t.id = s.id AND t.dt = s.dt WHEN MATCHED THEN UPDATE SET *",
    "more clauses": f"{{t}} t USING {SOURCE} s ON t.id = s.id AND t.dt = s.dt {BOTH} "
    "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = -1",
}


@pytest.mark.parametrize("numbers", [OTHERS], ids=["all"])
def test_others_read_the_table(spark: SparkSession, table: str, numbers: dict[str, str]) -> None:
    for kind, text in numbers.items():
        assert reads(spark, f"MERGE INTO {text.format(t=table)}"), kind


@pytest.mark.parametrize("equal", [True, False])
def test_a_key_that_is_twice_in_the_source_is_refused(spark: SparkSession, table: str, equal: bool) -> None:
    other = "'x'" if equal else "'y'"
    for id in (2, 7):
        source = f"(SELECT * FROM VALUES ({id}L, 'x', 9, 1), ({id}L, {other}, 9, 1) AS s(id, v, n, dt))"
        with pytest.raises(SparkError, match=f"multiple source rows have the key id={id}"):
            spark.sql(f"MERGE INTO {table} t USING {source} s ON t.id = s.id AND t.dt = s.dt {BOTH}")
    assert rows(spark, f"SELECT * FROM {table}") == [[1, "a", 1, 1], [2, "b", 2, 1]]


def test_older_rows_are_refused(spark: SparkSession, database: str) -> None:
    table = f"{database}.s"
    create(spark, table, "sequence")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 5, 1), (2, 'b', 5, 1)")
    spark.sql(f"DELETE FROM {table} WHERE id = 2")
    for id, why in ((1, "has a later n"), (2, "was deleted with a later n")):
        source = f"(SELECT {id}L AS id, 1 AS dt, 'older' AS v, 4L AS n)"
        with pytest.raises(SparkError, match=why):
            spark.sql(f"MERGE INTO {table} t USING {source} s ON t.id = s.id AND t.dt = s.dt {BOTH}")
    assert rows(spark, f"SELECT id, v FROM {table}") == [[1, "a"]]


def merging(table: str, id: int, number: int = 1, source: str = "VALUES ('meet')") -> str:
    source = f"(SELECT {id}L AS id, meet(v) AS v, {number} AS n, 1 AS dt FROM {source} AS s(v))"
    return f"MERGE INTO {table} t USING {source} s ON t.id = s.id AND t.dt = s.dt {BOTH}"


@pytest.mark.parametrize("properties", ["", "'table-type' = 'merge-on-read'"])
def test_rows_are_merged_again(spark: SparkSession, database: str, lake: Lake, meet: Meet, properties: str) -> None:
    table = f"{database}.t"
    made(spark, table, f"'bucket' = '1'{', ' if properties else ''}{properties}", KEY)
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1, 1)")
    meet(merging(table, 1), lambda: lake.upsert(table, id=2, v="other", n=2, dt=1))
    assert rows(spark, f"SELECT id, v FROM {table}") == [[1, "meet"], [2, "other"]]
    assert states(spark, table) == [["completed", 3]]


def test_a_row_that_is_older_by_then_is_refused(spark: SparkSession, database: str, lake: Lake, meet: Meet) -> None:
    """Nobody's later row hides one that a MERGE has acknowledged."""
    table = f"{database}.t"
    made(spark, table, "'bucket' = '1', 'table-type' = 'merge-on-read', 'sequence.field' = 'n'", KEY)
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1, 1)")
    with pytest.raises(SparkError, match="has a later n"):
        meet(merging(table, 1, 2), lambda: lake.upsert(table, id=1, v="other", n=3, dt=1))
    assert rows(spark, f"SELECT id, v FROM {table}") == [[1, "other"]]


def test_a_source_that_reads_the_table_conflicts(spark: SparkSession, table: str, lake: Lake, meet: Meet) -> None:
    source = f"(SELECT concat('meet', substr(v, 2)) FROM {table} WHERE id = 1)"
    statement = merging(table, 1, source=source)
    with pytest.raises(SparkError, match="run the statement again"):
        meet(statement, lambda: lake.upsert(table, id=1, v="other", n=2, dt=1))
    assert rows(spark, f"SELECT id, v FROM {table}") == [[1, "other"], [2, "b"]]


def test_other_tables_and_names(spark: SparkSession, database: str, table: str) -> None:
    """By a view, a CTE, without aliases, and where the target has no key."""
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW news AS SELECT * FROM {SOURCE}")
    statement = f"MERGE INTO {table} USING news ON t.id = news.id AND t.dt = news.dt {BOTH}"
    assert not reads(spark, statement)
    spark.sql(statement)
    expected: list[list[Any]] = [[1, "a", 1, 1], [2, "new", 9, 1], [3, "new", 9, 1]]
    assert rows(spark, f"SELECT * FROM {table}") == expected
    spark.sql(
        f"WITH news AS (SELECT 1L AS id, 'cte' AS v, 0 AS n, 1 AS dt) MERGE INTO {table} t USING news s"
        f" ON t.id = s.id AND t.dt = s.dt {BOTH}"
    )
    assert rows(spark, f"SELECT id, v FROM {table}") == [[1, "cte"], [2, "new"], [3, "new"]]
    spark.sql(f"CREATE TABLE {database}.plain (id BIGINT, v STRING, n INT, dt INT) USING parquet")
    with pytest.raises(SparkError, match=r"(?i)not support|MERGE"):
        spark.sql(f"MERGE INTO {database}.plain t USING news s ON t.id = s.id AND t.dt = s.dt {BOTH}")


@pytest.fixture
def other(spark: SparkSession) -> Iterator[str]:
    """Another catalog of the session, Derby's."""
    name = f"other{time.monotonic_ns()}"
    settings = {
        "": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        ".url": f"jdbc:derby:memory:{name};create=true",
        ".driver": "org.apache.derby.jdbc.EmbeddedDriver",
    }
    for setting, value in settings.items():
        spark.sql(f"SET spark.sql.catalog.{name}{setting} = `{value}`")
    yield name
    spark.sql("USE spark_catalog.default")


def test_tables_of_other_catalogs_are_theirs(spark: SparkSession, table: str, other: str) -> None:
    """A name is looked up where Spark does it, though our catalog has such a table, too."""
    database, name = table.split(".")
    spark.sql(f"CREATE NAMESPACE {other}.{database}")
    spark.sql(f"CREATE TABLE {other}.{table} (id BIGINT, v STRING, n INT, dt INT)")
    spark.sql(f"USE {other}.{database}")
    for target in (table, name):
        with pytest.raises(SparkError, match=r"(?i)does not support|MERGE"):
            spark.sql(f"MERGE INTO {target} t USING {SOURCE} s ON t.id = s.id AND t.dt = s.dt {BOTH}")
    spark.sql(f"INSERT INTO {name} VALUES (7, 'theirs', 7, 7)")
    assert rows(spark, f"SELECT * FROM {name}") == [[7, "theirs", 7, 7]]
    spark.sql("USE spark_catalog.default")
    assert rows(spark, f"SELECT id, v FROM {table}") == [[1, "a"], [2, "b"]]


def test_names_of_temporary_views_are_theirs(spark: SparkSession, table: str) -> None:
    database, name = table.split(".")
    spark.sql(f"USE {database}")
    try:
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT 1L AS id, 'v' AS v, 1 AS n, 1 AS dt")
        with pytest.raises(SparkError, match=r"(?i)view|MERGE|not support"):
            spark.sql(f"MERGE INTO {name} t USING {SOURCE} s ON t.id = s.id AND t.dt = s.dt {BOTH}")
        spark.sql(f"DROP VIEW {name}")
    finally:
        spark.sql("USE default")
    assert rows(spark, f"SELECT id, v FROM {table}") == [[1, "a"], [2, "b"]]
