"""Finds the partitions of a layer that have rows which don't meet an expectation that keeps partitions back."""

from collections.abc import Collection, Mapping

from sqlglot import exp

from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.deltas import Deltas, as_text, select_from
from lake.layers.runner.engine import Engine
from lake.protocol.formats.partition_names import DEFAULT_PARTITION, make_name, values_of

MOST_NAMED = 1_000
"""Partitions that a query names to read no others. Of more, all are read."""


def touched_partitions(engine: Engine, made: Compiled, deltas: Deltas, changes: str) -> set[str]:
    """The names of the partitions whose rows are among a layer's changes."""
    return _names(engine, made, deltas, select_from(_texts(made), changes))


def held_partitions(
    engine: Engine, made: Compiled, deltas: Deltas, rows: str, among: Collection[str]
) -> Mapping[str, str]:
    """By name, why partitions `among` some are kept back: the expectations that a row of them doesn't meet."""
    found: dict[str, str] = {}
    if not among:
        return found
    for name, condition in made.checks.holds.items():
        met = exp.Coalesce(this=condition.copy(), expressions=[exp.false()])
        query = exp.Select(expressions=[exp.alias_(exp.column(f"held_{key}"), key, quoted=True) for key in _keys(made)])
        query = query.from_(_as_compiled(made, rows, among).subquery("r")).where(exp.not_(met), copy=False)
        for partition in _names(engine, made, deltas, query) & {*among}:
            found[partition] = f"{found[partition]}, {name}" if partition in found else f"rows don't meet {name}"
    return found


def _as_compiled(made: Compiled, rows: str, among: Collection[str]) -> exp.Select:
    """The rows of a layer under the names for which its conditions were compiled, with the texts of its partitions."""
    columns = [exp.column(name, quoted=True).as_(column) for name, column in made.layer.outputs.items()]
    texts = [exp.alias_(exp.cast(exp.column(key, quoted=True), "string"), f"held_{key}") for key in _keys(made)]
    found = select_from([*columns, *texts], rows)
    if len(among) <= MOST_NAMED:
        return found.where(exp.or_(*(_is_in(made, each) for each in sorted(among))), copy=False)
    return found


def _keys(made: Compiled) -> tuple[str, ...]:
    return made.node.partitions


def _names(engine: Engine, made: Compiled, deltas: Deltas, query: exp.Select) -> set[str]:
    step = deltas.add("partitions", query.distinct())
    engine.run(deltas.steps[-1:])
    keys = made.node.partitions
    return {make_name(keys, [each[key] for key in keys]) for each in engine.rows(step)}


def _texts(made: Compiled) -> list[exp.Expr]:
    return [as_text(key) for key in made.node.partitions]


def _is_in(made: Compiled, partition: str) -> exp.Expr:
    keys = made.node.partitions
    tests: list[exp.Expr] = []
    for key, value in zip(keys, values_of(partition, keys), strict=True):
        column = exp.column(key, quoted=True)
        if value == DEFAULT_PARTITION:
            tests.append(exp.Is(this=column, expression=exp.Null()))
        else:
            tests.append(exp.cast(column, "string").eq(exp.Literal.string(value)))
    return exp.and_(*tests)
