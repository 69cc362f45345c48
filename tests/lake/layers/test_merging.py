"""Groups that are merged with their own rows: what is read for it, and when all of a group is computed again."""

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from lake.client.lake_types import Moment
from lake.layers.runner import records
from lake.layers.runner.records import state_of
from lake.layers.runner.runner import Runner
from tests.lake.layers.duck_lake import DuckEngine
from tests.lake.layers.shop import Shop, how

ALL = "sum(amount) AS s, count(amount) AS c, min(amount) AS low, max(amount) AS high"
SUMS = f"CREATE MATERIALIZED VIEW sums AS SELECT cust, {ALL} FROM orders GROUP BY cust;"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The relations with a source's rows that a refresh has read."""
    found: list[str] = []
    bind = DuckEngine.bind_state

    def noted(engine: DuckEngine, name: str, lake: Any, *others: Any) -> None:
        if lake.name.endswith(".orders"):
            found.append(name)
        bind(engine, name, lake, *others)

    monkeypatch.setattr(DuckEngine, "bind_state", noted)
    yield found


def refreshed(runner: Runner, read: list[str]) -> bool:
    """Refreshes the layers. Returns whether rows of the source were read that haven't changed."""
    read.clear()
    assert {*how(runner.refresh().layers).values()} == {"by group"}
    return bool(read)


def answer(shop: Shop, columns: str = f"cust, {ALL}", group: str = "GROUP BY cust") -> list[tuple[Any, ...]]:
    connection = duckdb.connect()
    connection.register("orders", shop.orders.scan(include_uncommitted=True).to_arrow())
    return sorted(connection.execute(f"SELECT {columns} FROM orders {group}").fetchall(), key=repr)


def test_what_changes_is_added_and_taken_off(shop: Shop, read: list[str]) -> None:
    shop.order((1, 1, 5, "d1"), (2, 1, 7, "d1"), (3, 2, 9, "d2"), (4, 2, None, "d2"))
    runner = shop.runner(SUMS)
    runner.refresh()

    def check(*, reads: bool) -> None:
        assert refreshed(runner, read) is reads
        assert sorted(shop.rows("sums"), key=repr) == answer(shop)

    shop.order((5, 1, 6, "d3"), (6, 3, None, "d3"))
    check(reads=False)
    shop.order((5, 1, 5, "d3"), (4, 2, 1, "d2"))  # neither takes an extreme away
    check(reads=False)
    shop.order((2, 1, 6, "d1"))  # the greatest of its group goes
    check(reads=True)
    shop.order((1, 2, 5, "d1"))  # goes to another group; one with 5 is left, but its row can't say so
    check(reads=True)
    shop.order((3, 2, 10, "d2"))  # a greater one comes in its place
    check(reads=False)
    shop.unorder((6, "d3"))  # the group may be empty
    check(reads=True)
    shop.order((4, 2, None, "d2"), (7, 2, 1, "d1"))
    check(reads=False)


def test_a_count_of_rows_says_when_a_group_ends(shop: Shop, read: list[str]) -> None:
    shop.order((1, 1, 5, "d1"), (2, 1, 7, "d1"), (3, 2, 9, "d2"))
    runner = shop.runner("CREATE MATERIALIZED VIEW sums AS SELECT cust, count(*) AS n FROM orders GROUP BY cust;")
    runner.refresh()
    shop.unorder((1, "d1"), (3, "d2"))
    assert not refreshed(runner, read)
    assert shop.rows("sums") == [(1, 1)]


def test_one_group_of_all_rows(shop: Shop, read: list[str]) -> None:
    runner = shop.runner(f"CREATE MATERIALIZED VIEW sums AS SELECT {ALL} FROM orders;")
    runner.refresh()
    assert shop.rows("sums") == [(None, 0, None, None)]
    shop.order((1, 1, 5, "d1"), (2, 1, 7, "d1"))
    assert not refreshed(runner, read)
    assert shop.rows("sums") == answer(shop, ALL, "")
    shop.unorder((2, "d1"))
    assert refreshed(runner, read)
    assert shop.rows("sums") == answer(shop, ALL, "")
    shop.unorder((1, "d1"))
    assert refreshed(runner, read)
    assert shop.rows("sums") == [(None, 0, None, None)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT cust, avg(amount) AS a FROM orders GROUP BY cust",
        "SELECT cust, count(DISTINCT amount) AS n FROM orders GROUP BY cust",
        "SELECT cust, sum(amount) + 1 AS s FROM orders GROUP BY cust",
        "SELECT sum(amount) AS s FROM orders GROUP BY cust",
        "SELECT cust, sum(amount) AS s FROM orders GROUP BY cust HAVING count(*) > 0",
        "SELECT cust, sum(CAST(amount AS DOUBLE)) AS s FROM orders GROUP BY cust",
        "SELECT cust, sum(amount) FILTER (WHERE dt = 'd1') AS s FROM orders GROUP BY cust",
    ],
)
def test_what_is_computed_from_all_rows(shop: Shop, read: list[str], query: str) -> None:
    shop.order((1, 1, 5, "d1"), (2, 1, 7, "d1"))
    runner = shop.runner(f"CREATE MATERIALIZED VIEW sums AS {query};")
    runner.refresh()
    shop.order((3, 1, 1, "d2"))
    assert refreshed(runner, read)


def test_rows_that_a_replay_left_are_not_merged(shop: Shop, read: list[str]) -> None:
    """They have NULL in a column that is admitted late, though their groups have values."""
    shop.order((1, 1, 5, "d1"), (2, 2, 7, "d1"))
    narrow = "CREATE MATERIALIZED VIEW sums AS SELECT cust, count(*) AS n FROM orders GROUP BY cust;"
    shop.runner(narrow).refresh()
    since = shop.orders.position().moment
    shop.order((3, 1, 1, "d2"))
    wide = "SELECT cust, count(*) AS n, sum(amount) AS s FROM orders GROUP BY cust"
    runner = shop.runner(f"CREATE MATERIALIZED VIEW sums AS {wide};")
    runner.refresh(replay={"sums": Moment(since or 0)})
    assert shop.rows("sums") == [(1, 2, 6), (2, 1, None)]
    record = state_of(shop.client.table(f"{shop.database}.sums")).record
    assert record is not None and not record.complete
    shop.order((4, 2, 3, "d2"))
    assert refreshed(runner, read)
    assert shop.rows("sums") == [(1, 2, 6), (2, 2, 10)]
    runner.refresh(["sums"])
    shop.order((5, 2, 3, "d2"))
    assert not refreshed(runner, read)
    assert shop.rows("sums") == [(1, 2, 6), (2, 3, 13)]


def test_a_replay_does_not_add_twice(shop: Shop) -> None:
    shop.order((1, 1, 5, "d1"))
    runner = shop.runner(SUMS)
    runner.refresh()
    since = shop.orders.position().moment
    shop.order((2, 1, 7, "d1"))
    runner.refresh()
    runner.refresh(replay={"sums": Moment(since or 0)})
    assert shop.rows("sums") == answer(shop)


def test_rows_of_an_earlier_release_are_not_merged(
    shop: Shop, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It didn't say whether all of them are the query's answer."""
    shop.order((1, 1, 5, "d1"), (2, 1, 7, "d1"))
    runner = shop.runner(SUMS)
    with monkeypatch.context() as earlier:
        earlier.setattr(records, "_COMPLETE", "unknown")
        runner.refresh()
    shop.order((3, 1, 6, "d2"))
    assert refreshed(runner, read)
    runner.refresh(["sums"])
    shop.order((4, 1, 6, "d2"))
    assert not refreshed(runner, read)
    assert shop.rows("sums") == answer(shop)
