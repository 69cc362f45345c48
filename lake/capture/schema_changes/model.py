"""The kinds of changes of a source's table, and what may become of each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, TypeAlias


class Kind(StrEnum):
    """What a change is. The values are the words of the policy."""

    ADD = "add"
    """A column was added that is NULL in older rows."""
    ADD_FILLED = "add-filled"
    """A column was added that has values in older rows: a default, a computed one."""
    DROP = "drop"
    RENAME = "rename"
    REPLACE = "replace"
    """A column was dropped, and another one was added by its name."""
    UNCLEAR = "unclear"
    """Columns are gone and others are there, and nothing says whether these were renamed."""
    WIDEN = "widen"
    """Another type, which has all values of the one before."""
    NARROW = "narrow"
    """A type of the same family, which doesn't have all values of the one before."""
    TYPE = "type"
    """A type of another family."""
    KEY = "key"
    MOVE = "move"
    """The order of columns."""
    LABELS = "labels"
    """Values of an enum or a set."""
    CHARSET = "charset"
    NULLABILITY = "nullability"
    RENAME_TABLE = "rename-table"
    """The table, or another one by its name, was renamed. Tools that change tables online do so."""
    PARTITIONS = "partitions"
    """Partitions came or went with their rows."""
    ROWS = "rows"
    """Rows changed of which the log has nothing, and the columns didn't."""
    TRUNCATE = "truncate"
    STALE = "stale"
    """Rows may have other values at the source, and nobody wants them to be read again."""
    UNKNOWN = "unknown"


ADDS = frozenset({Kind.ADD, Kind.ADD_FILLED})
"""Kinds of changes without which typed tables can go on."""


class Action(StrEnum):
    """What is to become of a change."""

    APPLY = "apply"
    """Typed tables get it."""
    HOLD = "hold"
    """It waits for somebody to decide."""
    IGNORE = "ignore"
    """Nobody has to decide. Typed tables don't get a new column; they get any other change."""


class Untouched(StrEnum):
    """What is to become of rows that a change of the source has changed without being in the log."""

    RE_READ = "re-read"
    """All rows of the table are read again."""
    NOTE = "note"
    """They stay as they were, and the list says so."""
    FILL = "fill"
    """They get the constant that a new column has in older rows."""


UNTOUCHED = {
    Kind.ADD_FILLED: frozenset({Untouched.RE_READ, Untouched.FILL}),
    Kind.ROWS: frozenset({Untouched.RE_READ, Untouched.NOTE}),
    Kind.LABELS: frozenset({Untouched.RE_READ, Untouched.NOTE}),
    Kind.PARTITIONS: frozenset({Untouched.RE_READ, Untouched.NOTE}),
}
"""What is possible, by the kind of the change. Nothing leaves a NULL where the source has a value."""


OfUntouched: TypeAlias = Callable[[str, Kind], Untouched]
"""What becomes of a table's rows that a change of a kind has changed without the log."""


def re_read(_: str, __: Kind) -> Untouched:
    """What becomes of them where nobody says anything."""
    return Untouched.RE_READ


class Position(NamedTuple):
    """The position of a raw row: epoch, place of the commit, place in the transaction."""

    epoch: int
    commit_lsn: int
    ordinal: int

    def __str__(self) -> str:
        return ".".join(map(str, self))


@dataclass(frozen=True)
class Column:
    """A column as a `schema` row has it. `type`: Spark's. `number`, `table`: the source's own for the column and for
    its table; None if they aren't known. `may_be_unchanged`: updates may leave its value out. `fill`: an object with
    the column's value in rows that were written before it came, as JSON; None if that isn't known, or there is none.
    """

    name: str
    type: str
    source_type: str
    in_key: bool
    number: int | None = None
    table: int | None = None
    may_be_unchanged: bool = False
    fill: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Difference:
    """One difference between the columns of a table and those before. `old` and `new`: the column, where it is about
    one; None where it isn't there. `said`: what it is, in words."""

    kind: Kind
    said: str
    old: Column | None = None
    new: Column | None = None


@dataclass(frozen=True)
class SchemaChange:
    """A change of a table. `at`: the position from which rows have it. `since`: when it was committed; `statement`:
    what the source ran, if the log says so. `blocked`: why typed tables can't be kept up since, whatever is decided."""

    table: str
    at: Position
    since: datetime
    difference: Difference
    statement: str | None = None
    blocked: str | None = None
