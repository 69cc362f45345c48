"""Databases through Spark's SQL."""

from pathlib import Path

import pytest

from tests.spark.session import SparkError, SparkSession
from tests.support.target import Target, local_path


def described(spark: SparkSession, database: str) -> dict[str, str]:
    return dict(spark.sql(f"DESCRIBE DATABASE EXTENDED {database}"))


def test_default_is_there_and_named_as_hive_names_it(spark: SparkSession) -> None:
    assert "default" in spark.column("SHOW DATABASES")
    assert described(spark, "default")["Comment"] == "Default Hive database"


def test_create_alter_and_drop(spark: SparkSession, target: Target) -> None:
    spark.sql("CREATE DATABASE Lake_A COMMENT 'a lake' WITH DBPROPERTIES (depth = '7', kind = 'fresh')")
    try:
        facts = described(spark, "lake_a")
        assert facts["Comment"] == "a lake"
        assert "(depth,7)" in facts["Properties"] and "(kind,fresh)" in facts["Properties"]
        directory = local_path(facts["Location"])
        assert directory == target.warehouse() / "lake_a.db"
        assert directory.is_dir()
        spark.sql("ALTER DATABASE lake_a SET DBPROPERTIES (depth = '8')")
        assert "(depth,8)" in described(spark, "lake_a")["Properties"]
        assert "(kind,fresh)" in described(spark, "lake_a")["Properties"]
    finally:
        spark.sql("DROP DATABASE lake_a")
    assert not directory.exists()
    assert "lake_a" not in spark.column("SHOW DATABASES")


def test_a_location_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE DATABASE lake_b LOCATION '{tmp_path}/elsewhere'")
    assert local_path(described(spark, "lake_b")["Location"]) == tmp_path / "elsewhere"
    spark.sql("CREATE TABLE lake_b.t (a INT) USING parquet")
    assert (tmp_path / "elsewhere/t").is_dir()
    spark.sql("DROP DATABASE lake_b CASCADE")
    assert not (tmp_path / "elsewhere").exists()


def test_patterns(spark: SparkSession) -> None:
    for name in ("sea_1", "sea_2", "pond_1"):
        spark.sql(f"CREATE DATABASE {name}")
    try:
        assert spark.column("SHOW DATABASES LIKE 'sea*'") == ["sea_1", "sea_2"]
        assert sorted(spark.column("SHOW DATABASES LIKE 'sea_1|pond*'")) == ["pond_1", "sea_1"]
        assert spark.column("SHOW DATABASES LIKE 'none*'") == []
    finally:
        for name in ("sea_1", "sea_2", "pond_1"):
            spark.sql(f"DROP DATABASE {name}")


def test_mistakes_are_named(spark: SparkSession, database: str) -> None:
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    with pytest.raises(SparkError, match="SCHEMA_ALREADY_EXISTS"):
        spark.sql(f"CREATE DATABASE {database}")
    spark.sql("CREATE TABLE t (a INT) USING parquet")
    with pytest.raises(SparkError, match="SCHEMA_NOT_EMPTY"):
        spark.sql(f"DROP DATABASE {database}")
    with pytest.raises(SparkError, match="SCHEMA_NOT_FOUND"):
        spark.sql("DROP DATABASE nowhere")
    spark.sql("DROP DATABASE IF EXISTS nowhere")
    assert spark.column("SHOW TABLES", 1) == ["t"]
