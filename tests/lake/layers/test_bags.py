"""Joins of tables whose rows nothing tells apart, as logs are: what changed of them, in DuckDB."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from lake.layers.compiler.algebra import Aggregate, Filter, Join, JoinKind, Operator, Source
from lake.layers.compiler.deltas import Deltas, Relations, Side, Step

LOG = Relations("log_before", "log_after", "log_old", "log_new")
RESETS = Relations("resets_before", "resets_after", "resets_old", "resets_new")
Row = tuple[Any, ...]


def source(table: str, number: int) -> Source:
    columns = {f"of_{number}": "of", f"op_{number}": "op", f"at_{number}": "at"}
    return Source(tuple(columns), None, table, columns)


def where(input: Operator, condition: str) -> Filter:
    return Filter(input.columns, input.key, input, sqlglot.parse_one(condition, read="duckdb"))


def joined(kind: JoinKind, right_table: str) -> Operator:
    """Changes of a log since the last row that resets it, as typed tables of a capture are computed."""
    left = where(source("log", 1), "op_1 <> 'reset'")
    resets = where(source(right_table, 2), "op_2 = 'reset'")
    last: exp.Expr = sqlglot.parse_one("max(at_2)", read="duckdb")
    right: Operator = Aggregate(("of_2", "last"), ("of_2",), resets, ("of_2",), {"last": last})
    if kind is JoinKind.INNER:  # by increments of its own, but for two bags
        right = resets
    only_left = kind in (JoinKind.SEMI, JoinKind.ANTI)
    columns = left.columns if only_left else (*left.columns, *right.columns)
    condition = sqlglot.parse_one("l.of_1 = r.of_2", read="duckdb")
    found: Operator = Join(columns, None, left, right, kind, condition, (("of_1", "of_2"),))
    return where(found, "last IS NULL OR at_1 > last") if kind is JoinKind.LEFT else found


def run(connection: duckdb.DuckDBPyConnection, steps: Sequence[Step], step: str | None) -> Counter[Row]:
    """The rows of a step. Steps that have nothing to do aren't run."""
    for each in steps:
        query: exp.Query | None = each.query
        if each.only_if is not None and not connection.execute(f"FROM {each.only_if} LIMIT 1").fetchall():
            query = each.otherwise
        if query is not None:
            connection.execute(f"CREATE OR REPLACE TEMP VIEW {each.name} AS {query.sql('duckdb')}")
    return Counter() if step is None else Counter(connection.execute(f"FROM {step}").fetchall())


def some_rows(rng: random.Random, resets: float) -> list[Row]:
    def row() -> Row:
        return (rng.choice(["a", "b", None]), "reset" if rng.random() < resets else rng.choice("xy"), rng.randint(0, 4))

    return [row() for _ in range(rng.choice([0, 4, 9]))]


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.INNER])
def test_what_changes(kind: JoinKind) -> None:
    rng = random.Random(1)
    connection = duckdb.connect(config={"threads": 1})
    for number in range(5):
        for relations in (LOG, RESETS):
            before = some_rows(rng, 0.3)
            kept = [row for row in before if rng.random() < 0.7]
            after = [*kept, *some_rows(rng, rng.choice([0, 0.3]))]
            old, new = Counter(before) - Counter(after), Counter(after) - Counter(before)
            for name, rows in zip(relations, (before, after, old.elements(), new.elements()), strict=True):
                connection.execute(f'CREATE OR REPLACE TABLE {name} ("of" VARCHAR, op VARCHAR, "at" BIGINT)')
                if listed := ", ".join(str(row).replace("None", "NULL") for row in rows):
                    connection.execute(f"INSERT INTO {name} VALUES {listed}")
        tables = {"log": LOG, "resets": RESETS}
        for right, is_exact in (("log", True), ("resets", False)):
            operator = joined(kind, right)
            changed = rng.choice([["log"], ["resets"], ["log", "resets"]])
            given = {
                name: each if name in changed else each._replace(before=each.after, old=each.new)
                for name, each in tables.items()
            }
            deltas = Deltas(given, changed, f"s{number}", is_exact=is_exact)
            wholes = [deltas.rows(operator, side) for side in Side]
            found = [deltas.delta(operator, side) for side in Side]
            was, now = (run(connection, deltas.steps, step) for step in wholes)
            old, new = (run(connection, [], step) for step in found)
            assert not old - was and not new - now
            assert was - old == now - new


def test_a_log_that_grows_is_not_read_again() -> None:
    deltas = Deltas({"log": LOG}, ["log"], "s", grown=["log"], is_exact=True)
    for side in Side:
        deltas.delta(joined(JoinKind.LEFT, "log"), side)
    read = {
        relation: [
            each for each in deltas.steps if relation in {table.name for table in each.query.find_all(exp.Table)}
        ]
        for relation in LOG
    }
    assert read["log_new"]
    assert all(each.only_if is not None for each in read["log_before"])
    text = " ".join(each.query.sql() for each in deltas.steps if each.only_if is None)
    for each in read["log_after"]:
        is_of_resets = f"FROM {each.name} WHERE op_2 = 'reset'" in text
        assert is_of_resets or each.only_if is not None, "of the rows that were there, those that reset it alone"
