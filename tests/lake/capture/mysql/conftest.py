"""A MariaDB, and a database of each test's own that is captured into a raw table of its own."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from lake.tables.lake import LakeClient
from tests.support import mariadb
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def maria(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if (reason := mariadb.missing()) is not None:
        pytest.skip(reason)
    server = mariadb.MariaDb(tmp_path_factory.mktemp("mariadb") / "m")
    yield server
    server.stop()


class Source:
    """A captured database."""

    def __init__(self, server: Any, client: LakeClient) -> None:
        self.server = server
        self.client = client
        number = next(NUMBERS)
        self.name = f"shop{number}"
        self.into = f"raw_maria{number}.shop"
        self.connection = server.connect()
        self.run(f"CREATE DATABASE {self.name} CHARACTER SET utf8mb4")
        self.run(f"USE {self.name}")

    @property
    def url(self) -> str:
        return str(self.server.url(self.name))

    def run(self, statement: str, *values: object) -> list[Any]:
        """Runs SQL in the source, and returns its rows."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    def capturing(self, **options: Any) -> Any:
        from lake.capture.mysql.capture import MysqlCapture, MysqlOptions

        return MysqlCapture(self.client, MysqlOptions(**{"source": self.url, "into": self.into, **options}))

    def capture(self, **options: Any) -> Any:
        """Captures what there is."""
        return self.capturing(**options).run(once=True)

    def raw(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table in the raw table, in the order of their positions."""
        from lake.capture.raw_table import RawTable, rows_of

        lake = RawTable(self.client, self.into).lake
        found = [row for each in rows_of(lake, f"{self.name}.{table}") for row in each.to_pylist()]
        return sorted(found, key=lambda row: (row["epoch"], row["commit_lsn"], row["ordinal"]))

    def ops(self, table: str) -> list[str]:
        return [row["op"] for row in self.raw(table) if row["op"] not in ("schema", "statement")]

    def replayed(self, table: str, *key: str) -> list[str]:
        """The rows that the raw table comes to, as JSON."""
        rows: dict[Any, str] = {}
        loose: list[str] = []
        is_described = False
        for row in self.raw(table):
            if row["op"] == "truncate":
                rows.clear()
                loose.clear()
            if row["op"] in ("statement", "stale"):
                continue
            if row["op"] in ("schema", "truncate", "incomplete", "complete"):
                is_described = row["op"] == "schema" or (is_described and row["op"] != "truncate")
                continue
            assert is_described, f"{table} has a row without its columns"
            before, after = (None if row[each] is None else json.loads(row[each]) for each in ("before", "after"))
            if not key:
                if before is not None:
                    loose.remove(row["before"])
                if after is not None:
                    loose.append(row["after"])
            else:
                if before is not None:
                    rows.pop(tuple(before.get(each) for each in key), None)
                if after is not None:
                    rows[tuple(after.get(each) for each in key)] = row["after"]
        return sorted(rows.values() if key else loose)

    def check(self, table: str, *key: str) -> None:
        """Raises AssertionError unless the raw table comes to the rows that the table has; values as texts.

        A column at the end that was added without a default is NULL in older rows, whose JSON doesn't have it, and
        isn't described before a row has it.
        """
        with self.connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            wanted = [_texts(row) for row in cursor.fetchall()]
            names = [each[0] for each in cursor.description or ()]
        found = [_texts({**dict.fromkeys(names), **json.loads(row)}) for row in self.replayed(table, *key)]
        assert sorted(found, key=repr) == sorted(wanted, key=repr), table
        described = [json.loads(row["after"]) for row in self.raw(table) if row["op"] == "schema"]
        if described:
            known = [each["name"] for each in described[-1]]
            assert known == names[: len(known)], table

    def close(self) -> None:
        self.run(f"DROP DATABASE {self.name}")
        self.connection.close()


def _texts(row: dict[str, Any]) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in sorted(row.items())}


@pytest.fixture
def source(maria: Any, metastore_server: MetastoreServer) -> Iterator[Source]:
    with LakeClient(metastore_server.uri) as client:
        made = Source(maria, client)
        yield made
        made.close()
