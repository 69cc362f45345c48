"""Spark as a user with some rights: it makes and fills tables, and finds nothing of what is hidden."""

import getpass
from pathlib import Path

import pytest

from tests.rights.conftest import as_user
from tests.rights.world import grant
from tests.spark.session import LINES, SparkError, SparkSession, require
from tests.support import builders
from tests.support.server import MetastoreServer

pytestmark = [pytest.mark.spark, pytest.mark.long]

OPTIONS = ("--authorization", "sql-standard", "--admins", "chief", "--trust-unproven-users", "--workers", "1")


@pytest.mark.parametrize("line", list(LINES))
def test_with_the_rights_to_create_and_to_insert(tmp_path: Path, line: str) -> None:
    require(line)
    with MetastoreServer(tmp_path / "data", *OPTIONS) as server, as_user(server, "chief") as chief:
        chief.create_database(builders.database("lake", ownerName="chief"))
        chief.create_table(builders.table("lake", "secret", owner="chief"))
        storage = builders.parquet("id:int")
        chief.create_table(builders.table("lake", "writable", keys=("dt",), owner="chief", sd=storage))
        grant(chief, getpass.getuser(), "CREATE", "lake")
        grant(chief, getpass.getuser(), "INSERT", "lake", "writable")
        warehouse = str(tmp_path / "data" / "warehouse")
        with SparkSession(line, server.uri, warehouse, tmp_path / "spark") as spark:
            assert spark.column("SHOW TABLES IN lake", 1) == ["writable"]
            for statement in (
                "CREATE TABLE lake.a (id int, dt string) USING parquet PARTITIONED BY (dt)",
                "INSERT INTO lake.a VALUES (1, 'x')",
                "CREATE TABLE lake.h (id int) PARTITIONED BY (dt string) STORED AS parquet",
                "INSERT INTO lake.h PARTITION (dt='x') VALUES (1)",
                "INSERT OVERWRITE TABLE lake.h PARTITION (dt='x') VALUES (2)",
                "INSERT INTO lake.writable PARTITION (dt='x') VALUES (1)",
                "ANALYZE TABLE lake.a COMPUTE STATISTICS FOR ALL COLUMNS",
                "ALTER TABLE lake.a ADD COLUMNS (b int)",
            ):
                spark.sql(statement)
            assert spark.column("SELECT id FROM lake.h") == [2]
            assert chief.get_table("lake", "h").owner == getpass.getuser()
            with pytest.raises(SparkError, match="TABLE_OR_VIEW_NOT_FOUND"):
                spark.sql("SELECT * FROM lake.secret")
            with pytest.raises(SparkError, match=r"does not have \[DROP\] privilege on \[lake.writable\]"):
                spark.sql("DROP TABLE lake.writable")
            spark.sql("DROP TABLE lake.a")
            assert sorted(spark.column("SHOW TABLES IN lake", 1)) == ["h", "writable"]
