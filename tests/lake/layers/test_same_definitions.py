"""Queries that are taken for the same have the same rows, and are computed on from each other's rows."""

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from lake.layers.compiler.defined import Defined, changes_between
from lake.layers.errors import BadQuery
from tests.lake.layers.answers import ANSWERS
from tests.lake.layers.constructs import ON_SPARK, QUERIES
from tests.lake.layers.duck import DATABASE, Warehouse, check
from tests.lake.layers.test_increments import TABLES, changed_rows, random_rows

pytestmark = [pytest.mark.spark, pytest.mark.long]

WRONG = [
    (r"\b(\d+)\b", lambda found: str(int(found[1]) + 1)),
    (r"'Rome'", "'Oslo'"),
    (r"'a'", "'b'"),
    (r" > ", " >= "),
    (r" > ", " < "),
    (r" = ", " <> "),
    (r" = ", " <=> "),
    (r" <> ", " = "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* ", " + "),
    (r" AND ", " OR "),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r"\bsum\(", "max("),
    (r"\bcount\(\*\)", "count(cust)"),
    (r"\bDISTINCT ", ""),
    (r"LEFT JOIN", "JOIN"),
    (r"\bJOIN", "LEFT JOIN"),
    (r"RIGHT JOIN", "LEFT JOIN"),
    (r"LEFT SEMI", "LEFT ANTI"),
    (r"UNION ALL", "UNION"),
    (r"\bUNION\b(?! ALL)", "UNION ALL"),
    (r" DESC", ""),
    (r"\bid\b", "cust"),
    (r"\bcust\b", "id"),
    (r"\bcity\b", "name"),
    (r"\bamount\b", "cust"),
    (r"\bo\.", "c."),
    (r"\ba\.", "b."),
    (r"\brank\(", "dense_rank("),
    (r"\blag\(", "lead("),
    (r"IS NOT NULL", "IS NULL"),
    (r"\borders\b", "customers"),
    (r"(\w+(?:\.\w+)?) ([-<>]) (\w+(?:\.\w+)?)", r"\3 \2 \1"),
]
"""What makes another query of one, mostly. A pattern is replaced at each of its places by itself."""

NAMES = ["o", "c", "t", "v", "i", "a", "b", "l", "g", "u", "d", "rn", "big", "towns"]


def others(text: str) -> Iterator[str]:
    """Queries that look like one, and mostly mean something else."""
    for pattern, by in WRONG:
        for found in re.finditer(pattern, text):
            made = by(found) if callable(by) else found.expand(by)
            if made != found[0]:
                yield f"{text[: found.start()]}{made}{text[found.end() :]}"


def respelled(text: str) -> Iterator[str]:
    """The same query in other words."""
    for name in NAMES:
        if re.search(rf"\b{name}\b", text):
            yield re.sub(rf"\b{name}\b", f"aa_{name}_zz", text)
    yield re.sub(r"([a-z.]+) = ([a-z.]+)", r"\2 = \1", text)
    yield re.sub(r"([a-z.]+) > ([0-9]+)", r"\2 < (\1)", text)
    yield re.sub(r"([a-z.]+) AND ([a-z.]+ > [0-9]+)", r"\2 AND \1", text)


def defined(text: str) -> Defined:
    kinds = {"VARCHAR": "string", "BIGINT": "bigint"}
    tables = {}
    for name, (listed, _) in TABLES.items():
        columns = (each.split() for each in listed.split(", "))
        described = ", ".join(f"`{column}` {kinds[kind]}" for column, kind in columns)
        tables[f"{DATABASE}.{name}"] = {"columns": described, "hidden": []}
    return Defined([text], {}, DATABASE, tables, [], {}, [], None, 1, {}, [], {})


def names_of(text: str) -> list[str] | None:
    """The names of a query's columns; None for one that no layer can have."""
    try:
        return [name for name, _ in ANSWERS.read(defined(text).request)["outputs"]]
    except BadQuery:
        return None


def go_on(before: str, now: str, seed: int) -> None:
    """Computes a layer by one query, and increments of it by another."""
    rng = random.Random(seed)
    warehouse = Warehouse(TABLES)
    rows = {name: random_rows(rng, name) for name in TABLES}
    for name in TABLES:
        warehouse.change(name, rows[name])
    first, second = warehouse.add("first", before), warehouse.add("second", now)
    warehouse.layers = [first]
    warehouse.refresh()
    later = dataclasses.replace(second, name=first.name)
    warehouse.layers, warehouse.queries["first"] = [later], now
    for _ in range(3):
        for name in TABLES:
            rows[name] = changed_rows(rng, name, rows[name])
            warehouse.change(name, rows[name])
        stored = warehouse.rows("first")
        check(warehouse, later, stored, warehouse.refresh()["first"])


@pytest.mark.parametrize("part", range(4))
def test_queries_that_are_taken_for_the_same(part: int) -> None:
    found: Counter[str] = Counter()
    for name, text in [*QUERIES.items()][part::4]:
        names = names_of(text)
        for kind, made in [*(("other", each) for each in others(text)), *(("same", each) for each in respelled(text))]:
            if made == text or names_of(made) != names:
                continue
            if changes_between(defined(text), defined(made), ANSWERS):
                found[f"{kind} differs"] += 1
                continue
            found[f"{kind} same"] += 1
            if name not in ON_SPARK:
                for seed in range(4):
                    go_on(text, made, seed)
    assert found["same same"] > 15, found
    assert found["other differs"] > 60, found
