"""Iceberg's own catalog of Hive, as Spark runs it: tables, their changes, and writers that meet in one commit."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import NoSuchObjectException, ShowLocksRequest
from tests.spark.session import SparkSession, require
from tests.support.target import Target, local_path

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0"
CATALOG = "org.apache.iceberg.spark.SparkCatalog"
NUMBERS = itertools.count(1)

#: How a commit keeps others out: by a lock of the metastore's, or by the metadata file that it expects in the table.
COMMITS = {"locks": "true", "lockfree": "false"}
APPENDS = 8
RETRIES = "'commit.retry.num-retries' = '100', 'commit.retry.min-wait-ms' = '10', 'commit.retry.max-wait-ms' = '200'"


@pytest.fixture(scope="module")
def spark(
    class_path: Callable[..., list[Path]], target: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """A session with two catalogs for each way to commit: `locks1`, `locks2`, `lockfree1`, `lockfree2`.

    Within a process Iceberg makes commits queue by the table's full name, catalog and all, before it asks the
    metastore: two catalogs meet at the metastore, as two processes do.
    """
    require("3.5")
    (jar,) = class_path(RUNTIME)
    uri = f"thrift://{target.host}:{target.port}"
    settings = {"spark_jars": str(jar)}
    settings["spark_sql_extensions"] = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    for name, enabled in ((f"{way}{number}", enabled) for way, enabled in COMMITS.items() for number in (1, 2)):
        catalog = f"spark_sql_catalog_{name}"
        settings |= {catalog: CATALOG, f"{catalog}_type": "hive", f"{catalog}_uri": uri}
        settings |= {f"{catalog}_warehouse": str(target.warehouse()), f"{catalog}_cache-enabled": "false"}
        settings[f"{catalog}_hadoop_iceberg.engine.hive.lock-enabled"] = enabled
        settings[f"{catalog}_hadoop_iceberg.hive.lock-check-min-wait-ms"] = "20"
        settings[f"{catalog}_hadoop_iceberg.hive.lock-check-max-wait-ms"] = "100"
    with SparkSession("3.5", uri, str(target.warehouse()), tmp_path_factory.mktemp("iceberg"), **settings) as session:
        yield session


@pytest.fixture(params=list(COMMITS))
def database(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """A database, named with the catalog that commits in one of the ways."""
    name = f"{request.param}1.iceberg_spark_{next(NUMBERS)}"
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    for table in spark.column(f"SHOW TABLES IN {name}", 1):
        spark.sql(f"DROP TABLE {name}.{table} PURGE")
    spark.sql(f"DROP DATABASE {name}")


@pytest.fixture
def client(target: Target) -> Iterator[ThriftClient]:
    """What another engine sees of the tables."""
    with target.connect() as client:
        yield client


def test_the_life_of_a_table(spark: SparkSession, database: str, client: ThriftClient) -> None:
    name = database.partition(".")[2]
    spark.sql(f"CREATE TABLE {database}.t (id INT, dt STRING) USING iceberg PARTITIONED BY (dt) COMMENT 'orders'")
    spark.sql(f"INSERT INTO {database}.t VALUES (1, 'a'), (2, 'b')")
    created = client.get_table(name, "t")
    assert created.tableType == "EXTERNAL_TABLE"
    assert created.parameters["table_type"] == "ICEBERG"

    spark.sql(f"ALTER TABLE {database}.t ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"ALTER TABLE {database}.t ADD COLUMN note STRING COMMENT 'free text' AFTER id")
    spark.sql(f"ALTER TABLE {database}.t ADD PARTITION FIELD truncate(2, note)")
    spark.sql(f"ALTER TABLE {database}.t SET TBLPROPERTIES ('team' = 'shop')")
    spark.sql(f"INSERT INTO {database}.t VALUES (3, 'third', 'c')")
    spark.sql(f"UPDATE {database}.t SET note = 'first' WHERE id = 1")
    spark.sql(f"DELETE FROM {database}.t WHERE dt = 'b'")

    altered = client.get_table(name, "t")
    assert [(column.name, column.type) for column in altered.sd.cols] == [
        ("id", "bigint"),
        ("note", "string"),
        ("dt", "string"),
    ]
    assert altered.sd.cols[1].comment == "free text"
    assert altered.parameters["previous_metadata_location"] != altered.parameters["metadata_location"]
    assert local_path(altered.parameters["metadata_location"]).exists()
    assert spark.properties(f"{database}.t")["team"] == "shop"
    assert spark.sql(f"SELECT * FROM {database}.t ORDER BY id") == [[1, "first", "a"], [3, "third", "c"]]
    assert spark.sql(f"SELECT operation FROM {database}.t.history h JOIN {database}.t.snapshots USING (snapshot_id)")

    spark.sql(f"ALTER TABLE {database}.t RENAME TO {database.partition('.')[2]}.renamed")
    assert spark.value(f"SELECT count(*) FROM {database}.renamed") == 2
    spark.sql(f"CREATE OR REPLACE TABLE {database}.renamed USING iceberg AS SELECT 7 AS seven")
    assert spark.sql(f"SELECT * FROM {database}.renamed") == [[7]]
    assert [column.name for column in client.get_table(name, "renamed").sd.cols] == ["seven"]

    spark.sql(f"DROP TABLE {database}.renamed PURGE")
    with pytest.raises(NoSuchObjectException):
        client.get_table(name, "renamed")


def test_views(spark: SparkSession, database: str, client: ThriftClient) -> None:
    spark.sql(f"CREATE TABLE {database}.t USING iceberg AS SELECT 1 AS id")
    spark.sql(f"CREATE VIEW {database}.v AS SELECT id + 1 AS more FROM {database}.t")
    spark.sql(f"CREATE OR REPLACE VIEW {database}.v AS SELECT id + 2 AS more FROM {database}.t")
    assert spark.sql(f"SELECT * FROM {database}.v") == [[3]]
    assert client.get_table(database.partition(".")[2], "v").parameters["table_type"] == "ICEBERG-VIEW"
    assert spark.column(f"SHOW VIEWS IN {database}", 1) == ["v"]
    spark.sql(f"DROP VIEW {database}.v")
    assert spark.column(f"SHOW VIEWS IN {database}", 1) == []


def test_a_table_registered_anew_has_its_history(spark: SparkSession, database: str, client: ThriftClient) -> None:
    catalog, _, name = database.partition(".")
    spark.sql(f"CREATE TABLE {database}.t USING iceberg AS SELECT 1 AS id")
    metadata = client.get_table(name, "t").parameters["metadata_location"]
    spark.sql(f"DROP TABLE {database}.t")
    spark.sql(f"CALL {catalog}.system.register_table(table => '{name}.t', metadata_file => '{metadata}')")
    assert spark.sql(f"SELECT * FROM {database}.t") == [[1]]


def test_a_commit_without_its_base_is_refused(spark: SparkSession, database: str, client: ThriftClient) -> None:
    """What the other one committed since is kept, and retried upon, whichever way commits are guarded."""
    spark.sql(f"CREATE TABLE {database}.t (id INT) USING iceberg")
    spark.python(
        "tables = spark._jvm.org.apache.iceberg.spark.Spark3Util\n"
        f"first, second = (tables.loadIcebergTable(spark._jsparkSession, '{database}.t') for _ in range(2))\n"
        "first.updateProperties().set('first', '1').commit()\n"
        "second.updateProperties().set('second', '2').commit()\n"
    )
    properties = spark.properties(f"{database}.t")
    assert (properties["first"], properties["second"]) == ("1", "2")


def test_two_writers_lose_no_commit(spark: SparkSession, database: str, client: ThriftClient) -> None:
    other = database.replace("1.", "2.", 1)
    spark.sql(f"CREATE TABLE {database}.t (writer STRING, number INT) USING iceberg TBLPROPERTIES ({RETRIES})")
    spark.python(
        f"""
from concurrent.futures import ThreadPoolExecutor

def append(database):
    for number in range({APPENDS}):
        spark.sql(f"INSERT INTO {{database}}.t VALUES ('{{database}}', {{number}})")

with ThreadPoolExecutor() as pool:
    list(pool.map(append, [{database!r}, {other!r}]))
"""
    )
    rows = sorted(map(tuple, spark.sql(f"SELECT writer, number FROM {database}.t")))
    assert rows == [(writer, number) for writer in (database, other) for number in range(APPENDS)]
    assert spark.value(f"SELECT count(DISTINCT snapshot_id) FROM {database}.t.history") == 2 * APPENDS
    assert spark.value(f"SELECT count(*) FROM {database}.t.snapshots WHERE parent_id IS NULL") == 1
    assert client.show_locks(ShowLocksRequest(dbname=database.partition(".")[2])).locks == []
