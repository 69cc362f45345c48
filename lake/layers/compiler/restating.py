"""The steps that bring a table to a definition that is another one for a part of its rows alone.

What the table has in other parts is brought up to date as in any increment. In the part that is restated all rows are
computed, and compared with those that are there.
"""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

from sqlglot import exp

from lake.layers.compiler.algebra import Filter, Operator, Project, UnionAll, Window
from lake.layers.compiler.checks import Checks
from lake.layers.compiler.deltas import Deltas, Restriction, Side, joined, select_from, union_of
from lake.layers.compiler.differences import Shape, differences, same_key
from lake.layers.compiler.layers import Layer
from lake.layers.compiler.lineage import origins
from lake.layers.compiler.texts.restated import Restated


class Divided(NamedTuple):
    """A layer of its last part alone, and one of all other parts, each with its checks."""

    latest: Layer
    earlier: Layer
    latest_checks: Checks
    earlier_checks: Checks


def divided(layer: Layer, checks: Checks, parts: Restated) -> Divided | None:
    """A layer that consists of parts, as two. None if its operators can't be told apart so."""
    found: list[tuple[Layer, Checks]] = []
    for branches in (slice(-1, None), slice(-1)):
        made: dict[int, Operator] = {}
        operator = _some(layer.operator, len(parts.parts), branches, made)
        if operator is None or id(checks.operator) not in made:
            return None
        own = dataclasses.replace(checks, operator=made[id(checks.operator)])
        found.append((dataclasses.replace(layer, operator=operator, mergeable=None), own))
    (latest, latest_checks), (earlier, earlier_checks) = found
    return Divided(latest, earlier, latest_checks, earlier_checks)


def copied(both: Divided, column: str) -> dict[str, str | None]:
    """By each table that the last part reads, the table's column that the layer's column is a copy of; None where
    there isn't one."""
    found = dict[str, str | None]()
    copies = [*origins(both.latest.operator, {column: both.latest.outputs[column]})]
    for table in sorted(both.latest.sources):
        same = {each.columns.get(column) for each in copies if each.table == table}
        found[table] = same.pop() if len(same) == 1 else None
    return found


def parts_in(layer: Layer, parts: Restated) -> list[Operator] | None:
    """A layer's operator of each of its parts alone. None if they can't be told apart so."""
    count = len(parts.parts)
    found = [_some(layer.operator, count, slice(number, number + 1), {}) for number in range(count)]
    return None if None in found else [each for each in found if each is not None]


def _some(operator: Operator, count: int, branches: slice, made: dict[int, Operator]) -> Operator | None:
    """An operator over some of the branches of its union alone. `made` gets those that replace others, by these."""
    found: Operator | None = None
    match operator:
        case UnionAll() if len(operator.branches) == count:
            found = dataclasses.replace(operator, branches=operator.branches[branches])
        case Project(input=input) | Filter(input=input) | Window(input=input):
            # A window is over rows that are equal: all of them are of one branch.
            inner = _some(input, count, branches, made)
            found = None if inner is None else dataclasses.replace(operator, input=inner)
    if found is not None:
        made[id(operator)] = found
    return found


def restated(both: Divided, deltas: Deltas, stored: str, parts: Restated) -> str:
    """The step with the changes of a layer's table whose last part is another one now, as of `layers.refresh`."""
    layer, earlier = both.latest, both.earlier
    new = [select_from(layer.expressions(), deltas.rows(layer.operator, Side.AFTER))]
    own = [exp.column(name, quoted=True) for name in layer.columns]
    old = [select_from(own, deltas.add("range", select_from(own, stored).where(_is_since(parts), copy=False)))]
    names = sorted({each.name for value in layer.key_expressions() for each in value.find_all(exp.Column)})
    listed = deltas.prunes(stored, layer.key)
    keys = deltas.touched(earlier.operator, names, layer.key_expressions(), keep=listed)
    rows = deltas.delta(earlier.operator, Side.AFTER)
    if keys is not None and rows is not None:
        new.append(select_from(layer.expressions(), rows))
        of = [exp.column(name, table="l", quoted=True) for name in layer.columns]
        query = joined(of, stored, keys, layer.key, same_key(layer.key), kind="SEMI")
        is_earlier = exp.not_(exp.Coalesce(this=_is_since(parts, "l"), expressions=[exp.false()]))
        pairs = tuple((name, name) for name in layer.key)
        restriction = Restriction(stored, keys, pairs) if listed else None
        old.append(select_from(own, deltas.add("stored", query.where(is_earlier, copy=False), restriction=restriction)))
    shape = Shape(tuple(layer.columns), layer.key, layer.texts)
    return differences(deltas, shape, deltas.add("had", union_of(old)), deltas.add("has", union_of(new)))


def observed(both: Divided, deltas: Deltas, before: Mapping[str, int] | None) -> list[tuple[Checks, str]]:
    """The steps beside whose rows it is observed which expectations these don't meet, as of `Checks.observe`."""
    found = []
    for checks, whole in ((both.latest_checks, True), (both.earlier_checks, False)):
        if (step := checks.observe(deltas, before, whole=whole)) is not None:
            found.append((checks, step))
    return found


def _is_since(parts: Restated, table: str | None = None) -> exp.Expr:
    """Whether a row is of the last part."""
    return exp.GTE(this=exp.column(parts.column, table=table, quoted=True), expression=_value(parts))


def _value(parts: Restated) -> exp.Expr:
    value = exp.Literal.string(parts.since)
    return value if parts.type == "string" else exp.cast(value, parts.type, dialect="spark")
