"""Decodes the messages of Postgres's output plugin `pgoutput`, version 1 of its protocol.

The source of all rules is "Logical Replication Message Formats" in Postgres's documentation. Values are in the text
form that the session's settings give them.
"""

from dataclasses import dataclass
from enum import Enum
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from lake.capture.errors import CaptureError


class Unchanged(Enum):
    """A large value that an update didn't touch, and that is therefore not in the log (TOAST)."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED

Value: TypeAlias = str | Unchanged | None
"""A value's text, None for NULL, or UNCHANGED."""

Values: TypeAlias = list[Value]


class Column(NamedTuple):
    """A column of a relation. `type_oid` and `modifier` as in pg_attribute; `in_key`: part of the replica identity."""

    name: str
    type_oid: int
    modifier: int
    in_key: bool


@dataclass(frozen=True)
class Relation:
    """A table as it was when the changes after this message were made.

    `identity` is pg_class.relreplident: `d` for the primary key, `i` an index, `f` all columns, `n` nothing.
    """

    oid: int
    schema: str
    table: str
    identity: str
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"


class Begin(NamedTuple):
    """A transaction's changes follow. `commit_lsn`: where its commit is in the log. Time: microseconds since 1970."""

    commit_lsn: int
    commit_time: int
    xid: int


class Commit(NamedTuple):
    """The transaction ends. `end_lsn`: where the log goes on after its commit."""

    commit_lsn: int
    end_lsn: int


class Change(NamedTuple):
    """A row was inserted (`I`), updated (`U`) or deleted (`D`).

    `old` is None for inserts, and for updates that left the key alone unless the identity is all columns. With
    `old_is_key` it has the values of the key, and None in all other columns.
    """

    kind: str
    relation_oid: int
    old: Values | None
    old_is_key: bool
    new: Values | None


class Truncate(NamedTuple):
    """All rows of these relations were removed."""

    relation_oids: tuple[int, ...]


class Message(NamedTuple):
    """A message of pg_logical_emit_message."""

    prefix: str
    content: bytes


Decoded: TypeAlias = Begin | Commit | Relation | Change | Truncate | Message | None

_POSTGRES_EPOCH = 946_684_800_000_000
"""2000-01-01 in microseconds since 1970, what Postgres counts from."""

_BEGIN = Struct("!qqI")
_COMMIT = Struct("!Bqqq")
_MESSAGE = Struct("!Bq")
_COLUMN = Struct("!Ii")
_COUNT = Struct("!H")
_OID = Struct("!I")
_TRUNCATE = Struct("!IB")

_KEY, _OLD, _NEW = ord("K"), ord("O"), ord("N")
_TEXT, _NULL, _UNCHANGED = ord("t"), ord("n"), ord("u")
_IGNORED = frozenset("OY")  # origins and types: nothing that a row's meaning depends on


def decode(data: bytes) -> Decoded:
    """What a message says; None for those without meaning here. Raises CaptureError for what isn't understood."""
    kind = chr(data[0])
    if kind in "IUD":
        return _change(data, kind)
    if kind == "B":
        commit_lsn, time, xid = _BEGIN.unpack_from(data, 1)
        return Begin(commit_lsn, time + _POSTGRES_EPOCH, xid)
    if kind == "C":
        _, commit_lsn, end_lsn, _ = _COMMIT.unpack_from(data, 1)
        return Commit(commit_lsn, end_lsn)
    if kind == "R":
        return _relation(data)
    if kind == "T":
        count, _ = _TRUNCATE.unpack_from(data, 1)
        return Truncate(tuple(_OID.unpack_from(data, 6 + 4 * number)[0] for number in range(count)))
    if kind == "M":
        prefix, at = _text(data, 1 + _MESSAGE.size)
        (length,) = _OID.unpack_from(data, at)
        return Message(prefix, bytes(data[at + 4 : at + 4 + length]))
    if kind in _IGNORED:
        return None
    raise CaptureError(f"Postgres sent a message of the unknown kind {kind!r}: is the plugin pgoutput?")


def _change(data: bytes, kind: str) -> Change:
    (oid,) = _OID.unpack_from(data, 1)
    mark = data[5]
    old: Values | None = None
    at = 6
    if mark != _NEW:
        if mark not in (_KEY, _OLD):
            raise CaptureError(f"a change of the relation {oid} begins with the unknown mark {mark}")
        old, at = _values(data, at)
        if kind == "D":
            return Change(kind, oid, old, mark == _KEY, None)
        at += 1  # the mark of the new row
    new, _ = _values(data, at)
    return Change(kind, oid, old, mark == _KEY, new)


def _values(data: bytes, at: int) -> tuple[Values, int]:
    """The values of a row, and where it ends."""
    (count,) = _COUNT.unpack_from(data, at)
    at += 2
    found: Values = []
    add = found.append
    length_of = _OID.unpack_from
    for _ in range(count):
        mark = data[at]
        if mark == _TEXT:
            start = at + 5
            at = start + length_of(data, at + 1)[0]
            add(data[start:at].decode())
        elif mark == _NULL:
            add(None)
            at += 1
        elif mark == _UNCHANGED:
            add(UNCHANGED)
            at += 1
        else:
            raise CaptureError(f"a value begins with the unknown mark {mark}: only values in text form are understood")
    return found, at


def _relation(data: bytes) -> Relation:
    (oid,) = _OID.unpack_from(data, 1)
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _COUNT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        in_key = bool(data[at] & 1)
        name, at = _text(data, at + 1)
        type_oid, modifier = _COLUMN.unpack_from(data, at)
        at += _COLUMN.size
        columns.append(Column(name, type_oid, modifier, in_key))
    return Relation(oid, schema or "pg_catalog", table, identity, tuple(columns))


def _text(data: bytes, at: int) -> tuple[str, int]:
    """A text that a zero byte ends, and where the next field begins."""
    end = data.index(0, at)
    return data[at:end].decode(), end + 1
