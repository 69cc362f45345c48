"""Branches of a UNION ALL that can have no rows with the same key, since conditions keep a column of them apart.

Such a union keeps the key of its branches: a query for the days before some date, and another one for those since.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lake.layers.compiler.algebra import Explode, Filter, Join, JoinKind, Operator, Project, Source, Span, Window

Branch = tuple[Operator, tuple[str, ...]]
"""A branch, and its columns in the places of the union's."""


class SharedKey(NamedTuple):
    """The key of a union whose branches are apart: columns of the union, and numbers of further ones that it needs,
    whose names in each branch `hidden` has."""

    key: tuple[str | int, ...]
    hidden: tuple[tuple[str, ...], ...]


class _Stored(NamedTuple):
    """A table's column that a column of a query is a copy of: of which reference to the table, and its name there."""

    source: Source
    name: str

    @property
    def named(self) -> tuple[str, str]:
        return self.source.table, self.name


def shared_key(columns: Sequence[str], parts: Sequence[Branch], types: Mapping[str, str]) -> SharedKey | None:
    """The key of the rows of all branches together, if it can be that of each; None if that can't be said.

    No two rows have the same key if some column keeps the branches apart, and either belongs to the key or follows from
    it: then it is a copy of a column of a table whose key all branches have in theirs. Where neither is so, the column
    becomes a part of the key, if all columns of that are among the union's.
    """
    apart = [place for place in range(len(columns)) if _keeps_apart(place, parts, columns, types)]
    keys = [_identities(operator, values, columns, types) for operator, values in parts] if apart else []
    known = [each for each in keys if each is not None]
    if not known or len(known) < len(parts) or any({*each} != {*known[0]} for each in known):
        return None
    hidden = [each for each in known[0] if not isinstance(each, int)]
    found = SharedKey(
        tuple(columns[each] if isinstance(each, int) else hidden.index(each) for each in known[0]),
        tuple(tuple(each[one] for one in hidden) for each in known),
    )
    if any(place in known[0] or _follows(place, parts, known) for place in apart):
        return found
    # A text of a key that isn't seen would be another one.
    return None if hidden else found._replace(key=(*found.key, columns[apart[0]]))


def span_of(operator: Operator, column: str) -> Span:
    """The range in which conditions keep a column of an operator."""
    match operator:
        case Filter(input=input, spans=spans):
            return span_of(input, column).within(spans.get(column, Span()))
        case Project(input=input):
            inner = operator.plain(column)
            return Span() if inner is None else span_of(input, inner)
        case Join(left=left) if operator.kind is not JoinKind.FULL and column in left.columns:
            return span_of(left, column)
        case Join(right=right) if operator.kind is JoinKind.INNER and column in right.columns:
            return span_of(right, column)
    return Span()


def _keeps_apart(place: int, parts: Sequence[Branch], columns: Sequence[str], types: Mapping[str, str]) -> bool:
    """Whether conditions keep a column of the union in ranges of its own in each branch. It has one type in all of
    them: values that differ there could be the same in another one."""
    if any(types[values[place]] != types[columns[place]] for _, values in parts):
        return False
    spans = [span_of(operator, values[place]) for operator, values in parts]
    return all(one.is_apart(other) for number, one in enumerate(spans) for other in spans[:number])


def _identities(
    operator: Operator, values: Sequence[str], columns: Sequence[str], types: Mapping[str, str]
) -> dict[int | tuple[str, str], str] | None:
    """The columns of a branch's key, by what they are in all branches: the place of a column of the union, or a table's
    column. None for a key that can't be compared so."""
    found: dict[int | tuple[str, str], str] = {}
    for column in operator.key or ():
        identity: int | tuple[str, str]
        if column in values:
            identity = values.index(column)
            if types[column] != types[columns[identity]]:
                return None
        elif (stored := _stored(operator, column)) is not None:
            identity = stored.named
        else:
            return None
        if identity in found:
            return None
        found[identity] = column
    return found


def _follows(place: int, parts: Sequence[Branch], keys: Sequence[Mapping[int | tuple[str, str], str]]) -> bool:
    """Whether a column of the union is, in all branches alike, that of the row of a table whose key is in theirs."""
    facts = []
    for (operator, values), key in zip(parts, keys, strict=True):
        stored = _stored(operator, values[place])
        if stored is None or not stored.source.key:
            return False
        of_table = {stored.source.stored[each] for each in stored.source.key}
        named = {}
        for identity, column in key.items():
            own = _stored(operator, column)
            if own is not None and own.source is stored.source and own.name in of_table:
                named[own.name] = identity
        if named.keys() != of_table:
            return False
        facts.append((stored.named, named))
    return all(each == facts[0] for each in facts)


def _stored(operator: Operator, column: str) -> _Stored | None:
    """The table's column of which an operator's column is a copy, in each row or NULL where a join found no partner."""
    match operator:
        case Source(stored=stored):
            return _Stored(operator, stored[column]) if column in stored else None
        case Project(input=input):
            inner = operator.plain(column)
            return None if inner is None else _stored(input, inner)
        case Filter(input=input) | Window(input=input) | Explode(input=input):
            return _stored(input, column) if column in input.columns else None
        case Join(left=left, right=right):
            return next((_stored(each, column) for each in (left, right) if column in each.columns), None)
    return None
