"""Groups that are brought up to date by their own rows in the layer's table and by what changed, and by nothing else.

What came and what went is aggregated, and added to the stored row, or taken off. So a change of one row doesn't read
its group. A group is computed from all of its rows only where its row can't say the answer: where nothing else than
what went may have been in it, or where the least or greatest value went.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from sqlglot import exp

from lake.layers.compiler.algebra import Aggregate, Merge, Operator, Project
from lake.layers.compiler.deltas import Deltas, Side, grouped, select_from, union_of

_SIMPLE = frozenset({"tinyint", "smallint", "int", "bigint", "string", "boolean", "date", "timestamp"})
"""Types of groups that are stored as they are."""

_CAME, _WENT, _STORED = "came", "went", "stored"


class Mergeable(NamedTuple):
    """An aggregate whose groups a layer's table has. `columns`: by the layer's operator's column, the aggregate's."""

    aggregate: Aggregate
    columns: Mapping[str, str]

    @property
    def counts_rows(self) -> str | None:
        """The column of `count(*)`; None without one."""
        merges = self.aggregate.merges.items()
        return next((name for name, each in merges if each.function == "count" and each.argument is None), None)


def mergeable_in(
    operator: Operator, outputs: Collection[str], key: Iterable[str], types: Mapping[str, str]
) -> Mergeable | None:
    """The aggregate that a layer's operator is, under other names perhaps; None if it is another or can't be merged.

    `outputs`: the operator's columns that the layer's table has. `key`: those that its key is made of. `types`: Spark's
    names.
    """
    columns = {name: name for name in (*outputs, *key)}
    while isinstance(operator, Project):
        plain = {name: operator.plain(own) for name, own in columns.items()}
        if None in plain.values():
            return None
        columns = {name: own for name, own in plain.items() if own is not None}
        operator = operator.input
    if not isinstance(operator, Aggregate) or {columns[each] for each in outputs} != {*operator.columns}:
        return None
    if not all(types[each] in _SIMPLE or types[each].startswith("decimal(") for each in operator.groups):
        return None
    return Mergeable(operator, columns) if {*operator.merges} == {*operator.aggregates} else None


class ChangedGroups(NamedTuple):
    """The step with the groups that changes touch, what came to them and what went. `lose`: rows may have gone."""

    step: str
    lose: bool


def changed_groups(deltas: Deltas, made: Mergeable) -> ChangedGroups | None:
    """The groups that changes touch; None if nothing can have changed."""
    aggregate = made.aggregate
    parts = {}
    for side, word in ((Side.AFTER, _CAME), (Side.BEFORE, _WENT)):
        rows = deltas.delta(aggregate.input, side)
        if rows is not None:
            parts[side] = _signed(aggregate, deltas.add(f"groups_{word}", _partial(aggregate, rows)), word)
    if not parts:
        return None
    both = deltas.add("both", union_of([*parts.values()]))
    return ChangedGroups(deltas.add("changed_groups", _folded(aggregate, both), keep=True), Side.BEFORE in parts)


def merged_rows(deltas: Deltas, made: Mergeable, changed: ChangedGroups, stored: str) -> str:
    """The step with the rows of changed groups now, by the aggregate's columns.

    `stored` is the step with the rows that the layer's table has of them.
    """
    aggregate = made.aggregate
    parts = [select_from([*aggregate.groups, *_folds(aggregate)], changed.step), _signed(aggregate, stored, _STORED)]
    both = deltas.add("groups", _folded(aggregate, deltas.add("both", union_of(parts))), keep=changed.lose)
    values = [exp.alias_(_value(name, each), name) for name, each in aggregate.merges.items()]
    said = select_from([*aggregate.groups, *values], both)
    if not changed.lose:
        return deltas.add("merged", said)
    unsaid = _unsaid(made)
    said = said.where(exp.not_(unsaid.copy()))
    if made.counts_rows is not None and aggregate.groups:
        said = said.where(exp.GT(this=exp.column(_sum(made.counts_rows)), expression=exp.Literal.number(0)))
    found = deltas.add("merged", said)
    lost: list[exp.Expr | str] = [*aggregate.groups] or [exp.alias_(exp.Literal.number(1), "one")]
    again = deltas.add("unsaid", select_from(lost, both).where(unsaid))
    none = select_from(aggregate.columns, found).where(exp.false())
    computed = deltas.grouped_again(aggregate, again, none)
    if not aggregate.groups:  # there is one group, and no restriction says whether it is computed
        some = exp.Exists(this=select_from([exp.Literal.number(1)], again))
        computed = deltas.add("again", select_from(aggregate.columns, computed).where(some))
    return deltas.add("merged", union_of([select_from(aggregate.columns, each) for each in (found, computed)]))


def _sum(name: str) -> str:
    return f"{name}_sum"


def _partial(aggregate: Aggregate, rows: str) -> exp.Select:
    """The aggregates over some rows, by group, with the numbers of rows, and of values that aren't NULL."""
    values = [exp.alias_(value.copy(), name) for name, value in aggregate.aggregates.items()]
    values += [
        exp.alias_(exp.Count(this=argument.copy()), f"{name}_n") for name, argument in _nullable(aggregate).items()
    ]
    values.append(exp.alias_(exp.Count(this=exp.Star()), "rows_n"))
    query = select_from([*aggregate.groups, *values], rows)
    return grouped(query, aggregate.groups)


def _nullable(aggregate: Aggregate) -> dict[str, exp.Expr]:
    """The arguments of sums that may be NULL, so that a sum of no values is told apart from one that is 0."""
    return {
        name: each.argument
        for name, each in aggregate.merges.items()
        if each.function == "sum"
        and each.argument is not None
        and not (isinstance(each.argument, exp.Column) and each.argument.name in aggregate.input.non_null)
    }


def _folds(aggregate: Aggregate) -> dict[str, tuple[type[exp.AggFunc], str]]:
    """The columns that groups have beside their own: the function that folds two of them, and Spark's type."""
    found: dict[str, tuple[type[exp.AggFunc], str]] = {}
    for name, each in aggregate.merges.items():
        if _is_extreme(each):
            found |= {f"{name}_{word}": (exp.Max, each.type) for word in (_CAME, _WENT, _STORED)}
        else:
            found[_sum(name)] = (exp.Sum, "decimal(20,0)" if each.type == "bigint" else each.type)
    for name in (*(f"{each}_n" for each in _nullable(aggregate)), "rows_n"):
        found |= {f"{name}_{word}": (exp.Sum, "bigint") for word in (_CAME, _WENT)}
    return found


def _signed(aggregate: Aggregate, step: str, word: str) -> exp.Select:
    """Rows of groups as parts of a fold: those that came or are stored are added, those that went are taken off."""
    columns: list[exp.Expr] = [exp.column(name) for name in aggregate.groups]
    for name, (_, kind) in _folds(aggregate).items():
        own, _, its_word = name.rpartition("_")
        value: exp.Expr = exp.cast(exp.Null(), kind, dialect="spark")
        if its_word == "sum":
            value = exp.cast(exp.column(own), kind, dialect="spark")
            value = exp.Neg(this=value) if word == _WENT else value
        elif its_word == word:
            value = exp.column(own)
        columns.append(exp.alias_(value, name))
    return select_from(columns, step)


def _folded(aggregate: Aggregate, step: str) -> exp.Select:
    values = [exp.alias_(fold(this=exp.column(name)), name) for name, (fold, _) in _folds(aggregate).items()]
    query = select_from([*aggregate.groups, *values], step)
    return grouped(query, aggregate.groups)


def _is_extreme(merge: Merge) -> bool:
    return merge.function in ("min", "max")


def _value(name: str, merge: Merge) -> exp.Expr:
    """An aggregate's value, as the stored one and those that came and went say it."""
    if not _is_extreme(merge):
        total = exp.cast(exp.column(_sum(name)), merge.type, dialect="spark")
        return exp.Coalesce(this=total, expressions=[exp.Literal.number(0)]) if merge.function == "count" else total
    came, stored = exp.column(f"{name}_{_CAME}"), exp.column(f"{name}_{_STORED}")
    further = _further(merge, came.copy(), stored.copy())
    first = exp.or_(_is_null(stored), further)
    return exp.Case().when(exp.and_(exp.not_(_is_null(came)), first), came.copy()).else_(stored.copy())


def _unsaid(made: Mergeable) -> exp.Expr:
    """That a group's row can't say what the group is now. It's never NULL."""
    aggregate = made.aggregate
    merges = aggregate.merges.items()
    reasons: list[exp.Expr] = []
    needs_a_row = any(each.function == "sum" and name not in _nullable(aggregate) for name, each in merges)
    if made.counts_rows is None if aggregate.groups else needs_a_row:
        reasons.append(exp.not_(_some(f"rows_n_{_CAME}")))
    for name in _nullable(aggregate):
        reasons.append(exp.and_(_some(f"{name}_n_{_WENT}"), exp.not_(_some(f"{name}_n_{_CAME}"))))
    for name, each in merges:
        if _is_extreme(each):
            came, went, stored = (exp.column(f"{name}_{word}") for word in (_CAME, _WENT, _STORED))
            was = exp.or_(_is_null(stored), exp.not_(_further(each, stored.copy(), went.copy())))
            again = exp.and_(exp.not_(_is_null(came)), exp.not_(_further(each, stored.copy(), came.copy())))
            not_again = exp.not_(exp.Coalesce(this=exp.paren(again), expressions=[exp.false()]))
            reasons.append(exp.and_(exp.not_(_is_null(went)), was, not_again))
    if not reasons:
        return exp.false()
    lost = exp.and_(_some(f"rows_n_{_WENT}"), exp.or_(*reasons))
    return exp.Coalesce(this=exp.paren(lost), expressions=[exp.false()])


def _further(merge: Merge, one: exp.Expr, other: exp.Expr) -> exp.Expr:
    """That one value is more of an extreme than another."""
    return (exp.LT if merge.function == "min" else exp.GT)(this=one, expression=other)


def _some(count: str) -> exp.Expr:
    """That a number isn't 0 or NULL."""
    number = exp.Coalesce(this=exp.column(count), expressions=[exp.Literal.number(0)])
    return exp.GT(this=number, expression=exp.Literal.number(0))


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy(), expression=exp.Null())
