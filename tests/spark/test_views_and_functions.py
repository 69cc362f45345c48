"""Views and permanent functions."""

from pathlib import Path

import pytest

from tests.spark.session import SparkError, SparkSession

pytestmark = pytest.mark.usefixtures("database")

#: Classes of Hive's that Spark's jars hold.
INITCAP = "org.apache.hadoop.hive.ql.udf.generic.GenericUDFInitCap"
LOWER = "org.apache.hadoop.hive.ql.udf.generic.GenericUDFLower"


@pytest.fixture
def people(spark: SparkSession, database: str) -> None:
    spark.sql("CREATE TABLE people (Name STRING, Age INT) USING parquet")
    spark.sql("INSERT INTO people VALUES ('Ada', 36), ('Grace', 85)")


@pytest.mark.usefixtures("people")
def test_views(spark: SparkSession, database: str) -> None:
    spark.sql("""CREATE VIEW old (who COMMENT 'first name', years) COMMENT 'over eighty' TBLPROPERTIES (k = 'v')
        AS SELECT Name AS who, Age AS years FROM people WHERE Age > 80""")
    assert spark.sql("SELECT who, years FROM old") == [["Grace", 85]]
    described = spark.describe("old")
    assert (described["Type"], described["Comment"], described["who"]) == ("VIEW", "over eighty", "string")
    assert spark.properties("old")["k"] == "v"
    assert spark.column("SHOW VIEWS", 1) == ["old"]
    assert spark.column("SHOW VIEWS LIKE 'n*'", 1) == []
    assert spark.column("SHOW TABLES", 1) == ["old", "people"]
    with pytest.raises(SparkError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql("CREATE VIEW old AS SELECT 1 AS x")
    spark.sql("CREATE OR REPLACE VIEW old AS SELECT count(*) AS n FROM people")
    assert spark.sql("SELECT * FROM old") == [[2]]
    spark.sql("ALTER VIEW old AS SELECT max(Age) AS age FROM people")
    spark.sql("ALTER VIEW old SET TBLPROPERTIES (x = 'y')")
    spark.sql("ALTER VIEW old RENAME TO oldest")
    assert spark.sql(f"SELECT age FROM {database}.oldest") == [[85]]
    assert spark.properties("oldest")["x"] == "y"
    spark.sql("DROP VIEW oldest")
    assert spark.column("SHOW VIEWS", 1) == []


@pytest.mark.usefixtures("people")
def test_a_view_of_a_view_in_another_database(spark: SparkSession, database: str) -> None:
    spark.sql("CREATE VIEW a AS SELECT Name, Age + 1 AS next FROM people")
    spark.sql(f"CREATE VIEW default.{database}_b AS SELECT next FROM {database}.a WHERE Name = 'Ada'")
    try:
        spark.sql("USE default")
        assert spark.sql(f"SELECT * FROM {database}_b") == [[37]]
    finally:
        spark.sql(f"DROP VIEW default.{database}_b")


def test_functions(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE FUNCTION Shout AS '{INITCAP}'")
    assert spark.value("SELECT shout('a b')") == "A B"
    assert spark.value(f"SELECT {database}.SHOUT('c')") == "C"
    assert [name for name in spark.column("SHOW USER FUNCTIONS") if name.endswith(f"{database}.shout")]
    assert any(INITCAP in line for line in spark.column("DESCRIBE FUNCTION EXTENDED shout"))
    with pytest.raises(SparkError, match="ROUTINE_ALREADY_EXISTS"):
        spark.sql(f"CREATE FUNCTION shout AS '{LOWER}'")
    spark.sql(f"CREATE FUNCTION IF NOT EXISTS shout AS '{LOWER}'")
    assert spark.value("SELECT shout('a b')") == "A B"
    spark.sql(f"CREATE OR REPLACE FUNCTION shout AS '{LOWER}'")
    assert any(LOWER in line for line in spark.column("DESCRIBE FUNCTION EXTENDED shout"))
    spark.sql("DROP FUNCTION shout")
    assert not [name for name in spark.column("SHOW USER FUNCTIONS") if name.endswith(".shout")]
    spark.sql("DROP FUNCTION IF EXISTS shout")
    with pytest.raises(SparkError, match="ROUTINE"):
        spark.sql("DROP FUNCTION shout")


def test_functions_with_resources(spark: SparkSession, tmp_path: Path) -> None:
    spark.python(f"import zipfile; zipfile.ZipFile('{tmp_path}/f.jar', 'w').close()")
    spark.sql(f"CREATE FUNCTION louder AS '{INITCAP}' USING JAR '{tmp_path}/f.jar'")
    assert spark.value("SELECT louder('x')") == "X"
    spark.sql("DROP FUNCTION louder")
