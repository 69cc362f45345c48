"""Makes operators right where types differ: the branches of a union, and the two sides of a join.

Increments compare values of rows that changed with values that are stored. So a branch of a union has the union's types
before anything is compared. And a join matches by columns only if values that are equal are one value: the BIGINT 1 is
equal to the texts '1' and '01'.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from lake.layers.compiler import queries
from lake.layers.compiler.algebra import Operator, Project, UnionAll, walk, with_projects
from lake.layers.compiler.building import Builder, Built, Pair, Table
from lake.layers.compiler.layers import keyed

TypesOf = Callable[[Operator, Sequence[Operator]], Sequence[Mapping[str, str]]]
"""The types of the columns of some operators that are below one."""

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 38
_WIDER = frozenset([("float", "double"), ("date", "timestamp")])
"""Types of which each value has one of its own in the other."""


def built(tree: exp.Query, tables: Mapping[str, Table], database: str, types_of: TypesOf) -> Built:
    """The operators of a query, whose rows are told apart. Raises BadQuery."""
    query = queries.qualified(tree, tables, database)
    builder = Builder(tables)
    made = keyed(builder.build(query))
    if unlike := _unlike_pairs(builder, made.operator, types_of):
        made = keyed(Builder(tables, unlike).build(query))
    casts = _casts(made.operator, types_of)
    return Built(with_projects(made.operator, casts), made.outputs) if casts else made


def _unlike_pairs(builder: Builder, operator: Operator, types_of: TypesOf) -> list[Pair]:
    """The pairs of columns of joins whose types make different values equal."""
    there = {*walk(operator)}
    pairs = {place: pair for place, pair in builder.pairs.items() if pair[0] in there}
    sides = [side for join, _, _ in pairs.values() for side in (join.left, join.right)]
    types = types_of(operator, sides) if sides else []
    return [
        place
        for (place, (_, first, second)), left, right in zip(pairs.items(), types[::2], types[1::2], strict=True)
        if not are_alike(left[first], right[second])
    ]


def are_alike(one: str, other: str) -> bool:
    """Whether values of two types, by Spark's names, are equal only if they are the same value."""
    if one == other or (one, other) in _WIDER or (other, one) in _WIDER:
        return True
    digits = [_digits(each) for each in (one, other)]
    if None in digits:
        return False
    (whole, fraction), (others_whole, others_fraction) = ((found or (0, 0)) for found in digits)
    return max(whole, others_whole) + max(fraction, others_fraction) <= _MOST_DIGITS


def _digits(kind: str) -> tuple[int, int] | None:
    """The digits that numbers of a type have before and after their point; None for other types."""
    if kind in _DIGITS:
        return _DIGITS[kind], 0
    found = _DECIMAL.fullmatch(kind)
    return None if found is None else (int(found[1]) - int(found[2]), int(found[2]))


def _casts(operator: Operator, types_of: TypesOf) -> dict[Operator, Project]:
    """The branches of unions that have other types than these, with casts over them."""
    unions = [each for each in walk(operator) if isinstance(each, UnionAll)]
    if not unions:
        return {}
    types = iter(types_of(operator, [each for union in unions for each in (union, *union.branches)]))
    found: dict[Operator, Project] = {}
    for union in unions:
        wanted = next(types)
        for branch in union.branches:
            own = next(types)
            if differing := {name for name in union.columns if own[name] != wanted[name]}:
                expressions: dict[str, exp.Expr] = {
                    name: exp.cast(exp.column(name), wanted[name], dialect="spark")
                    if name in differing
                    else exp.column(name)
                    for name in branch.columns
                }
                found[branch] = Project(branch.columns, branch.key, branch, expressions, non_null=branch.non_null)
    return found
