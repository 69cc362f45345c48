"""Which partitions of its sources a layer's partition is made of: those that agree in columns that are the same."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from lake.layers.compiler.algebra import (
    Aggregate,
    Explode,
    Filter,
    Join,
    Operator,
    Project,
    Source,
    UnionAll,
    Window,
    walk,
)


class Origin(NamedTuple):
    """A reference of a query to a table. `columns`: by the query's column, the table's column that it is."""

    table: str
    columns: Mapping[str, str]


def origins(operator: Operator, columns: Mapping[str, str]) -> Iterator[Origin]:
    """All references to tables below an operator.

    `columns`: by a name, the operator's column. Names that are no plain copy of a table's column are left out.
    """
    match operator:
        case Source(table=table, stored=stored):
            yield Origin(table, {name: stored[column] for name, column in columns.items() if column in stored})
        case Project(input=input):
            plain = {name: operator.plain(column) for name, column in columns.items()}
            yield from origins(input, {name: column for name, column in plain.items() if column is not None})
        case Filter(input=input) | Window(input=input) | Explode(input=input):
            yield from origins(input, {name: column for name, column in columns.items() if column in input.columns})
        case Aggregate(input=input, groups=groups):
            yield from origins(input, {name: column for name, column in columns.items() if column in groups})
        case Join():
            for side, own, other in ((operator.left, 0, 1), (operator.right, 1, 0)):
                equal = {pair[other]: pair[own] for pair in operator.equal}
                own_columns = {name: equal.get(column, column) for name, column in columns.items()}
                yield from origins(side, {name: each for name, each in own_columns.items() if each in side.columns})
        case UnionAll(branches=branches):
            for branch in branches:
                yield from origins(branch, columns)
        case _:
            yield from (Origin(table, {}) for each in walk(operator) for table in getattr(each, "tables", ()))
