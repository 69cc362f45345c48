"""Reads Iceberg tables with an engine of `.venv-engines`: a request is a line of JSON, and so is its answer.

    {"tables": "shop"}                                                    → {"result": ["orders"]}
    {"rows": "shop.orders", "at": 2, "where": ["id", 1], "columns": ["id"]} → {"result": [[1]]}

Values are integers, null, or text. An error is {"error": its text}.
"""

import argparse
import json
import os
import sys
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog


class ByPyIceberg:
    """Lists tables and finds snapshots by PyIceberg, as Polars and Daft do. `at`: an id, or the name of a ref."""

    def __init__(self, uri: str) -> None:
        self._catalog = RestCatalog("engine", uri=uri)

    def tables(self, namespace: str) -> list[str]:
        return [name for _, name in self._catalog.list_tables(namespace)]

    def of(self, table: str, at: int | str | None) -> tuple[Any, int | None]:
        loaded = self._catalog.load_table(table)
        if not isinstance(at, str):
            return loaded, at
        snapshot = loaded.snapshot_by_name(at)
        if snapshot is None:
            raise ValueError(f"{table} has no {at}")
        return loaded, snapshot.snapshot_id


class Polars(ByPyIceberg):
    def rows(self, table: str, at: int | str | None, where: tuple[str, Any] | None) -> pa.Table:
        import polars

        loaded, snapshot = self.of(table, at)
        frame = polars.scan_iceberg(loaded, snapshot_id=snapshot)
        return (frame.filter(polars.col(where[0]) == where[1]) if where else frame).collect().to_arrow()


class Daft(ByPyIceberg):
    def rows(self, table: str, at: int | str | None, where: tuple[str, Any] | None) -> pa.Table:
        import daft

        loaded, snapshot = self.of(table, at)
        frame = daft.read_iceberg(loaded, snapshot_id=snapshot)
        return (frame.where(daft.col(where[0]) == where[1]) if where else frame).to_arrow()


class ClickHouse:
    """chDB, which is ClickHouse in the process of its user. `storage`: its bucket's URL."""

    def __init__(self, uri: str, storage: str) -> None:
        from chdb.session import Session

        self._session = Session()
        account = ", ".join(repr(os.environ[name]) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
        settings = f"catalog_type = 'rest', warehouse = 'hive', storage_endpoint = '{storage}'"
        self._session.query("SET allow_database_iceberg = 1")
        self._session.query(f"CREATE DATABASE lake ENGINE = DataLakeCatalog('{uri}/v1', {account}) SETTINGS {settings}")

    def tables(self, namespace: str) -> list[str]:
        names = [
            next(iter(row.values())) for row in self._session.query("SHOW TABLES FROM lake", "ArrowTable").to_pylist()
        ]
        return [name.partition(".")[2] for name in names if name.startswith(f"{namespace}.")]

    def rows(self, table: str, at: int | None, where: tuple[str, Any] | None) -> pa.Table:
        condition = "" if where is None else f" WHERE {where[0]} = {where[1]!r}"
        moment = "" if at is None else f" SETTINGS iceberg_snapshot_id = {at}"
        return self._session.query(f"SELECT * FROM lake.`{table}`{condition}{moment}", "ArrowTable")


def plain(table: pa.Table, columns: list[str]) -> list[list[Any]]:
    rows = table.select(columns).to_pylist()
    return [
        [value if value is None or isinstance(value, int) else str(value) for value in row.values()] for row in rows
    ]


def answer(engine: Any, request: dict[str, Any]) -> dict[str, Any]:
    try:
        if "tables" in request:
            return {"result": engine.tables(request["tables"])}
        found = engine.rows(request["rows"], request["at"], request["where"])
        return {"result": plain(found, request["columns"])}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=["polars", "daft", "clickhouse"])
    parser.add_argument("uri")
    parser.add_argument("--storage", default="")
    options = parser.parse_args()
    # What libraries print isn't an answer.
    with os.fdopen(os.dup(1), "w", buffering=1) as out:
        os.dup2(2, 1)
        if options.engine == "clickhouse":
            engine: Any = ClickHouse(options.uri, options.storage)
        else:
            engine = {"polars": Polars, "daft": Daft}[options.engine](options.uri)
        for line in sys.stdin:
            out.write(json.dumps(answer(engine, json.loads(line))) + "\n")


if __name__ == "__main__":
    main()
