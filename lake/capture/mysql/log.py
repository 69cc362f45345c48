"""The binary log as events that a capture takes: transactions, changes of rows, tables that are emptied or dropped."""

import logging
import secrets
import struct
from collections.abc import Container, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import pymysql
from pymysql.charset import charset_by_id
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication import packet as packets
from pymysqlreplication.constants import BINLOG
from pymysqlreplication.event import (
    BinLogEvent,
    HeartbeatLogEvent,
    MariadbGtidEvent,
    NotImplementedEvent,
    RotateEvent,
    XAPrepareEvent,
    XidEvent,
)
from pymysqlreplication.row_event import DeleteRowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent
from pymysqlreplication.table import Table

from lake.capture.errors import CaptureError, SlotLost
from lake.capture.mysql.positions import Position
from lake.capture.mysql.source import Catalog, MysqlSource
from lake.capture.mysql.statements import Altered, Effect, Stated, effects_of, first_words, renamed_columns
from lake.capture.mysql.values import READABLE, UNREADABLE, Column, Read, Text, column_of_log, is_history, read_row
from lake.protocol.connection.closing import Closing

HEARTBEAT_SECONDS = 0.5

_LOG_IS_GONE = 1236  # ER_MASTER_FATAL_ERROR_READING_BINLOG
_STANDALONE = 1  # of a GTID event: one statement follows, without an end of its own
_COMPRESSED = range(165, 172)  # events of log_bin_compress
_INCIDENT = 26  # the event that says that others are missing
_PARTS_OF_LOADS = frozenset({9, 11})  # files of LOAD DATA INFILE, whose statement comes as well
_IGNORABLE = 0x80  # of an event's flags: that others may skip it
_LOAD = 18  # LOAD DATA INFILE as a statement

_SEQUENCE = ["next_not_cached_value", "minimum_value"]  # the first columns of one, which is a table to the log

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


class Unreadable(NamedTuple):
    """Rows of a table changed, and the log's can't be read. `passes`: whether that is of these rows alone."""

    table: str
    reason: str
    passes: bool = False


class End(NamedTuple):
    """The end of a transaction, or of anything else: the log was read up to this position."""

    position: Position


LogEvent: TypeAlias = Begin | Change | Unreadable | Effect | Stated | End


class LogTable(NamedTuple):
    """A table as the log describes it. `key`: its primary key's columns."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]


class _Layout(NamedTuple):
    """How rows are read. `kept`: the places of the table's columns among those that the log has, None for all.
    `end`: the place of the column that says until when a row was the current one; None for a table without history."""

    table: LogTable
    reads: Sequence[Read]
    kept: Sequence[int] | None
    end: int | None

    def read(self, data: bytes, at: int) -> tuple[list[Text] | None, int]:
        """A row, None if it is history, and the place behind it."""
        values, at = read_row(self.reads, data, at)
        if self.end is not None and is_history(values[self.end]):
            return None, at
        return values if self.kept is None else [values[each] for each in self.kept], at


# --- events of the library ------------------------------------------------------------------------------------


class _Needed:
    """Which tables' rows are read. The library has it as a list of databases, and asks no more of it."""

    def __init__(self, source: MysqlSource, others: Container[str]) -> None:
        self._wanted = source.wanted
        self._others = others

    def __contains__(self, schema: object) -> bool:
        return True

    def needs(self, schema: str, table: str) -> bool:
        return self._wanted.includes(schema, table) or f"{schema}.{table}" in self._others


class _TableMap(TableMapEvent):  # type: ignore[misc]
    """The description of a table. The library would raise for a table that it can't read, whoever needs it."""

    def __init__(
        self, from_packet: Any, event_size: int, table_map: dict[int, Table], ctl_connection: Any, **kwargs: Any
    ) -> None:
        read = [from_packet.read(8)]
        number = int.from_bytes(read[0][:6], "little")
        for _ in range(2):  # the database, and the table, with their lengths before and a zero behind
            read.append(from_packet.read(1))
            read.append(from_packet.read(read[-1][0] + 1))
        schema, table = (read[each][:-1].decode(errors="backslashreplace") for each in (2, 4))
        read.append(from_packet.read(1))
        count = read[-1][0]
        if count >= 251:
            read.append(from_packet.read(2))
            count = int.from_bytes(read[-1], "little")
        read.append(from_packet.read(count))
        self._processed = False
        table_map.pop(number, None)
        if not kwargs["only_schemas"].needs(schema, table):
            return
        reason = None
        if unknown := sorted(set(read[-1]) - READABLE):
            kind = UNREADABLE.get(unknown[0], f"number {unknown[0]}")
            reason = f"it has a column of a type that can't be read from the log: {kind}"
        else:
            from_packet.unread(b"".join(read))
            try:
                super().__init__(from_packet, event_size, table_map, ctl_connection, **kwargs)
            except Exception as error:  # whatever the library meets
                reason = f"the log's description of it can't be read ({type(error).__name__}: {error})"
        if reason is not None:
            self._processed = False
            table_map[number] = Table(number, schema, table, [])
            table_map[number].reason = reason


class _Statement(BinLogEvent):  # type: ignore[misc]
    """A statement, and the state of its session that tells what it means."""

    def __init__(
        self, from_packet: Any, event_size: int, table_map: dict[int, Table], ctl_connection: Any, **kwargs: Any
    ) -> None:
        super().__init__(from_packet, event_size, table_map, ctl_connection, **kwargs)
        _, _, schema_size, _, state_size = struct.unpack("<IIBHH", from_packet.read(13))
        more = 13 if self.event_type == _LOAD else 0
        from_packet.advance(more)
        self.sql_mode, encoding = _session_state(from_packet.read(state_size))
        self.schema: str = from_packet.read(schema_size).decode(errors="backslashreplace")
        from_packet.advance(1)
        text = from_packet.read(event_size - 14 - more - state_size - schema_size)
        try:
            self.text: str = text.decode()
        except UnicodeDecodeError:
            self.text = text.decode(encoding, errors="backslashreplace")


def _session_state(state: bytes) -> tuple[int, str]:
    """The sql_mode and the encoding of the client in the state that a statement bears."""
    sql_mode, encoding, at = 0, "latin1", 0
    while at < len(state):  # the log has these in the order of 0, 1, 6, 3, 4, and others behind them
        code = state[at]
        if code == 1:
            sql_mode = int.from_bytes(state[at + 1 : at + 9], "little")
        elif code == 4:
            found = charset_by_id(int.from_bytes(state[at + 1 : at + 3], "little"))
            encoding = found.encoding if found is not None else encoding
        size = {0: 4, 1: 8, 3: 4, 4: 6, 6: 1 + (state[at + 1] if at + 1 < len(state) else 0)}.get(code)
        if size is None:
            break
        at += 1 + size
    return sql_mode, encoding


# The library has no other way to give it classes for events.
packets.BinLogPacketWrapper._BinLogPacketWrapper__event_map |= {
    BINLOG.TABLE_MAP_EVENT: _TableMap,
    BINLOG.QUERY_EVENT: _Statement,
    BINLOG.EXECUTE_LOAD_QUERY_EVENT: _Statement,
}


# --- the log --------------------------------------------------------------------------------------------------


class Log(Closing):
    """Reads the log from a position on, which is the end of a transaction.

    `others`: names of tables whose rows are read as well, though they aren't captured. They may change.
    """

    def __init__(self, source: MysqlSource, position: Position, others: Container[str] = ()) -> None:
        self._source = source
        self._wanted = source.wanted
        self._connections = 0
        self._position = position
        self._layouts: dict[tuple[int, bytes], tuple[Any, _Layout | Unreadable | None]] = {}
        self._catalogs: dict[tuple[int, str], Catalog] = {}
        self._in_transaction = False
        self._is_alone = False
        self._changed: set[str] = set()
        self._reader = BinLogStreamReader(
            connection_settings=source.stream_settings,
            server_id=secrets.randbelow((1 << 31) - 1_000) + 1_000,
            log_file=position.file,
            log_pos=position.at,
            resume_stream=True,
            blocking=True,
            slave_heartbeat=HEARTBEAT_SECONDS,
            only_schemas=_Needed(source, others),
            only_events=[
                *(MariadbGtidEvent, _Statement, XidEvent, XAPrepareEvent, RotateEvent, HeartbeatLogEvent),
                *(_TableMap, WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent, NotImplementedEvent),
            ],
            filter_non_implemented_events=False,
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
                self._changed.clear()
                yield Begin(at.number, event.gtid, event.gtid_seq_no, event.timestamp * 1_000_000)
            case XidEvent():
                yield self._ended(at)
            case _Statement():
                yield from self._statement(event, at)
            case RotateEvent():
                self._catalogs.clear()  # a server that was started again counts tables from the beginning
                if not self._in_transaction:
                    yield self._ended(at)
            case XAPrepareEvent():
                if self._changed and not event.one_phase:
                    raise CaptureError(
                        f"the source has XA transactions, which aren't captured, that change {min(self._changed)}:"
                        " leave it out with --table, and start again with --new-snapshot"
                    )
                yield self._ended(at)
            case NotImplementedEvent() if event.event_type in _COMPRESSED:
                raise CaptureError(
                    "the source's log is compressed: SET GLOBAL log_bin_compress = 'OFF', and start again with"
                    " --new-snapshot"
                )
            case NotImplementedEvent() if event.event_type == _INCIDENT:
                raise SlotLost("the source has lost a part of its log: start again with --new-snapshot")
            case NotImplementedEvent() if (
                event.event_type not in _PARTS_OF_LOADS and not event.packet.flags & _IGNORABLE
            ):
                raise CaptureError(f"the source's log has events of the type {event.event_type}, which isn't known")

    def _ended(self, at: Position) -> End:
        self._in_transaction = False
        self._position = at
        return End(at)

    # --- rows -------------------------------------------------------------------------------------------------

    def _rows(self, event: Any) -> Iterator[Change | Unreadable]:
        layouts = [self._layout(event, bytes(event.columns_present_bitmap))]
        if isinstance(event, UpdateRowsEvent):
            layouts.append(self._layout(event, bytes(event.columns_present_bitmap2)))
        reads = [each for each in layouts if isinstance(each, _Layout)]
        if len(reads) < len(layouts):
            yield from {each: None for each in layouts if isinstance(each, Unreadable)}
            return
        table = reads[0].table
        self._changed.add(table.name)
        data = event.packet.read(event.event_size - event.packet.read_bytes)
        at = 0
        while at < len(data):
            images = []
            for each in reads:
                row, at = each.read(data, at)
                images.append(row)
            before = None if isinstance(event, WriteRowsEvent) else images[0]
            after = None if isinstance(event, DeleteRowsEvent) else images[-1]
            if before is not None or after is not None:
                yield Change(table, before, after)

    def _layout(self, event: Any, present: bytes) -> _Layout | Unreadable | None:
        """How rows of a table are read; `present`: a bitmap of the columns that they have. None for a sequence."""
        described = event.table_map[event.table_id]
        place = event.table_id, present
        known = self._layouts.get(place)
        if known is not None and known[0] is described:  # else another table has the number by now
            return known[1]
        name = f"{event.schema}.{event.table}"
        try:
            found: _Layout | Unreadable | None = self._made_layout(name, described, int.from_bytes(present, "little"))
        except CaptureError as error:
            found = Unreadable(name, str(error))
        if len(self._layouts) > 10_000:
            self._layouts.clear()
        self._layouts[place] = described, found
        return found

    def _made_layout(self, name: str, described: Any, present: int) -> _Layout | Unreadable | None:
        """Raises CaptureError for types of columns that aren't captured."""
        if not described.columns:
            return Unreadable(name, described.reason)
        if described.columns[0].name is None:
            return Unreadable(name, "the log doesn't describe its columns: SET GLOBAL binlog_row_metadata = 'FULL'")
        all_names = [each.name for each in described.columns]
        if all_names[:2] == _SEQUENCE:
            return None
        known = self._catalog(described.table_id, name)
        hidden, end = known.hidden_among(all_names)
        columns = [each for number, each in enumerate(described.columns) if present >> number & 1]
        names = [each.name for each in columns]
        if not hidden.issuperset(set(all_names).difference(names)):
            return Unreadable(name, "a session has another binlog_row_image than FULL", passes=True)
        made = [column_of_log(each, known.fixed.get(each.name)) for each in columns]
        if known.columns:  # the log has other keys: none of prefixes, and unique indexes in an order of its own
            made = [(column._replace(in_key=column.name in known.key), read) for column, read in made]
        kept = [number for number, each in enumerate(names) if each not in hidden]
        shown = tuple(made[number][0] for number in kept)
        return _Layout(
            LogTable(name, shown, tuple(each.name for each in shown if each.in_key)),
            [read for _, read in made],
            None if len(kept) == len(names) else kept,
            None if end is None else names.index(end),
        )

    def _catalog(self, number: int, name: str) -> Catalog:
        """What the source says of a table by now. Each change of its definition gives it another number in the log."""
        found = self._catalogs.get((number, name))
        if found is None:
            if len(self._catalogs) > 10_000:
                self._catalogs.clear()
            found = self._source.catalog(name)
            if found.columns:  # else the user may not see it yet
                self._catalogs[number, name] = found
        return found

    # --- statements -------------------------------------------------------------------------------------------

    def _statement(self, event: _Statement, at: Position) -> Iterator[LogEvent]:
        first, second = first_words(event.text, event.sql_mode)
        if first == "BEGIN" or (first == "XA" and second not in ("COMMIT", "ROLLBACK")):
            return
        if first == "ROLLBACK" and self._changed:
            # Rows that were taken back are in the log if the transaction also wrote to a table that can't.
            yield Altered(tuple(sorted(self._changed)))
        if first == "XA" or first == "COMMIT" or (first == "ROLLBACK" and second != "TO"):
            yield self._ended(at)
            return
        text = event.text.lower() if self._source.folds_names else event.text
        effects = effects_of(text, event.schema, event.sql_mode)
        yield from effects
        if effects:
            yield Stated(event.text, renamed_columns(text, event.schema, event.sql_mode))
        if self._is_alone:  # else rows follow, as of CREATE TABLE … SELECT, and the end of the transaction
            yield self._ended(at)
