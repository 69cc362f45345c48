"""What a query's conditions fix: it reads of a table only rows whose columns have certain values.

A layer that reads one partition of a table, as typed tables read a raw one, isn't concerned by changes of the others.
"""

from collections.abc import Iterator, Mapping

from lake.layers.compiler.algebra import Explode, Filter, Operator, Project, Source, UnionAll

Fixed = Mapping[str, frozenset[str]]
"""By column, the texts that it may have. Columns that may have any value are left out."""


def fixed_values(operator: Operator, table: str) -> list[Fixed]:
    """For each reference to a table below an operator, what conditions fix of the table's columns."""
    return [fixed for name, fixed in _references(operator, {}) if name == table]


def _references(operator: Operator, fixed: Fixed) -> Iterator[tuple[str, Fixed]]:
    """References to tables. `fixed` holds for all rows of the operator that can have a part in the result."""
    match operator:
        case Source(table=table, stored=stored):
            yield table, {stored[column]: values for column, values in fixed.items() if column in stored}
        case Filter(input=input):
            yield from _references(input, _both(fixed, operator.fixed))
        case Project(input=input):
            plain = {column: operator.plain(column) for column in fixed}
            yield from _references(input, {name: fixed[column] for column, name in plain.items() if name is not None})
        case Explode(input=input):
            yield from _references(input, {name: fixed[name] for name in fixed if name in input.columns})
        case UnionAll(branches=branches):
            for branch in branches:
                yield from _references(branch, fixed)
        case _:
            # Of a join, a window or a group, rows that a condition above leaves out have a part in those it doesn't.
            for input in operator.inputs:
                yield from _references(input, {})
            for name in getattr(operator, "tables", ()):
                yield name, {}


def _both(first: Fixed, second: Fixed) -> Fixed:
    shared = {name: first[name] & second[name] for name in first.keys() & second.keys()}
    return {**first, **second, **shared}
