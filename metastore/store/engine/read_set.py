"""The read set of a request: which database snapshot and which objects it has read.

The cache keeps both with the reply. The reply is valid until a transaction that the snapshot doesn't see changes one
of the objects. A function of the store records a read where it executes the statement, not where it builds it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, literal_column, select

from metastore.postgres.prepared import Prepared


class Kind(StrEnum):
    """The kinds of objects whose changes the triggers of the database record."""

    DATABASES = "D"
    """The list of databases, in all catalogs. The number is 0."""
    DATABASE = "d"
    """One database itself."""
    TABLES = "T"
    """The list of tables in a database, with their types, and which of them are Iceberg's or are shown as Iceberg. The
    number is the database's id."""
    TABLE = "t"
    """One table itself, without its partitions and so on."""
    PARTITIONS = "p"
    """The partitions of a table. The number is the table's id."""
    STATISTICS = "c"
    """The column statistics of a table and its partitions. The number is the table's id."""
    TIMELINE = "l"
    """The instants and files of a table. The number is the table's id."""
    ACCESS = "a"
    """The privileges on a database and what is in it, and the owners of its tables. The number is the database's id.

    Number 0: the roles, their members, and the privileges on everything.
    """


class ReadSet:
    """The objects that one request has read so far."""

    __slots__ = ("begun", "incarnation", "objects", "snapshot", "whole")

    def __init__(self) -> None:
        self.begun = False
        self.incarnation: str | None = None
        self.snapshot: str | None = None
        """The snapshot of the request's first transaction, as the text of a pg_snapshot."""
        self.objects: set[tuple[str, int]] = set()
        self.whole = True
        """False if the request wrote, or read something whose changes aren't recorded."""


_current: ContextVar[ReadSet | None] = ContextVar("read set", default=None)

INCARNATION = (
    "concat_ws(':', incarnation, cache_state.tableoid, pg_relation_filenode('cache_changes'),"
    " extract(epoch FROM pg_postmaster_start_time()),"
    " (SELECT oid FROM pg_database WHERE datname = current_database()))"
)
"""SQL. Another value when Postgres may assign transaction ids again, or a copy of the database is restored.

Also when `cache_changes` is truncated: a statement that waited for that, with an older snapshot, finds the table empty
and the row of `cache_state` still there. The table's new file number shows it.
"""

STAMP: tuple[ColumnElement[Any], ...] = (
    literal_column("pg_current_snapshot()::text").label("snapshot"),
    literal_column(f"(SELECT {INCARNATION} FROM cache_state)").label("incarnation"),
)
"""The columns of a statement's snapshot."""

OWN_TRANSACTION: ColumnElement[Any] = literal_column("pg_current_xact_id()::text::bigint").label("xid")
"""The column of the transaction's own id."""

_STAMP = Prepared(select(*STAMP))


@contextmanager
def recording() -> Iterator[ReadSet]:
    """Records what this thread reads within the block."""
    read_set = ReadSet()
    token = _current.set(read_set)
    try:
        yield read_set
    finally:
        _current.reset(token)


def begin(tx: Connection) -> None:
    """Records the snapshot of a read transaction. To be called before it reads anything."""
    read_set = _current.get()
    if read_set is not None and not read_set.begun:
        stamp(*_STAMP.first(tx))


def stamp(snapshot: str, incarnation: str | None) -> None:
    """Records the snapshot of a statement that is a transaction of its own: its columns of `STAMP`."""
    read_set = _current.get()
    if read_set is not None and not read_set.begun:
        read_set.begun = True
        read_set.snapshot, read_set.incarnation = snapshot, incarnation


def record_read(kind: Kind, number: int) -> None:
    """Records that an object is read."""
    read_set = _current.get()
    if read_set is not None:
        read_set.objects.add((kind.value, number))


def recorded() -> bool:
    """Whether reads are being recorded."""
    return _current.get() is not None


def mark_uncacheable() -> None:
    """Something is written, or read whose changes aren't recorded: the cache may not keep the reply."""
    read_set = _current.get()
    if read_set is not None:
        read_set.whole = False
