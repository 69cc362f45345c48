"""Keyed tables written by plain SQL: each statement is one instant."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest

from lake.tables.lake import LakeClient
from tests.spark.session import SparkError, SparkSession
from tests.spark_extension.lake import Lake
from tests.spark_extension.test_keyed_select import merged, rows
from tests.support.long_runs import share_of

TYPES = ["merge-on-read", "copy-on-write"]

#: What the writer of buckets does is compared for both in test_bucket_writer.py.
MOSTLY_ONE = [TYPES[0], pytest.param(TYPES[1], marks=pytest.mark.long)]

START = [[1, "a", 1], [2, "b", 2], [3, "c", 3]]


@pytest.fixture(params=MOSTLY_ONE)
def table(request: pytest.FixtureRequest, spark: SparkSession, database: str) -> str:
    """A table with the rows of START, in one instant."""
    name = f"{database}.w"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, name STRING, n INT) USING parquet "
        f"TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '3', 'table-type' = '{request.param}')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    return name


@pytest.fixture(params=MOSTLY_ONE)
def days(request: pytest.FixtureRequest, spark: SparkSession, database: str) -> str:
    """A table of two partitions."""
    name = f"{database}.d"
    spark.sql(
        f"CREATE TABLE {name} (id INT, v STRING, dt DATE, city STRING) USING parquet PARTITIONED BY (dt, city) "
        f"TBLPROPERTIES ('primary-key' = 'id,dt,city', 'bucket' = '2', 'table-type' = '{request.param}')"
    )
    spark.sql(
        f"INSERT INTO {name} VALUES (1, 'a', date'2026-01-01', 'Köln/Bonn=1'), (2, 'b', date'2026-01-01', 'x'), "
        "(1, 'c', date'2026-01-02', 'x')"
    )
    return name


def instants(spark: SparkSession, table: str) -> int:
    return len(spark.sql(f"SELECT * FROM {table}.instants"))


def both(spark: SparkSession, table: str) -> list[list[Any]]:
    """The rows by SQL, which must be those of the Arrow reader."""
    found = rows(spark, f"SELECT * FROM {table}")
    assert found == merged(spark, table)
    return found


def test_insert_updates_by_key(spark: SparkSession, table: str) -> None:
    spark.sql(f"INSERT INTO {table} VALUES (2, 'B', 20), (4, 'd', 4)")
    spark.sql(f"INSERT INTO {table} (name, id) VALUES ('e', 5)")
    assert both(spark, table) == [[1, "a", 1], [2, "B", 20], [3, "c", 3], [4, "d", 4], [5, "e", None]]
    assert rows(spark, f"SELECT * FROM {table} VERSION AS OF 1") == START
    assert instants(spark, table) == 3


def test_update_and_delete(spark: SparkSession, table: str) -> None:
    spark.sql(f"UPDATE {table} SET name = upper(name), n = NULL WHERE id >= 2")
    spark.sql(f"DELETE FROM {table} WHERE name = 'B'")
    spark.sql(f"UPDATE {table} SET id = id + 10 WHERE id = 1")
    assert both(spark, table) == [[11, "a", 1], [3, "C", None]]
    spark.sql(f"DELETE FROM {table} WHERE id IN (SELECT max(id) FROM {table})")
    assert both(spark, table) == [[3, "C", None]]
    assert instants(spark, table) == 5
    spark.sql(f"DELETE FROM {table}")
    assert both(spark, table) == []
    spark.sql(f"INSERT INTO {table} VALUES (3, 'again', 0)")
    assert both(spark, table) == [[3, "again", 0]]


def test_merge(spark: SparkSession, table: str) -> None:
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT * FROM VALUES (1, 'x', 9), (2, 'y', 9), (7, 'z', 9) AS s(id, name, n)) s "
        "ON t.id = s.id WHEN MATCHED AND s.name = 'y' THEN DELETE WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = -1"
    )
    assert both(spark, table) == [[1, "x", 9], [3, "c", -1], [7, "z", 9]]
    spark.sql(
        f"MERGE INTO {table} t USING (SELECT 1L AS id, 'no' AS name, 0 AS n UNION ALL SELECT 8L, 'new', 8) s "
        "ON t.id = s.id WHEN NOT MATCHED THEN INSERT *"
    )
    assert both(spark, table) == [[1, "x", 9], [3, "c", -1], [7, "z", 9], [8, "new", 8]]
    with pytest.raises(SparkError, match=r"(?i)multiple source|MERGE_CARDINALITY"):
        spark.sql(
            f"MERGE INTO {table} t USING (SELECT * FROM VALUES (1, 'p'), (1, 'q') AS s(id, name)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET name = s.name"
        )
    assert len(both(spark, table)) == 4
    assert instants(spark, table) == 3


def test_overwrite_and_truncate(spark: SparkSession, table: str) -> None:
    spark.sql(f"INSERT OVERWRITE {table} SELECT id + 5, name, n FROM {table} WHERE id < 3")
    assert both(spark, table) == [[6, "a", 1], [7, "b", 2]]
    spark.sql(f"TRUNCATE TABLE {table}")
    assert both(spark, table) == []
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 1)")
    assert both(spark, table) == [[1, "a", 1]]
    assert rows(spark, f"SELECT count(*) FROM {table} VERSION AS OF 2") == [[2]]


def test_partitions(spark: SparkSession, days: str) -> None:
    shown = f"SELECT id, v, string(dt), city FROM {days}"
    assert rows(spark, shown) == [
        [1, "a", "2026-01-01", "Köln/Bonn=1"],
        [1, "c", "2026-01-02", "x"],
        [2, "b", "2026-01-01", "x"],
    ]
    assert len(both(spark, days)) == 3
    spark.sql(f"INSERT OVERWRITE {days} PARTITION (dt = date'2026-01-02', city = 'x') SELECT 5, 'e'")
    spark.sql(f"INSERT OVERWRITE {days} PARTITION (dt = date'2026-01-02', city = 'x') (v, id) VALUES ('e', 5)")
    spark.sql(f"UPDATE {days} SET city = 'y' WHERE id = 2")
    nothing = "SELECT 1, 'x' WHERE rand() > 2"
    spark.sql(f"INSERT INTO {days} VALUES (7, 'g', date'2026-01-03', 'x')")
    spark.sql(f"INSERT OVERWRITE {days} PARTITION (dt = '2026-01-03', city) SELECT *, 'x' FROM ({nothing})")
    assert rows(spark, f"SELECT v FROM {days} WHERE id = 7") == [["g"]]
    named = f"INSERT OVERWRITE spark_catalog.{days} PARTITION (dt = '2026-01-03', city = 'x')"
    spark.sql(f"WITH q AS ({nothing}) {named} SELECT * FROM q")
    assert rows(spark, shown) == [
        [1, "a", "2026-01-01", "Köln/Bonn=1"],
        [2, "b", "2026-01-01", "y"],
        [5, "e", "2026-01-02", "x"],
    ]
    spark.sql("SET spark.sql.sources.partitionOverwriteMode=dynamic")
    try:
        spark.sql(f"INSERT OVERWRITE {days} VALUES (9, 'z', date'2026-01-01', 'y')")
    finally:
        spark.sql("RESET spark.sql.sources.partitionOverwriteMode")
    assert rows(spark, shown) == [
        [1, "a", "2026-01-01", "Köln/Bonn=1"],
        [5, "e", "2026-01-02", "x"],
        [9, "z", "2026-01-01", "y"],
    ]
    spark.sql(f"DELETE FROM {days} WHERE dt = date'2026-01-01'")
    assert rows(spark, shown) == [[5, "e", "2026-01-02", "x"]]
    assert len(both(spark, days)) == 1
    with pytest.raises(SparkError, match=r"partitions the table|belongs to the key"):
        spark.sql(f"INSERT INTO {days} VALUES (9, 'z', date'2026-01-01', '')")


@pytest.mark.long
def test_rows_of_a_condition_are_replaced(spark: SparkSession, table: str, days: str) -> None:
    spark.sql(f"INSERT INTO {table} REPLACE WHERE n >= 2 VALUES (3, 'C', 4), (4, 'd', 3)")
    assert both(spark, table) == [[1, "a", 1], [3, "C", 4], [4, "d", 3]]
    spark.sql(
        f"INSERT INTO {table} REPLACE WHERE name IN ('a', 'd') SELECT id, upper(name), n FROM {table} WHERE false"
    )
    assert both(spark, table) == [[3, "C", 4]]
    code = "rows = spark.sql(\"SELECT 'e' AS name, 5L AS id, 9 AS n\")\nfrom pyspark.sql import functions as sf\n"
    spark.python(f"{code}rows.writeTo({table!r}).overwrite(sf.col('id') > 4)\nresult = None")
    assert both(spark, table) == [[3, "C", 4], [5, "e", 9]]
    assert instants(spark, table) == 4
    for statement, message in [
        (f"INSERT INTO {table} REPLACE WHERE n = 9 VALUES (6, 'f', 8)", "outside of what is replaced"),
        (f"INSERT INTO {table} REPLACE WHERE n = 9 VALUES (6, 'f', NULL)", "outside of what is replaced"),
        (f"INSERT INTO {table} REPLACE WHERE n = 9 VALUES (6, 'f', 9), (6, 'g', 9)", "nothing orders them"),
    ]:
        with pytest.raises(SparkError, match=message):
            spark.sql(statement)
    assert instants(spark, table) == 4
    shown = f"SELECT id, v, string(dt), city FROM {days}"
    spark.sql(f"INSERT INTO {days} REPLACE WHERE dt >= date'2026-01-02' VALUES (7, 'g', date'2026-01-03', 'x')")
    spark.sql(f"INSERT INTO {days} REPLACE WHERE city = 'x' AND id < 5 SELECT 3, 'n', date'2026-01-01', 'x'")
    assert rows(spark, shown) == [
        [1, "a", "2026-01-01", "Köln/Bonn=1"],
        [3, "n", "2026-01-01", "x"],
        [7, "g", "2026-01-03", "x"],
    ]
    assert len(both(spark, days)) == 3


def test_dataframes(spark: SparkSession, table: str) -> None:
    code = f"""
rows = spark.createDataFrame([("x", 1, 9), ("y", 8, 9)], "name string, id bigint, n int")
rows.writeTo({table!r}).append()
rows.select("id", "name", "n").write.insertInto({table!r})
rows.write.mode("append").saveAsTable({table!r})
result = None
"""
    spark.python(code)
    assert both(spark, table) == [[1, "x", 9], [2, "b", 2], [3, "c", 3], [8, "y", 9]]
    assert instants(spark, table) == 4
    spark.python(
        f"from pyspark.sql import functions as sf\n"
        f"rows = spark.createDataFrame([(1, 'one', 1)], 'id bigint, name string, n int')\n"
        f"rows.writeTo({table!r}).overwrite(sf.lit(True))\nresult = None"
    )
    assert both(spark, table) == [[1, "one", 1]]


def test_tables_are_made_with_rows(spark: SparkSession, database: str) -> None:
    keyed = "TBLPROPERTIES ('primary-key' = 'id', 'note' = 'it\\'s \"so\"')"
    spark.sql(f"CREATE TABLE {database}.made USING parquet COMMENT 'c\\'s' {keyed} AS SELECT 1 AS id, 'a' AS v")
    assert both(spark, f"{database}.made") == [[1, "a"]]
    assert spark.properties(f"{database}.made")["note"] == 'it\'s "so"'
    parted = f"CREATE TABLE {database}.parted USING parquet PARTITIONED BY (v) TBLPROPERTIES ('primary-key' = 'id,v')"
    spark.sql(f"{parted} AS SELECT * FROM {database}.made")
    assert both(spark, f"{database}.parted") == [[1, "a"]]
    first = parted.replace("parted USING", "first USING")
    spark.sql(f"{first} AS SELECT 'p' AS v, 'i' AS id, 'w' AS w")
    assert rows(spark, f"SELECT id, w, v FROM {database}.first") == [["i", "w", "p"]]
    spark.sql(f"CREATE TABLE IF NOT EXISTS {database}.made USING parquet {keyed} AS SELECT 2 AS id, 'b' AS v")
    with pytest.raises(SparkError, match=r"(?i)already exists"):
        spark.sql(f"CREATE TABLE {database}.made USING parquet {keyed} AS SELECT 2 AS id, 'b' AS v")
    assert both(spark, f"{database}.made") == [[1, "a"]]
    with pytest.raises(SparkError):
        spark.sql(f"CREATE TABLE {database}.failed USING parquet {keyed} AS SELECT raise_error('no') AS id, 'b' AS v")
    assert [row[1] for row in spark.sql(f"SHOW TABLES IN {database} LIKE 'failed'")] == []
    spark.python(
        f"spark.createDataFrame([(3, 'x')], 'id int, v string').writeTo('{database}.by_frame').using('parquet')"
        ".tableProperty('primary-key', 'id').create()\nresult = None"
    )
    assert both(spark, f"{database}.by_frame") == [[3, "x"]]


def test_a_statement_that_fails_leaves_nothing(spark: SparkSession, table: str) -> None:
    decorated = table.replace(".w", ".`w@includeuncommit`")
    for statement, message in [
        (f"INSERT INTO {table} SELECT id, raise_error('no'), 1 FROM range(9)", "no"),
        (f"INSERT INTO {table} VALUES (NULL, 'x', 1)", "(?i)null"),
        (f"INSERT INTO {table} VALUES (1, 'x', 1), (1, 'y', 1)", "nothing orders them"),
        (f"UPDATE {table} SET id = 1", "nothing orders them"),
        (f"INSERT INTO {table} VALUES (1, 'x', 99999999999)", "(?i)overflow|out of range"),
        (f"LOAD DATA LOCAL INPATH '/nowhere' INTO TABLE {table}", "INSERT them"),
        (f"INSERT INTO {decorated} VALUES (1, 'x', 1)", "can only be read"),
        (f"TRUNCATE TABLE {decorated}", "can only be read"),
        (f"UPDATE {decorated} SET n = 0", "can only be read"),
    ]:
        with pytest.raises(SparkError, match=message):
            spark.sql(statement)
    assert both(spark, table) == START
    assert instants(spark, table) == 1


def test_a_query_that_fails_in_a_stage_of_its_own_leaves_nothing(spark: SparkSession, table: str) -> None:
    spark.sql("SET spark.sql.adaptive.enabled=true")
    try:
        with pytest.raises(SparkError, match="no"):
            spark.sql(f"INSERT INTO {table} SELECT id, raise_error('no'), 1 FROM range(9)")
    finally:
        spark.sql("SET spark.sql.adaptive.enabled=false")
    assert instants(spark, table) == 1


def test_keys_over_all_partitions(spark: SparkSession, database: str) -> None:
    table = f"{database}.moving"
    spark.sql(
        f"CREATE TABLE {table} (id INT, v STRING, dt VARCHAR(2)) USING parquet PARTITIONED BY (dt) "
        "TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '2', 'table-type' = 'merge-on-read')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 'a', 'y'), (2, 'b', 'y')")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'A', 'x')")
    spark.sql(f"UPDATE {table} SET dt = 'z' WHERE id = 2")
    assert both(spark, table) == [[1, "A", "x"], [2, "b", "z"]]
    overwrite = f"from pyspark.sql import functions as sf\nspark.table({table!r}).writeTo({table!r})"
    for statement in ("PARTITION (dt = 'x') SELECT 2, 'n'", f"TABLE {table}"):
        with pytest.raises(SparkError, match="may be in any partition"):
            spark.sql(f"INSERT OVERWRITE {table} {statement}")
    with pytest.raises(SparkError, match="may be in any partition"):
        spark.python(f"{overwrite}.overwrite(sf.col('dt') == 'x')")
    with pytest.raises(SparkError, match="length"):
        spark.sql(f"INSERT INTO {table} VALUES (3, 'c', 'long')")
    spark.python(f"{overwrite}.overwrite(sf.lit(True))\nresult = None")
    assert both(spark, table) == [[1, "A", "x"], [2, "b", "z"]]


def test_explain_begins_no_instant(spark: SparkSession, table: str) -> None:
    for statement in (f"INSERT INTO {table} VALUES (7, 'g', 7)", f"DELETE FROM {table} WHERE id = 1"):
        plan = spark.sql(f"EXPLAIN {statement}")[0][0]
        assert "WriteDelta" in plan or "AppendData" in plan
    assert instants(spark, table) == 1


@pytest.mark.long
def test_what_a_merge_engine_does_not_do_is_refused(spark: SparkSession, database: str) -> None:
    properties = {
        "sums": "'merge-engine' = 'aggregation', 'fields.n.aggregate-function' = 'sum', 'ignore-delete' = 'true'",
        "parts": "'merge-engine' = 'partial-update', 'partial-update.remove-record-on-delete' = 'true'",
        "given": "'changelog-producer' = 'input'",
    }
    for name, given in properties.items():
        spark.sql(
            f"CREATE TABLE {database}.{name} (id INT, n INT, v STRING) USING parquet "
            f"TBLPROPERTIES ('primary-key' = 'id', {given})"
        )
    for table in ("sums", "parts"):
        spark.sql(f"INSERT INTO {database}.{table} VALUES (1, 1, 'a')")
        spark.sql(f"INSERT INTO {database}.{table} VALUES (1, 4, NULL)")
        with pytest.raises(SparkError, match="can't be updated"):
            spark.sql(f"UPDATE {database}.{table} SET n = 0")
        with pytest.raises(SparkError, match="only whole partitions can be replaced"):
            spark.sql(f"INSERT INTO {database}.{table} REPLACE WHERE n = 1 VALUES (1, 1, 'a')")
        with pytest.raises(SparkError, match=r"can't be (updated|deleted), by"):
            spark.sql(
                f"MERGE INTO {database}.{table} t USING (SELECT 1 AS id) s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET n = 0"
            )
    assert both(spark, f"{database}.sums") == [[1, 5, "a"]]
    assert both(spark, f"{database}.parts") == [[1, 4, "a"]]
    for statement in (
        "DELETE FROM {0} WHERE id = 1",
        "TRUNCATE TABLE {0}",
        "MERGE INTO {0} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ):
        with pytest.raises(SparkError, match=r"takes no deletes|can't be deleted, by"):
            spark.sql(statement.format(f"{database}.sums"))
    spark.sql(f"DELETE FROM {database}.parts WHERE id = 1")
    assert both(spark, f"{database}.parts") == []
    for statement in ("INSERT INTO {0} VALUES (1, 1, 'a')", "TRUNCATE TABLE {0}", "UPDATE {0} SET n = 1"):
        with pytest.raises(SparkError, match="pre-images"):
            spark.sql(statement.format(f"{database}.given"))


@pytest.mark.long
def test_what_was_read_is_a_condition(spark: SparkSession, table: str) -> None:
    """A statement that read the table fails if another writer has changed the rows since, and can be repeated."""
    code = f"""
from lake.spark import write
read = spark.table({table!r}).where("id = 1").selectExpr("id", "concat(name, '!') AS name", "n")
read.collect()
write(spark.createDataFrame([(1, "other", 0)], "id bigint, name string, n int"), {table!r}, operation="upsert")
read.createOrReplaceTempView("read_before")
{{0}}
result = None
"""
    with pytest.raises(SparkError, match="run the statement again"):
        spark.python(code.format(f"read.writeTo({table!r}).append()"))
    assert both(spark, table)[0] == [1, "other", 0]
    merge = f"MERGE INTO {table} t USING read_before s ON t.id = s.id WHEN MATCHED THEN UPDATE SET name = s.name"
    for statement in (f"INSERT INTO {table} TABLE read_before", merge):
        if spark.line == "3.5":
            with pytest.raises(SparkError, match="run the statement again"):
                spark.python(code.format(f"spark.sql({statement!r})"))
            assert both(spark, table)[0] == [1, "other", 0]
        else:  # reads the tables of temporary views again
            spark.python(code.format(f"spark.sql({statement!r})"))
            assert both(spark, table)[0] == [1, "other!", 0]
        spark.sql("DROP VIEW read_before")


def test_lengths(spark: SparkSession, database: str) -> None:
    table = f"{database}.lengths"
    spark.sql(
        f"CREATE TABLE {table} (k VARCHAR(3), v VARCHAR(2), c CHAR(3), s STRUCT<x: VARCHAR(2)>) USING parquet "
        "TBLPROPERTIES ('primary-key' = 'k')"
    )
    spark.sql(f"INSERT INTO {table} VALUES ('abc', 'x  ', 'y', named_struct('x', 'ab'))")
    assert rows(spark, f"SELECT k, v, length(c), s.x FROM {table}") == [["abc", "x ", 3, "ab"]]
    for values in (
        "('abcd', 'x', 'y', NULL)",
        "('abc ', 'x', 'y', NULL)",
        "('a', 'xyz', 'y', NULL)",
        "('a', 'x', 'wxyz', NULL)",
        "('a', 'x', 'y', named_struct('x', 'abc'))",
    ):
        with pytest.raises(SparkError, match=r"(?i)length|longer"):
            spark.sql(f"INSERT INTO {table} VALUES {values}")


def test_defaults(spark: SparkSession, database: str) -> None:
    spark.sql(
        f"CREATE TABLE {database}.f (id INT, v STRING DEFAULT 'none') USING parquet "
        "TBLPROPERTIES ('primary-key' = 'id')"
    )
    spark.sql(f"INSERT INTO {database}.f (id) VALUES (1)")
    spark.sql(f"INSERT INTO {database}.f VALUES (2, DEFAULT)")
    assert both(spark, f"{database}.f") == [[1, "none"], [2, "none"]]


def test_columns_that_were_renamed_or_added_again(spark: SparkSession, table: str, lake: Lake) -> None:
    database, _, name = table.partition(".")
    lake.alter_columns(database, name, "id:bigint", "label:string", "n:int")
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (name STRING)")
    spark.sql(f"UPDATE {table} SET n = n + 1, name = 'new' WHERE id = 1")
    spark.sql(f"INSERT INTO {table} VALUES (2, 'B', 20, NULL)")
    assert both(spark, table) == [[1, "a", 2, "new"], [2, "B", 20, None], [3, "c", 3, None]]
    spark.sql(f"DELETE FROM {table} WHERE label = 'c'")
    assert both(spark, table) == [[1, "a", 2, "new"], [2, "B", 20, None]]


def test_event_times(spark: SparkSession, database: str) -> None:
    table = f"{database}.e"
    spark.sql(f"CREATE TABLE {table} (id INT, at TIMESTAMP) USING parquet TBLPROPERTIES ('primary-key' = 'id')")
    spark.python(
        f"rows = spark.sql(\"SELECT 1 AS id, timestamp'2026-01-01 00:00:05.5Z' AS at\")\n"
        f"rows.writeTo({table!r}).option('event-time', 'at').option('source', 'shop').append()\nresult = None"
    )
    code = f"""
from lake.spark.session_client import lake_table
table = lake_table(spark, {table!r}, None)
result = [[str(each.min_event_time), str(each.max_event_time)] for each in table.snapshot()]
"""
    assert spark.python(code) == [["2026-01-01 00:00:05.500000+00:00"] * 2]


def test_event_times_that_the_table_names(spark: SparkSession, lake: Lake, database: str) -> None:
    """For tables with a key and without one, for each way of writing that doesn't say it itself."""
    named = "'write.event-time' = 'At', 'write.source' = 'shop'"
    for name, more in (("keyed", "'primary-key' = 'id'"), ("plain", "'timeline.archived-days' = '9'")):
        table = f"{database}.{name}"
        spark.sql(f"CREATE TABLE {table} (id INT, at TIMESTAMP) USING parquet TBLPROPERTIES ({more}, {named})")
        spark.sql(f"INSERT INTO {table} VALUES (1, timestamp'2026-01-02 00:00:00Z')")
        assert watermarks(lake, table) == {"shop": datetime(2026, 1, 2, tzinfo=UTC)}
        spark.python(
            "from lake.spark import write\n"
            "rows = spark.sql(\"SELECT 2 AS id, timestamp'2026-01-03 00:00:00Z' AS at\")\n"
            f"write(rows, {table!r}, operation={'upsert' if name == 'keyed' else 'append'!r})\nresult = None"
        )
        assert watermarks(lake, table) == {"shop": datetime(2026, 1, 3, tzinfo=UTC)}
    spark.sql(f"UPDATE {database}.keyed SET at = timestamp'2026-01-04 00:00:00Z' WHERE id = 1")
    spark.sql(f"DELETE FROM {database}.keyed WHERE id = 2")
    assert watermarks(lake, f"{database}.keyed") == {"shop": datetime(2026, 1, 4, tzinfo=UTC)}
    with pytest.raises(SparkError, match="the column at is named by the table's key, partitions or properties"):
        spark.sql(f"ALTER TABLE {database}.keyed DROP COLUMN at")
    spark.sql(f"ALTER TABLE {database}.keyed SET TBLPROPERTIES ('write.event-time' = 'ids')")
    with pytest.raises(SparkError, match="has no column ids, of which to take event times"):
        spark.sql(f"INSERT INTO {database}.keyed VALUES (3, NULL)")


def watermarks(lake: Lake, table: str) -> dict[str, datetime]:
    """What each source has reported of a table."""
    with LakeClient(lake.server.uri) as client:
        found = client.table(table)
        watermark = client.call(lambda each: each.lake_get_watermark(found.reference))
        return {each.source: datetime.fromtimestamp(each.watermark / 1_000, UTC) for each in watermark.sources}


def test_procedures(spark: SparkSession, days: str) -> None:
    def call(text: str) -> dict[str, str]:
        return dict(row[0].split("=", 1) for row in spark.sql(f"CALL lake.system.{text}"))

    spark.sql(f"INSERT INTO {days} VALUES (1, 'later', date'2026-01-02', 'x')")
    (first,), (last,) = spark.sql(f"SELECT timestamp FROM {days}.instants WHERE state = 'completed' ORDER BY position")
    assert call(f"savepoint(table => '{days}', instant => '{first}', name => 'the start')") == {
        "savepoint": "the start"
    }
    assert rows(spark, f"SELECT name FROM {days}.instants WHERE action = 'savepoint'") == [["the start"]]
    at_first = rows(spark, f"SELECT * FROM {days} VERSION AS OF '{first}' ORDER BY 1")
    assert rows(spark, f"SELECT * FROM {days} VERSION AS OF 'the start' ORDER BY 1") == at_first != []
    assert call(f"rollback('{days}', '{last}')").keys() == {"instant"}
    assert rows(spark, f"SELECT v FROM {days} WHERE city = 'x' AND dt > '2026-01-01'") == [["c"]]
    partition = "dt=2026-01-02/city=x"
    assert call(f"reopen_partition(table => '{days}', partition => '{partition}')") == {"reopened": partition}
    assert len(rows(spark, f"SELECT * FROM {days}")) == 2
    assert call(f"commit_partition('{days}', '{partition}')") == {"committed": partition}
    assert len(rows(spark, f"SELECT * FROM {days}")) == 3
    assert int(call(f"clean(table => '{days}', keep_versions => 1)")["files"]) >= 0
    assert call(f"delete_savepoint('{days}', name => 'the start')") == {"deleted": "the start"}
    assert call(f"savepoint('{days}')").keys() == {"savepoint"}
    for text, message in [
        ("nothing('x')", "there are .*clean.*rollback"),
        (f"rollback('{days}')", "needs instant"),
        (f"rollback('{days}', '7')", "no completed instant"),
        (f"rollback('{days}', instants => '7')", "takes table, instant"),
        ("clean('nowhere')", "is no keyed table"),
    ]:
        with pytest.raises(SparkError, match=message):
            call(text)


@pytest.mark.parametrize("count", [1, pytest.param(share_of(100), marks=pytest.mark.long)], ids=["sample", "many"])
@pytest.mark.parametrize("kind", TYPES)
def test_histories_of_statements(spark: SparkSession, database: str, kind: str, count: int) -> None:
    """Random statements, also over two tables, and compactions; after each the rows are those of a plain model."""
    for number in range(count):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        failures = _history(spark, f"{database}.h{number}", kind, random.Random(seed))
        assert failures == []


Row = tuple[str, int | None, str | None, int]
Model = dict[tuple[str, int], Row]


def _history(spark: SparkSession, table: str, kind: str, chance: random.Random) -> Any:
    spark.sql(
        f"CREATE TABLE {table} (k STRING, a INT, b STRING, dt INT) USING parquet PARTITIONED BY (dt) "
        f"TBLPROPERTIES ('primary-key' = 'k,dt', 'bucket' = '2', 'table-type' = '{kind}')"
    )
    model: Model = {}
    steps = []
    for _ in range(8):
        statement = _statement(table, model, chance)
        steps.append((statement, sorted(model.values(), key=repr)))
    code = f"""
from lake.spark import read, plan_compaction, run_plan
result = []
for statement, expected in {steps!r}:
    if statement == "compact":
        plan = plan_compaction(spark, {table!r}).instant
        if plan is not None:
            run_plan(spark, {table!r}, plan.timestamp)
    else:
        spark.sql(statement)
    got = sorted([tuple(row) for row in spark.table({table!r}).collect()], key=repr)
    same = sorted([tuple(row) for row in read(spark, {table!r}).collect()], key=repr)
    if not expected == got == same:
        result.append([statement, expected, got, same])
        break
"""
    return spark.python(code)


def _values(given: list[Row]) -> str:
    def text(value: Any) -> str:
        return "NULL" if value is None else repr(value)

    listed = ", ".join(f"({', '.join(map(text, row))})" for row in [*given, ("", 0, "", 0)])
    return f"(SELECT * FROM VALUES {listed} AS s(k, a, b, dt) WHERE k != '')"


def _statement(table: str, model: Model, chance: random.Random) -> str:
    """A statement, or "compact"; the model becomes what it must make of the rows."""
    keys = {(f"k{chance.randrange(7)}", chance.randrange(2)) for _ in range(chance.randrange(5))}
    given: list[Row] = [
        (k, chance.choice([None, 1, 2, 3]), chance.choice([None, "x", "y"]), dt) for k, dt in sorted(keys)
    ]
    source = _values(given)
    match chance.randrange(9):
        case 0 | 1:
            model.update({(row[0], row[3]): row for row in given})
            return f"INSERT INTO {table} SELECT * FROM {source}"
        case 2:
            for key in [key for key, row in model.items() if row[1] == 1]:
                model[key] = (key[0], None, "u", key[1])
            return f"UPDATE {table} SET a = NULL, b = 'u' WHERE a = 1"
        case 3:
            moved = {(row[0] + "m", row[3]): (row[0] + "m", *row[1:]) for row in model.values() if row[2] == "y"}
            for key in [key for key, row in model.items() if row[2] == "y"]:
                del model[key]
            model.update(moved)  # type: ignore[arg-type]
            return f"UPDATE {table} SET k = concat(k, 'm') WHERE b = 'y'"
        case 4:
            place = chance.randrange(2)
            for key in [key for key, row in model.items() if key[1] == place and row[1] is None]:
                del model[key]
            return f"DELETE FROM {table} WHERE dt = {place} AND a IS NULL"
        case 5:
            for row in given:
                key = (row[0], row[3])
                if key not in model:
                    model[key] = row
                elif row[1] == 1:
                    del model[key]
                else:
                    model[key] = (key[0], row[1], model[key][2], key[1])
            return (
                f"MERGE INTO {table} t USING {source} s ON t.k = s.k AND t.dt = s.dt "
                "WHEN MATCHED AND s.a = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET a = s.a "
                "WHEN NOT MATCHED THEN INSERT *"
            )
        case 6:
            place = chance.randrange(2)
            for key in [key for key in model if key[1] == place]:
                del model[key]
            model.update({(row[0], place): (*row[:3], place) for row in given if row[3] == place})
            return f"INSERT OVERWRITE {table} PARTITION (dt = {place}) SELECT k, a, b FROM {source} WHERE dt = {place}"
        case 7:
            for key, row in list(model.items()):
                if key[1] == 0 and (key[0], 1) in model:
                    model[(key[0], 1)] = (key[0], row[1], "from 0", 1)
            return (
                f"INSERT INTO {table} SELECT x.k, x.a, 'from 0', 1 FROM {table} x JOIN {table} y "
                "ON x.k = y.k AND x.dt = 0 AND y.dt = 1"
            )
        case _:
            return "compact"
