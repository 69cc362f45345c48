"""A MariaDB whose changes are captured: its settings, its log, chunks of its tables. All SQL for it is here."""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import pymysql
from pymysql.converters import encoders
from pymysql.cursors import Cursor, SSCursor

from lake.capture.errors import CaptureError, SlotLost
from lake.capture.mysql.positions import Position
from lake.capture.mysql.values import FIXED, Column, Text, as_parameter, column_of, decoding, from_query, selected
from lake.protocol.connection.closing import Closing

MINIMUM_VERSION = (10, 5)
"""Since then the log describes columns: `binlog_row_metadata`."""

BY_TRANSACTION = "its rows are versioned by transactions, and the log doesn't have them"

_CONNECT_SECONDS = 10
_READ_SECONDS = 300  # a query, or a heartbeat of the log
_SETTINGS = {
    "log_bin": ("ON", "start it with --log-bin"),
    "binlog_format": ("ROW", "SET GLOBAL binlog_format = 'ROW'"),
    "binlog_row_image": ("FULL", "SET GLOBAL binlog_row_image = 'FULL'"),
    "binlog_row_metadata": ("FULL", "SET GLOBAL binlog_row_metadata = 'FULL'"),
    "log_bin_compress": ("OFF", "SET GLOBAL log_bin_compress = 'OFF'"),
}

_COLUMNS = """
SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION, EXTRA,
       GENERATION_EXPRESSION, CHARACTER_SET_NAME
  FROM information_schema.COLUMNS
 WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION
"""
_KEYS = """
SELECT INDEX_NAME, COLUMN_NAME, NULLABLE, SUB_PART FROM information_schema.STATISTICS
 WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0 AND INDEX_TYPE = 'BTREE'
 ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX
"""
_TABLES = """
SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES
 WHERE TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND TABLE_SCHEMA IN ({}) ORDER BY 1, 2
"""
_ENGINE = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_REFERENCES = """
SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME,
       REFERENCED_COLUMN_NAME
  FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL
 ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION
"""  # REFERENTIAL_CONSTRAINTS has the rules, but only for users with more rights than SELECT
_PERIOD = ("ROW START", "ROW END")
_RULE = re.compile(r"ON (DELETE|UPDATE) (?:CASCADE|SET NULL|SET DEFAULT)\b")


class Server(NamedTuple):
    """Who a source is, and where its log ends."""

    number: int
    end: Position


@dataclass(frozen=True)
class SourceTable:
    """A table. `key`: the columns of its primary key that chunks can be read by; empty for none."""

    schema: str
    table: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"


class Chunk(NamedTuple):
    """Rows of a table as of exactly a position of the log, as texts. `is_last`: there are no more behind them."""

    table: SourceTable
    position: Position
    rows: list[list[Text]]
    is_last: bool


class Reference(NamedTuple):
    """A foreign key by which changes of `parent` change rows of `child`, which the log doesn't have.

    `columns`: those of the parent that it references. `rules`: when rows change: `DELETE`, `UPDATE`, or both.
    """

    child: str
    parent: str
    columns: tuple[str, ...]
    rules: frozenset[str]


class Catalog(NamedTuple):
    """What the source says of a table's columns, by now.

    `key`: those that identify rows. `fixed`: those of types that the log doesn't tell from BINARY. `computed`: those
    that are computed when they are read. `period`: those of a row's start and end, if it has any.
    """

    columns: frozenset[str]
    key: tuple[str, ...]
    fixed: dict[str, str]
    computed: frozenset[str]
    period: tuple[str, ...]

    def hidden_among(self, names: Sequence[str]) -> tuple[set[str], str | None]:
        """The columns of a table in the log that aren't captured, and that of the end of a row's period, if any."""
        period = self.period or IMPLICIT_PERIOD
        is_implicit = bool(self.columns) and not self.columns & set(period)
        end = period[-1] if set(period) <= set(names) and (self.period or is_implicit) else None
        hidden = {each for each in names if each in self.computed or _is_hash(each, self.columns)}
        return hidden | (set(period) if end is not None else set()), end


IMPLICIT_PERIOD = ("row_start", "row_end")
"""Columns of a system-versioned table that says nothing of them. Only the log has them."""


def _is_hash(name: str, columns: Container[str]) -> bool:
    """Whether a column of the log is one that the server has added for a unique index of long values."""
    return name.startswith("DB_ROW_HASH_") and name not in columns


class CapturedTables:
    """Which tables are captured: all of a database, or some, by their names with their database's."""

    def __init__(self, database: str, tables: Sequence[str]) -> None:
        """Raises CaptureError for names of another form."""
        if wrong := [each for each in tables if each.count(".") != 1 or not all(each.split("."))]:
            raise CaptureError(f"--table {wrong[0]}: give DATABASE.TABLE")
        self.names = frozenset(tables)
        """The tables that were named; none for all of a database."""
        self.schemas = sorted({each.partition(".")[0] for each in tables} or {database})

    def includes(self, schema: str, table: str) -> bool:
        return f"{schema}.{table}" in self.names if self.names else schema in self.schemas

    def has(self, name: str) -> bool:
        """Whether a table is captured, by its name with its database's."""
        return name in self.names if self.names else name.partition(".")[0] in self.schemas


class MysqlSource(Closing):
    """Connections to a source, which only read. Not thread-safe."""

    def __init__(self, url: str, tables: Sequence[str] = ()) -> None:
        """`url`: `mysql://user@host:port/database`. Connects at once.

        Raises CaptureError for another URL, pymysql.OperationalError if nobody answers.
        """
        self._parameters, database = _parameters(url)
        self.wanted = CapturedTables(database, tables)
        self._connection = self.connect()
        self._folds: bool | None = None
        self._chunks: pymysql.Connection[Any] | None = None

    def close(self) -> None:
        for each in (self._connection, self._chunks):
            if each is not None and each.open:
                each.close()

    def connect(self, **options: Any) -> "pymysql.Connection[Any]":
        """A connection whose queries give texts, and bytes for binary values; times in UTC."""
        return pymysql.connect(
            **{
                **self._parameters,
                "autocommit": True,
                "charset": "utf8mb4",
                "connect_timeout": _CONNECT_SECONDS,
                "conv": {**encoders},  # and no decoders
                # What sends the log waits while a table is read as a whole.
                "init_command": "SET SESSION time_zone = '+00:00', net_write_timeout = 3600, sql_mode = ''",
                "read_timeout": _READ_SECONDS,
                **options,
            }
        )

    @property
    def stream_settings(self) -> dict[str, Any]:
        """What python-mysql-replication connects with."""
        return {**self._parameters, "read_timeout": 60, "connect_timeout": _CONNECT_SECONDS}

    @property
    def folds_names(self) -> bool:
        """Whether names of tables are in lower case, however statements write them."""
        if self._folds is None:
            self._folds = self._rows("SELECT @@lower_case_table_names") == [("1",)]
        return self._folds

    # --- what there is ----------------------------------------------------------------------------------------

    def check(self) -> None:
        """Raises CaptureError, with what to do, if the source can't be captured."""
        [(version,)] = self._rows("SELECT VERSION()")
        if "mariadb" not in version.lower():
            raise CaptureError(
                "the source is MySQL: only MariaDB says at which position of the log a query reads. Capture Debezium's"
                " messages, with --debezium"
            )
        if tuple(int(each) for each in version.split(".")[:2]) < MINIMUM_VERSION:
            raise CaptureError(f"the source is MariaDB {version}: capture needs 10.5")
        found = dict(self._rows("SHOW GLOBAL VARIABLES"))
        for name, (wanted, remedy) in _SETTINGS.items():
            if found.get(name) != wanted:
                raise CaptureError(f"the source's {name} is {found.get(name)}, not {wanted}: {remedy}")

    def server(self) -> Server:
        """Which server this is."""
        [(number,)] = self._rows("SELECT @@server_id")
        found = self._rows("SHOW MASTER STATUS")
        if not found:
            raise CaptureError("the source has no binary log: start it with --log-bin")
        return Server(int(number), Position(found[0][0], int(found[0][1])))

    def check_position(self, position: Position, gtid: str) -> None:
        """Raises SlotLost if the log isn't any more as it was at a position, where a transaction had ended."""
        sizes = {name: int(size) for name, size, *_ in self._rows("SHOW BINARY LOGS")}
        if position.file not in sizes:
            raise SlotLost(
                f"the source has removed {position.file}, which has changes that aren't captured: start again with"
                " --new-snapshot"
            )
        [(there,)] = self._rows("SELECT BINLOG_GTID_POS(%s, %s)", position.file, position.at)
        if position.at > sizes[position.file] or (gtid and gtid not in (there or "").split(",")):
            raise SlotLost(
                f"the source's log is another one at {position}: it was begun anew, or a backup or replica has taken"
                " its place; start again with --new-snapshot"
            )

    def behind(self, position: Position) -> int:
        """The bytes of log after a position."""
        sizes = [(name, int(size)) for name, size, *_ in self._rows("SHOW BINARY LOGS")]
        later = sum(size for name, size in sizes if name > position.file)
        return int(later + max(0, dict(sizes).get(position.file, 0) - position.at))

    def tables(self) -> list[str]:
        """The names of the tables that are captured, as far as the user may see them."""
        places = ", ".join(["%s"] * len(self.wanted.schemas))
        found = self._rows(_TABLES.format(places), *self.wanted.schemas)
        return [f"{schema}.{table}" for schema, table in found if self.wanted.includes(schema, table)]

    def refusal(self, name: str) -> str | None:
        """Why a table's rows can't be captured; None if they can. Raises pymysql.Error if the user may not read all."""
        schema, _, table = name.partition(".")
        for (engine,) in self._rows(_ENGINE, schema, table):
            if engine != "InnoDB":
                return f"it is kept by {engine}: only InnoDB reads as of a position"
        for column in self._rows(_COLUMNS, schema, table):
            if (why := _refusal(*column)) is not None:
                return why
        self._rows(f"SELECT * FROM {_quoted(schema, table).replace('%%', '%')} LIMIT 0")  # fails if one may not be read
        return None

    def sees(self, name: str) -> bool:
        """Whether the user may see a table. One that isn't there can't be told from others."""
        return bool(self._rows(_ENGINE, *name.split(".", 1)))

    def references(self) -> list[Reference]:
        """The foreign keys by which rows of captured tables may change without being in the log."""
        columns = defaultdict[tuple[str, str, str, str], list[str]](list)
        for schema, table, key, parent_schema, parent, column in self._rows(_REFERENCES):
            columns[schema, table, key, f"{parent_schema}.{parent}"].append(column)
        rules: dict[tuple[str, str], dict[str, frozenset[str]]] = {}
        found = []
        for (schema, table, key, parent), names in columns.items():
            if (schema, table) not in rules:
                rules[schema, table] = self._rules(schema, table)
            if of_key := rules[schema, table].get(key):
                found.append(Reference(f"{schema}.{table}", parent, tuple(names), of_key))
        return found

    def _rules(self, schema: str, table: str) -> dict[str, frozenset[str]]:
        """When rows of a table are changed by its foreign keys, by the names of these."""
        try:
            [(_, text)] = self._rows(f"SHOW CREATE TABLE {_quoted(schema, table).replace('%%', '%')}")
        except pymysql.Error:  # it is dropped by now, or may not be read
            return {}
        found = {}
        for line in text.splitlines():
            if line.startswith("  CONSTRAINT `") and (rules := _RULE.findall(line)):
                name = line.removeprefix("  CONSTRAINT `").partition("` FOREIGN KEY")[0].replace("``", "`")
                found[name] = frozenset(rules)
        return found

    def catalog(self, name: str) -> Catalog:
        """What the columns of a table are by now."""
        schema, _, table = name.partition(".")
        columns, fixed, computed, period = set(), {}, set(), dict[str, str]()
        for column, kind, *_, extra, expression, _ in self._rows(_COLUMNS, schema, table):
            columns.add(column)
            if kind in FIXED:
                fixed[column] = kind
            if "VIRTUAL GENERATED" in extra:
                computed.add(column)
            if expression in _PERIOD:
                period[expression] = column
        in_period = tuple(period[each] for each in _PERIOD if each in period)
        key = _key(self._rows(_KEYS, schema, table), columns - computed - {*in_period}, {*in_period})
        return Catalog(frozenset(columns), key, fixed, frozenset(computed), in_period)

    # --- rows -------------------------------------------------------------------------------------------------

    def chunk(self, name: str, key: tuple[str, ...], after: tuple[str, ...] | None, limit: int) -> Chunk | None:
        """The next rows of a table in the order of its key. Nothing is locked.

        `key`: the columns that `after` is of; if the table has another key by now, the chunk begins anew. None if the
        table isn't there, or has no key.
        """
        with self._reading(Cursor) as (cursor, position):
            table = _described(cursor, name)
            if table is None or not table.key:
                return None
            query, values = _chunk_query(table, after if key == table.key else None, limit)
            cursor.execute(query, values)
            rows = [_texts(table, row) for row in cursor.fetchall()]
        return Chunk(table, position, rows, len(rows) < limit)

    @contextmanager
    def whole(self, name: str) -> Iterator[tuple[SourceTable, Position, Iterator[list[Text]]] | None]:
        """A table, a position in the log, and all rows as of exactly there; None if it isn't there."""
        with self._reading(SSCursor) as (cursor, position):
            table = _described(cursor, name)
            if table is None:
                yield None
                return
            cursor.execute(_select(table))
            yield table, position, (_texts(table, row) for row in cursor)

    # --- connections ------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self, kind: type[Cursor]) -> Iterator[tuple[Any, Position]]:
        """A transaction in which all statements see what was committed at a position of the log."""
        if self._chunks is None or not self._chunks.open:
            self._chunks = self.connect()
        with self._chunks.cursor(kind) as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            try:
                cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
                found = {key.lower(): value for key, value in cursor.fetchall()}
                yield cursor, Position(found["binlog_snapshot_file"], int(found["binlog_snapshot_position"]))
            finally:
                if self._chunks.open:
                    self._chunks.rollback()

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._connection.cursor() as cursor:
            cursor.execute(query, values or None)
            return list(cursor.fetchall())


@contextmanager
def open_source(url: str) -> Iterator[MysqlSource]:
    """A source for one look at it. What goes wrong with it in the block is a CaptureError."""
    try:
        with MysqlSource(url) as opened:
            yield opened
    except pymysql.Error as error:
        raise CaptureError(f"the source: {said(error)}") from None


def said(error: BaseException) -> str:
    """What an error of the source's says, in one line."""
    return " ".join(str(error.args[-1] if error.args else error).split())


def _parameters(url: str) -> tuple[dict[str, Any], str]:
    """What to connect with, and the database. Raises CaptureError."""
    form = "the source is a URL of the form mysql://USER@HOST:3306/DATABASE"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise CaptureError(form) from None
    database = unquote(parts.path.strip("/"))
    if parts.scheme not in ("mysql", "mariadb") or not database or "/" in database:
        raise CaptureError(form)
    if parts.password is not None:
        raise CaptureError(
            "a password doesn't belong on the command line: set MYSQL_PWD, or write it into the [client] section of"
            " ~/.my.cnf"
        )
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    if unknown := [each for each in options if each not in ("ssl_ca", "unix_socket")]:
        raise CaptureError(f"the source's URL has the option {unknown[0]}: ssl_ca and unix_socket are known")
    given: dict[str, Any] = {
        "host": parts.hostname,
        "port": port or 3306,
        "user": None if parts.username is None else unquote(parts.username),
        "password": os.environ.get("MYSQL_PWD"),
        "unix_socket": options.get("unix_socket"),
        "ssl": {"ca": options["ssl_ca"]} if "ssl_ca" in options else None,
    }
    file = Path("~/.my.cnf").expanduser()
    if file.exists():
        given["read_default_file"] = str(file)
    return {name: value for name, value in given.items() if value is not None}, database


def _refusal(
    name: str,
    kind: str,
    whole: str,
    precision: Any,
    scale: Any,
    digits: Any,
    extra: str,
    expression: str | None,
    character_set: str | None,
) -> str | None:
    """Why a table with such a column can't be captured; None if it can."""
    if "COMPRESSED" in whole:
        return f"its column {name} is COMPRESSED, which isn't captured"
    if expression in _PERIOD and kind != "timestamp":
        return BY_TRANSACTION
    if "VIRTUAL GENERATED" in extra:
        return None
    try:
        column_of(name, kind, whole, precision, scale, digits)
        decoding(name, character_set)
    except CaptureError as error:
        return str(error)
    return None


def _described(cursor: Any, name: str) -> SourceTable | None:
    schema, _, table = name.partition(".")
    cursor.execute(_COLUMNS, (schema, table))
    rows = cursor.fetchall()
    columns = [column_of(*row[:6]) for row in rows if "VIRTUAL GENERATED" not in row[6] and row[7] not in _PERIOD]
    if not columns:
        return None
    cursor.execute(_KEYS, (schema, table))
    key = _key(cursor.fetchall(), {each.name for each in columns}, {row[0] for row in rows if row[7] in _PERIOD})
    made = tuple(each._replace(in_key=each.name in key) for each in columns)
    by_name = {each.name: each for each in made}
    orders = all(by_name[each].orders_chunks for each in key)
    return SourceTable(schema, table, made, key if orders else ())


def _key(rows: Iterable[Any], columns: set[str], period: set[str]) -> tuple[str, ...]:
    """The columns that identify a row: those of the primary key or of another unique index, whose values aren't NULL.

    `period`: what the server adds to the indexes of a system-versioned table.
    """
    indexes = defaultdict[str, list[Any]](list)
    for name, *part in rows:
        indexes[name].append(part)
    for name, parts in indexes.items():
        found = tuple(column for column, *_ in parts if column not in period)
        is_whole = all(nullable != "YES" and prefix is None for _, nullable, prefix in parts)
        if columns.issuperset(found) and (name == "PRIMARY" or is_whole):
            return found
    return ()


def _quoted(*names: str) -> str:
    # A percent sign would be taken for a value's place.
    return ".".join("`{}`".format(each.replace("`", "``").replace("%", "%%")) for each in names)


def _select(table: SourceTable, condition: str = "") -> str:
    columns = ", ".join(selected(each, _quoted(each.name)) for each in table.columns)
    query = f"SELECT {columns} FROM {_quoted(table.schema, table.table)}{condition}"
    return query if condition else query.replace("%%", "%")


def _chunk_query(table: SourceTable, after: tuple[str, ...] | None, limit: int) -> tuple[str, list[Any]]:
    """The query of a chunk, and its values. A condition for each column of the key uses the index, as rows don't."""
    condition, values = "", []
    if after is not None:
        columns = {each.name: each for each in table.columns}
        given = [as_parameter(columns[name], text) for name, text in zip(table.key, after, strict=True)]
        parts = []
        for number, name in enumerate(table.key):
            same = "".join(f"{_quoted(each)} = %s AND " for each in table.key[:number])
            parts.append(f"({same}{_quoted(name)} > %s)")
            values += given[: number + 1]
        condition = f" WHERE {' OR '.join(parts)}"
    order = ", ".join(_quoted(each) for each in table.key)
    return _select(table, f"{condition} ORDER BY {order} LIMIT %s"), [*values, limit]


def _texts(table: SourceTable, row: Sequence[Any]) -> list[Text]:
    readers: list[Callable[[Any], str]] = [from_query(each) for each in table.columns]
    return [None if value is None else read(value) for read, value in zip(readers, row, strict=True)]
