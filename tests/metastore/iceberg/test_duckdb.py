"""DuckDB's Iceberg extension on the REST catalog."""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog

from tests.metastore.iceberg.conftest import Catalog
from tests.support.duck import attached


@pytest.fixture(scope="module")
def duck(rest: Catalog) -> Iterator[duckdb.DuckDBPyConnection]:
    with attached(rest.uri) as connection:
        yield connection


def test_duckdb_reads_and_writes(rest: Catalog, duck: duckdb.DuckDBPyConnection) -> None:
    namespace = rest.namespace()
    hive = HiveCatalog("hive", uri=rest.server.uri)
    duck.execute(f"CREATE TABLE lake.{namespace}.made AS SELECT i AS id, 'n' || i AS name FROM range(10) AS r(i)")
    duck.execute(f"INSERT INTO lake.{namespace}.made VALUES (10, 'ten')")
    assert duck.execute(f"SELECT count(*), max(id) FROM lake.{namespace}.made").fetchone() == (11, 10)
    table = hive.load_table((namespace, "made"))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(11))
    table.append(pa.table({"id": [11], "name": ["eleven"]}))
    assert duck.execute(f"SELECT name FROM lake.{namespace}.made WHERE id = 11").fetchone() == ("eleven",)
    assert duck.execute(f"DELETE FROM lake.{namespace}.made WHERE id < 5").fetchone() == (5,)
    assert duck.execute(f"SELECT count(*) FROM lake.{namespace}.made").fetchone() == (7,)
    duck.execute(f"CREATE TABLE lake.{namespace}.plain (id BIGINT)")
    tables = duck.execute(f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{namespace}'").fetchall()
    assert sorted(tables) == [("made",), ("plain",)]
    duck.execute(f"DROP TABLE lake.{namespace}.plain")
    assert rest.ask("GET", f"hive/namespaces/{namespace}/tables")["identifiers"] == [
        {"namespace": [namespace], "name": "made"}
    ]


def test_a_transaction_of_two_tables(rest: Catalog, duck: duckdb.DuckDBPyConnection) -> None:
    namespace = rest.namespace()
    for name in ("a", "b"):
        duck.execute(f"CREATE TABLE lake.{namespace}.{name} (id BIGINT)")
    duck.execute("BEGIN")
    duck.execute(f"INSERT INTO lake.{namespace}.a VALUES (1)")
    duck.execute(f"INSERT INTO lake.{namespace}.b VALUES (2)")
    duck.execute("COMMIT")
    found = duck.execute(f"SELECT a.id, b.id FROM lake.{namespace}.a, lake.{namespace}.b").fetchall()
    assert found == [(1, 2)]
