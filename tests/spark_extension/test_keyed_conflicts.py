"""Statements of plain SQL that meet another writer's commit: rows that were given are merged again."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake.tables.lake import LakeClient
from tests.spark.session import ConfiguredSession, SparkError, SparkSession
from tests.spark_extension.lake import Lake
from tests.spark_extension.relay import Relay
from tests.spark_extension.test_keyed_select import merged, rows
from tests.support.waiting import wait_until

#: `meet(v)` is `v`. The first row 'meet' waits in its task: by then the instant of an INSERT has begun.
MEETING = """
import sys
from pyspark.sql import functions as sf
spark.sparkContext.pythonExec = sys.executable

def meet(v):
    import os, time
    if v == 'meet' and not os.path.exists({directory!r} + '/met'):
        open({directory!r} + '/met', 'w').close()
        while not os.path.exists({directory!r} + '/go'):
            time.sleep(0.02)
    return v

spark.udf.register("meet", sf.udf(meet, "string"))
spark.sql({statement!r})
result = None
"""

Meet = Callable[[str, Callable[[], Any]], None]


@pytest.fixture
def meet(spark: SparkSession, tmp_path: Path) -> Meet:
    """Runs a statement, and a function once a row of it is `meet('meet')`."""

    def run(statement: str, change: Callable[[], Any]) -> None:
        directory = tmp_path / str(time.monotonic_ns())
        directory.mkdir()

        def other() -> None:
            while not (directory / "met").exists():
                time.sleep(0.02)
            try:
                change()
            finally:
                (directory / "go").touch()

        beside = threading.Thread(target=other)
        beside.start()
        try:
            spark.python(MEETING.format(directory=str(directory), statement=statement))
        finally:
            (directory / "met").touch()
            beside.join()

    return run


def made(spark: SparkSession, table: str, properties: str, key: str = "id") -> None:
    partitions = "PARTITIONED BY (dt)" if "dt" in properties else ""
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, v STRING, n INT, dt INT) USING parquet {partitions} "
        f"TBLPROPERTIES ('primary-key' = '{key}', {properties})"
    )


def directories(lake: Lake, table: str) -> set[str]:
    """Where the files of instants are, relative to the table's directory."""
    database, name = table.split(".")
    root = lake.directory(database, name)
    return {str(each.parent.relative_to(root)) for each in root.rglob("*.parquet")}


def states(spark: SparkSession, table: str) -> list[list[Any]]:
    return rows(spark, f"SELECT state, count(*) FROM {table}.instants GROUP BY state")


#: Properties of tables. A key over all partitions is unique across them.
KINDS = {
    "copy-on-write": "'bucket' = '2'",
    "merge-on-read": "'bucket' = '2', 'table-type' = 'merge-on-read'",
    "lookup": "'changelog-producer' = 'lookup', 'table-type' = 'merge-on-read'",
    "families": "'column-families' = 'one:n'",
    "over all partitions": "'dt' = 'partitions'",
}


def _some(*kinds: str) -> list[Any]:
    """Of merge-on-read tables the ordinary run has enough elsewhere."""
    return [pytest.param(each, marks=pytest.mark.long) if each == "merge-on-read" else each for each in kinds]


SOME_KINDS = _some("copy-on-write", "merge-on-read", "over all partitions")


@pytest.mark.long
@pytest.mark.parametrize("kind", _some(*KINDS))
def test_given_rows_are_merged_again(spark: SparkSession, database: str, lake: Lake, meet: Meet, kind: str) -> None:
    table = f"{database}.t"
    made(spark, table, KINDS[kind])

    def other() -> None:
        with LakeClient(lake.server.uri) as client:
            given = {"id": [1, 2, 4], "v": ["other"] * 3, "n": [9] * 3, "dt": [1, 2, 1]}
            client.table(table).upsert(pa.table(given))

    expected = {1: ["other", 9, 1], 2: ["other", 9, 2], 4: ["other", 9, 1]}
    for key in (1, 3):  # into buckets without rows, and then with some
        source = f"SELECT id + {key}, meet(v), 5, 3 FROM VALUES (0, 'meet'), (1, 'x') AS s(id, v)"
        meet(f"INSERT INTO {table} {source}", other)
        expected |= {1: ["other", 9, 1], 2: ["other", 9, 2], 4: ["other", 9, 1]}
        expected |= {key: ["meet", 5, 3], key + 1: ["x", 5, 3]}
        found = rows(spark, f"SELECT * FROM {table}")
        assert {row[0]: row[1:] for row in found} == expected
        assert found == merged(spark, table)
    assert states(spark, table) == [["completed", 4]]
    wait_until(lambda: not any("kept" in each for each in directories(lake, table)))  # the metastore deletes them
    changes = f"""
from lake.spark import read
found = read(spark, {table!r}, incremental=(3, 4), changes=True).collect()
result = sorted([row.id, row._change_type] for row in found)
"""
    updated = (
        [[4, "delete"], [4, "insert"]] if "dt" in KINDS[kind] else [[4, "update_postimage"], [4, "update_preimage"]]
    )
    assert spark.python(changes) == [[3, "insert"], *updated]


@pytest.mark.long
def test_statements_that_read_the_table_are_refused(spark: SparkSession, database: str, lake: Lake, meet: Meet) -> None:
    table = f"{database}.t"
    made(spark, table, "'bucket' = '1'")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'meet', 1, 1), (2, 'b', 2, 1)")
    for number, statement in enumerate(
        (
            f"UPDATE {table} SET v = upper(meet(v)) WHERE id < 3",
            f"INSERT INTO {table} SELECT id + 10, meet(v), n, dt FROM {table} WHERE id < 3",
        )
    ):
        with pytest.raises(SparkError, match="run the statement again"):
            meet(statement, lambda number=number: lake.upsert(table, id=3, v="other", n=number, dt=1))
        assert rows(spark, f"SELECT * FROM {table}") == [[1, "meet", 1, 1], [2, "b", 2, 1], [3, "other", number, 1]]
    assert states(spark, table) == [["completed", 3]]


@pytest.mark.parametrize("rows_before", [0, 1])
def test_a_merge_that_only_inserts_has_read_the_table(spark: SparkSession, database: str, rows_before: int) -> None:
    """A row that another writer has inserted meanwhile would match, so it stays. Spark 4.3 has a plan of its own."""
    table = f"{database}.t"
    made(spark, table, "'bucket' = '1'")
    if rows_before:
        spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1, 1)")
    source = "(SELECT * FROM VALUES (4L, 'new', 1, 1), (5L, 'new', 1, 1) AS s(id, v, n, dt))"
    merge = f"MERGE INTO {table} t USING {source} s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    with pytest.raises(SparkError, match="run the statement again"):
        spark.python(f"""
from lake.spark import write
parsed = spark._jsparkSession.sessionState().sqlParser().parsePlan({merge!r})
mode = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL()
execution = spark._jsparkSession.sessionState().executePlan(parsed, mode)
execution.analyzed()
write(spark.sql("SELECT 4L id, 'other' v, 9 n, 1 dt"), {table!r}, operation="upsert")
execution.commandExecuted()
""")
    assert rows(spark, f"SELECT id, v FROM {table} WHERE id > 1") == [[4, "other"]]
    spark.sql(merge)
    assert rows(spark, f"SELECT id, v FROM {table} WHERE id > 1") == [[4, "other"], [5, "new"]]


@pytest.mark.usefixtures("static")
@pytest.mark.parametrize("partition", ["", " PARTITION (dt = 1)"])
def test_overwrites_lose_to_partitions_made_meanwhile(
    spark: SparkSession, database: str, lake: Lake, meet: Meet, partition: str
) -> None:
    table = f"{database}.t"
    spark.sql(
        f"CREATE TABLE {table} (id BIGINT, v STRING, dt INT, hr INT) USING parquet PARTITIONED BY (dt, hr) "
        "TBLPROPERTIES ('primary-key' = 'id,dt,hr', 'bucket' = '1')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1, 1)")
    query = f"SELECT 5L, meet(v), {'5' if partition else '1, 5'} FROM VALUES ('meet') AS s(v)"
    with pytest.raises(SparkError, match="partition dt=1/hr=3"):
        meet(f"INSERT OVERWRITE {table}{partition} {query}", lambda: lake.upsert(table, id=3, v="other", dt=1, hr=3))
    assert rows(spark, f"SELECT * FROM {table}") == [[1, "a", 1, 1], [3, "other", 1, 3]]
    elsewhere = [[4, "other", 2, 4]] if partition else []
    meet(
        f"INSERT OVERWRITE {table}{partition} {query}",
        lambda: lake.upsert(table, id=4, v="other", dt=2, hr=4) if partition else None,
    )
    assert rows(spark, f"SELECT * FROM {table}") == [*elsewhere, [5, "meet", 1, 5]]


@pytest.mark.parametrize(
    "kind", ["copy-on-write", *(pytest.param(each, marks=pytest.mark.long) for each in ("merge-on-read", "lookup"))]
)
def test_no_row_of_concurrent_inserts_is_lost(spark: SparkSession, database: str, kind: str) -> None:
    table = f"{database}.t"
    made(spark, table, f"{KINDS[kind]}, 'merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum'")
    code = f"""
from concurrent.futures import ThreadPoolExecutor
sessions = [spark, spark.newSession()]
def insert(number):
    sessions[number % 2].sql(f"INSERT INTO {table} SELECT id, 'v', {{10 ** number}}, 1 FROM range({{number}}, 8)")
with ThreadPoolExecutor(3) as pool:
    list(pool.map(insert, range(6)))
result = None
"""
    spark.python(code)
    found = rows(spark, f"SELECT id, n FROM {table}")
    assert found == [[key, int("1" * min(key + 1, 6))] for key in range(8)]
    assert found == [[row[0], row[2]] for row in merged(spark, table)]
    assert states(spark, table) == [["completed", 6]]


@pytest.mark.long
def test_a_driver_that_dies_between_attempts(
    spark: SparkSession, database: str, lake: Lake, released_jar: Path, tmp_path: Path
) -> None:
    table = f"{database}.t"
    made(spark, table, "'bucket' = '1'")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1, 1)")
    with Relay(lake.server.host, lake.server.port) as relay:
        killed = ConfiguredSession(spark.line, lake.server.uri, str(lake.warehouse), released_jar, tmp_path / "killed")
        relay.requests["lake_begin_instant"] = 0

        def other() -> None:
            while not (tmp_path / "met").exists():
                time.sleep(0.02)
            lake.upsert(table, id=2, v="other", n=2, dt=1)
            assert relay.requests["lake_begin_instant"] == 1
            relay.hold("lake_begin_instant")
            (tmp_path / "go").touch()
            while not relay.requests["lake_begin_instant"]:
                time.sleep(0.02)
            killed.kill()

        beside = threading.Thread(target=other)
        beside.start()
        statement = f"INSERT INTO {table} SELECT 3, meet('meet'), 3, 1"
        code = MEETING.format(directory=str(tmp_path), statement=statement)
        through = f"spark = spark.newSession()\nspark.conf.set('hive.metastore.uris', {relay.uri!r})\n"
        with pytest.raises(RuntimeError, match="ended with"):
            killed.python(through + code)
        beside.join()
    assert rows(spark, f"SELECT id FROM {table}") == [[1], [2]]
    spark.sql(f"INSERT INTO {table} VALUES (3, 'c', 3, 1)")
    assert rows(spark, f"SELECT id FROM {table}") == [[1], [2], [3]]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", SOME_KINDS)
def test_keys_that_exist(spark: SparkSession, database: str, lake: Lake, meet: Meet, kind: str) -> None:
    table = f"{database}.t"
    made(spark, table, f"{KINDS[kind]}, 'insert.duplicate-key' = 'ignore'")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1, 1), (2, 'b', 2, 1)")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'A', 9, 2), (3, 'c', 3, 2)")
    spark.sql(f"UPDATE {table} SET v = 'B' WHERE id = 2")
    spark.sql(f"DELETE FROM {table} WHERE id = 3")
    spark.sql(f"INSERT INTO {table} VALUES (2, 'no', 9, 2), (3, 'again', 3, 1)")
    expected = [[1, "a", 1, 1], [2, "B", 2, 1], [3, "again", 3, 1]]
    assert rows(spark, f"SELECT * FROM {table}") == expected
    source = "meet(v), 5, 1 FROM VALUES (4, 'meet'), (5, 'x') AS s(id, v)"
    meet(f"INSERT INTO {table} SELECT id, {source}", lambda: lake.upsert(table, id=4, v="other", n=4, dt=1))
    expected += [[4, "other", 4, 1], [5, "x", 5, 1]]
    assert rows(spark, f"SELECT * FROM {table}") == expected
    spark.sql(f"INSERT INTO {table} SELECT id, 'no', 0, 7 FROM {table}")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('insert.duplicate-key' = 'fail')")
    for values, message in [
        ("(6, 'f', 6, 1), (1, 'no', 9, 2)", "the key id=1 exists, and insert.duplicate-key=fail"),
        ("(6, 'f', 6, 1), (6, 'f', 6, 1)", "the key id=6 is there twice"),
    ]:
        with pytest.raises(SparkError, match=message):
            spark.sql(f"INSERT INTO {table} VALUES {values}")
    merge = f"MERGE INTO {table} t USING (SELECT 1L AS id, 'none' AS v, 0 AS n, 1 AS dt) s ON t.v = s.v"
    with pytest.raises(SparkError, match="the key id=1 exists"):
        spark.sql(f"{merge} WHEN NOT MATCHED THEN INSERT *")
    with pytest.raises(SparkError, match="the key id=7 exists"):
        meet(f"INSERT INTO {table} SELECT id + 3, {source}", lambda: lake.upsert(table, id=7, v="other", n=7, dt=1))
    spark.sql(f"INSERT INTO {table} VALUES (6, 'f', 6, 1)")
    expected += [[6, "f", 6, 1], [7, "other", 7, 1]]
    assert rows(spark, f"SELECT * FROM {table}") == merged(spark, table) == expected
    assert {state for state, _ in states(spark, table)} == {"completed"}
    with pytest.raises(SparkError, match="expected replace, ignore, fail"):
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('insert.duplicate-key' = 'no')")


@pytest.mark.long
@pytest.mark.parametrize("kind", SOME_KINDS)
def test_changes_that_the_sequence_would_not_let_win(spark: SparkSession, database: str, kind: str) -> None:
    table = f"{database}.t"
    made(spark, table, f"{KINDS[kind]}, 'sequence.field' = 'n'")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 5, 1), (2, 'b', 5, 1), (3, 'c', 9, 1)")
    spark.sql(f"DELETE FROM {table} WHERE id = 3")

    def merge(values: str) -> str:
        return (
            f"MERGE INTO {table} t USING (SELECT * FROM VALUES {values} AS s(id, v, n, dt)) s ON t.v = s.v "
            "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE"
        )

    for statement, message in [
        (f"UPDATE {table} SET n = n - 1 WHERE id = 1", "the key id=1 has a later n"),
        (f"UPDATE {table} SET id = 2, n = 4 WHERE id = 1", "the key id=2 has a later n"),
        (merge("(1, 'x', 3, 1)"), "the key id=1 has a later n"),
        (merge("(3, 'x', 3, 1)"), "the key id=3 was deleted with a later n"),
    ]:
        with pytest.raises(SparkError, match=message):
            spark.sql(statement)
    assert rows(spark, f"SELECT * FROM {table}") == [[1, "a", 5, 1], [2, "b", 5, 1]]
    spark.sql(merge("(1, 'x', 6, 1), (2, 'b', 5, 1)"))
    spark.sql(f"INSERT INTO {table} VALUES (2, 'older', 4, 1)")
    spark.sql(f"UPDATE {table} SET v = upper(v)")
    assert rows(spark, f"SELECT * FROM {table}") == merged(spark, table) == [[1, "X", 6, 1], [2, "B", 5, 1]]
