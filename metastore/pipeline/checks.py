"""Expectations: conditions over the rows that a refresh computes, all counted in one pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


class ExpectationFailed(UserError):
    """Rows don't meet an expectation that lets the refresh fail. Nothing was written."""


@dataclass(frozen=True)
class Checks:
    """The expectations of a layer. `operator` has a column for each that says whether a row meets it."""

    operator: Operator
    columns: Mapping[str, Expectation]

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


def checked(built: Built, expectations: Sequence[Expectation]) -> tuple[Operator, Checks]:
    """A query's operator without the rows that are to be dropped, and its checks. Raises BadQuery."""
    names = [each.name for each in expectations]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadQuery(f"there are two expectations {twice[0]}")
    if not expectations:
        return built.operator, Checks(built.operator, {})
    outputs = dict(built.outputs)
    expressions: dict[str, exp.Expr] = {name: exp.column(name) for name in built.operator.columns}
    columns = {}
    for number, each in enumerate(expectations):
        column = f"expected_{number}_"
        expressions[column] = exp.Coalesce(this=_condition(each, outputs), expressions=[exp.false()])
        columns[column] = each
    inner = built.operator
    marked = Project(tuple(expressions), inner.key, inner, expressions, non_null=inner.non_null | frozenset(columns))
    dropped = [exp.column(name) for name, each in columns.items() if each.violation is Violation.DROP]
    operator: Operator = marked
    if dropped:
        operator = Filter(marked.columns, marked.key, marked, exp.and_(*dropped), non_null=marked.non_null)
    return operator, Checks(marked, columns)


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
