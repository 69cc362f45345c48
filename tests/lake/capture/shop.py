"""A database that is captured in tests, and what its raw table comes to."""

import itertools
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import psycopg2
from sqlalchemy import make_url

from lake.capture.postgres.capture import Capture, Options
from lake.capture.raw_table import RawTable, rows_of
from lake.capture.results import Result
from lake.tables.lake import LakeClient
from tests.support.waiting import wait_until

NUMBERS = itertools.count(1)
SLOT = "shop_{}"


class Source:
    """A database with the publication `shop` for all its tables, captured into a raw table of its own."""

    def __init__(self, url: str, client: LakeClient) -> None:
        self.url = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self.client = client
        self._name()
        self.connection = self.connect()
        self.run("CREATE PUBLICATION shop FOR ALL TABLES")

    def _name(self) -> None:
        number = next(NUMBERS)
        self.slot = SLOT.format(number)
        self.into = f"raw_{number}.shop"

    def begin_anew(self) -> None:
        """Goes on with another slot and another raw table, for another example of a test."""
        self.drop_slot()
        self._name()

    def connect(self) -> Any:
        """A connection to the source, without transactions of its own."""
        connection = psycopg2.connect(self.url)
        connection.autocommit = True
        return connection

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Runs SQL in the source, and returns its rows."""
        if self.connection.closed:
            self.connection = self.connect()
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def options(self, **changes: Any) -> Options:
        values = {"source": self.url, "publication": "shop", "into": self.into, "slot": self.slot, **changes}
        return Options(**values)

    def capture(self, **options: Any) -> Result:
        """Captures what there is."""
        return Capture(self.client, self.options(**options)).run(once=True)

    def raw(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table in the raw table, in the order of their positions; before and after as JSON."""
        lake = RawTable(self.client, self.into).lake
        found = [row for each in rows_of(lake, f"public.{table}") for row in each.to_pylist()]
        return sorted(found, key=lambda row: (row["epoch"], row["commit_lsn"], row["ordinal"]))

    def ops(self, table: str) -> list[str]:
        return [row["op"] for row in self.raw(table) if row["op"] not in ("schema", "statement")]

    def replayed(self, table: str, key: tuple[str, ...]) -> list[str]:
        """The rows that the raw table comes to, sorted, each as JSON."""
        return replayed(self.raw(table), key)

    def rows(self, table: str, connection: Any = None) -> list[str]:
        """The rows of the source, in the form of `replayed`: as to_jsonb has them, but for what JSON can't have."""
        return sorted(text(json.loads(row)) for (row,) in self.run(f"SELECT to_jsonb(t)::text FROM {table} t"))

    def check(self, table: str, *key: str) -> None:
        """Raises AssertionError unless the raw table comes to the rows of the source."""
        assert self.replayed(table, key) == self.rows(table), table

    def drop_slot(self) -> None:
        """Drops the slot, once the source has seen that its reader is gone."""
        is_active = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s AND active"
        wait_until(lambda: not self.run(is_active, self.slot))
        self.run("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", self.slot)

    def close(self) -> None:
        self.drop_slot()
        self.connection.close()


def text(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)


def replayed(rows: list[dict[str, Any]], key: tuple[str, ...]) -> list[str]:
    """Applies changes one after the other. Without a key, rows are told apart by all of their values."""
    if not key:
        return _bag(rows)
    state: dict[tuple[Any, ...], dict[str, Any]] = {}
    columns: list[str] = []
    for row in rows:
        if row["op"] == "truncate":
            state.clear()
        if row["op"] == "truncate" or row["op"] == "schema":
            columns = [each["name"] for each in json.loads(row["after"])] if row["op"] == "schema" else columns
            continue
        if row["op"] in ("incomplete", "complete", "statement", "stale"):
            continue
        before = None if row["before"] is None else json.loads(row["before"])
        after = None if row["after"] is None else json.loads(row["after"])
        old = state.pop(tuple(before[each] for each in key), {}) if before is not None else {}
        if after is not None:
            place = tuple(after[each] for each in key)
            old = old or state.get(place, {})
            kept = {name: old[name] for name in row["unchanged"] or () if name in old}
            state[place] = {**kept, **after}
    # Only columns that have no value in older rows are added without a truncation.
    return sorted(text({**dict.fromkeys(columns), **row}) for row in state.values())


def _bag(rows: list[dict[str, Any]]) -> list[str]:
    state: Counter[str] = Counter()
    for row in rows:
        if row["op"] == "truncate":
            state.clear()
        elif row["op"] not in ("schema", "incomplete", "complete", "statement", "stale"):
            if row["before"] is not None:
                state[text(json.loads(row["before"]))] -= 1
            if row["after"] is not None:
                state[text(json.loads(row["after"]))] += 1
    assert min(state.values(), default=0) >= 0, "a row was removed that was not there"
    return sorted(state.elements())
