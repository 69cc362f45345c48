"""What is written: hints hold for what is read, and nothing is written under a decorated name."""

from pathlib import Path

import pytest

from tests.spark.session import SparkError, SparkSession
from tests.spark_extension.conftest import LAYOUTS, fill
from tests.spark_extension.lake import Lake

ON = "/*+ includeUnCommit(true) */"


@pytest.fixture(params=list(LAYOUTS))
def table(request: pytest.FixtureRequest, spark: SparkSession, lake: Lake, database: str) -> str:
    """A table `t` with a ready and an uncommitted partition."""
    spark.sql(f"CREATE TABLE t {LAYOUTS[request.param]}")
    fill(spark, lake, database, "t")
    return "t"


@pytest.mark.sampled(3)
def test_hinted_reads_see_a_partition_grow(spark: SparkSession, table: str) -> None:
    assert spark.value(f"SELECT {ON} sum(id) FROM t") == 13
    for more in (1, 2, 3):
        spark.sql("INSERT INTO t PARTITION (dt = 'open') VALUES (100, 'o')")
        assert spark.value(f"SELECT {ON} sum(id) FROM t") == 13 + more * 100
        assert spark.value("SELECT sum(id) FROM `t@includeuncommit`") == 13 + more * 100
        assert spark.value("SELECT sum(id) FROM t") == 3


@pytest.mark.sampled(3)
def test_what_is_selected_for_a_write(spark: SparkSession, table: str) -> None:
    spark.sql(f"CREATE TABLE copy USING parquet AS SELECT {ON} id FROM t")
    assert spark.value("SELECT sum(id) FROM copy") == 13
    spark.sql(f"INSERT OVERWRITE copy SELECT {ON} id * 2 FROM t")
    assert spark.value("SELECT sum(id) FROM copy") == 26
    spark.sql(f"INSERT INTO copy WITH c AS (SELECT * FROM t) SELECT {ON} id FROM c")
    assert spark.value("SELECT sum(id) FROM copy") == 39
    spark.sql(f"WITH c AS (SELECT * FROM t) INSERT INTO copy SELECT {ON} id FROM c")
    assert spark.value("SELECT sum(id) FROM copy") == 52
    spark.sql(f"FROM t INSERT INTO copy SELECT {ON} id INSERT INTO copy SELECT id")
    assert spark.value("SELECT sum(id) FROM copy") == 52 + 13 + 3
    spark.sql(f"INSERT OVERWRITE copy SELECT {ON} id FROM t")
    spark.python("spark.table('t').hint('includeUnCommit').select('id').write.insertInto('copy')")
    assert spark.value("SELECT sum(id) FROM copy") == 26


def test_from_a_table_into_itself(spark: SparkSession, lake: Lake, database: str, table: str) -> None:
    spark.sql(f"INSERT INTO t PARTITION (dt = 'new') SELECT {ON} id + 90, v FROM t WHERE dt = 'open'")
    assert spark.sql("SELECT sum(id) FROM t WHERE dt = 'new'") == [[100]]
    assert lake.states(database, "t") == {"dt=new": True, "dt=open": False, "dt=ready": True}


REFUSED = [
    "INSERT INTO `t@includeuncommit` PARTITION (dt = 'x') VALUES (1, 'a')",
    "INSERT OVERWRITE `t@INCLUDEUNCOMMIT` PARTITION (dt = 'open') VALUES (1, 'a')",
    "TRUNCATE TABLE `t@includeuncommit`",
    "ALTER TABLE `t@includeuncommit` ADD PARTITION (dt = 'x')",
    "ALTER TABLE `t@includeuncommit` DROP PARTITION (dt = 'open')",
    "ALTER TABLE `t@includeuncommit` PARTITION (dt = 'open') RENAME TO PARTITION (dt = 'x')",
    "ALTER TABLE `t@includeuncommit` SET TBLPROPERTIES ('a' = 'b')",
    "ALTER TABLE t RENAME TO `u@includeuncommit`",
    "ANALYZE TABLE `t@includeuncommit` COMPUTE STATISTICS",
    "MSCK REPAIR TABLE `t@includeuncommit`",
    "CREATE TABLE `u@includeuncommit` USING parquet AS SELECT 1 AS a",
]


def files(directory: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in directory.rglob("*") if path.is_file()}


def test_a_decorated_name_is_not_written(spark: SparkSession, lake: Lake, database: str, table: str) -> None:
    before = files(lake.directory(database, "t").parent)
    for statement in REFUSED:
        with pytest.raises(SparkError, match="can only be read: write to"):
            spark.sql(statement)
    with pytest.raises(SparkError, match="read-only"):
        spark.sql("DROP TABLE `t@includeuncommit`")
    assert files(lake.directory(database, "t").parent) == before
    assert lake.states(database, "t") == {"dt=open": False, "dt=ready": True}
    spark.sql("CREATE TABLE like_it LIKE `t@includeuncommit`")
    assert spark.column("DESCRIBE like_it")[:3] == ["id", "v", "dt"]


def test_a_hinted_target_is_not_written(spark: SparkSession, lake: Lake, database: str) -> None:
    """Spark writes through a temporary view that is nothing but a table."""
    spark.sql(f"CREATE TABLE t {LAYOUTS['source']}")
    fill(spark, lake, database, "t")
    before = files(lake.directory(database, "t"))
    spark.python("spark.table('t').hint('includeUnCommit').createOrReplaceTempView('through')")
    with pytest.raises(SparkError, match="can only be read: write to"):
        spark.sql("INSERT INTO through VALUES (1, 'a', 'x')")
    assert files(lake.directory(database, "t")) == before


def test_a_stream_does_not_write_a_decorated_name(
    spark: SparkSession, lake: Lake, database: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE t {LAYOUTS['source']}")
    fill(spark, lake, database, "t")
    before = files(lake.directory(database, "t"))
    stream = "spark.readStream.format('rate').load().selectExpr('int(value) id', \"'s' v\", \"'x' dt\").writeStream"
    with pytest.raises(SparkError, match=r"can only be read|read-only"):
        spark.python(
            f"{stream}.option('checkpointLocation', {str(tmp_path)!r}).trigger(availableNow=True)"
            f".toTable('{database}.`t@includeuncommit`').awaitTermination()"
        )
    assert files(lake.directory(database, "t")) == before
