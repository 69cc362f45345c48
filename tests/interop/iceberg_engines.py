"""Engines that read Iceberg tables by a REST catalog, each behind the same few calls."""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.expressions import EqualTo

from tests.interop import trino as trinos
from tests.spark.session import SparkSession, require
from tests.support.duck import attached

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-engines/bin/python"
PROGRAM = Path(__file__).with_name("programs") / "iceberg_engine.py"

COLUMNS = ("id", "name", "price", "day", "part")
"""Of the tables that are read here."""

Row = tuple[Any, ...]
Jars = Callable[..., list[Path]]


def plain(values: Mapping[str, Any]) -> Row:
    """A row that engines agree about: integers and NULL as they are, all else as text."""
    some = (values[name] for name in COLUMNS)
    return tuple(value if value is None or isinstance(value, int) else str(value) for value in some)


def of_arrow(table: pa.Table) -> list[Row]:
    return sorted((plain(row) for row in table.to_pylist()), key=str)


class Engine:
    """`place`: where the warehouse of the engine's tables is, `local` or `s3`. `lacks`: what it can't do, and why."""

    place: ClassVar[str] = "local"
    lacks: ClassVar[Mapping[str, str]] = {}

    def needs(self, ability: str) -> None:
        """Skips the test with the reason if the engine lacks this."""
        if reason := self.lacks.get(ability):
            pytest.skip(reason)

    def tables(self, namespace: str) -> set[str]:
        """The names of a namespace's tables."""
        raise NotImplementedError

    def rows(self, table: str, at: int | str | None = None, where: tuple[str, Any] | None = None) -> list[Row]:
        """A table's rows, sorted. `at`: a snapshot's id, or the name of a branch or tag. `where`: a column's value."""
        raise NotImplementedError


class PyIceberg(Engine):
    def __init__(self, uri: str) -> None:
        self.catalog = RestCatalog("matrix", uri=uri)

    def tables(self, namespace: str) -> set[str]:
        return {name for _, name in self.catalog.list_tables(namespace)}

    def snapshot(self, table: str, at: int | str | None) -> int | None:
        if not isinstance(at, str):
            return at
        found = self.catalog.load_table(table).snapshot_by_name(at)
        assert found is not None, at
        return found.snapshot_id

    def rows(self, table: str, at: int | str | None = None, where: tuple[str, Any] | None = None) -> list[Row]:
        condition = EqualTo(*where) if where else None
        scan = self.catalog.load_table(table).scan(snapshot_id=self.snapshot(table, at))
        return of_arrow((scan.filter(condition) if condition else scan).to_arrow())


class EngineError(Exception):
    """An engine of another environment failed; the text is its exception's."""


class Remote(Engine):
    """An engine of `.venv-engines`, in a process of its own. `name`: as iceberg_engine.py takes it."""

    def __init__(self, name: str, uri: str, *options: str) -> None:
        if not PYTHON.exists():
            pytest.skip("the engines aren't set up: tools/setup.sh --engines")
        command = [str(PYTHON), str(PROGRAM), name, uri, *options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise EngineError(answer["error"])
        return answer["result"]

    def tables(self, namespace: str) -> set[str]:
        return set(self._ask(tables=namespace))

    def rows(self, table: str, at: int | str | None = None, where: tuple[str, Any] | None = None) -> list[Row]:
        return sorted(map(tuple, self._ask(rows=table, at=at, where=where, columns=COLUMNS)), key=str)


class Polars(Remote):
    def __init__(self, uri: str) -> None:
        super().__init__("polars", uri)


class Daft(Remote):
    lacks: ClassVar[Mapping[str, str]] = {
        "names that come again": "Daft 0.7.26 can't read files from before a column was dropped and added again, "
        "in PyIceberg's own tables, too",
    }

    def __init__(self, uri: str) -> None:
        super().__init__("daft", uri)


class ClickHouse(Remote):
    """`storage`: the URL of the bucket."""

    place: ClassVar[str] = "s3"
    lacks: ClassVar[Mapping[str, str]] = {"refs": "ClickHouse reads snapshots by their ids alone"}

    def __init__(self, uri: str, storage: str) -> None:
        super().__init__("clickhouse", uri, "--storage", storage)


def literal(value: Any) -> str:
    return str(value) if isinstance(value, int) else "'{}'".format(str(value).replace("'", "''"))


def condition(where: tuple[str, Any] | None) -> str:
    return f" WHERE {where[0]} = {literal(where[1])}" if where else ""


class DuckDB(Engine):
    lacks: ClassVar[Mapping[str, str]] = {"refs": "DuckDB has no syntax for branches and tags"}

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self.connection = attached(uri)

    def tables(self, namespace: str) -> set[str]:
        # A connection keeps the first list that it got.
        with attached(self._uri) as connection:
            found = connection.execute(f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{namespace}'")
            return {name for (name,) in found.fetchall()}

    def rows(self, table: str, at: int | str | None = None, where: tuple[str, Any] | None = None) -> list[Row]:
        moment = "" if at is None else f" AT (VERSION => {at})"
        found = self.connection.execute(f"SELECT * FROM lake.{table}{moment}{condition(where)}")
        return of_arrow(found.to_arrow_table())


class Spark(Engine):
    def __init__(self, session: SparkSession) -> None:
        self.session = session

    def tables(self, namespace: str) -> set[str]:
        return set(self.session.column(f"SHOW TABLES IN ice.{namespace}", 1))

    def rows(self, table: str, at: int | str | None = None, where: tuple[str, Any] | None = None) -> list[Row]:
        moment = "" if at is None else f" VERSION AS OF {literal(at)}"
        found = self.session.sql(f"SELECT {', '.join(COLUMNS)} FROM ice.{table}{moment}{condition(where)}")
        return sorted((plain(dict(zip(COLUMNS, row, strict=True))) for row in found), key=str)


class Trino(Engine):
    place: ClassVar[str] = "s3"

    def __init__(self, engine: trinos.Trino) -> None:
        self._engine = engine

    def tables(self, namespace: str) -> set[str]:
        return set(self._engine.column(f"SHOW TABLES FROM ice.{namespace}"))

    def rows(self, table: str, at: int | str | None = None, where: tuple[str, Any] | None = None) -> list[Row]:
        version = f"BIGINT '{at}'" if isinstance(at, int) else literal(at)
        moment = "" if at is None else f" FOR VERSION AS OF {version}"
        found = self._engine.sql(f"SELECT {', '.join(COLUMNS)} FROM ice.{table}{moment}{condition(where)}")
        return sorted((plain(dict(zip(COLUMNS, row, strict=True))) for row in found), key=str)


@contextmanager
def spark(uri: str, thrift: str, jar: Path, directory: Path) -> Iterator[Spark]:
    """Iceberg's runtime in Spark 3.5."""
    require("3.5")
    settings = {
        "spark_jars": str(jar),
        "spark_sql_extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark_sql_session_timeZone": "UTC",
        "spark_sql_catalog_ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark_sql_catalog_ice_type": "rest",
        "spark_sql_catalog_ice_uri": uri,
        "spark_sql_catalog_ice_cache-enabled": "false",
    }
    with SparkSession("3.5", thrift, str(directory / "warehouse"), directory, **settings) as session:
        yield Spark(session)


@contextmanager
def trino(uri: str, settings: Mapping[str, str], jars: Jars, directory: Path) -> Iterator[Trino]:
    """The newer Trino. `settings`: of the storage."""
    if (reason := trinos.missing("476")) is not None:
        pytest.skip(reason)
    own = {"iceberg.catalog.type": "rest", "iceberg.rest-catalog.uri": uri, "iceberg.rest-catalog.warehouse": "hive"}
    catalogs = {"ice": {**own, **settings}}
    with trinos.running("476", jars(*trinos.ICEBERG), directory, catalogs, connector="iceberg") as engine:
        yield Trino(engine)
