"""Definitions of keyed tables in SQL: how they are shown, and how they are changed."""

import shutil

import pytest

from tests.spark.session import SparkError, SparkSession
from tests.spark_extension.lake import Lake
from tests.spark_extension.test_keyed_select import merged, rows


@pytest.fixture
def table(spark: SparkSession, database: str) -> str:
    name = f"{database}.t"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT COMMENT 'the key', Name STRING, n INT, dt STRING) USING parquet "
        "PARTITIONED BY (dt) COMMENT 'about' TBLPROPERTIES ('primary-key' = 'id,dt', 'table-type' = 'merge-on-read')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 1, 'd1'), (2, 'b', 2, 'd2')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'A', 1, 'd1')")
    return name


def test_what_is_shown(spark: SparkSession, database: str, table: str) -> None:
    described = spark.describe(table)
    assert (described["id"], described["Comment"], described["# Partition Information"]) == ("bigint", "about", "")
    assert "primary-key=id,dt" in described["Table Properties"]
    assert spark.partitions(table) == ["dt=d1", "dt=d2"]
    assert spark.partitions(table, "PARTITION (dt = 'd1')") == ["dt=d1"]
    assert spark.properties(table)["table-type"] == "merge-on-read"
    assert spark.sql(f"SHOW TBLPROPERTIES {table} ('primary-key')") == [["primary-key", "id,dt"]]
    assert spark.sql(f"DESCRIBE {table} id")[2] == ["comment", "the key"]
    [[statement]] = spark.sql(f"SHOW CREATE TABLE {table}")
    spark.sql(statement.replace(f"{database}.t ", f"{database}.made "))
    assert spark.properties(f"{database}.made") == spark.properties(table)
    spark.sql(f"INSERT INTO {database}.made SELECT * FROM {table}")
    assert rows(spark, f"SELECT * FROM {database}.made") == rows(spark, f"SELECT * FROM {table}")


def test_statistics_are_of_the_rows_that_queries_read(spark: SparkSession, table: str) -> None:
    """Spark adds up what lies in the directory: a table that was never published would be one of 0 bytes."""
    [[size]] = spark.sql(f"SELECT sum(size) FROM {table}.files")
    for columns in ("", " FOR COLUMNS n"):
        spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS{columns}")
        assert spark.describe(table)["Statistics"] == f"{size} bytes, 2 rows"
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS NOSCAN")
    assert spark.describe(table)["Statistics"].startswith(f"{size} bytes")


def test_statistics(spark: SparkSession, table: str) -> None:
    spark.sql(f"CALL lake.system.compact('{table}')")
    spark.sql(f"CALL lake.system.publish('{table}')")
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS")
    assert "2 rows" in spark.describe(table)["Statistics"]
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS id, n")
    shown = dict(spark.sql(f"DESCRIBE EXTENDED {table} n"))
    assert (shown["min"], shown["max"], shown["distinct_count"]) == ("1", "2", "2")
    spark.sql(f"ANALYZE TABLE {table} PARTITION (dt) COMPUTE STATISTICS")
    assert "1 rows" in spark.describe(table, "PARTITION (dt = 'd1')")["Partition Statistics"]


def test_columns_are_renamed_and_dropped(spark: SparkSession, table: str) -> None:
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN name TO Label")
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (city STRING COMMENT 'c')")
    spark.sql(f"INSERT INTO {table} VALUES (3, 'c', 3, 'Oslo', 'd1')")
    found = [[1, "A", 1, None, "d1"], [2, "b", 2, None, "d2"], [3, "c", 3, "Oslo", "d1"]]
    assert rows(spark, f"SELECT * FROM {table}") == merged(spark, table) == found
    assert rows(spark, f"SHOW COLUMNS IN {table}") == [["Label"], ["city"], ["dt"], ["id"], ["n"]]
    spark.sql(f"ALTER TABLE {table} DROP COLUMN n")
    spark.sql(f"ALTER TABLE {table} DROP COLUMNS IF EXISTS (n, city)")
    assert rows(spark, f"SELECT * FROM {table}") == [[1, "A", "d1"], [2, "b", "d2"], [3, "c", "d1"]]
    assert rows(spark, f"SELECT * FROM {table} VERSION AS OF 2") == [[1, "A", "d1"], [2, "b", "d2"]]
    changes = f"SELECT id, label, _change_type FROM lake_changes('{table}', 1, 2)"
    assert rows(spark, changes) == [[1, "A", "update_postimage"], [1, "a", "update_preimage"]]
    for change, message in [
        ("RENAME COLUMN id TO key", "named by the table's key"),
        ("DROP COLUMN dt", "named by the table's key"),
        ("RENAME COLUMN label TO id", "(?i)already"),
        ("DROP COLUMN nothing", "(?i)no column nothing|nothing"),
        ("SET TBLPROPERTIES ('primary-key' = 'label,dt')", "can't be changed"),
        ("UNSET TBLPROPERTIES ('primary-key')", "can't be changed"),
        ("SET LOCATION 'file:/nowhere'", "copy the table's directory there first"),
    ]:
        with pytest.raises(SparkError, match=message):
            spark.sql(f"ALTER TABLE {table} {change}")
    assert rows(spark, f"SELECT * FROM {table}") == [[1, "A", "d1"], [2, "b", "d2"], [3, "c", "d1"]]


def test_a_published_table_keeps_its_names(spark: SparkSession, table: str) -> None:
    spark.sql(f"CALL lake.system.publish('{table}')")
    with pytest.raises(SparkError):
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN name TO label")
    assert rows(spark, f"SELECT id, name FROM {table}") == [[1, "A"], [2, "b"]]


def test_a_renamed_table_is_read_on(spark: SparkSession, database: str, table: str, lake: Lake) -> None:
    assert len(rows(spark, f"SELECT * FROM {table}")) == 2
    spark.sql(f"ALTER TABLE {table} RENAME TO {database}.other")
    other = f"{database}.other"
    assert len(rows(spark, f"SELECT * FROM lake_changes('{other}', 0)")) == 2
    assert len(rows(spark, f"SELECT * FROM {other} VERSION AS OF 1")) == 2
    assert [each.position for each in lake.leases(other) if each.onwards] == [0]


def test_repairs_drop_no_partition(spark: SparkSession, table: str) -> None:
    """Rows are where instants put them. On object stores a partition may have no directory of its own."""
    shutil.rmtree(spark.describe(table)["Location"].removeprefix("file:") + "/dt=d2", ignore_errors=True)
    for how in ("DROP", "SYNC"):
        with pytest.raises(SparkError, match="ALTER TABLE … DROP PARTITION"):
            spark.sql(f"MSCK REPAIR TABLE {table} {how} PARTITIONS")
    spark.sql(f"MSCK REPAIR TABLE {table}")
    assert spark.partitions(table) == ["dt=d1", "dt=d2"]
    assert rows(spark, f"SELECT * FROM {table}") == [[1, "A", 1, "d1"], [2, "b", 2, "d2"]]
