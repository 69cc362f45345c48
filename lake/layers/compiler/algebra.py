"""A query as a tree of operators, each of which knows its columns and what its rows are known by.

Names of columns are unique within a tree, and one name has the same value wherever it appears. So a step can name
columns without saying of which relation they are. `key`: columns that tell the rows of an operator apart, where NULL is
a value like any other; None if nothing does, and the rows are a bag. `non_null`: columns without NULLs.

Operators compare by identity: two references to one table are two operators.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from sqlglot import exp


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator. Subclasses say what it computes."""

    columns: tuple[str, ...]
    key: tuple[str, ...] | None
    non_null: frozenset[str] = field(default=frozenset(), kw_only=True)

    @property
    def inputs(self) -> "tuple[Operator, ...]":
        return ()


@dataclass(frozen=True, eq=False)
class Source(Operator):
    """A table, `database.table`. `stored`: by column, its name in the table."""

    table: str
    stored: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Opaque(Operator):
    """A query that isn't taken apart: it is computed as a whole.

    `plan` is Spark's, by its handle. `tables`: what it reads. `reason` says why.
    """

    plan: int
    tables: tuple[str, ...]
    reason: str


@dataclass(frozen=True, eq=False)
class Project(Operator):
    """Expressions over each row, by column."""

    input: Operator
    expressions: Mapping[str, exp.Expr]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)

    def plain(self, column: str) -> str | None:
        """The input's column that a column is, None for a computed one."""
        found = self.expressions[column]
        return found.name if isinstance(found, exp.Column) else None


class Span(NamedTuple):
    """A range of a column's values, in their order, with NULL or without it.

    `low` and `high`: a value, and 0 for the place right before it, 1 for the one right after it; None for no bound.
    """

    low: tuple[int | str, int] | None = None
    high: tuple[int | str, int] | None = None
    has_null: bool = True

    def within(self, other: "Span") -> "Span":
        """What two ranges of one column share."""
        lows = [each.low for each in (self, other) if each.low is not None]
        highs = [each.high for each in (self, other) if each.high is not None]
        return Span(max(lows, default=None), min(highs, default=None), self.has_null and other.has_null)

    def is_apart(self, other: "Span") -> bool:
        """Whether no value is in both."""
        if self.has_null and other.has_null:
            return False
        return any(
            one.high is not None and another.low is not None and one.high <= another.low
            for one, another in ((self, other), (other, self))
        )


@dataclass(frozen=True, eq=False)
class Filter(Operator):
    """The rows for which a condition holds. `fixed`: by column, the only texts that it may have then, `spans`: the
    range in which it is."""

    input: Operator
    condition: exp.Expr
    fixed: Mapping[str, frozenset[str]] = field(default_factory=dict)
    spans: Mapping[str, Span] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)


class JoinKind(StrEnum):
    """How two relations are joined. A right join is a left join the other way round."""

    INNER = "inner"
    LEFT = "left"
    FULL = "full"
    SEMI = "semi"
    ANTI = "anti"


@dataclass(frozen=True, eq=False)
class Join(Operator):
    """Rows of two relations that match. `equal`: pairs of columns that the condition says are equal.

    `condition` is the whole condition, None for all pairs of rows. It says whether NULLs are equal, too.
    """

    left: Operator
    right: Operator
    kind: JoinKind
    condition: exp.Expr | None
    equal: tuple[tuple[str, str], ...]

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.left, self.right)


@dataclass(frozen=True, eq=False)
class UnionAll(Operator):
    """The rows of several relations that have the same columns.

    `shares_key`: the key doesn't say of which branch a row is, since no two branches can have the same.
    """

    branches: tuple[Operator, ...]
    shares_key: bool = False

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return self.branches


class Merge(NamedTuple):
    """That an aggregate's values over two bags of rows give that over both.

    `function` is count, sum, min or max; sums are exact. `argument` is what it is over, None for a count of rows.
    `type` is Spark's name of its type.
    """

    function: str
    argument: exp.Expr | None
    type: str


@dataclass(frozen=True, eq=False)
class Aggregate(Operator):
    """One row per group of rows that have the same values in `groups`. Without groups, one row for all.

    Without aggregates it is DISTINCT. `merges`: by column, those of the aggregates that can be merged.
    """

    input: Operator
    groups: tuple[str, ...]
    aggregates: Mapping[str, exp.Expr]
    merges: Mapping[str, Merge] = field(default_factory=dict, kw_only=True)

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)


@dataclass(frozen=True, eq=False)
class Window(Operator):
    """The input's rows with window functions over those that have the same values in `partition`.

    `numbers`: those of the functions that are `row_number`.
    """

    input: Operator
    partition: tuple[str, ...]
    functions: Mapping[str, exp.Expr]
    numbers: frozenset[str] = frozenset()

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)


@dataclass(frozen=True, eq=False)
class Explode(Operator):
    """For each row, one row per element of an array or map, as Spark's LATERAL VIEW makes them.

    `generator` is the function, `made` are the columns that it gives. `position` is the column of the elements'
    numbers. `outer`: a row without elements stays, with NULLs.
    """

    input: Operator
    generator: exp.Expr
    position: str
    made: tuple[str, ...]
    outer: bool

    @property
    def inputs(self) -> tuple[Operator, ...]:
        return (self.input,)


def walk(operator: Operator) -> "list[Operator]":
    """An operator and all below it."""
    return [operator, *(each for input in operator.inputs for each in walk(input))]


def tables_of(operator: Operator) -> set[str]:
    """The tables that an operator reads, by itself and through those below it."""
    found: set[str] = set()
    for each in walk(operator):
        if isinstance(each, Source):
            found.add(each.table)
        elif isinstance(each, Opaque):
            found.update(each.tables)
    return found
