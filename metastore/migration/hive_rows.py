"""Rows of a Hive metastore's own database, on Postgres or on MySQL and MariaDB.

Versions of Hive differ in the columns of a table. So all columns are read, and a column that isn't there is None. Names
are in capitals in both, but for those of transactions, which old scripts for Postgres have in lower case.
"""

import hashlib
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from metastore.migration.connections import Connections
from metastore.migration.source import SourceFailed

Row = dict[str, Any]
PASSWORD = "METASTORE_SOURCE_PASSWORD"
"""The variable with the password for a URL without one."""

AT_ONCE = 1_000
"""Values in one condition."""

_MYSQL_PORT, _POSTGRES_PORT = 3306, 5432
_CONNECT_SECONDS = 10


class _Cursor(Protocol):
    description: Any

    def execute(self, statement: str, values: Sequence[Any]) -> Any: ...

    def fetchall(self) -> Sequence[Sequence[Any]]: ...

    def close(self) -> None: ...


class HiveRows:
    """Reads tables of one database. Each thread has a connection of its own, which changes nothing."""

    def __init__(self, url: str) -> None:
        """`url`: `postgresql://user:password@host/database`, or `mysql://…`. Raises SourceFailed."""
        self._connect, self._quote = _driver(url)
        self.place = _without_password(url)
        self._local = threading.local()
        self._connections = Connections()
        self._tables, self._columns = self._existing()
        self._unreadable = self._forbidden()
        self._missing: set[str] = set()

    @property
    def _is_mysql(self) -> bool:
        return self._quote == "`"

    def close(self) -> None:
        self._connections.close()

    def has(self, table: str) -> bool:
        """Whether this version of Hive has a table. Raises SourceFailed, as all that follows, if it may not be read."""
        return self._own(table) is not None

    def rows(self, table: str, **equal: Any) -> list[Row]:
        """The rows in which columns have values: one value each, or one of several. No rows where there is no table."""
        own = self._own(table)
        if own is None:
            return []
        many = {column: value for column, value in equal.items() if isinstance(value, (list, tuple, set, frozenset))}
        if not many:
            return list(self._selected(own, equal))
        [(column, values)] = many.items()
        found: list[Row] = []
        rest = {key: value for key, value in equal.items() if key != column}
        wanted = sorted(values)
        for begin in range(0, len(wanted), AT_ONCE):
            found += self._selected(own, rest | {column: tuple(wanted[begin : begin + AT_ONCE])})
        return found

    def column(self, table: str, column: str, **equal: Any) -> list[Any]:
        """One column of `rows`."""
        own = self._own(table)
        if own is None:
            return []
        where = f" WHERE {' AND '.join(f'{self._column(own, each)} = %s' for each in equal)}" if equal else ""
        statement = f"SELECT {self._column(own, column)} AS value FROM {self._quoted(own)}{where}"
        return [row["VALUE"] for row in self._read(statement, list(equal.values()))]

    def following(self, table: str, column: str, after: int, limit: int) -> list[Row]:
        """The first rows with higher numbers in a column, in their order."""
        own = self._own(table)
        if own is None:
            return []
        name = self._column(own, column)
        statement = f"SELECT * FROM {self._quoted(own)} WHERE {name} > %s ORDER BY {name} LIMIT %s"
        return list(self._read(statement, [after, limit]))

    def distinct(self, table: str, column: str) -> list[Any]:
        """The values that a column has."""
        own = self._own(table)
        if own is None:
            return []
        statement = f"SELECT DISTINCT {self._column(own, column)} AS value FROM {self._quoted(own)}"
        return [row["VALUE"] for row in self._read(statement, [])]

    def grouped(
        self, table: str, column: str, values: Collection[Any], order: str | None = None
    ) -> dict[Any, list[Row]]:
        """Rows by the value of a column, of those with one of some values; each list in the order of a column."""
        found: dict[Any, list[Row]] = defaultdict(list)
        for row in self.rows(table, **{column: list(values)}) if values else ():
            found[row[column]].append(row)
        if order is not None:
            for rows in found.values():
                rows.sort(key=lambda row: row[order])
        return found

    def texts(
        self, table: str, column: str, values: Collection[Any], key: str, value: str
    ) -> dict[Any, dict[str, str]]:
        """Parameters by the value of a column. Hive shows none that is NULL."""
        return {
            owner: {row[key]: row[value] for row in rows if row[value] is not None}
            for owner, rows in self.grouped(table, column, values).items()
        }

    @contextmanager
    def heard(self) -> Iterator[Callable[[], bytes | None]]:
        """A digest of the rows that this thread reads meanwhile, in their order."""
        self._local.heard = digest = hashlib.blake2b()
        try:
            yield digest.digest
        finally:
            del self._local.heard

    @contextmanager
    def together(self) -> Iterator[None]:
        """What this thread reads in the block is of one moment, not of before and after a change. May be nested."""
        if getattr(self._local, "together", False):
            yield
            return
        begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT" if self._is_mysql else _BEGIN
        self._do(begin)
        self._local.together = True
        try:
            yield
        finally:
            self._local.together = False
            if getattr(self._local, "connection", None) is not None:  # one that broke has ended it
                self._do("COMMIT")

    # --- statements -------------------------------------------------------------------------------------------

    def _do(self, statement: str) -> None:
        with self._cursor() as cursor:
            cursor.execute(statement, ())

    def _selected(self, table: str, equal: dict[str, Any]) -> Iterator[Row]:
        conditions = [
            f"{self._column(table, column)} {'IN' if isinstance(value, tuple) else '='} %s"
            for column, value in equal.items()
        ]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return self._read(f"SELECT * FROM {self._quoted(table)}{where}", list(equal.values()))

    def _quoted(self, name: str) -> str:
        return f"{self._quote}{name}{self._quote}"

    def _existing(self) -> tuple[dict[str, str], dict[tuple[str, str], str]]:
        """The names of tables as they are stored, by those in capitals, and those of columns, by table and name."""
        schema = "DATABASE()" if self._is_mysql else "current_schema()"
        statement = (
            "SELECT table_name AS own, column_name AS name FROM information_schema.columns"
            f" WHERE table_schema = {schema}"
        )
        tables: dict[str, str] = {}
        columns: dict[tuple[str, str], str] = {}
        for row in self._read(statement, []):
            tables[row["OWN"].upper()] = row["OWN"]
            columns[row["OWN"], row["NAME"].upper()] = row["NAME"]
        return tables, columns

    def _forbidden(self) -> set[str]:
        """Tables that are there, and may not be read. MySQL doesn't tell them."""
        if self._is_mysql:
            return set()
        statement = (
            "SELECT relname AS own FROM pg_catalog.pg_class WHERE relnamespace = current_schema()::regnamespace"
            " AND relkind IN ('r', 'p', 'v', 'f') AND NOT has_table_privilege(oid, 'SELECT')"
        )
        return {row["OWN"].upper() for row in self._read(statement, [])}

    def _own(self, table: str) -> str | None:
        """A table's name as it is stored; None if there is none.

        Raises SourceFailed for one that the user may not read: it isn't listed, but what is in it would be lost.
        """
        own = self._tables.get(table)
        if own is None and table not in self._missing:
            if table in self._unreadable or (self._is_mysql and self._is_refused(table)):
                raise SourceFailed(f"the database {self.place} can't be read: the user may not read the table {table}")
            self._missing.add(table)
        return own

    def _is_refused(self, table: str) -> bool:
        with self._cursor() as cursor:
            try:
                cursor.execute(f"SELECT 1 FROM {self._quoted(table)} LIMIT 0", ())
            except Exception as error:
                if error.args[:1] == (_NO_SUCH_TABLE,):
                    return False
                if error.args[:1] == (_DENIED,):
                    return True
                raise
        return False

    def _column(self, table: str, column: str) -> str:
        """A column's name as it is stored, quoted."""
        return self._quoted(self._columns.get((table, column), column))

    def _read(self, statement: str, values: Sequence[Any]) -> Iterator[Row]:
        with self._cursor() as cursor:
            cursor.execute(statement, values)
            names = [each[0].upper() for each in cursor.description]
            binary = any(each[1] == _BYTEA for each in cursor.description)
            rows = cursor.fetchall()
        if binary:  # a memoryview shows where it lies, not what it holds
            rows = [tuple(map(_plain, row)) for row in rows]
        if (heard := getattr(self._local, "heard", None)) is not None:
            heard.update(f"{statement}\0{rows!r}\0".encode("utf-8", "surrogatepass"))
        return (dict(zip(names, row, strict=True)) for row in rows)

    @contextmanager
    def _cursor(self) -> Iterator[_Cursor]:
        try:
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = self._local.connection = self._connect()
                self._connections.add(connection)
            cursor = connection.cursor()
            try:
                yield cursor
            finally:
                cursor.close()
        except SourceFailed:
            raise
        except Exception as error:
            if type(error).__module__.split(".")[0] not in ("psycopg2", "pymysql"):
                raise
            if (broken := self._local.__dict__.pop("connection", None)) is not None:
                self._connections.forget(broken)
            raise SourceFailed(f"the database {self.place} can't be read: {' '.join(str(error).split())}") from None


_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_DENIED, _NO_SUCH_TABLE = 1142, 1146
"""MySQL's numbers of the errors for a table that the user may not read, and one that isn't there."""

_BYTEA = 17
"""The type of a column whose values psycopg2 gives as memoryview."""


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def _driver(url: str) -> tuple[Callable[[], Any], str]:
    """What connects, and how names are quoted. Raises SourceFailed."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        raise SourceFailed(f"{_without_password(url)} names no port") from None
    options: dict[str, Any] = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    user = unquote(parts.username) if parts.username else None
    password = unquote(parts.password) if parts.password else os.environ.get(PASSWORD)
    database = unquote(parts.path.removeprefix("/"))
    if not database:
        raise SourceFailed(f"{_without_password(url)} names no database")
    if parts.scheme.partition("+")[0] in ("postgresql", "postgres"):
        import psycopg2

        def connect() -> Any:
            connection = psycopg2.connect(
                host=options.get("host") or parts.hostname,
                port=port or options.get("port") or _POSTGRES_PORT,
                user=user,
                password=password,
                dbname=database,
                connect_timeout=_CONNECT_SECONDS,
                application_name="metastore migrate",
                client_encoding="utf8",
                **{key: value for key, value in options.items() if key.startswith("ssl") or key == "options"},
            )
            connection.set_session(readonly=True, autocommit=True)
            return connection

        return connect, '"'
    try:
        import pymysql
    except ImportError:
        raise SourceFailed("MySQL needs a driver: pip install 'lake-metastore[mysql]'") from None

    def connect_mysql() -> Any:
        connection = pymysql.connect(
            host=parts.hostname or "localhost",
            port=port or _MYSQL_PORT,
            user=user,
            password=password or "",
            database=database,
            unix_socket=options.get("unix_socket"),
            connect_timeout=_CONNECT_SECONDS,
            charset="utf8mb4",
            autocommit=True,
        )
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        return connection

    return connect_mysql, "`"


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"
