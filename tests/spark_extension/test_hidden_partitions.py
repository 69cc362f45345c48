"""What Spark's own writes do to partitions that it isn't shown, and how it is found out."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.spark.session import SparkSession
from tests.spark_extension.conftest import LAYOUTS, fill
from tests.spark_extension.lake import Lake

ON = "/*+ includeUnCommit(true) */"


@pytest.fixture(params=list(LAYOUTS))
def layout(request: pytest.FixtureRequest, spark: SparkSession, lake: Lake, database: str) -> str:
    """How the table `t` is stored that has a ready and an uncommitted partition."""
    spark.sql(f"CREATE TABLE t {LAYOUTS[request.param]}")
    fill(spark, lake, database, "t")
    return request.param


def check(lake: Lake, table: str) -> tuple[int, list[dict[str, Any]]]:
    """What `metastore partitions check` exits with and finds."""
    command = [sys.executable, "-m", "lake.cli", "partitions", "check", table, "--uri", lake.server.uri, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


@pytest.mark.usefixtures("layout")
def test_an_insert_appends_and_does_not_publish(spark: SparkSession, lake: Lake, database: str) -> None:
    spark.sql("INSERT INTO t PARTITION (dt = 'open') VALUES (20, 'o')")
    spark.sql("INSERT INTO t PARTITION (dt) VALUES (30, 'o', 'open')")
    assert lake.states(database, "t") == {"dt=open": False, "dt=ready": True}
    assert spark.value("SELECT sum(id) FROM t") == 3
    assert spark.column(f"SELECT {ON} id FROM t ORDER BY id") == [1, 2, 10, 20, 30]
    lake.commit(database, "t", "dt=open")
    assert spark.value("SELECT sum(id) FROM t") == 63


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("layout")
def test_a_dynamic_overwrite_leaves_other_partitions_alone(spark: SparkSession, lake: Lake, database: str) -> None:
    spark.sql("INSERT OVERWRITE t PARTITION (dt) VALUES (4, 'r', 'ready'), (5, 'n', 'new')")
    assert lake.states(database, "t") == {"dt=new": True, "dt=open": False, "dt=ready": True}
    assert spark.column(f"SELECT {ON} id FROM t ORDER BY id") == [4, 5, 10]
    spark.sql("INSERT OVERWRITE t PARTITION (dt) VALUES (11, 'o', 'open')")
    assert lake.states(database, "t")["dt=open"] is False
    assert spark.column(f"SELECT {ON} id FROM t ORDER BY id") == [4, 5, 11]
    assert check(lake, f"{database}.t") == (0, [])


@pytest.mark.usefixtures("layout")
def test_a_repair_does_not_publish(spark: SparkSession, lake: Lake, database: str) -> None:
    spark.sql("MSCK REPAIR TABLE t SYNC PARTITIONS")
    spark.sql("ANALYZE TABLE t PARTITION (dt) COMPUTE STATISTICS")
    assert lake.states(database, "t") == {"dt=open": False, "dt=ready": True}


@pytest.mark.long
@pytest.mark.usefixtures("static")
def test_a_static_overwrite_leaves_entries_without_files(
    spark: SparkSession, lake: Lake, database: str, layout: str
) -> None:
    spark.sql(
        "INSERT OVERWRITE t VALUES (4, 'n', 'new')" if layout == "source" else "INSERT OVERWRITE t SELECT 4, 'n', 'new'"
    )
    if layout != "source":
        # Overwriting a table of Hive's is dynamic whatever the setting says.
        assert check(lake, f"{database}.t") == (0, [])
        assert spark.column(f"SELECT {ON} id FROM t ORDER BY id") == [1, 2, 4, 10]
        return
    assert lake.states(database, "t") == {"dt=new": True, "dt=open": False}
    location = f"file:{lake.directory(database, 't')}/dt=open"
    expected = {"partition": "dt=open", "state": "uncommitted", "finding": "missing", "location": location, "files": 0}
    expected |= {"moved_to": None, "dropped": False}
    assert check(lake, f"{database}.t") == (1, [expected])
    # The next insert makes the directory again: what was there before is gone.
    spark.sql("INSERT INTO t PARTITION (dt = 'open') VALUES (20, 'o')")
    assert check(lake, f"{database}.t") == (0, [])
    assert spark.column(f"SELECT {ON} id FROM t ORDER BY id") == [4, 20]


def test_a_partition_with_a_location_of_its_own(
    spark: SparkSession, lake: Lake, database: str, layout: str, tmp_path: Path
) -> None:
    """Only Hive's own writer asks the metastore where a partition is that it isn't shown."""
    own = tmp_path / "own"
    own.mkdir()
    lake.add_hidden(database, "t", ["own"], own)
    spark.sql("INSERT INTO t PARTITION (dt = 'own') VALUES (50, 'x')")
    assert lake.states(database, "t")["dt=own"] is False
    assert spark.value("SELECT count(*) FROM t WHERE dt = 'own'") == 0
    found = spark.column(f"SELECT {ON} id FROM t WHERE dt = 'own'")
    written_beside = (lake.directory(database, "t") / "dt=own").exists()
    # Read as Parquet, Spark writes where it would put a new partition: the rows are in nobody's partition.
    assert (found, written_beside) == (([50], False) if layout == "serde" else ([], True))


def test_an_empty_directory_is_distinguished_from_a_missing_one(spark: SparkSession, lake: Lake, database: str) -> None:
    spark.sql(f"CREATE TABLE t {LAYOUTS['source']}")
    fill(spark, lake, database, "t")
    lake.add_hidden(database, "t", ["empty"])
    (lake.directory(database, "t") / "dt=empty/_SUCCESS").write_text("")
    code, found = check(lake, f"{database}.t")
    assert (code, [(each["partition"], each["finding"]) for each in found]) == (0, [("dt=empty", "empty")])
    for file in (lake.directory(database, "t") / "dt=ready").iterdir():
        file.unlink()
    (lake.directory(database, "t") / "dt=ready").rmdir()
    code, found = check(lake, f"{database}.t")
    assert code == 1
    assert [(each["partition"], each["state"], each["finding"]) for each in found] == [
        ("dt=empty", "uncommitted", "empty"),
        ("dt=ready", "ready", "missing"),
    ]
