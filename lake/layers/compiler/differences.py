"""The rows in which two states of a keyed table differ, as changes."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import exp

from lake.layers.compiler.deltas import Deltas, joined, select_from
from lake.layers.compiler.typed import as_json
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType


class Shape(NamedTuple):
    """What a keyed table's rows have: its columns, those that tell rows apart and are never NULL, and those that can
    only be compared as texts."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    texts: frozenset[str] = frozenset()


def differences(deltas: Deltas, shape: Shape, old: str, new: str) -> str:
    """The step with the rows that differ: the table's columns and `_change_type`.

    They are net: no row of them is as it was. `old` and `new` are relations of rows with the table's columns.
    """
    columns = shape.columns
    sides = {"l": [f"old_{number}" for number in range(len(columns))]}
    sides["r"] = [f"new_{number}" for number in range(len(columns))]
    both = [
        exp.alias_(exp.column(name, table=side, quoted=True), made)
        for side, names in sides.items()
        for name, made in zip(columns, names, strict=True)
    ]
    differs = [_differ(name, as_text=name in shape.texts) for name in columns]
    rows = joined(both, old, new, columns, same_key(shape.key), side="FULL", kind="OUTER")
    pairs = deltas.add("compared", rows.where(exp.or_(*differs), copy=False), keep=True)
    place = columns.index(shape.key[0])

    def of(side: str, other: str, alone: ChangeType, changed: ChangeType) -> exp.Select:
        own = [exp.alias_(exp.column(made), name, quoted=True) for made, name in zip(sides[side], columns, strict=True)]
        is_alone = _is_null(sides[other][place])
        kind = exp.Case().when(is_alone, exp.Literal.string(str(alone))).else_(exp.Literal.string(str(changed)))
        there = exp.not_(_is_null(sides[side][place]))
        return select_from([*own, exp.alias_(kind, CHANGE_TYPE)], pairs).where(there, copy=False)

    gone = of("l", "r", ChangeType.DELETE, ChangeType.UPDATE_PREIMAGE)
    came = of("r", "l", ChangeType.INSERT, ChangeType.UPDATE_POSTIMAGE)
    return deltas.add("changes", exp.union(gone, came, distinct=False))


def same_key(key: Sequence[str]) -> exp.Expr:
    """That a row of `l` and one of `r` have the same key."""
    sides = ([exp.column(name, table=side, quoted=True) for name in key] for side in ("l", "r"))
    return exp.and_(*(left.eq(right) for left, right in zip(*sides, strict=True)))


def _is_null(column: str) -> exp.Expr:
    return exp.Is(this=exp.column(column), expression=exp.Null())


def _differ(name: str, *, as_text: bool) -> exp.Expr:
    sides: list[exp.Expr] = [exp.column(name, table=side, quoted=True) for side in ("l", "r")]
    if as_text:
        sides = [as_json(each) for each in sides]
    return exp.not_(exp.NullSafeEQ(this=sides[0], expression=sides[1]))
