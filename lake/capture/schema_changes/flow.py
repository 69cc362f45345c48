"""What flows on while a change of a table is held: the columns that are agreed on, and where later rows have them.

Rows before the change are as they were. A later row counts if each agreed column can be told from what the source has
by then: by the numbers of columns, or by its statements. Else it waits, and the row before the change stays.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from lake.capture.schema_changes.agreed import columns_without, decided
from lake.capture.schema_changes.amendments import Amendment, How
from lake.capture.schema_changes.history import Era, History
from lake.capture.schema_changes.model import ADDS, Action, Column, Difference, Kind, Position, SchemaChange
from lake.capture.schema_changes.policy import Policy
from lake.capture.schema_changes.types import is_exact_number, kind_of

_STANDS_STILL: Final = frozenset({Kind.KEY, Kind.RENAME_TABLE, Kind.UNKNOWN})
"""Changes behind which nobody can say which row is which."""

_ENDS: Final = frozenset({Kind.DROP, Kind.REPLACE, Kind.TYPE, Kind.UNCLEAR})
"""Changes behind which their column can't be told."""


class Fill(NamedTuple):
    """The value of a column in rows before a position, which don't have it. `json`: an object with the column alone."""

    column: str
    json: str
    before: Position


@dataclass(frozen=True)
class LaterColumns:
    """Where agreed columns are in rows from a position on, by their agreed names; None for one that can't be told."""

    at: Position
    columns: Mapping[str, Column | None]


@dataclass(frozen=True)
class Held:
    """What becomes of a table's rows while a change is held.

    `since`: rows from here on are later ones. `later`: how these are read, in the order of their positions. `until`:
    rows from here on wait whatever they have; None if none do. `large`: agreed columns whose values updates may leave
    out in later rows. `form`: of the last columns that are known, which were written down by `known`. `again`: where
    the table began to be read again since.
    """

    since: Position
    later: tuple[LaterColumns, ...]
    until: Position | None
    large: frozenset[str]
    form: str
    known: Position
    again: tuple[Position, ...]


@dataclass(frozen=True)
class Agreement:
    """The columns of a typed table. `text`: of the `schema` row that describes them; `without`: those of them that it
    doesn't get. `fills`: what they have in older rows. `held`: what flows on; None if no change but new columns is
    held."""

    text: str
    without: frozenset[str]
    fills: tuple[Fill, ...] = ()
    held: Held | None = None


def agreement(history: History, policy: Policy) -> Agreement:
    """What is agreed on a table's columns. `history` has an era at least. Changes behind a held one wait with it.

    Raises CaptureError as `columns_without` does.
    """
    eras = history.eras
    first = next((number for number, each in enumerate(eras) if number and _is_held(each.changes, policy)), None)
    if first is None:
        return Agreement(eras[-1].text, columns_without(decided(history.changes, policy)), fills_of(eras))
    since = eras[first].begins
    if (opened := eras[first].open) is not None:  # typed tables still have what was before that
        since = opened
        first = next((number for number, each in enumerate(eras) if number and each.at > opened), first)
    without = columns_without(decided((change for each in eras[:first] for change in each.changes), policy))
    agreed = [each for each in eras[first - 1].columns if each.name not in without]
    later, until = _later(agreed, eras[first:], since, policy)
    held = _held(later, until, since, eras[first:], history.known)
    return Agreement(eras[first - 1].text, without, fills_of(eras[:first]), held)


def fills_of(eras: Sequence[Era]) -> tuple[Fill, ...]:
    """What columns have in rows that were written before they came."""
    return tuple(Fill(each.name, each.fill, era.at) for era in eras for each in era.columns if each.fill is not None)


def _is_held(changes: Sequence[SchemaChange], policy: Policy) -> bool:
    """Whether another change than a new column waits."""
    return any(
        each.decision.action is Action.HOLD and (each.change.difference.kind not in ADDS or each.change.blocked)
        for each in decided(changes, policy)
    )


def _held(
    later: list[LaterColumns], until: Position | None, since: Position, eras: Sequence[Era], known: Position
) -> Held:
    large = {
        name
        for each in later
        for name, column in each.columns.items()
        if column is not None and column.may_be_unchanged and not column.in_key
    }
    described = json.loads(eras[-1].text)
    form = described[-1]["form"] if described else ""
    again = tuple(each.begins for each in eras if each.begins != each.at)
    return Held(since, tuple(later), until, frozenset(large), form, known, again)


def _later(
    agreed: Sequence[Column], eras: Sequence[Era], since: Position, policy: Policy
) -> tuple[list[LaterColumns], Position | None]:
    """How rows from some eras are read, and from where on none is."""
    names: dict[str, str | None] = {each.name: each.name for each in agreed}  # what each is called by now
    cast: set[str] = set()  # agreed columns whose values have another type, and are the same
    found: list[LaterColumns] = []
    for era in eras:
        if any(each.difference.kind in _STANDS_STILL for each in era.changes):
            return found, max(since, era.open or era.begins)
        amended = {one.column: one for each in era.changes for one in policy.amendments(each)}
        cast |= {each for each, name in names.items() if name in amended and amended[name].how is How.CAST}
        names = _renamed(names, era, amended)
        columns = {each.name: each for each in era.columns}
        now = {each.name: columns.get(names[each.name] or "") for each in agreed}
        told = {each.name: _told(each, now[each.name], is_cast=each.name in cast) for each in agreed}
        if any(told[each.name] is None for each in agreed if each.in_key):
            return found, max(since, era.open or era.begins)
        if not found or found[-1].columns != told:
            found.append(LaterColumns(era.at, told))
    return found, None


def _renamed(names: Mapping[str, str | None], era: Era, amended: Mapping[str, Amendment]) -> dict[str, str | None]:
    """What columns are called in an era, by what they were before; None for those that can't be told any more."""
    differences = [each.difference for each in era.changes]
    ended = {each.old.name for each in differences if each.old is not None and _ends(each)}
    renamed = {
        each.old.name: each.new.name
        for each in differences
        if each.kind is Kind.RENAME and each.old is not None and each.new is not None
    }
    there = {each.name for each in era.columns}
    added = {each.new.name for each in differences if each.kind in ADDS and each.new is not None}
    added -= {*renamed.values()}
    found: dict[str, str | None] = {}
    for agreed, name in names.items():
        now = None if name is None or name in ended else renamed.get(name, name)
        is_known = now in there and (now not in added or name in renamed)
        found[agreed] = now if is_known else None
        if name is not None and (said := amended.get(name)) is not None:
            found[agreed] = {How.RENAME: said.to, How.CAST: said.column, How.DROP_ADD: None}[said.how]
    return found


def _ends(difference: Difference) -> bool:
    """Whether the values of the column before can't be told from those of the one after."""
    old, new = difference.old, difference.new
    if difference.kind is not Kind.RENAME or old is None or new is None:
        return difference.kind in _ENDS
    if (old.type, old.source_type) == (new.type, new.source_type):
        return False
    return kind_of(old.type, new.type, old.source_type, new.source_type) in _ENDS


def _told(agreed: Column, now: Column | None, *, is_cast: bool) -> Column | None:
    """The column that has an agreed one's values; None if it may have others, or values that can't be compared."""
    if now is None:
        return None
    if agreed.type != now.type and not is_cast and not (is_exact_number(agreed.type) and is_exact_number(now.type)):
        return None
    return now
