"""Tables with a timeline but no primary key, written by plain SQL and DataFrames: each statement is one instant."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from lake.tables.lake import LakeClient, LakeTable
from tests.spark.session import SparkError, SparkSession
from tests.spark_extension.lake import Lake

NUMBERS = itertools.count(1)
TIMELINE = "TBLPROPERTIES ('timeline.archived-days' = '9')"


class Written:
    """A table, by Spark and by its timeline."""

    def __init__(self, spark: SparkSession, timeline: LakeTable) -> None:
        self.spark = spark
        self.timeline = timeline
        self.name = timeline.name

    def rows(self) -> list[list[Any]]:
        """What Spark reads of the directories; the snapshot must have as many rows."""
        found = self.spark.sql(f"SELECT * FROM {self.name} ORDER BY 1, 2, 3")
        files = list(self.timeline.snapshot(include_uncommitted=True))
        assert sum(each.rows or 0 for each in files) == len(found)
        assert all(each.state == "completed" for each in self.timeline.instants())
        return found

    def instants(self) -> list[str]:
        return [each.action for each in self.timeline.instants()]


@pytest.fixture
def client(lake: Lake) -> Iterator[LakeClient]:
    with LakeClient(lake.server.uri) as client:
        yield client


@pytest.fixture
def table(spark: SparkSession, database: str, client: LakeClient) -> Written:
    name = f"{database}.p{next(NUMBERS)}"
    spark.sql(f"CREATE TABLE {name} (id INT, name VARCHAR(5), dt STRING) USING parquet PARTITIONED BY (dt) {TIMELINE}")
    return Written(spark, client.table(name))


def test_statistics_end_when_rows_come(spark: SparkSession, table: Written) -> None:
    """Queries take them for the size of the rows, and would broadcast a table that has grown."""
    t = table.name
    for change in (
        f"INSERT INTO {t} SELECT id, 'a', '01' FROM range(1000)",
        f"INSERT OVERWRITE {t} VALUES (1, 'a', '01')",
        f"DELETE FROM {t} WHERE dt = '01'",
        f"TRUNCATE TABLE {t}",
    ):
        spark.sql(f"INSERT INTO {t} VALUES (1, 'a', '01')")
        spark.sql(f"ANALYZE TABLE {t} COMPUTE STATISTICS FOR COLUMNS id")
        assert "rows" in spark.describe(t)["Statistics"]
        spark.sql(change)
        assert "Statistics" not in spark.describe(t), change
    whole = f"{t}_whole"
    spark.sql(f"CREATE TABLE {whole} (id INT, name STRING, dt STRING) USING parquet {TIMELINE}")
    spark.sql(f"INSERT INTO {whole} VALUES (1, 'a', '01')")
    spark.sql(f"ANALYZE TABLE {whole} COMPUTE STATISTICS FOR COLUMNS id")
    assert dict(spark.sql(f"DESCRIBE EXTENDED {whole} id"))["max"] == "1"
    spark.sql(f"INSERT INTO {whole} VALUES (2, 'b', '02')")
    assert dict(spark.sql(f"DESCRIBE EXTENDED {whole} id"))["max"] == "NULL"
    assert spark.describe(whole)["Statistics"].endswith(" 2 rows")


def test_statements_are_instants(spark: SparkSession, table: Written) -> None:
    t = table.name
    spark.sql(f"INSERT INTO {t} VALUES (1, 'a', '01'), (2, 'b', '02'), (3, 'c', '03')")
    assert table.rows() == [[1, "a", "01"], [2, "b", "02"], [3, "c", "03"]]
    spark.sql(f"INSERT INTO {t} PARTITION (dt = '01') (id) VALUES (4)")
    spark.sql(f"INSERT INTO {t} (dt, id) SELECT '02', 5")
    assert table.rows() == [[1, "a", "01"], [2, "b", "02"], [3, "c", "03"], [4, None, "01"], [5, None, "02"]]
    spark.sql(f"INSERT OVERWRITE {t} VALUES (6, 'd', '02')")
    assert table.rows() == [[1, "a", "01"], [3, "c", "03"], [4, None, "01"], [6, "d", "02"]]
    spark.sql(f"INSERT OVERWRITE {t} PARTITION (dt = '01') SELECT id, name FROM {t} WHERE id = 0")
    assert table.rows() == [[3, "c", "03"], [6, "d", "02"]]
    spark.sql(f"INSERT INTO {t} REPLACE WHERE dt >= '02' AND dt < '03' SELECT 7, 'e', '02'")
    assert table.rows() == [[3, "c", "03"], [7, "e", "02"]]
    with pytest.raises(SparkError, match="outside of what is overwritten"):
        spark.sql(f"INSERT INTO {t} REPLACE WHERE dt = '02' SELECT 8, 'e', '03'")
    spark.sql(f"DELETE FROM {t} WHERE dt IN ('03', '04')")
    assert table.rows() == [[7, "e", "02"]]
    spark.sql("SET spark.sql.sources.partitionOverwriteMode=static")
    try:
        spark.sql(f"INSERT OVERWRITE {t} VALUES (9, 'f', '05'), (10, 'g', '06')")
        assert table.rows() == [[9, "f", "05"], [10, "g", "06"]]
        spark.sql(f"INSERT OVERWRITE {t} PARTITION (dt = '05') SELECT 11, 'h'")
        assert table.rows() == [[10, "g", "06"], [11, "h", "05"]]
    finally:
        spark.sql("SET spark.sql.sources.partitionOverwriteMode=dynamic")
    spark.sql(f"TRUNCATE TABLE {t}")
    assert table.rows() == []
    assert table.instants() == ["commit"] * 3 + ["replacecommit"] * 7
    assert table.timeline.details(next(iter(table.timeline.instants())).timestamp, "commit").metadata["completed"] == (
        b'{"operation": "append", "files": 3, "rows": 3}'
    )


def test_dataframes(spark: SparkSession, table: Written, client: LakeClient) -> None:
    t = table.name
    spark.python(f"""
from pyspark.sql import functions as sf
rows = spark.sql("SELECT 'x' name, CAST(id AS INT) id, '01' dt FROM range(2)")
rows.writeTo({t!r}).append()
rows.select(sf.col("id") + 2, "name", "dt").write.insertInto({t!r})
rows.withColumn("id", sf.col("id") + 4).write.mode("append").saveAsTable({t!r})
rows.limit(1).withColumn("dt", sf.lit("02")).writeTo({t!r}).overwritePartitions()
rows.limit(1).withColumn("dt", sf.lit("03")).writeTo({t!r}).overwrite(sf.col("dt") == "03")
""")
    assert [row[0] for row in table.rows()] == [0, 0, 0, 1, 2, 3, 4, 5]
    assert table.instants() == ["commit"] * 3 + ["replacecommit"] * 2
    with pytest.raises(SparkError, match="is a lake table: saveAsTable with the mode overwrite would drop it"):
        spark.python(f"spark.range(1).write.mode('overwrite').saveAsTable({t!r})")
    made = Written(spark, client.table(f"{t}_made"))
    spark.sql(
        f"CREATE TABLE {made.name} USING parquet PARTITIONED BY (dt) {TIMELINE} AS SELECT * FROM {t} WHERE id > 3"
    )
    assert [row[0] for row in made.rows()] == [4, 5]
    assert made.instants() == ["commit"]


def test_a_table_without_partitions(spark: SparkSession, database: str, client: LakeClient) -> None:
    name = f"{database}.flat"
    spark.sql(f"CREATE TABLE {name} (id INT, b STRING, c STRING) USING parquet {TIMELINE}")
    flat = Written(spark, client.table(name))
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 'b')")
    spark.sql(f"INSERT INTO {name} VALUES (2, 'a', 'b')")
    assert [row[0] for row in flat.rows()] == [1, 2]
    spark.sql(f"INSERT OVERWRITE {name} SELECT id + 10, b, c FROM {name}")
    assert [row[0] for row in flat.rows()] == [11, 12]
    spark.sql(f"DELETE FROM {name}")
    assert flat.rows() == []
    spark.sql(f"INSERT INTO {name} VALUES (3, 'a', 'b')")
    assert [row[0] for row in flat.rows()] == [3]
    assert flat.instants() == ["commit", "commit", "replacecommit", "replacecommit", "commit"]


def test_what_is_refused_changes_nothing(spark: SparkSession, table: Written, tmp_path: Any) -> None:
    t = table.name
    spark.sql(f"INSERT INTO {t} VALUES (1, 'a', '01')")
    (tmp_path / "file").write_text("x")
    for statement, said in {
        f"UPDATE {t} SET name = 'b'": "has no primary-key, by which rows are changed: INSERT OVERWRITE",
        f"DELETE FROM {t} WHERE id = 1": "DELETE takes whole partitions",
        f"DELETE FROM {t} WHERE dt = '01' OR id = 1": "DELETE takes whole partitions",
        f"MERGE INTO {t} USING (SELECT 1 AS k) s ON id = k WHEN MATCHED THEN DELETE": "has no primary-key, by which",
        f"INSERT INTO {t} REPLACE WHERE id = 1 SELECT 1, 'a', '01'": "whole partitions are replaced",
        f"TRUNCATE TABLE {t} PARTITION (dt = '01')": "DELETE them by a condition",
        f"LOAD DATA LOCAL INPATH '{tmp_path}/file' INTO TABLE {t} PARTITION (dt = '01')": "INSERT them instead",
        f"INSERT INTO {t} VALUES (1, 'too long', '01')": "EXCEED_LIMIT_LENGTH|Exceeds char/varchar",
        f"INSERT INTO {t} VALUES (3000000000, 'a', '01')": "CAST_OVERFLOW|CANNOT_SAFELY_CAST|overflow",
        f"INSERT INTO {t} SELECT id, raise_error('no such luck'), dt FROM {t}": "no such luck",
        f"INSERT OVERWRITE `{t.partition('.')[0]}`.`{t.partition('.')[2]}@includeuncommit` VALUES (1, 'a', '01')": (
            "can only be read"
        ),
    }.items():
        with pytest.raises(SparkError, match=said):
            spark.sql(statement)
    assert table.rows() == [[1, "a", "01"]]
    assert table.instants() == ["commit"]


def test_what_was_read_is_a_condition(spark: SparkSession, table: Written, lake: Lake) -> None:
    """Another writer adds rows after the statement was analysed, which would be lost."""
    t = table.name
    spark.sql(f"INSERT INTO {t} VALUES (1, 'a', '01')")
    with pytest.raises(SparkError, match="changed the same"):
        spark.python(f"""
from lake.spark import write
parsed = spark._jsparkSession.sessionState().sqlParser().parsePlan(
    "INSERT OVERWRITE {t} SELECT id + 10, name, dt FROM {t}"
)
mode = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL()
execution = spark._jsparkSession.sessionState().executePlan(parsed, mode)
execution.analyzed()
write(spark.sql("SELECT 2 id, 'b' name, '01' dt"), {t!r})
execution.commandExecuted()
""")
    assert [row[0] for row in table.rows()] == [1, 2]


def test_a_table_without_a_timeline_stays_spark_s(spark: SparkSession, database: str, client: LakeClient) -> None:
    name = f"{database}.own"
    spark.sql(f"CREATE TABLE {name} (id INT, b STRING, c STRING) USING parquet")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 'b')")
    spark.sql(f"INSERT OVERWRITE {name} VALUES (2, 'a', 'b')")
    assert spark.sql(f"SELECT * FROM {name}") == [[2, "a", "b"]]
    spark.sql(f"TRUNCATE TABLE {name}")
    assert spark.sql(f"SELECT * FROM {name}") == []
    assert client.table(name).position().position == 0
