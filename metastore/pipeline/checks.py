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

_LEFT_OUT = (Violation.DROP, Violation.QUARANTINE)


class ExpectationFailed(UserError):
    """Rows don't meet an expectation that lets the refresh fail. Nothing was written."""


@dataclass(frozen=True)
class Checks:
    """The expectations of a layer. `operator` has a column for each that says whether a row meets it.

    `holds`: by the names of those that keep partitions back, their conditions over the table's columns.
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
            exp.alias_(exp.Count(this=exp.Case().when(exp.not_(exp.column(name)), exp.Literal.number(1))), name)
            for name in self.columns
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
    kept = [exp.column(name) for name, each in columns.items() if each.violation in _LEFT_OUT]
    operator: Operator = marked
    if kept:
        operator = Filter(marked.columns, marked.key, marked, exp.and_(*kept), non_null=marked.non_null)
    names = {name: name for name, _ in built.outputs}
    holds = {each.name: _condition(each, names) for each in expectations if each.violation is Violation.HOLD}
    return Built(operator, built.outputs), Checks(marked, columns, holds)


def rejected(built: Built, expectations: Sequence[Expectation]) -> tuple[Built, Checks]:
    """A query with the rows alone that go to its quarantine, and with `FAILED`. They aren't counted again.

    Raises BadQuery.
    """
    if FAILED in dict(built.outputs):
        raise BadQuery(f"the query has a column {FAILED}, which is that of its quarantine: give it another name")
    marked, columns = _marked(built, expectations)
    met = [exp.column(name) for name, each in columns.items() if each.violation is Violation.QUARANTINE]
    wrong = Filter(marked.columns, marked.key, marked, exp.not_(exp.and_(*met)), non_null=marked.non_null)
    empty = exp.Literal.string("")
    names = [
        exp.Case().when(exp.not_(exp.column(name)), exp.Literal.string(f",{each.name}")).else_(empty.copy())
        for name, each in columns.items()
    ]
    listed = exp.Concat(expressions=[empty, *names], coalesce=False)
    failed = exp.Substring(this=listed, start=exp.Literal.number(2))
    expressions: dict[str, exp.Expr] = {name: exp.column(name) for name in wrong.columns}
    expressions[FAILED] = failed
    known = wrong.non_null | {FAILED}
    operator = Project(tuple(expressions), wrong.key, wrong, expressions, non_null=known)
    return Built(operator, (*built.outputs, (FAILED, FAILED))), Checks(operator, {})


def _marked(built: Built, expectations: Sequence[Expectation]) -> tuple[Project, Mapping[str, Expectation]]:
    """A query with a column for each expectation that says whether a row meets it. Raises BadQuery."""
    names = [each.name for each in expectations]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadQuery(f"there are two expectations {twice[0]}")
    outputs = dict(built.outputs)
    expressions: dict[str, exp.Expr] = {name: exp.column(name) for name in built.operator.columns}
    columns = {}
    for number, each in enumerate(expectations):
        column = f"expected_{number}_"
        expressions[column] = exp.Coalesce(this=_condition(each, outputs), expressions=[exp.false()])
        columns[column] = each
    inner = built.operator
    known = inner.non_null | frozenset(columns)
    return Project(tuple(expressions), inner.key, inner, expressions, non_null=known), columns


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
