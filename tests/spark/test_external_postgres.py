"""Spark against a server that keeps its data in a Postgres of the user's, and across a crash of the server."""

from pathlib import Path

import pytest

from tests.spark.session import SparkSession, require
from tests.support.server import MetastoreServer


@pytest.mark.long
def test_an_external_database_and_a_killed_server(postgres_url: str, tmp_path: Path) -> None:
    require("4")
    with MetastoreServer(tmp_path / "data", "--database-url", postgres_url) as server:
        warehouse = str(tmp_path / "data/warehouse")
        with SparkSession("4", server.uri, warehouse, tmp_path / "spark") as spark:
            spark.sql("CREATE DATABASE lake")
            spark.sql("CREATE TABLE lake.t (v INT, k INT) USING parquet PARTITIONED BY (k)")
            spark.sql("INSERT INTO lake.t VALUES (1, 1), (2, 2), (3, 3)")
            assert spark.directories_read("SELECT * FROM lake.t WHERE k = 2") == {"k=2"}

            server.kill()
            server.start()
            assert spark.partitions("lake.t") == ["k=1", "k=2", "k=3"]
            spark.sql("INSERT INTO lake.t VALUES (4, 4)")
            assert spark.value("SELECT sum(v) FROM lake.t") == 10
            spark.sql("DROP DATABASE lake CASCADE")
        assert not (tmp_path / "data/warehouse/lake.db").exists()
