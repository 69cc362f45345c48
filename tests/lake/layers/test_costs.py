"""Of an increment and all of a layer, the one that takes less time is computed; both come to the same."""

import pytest

from lake.layers.runner import costs
from lake.layers.runner.costs import INCREMENT, WHOLE, Taken, Ways
from lake.layers.runner.records import state_of
from lake.layers.runner.runner import Runner
from lake.layers.runner.status import status_of
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


# --- refreshes ------------------------------------------------------------------------------------------------


def test_small_layers_are_computed_as_a_whole(shop: Shop) -> None:
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
