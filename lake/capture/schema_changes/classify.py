"""What differs between the columns of a table and those that it had before."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lake.capture.schema_changes.model import Column, Difference, Kind
from lake.capture.schema_changes.types import kind_of


@dataclass(frozen=True)
class Cause:
    """What is known of a change beside the columns.

    `statements`: what the source ran, in order, each with the columns that it renames, or drops: None. `is_read_again`:
    the table's rows are read again, so older rows may have other values. `tells_all`: `statements` say of each column
    that was renamed.
    """

    statements: Sequence[tuple[str, Mapping[str, str | None]]] = ()
    is_read_again: bool = False
    tells_all: bool = False


def differences(old: Sequence[Column], new: Sequence[Column], cause: Cause) -> list[Difference]:
    """What differs. Each column is in one difference at most, but for the key's and the order's."""
    pairs, has_numbers = _pairs(old, new, cause)
    places = [] if has_numbers or cause.tells_all else _moved([new.index(after) for _, after in pairs])
    in_doubt = [pairs[place] for place in places]
    found = [each for pair in pairs if pair not in in_doubt for each in _of_column(*pair, cause)]
    for before, after in in_doubt:
        said = f"{after.name} has another place among the columns: moved, or another column by its name"
        found.append(Difference(Kind.UNCLEAR, said, before, after))
    kept_old, kept_new = {before.name for before, _ in pairs}, {after.name for _, after in pairs}
    gone = [each for each in old if each.name not in kept_old]
    added = [each for each in new if each.name not in kept_new]
    for each in gone:
        again = next((other for other in added if other.name == each.name), None)
        if again is not None:
            added.remove(again)
            said = f"{each.name} was dropped, and added again as {_type(again)}"
            found.append(Difference(Kind.REPLACE, said, each, again))
    replaced = {each.old.name for each in found if each.kind is Kind.REPLACE and each.old is not None}
    gone = [each for each in gone if each.name not in replaced]
    if gone and added and not has_numbers and not cause.tells_all:
        names = ", ".join(each.name for each in gone), ", ".join(f"{each.name} {_type(each)}" for each in added)
        found.append(Difference(Kind.UNCLEAR, f"{names[0]} gone, {names[1]} new: renamed, or others"))
    else:
        found += [Difference(Kind.DROP, f"{each.name} was dropped", each) for each in gone]
        found += [_added(each, cause) for each in added]
    found += [each for each in _of_table(old, new, pairs) if not in_doubt or each.kind is not Kind.MOVE]
    return found or [*_of_rows(cause)]


def _pairs(old: Sequence[Column], new: Sequence[Column], cause: Cause) -> tuple[list[tuple[Column, Column]], bool]:
    """Columns that are the same ones, and whether their numbers say so for certain."""
    numbers = [each.number for each in (*old, *new)]
    # The columns of a table that was dropped and made again have the numbers of other columns.
    is_same = len({each.table for each in (*old, *new) if each.table is not None}) < 2
    if old and new and None not in numbers and is_same:
        by_number = {each.number: each for each in new}
        return [(each, by_number[each.number]) for each in old if each.number in by_number], True
    names = {each.name: each.name for each in old}
    dropped: set[str] = set()
    for _, renamed in cause.statements:
        folded = {name.casefold(): to for name, to in renamed.items()}
        now = {name: folded.get(before.casefold(), before) for name, before in names.items()}
        names = {name: to for name, to in now.items() if to is not None}
        dropped |= {name for name, to in folded.items() if to is None}
    by_name = {each.name.casefold(): each for each in new}
    wanted = [to.casefold() for to in names.values()]
    if len({*wanted}) < len(wanted) or not {to.casefold() for name, to in names.items() if name != to} <= {*by_name}:
        # The statements aren't all there was.
        names = {each.name: each.name for each in old if each.name.casefold() not in dropped}
    return [(each, by_name[to]) for each in old if (to := names.get(each.name, "").casefold()) in by_name], False


def _moved(places: Sequence[int]) -> list[int]:
    """Those of some columns whose order among the others is another one, by where they are now."""
    return [
        number
        for number, place in enumerate(places)
        if any(each > place for each in places[:number]) or any(each < place for each in places[number + 1 :])
    ]


def _of_column(old: Column, new: Column, cause: Cause) -> Iterator[Difference]:
    """The difference between a column and what it was."""
    if old.name != new.name:
        more = "" if (old.type, old.source_type) == (new.type, new.source_type) else f", with the type {_type(new)}"
        yield Difference(Kind.RENAME, f"{old.name} was renamed to {new.name}{more}", old, new)
    elif (old.type, old.source_type) != (new.type, new.source_type):
        kind = kind_of(old.type, new.type, old.source_type, new.source_type)
        yield Difference(kind, f"{old.name}: {_type(old)} became {_type(new)}", old, new)


def _added(column: Column, cause: Cause) -> Difference:
    if column.fill is not None:
        said = f"{column.name} {_type(column)} was added, with {column.fill} in older rows"
        return Difference(Kind.ADD_FILLED, said, None, column)
    if cause.is_read_again:
        return Difference(Kind.ADD_FILLED, f"{column.name} {_type(column)} was added, with values", None, column)
    return Difference(Kind.ADD, f"{column.name} {_type(column)} was added", None, column)


def _of_table(
    old: Sequence[Column], new: Sequence[Column], pairs: Sequence[tuple[Column, Column]]
) -> Iterator[Difference]:
    """Differences of the key and of the order."""
    renamed = {before.name: after.name for before, after in pairs}
    key = [renamed.get(each.name, each.name) for each in old if each.in_key]
    now = [each.name for each in new if each.in_key]
    if sorted(key) != sorted(now):
        yield Difference(Kind.KEY, f"the key was {_names(old)}, and is {_names(new)}")
    places = [new.index(after) for _, after in pairs]
    if places != sorted(places):
        yield Difference(Kind.MOVE, f"the order of columns is {', '.join(each.name for each in new)}")


_RENAMED_LABEL = r"\bRENAME\s+VALUE\b"
_SAID = (
    (Kind.PARTITIONS, r"\b(?:EXCHANGE|DROP|TRUNCATE|CONVERT|IMPORT|DISCARD)\s+(?:PARTITION|TABLESPACE)\b"),
    (Kind.PARTITIONS, r"\b(?:ATTACH|DETACH)\s+PARTITION\b"),
    (Kind.RENAME_TABLE, r"^\s*RENAME\s+TABLE\b|\bRENAME\s+(?:TO|AS)\b"),
    (Kind.LABELS, rf"\b(?:ENUM|SET)\s*\(|{_RENAMED_LABEL}"),
    (Kind.CHARSET, r"\b(?:CHARACTER\s+SET|CHARSET|COLLATE)\b"),
    (Kind.NULLABILITY, r"\bMODIFY\b.*\bNULL\b"),
)
"""What a statement is that leaves all columns as they were: the first that fits."""


def _of_rows(cause: Cause) -> Iterator[Difference]:
    """What a change is that has left all columns as they were."""
    for text, _ in cause.statements:
        kind = next((kind for kind, form in _SAID if re.search(form, text, re.IGNORECASE | re.DOTALL)), Kind.ROWS)
        if kind is not Kind.ROWS or cause.is_read_again:
            yield Difference(kind, " ".join(text.split())[:200])
            return
    if cause.is_read_again:
        yield Difference(Kind.ROWS, "rows changed of which the log has nothing")


def may_change_rows(statement: str) -> bool:
    """Whether a statement of Postgres's that leaves a table's columns as they were may have changed its rows."""
    forms = [form for kind, form in _SAID if kind is Kind.PARTITIONS]
    forms += [_RENAMED_LABEL, r"\bALTER\b.*\bTYPE\b", r"\bSET\s+(?:UN)?LOGGED\b", r"\bPRIMARY\s+KEY\b"]
    return any(re.search(each, statement, re.IGNORECASE | re.DOTALL) for each in forms)


def _type(column: Column) -> str:
    return column.source_type or column.type


def _names(columns: Sequence[Column]) -> str:
    return ", ".join(each.name for each in columns if each.in_key) or "nothing"
