"""What a request read: of which snapshot of the database, and which objects.

A cache keeps both beside the reply. The reply holds for as long as no transaction that the snapshot doesn't see has
changed one of the objects.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum

from sqlalchemy import Connection, text

from metastore.store.prepared import Prepared


class Kind(StrEnum):
    """What changes by itself, as the triggers of the database tell it."""

    DATABASES = "D"
    """Which databases there are, in any catalog; the number is 0."""
    DATABASE = "d"
    TABLES = "T"
    """Which tables there are, of which type; by the database's id."""
    TABLE = "t"
    """A table without what belongs to it."""
    PARTITIONS = "p"
    """The partitions of a table; by the table's id."""
    STATISTICS = "c"
    """The statistics of a table's columns, and of its partitions'; by the table's id."""
    TIMELINE = "l"
    """The instants and files of a table; by the table's id."""


class Footprint:
    """What one request has read so far."""

    __slots__ = ("begun", "incarnation", "objects", "snapshot", "whole")

    def __init__(self) -> None:
        self.begun = False
        self.incarnation: str | None = None
        self.snapshot: str | None = None
        """Of the first transaction, as Postgres writes a pg_snapshot."""
        self.objects: set[tuple[str, int]] = set()
        self.whole = True
        """Whether all that was read can be told; not if the request wrote."""


_current: ContextVar[Footprint | None] = ContextVar("footprint", default=None)

INCARNATION = (
    "concat_ws(':', incarnation, cache_state.tableoid, extract(epoch FROM pg_postmaster_start_time()),"
    " (SELECT oid FROM pg_database WHERE datname = current_database()))"
)
"""What ends when ids of transactions may be given again. Also where a copy of the database is put back or elsewhere."""

_STAMP = Prepared(
    text(f"SELECT pg_current_snapshot()::text AS snapshot, (SELECT {INCARNATION} FROM cache_state) AS incarnation")
)


@contextmanager
def recording() -> Iterator[Footprint]:
    """Notes what this thread reads within."""
    footprint = Footprint()
    token = _current.set(footprint)
    try:
        yield footprint
    finally:
        _current.reset(token)


def begin(tx: Connection) -> None:
    """A transaction that sees one snapshot has begun: the first thing that it is asked is which."""
    footprint = _current.get()
    if footprint is not None and not footprint.begun:
        footprint.begun = True
        footprint.snapshot, footprint.incarnation = _STAMP.first(tx)


def note(kind: Kind, number: int) -> None:
    """An object is being read."""
    footprint = _current.get()
    if footprint is not None:
        footprint.objects.add((kind.value, number))


def recorded() -> bool:
    """Whether anybody wants to know what is read."""
    return _current.get() is not None


def spoil() -> None:
    """Something is read, or written, of which changes aren't told: nobody may keep the answer."""
    footprint = _current.get()
    if footprint is not None:
        footprint.whole = False
