"""Hudi's sync to a Hive metastore: what its writer in Spark tells the server of a table, its partitions and columns."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from tests.spark.session import ROOT, SparkSession, require
from tests.support.target import Target, local_path

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def spark(
    class_path: Callable[..., list[Path]], target: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    (jar,) = class_path(BUNDLE, exclusions=("*:*",))
    uri = f"thrift://{target.host}:{target.port}"
    with hudi_session(uri, jar, target.warehouse(), tmp_path_factory.mktemp("hudi")) as session:
        yield session


@contextmanager
def hudi_session(uri: str, jar: Path, warehouse: object, directory: Path) -> Iterator[SparkSession]:
    """A session with Hudi's bundle, its catalog in place of Spark's."""
    require("3.5")
    settings = {
        "spark_jars": str(jar),
        "spark_serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark_kryo_registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark_sql_extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    }
    with SparkSession("3.5", uri, str(warehouse), directory, **settings) as session:
        session.sql("SET spark.sql.catalog.spark_catalog = org.apache.spark.sql.hudi.catalog.HoodieCatalog")
        yield session


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    name = f"hudi_{next(NUMBERS)}"
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    spark.sql(f"DROP DATABASE {name} CASCADE")


@pytest.fixture
def client(target: Target) -> Iterator[ThriftClient]:
    """What another engine sees of the tables."""
    with target.connect() as client:
        yield client


def write(spark: SparkSession, query: str, table: str, location: Path, **options: str) -> None:
    """Writes what a query answers into the table at `location`, which Hudi then tells the metastore of as `table`."""
    database, name = table.split(".")
    uris = spark.python("result = spark.conf.get('spark.hadoop.hive.metastore.uris')")
    settings = {
        "hoodie.table.name": name,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "dt",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.reconcile.schema": "true",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.insert.shuffle.parallelism": "2",
        "hoodie.datasource.hive_sync.enable": "true",
        "hoodie.datasource.hive_sync.mode": "hms",
        "hoodie.datasource.hive_sync.metastore.uris": uris,
        "hoodie.datasource.hive_sync.database": database,
        "hoodie.datasource.hive_sync.table": name,
        "hoodie.datasource.hive_sync.partition_fields": "dt",
        **{f"hoodie.{key.replace('_', '.')}": value for key, value in options.items()},
    }
    spark.python(
        f"spark.sql({query!r}).write.format('hudi').options(**{settings!r}).mode('append').save({str(location)!r})"
    )


def columns(client: ThriftClient, table: str) -> dict[str, str]:
    """The columns that aren't Hudi's own, and their types."""
    database, name = table.split(".")
    found = {column.name: column.type for column in client.get_table(database, name).sd.cols}
    return {name: kind for name, kind in found.items() if not name.startswith("_hoodie_")}


def partitions(client: ThriftClient, table: str) -> list[str]:
    return sorted(client.get_partition_names(*table.split("."), -1))


def test_a_table_and_what_becomes_of_it(
    spark: SparkSession, database: str, client: ThriftClient, tmp_path: Path
) -> None:
    table, location = f"{database}.orders", tmp_path / "orders"
    write(spark, "SELECT 1 AS id, 1 AS ts, 'a' AS dt UNION ALL SELECT 2, 1, 'b'", table, location)
    created = client.get_table(database, "orders")
    assert created.tableType == "EXTERNAL_TABLE"
    assert local_path(created.sd.location) == location
    assert created.sd.inputFormat == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    assert [key.name for key in created.partitionKeys] == ["dt"]
    assert columns(client, table) == {"id": "int", "ts": "int"}
    assert partitions(client, table) == ["dt=a", "dt=b"]
    synced = created.parameters["last_commit_time_sync"]

    write(spark, "SELECT 3 AS id, 2 AS ts, nullif('third', '') AS note, 'c' AS dt", table, location)
    assert columns(client, table) == {"id": "int", "ts": "int", "note": "string"}
    assert partitions(client, table) == ["dt=a", "dt=b", "dt=c"]
    assert client.get_table(database, "orders").parameters["last_commit_time_sync"] > synced
    rows = spark.sql(f"SELECT id, note, dt FROM {table} ORDER BY id")
    assert rows == [[1, None, "a"], [2, None, "b"], [3, "third", "c"]]

    dropping = {"datasource_write_operation": "delete_partition", "datasource_write_partitions_to_delete": "dt=b"}
    write(spark, "SELECT 2 AS id, 1 AS ts, nullif('', '') AS note, 'b' AS dt", table, location, **dropping)
    assert partitions(client, table) == ["dt=a", "dt=c"]
    assert spark.column(f"SELECT id FROM {table} ORDER BY id") == [1, 3]

    write(spark, "SELECT 2 AS id, 3 AS ts, nullif('again', '') AS note, 'b' AS dt", table, location)
    assert partitions(client, table) == ["dt=a", "dt=b", "dt=c"]
    assert spark.sql(f"SELECT note FROM {table} WHERE dt = 'b'") == [["again"]]


def test_the_views_of_a_table_merged_on_read(
    spark: SparkSession, database: str, client: ThriftClient, tmp_path: Path
) -> None:
    table, location = f"{database}.clicks", tmp_path / "clicks"
    merged = {"datasource_write_table_type": "MERGE_ON_READ"}
    write(spark, "SELECT 1 AS id, 1 AS ts, 'old' AS note, 'a' AS dt", table, location, **merged)
    write(spark, "SELECT 1 AS id, 2 AS ts, 'new' AS note, 'a' AS dt", table, location, **merged)
    names = client.get_all_tables(database)
    assert {"clicks_ro", "clicks_rt"} <= set(names)
    for name in names:
        assert partitions(client, f"{database}.{name}") == ["dt=a"]
    assert spark.value(f"SELECT note FROM {table}_ro") == "old"
    assert spark.value(f"SELECT note FROM {table}_rt") == "new"


def test_a_table_of_spark_sql(spark: SparkSession, database: str, client: ThriftClient) -> None:
    table = f"{database}.t"
    spark.sql(
        f"CREATE TABLE {table} (id INT, name STRING, dt STRING) USING hudi PARTITIONED BY (dt) "
        "TBLPROPERTIES (primaryKey = 'id')"
    )
    spark.sql(f"INSERT INTO {table} VALUES (1, 'one', 'a'), (2, 'two', 'b')")
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (note STRING)")
    spark.sql(f"INSERT INTO {table} (id, name, note, dt) VALUES (3, 'three', 'more', 'c')")
    spark.sql(f"UPDATE {table} SET name = 'uno' WHERE id = 1")
    assert columns(client, table) == {"id": "int", "name": "string", "note": "string"}
    assert partitions(client, table) == ["dt=a", "dt=b", "dt=c"]
    spark.sql(f"ALTER TABLE {table} DROP PARTITION (dt = 'b')")
    assert partitions(client, table) == ["dt=a", "dt=c"]
    spark.sql(f"ALTER TABLE {table} RENAME TO {database}.renamed")
    rows = spark.sql(f"SELECT id, name, note, dt FROM {database}.renamed ORDER BY id")
    assert rows == [[1, "uno", None, "a"], [3, "three", "more", "c"]]
    spark.sql(f"DROP TABLE {database}.renamed")
    assert client.get_all_tables(database) == []


def test_what_metastore_spark_reads_and_writes_goes_through_hudi(
    spark: SparkSession, database: str, client: ThriftClient, tmp_path: Path
) -> None:
    table, location = f"{database}.orders", tmp_path / "orders"
    write(spark, "SELECT 1 AS id, 1 AS ts, 'a' AS dt UNION ALL SELECT 2, 1, 'b'", table, location)
    before = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom lake.spark import read, write\n"
    first = spark.value(f"SELECT max(_hoodie_commit_time) FROM {table}")
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.datasource.write.precombine.field": "ts"}
    for values, operation in (("3, 1, 'a'", "append"), ("4, 1, 'b'", "overwrite")):
        query = f"SELECT * FROM VALUES ({values}) AS t (id, ts, dt)"
        spark.python(f"{before}write(spark.sql({query!r}), {table!r}, operation={operation!r}, options={options!r})")

    def ids(**how: object) -> list[int]:
        rows = f"read(spark, {table!r}, **{how!r}).collect()"
        found: list[int] = spark.python(f"{before}result = [row.id for row in {rows}]")
        return sorted(found)

    assert ids() == [4]
    assert ids(as_of=first) == [1, 2]
    assert ids(as_of=first, filter="dt = 'b'") == [2]
    assert ids(view="read_optimized") == [4]
    assert ids(incremental=(first, None)) == [4]
