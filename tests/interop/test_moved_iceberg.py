"""Iceberg's own HiveCatalog at a Hive metastore that was left: it can't commit there, with locks and without."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.hive_server import HiveOnPostgres, why_not
from bench.postgres import LoopbackPostgres
from tests.interop.test_iceberg import CATALOG, RUNTIME
from tests.metastore.migration.following import run
from tests.spark.session import SparkError, SparkSession, require
from tests.support.server import MetastoreServer

COMMITS = {"locks": "true", "lockfree": "false"}
TABLES = "spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, '{}')"


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveOnPostgres]:
    """On Postgres, for on Derby it can't compare what a commit without a lock expects."""
    require("3.5")
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("hive")
    postgres = LoopbackPostgres(directory / "postgres")
    try:
        with HiveOnPostgres(directory / "hive", postgres.create("hive"), directory / "warehouse") as server:
            yield server
    finally:
        postgres.close()


@pytest.fixture(scope="module")
def spark(
    hive: HiveOnPostgres, class_path: Callable[..., list[Path]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """A session that knows the old metastore's address alone, with a catalog for each way to commit."""
    (jar,) = class_path(RUNTIME)
    uri = f"thrift://{hive.host}:{hive.port}"
    directory = tmp_path_factory.mktemp("spark")
    settings = {"spark_jars": str(jar)}
    for name, enabled in COMMITS.items():
        catalog = f"spark_sql_catalog_{name}"
        settings |= {catalog: CATALOG, f"{catalog}_type": "hive", f"{catalog}_uri": uri}
        settings |= {f"{catalog}_warehouse": str(directory / "warehouse"), f"{catalog}_cache-enabled": "false"}
        settings[f"{catalog}_hadoop_iceberg.engine.hive.lock-enabled"] = enabled
    with SparkSession("3.5", uri, str(directory / "warehouse"), directory / "session", **settings) as session:
        yield session


@pytest.mark.parametrize("way", list(COMMITS))
def test_it_cannot_commit(hive: HiveOnPostgres, spark: SparkSession, tmp_path: Path, way: str) -> None:
    name = f"moved_{way}"
    table = f"{way}.{name}.t"
    spark.sql(f"CREATE DATABASE {way}.{name} LOCATION 'file:{tmp_path}/{name}'")
    spark.sql(f"CREATE TABLE {table} (id INT) USING iceberg TBLPROPERTIES ('commit.retry.num-retries' = '1')")
    spark.sql(f"INSERT INTO {table} VALUES (1)")
    source = f"thrift://{hive.host}:{hive.port}"
    with MetastoreServer(tmp_path / "ours", "--workers", "1") as ours:
        options = ("--uri", ours.uri, "--databases", name)
        run("import", source, *options)
        spark.python(f"spark.read_before = {TABLES.format(table)}")
        run("cut-over", source, name, *options, "--frozen-by-hand")
        moved = f"this-table-has-moved-to-{ours.host}-{ours.port}"
        with pytest.raises(SparkError, match=moved):
            spark.python("spark.read_before.updateProperties().set('late', '1').commit()")
        with pytest.raises(SparkError, match=moved):
            spark.sql(f"INSERT INTO {table} VALUES (2)")
        run("roll-back", source, name, *options, "--frozen-by-hand")
        spark.sql(f"INSERT INTO {table} VALUES (3)")
        assert spark.sql(f"SELECT id FROM {table} ORDER BY id") == [[1], [3]]
        assert "late" not in spark.properties(table)
