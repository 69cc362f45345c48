"""Of an increment and all of a layer, the one that takes less time is computed; both come to the same."""

import math
import random
from collections.abc import Mapping

import pytest

from lake.layers.runner import costs, refresh
from lake.layers.runner.costs import INCREMENT, WHOLE, Gain, Taken, Ways, not_worth
from lake.layers.runner.engine import Changed, SourceChange
from lake.layers.runner.records import state_of
from lake.layers.runner.runner import Runner
from lake.layers.runner.status import status_of
from lake.tables.lake import LakeTable
from tests.lake.layers.duck_lake import DuckEngine
from tests.lake.layers.shop import QUERIES, Shop, how

MiB = 1024 * 1024
STRICT = "CREATE MATERIALIZED VIEW strict TBLPROPERTIES (refresh_policy = 'incremental_strict') AS SELECT * FROM orders"


def choosing(shop: Shop, text: str | None = None) -> Runner:
    runner = shop.runner() if text is None else shop.runner(text)
    runner.choose = True
    return runner


def filled(shop: Shop) -> None:
    shop.order((1, 1, 5, "d1"), (2, 1, 7, "d1"), (3, 2, 9, "d2"))
    shop.know((1, "Oslo"), (2, "Rome"))


# --- estimates ------------------------------------------------------------------------------------------------


def test_a_way_that_was_never_taken_has_the_pace_of_the_other() -> None:
    found = Ways.of({INCREMENT: 20 * MiB, WHOLE: 10 * MiB}, {WHOLE: Taken(5 * MiB, 1.0, 1)}, 2)
    assert (found.increment, found.whole) == pytest.approx((4.0, 2.0), rel=0.02)
    assert found.cheaper == WHOLE


def test_what_a_way_took_counts_more_than_what_it_reads() -> None:
    taken = {WHOLE: Taken(100 * MiB, 1.0, 1), INCREMENT: Taken(5 * MiB, 97.0, 2)}
    assert Ways.of({INCREMENT: 5 * MiB, WHOLE: 100 * MiB}, taken, 3).cheaper == WHOLE


def test_a_slow_increment_is_tried_again_in_the_end() -> None:
    taken = {WHOLE: Taken(10 * MiB, 1.0, 1), INCREMENT: Taken(10 * MiB, 2.0, 1)}
    work = {INCREMENT: 10 * MiB, WHOLE: 10 * MiB}
    numbers = range(2, 200)
    chosen = [Ways.of(work, {**taken, WHOLE: Taken(10 * MiB, 1.0, number - 1)}, number).cheaper for number in numbers]
    assert chosen[0] == WHOLE and chosen[-1] == INCREMENT


def test_the_first_refresh_of_a_process_pays_for_compiling() -> None:
    assert Taken.measured(1, 8.0, 1, first=True).seconds == 2.0
    assert Taken.measured(1, 100.0, 1, first=True).seconds == 90.0
    assert Taken.measured(1, 8.0, 1, first=False).seconds == 8.0


ORDERS, CITIES = SourceChange("orders", 1, 2), SourceChange("cities", 1, 2)


@pytest.mark.parametrize(
    ("gains", "left"),
    [
        ([], {ORDERS, CITIES}),
        ([Gain(frozenset([ORDERS]), 2.0)], {CITIES}),
        ([Gain(frozenset([ORDERS]), 0.6), Gain(frozenset([ORDERS]), 0.6)], {CITIES}),
        ([Gain(frozenset([ORDERS]), 0.6), Gain(frozenset([ORDERS]), -5.0)], {ORDERS, CITIES}),
        # Who needs both saves nothing if one of them isn't read.
        ([Gain(frozenset([ORDERS, CITIES]), 3.0)], set()),
        ([Gain(frozenset([ORDERS, CITIES]), 0.9), Gain(frozenset([ORDERS]), 0.5)], {ORDERS, CITIES}),
        ([Gain(frozenset([ORDERS, CITIES]), 0.9), Gain(frozenset([ORDERS]), 1.5)], {CITIES}),
        ([Gain(frozenset([ORDERS]), math.inf)], {CITIES}),
    ],
)
def test_changes_are_read_if_all_who_need_them_save_more(gains: list[Gain], left: set[SourceChange]) -> None:
    assert not_worth(gains, {ORDERS: 1.0, CITIES: 1.0}) == left


# --- refreshes ------------------------------------------------------------------------------------------------


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables whose changed rows are read."""
    found = []
    changed_rows = DuckEngine.changed_rows

    def noted(self: DuckEngine, lake: LakeTable, after: int, up_to: int) -> Changed:
        found.append(lake.name.partition(".")[2])
        return changed_rows(self, lake, after, up_to)

    monkeypatch.setattr(DuckEngine, "changed_rows", noted)
    return found


def test_small_layers_are_computed_as_a_whole(shop: Shop, read: list[str]) -> None:
    filled(shop)
    runner = choosing(shop)
    assert {each.estimated for each in runner.refresh().layers} == {None}
    shop.know((2, "Oslo"))
    second = runner.refresh()
    assert how(second.layers) == dict.fromkeys(QUERIES, "full")
    assert second.layers[0].changed == {"updated": 1}, "and the differences are written"
    assert second.layers[0].estimated is not None and second.layers[0].estimated.cheaper == WHOLE
    assert (second.layers[0].why or "").startswith("estimated: ")
    shop.check()
    assert how(runner.refresh().layers) == dict.fromkeys(QUERIES, "unchanged")
    assert not read, "nobody needs to know which rows changed"


def test_one_layer_that_gains_has_changes_read_for_all(shop: Shop, read: list[str]) -> None:
    filled(shop)
    runner = choosing(shop, STRICT + "; CREATE MATERIALIZED VIEW sums AS SELECT sum(amount) AS s FROM orders;")
    runner.refresh()
    shop.know((2, "Oslo"))
    assert how(runner.refresh().layers) == {"strict": "unchanged", "sums": "unchanged"}
    assert not read
    shop.order((4, 1, 1, "d1"))
    assert how(runner.refresh().layers) == {"strict": "incremental", "sums": "full"}
    assert read == ["orders"]


@pytest.mark.parametrize("steps", [4, pytest.param(60, marks=pytest.mark.long)])
def test_all_choices_come_to_the_same_rows(shop: Shop, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    rng = random.Random(seed)

    def some(gains: list[Gain], costs: Mapping[SourceChange, float]) -> set[SourceChange]:
        return {each for each in costs if rng.random() < 0.5}

    monkeypatch.setattr(refresh, "not_worth", some)
    monkeypatch.setattr(Ways, "cheaper", property(lambda ways: rng.choice([INCREMENT, WHOLE])))
    filled(shop)
    layers = choosing(shop)
    layers.refresh()
    for _ in range(steps):
        for _ in range(rng.randint(1, 3)):
            order, day = rng.randint(1, 9), f"d{rng.randint(1, 2)}"
            match rng.randrange(3):
                case 0:
                    shop.order((order, rng.randint(1, 3), rng.randint(1, 9), day))
                case 1:
                    shop.unorder((order, day))
                case _:
                    shop.know((rng.randint(1, 3), rng.choice(["Oslo", "Rome"])))
        layers.refresh()
        shop.check()


@pytest.mark.long
def test_where_jobs_cost_nothing_the_bytes_decide(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "JOB_BYTES", 0)
    shop.order(*((number, number % 9, number, f"d{number % 10}") for number in range(10)))
    shop.know(*((number, "Oslo") for number in range(9)))
    text = "CREATE MATERIALIZED VIEW sums PARTITIONED BY (dt) AS SELECT dt, max(amount) AS m FROM orders GROUP BY dt;"
    runner = choosing(shop, text)
    runner.refresh()
    shop.order((1, 1, 5, "d1"))
    [one_day] = runner.refresh().layers
    assert one_day.how == "by group", one_day
    shop.order(*((number, 1, 7, f"d{number % 10}") for number in range(10)))
    [all_days] = runner.refresh().layers
    assert all_days.estimated is not None and all_days.estimated.increment > one_day.estimated.increment  # type: ignore[union-attr]


def test_who_wants_increments_gets_them(shop: Shop) -> None:
    filled(shop)
    runner = choosing(shop, STRICT + ";")
    runner.refresh()
    shop.order((4, 1, 1, "d1"))
    [found] = runner.refresh().layers
    assert (found.how, found.changed, found.estimated) == ("incremental", {"inserted": 1}, None)


def test_both_estimates_are_kept_and_shown(shop: Shop) -> None:
    filled(shop)
    runner = choosing(shop)
    runner.refresh()
    shop.order((4, 1, 1, "d1"))
    shown = {each.layer: each.estimated for each in runner.refresh().layers}
    for each in status_of(runner.graph, shop.client):
        assert each.estimated == shown[each.layer] is not None
        assert each.as_json()["estimated_seconds"] == {
            "increment": each.estimated.increment,
            "whole": each.estimated.whole,
        }
        record = state_of(shop.client.table(each.layer)).record
        assert record is not None and {*record.taken} == {WHOLE}
    runner.choose = False
    shop.order((5, 1, 1, "d1"))
    runner.refresh()
    record = state_of(shop.client.table(f"{shop.database}.details")).record
    assert record is not None and {*record.taken} == {WHOLE} and record.estimated is None, "figures stay"
