"""Expectations: conditions over the rows that a refresh computes, counted while these are computed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from lake.layers.compiler.algebra import Filter, Operator, Project
from lake.layers.compiler.building import Built
from lake.layers.compiler.deltas import Deltas
from lake.layers.definitions.model import Expectation, Violation
from lake.layers.errors import BadQuery
from lake.protocol.errors import UserError

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
    of those that keep partitions back, their conditions over the operator's columns.
    """

    operator: Operator
    columns: Mapping[str, Expectation] = field(default_factory=dict)
    holds: Mapping[str, exp.Expr] = field(default_factory=dict)

    def observe(self, deltas: Deltas, before: Mapping[str, int] | None, *, whole: bool) -> str | None:
        """The step with the computed rows, beside which it is observed which expectations these don't meet.

        None without expectations. It's called once all steps that read these rows are there. `before`: how many rows
        didn't meet an expectation the last time, by its name. A count takes time for each row, also if it stays 0. So
        those alone are counted which rows missed then, or all if that isn't known. Of others it's only observed whether
        a row misses them; if one does, `uncounted` says that they are to be counted. `whole`: all rows are computed.
        """
        rows = deltas.rows_computed(self.operator, whole=whole) if self.columns else None
        if rows is not None:
            missed = [
                number
                for number, each in enumerate(self.columns.values())
                if before is None or before.get(each.name, 1)
            ]
            deltas.observe(rows, [*self._counts(missed), *self._any_misses()])
        return rows

    def uncounted(self, observed: Mapping[str, int]) -> list[exp.Alias]:
        """The counts of those expectations that rows don't meet, and that weren't counted as this was observed."""
        return self._counts(
            number
            for number, column in enumerate(self.columns)
            if column not in observed and (observed[_any(number)] or 0) >> number % _BITS & 1
        )

    def _counts(self, numbers: Iterable[int]) -> list[exp.Alias]:
        """How many rows don't meet some expectations, named as their columns."""
        columns = [*self.columns]
        ones = {columns[each]: exp.Case().when(_marks([each]), exp.Literal.number(1)) for each in numbers}
        return [exp.Alias(this=exp.Count(this=one), alias=column) for column, one in ones.items()]

    def _any_misses(self) -> list[exp.Alias]:
        """The expectations that some row doesn't meet, as bits; NULL without rows."""
        marks = {_any(number): exp.column(_mark(number)) for number in range(len(self.columns))}
        return [exp.Alias(this=exp.BitwiseOrAgg(this=bits), alias=name) for name, bits in marks.items()]

    def named(self, counts: Mapping[str, int]) -> dict[str, int]:
        """By the expectations' names, how many rows don't meet them. `counts`: by the column."""
        return {each.name: counts.get(column, 0) for column, each in self.columns.items()}

    def raise_for(self, layer: str, counts: Mapping[str, int]) -> None:
        """Raises ExpectationFailed if rows don't meet an expectation that fails. `counts`: by the column."""
        for column, each in self.columns.items():
            if each.violation is Violation.FAIL and counts.get(column):
                raise ExpectationFailed(
                    f"{layer}: {counts[column]:,} rows don't meet {each.name} ({each.condition}): nothing is written"
                )


def checked(built: Built, expectations: Sequence[Expectation], conditions: Sequence[exp.Expr]) -> tuple[Built, Checks]:
    """A query without the rows that its table leaves out, and its checks. Raises BadQuery.

    `conditions`: those of the expectations, over the operator's columns.
    """
    if not expectations:
        return built, Checks(built.operator)
    marked = _marked(built, expectations, conditions)
    left_out = [number for number, each in enumerate(expectations) if each.violation in _LEFT_OUT]
    operator: Operator = marked
    if left_out:
        condition = exp.not_(_marks(left_out))
        operator = Filter(marked.columns, marked.key, marked, condition, non_null=marked.non_null)
    both = zip(expectations, conditions, strict=True)
    holds = {each.name: condition for each, condition in both if each.violation is Violation.HOLD}
    columns = {f"expected_{number}_": each for number, each in enumerate(expectations)}
    return Built(operator, built.outputs), Checks(marked, columns, holds)


def rejected(built: Built, expectations: Sequence[Expectation], conditions: Sequence[exp.Expr]) -> tuple[Built, Checks]:
    """A query with the rows alone that go to its quarantine, and with `FAILED`. They aren't counted again.

    Raises BadQuery.
    """
    if FAILED in dict(built.outputs):
        raise BadQuery(f"the query has a column {FAILED}, which is that of its quarantine: give it another name")
    marked = _marked(built, expectations, conditions)
    kept_apart = [number for number, each in enumerate(expectations) if each.violation is Violation.QUARANTINE]
    wrong = Filter(marked.columns, marked.key, marked, _marks(kept_apart), non_null=marked.non_null)
    empty = exp.Literal.string("")
    names = [
        exp.Case().when(_marks([number]), exp.Literal.string(f",{each.name}")).else_(empty.copy())
        for number, each in enumerate(expectations)
    ]
    listed = exp.Concat(expressions=[empty, *names], coalesce=False)
    failed = exp.Substring(this=listed, start=exp.Literal.number(2))
    expressions: dict[str, exp.Expr] = {name: exp.column(name) for name in wrong.columns}
    expressions[FAILED] = failed
    known = wrong.non_null | {FAILED}
    operator = Project(tuple(expressions), wrong.key, wrong, expressions, non_null=known)
    return Built(operator, (*built.outputs, (FAILED, FAILED))), Checks(operator)


def _marked(built: Built, expectations: Sequence[Expectation], conditions: Sequence[exp.Expr]) -> Project:
    """A query with columns of bits that say which expectations a row doesn't meet. Raises BadQuery.

    Bits, since a column for each expectation would make these rows several times as wide.
    """
    names = [each.name for each in expectations]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadQuery(f"there are two expectations {twice[0]}")
    expressions: dict[str, exp.Expr] = {name: exp.column(name) for name in built.operator.columns}
    bits: dict[str, exp.Expr] = {}
    for number, condition in enumerate(conditions):
        # A condition that is NULL isn't met. There is no sum: Spark checks one for an overflow.
        bit = exp.Case().when(condition.copy(), _bigint(0)).else_(_bigint(1 << number % _BITS))
        column = _mark(number)
        bits[column] = exp.BitwiseOr(this=bits[column], expression=bit) if column in bits else bit
    inner = built.operator
    made = {**expressions, **bits}
    return Project(tuple(made), inner.key, inner, made, non_null=inner.non_null | frozenset(bits))


def _marks(numbers: Sequence[int]) -> exp.Expr:
    """Whether a marked row doesn't meet one of some expectations, by their numbers."""
    masks: dict[str, int] = {}
    for number in numbers:
        masks[_mark(number)] = masks.get(_mark(number), 0) | 1 << number % _BITS
    return exp.or_(
        *(
            exp.NEQ(
                this=exp.paren(exp.BitwiseAnd(this=exp.column(column), expression=exp.Literal.number(mask))),
                expression=exp.Literal.number(0),
            )
            for column, mask in masks.items()
        )
    )


def _bigint(value: int) -> exp.Expr:
    return exp.cast(exp.Literal.number(value), "bigint")


def _mark(number: int) -> str:
    """The column of marked rows that has an expectation's bit."""
    return f"missed_{number // _BITS}_"


def _any(number: int) -> str:
    """The aggregate of bits that has an expectation's."""
    return f"any_{number // _BITS}_"
