"""Engines that write Iceberg's own tables by the REST catalog: each table reads the same in all of them."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException

from metastore.iceberg.routes import BASE
from tests.interop import iceberg_engines as engines
from tests.interop.test_iceberg import RUNTIME
from tests.spark.session import SparkError
from tests.support.exposition import http_address
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string())])

Pairs = list[tuple[int, str]]


def table_of(rows: Pairs) -> pa.Table:
    return pa.Table.from_pylist([{"id": number, "part": part} for number, part in rows], schema=SCHEMA)


class Writer(Protocol):
    """An engine that writes. A table is named `namespace.table`."""

    def create(self, table: str, rows: Pairs) -> None: ...
    def append(self, table: str, rows: Pairs) -> None: ...
    def overwrite(self, table: str, part: str, rows: Pairs) -> None:
        """Replaces the rows of a part."""

    def rows(self, table: str) -> Pairs: ...
    def append_beside(self, table: str, rows: Pairs, between: Callable[[], None]) -> bool:
        """Appends rows; `between` is called once the engine has read the table's state. Whether it succeeded."""


class PyIceberg:
    def __init__(self, uri: str) -> None:
        self.catalog = RestCatalog("writers", uri=uri)

    def create(self, table: str, rows: Pairs) -> None:
        self.catalog.create_table(table, SCHEMA).append(table_of(rows))

    def append(self, table: str, rows: Pairs) -> None:
        self.catalog.load_table(table).append(table_of(rows))

    def overwrite(self, table: str, part: str, rows: Pairs) -> None:
        self.catalog.load_table(table).overwrite(table_of(rows), overwrite_filter=f"part = '{part}'")

    def rows(self, table: str) -> Pairs:
        return sorted((row["id"], row["part"]) for row in self.catalog.load_table(table).scan().to_arrow().to_pylist())

    def append_beside(self, table: str, rows: Pairs, between: Callable[[], None]) -> bool:
        loaded = self.catalog.load_table(table)
        between()
        try:
            loaded.append(table_of(rows))
        except CommitFailedException:
            return False
        return True


class DuckDB:
    def __init__(self, uri: str) -> None:
        self.connection = engines.attached(uri)

    def create(self, table: str, rows: Pairs) -> None:
        self.connection.execute(f"CREATE TABLE lake.{table} (id BIGINT, part VARCHAR)")
        self.append(table, rows)

    def append(self, table: str, rows: Pairs) -> None:
        self.connection.execute(f"INSERT INTO lake.{table} VALUES {values(rows)}")

    def overwrite(self, table: str, part: str, rows: Pairs) -> None:
        self.connection.execute("BEGIN")
        self.connection.execute(f"DELETE FROM lake.{table} WHERE part = '{part}'")
        self.append(table, rows)
        self.connection.execute("COMMIT")

    def rows(self, table: str) -> Pairs:
        return sorted(self.connection.execute(f"SELECT id, part FROM lake.{table}").fetchall())

    def append_beside(self, table: str, rows: Pairs, between: Callable[[], None]) -> bool:
        self.connection.execute("BEGIN")
        self.append(table, rows)
        between()
        try:
            self.connection.execute("COMMIT")
        except duckdb.Error:
            return False
        return True


class Spark:
    def __init__(self, engine: engines.Spark) -> None:
        self.session = engine.session

    def create(self, table: str, rows: Pairs) -> None:
        self.session.sql(f"CREATE TABLE ice.{table} (id BIGINT, part STRING) PARTITIONED BY (part)")
        self.append(table, rows)

    def append(self, table: str, rows: Pairs) -> None:
        self.session.sql(f"INSERT INTO ice.{table} VALUES {values(rows)}")

    def overwrite(self, table: str, part: str, rows: Pairs) -> None:
        self.session.python(
            f"made = spark.sql({f'SELECT * FROM VALUES {values(rows)} AS v(id, part)'!r})\n"
            "from pyspark.sql.functions import col\n"
            f"made.writeTo({f'ice.{table}'!r}).overwrite(col('part') == {part!r})\n"
            "result = None"
        )

    def rows(self, table: str) -> Pairs:
        return sorted((number, part) for number, part in self.session.sql(f"SELECT id, part FROM ice.{table}"))

    def append_beside(self, table: str, rows: Pairs, between: Callable[[], None]) -> bool:
        """The plan is analysed, and so has the table's state, before the other writer commits."""
        query = f"SELECT * FROM VALUES {values(rows)} AS v(id, part)"
        self.session.python(f"spark.kept = spark.sql({query!r}).writeTo({f'ice.{table}'!r})\nresult = None")
        between()
        try:
            self.session.python("spark.kept.append()\nresult = None")
        except SparkError:
            return False
        return True


def values(rows: Pairs) -> str:
    return ", ".join(f"({number}, '{part}')" for number, part in rows)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    data = tmp_path_factory.mktemp("writers") / "data"
    with MetastoreServer(data, "--http-port", "0", "--workers", "1") as server:
        yield server


@pytest.fixture(scope="module")
def writers(
    server: MetastoreServer, class_path: Callable[..., list[Path]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Writer]]:
    (jar,) = class_path(RUNTIME)
    uri = f"{http_address(server)}{BASE}"
    with engines.spark(uri, server.uri, jar, tmp_path_factory.mktemp("writers_spark")) as spark:
        yield {"pyiceberg": PyIceberg(uri), "duckdb": DuckDB(uri), "spark": Spark(spark)}


@pytest.fixture
def table(server: MetastoreServer) -> str:
    namespace = f"writers_{next(NUMBERS)}"
    RestCatalog("writers", uri=f"{http_address(server)}{BASE}").create_namespace(namespace)
    return f"{namespace}.t"


def check(writers: dict[str, Writer], table: str, expected: Any) -> None:
    for name, writer in writers.items():
        assert writer.rows(table) == sorted(expected), name


@pytest.mark.parametrize("first", ["pyiceberg", "duckdb", "spark"])
def test_all_write_one_table(writers: dict[str, Writer], table: str, first: str) -> None:
    writers[first].create(table, [(1, "a"), (2, "b")])
    expected = [(1, "a"), (2, "b")]
    check(writers, table, expected)
    for number, (name, writer) in enumerate(writers.items(), 10):
        writer.append(table, [(number, name)])
        expected.append((number, name))
        check(writers, table, expected)
    for number, writer in enumerate(writers.values(), 20):
        writer.overwrite(table, "a", [(number, "a"), (number + 10, "a")])
        expected = [row for row in expected if row[1] != "a"] + [(number, "a"), (number + 10, "a")]
        check(writers, table, expected)


@pytest.mark.parametrize("second", ["pyiceberg", "duckdb", "spark"])
def test_appends_that_meet(writers: dict[str, Writer], table: str, second: str) -> None:
    writers["pyiceberg"].create(table, [(1, "a")])
    succeeded = writers[second].append_beside(table, [(2, "b")], lambda: writers["pyiceberg"].append(table, [(3, "c")]))
    check(writers, table, [(1, "a"), (3, "c"), *([(2, "b")] if succeeded else [])])
    writers[second].append(table, [(4, "d")])
    assert (4, "d") in writers["duckdb"].rows(table)
