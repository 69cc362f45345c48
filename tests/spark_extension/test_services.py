"""Table services by CALL: compactions and publishes of keyed tables, and imports into them."""

from pathlib import Path

import pytest

from lake.tables.compaction import plan_compaction
from lake.tables.lake import LakeClient
from tests.spark.session import SparkError, SparkSession
from tests.spark_extension.lake import Lake
from tests.spark_extension.test_keyed_select import merged, rows


def call(spark: SparkSession, procedure: str) -> dict[str, str]:
    return dict(row[0].split("=", 1) for row in spark.sql(f"CALL lake.system.{procedure}"))


@pytest.fixture
def days(spark: SparkSession, database: str) -> str:
    """A table whose partition d1 has log files."""
    name = f"{database}.d"
    spark.sql(
        f"CREATE TABLE {name} (id INT, v STRING, dt STRING) USING parquet PARTITIONED BY (dt) "
        "TBLPROPERTIES ('primary-key' = 'id,dt', 'sequence.field' = 'v', 'table-type' = 'merge-on-read')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 'd1'), (2, 'b', 'd1'), (1, 'c', 'd2')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x', 'd1')")
    spark.sql(f"DELETE FROM {name} WHERE id = 2")
    return name


LEFT = [[1, "c", "d2"], [1, "x", "d1"]]


def test_compact(spark: SparkSession, days: str) -> None:
    assert call(spark, f"compact('{days}', 9)")["buckets"] == "0"
    done = call(spark, f"compact(table => '{days}')")
    assert (done["buckets"], done["files"]) == ("1", "2")
    assert rows(spark, f"SELECT * FROM {days}") == merged(spark, days) == LEFT
    files = rows(spark, f"SELECT partition, kind, rows FROM {days}.files")
    assert files == [["dt=d1", "base", 1], ["dt=d1", "log", 1], ["dt=d2", "base", 1]]
    assert spark.sql(f"SELECT max_by(action, position) FROM {days}.snapshots") == [["commit"]]
    assert rows(spark, f"SELECT * FROM lake_changes('{days}', 3)") == []
    spark.sql(f"INSERT INTO {days} VALUES (2, 'a', 'd1')")  # its sequence is before the delete's
    assert rows(spark, f"SELECT * FROM {days}") == merged(spark, days) == LEFT
    assert "reason" in call(spark, f"compact('{days}', 2)")
    with pytest.raises(SparkError, match="min_log_files is a whole number"):
        spark.sql(f"CALL lake.system.compact('{days}', 0)")


def test_a_plan_of_another_is_left_alone(spark: SparkSession, days: str, lake: Lake) -> None:
    with LakeClient(lake.server.uri) as client:
        assert plan_compaction(client.table(days)).buckets == 1
    assert call(spark, f"compact('{days}')")["buckets"] == "0"


def test_a_compaction_that_fails_leaves_nothing(spark: SparkSession, database: str, days: str, lake: Lake) -> None:
    [[path]] = rows(spark, f"SELECT max(path) FROM {days}.files WHERE kind = 'log'")
    Path(path.removeprefix("file:")).rename(lake.directory(database, "d") / "away")
    with pytest.raises(SparkError):
        spark.sql(f"CALL lake.system.compact('{days}')")
    assert rows(spark, f"SELECT state, count(*) FROM {days}.instants GROUP BY state") == [["completed", 3]]
    (lake.directory(database, "d") / "away").rename(path.removeprefix("file:"))
    assert call(spark, f"compact('{days}')")["buckets"] == "1"
    assert rows(spark, f"SELECT * FROM {days}") == LEFT


def test_event_times_stay(spark: SparkSession, database: str, lake: Lake) -> None:
    table = f"{database}.times"
    spark.sql(
        f"CREATE TABLE {table} (id INT, at TIMESTAMP) USING parquet "
        "TBLPROPERTIES ('primary-key' = 'id', 'table-type' = 'merge-on-read')"
    )
    for day in (2, 1):
        rows = f"spark.sql(\"SELECT 1 AS id, timestamp'2026-01-0{day} 00:00:00Z' AS at\")"
        spark.python(f"{rows}.writeTo({table!r}).option('event-time', 'at').append()\nresult = None")
    spark.sql(f"CALL lake.system.compact('{table}')")
    with LakeClient(lake.server.uri) as client:
        [file] = client.table(table).snapshot()
    assert file.min_event_time is not None
    assert file.max_event_time is not None
    assert (file.min_event_time.day, file.max_event_time.day, file.rows) == (1, 2, 1)


def test_cluster(spark: SparkSession, database: str, days: str) -> None:
    spark.sql(f"CREATE TABLE {database}.plain (id INT) USING parquet")
    assert call(spark, "cluster('plain')")["state"] == "pending"
    with pytest.raises(SparkError, match="is a keyed table"):
        spark.sql(f"CALL lake.system.cluster('{days}')")


def test_publish(spark: SparkSession, days: str) -> None:
    done = call(spark, f"publish('{days}')")
    assert (done["partitions"], done["files"], done["linked"], done["unmerged"]) == ("1", "1", "1", "1")
    spark.sql(f"CALL lake.system.compact('{days}')")
    assert call(spark, f"publish('{days}', \"dt = 'd2'\")") == {"partitions": "0"}
    assert call(spark, f"publish('{days}')")["partitions"] == "1"
    assert call(spark, f"publish('{days}')") == {"partitions": "0"}
    spark.sql(f"INSERT INTO {days} VALUES (3, 'odd', 'K/B=1 %')")
    assert call(spark, f"publish('{days}')")["linked"] == "1"
    published = spark.python(
        f"""
found = []
for name in ("d1", "d2", "K/B=1 %"):
    described = spark.sql(f"DESCRIBE EXTENDED {days} PARTITION (dt = '{{name}}')").collect()
    [location] = [row.data_type for row in described if row.col_name == "Location"][:1]
    found += [[row.id, row.v, name] for row in spark.read.parquet(location).collect()]
result = sorted(found)
"""
    )
    assert published == [*LEFT, [3, "odd", "K/B=1 %"]]


def test_import(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE TABLE {database}.old (v STRING, id INT) USING parquet")
    spark.sql(f"INSERT INTO {database}.old VALUES ('a', 1), ('b', 2)")
    table = f"{database}.keyed"
    spark.sql(f"CREATE TABLE {table} (id INT, v STRING, w INT) USING parquet TBLPROPERTIES ('primary-key' = 'id')")
    spark.sql(f"INSERT INTO {table} VALUES (2, 'old', 7)")
    assert call(spark, f"import('{table}', '{database}.old')") == {"after": "1", "position": "2"}
    assert rows(spark, f"SELECT * FROM {table}") == [[1, "a", None], [2, "b", None]]
    with pytest.raises(SparkError, match=r"(?i)nothing|not found"):
        spark.sql(f"CALL lake.system.import('{table}', '{database}.nothing')")


def test_calls_without_their_arguments(spark: SparkSession, days: str) -> None:
    for procedure, message in [
        ("publish()", "needs table"),
        (f"import('{days}')", "needs source"),
        ("compact('nowhere')", "no keyed table"),
        (f"publish('{days}', 'dt >')", "(?i)filter|parse|expected|syntax"),
        ("nothing()", "compact"),
    ]:
        with pytest.raises(SparkError, match=message):
            spark.sql(f"CALL lake.system.{procedure}")
