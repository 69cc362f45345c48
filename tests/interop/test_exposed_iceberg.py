"""Lake tables as Iceberg's own runtime reads them in Spark, by the REST catalog."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake.client.lake_types import Completion
from lake.protocol.lake import ReopenPartitionsRequest
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.iceberg_overlays import write_overlays
from lake.tables.lake import LakeClient, LakeTable
from metastore.iceberg.routes import BASE
from tests.interop.test_iceberg import CATALOG, RUNTIME
from tests.lake.client.test_column_ids import alter
from tests.spark.session import SparkSession, require
from tests.support import builders
from tests.support.exposition import http_address
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("exposed") / "data", "--http-port", "0", "--workers", "1") as server:
        yield server


@pytest.fixture(scope="module")
def lake(server: MetastoreServer) -> Iterator[LakeClient]:
    with LakeClient(server.uri) as client:
        yield client


@pytest.fixture(scope="module")
def spark(
    class_path: Callable[..., list[Path]], server: MetastoreServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    require("3.5")
    (jar,) = class_path(RUNTIME)
    settings = {
        "spark_jars": str(jar),
        "spark_sql_extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark_sql_session_timeZone": "UTC",
        "spark_sql_catalog_ice": CATALOG,
        "spark_sql_catalog_ice_type": "rest",
        "spark_sql_catalog_ice_uri": f"{http_address(server)}{BASE}",
        "spark_sql_catalog_ice_cache-enabled": "false",
        "spark_sql_catalog_byname": CATALOG,
        "spark_sql_catalog_byname_type": "hive",
        "spark_sql_catalog_byname_uri": server.uri,
        "spark_sql_catalog_byname_cache-enabled": "false",
    }
    directory = tmp_path_factory.mktemp("exposed_spark")
    with SparkSession("3.5", server.uri, str(directory / "warehouse"), directory, **settings) as session:
        yield session


def keyed(lake: LakeClient, *columns: str, keys: tuple[str, ...] = ("part:string",), **properties: str) -> LakeTable:
    database = f"exposed_spark_{next(NUMBERS)}"
    key = ",".join(["id", *(each.partition(":")[0] for each in keys)])
    own = {"primary-key": key, "iceberg.expose": "true", **properties}
    made = builders.table(database, "t", keys=keys, sd=builders.parquet("id:bigint", *columns), parameters=own)
    lake.call(lambda client: client.create_database(builders.database(database)))
    lake.call(lambda client: client.create_table(made))
    return lake.table(f"{database}.t")


def rows(*ids: int, part: str = "a", value: str = "x") -> pa.Table:
    values = {"id": pa.array(ids, pa.int64()), "b": [f"{value}{each}" for each in ids], "part": [part] * len(ids)}
    return pa.table(values)


def check(spark: SparkSession, table: LakeTable, moment: str = "", **scan: Any) -> None:
    found = spark.sql(f"SELECT * FROM ice.{table.name} {moment} ORDER BY id")
    expected = sorted(table.scan(**scan).to_arrow().to_pylist(), key=lambda row: row["id"])
    assert found == [list(row.values()) for row in expected]
    assert spark.value(f"SELECT count(*) FROM ice.{table.name} {moment}") == len(expected)


def test_rows_and_moments(spark: SparkSession, lake: LakeClient) -> None:
    table = keyed(lake, "b:string")
    check(spark, table)
    instant = table.upsert(rows(1, 2, 3)).instant
    assert instant is not None
    check(spark, table)
    saved = table.begin("savepoint", timestamp=instant.timestamp, state="inflight").instant
    table.complete(saved, Completion())
    table.upsert(rows(2, 4, part="10:30/x", value="y"))
    table.delete(rows(1).select(["id", "part"]))
    check(spark, table)
    check(spark, table, "VERSION AS OF 1", as_of=1)
    check(spark, table, f"VERSION AS OF 'savepoint-{instant.timestamp}'", as_of=1)
    assert spark.sql(f"SELECT id FROM ice.{table.name} WHERE part = '10:30/x' ORDER BY id") == [[2], [4]]
    request = ReopenPartitionsRequest(table.reference, names=["part=a"])
    lake.call(lambda client: client.lake_reopen_partitions(request))
    check(spark, table)
    check(spark, table, "VERSION AS OF 'uncommitted'", include_uncommitted=True)
    assert spark.sql(f"SELECT ref.name FROM ice.{table.name}.refs ref WHERE name = 'main'") == [["main"]]
    assert spark.value(f"SELECT sum(record_count) FROM ice.{table.name}.files") == 2


def test_columns_that_change(spark: SparkSession, lake: LakeClient) -> None:
    table = keyed(lake, "a:int", "b:string", keys=())
    table.upsert(pa.table({"id": pa.array([1], pa.int64()), "a": pa.array([5], pa.int32()), "b": ["one"]}))
    alter(table, "id:bigint", "x:int", "b:string")
    check(spark, table)
    alter(table, "id:bigint", "b:string")
    alter(table, "id:bigint", "b:string", "a:string")
    table.upsert(pa.table({"id": pa.array([2], pa.int64()), "b": ["two"], "a": ["new"]}))
    check(spark, table)


def test_nested_columns(spark: SparkSession, lake: LakeClient) -> None:
    table = keyed(lake, "l:array<int>", "m:map<string,bigint>", "s:struct<a:int,b:array<string>>", keys=())
    kinds = {
        "id": pa.int64(),
        "l": pa.list_(pa.int32()),
        "m": pa.map_(pa.string(), pa.int64()),
        "s": pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]),
    }
    row = {"id": 1, "l": [1, None], "m": [("k", 2)], "s": {"a": 3, "b": ["x", None]}}
    table.upsert(pa.Table.from_pylist([row], schema=pa.schema([*kinds.items()])))
    found = spark.sql(f"SELECT id, to_json(l), to_json(m), to_json(s) FROM ice.{table.name}")
    assert found == [[1, "[1,null]", '{"k":2}', '{"a":3,"b":["x",null]}']]


def test_merge_on_read(spark: SparkSession, lake: LakeClient) -> None:
    table = keyed(lake, "b:string", **{"table-type": "merge-on-read"})
    table.upsert(rows(1, 2))
    table.upsert(rows(2, 3, value="y"))
    planned = plan_compaction(table)
    assert planned.instant is not None
    table.upsert(rows(3, 4, value="z"))
    run_compaction(table, planned.instant.timestamp)
    check(spark, table, as_of=2)
    assert spark.properties(f"ice.{table.name}")["timeline.lag-positions"] == "2"


def test_log_files_between_compactions(spark: SparkSession, lake: LakeClient) -> None:
    table = keyed(lake, "b:string", **{"table-type": "merge-on-read", "bucket": "2"})
    table.upsert(rows(*range(10)))
    table.upsert(rows(3, 4, 20, value="y"))
    table.delete(rows(5).select(["id", "part"]))
    write_overlays(table)
    check(spark, table)
    assert spark.value(f"SELECT sum(record_count) FROM ice.{table.name}.delete_files") == 3
    name = "byname.{}.`{}@iceberg`".format(*table.name.split("."))
    assert spark.value(f"SELECT count(*) FROM {name} WHERE id = 5 OR b = 'y3'") == 1
    table.delete(rows(*range(10)).select(["id", "part"]))
    write_overlays(table)
    check(spark, table)
    check(spark, table, "VERSION AS OF 3", as_of=3)


def test_changes_are_refused(spark: SparkSession, lake: LakeClient) -> None:
    table = keyed(lake, "b:string")
    table.upsert(rows(1))
    for statement in (
        "INSERT INTO {} VALUES (2, 'b', 'a')",
        "DELETE FROM {} WHERE id = 1",
        "ALTER TABLE {} ADD COLUMN c INT",
        "DROP TABLE {}",
    ):
        with pytest.raises(Exception, match=r"Forbidden|for reading"):
            spark.sql(statement.format(f"ice.{table.name}"))
    check(spark, table)


def test_hive_catalog_reads_by_name(spark: SparkSession, lake: LakeClient) -> None:
    table = keyed(lake, "b:string")
    for number in range(1, 4):
        table.upsert(rows(number, 9, value=f"{number}:"))
        name = "byname.{}.`{}@iceberg`".format(*table.name.split("."))
        found = spark.sql(f"SELECT * FROM {name} ORDER BY id")
        assert found == sorted([*each.values()] for each in table.scan().to_arrow().to_pylist())
    assert len(spark.sql(f"SELECT * FROM {name} VERSION AS OF 1")) == 2
    for statement in ("INSERT INTO {} VALUES (5, 'b', 'a')", "DELETE FROM {} WHERE id = 1", "DROP TABLE {}"):
        with pytest.raises(Exception, match="for reading"):
            spark.sql(statement.format(name))
    assert spark.value(f"SELECT count(*) FROM {name}") == table.scan().to_arrow().num_rows


def test_orc_files_of_hive(spark: SparkSession, lake: LakeClient) -> None:
    database = f"exposed_spark_{next(NUMBERS)}"
    lake.call(lambda client: client.create_database(builders.database(database)))
    columns = "id BIGINT, name STRING, at TIMESTAMP, price DECIMAL(10,2)"
    spark.sql(
        f"CREATE TABLE {database}.t ({columns}, part STRING) USING orc PARTITIONED BY (part)"
        " TBLPROPERTIES ('iceberg.expose' = 'true')"
    )
    values = "(1, 'x', timestamp'2026-01-31 12:30:00', 1.25, 'a'), (2, NULL, NULL, NULL, 'b')"
    spark.sql(f"INSERT INTO {database}.t VALUES {values}")
    own = spark.sql(f"SELECT id, name, cast(at AS STRING), price, part FROM {database}.t ORDER BY id")
    found = spark.sql(f"SELECT id, name, cast(at AS STRING), price, part FROM ice.{database}.t ORDER BY id")
    assert found == own and len(found) == 2
    assert spark.value(f"SELECT sum(record_count) FROM ice.{database}.t.files") == 2
    assert spark.sql(f"SELECT id FROM ice.{database}.t WHERE part = 'b'") == [[2]]


def test_files_are_skipped(spark: SparkSession, lake: LakeClient) -> None:
    """A file that is gone isn't missed by a query whose filter it can't match."""
    table = keyed(lake, "b:string")
    for part, number in (("a", 1), ("b", 1_000)):
        table.upsert(rows(number, part=part, value=part * 20))
    check(spark, table)  # footers are looked at when a position is shown first
    [gone] = Path(table.location().removeprefix("file:")).rglob("part=b/*.parquet")
    gone.unlink()
    for condition in ("id < 500", f"b < '{'a' * 21}'", "id = 1"):
        assert spark.sql(f"SELECT id FROM ice.{table.name} WHERE {condition}") == [[1]]
