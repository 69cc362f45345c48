"""The changes of tables that a raw table has, by position. Contents are compared: the same columns are no change."""

import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from typing import Any, NamedTuple, TypeAlias

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lake.capture.raw_table import PARTITION
from lake.capture.schema_changes.classify import Cause, differences, may_change_rows
from lake.capture.schema_changes.model import Column, Difference, Kind, Position, SchemaChange
from lake.capture.schemas import WHOLE_ORDINAL, mark_of
from lake.protocol.formats.partition_names import make_name
from lake.tables.lake import LakeTable

_OPS = ("schema", "statement", "truncate", "hold")
_MARKS = ("incomplete", "complete", "stale")
_NEEDED = ("op", "after", "committed_at", "epoch", "commit_lsn", "ordinal")


class Era(NamedTuple):
    """What the rows of a table have from a position on, until the next one.

    `at`: of the `schema` row. `begins`: where the table began to be read again for it; `at` if it wasn't. `open`: where
    it had begun to be read again before that, and wasn't read to its end by then; None mostly. `text`: of the `schema`
    row. `changes`: between the era before and this one.
    """

    at: Position
    begins: Position
    open: Position | None
    text: str
    changes: tuple[SchemaChange, ...]

    @property
    def columns(self) -> list[Column]:
        """The table's columns."""
        return _columns(self.text)


class History(NamedTuple):
    """What a table has been through. `changes`: all of them, in order; those with other columns are in `eras`, too.
    `known`: the last position at which something was said of the table's columns. `begins`: positions before which no
    row counts any more, nor ever will, in order: where the table was emptied, or was read again to its end."""

    eras: list[Era]
    changes: list[SchemaChange]
    known: Position
    begins: tuple[Position, ...]


def changes_of(lake: LakeTable, table: str) -> list[SchemaChange]:
    """The changes of a source's table since it was first captured, in order. The columns that it had then are none."""
    return history_of(lake, table).changes


def history_of(lake: LakeTable, table: str) -> History:
    """The history of a source's table since it was first captured."""
    return history_in(table, _described(lake, table))


def begin_of(history: History, form: str, until: Position | None) -> Position | None:
    """The last position before which no row of a table counts whose columns begin with those of a fingerprint. None if
    all rows may.

    It stays the same for as long as the table has these columns, so that definitions with it do. `until`: what the
    table had from there on doesn't matter; None if all does.
    """
    since: Position | None = None
    for era in reversed(history.eras):
        if until is None or era.at < until:
            if mark_of(form) not in era.text:
                break
            since = era.at
    return None if since is None else max((each for each in history.begins if each < since), default=None)


def changes_in(table: str, rows: Iterable[Mapping[str, Any]]) -> list[SchemaChange]:
    """As `changes_of`, from the rows of a raw table; those of other operations don't count."""
    return history_in(table, rows).changes


def history_in(table: str, rows: Iterable[Mapping[str, Any]]) -> History:
    """As `history_of`, from the rows of a raw table."""
    walk = _History(table)
    eras, changes, known = list[Era](), list[SchemaChange](), Position(0, 0, 0)
    begins: Position | None = None
    was_open: Position | None = None  # before the table began to be read again for the next era
    is_open: Position | None = None
    truncations, waiting, done = list[Position](), list[Position](), Position(0, 0, 0)
    for row in sorted(rows, key=_position):
        op, at = row["op"], _position(row)
        if op == "truncate":  # rows count from there on, whatever was before
            changes = [dataclasses.replace(each, blocked=None) for each in changes]
            eras = [_unblocked(each) for each in eras]
        if op == "truncate" and row["after"] is not None and begins is None:
            begins, was_open = at, is_open
        if op == "truncate":
            truncations.append(at)
        if op == "incomplete" or (op == "truncate" and row["after"] is not None):
            is_open = is_open or at
            waiting.append(at)
        elif op == "complete":
            is_open, done = None, at
        if op == "complete" or (op == "truncate" and row["after"] is None):  # no row is from before that
            changes = [each for each in changes if each.difference.kind is not Kind.STALE]
        found = [*walk.take(row)]
        changes += found
        if op == "schema":
            eras.append(Era(at, begins or at, was_open if begins else is_open, row["after"], tuple(found)))
            begins = None
        known = at if op in ("schema", "hold") else known
    is_waiting = min((each for each in waiting if each > done), default=None)
    counting = (each for each in truncations if is_waiting is None or each < is_waiting)
    return History(eras, changes, known, tuple(counting))


def _unblocked(era: Era) -> Era:
    return era._replace(changes=tuple(dataclasses.replace(each, blocked=None) for each in era.changes))


def _described(lake: LakeTable, table: str) -> Iterator[dict[str, Any]]:
    """The rows that say how a table is defined. Of files without one the operations alone are read."""
    snapshot = lake.snapshot(partitions=[make_name((PARTITION,), (table,))], include_uncommitted=True)
    for each in snapshot:
        storage, path = fsspec.url_to_fs(f"{snapshot.location}/{each.path}")
        with storage.open(path, "rb") as opened:
            file = pq.ParquetFile(opened)
            for group in range(file.num_row_groups):
                wanted = pc.is_in(file.read_row_group(group, ["op"]).column("op"), pa.array([*_OPS, *_MARKS]))
                if pc.any(wanted).as_py():
                    yield from file.read_row_group(group, [*_NEEDED]).filter(wanted).to_pylist()


def _position(row: Mapping[str, Any]) -> Position:
    return Position(row["epoch"], row["commit_lsn"], row["ordinal"])


_Told: TypeAlias = dict[str, tuple[int | None, str]]
"""The columns of a table as a statement has left them: their numbers and types, by their names.

Types are without schemas, which the source writes or leaves out as the session has it.
"""


def _told(columns: Iterable[tuple[int | None, str, str]]) -> _Told:
    return {name: (number, kind.rpartition(".")[2]) for number, name, kind in columns}


class _History:
    """Takes the rows of a table in order."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._columns: list[Column] | None = None
        self._told: _Told = {}
        self._epoch = 0
        self._forget()

    def _forget(self) -> None:
        """Begins with what may lead to the next change."""
        self._begun: Mapping[str, Any] | None = None
        self._statements: list[tuple[str, Mapping[str, str | None]]] = []
        self._tells_all = True
        self._is_read_again = False
        self._is_emptied = False
        self._held: str | None = None

    def take(self, row: Mapping[str, Any]) -> Iterator[SchemaChange]:
        """Takes a row; gives the changes that are whole with it."""
        if row["op"] == "stale":
            yield self._change(
                row, Difference(Kind.STALE, f"rows before {_position(row)} may be stale: {row['after']}")
            )
            return
        if row["op"] not in _OPS:
            return
        if self._columns is None and row["op"] != "schema":
            return
        if row["op"] == "schema":
            yield from self._described(row)
            return
        if row["op"] == "statement":
            said = json.loads(row["after"])
            if "columns" in said and self._leaves_columns(said):
                return
            self._statements.append((said["statement"], said.get("renamed", {})))
            self._tells_all = self._tells_all and "renamed" in said and _is_alteration(said["statement"])
        elif row["op"] == "hold":
            self._held = row["after"]
        elif row["after"] is not None or row["ordinal"] == WHOLE_ORDINAL:
            self._is_read_again = True
        else:
            self._is_emptied = True
            yield self._change(row, Difference(Kind.TRUNCATE, "all rows were removed"))
            return
        self._begun = self._begun or row

    def _leaves_columns(self, said: Mapping[str, Any]) -> bool:
        """Whether a statement for which the source says the columns has left them, and the rows, as they were."""
        told = _told(said["columns"])
        known = self._told or _told((each.number, each.name, each.source_type) for each in self._columns or ())
        self._told = told
        return told == known and not may_change_rows(said["statement"])

    def _numbered(self, columns: list[Column]) -> list[Column]:
        """Columns of which the `schema` row has no numbers, since the source had others by then, with those that the
        source has said in order."""
        if not all(each.name in self._told for each in columns):
            self._told = {}  # not all that has changed was said
        if not self._told or all(each.number is not None for each in columns):
            return columns
        return [dataclasses.replace(each, number=self._told[each.name][0]) for each in columns]

    def _described(self, row: Mapping[str, Any]) -> Iterator[SchemaChange]:
        before, columns = self._columns, self._numbered(_columns(row["after"]))
        self._columns = _carried(before, columns)
        if before is not None:
            cause = Cause(
                self._statements,
                is_read_again=(self._is_read_again and not self._is_emptied) or self._held is not None,
                tells_all=bool(self._statements) and self._tells_all,
            )
            yield from (self._change(self._begun or row, each) for each in self._found(before, columns, cause, row))
        self._epoch = row["epoch"]
        self._forget()

    def _found(
        self, before: list[Column], columns: list[Column], cause: Cause, row: Mapping[str, Any]
    ) -> list[Difference]:
        found = differences(before, columns, cause)
        is_of_rows = all(each.kind is Kind.ROWS for each in found)
        if self._held is not None:
            return [Difference(Kind.UNKNOWN, self._held)] if is_of_rows else found
        # All tables are read again in a new epoch; and MariaDB's that others change by foreign keys, over and over.
        is_known = cause.statements or any(each.number for each in columns)
        if is_of_rows and (row["epoch"] != self._epoch or not is_known):
            return []
        return found

    def _change(self, row: Mapping[str, Any], difference: Difference) -> SchemaChange:
        said = "; ".join(dict.fromkeys(text for text, _ in self._statements)) or None
        if difference.kind in (Kind.TRUNCATE, Kind.STALE):
            said = None
        since = row["committed_at"]
        since = since if since.tzinfo is not None else since.replace(tzinfo=UTC)
        return SchemaChange(self._table, _position(row), since, difference, said, self._held)


def _carried(before: list[Column] | None, columns: list[Column]) -> list[Column]:
    """Columns of which nothing says the numbers, with those that the same columns had before: no column ever gets
    another place. If one of them is gone by the next time that numbers are known, these tell it."""
    if before is None or any(each.number is not None for each in columns):
        return columns
    if [(each.name, each.source_type, each.table) for each in before] != [
        (each.name, each.source_type, each.table) for each in columns
    ]:
        return columns
    return [dataclasses.replace(each, number=was.number) for each, was in zip(columns, before, strict=True)]


def _is_alteration(text: str) -> bool:
    """Whether a statement changes a table that stays the same one: none is made again by the name, or gets it."""
    return _ALTERATION.match(text) is not None and _NAMING.search(text) is None


_ALTERATION = re.compile(r"\s*(?:ALTER|TRUNCATE)\b", re.IGNORECASE)
_NAMING = re.compile(r"\bRENAME\s+(?!COLUMN\b|INDEX\b|KEY\b)", re.IGNORECASE)


def _columns(text: str) -> list[Column]:
    return [
        Column(
            each["name"],
            each["type"],
            each["source_type"],
            each["key"],
            each.get("number"),
            each.get("table"),
            each.get("large", False),
            each.get("fill"),
        )
        for each in json.loads(text)
    ]
