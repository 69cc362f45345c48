"""ANALYZE, and statistics that statements keep or drop."""

import re

import pytest

from tests.spark.session import SparkSession

layouts = pytest.mark.parametrize(
    "layout", ["USING parquet PARTITIONED BY (k)", "PARTITIONED BY (k INT) STORED AS ORC"]
)


@pytest.fixture
def filled(spark: SparkSession, database: str, layout: str) -> None:
    """Table t: 30 rows, ids 0 to 29, names NULL for a third of them, partitions k = 0, 1, 2."""
    columns = "id BIGINT, name STRING, price DECIMAL(8,2)" + (", k INT" if layout.startswith("USING") else "")
    spark.sql(f"CREATE TABLE t ({columns}) {layout}")
    spark.sql("""INSERT INTO t PARTITION (k)
        SELECT id, if(id % 3 = 0, NULL, concat('name', id % 5)), cast(id / 4 AS DECIMAL(8,2)), cast(id % 3 AS INT)
        FROM range(30)""")


def size_and_rows(text: str) -> tuple[int, int | None]:
    found = re.fullmatch(r"(\d+) bytes(?:, (\d+) rows)?", text)
    assert found is not None, text
    return int(found[1]), int(found[2]) if found[2] else None


@layouts
@pytest.mark.usefixtures("filled")
def test_of_a_table(spark: SparkSession) -> None:
    spark.sql("ANALYZE TABLE t COMPUTE STATISTICS NOSCAN")
    size, rows = size_and_rows(spark.describe("t")["Statistics"])
    assert size > 0
    assert not rows  # not counted: Spark 4 says "0 rows", 3.5 nothing
    spark.sql("ANALYZE TABLE t COMPUTE STATISTICS")
    assert size_and_rows(spark.describe("t")["Statistics"]) == (size, 30)
    spark.sql("ALTER TABLE t SET TBLPROPERTIES (k = 'v')")
    assert size_and_rows(spark.describe("t")["Statistics"]) == (size, 30)


@layouts
@pytest.mark.usefixtures("filled")
def test_of_partitions(spark: SparkSession) -> None:
    spark.sql("ANALYZE TABLE t PARTITION (k = 1) COMPUTE STATISTICS")
    size, rows = size_and_rows(spark.describe("t", "PARTITION (k = 1)")["Partition Statistics"])
    assert (size > 0, rows) == (True, 10)
    spark.sql("ANALYZE TABLE t PARTITION (k) COMPUTE STATISTICS")
    assert size_and_rows(spark.describe("t", "PARTITION (k = 2)")["Partition Statistics"])[1] == 10


@layouts
@pytest.mark.usefixtures("filled")
def test_of_columns(spark: SparkSession) -> None:
    spark.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id, name, price")
    of_id = dict(spark.sql("DESCRIBE EXTENDED t id"))
    assert (of_id["min"], of_id["max"], of_id["num_nulls"]) == ("0", "29", "0")
    of_name = dict(spark.sql("DESCRIBE EXTENDED t name"))
    assert (of_name["num_nulls"], of_name["distinct_count"], of_name["max_col_len"]) == ("10", "5", "5")
    of_price = dict(spark.sql("DESCRIBE EXTENDED t price"))
    assert (of_price["min"], of_price["max"]) == ("0.00", "7.25")
    spark.sql("ALTER TABLE t RENAME TO u")
    assert dict(spark.sql("DESCRIBE EXTENDED u id"))["max"] == "29"


@layouts
@pytest.mark.usefixtures("filled")
def test_writing_makes_old_statistics_invalid(spark: SparkSession) -> None:
    spark.sql("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS")
    assert size_and_rows(spark.describe("t")["Statistics"])[1] == 30
    spark.sql("INSERT INTO t PARTITION (k = 1) VALUES (100, 'x', 1.00)")
    assert "30 rows" not in spark.describe("t").get("Statistics", "")
    assert spark.value("SELECT count(*) FROM t") == 31
