"""Projects of Spark's declarative pipelines: spark-pipelines runs them on our metastore, and we do what it does."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from lake.spark.jar import extension_jar
from tests.spark.session import SparkSession
from tests.support.server import MetastoreServer

BIN = Path(sys.executable).parent
SPECIFICATION = """
name: shop
storage: {directory}/storage
database: dwd
configuration:
  spark.sql.session.timeZone: UTC
libraries:
  - glob:
      include: transformations/**
"""
SQL = """
CREATE MATERIALIZED VIEW orders COMMENT 'with their customers'
AS SELECT o.id, o.amount, c.name, coalesce(c.city, 'unknown') AS city
FROM ods.orders o LEFT JOIN ods.customers c ON o.customer = c.id;

CREATE TEMPORARY VIEW large AS SELECT * FROM orders WHERE amount > 10;
"""
PYTHON = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()

@dp.materialized_view(name="dws.cities", comment="of large orders")
def cities():
    return spark.sql("SELECT city, sum(amount) AS amount, count(*) AS orders FROM large GROUP BY city")

@dp.temporary_view
def best():
    return spark.sql("SELECT city, amount, rank() OVER (ORDER BY amount DESC) AS place FROM dws.cities")

@dp.materialized_view(name="ads.winners")
def winners():
    return spark.table("best")
"""
TABLES = {
    "dwd.orders": "id, amount, name, city",
    "dws.cities": "city, amount, orders",
    "ads.winners": "city, amount, place",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("pipelines") / "data") as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "shop"
    (directory / "transformations").mkdir(parents=True)
    (directory / "spark-pipeline.yml").write_text(SPECIFICATION.format(directory=directory.as_uri()))
    (directory / "transformations" / "orders.sql").write_text(SQL)
    (directory / "transformations" / "cities.py").write_text(PYTHON)
    return directory


def run(*command: str, directory: Path) -> None:
    foreign = ("SPARK_", "PYSPARK_", "HADOOP_", "HIVE_")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    environment |= {"PYSPARK_PYTHON": sys.executable, "PATH": f"{BIN}:{environment['PATH']}"}
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]


@pytest.mark.skipif(find_spec("grpc") is None, reason="needs the package grpcio (tools/setup.sh --spark-connect)")
def test_a_project_runs_under_both(server: MetastoreServer, project: Path, tmp_path: Path) -> None:
    warehouse = str(server.data_dir / "warehouse")
    spark = SparkSession("4", server.uri, warehouse, tmp_path / "session", spark_jars=str(extension_jar()))
    try:
        for database in ("ods", "dwd", "dws", "ads"):
            spark.sql(f"CREATE DATABASE {database}")
        spark.sql("CREATE TABLE ods.orders (id BIGINT, customer BIGINT, amount BIGINT) USING parquet")
        spark.sql("CREATE TABLE ods.customers (id BIGINT, name STRING, city STRING) USING parquet")
        rows = {
            "ods.orders": "VALUES (1, 1, 20), (2, 2, 30), (3, 3, 40), (4, 1, 5), (5, 1, 15) AS t(id, customer, amount)",
            "ods.customers": "VALUES (1, 'Ada', 'Oslo'), (2, 'Bo', 'Rome') AS t(id, name, city)",
        }
        for table, values in rows.items():
            spark.python(f"from lake.spark import write\nwrite(spark.sql({'FROM ' + values!r}), {table!r})")

        settings = {"catalogImplementation": "hive", "warehouse.dir": str(server.data_dir / "warehouse")}
        options = [f"--conf=spark.sql.{key}={value}" for key, value in settings.items()]
        options += [f"--conf=spark.hadoop.hive.metastore.uris={server.uri}"]
        run("spark-pipelines", *options, "run", directory=project)
        theirs = {table: spark.sql(f"SELECT {columns} FROM {table} ORDER BY 1") for table, columns in TABLES.items()}
        for table in TABLES:
            spark.sql(f"DROP TABLE {table}")

        run("metastore", "pipeline", "run", str(project), "--uri", server.uri, "--once", directory=project)
        ours = {
            table: spark.python(
                "from lake.spark import read\n"
                f"rows = read(spark, {table!r}, include_uncommitted=True).select(*{columns.split(', ')!r})\n"
                "result = sorted([*row] for row in rows.collect())"
            )
            for table, columns in TABLES.items()
        }
        assert ours == theirs
        assert theirs["ads.winners"] == [["Oslo", 35, 2], ["Rome", 30, 3], ["unknown", 40, 1]]
    finally:
        spark.close()
