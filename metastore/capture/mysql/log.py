"""The binary log as events that a capture takes: transactions, changes of rows, tables that are emptied or dropped."""

import logging
import re
import secrets
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import (
    HeartbeatLogEvent,
    MariadbGtidEvent,
    NotImplementedEvent,
    QueryEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
)
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from metastore.capture.errors import CaptureError, SlotLost
from metastore.capture.mysql.positions import Position
from metastore.capture.mysql.source import CapturedTables, MysqlSource
from metastore.capture.mysql.values import Column, Read, Text, column_of_log, may_be_fixed, read_row
from metastore.client.closing import Closing

HEARTBEAT_SECONDS = 0.5

_LOG_IS_GONE = 1236  # ER_MASTER_FATAL_ERROR_READING_BINLOG
_STANDALONE = 1  # of a GTID event: one statement follows, without an end of its own
_COMPRESSED = range(165, 172)  # events of log_bin_compress

logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)


class Begin(NamedTuple):
    """A transaction. `lsn`: its place in the log, as a number; `gtid` and `number` its names; `at` in microseconds."""

    lsn: int
    gtid: str
    number: int
    at: int


class Change(NamedTuple):
    """A row that was inserted (no `before`), updated or deleted (no `after`)."""

    table: "LogTable"
    before: list[Text] | None
    after: list[Text] | None


class Emptied(NamedTuple):
    """A table that was truncated."""

    table: str


class Gone(NamedTuple):
    """Tables that were dropped, renamed, or put in the place of others. What has these names later is made anew."""

    tables: tuple[str, ...]


class End(NamedTuple):
    """The end of a transaction, or of anything else: the log was read up to this position."""

    position: Position


LogEvent: TypeAlias = Begin | Change | Emptied | Gone | End


class LogTable(NamedTuple):
    """A table as the log describes it. `key`: its primary key's columns."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]


class Log(Closing):
    """Reads the log from a position on, which is the end of a transaction."""

    def __init__(self, source: MysqlSource, position: Position) -> None:
        self._source = source
        self._wanted = source.wanted
        self._connections = 0
        self._position = position
        self._tables: dict[tuple[int, bytes], tuple[Any, tuple[LogTable, Sequence[Read]]]] = {}
        self._in_transaction = False
        self._is_alone = False
        self._reader = BinLogStreamReader(
            connection_settings=source.stream_settings,
            server_id=secrets.randbelow((1 << 31) - 1_000) + 1_000,
            log_file=position.file,
            log_pos=position.at,
            resume_stream=True,
            blocking=True,
            slave_heartbeat=HEARTBEAT_SECONDS,
            only_schemas=source.wanted.schemas,
            only_events=[
                *(MariadbGtidEvent, QueryEvent, XidEvent, XAPrepareEvent, RotateEvent, HeartbeatLogEvent),
                *(WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, NotImplementedEvent),
            ],
            pymysql_wrapper=self._connect,
            enable_logging=False,
        )

    def close(self) -> None:
        self._reader.close()

    def _connect(self, **settings: Any) -> "pymysql.Connection[Any]":
        """The library connects again by itself, and would go on within a transaction, without its tables."""
        self._connections += 1
        if self._connections > 2:  # one for the log, one for questions
            raise OSError("the source ended the connection")
        return pymysql.connect(**settings, init_command="SET SESSION net_write_timeout = 3600")

    def events(self) -> Iterator[LogEvent | None]:
        """What comes, for ever; None when nothing came for a moment.

        Raises SlotLost, CaptureError, pymysql.Error, OSError.
        """
        while True:
            try:
                event = self._reader.fetchone()
            except pymysql.OperationalError as error:
                if error.args and error.args[0] == _LOG_IS_GONE:
                    raise SlotLost(
                        f"the source's log can't be read from {self._position} on: {error.args[-1]}; start again with"
                        " --new-snapshot"
                    ) from None
                raise
            if event is None:
                raise OSError("the source ended the log")
            yield from self._taken(event)

    def _taken(self, event: Any) -> Iterator[LogEvent | None]:
        at = Position(self._reader.log_file, self._reader.log_pos)
        match event:
            case HeartbeatLogEvent():
                if not self._in_transaction and at.number > self._position.number:
                    yield self._ended(at)  # behind events that are no transactions
                yield None
            case WriteRowsEvent() | UpdateRowsEvent() | DeleteRowsEvent():
                yield from self._rows(event)
            case MariadbGtidEvent():
                self._in_transaction, self._is_alone = True, bool(event.flags & _STANDALONE)
                yield Begin(at.number, event.gtid, event.gtid_seq_no, event.timestamp * 1_000_000)
            case XidEvent():
                yield self._ended(at)
            case QueryEvent():
                yield from self._statement(event, at)
            case RotateEvent():
                if not self._in_transaction:
                    yield self._ended(at)
            case XAPrepareEvent():
                raise CaptureError("the source has XA transactions, which aren't captured")
            case NotImplementedEvent() if event.event_type in _COMPRESSED:
                raise CaptureError(
                    "the source's log is compressed: SET GLOBAL log_bin_compress = 'OFF', and start again with"
                    " --new-snapshot"
                )

    def _ended(self, at: Position) -> End:
        self._in_transaction = False
        self._position = at
        return End(at)

    # --- rows -------------------------------------------------------------------------------------------------

    def _rows(self, event: Any) -> Iterator[Change]:
        if not self._wanted.includes(event.schema, event.table):
            return
        present = bytes(event.columns_present_bitmap)
        table, reads = self._table(event, present)
        data = event.packet.read(event.event_size - event.packet.read_bytes)
        at = 0
        while at < len(data):
            before: list[Text] | None = None
            after: list[Text] | None = None
            if not isinstance(event, WriteRowsEvent):
                before, at = read_row(reads, data, at)
            if not isinstance(event, DeleteRowsEvent):
                after, at = read_row(reads, data, at)
            yield Change(table, before, after)

    def _table(self, event: Any, present: bytes) -> tuple[LogTable, Sequence[Read]]:
        described = event.table_map[event.table_id]
        place = event.table_id, present
        known = self._tables.get(place)
        if known is not None and known[0] is described:  # else another table has the number by now
            return known[1]
        name = f"{event.schema}.{event.table}"
        if described.columns and described.columns[0].name is None:
            raise CaptureError(
                f"the log doesn't describe the columns of {name}: SET GLOBAL binlog_row_metadata = 'FULL', and start"
                " again with --new-snapshot"
            )
        there = int.from_bytes(present, "little")
        kept = [each for number, each in enumerate(described.columns) if there >> number & 1]
        fixed = self._source.fixed(event.schema, event.table) if any(map(may_be_fixed, kept)) else {}
        made = [column_of_log(each, fixed.get(each.name)) for each in kept]
        columns = tuple(column for column, _ in made)
        key = tuple(each.name for each in columns if each.in_key)
        found = LogTable(name, columns, key), [read for _, read in made]
        if len(self._tables) > 10_000:
            self._tables.clear()
        self._tables[place] = described, found
        return found

    # --- statements -------------------------------------------------------------------------------------------

    def _statement(self, event: Any, at: Position) -> Iterator[LogEvent]:
        text = event.query
        word = _first_word(text)
        if word == "BEGIN":
            return
        if word in ("COMMIT", "ROLLBACK"):
            yield self._ended(at)
            return
        schema = event.schema.decode() if isinstance(event.schema, bytes) else event.schema
        if word in _WRITING and schema in self._wanted.schemas:
            raise CaptureError(
                "a session of the source wrote with binlog_format=STATEMENT, and what it changed isn't in the log:"
                " start again with --new-snapshot"
            )
        yield from _schema_change(text, schema, self._wanted)
        if self._is_alone:  # else rows follow, as of CREATE TABLE … SELECT, and the end of the transaction
            yield self._ended(at)


_WRITING = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD"})
_NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_TABLE = rf"(?:{_NAME}\s*\.\s*)?{_NAME}"
_COMMENT = re.compile(r"/\*(?!!).*?\*/|--[ \t][^\n]*\n|#[^\n]*\n", re.DOTALL)
_TRUNCATE = re.compile(rf"TRUNCATE\s+(?:TABLE\s+)?({_TABLE})", re.IGNORECASE)
_DROP = re.compile(rf"DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?({_TABLE}(?:\s*,\s*{_TABLE})*)", re.IGNORECASE)
_DROP_SCHEMA = re.compile(rf"DROP\s+(?:DATABASE|SCHEMA)\s+(?:IF\s+EXISTS\s+)?({_NAME})", re.IGNORECASE)
_CREATE = re.compile(rf"CREATE\s+OR\s+REPLACE\s+TABLE\s+({_TABLE})", re.IGNORECASE)
_RENAME = re.compile(r"RENAME\s+TABLES?\s+(.+)", re.IGNORECASE | re.DOTALL)
_ALTER_RENAME = re.compile(
    rf"ALTER\s+(?:ONLINE\s+)?(?:IGNORE\s+)?TABLE\s+(?:IF\s+EXISTS\s+)?({_TABLE}).*?"
    rf"\bRENAME\s+(?!(?:COLUMN|INDEX|KEY)\b)(?:TO\s+|AS\s+)?({_TABLE})",
    re.IGNORECASE | re.DOTALL,
)


def _first_word(text: str) -> str:
    found = re.match(r"\s*(\w+)", _COMMENT.sub(" ", text))
    return found[1].upper() if found else ""


def _schema_change(text: str, schema: str, wanted: CapturedTables) -> Iterator[LogEvent]:
    """What a statement does to whole tables that are captured."""
    plain = _COMMENT.sub(" ", text).strip()
    if found := _TRUNCATE.match(plain):
        for name in _captured([found[1]], schema, wanted):
            yield Emptied(name)
    elif found := _DROP.match(plain) or _CREATE.match(plain):
        yield Gone(tuple(_captured(re.findall(_TABLE, found[1]), schema, wanted)))
    elif found := _DROP_SCHEMA.match(plain):
        if (name := _unquoted(found[1])) in wanted.schemas:
            yield Gone((f"{name}.",))
    elif found := _RENAME.match(plain):
        words = re.sub(r"\bTO\b", ",", found[1], flags=re.IGNORECASE)
        yield Gone(tuple(_captured(re.findall(_TABLE, words), schema, wanted)))
    elif found := _ALTER_RENAME.match(plain):
        yield Gone(tuple(_captured([found[1], found[2]], schema, wanted)))


def _captured(tables: Sequence[str], schema: str, wanted: CapturedTables) -> Iterator[str]:
    for each in tables:
        names = [_unquoted(name) for name in re.findall(_NAME, each)]
        own = names[0] if len(names) > 1 else schema
        if wanted.includes(own, names[-1]):
            yield f"{own}.{names[-1]}"


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
