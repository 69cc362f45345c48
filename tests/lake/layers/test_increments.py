"""Increments against full computations, in DuckDB: random histories of tables under many queries."""

import random
from collections.abc import Mapping
from contextlib import suppress

import pytest

from tests.lake.layers import random_queries
from tests.lake.layers.constructs import ON_SPARK, QUERIES, QUICK
from tests.lake.layers.duck import Row, Warehouse, check
from tests.lake.layers.duck_sql import ComputedOnSparkAlone
from tests.support.long_runs import share_of

TABLES: Mapping[str, tuple[str, tuple[str, ...] | None]] = {
    "orders": ("id BIGINT, cust BIGINT, amount BIGINT, city VARCHAR", ("id",)),
    "customers": ("id BIGINT, name VARCHAR, city VARCHAR", ("id",)),
    "items": ("ord BIGINT, nr BIGINT, price BIGINT", ("ord", "nr")),
    "visits": ("cust BIGINT, city VARCHAR", None),
}
CITIES = ["Oslo", "Rome", "", None]


def some(rng: random.Random, most: int) -> int | None:
    return None if rng.random() < 0.15 else rng.randint(0, most)


def random_rows(rng: random.Random, name: str) -> list[Row]:
    """Rows of a table, with small values, so that many are equal, and NULLs."""
    count = rng.choice([0, 3, 8, 8])
    match name:
        case "orders":
            keys = rng.sample(range(10), count)
            return [(key, some(rng, 4), some(rng, 5), rng.choice(CITIES)) for key in keys]
        case "customers":
            return [(key, rng.choice("ab"), rng.choice(CITIES)) for key in rng.sample(range(6), min(count, 6))]
        case "items":
            pairs = [(ord, nr) for ord in range(5) for nr in range(3)]
            return [(*pair, some(rng, 4)) for pair in rng.sample(pairs, count)]
    return [(some(rng, 4), rng.choice(CITIES)) for _ in range(count)]


def changed_rows(rng: random.Random, name: str, rows: list[Row]) -> list[Row]:
    """Some of the rows, with some others."""
    width = len(TABLES[name][1] or ())
    kept = [row for row in rows if rng.random() < 0.7]
    if not width:
        return [*kept, *rng.sample(more := random_rows(rng, name), min(2, len(more)))]
    keys = {row[:width] for row in kept}
    others = [row for row in random_rows(rng, name) if row[:width] not in keys]
    return [*kept, *others[:4]]


def run(queries: Mapping[str, str], seed: int, refreshes: int = 4) -> None:
    """A history of the tables, with all layers compared after each refresh."""
    rng = random.Random(seed)
    warehouse = Warehouse(TABLES)
    rows: dict[str, list[Row]] = {}
    for name in TABLES:
        rows[name] = random_rows(rng, name)
        warehouse.change(name, rows[name])
    layers = [warehouse.add(name, text) for name, text in queries.items()]
    for number in range(refreshes):
        before = {each.name.split(".")[1]: warehouse.rows(each.name.split(".")[1]) for each in layers}
        changes = warehouse.refresh(full=number > 0 and rng.random() < 0.1)
        for each in layers:
            name = each.name.split(".")[1]
            try:
                check(warehouse, each, before[name], changes[name])
            except AssertionError as error:
                raise AssertionError(f"refresh {number} of {name}, seed {seed}: {queries[name]}\n{error}") from error
        for name in TABLES:
            if rng.random() < 0.8:
                rows[name] = changed_rows(rng, name, rows[name])
                warehouse.change(name, rows[name])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=() if each in QUICK else pytest.mark.long) for each in QUERIES if each not in ON_SPARK],
)
def test_each_construct(name: str) -> None:
    run({"layer": QUERIES[name]}, seed=1, refreshes=6)


def run_random(seed: int) -> None:
    """A chain of three random layers, of which the later ones may read the earlier ones."""
    rng = random.Random(seed)
    tables = dict(random_queries.TABLES)
    queries: dict[str, str] = {}
    for name in ("one", "two", "three"):
        made = random_queries.Queries(rng, tables).query(depth=rng.choice([0, 1, 1, 2]))
        queries[name] = made.text
        tables[name] = random_queries.Relation(name, made.columns)
    run(queries, seed)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(3))
def test_random_layers(seed: int) -> None:
    run_random(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(share_of(20)))
def test_many_random_layers(part: int) -> None:
    computed = 0
    for seed in range(100):
        with suppress(ComputedOnSparkAlone):
            run_random(1000 + part * 100 + seed)
            computed += 1
    assert computed > 80


@pytest.mark.long
@pytest.mark.parametrize("name", [each for each in QUERIES if each not in ON_SPARK])
def test_many_histories_of_each_construct(name: str) -> None:
    for seed in range(share_of(40)):
        run({"layer": QUERIES[name]}, 100 + seed, refreshes=6)
