"""Expectations: conditions over the rows that a refresh computes, all counted in one pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from metastore.errors import UserError
from metastore.pipeline import determinism
from metastore.pipeline.algebra import Filter, Operator, Project
from metastore.pipeline.building import Built
from metastore.pipeline.definitions import Expectation, Violation
from metastore.pipeline.deltas import Deltas, select_from
from metastore.pipeline.errors import BadQuery

FAILED = "failed_expectations"
"""The column of quarantines: the names of the expectations that a row doesn't meet, separated by commas."""

_BITS = 63
"""Expectations in a column of bits: a BIGINT without its sign."""

_LEFT_OUT = (Violation.DROP, Violation.QUARANTINE)


class ExpectationFailed(UserError):
    """Rows don't meet an expectation that lets the refresh fail. Nothing was written."""


@dataclass(frozen=True)
class Checks:
    """The expectations of a layer. `operator` has columns of bits that say which of them a row doesn't meet.

    `columns`: the expectations by the column that their count gets, in the order of their bits. `holds`: by the names
    of those that keep partitions back, their conditions over the table's columns.
    """

    operator: Operator
    columns: Mapping[str, Expectation]
    holds: Mapping[str, exp.Expr] = field(default_factory=dict)

    def counted(self, deltas: Deltas, *, whole: bool) -> str | None:
        """The step that counts the computed rows that don't meet each; None without expectations.

        The rows are kept, since the layer's are made of them, too. `whole`: all rows are computed.
        """
        rows = deltas.rows_computed(self.operator, whole=whole) if self.columns else None
        if rows is None:
            return None
        deltas.keep(rows)
        missed = [
            exp.alias_(exp.Count(this=exp.Case().when(_misses([number]), exp.Literal.number(1))), name)
            for number, name in enumerate(self.columns)
        ]
        return deltas.add("expected", select_from(missed, rows))

    def raise_for(self, layer: str, counts: Mapping[str, int]) -> None:
        """Raises ExpectationFailed if rows don't meet an expectation that fails. `counts`: by the column."""
        for column, each in self.columns.items():
            if each.violation is Violation.FAIL and counts[column]:
                raise ExpectationFailed(
                    f"{layer}: {counts[column]:,} rows don't meet {each.name} ({each.condition}): nothing is written"
                )


def checked(built: Built, expectations: Sequence[Expectation]) -> tuple[Built, Checks]:
    """A query without the rows that its table leaves out, and its checks. Raises BadQuery."""
    if not expectations:
        return built, Checks(built.operator, {})
    marked, columns = _marked(built, expectations)
    left_out = [number for number, each in enumerate(expectations) if each.violation in _LEFT_OUT]
    operator: Operator = marked
    if left_out:
        condition = exp.not_(_misses(left_out))
        operator = Filter(marked.columns, marked.key, marked, condition, non_null=marked.non_null)
    names = {name: name for name, _ in built.outputs}
    holds = {each.name: _condition(each, names) for each in expectations if each.violation is Violation.HOLD}
    return Built(operator, built.outputs), Checks(marked, columns, holds)


def rejected(built: Built, expectations: Sequence[Expectation]) -> tuple[Built, Checks]:
    """A query with the rows alone that go to its quarantine, and with `FAILED`. They aren't counted again.

    Raises BadQuery.
    """
    if FAILED in dict(built.outputs):
        raise BadQuery(f"the query has a column {FAILED}, which is that of its quarantine: give it another name")
    marked, _ = _marked(built, expectations)
    kept_apart = [number for number, each in enumerate(expectations) if each.violation is Violation.QUARANTINE]
    wrong = Filter(marked.columns, marked.key, marked, _misses(kept_apart), non_null=marked.non_null)
    empty = exp.Literal.string("")
    names = [
        exp.Case().when(_misses([number]), exp.Literal.string(f",{each.name}")).else_(empty.copy())
        for number, each in enumerate(expectations)
    ]
    listed = exp.Concat(expressions=[empty, *names], coalesce=False)
    failed = exp.Substring(this=listed, start=exp.Literal.number(2))
    expressions: dict[str, exp.Expr] = {name: exp.column(name) for name in wrong.columns}
    expressions[FAILED] = failed
    known = wrong.non_null | {FAILED}
    operator = Project(tuple(expressions), wrong.key, wrong, expressions, non_null=known)
    return Built(operator, (*built.outputs, (FAILED, FAILED))), Checks(operator, {})


def _marked(built: Built, expectations: Sequence[Expectation]) -> tuple[Project, Mapping[str, Expectation]]:
    """A query with columns of bits that say which expectations a row doesn't meet. Raises BadQuery.

    Bits, since these rows are kept to be counted: a column for each expectation would make them several times as wide.
    """
    names = [each.name for each in expectations]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadQuery(f"there are two expectations {twice[0]}")
    outputs = dict(built.outputs)
    expressions: dict[str, exp.Expr] = {name: exp.column(name) for name in built.operator.columns}
    bits: dict[str, exp.Expr] = {}
    for number, each in enumerate(expectations):
        met = exp.Coalesce(this=_condition(each, outputs), expressions=[exp.false()])
        bit = exp.Case().when(met, exp.Literal.number(0)).else_(exp.Literal.number(1 << number % _BITS))
        column = _column_of(number)
        bits[column] = exp.Add(this=bits.get(column) or exp.cast(exp.Literal.number(0), "bigint"), expression=bit)
    inner = built.operator
    made = {**expressions, **bits}
    marked = Project(tuple(made), inner.key, inner, made, non_null=inner.non_null | frozenset(bits))
    return marked, {f"expected_{number}_": each for number, each in enumerate(expectations)}


def _misses(numbers: Sequence[int]) -> exp.Expr:
    """Whether a row doesn't meet one of some expectations, by their numbers."""
    masks: dict[str, int] = {}
    for number in numbers:
        masks[_column_of(number)] = masks.get(_column_of(number), 0) | 1 << number % _BITS
    return exp.or_(
        *(
            exp.NEQ(
                this=exp.paren(exp.BitwiseAnd(this=exp.column(column), expression=exp.Literal.number(mask))),
                expression=exp.Literal.number(0),
            )
            for column, mask in masks.items()
        )
    )


def _column_of(number: int) -> str:
    return f"missed_{number // _BITS}_"


def _condition(expectation: Expectation, outputs: Mapping[str, str]) -> exp.Expr:
    try:
        tree = sqlglot.parse_one(f"SELECT ({expectation.condition}) AS met", into=exp.Select, dialect="spark")
    except SqlglotError:
        raise BadQuery(f"the expectation {expectation.name} can't be parsed: {expectation.condition}") from None
    determinism.check(tree)
    if tree.find(exp.AggFunc, exp.Window, exp.Subquery):
        raise BadQuery(f"the expectation {expectation.name} is over one row: it has no aggregates and subqueries")

    def replace(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if node.name.lower() not in outputs:
            raise BadQuery(f"the expectation {expectation.name}: the query has no column {node.name}")
        return exp.column(outputs[node.name.lower()])

    condition: exp.Expr = tree.selects[0].unalias().transform(replace)
    return condition
