"""Other definitions that are computed beside the tables, which are refreshed and read meanwhile."""

import contextlib
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from lake.layers.applying.beside import STEP_BYTES, SUFFIX, CannotComputeBeside, apply_beside
from lake.layers.applying.planning import plan_of
from lake.layers.runner import claims, refresh
from lake.layers.runner.claims import DefinedElsewhere, announced
from lake.layers.runner.records import LayerState, Record, state_of
from lake.layers.runner.results import RefreshFailed, RefreshResult
from lake.layers.runner.runner import Runner
from lake.layers.undo.revert import apply_revert, plan_revert
from lake.protocol.hive import LockType
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.lake import LakeTable
from tests.lake.client.test_readiness import commit
from tests.lake.layers.duck_lake import DuckEngine
from tests.lake.layers.shop import ORDERS, Shop, how, rows_of
from tests.lake.layers.test_applied_definitions import at, forget_claims
from tests.lake.layers.test_changed_definitions import ABOVE, CHAIN, MEANINGS, Order, filled
from tests.lake.layers.test_readiness import EVENTS, ready, source
from tests.lake.layers.test_reverted_definitions import rows_by
from tests.support.long_runs import share_of

LAYERS = ("big", "towns", "sums")
STAGES = ["computed", "begun", "written", "completed", "beside", "cut over"]


def applied(runner: Runner) -> RefreshResult:
    return apply_beside(runner, plan_of(runner))


def tables(shop: Shop) -> list[str]:
    return sorted(shop.client.call(lambda thrift: thrift.get_all_tables(shop.database)))


def moments(shop: Shop) -> dict[str, int | None]:
    return {name: shop.client.table(f"{shop.database}.{name}").position().moment for name in LAYERS}


def test_the_tables_are_refreshed_meanwhile_and_cut_over_at_one_moment(shop: Shop) -> None:
    filled(shop)
    live = shop.runner(CHAIN.format(5))
    live.refresh()
    big = shop.client.table(f"{shop.database}.big")
    towns = state_of(shop.client.table(f"{shop.database}.towns"))
    runner = shop.runner(CHAIN.format(8))

    def others() -> None:
        shop.order((7, 1, 20, "d3"), (1, 1, 6, "d1"))
        assert how(live.refresh().layers)["big"] == "incremental"
        assert shop.rows("big") == [(1, "d1", 6), (2, "d1", 7), (3, "d2", 9), (4, "d2", 9), (7, "d3", 20)]
        shop.order((8, 1, 30, "d3"))

    runner.pause = at("beside", others)
    before = big.position().position
    result = applied(runner)
    assert how(result.layers) == {"big": "beside", "towns": "unchanged", "sums": "beside"}
    assert shop.rows("big") == [(3, "d2", 9), (4, "d2", 9), (7, "d3", 20), (8, "d3", 30)], "also what came since"
    assert shop.rows("sums") == [("d2", 18), ("d3", 50)]
    assert state_of(shop.client.table(f"{shop.database}.towns")) == towns
    now = moments(shop)
    assert now["big"] == now["sums"]
    changes = {(each["id"], each[CHANGE_TYPE]) for each in big.changes(before + 1).to_arrow().to_pylist()}
    assert changes == {(1, "delete"), (2, "delete"), (8, "insert")}, "the net difference"
    assert tables(shop) == ["big", "customers", "orders", "sums", "towns"], "what was beside is gone"
    assert how(shop.runner(CHAIN.format(8)).refresh().layers) == dict.fromkeys(LAYERS, "unchanged")
    shop.order((9, 1, 40, "d3"))
    assert how(shop.runner(CHAIN.format(8)).refresh().layers)["big"] == "incremental", "and on from there"
    with pytest.raises(DefinedElsewhere):
        live.refresh()


@pytest.mark.parametrize(
    "stage",
    [
        "written",
        "beside",
        "cut over",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("computed", "completed")),
    ],
)
def test_what_is_beside_goes_on_after_an_end(shop: Shop, stage: str) -> None:
    """Killed anywhere, and the sources change before it is repeated."""
    filled(shop)
    shop.runner(CHAIN.format(5)).refresh()
    runner = shop.runner(CHAIN.format(8))

    def end() -> None:
        raise KeyboardInterrupt

    runner.pause = at(stage, end)
    with pytest.raises(KeyboardInterrupt):
        applied(runner)
    rows = [(3, "d2", 9), (4, "d2", 9)]
    assert shop.rows("big") == (rows if stage == "cut over" else [(2, "d1", 7), *rows])
    shop.order((7, 1, 20, "d3"), (3, 1, 1, "d2"))
    applied(shop.runner(CHAIN.format(8)))
    assert shop.rows("big") == [(4, "d2", 9), (7, "d3", 20)]
    assert shop.rows("sums") == [("d2", 9), ("d3", 20)]
    assert not [each for each in tables(shop) if each.endswith(SUFFIX)]


@pytest.mark.long
def test_every_step_at_which_it_ends(shop: Shop) -> None:
    """Then the layers are by one definition, all of them, and refreshed by it; repeated, it goes on."""
    filled(shop)
    shop.runner(CHAIN.format(5)).refresh()
    step, stands = 0, 5
    while True:
        other = 13 - stands
        runner, steps = shop.runner(CHAIN.format(other)), list[str]()

        def end(stage: str, steps: list[str] = steps, last: int = step) -> None:
            steps.append(stage)
            if len(steps) > last:
                raise KeyboardInterrupt

        runner.pause = end
        shop.order((20 + step, 1, 6 + step % 4, "d3"))
        try:
            applied(runner)
        except KeyboardInterrupt:
            is_done = "beside" in steps and steps[-1] in ("completed", "cut over")
            rows_by(shop, other if is_done else stands, but=() if is_done else (20 + step,))
            if not is_done:
                forget_claims(shop)
                assert how(shop.runner(CHAIN.format(stands)).refresh().layers)["big"] == "incremental"
                rows_by(shop, stands)
            shop.unorder((1, "d1"))
            shop.order((1, 1, 9 - step % 3, "d1"))
            applied(shop.runner(CHAIN.format(other)))
            step += 1
            stands = other
            rows_by(shop, stands)
            assert not [each for each in tables(shop) if each.endswith(SUFFIX)]
        else:
            break
    assert steps[-6:] == ["beside", "computed", "begun", "written", "completed", "cut over"]
    assert step == len(steps) > 12


@pytest.mark.long
def test_what_is_kept_is_not_computed_again(shop: Shop) -> None:
    filled(shop)
    shop.runner(CHAIN.format(5)).refresh()
    runner = shop.runner(CHAIN.format(8))

    def end() -> None:
        raise KeyboardInterrupt

    runner.pause = at("beside", end)
    with pytest.raises(KeyboardInterrupt):
        applied(runner)
    beside = shop.client.table(f"{shop.database}.big{SUFFIX}")
    first = state_of(beside).instant
    seen = []
    again = shop.runner(CHAIN.format(8))
    again.pause = at("beside", lambda: seen.append(state_of(beside).instant))
    applied(again)
    assert seen == [first]

    runner = shop.runner(CHAIN.format(6))
    runner.pause = at("beside", end)
    with pytest.raises(KeyboardInterrupt):
        applied(runner)
    applied(shop.runner(CHAIN.format(20)))
    assert shop.rows("big") == [], "by another definition, what was kept is of no use"


STEPPED = (
    "CREATE MATERIALIZED VIEW big PARTITIONED BY (dt) AS SELECT id, amount * {0} AS amount, dt FROM orders;\n"
    "CREATE MATERIALIZED VIEW sums PARTITIONED BY (dt) AS"
    " SELECT count(*) AS n, CAST(sum(amount) AS BIGINT) AS amount, dt FROM big GROUP BY dt;\n"
    "CREATE MATERIALIZED VIEW total AS SELECT count(*) AS n, CAST(sum(n) AS BIGINT) AS amount FROM sums"
)


def stepped(runner: Runner) -> RefreshResult:
    """Each partition is a step."""
    return apply_beside(runner, plan_of(runner), step_bytes=1)


def beside_of(shop: Shop, name: str) -> list[tuple[object, ...]]:
    return shop.rows(f"{name}{SUFFIX}")


def test_partitions_are_computed_one_after_the_other(shop: Shop) -> None:
    """What ends early goes on with the partition that is next, whatever has changed meanwhile."""
    filled(shop)
    shop.order((5, 1, 3, "d3"))
    shop.runner(STEPPED.format(1)).refresh()
    runner = shop.runner(STEPPED.format(2))
    said: list[str] = []
    runner.progress = said.append

    def end() -> None:
        raise KeyboardInterrupt

    runner.pause = at("step", end)
    with pytest.raises(KeyboardInterrupt):
        stepped(runner)
    assert beside_of(shop, "big") == [(1, 10, "d1"), (2, 14, "d1")]
    shop.order((1, 1, 6, "d1"), (3, 1, 1, "d2"), (7, 1, 8, "d2"), (8, 1, 5, "d4"), (9, 1, 5, "d0"))
    shop.unorder((2, "d1"))
    runner = shop.runner(STEPPED.format(2))
    runner.progress = said.append
    runner.pause = at("step", end)
    with pytest.raises(KeyboardInterrupt):
        stepped(runner)
    earlier = [(1, 12, "d1"), (3, 2, "d2"), (4, 18, "d2"), (7, 16, "d2"), (9, 10, "d0")]
    assert beside_of(shop, "big") == earlier
    live = shop.runner(STEPPED.format(1))
    assert how(live.refresh().layers) == {"big": "incremental", "sums": "by group", "total": "by group"}
    runner = shop.runner(STEPPED.format(2))
    runner.progress = said.append
    result = stepped(runner)
    assert how(result.layers) == dict.fromkeys(("big", "sums", "total"), "beside")
    assert shop.rows("big") == sorted([*earlier, (5, 6, "d3"), (8, 10, "d4")], key=repr)
    assert shop.rows("sums") == [(1, 10, "d0"), (1, 10, "d4"), (1, 12, "d1"), (1, 6, "d3"), (3, 36, "d2")]
    assert shop.rows("total") == [(5, 7)]
    assert how(shop.runner(STEPPED.format(2)).refresh().layers) == dict.fromkeys(("big", "sums", "total"), "unchanged")
    steps = [found.groups() for each in said if (found := re.search(r"computing .*\.(.+) beside .*, dt (.+)", each))]
    assert steps == [
        *(("big", end) for end in ("up to d2", "up to d3", "up to d4", "to its end")),
        *(("sums", end) for end in ("up to d1", "up to d2", "up to d3", "up to d4", "to its end")),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "CREATE MATERIALIZED VIEW big AS SELECT id, amount * {0} AS amount, dt FROM orders",
        "CREATE MATERIALIZED VIEW big PARTITIONED BY (dt) AS"
        " SELECT id, cust * {0} AS amount, concat(dt, '') AS dt FROM orders",
        "CREATE MATERIALIZED VIEW big PARTITIONED BY (dt) AS"
        " SELECT max(id) AS id, max(amount) * {0} AS amount, max(dt) AS dt FROM orders GROUP BY cust",
    ],
    ids=["no partitions", "no partitions to read", "a row of any day"],
)
def test_one_step_where_a_part_reads_all(shop: Shop, text: str) -> None:
    filled(shop)
    shop.runner(text.format(1)).refresh()
    runner = shop.runner(text.format(2))
    said: list[str] = []
    runner.progress = said.append
    stepped(runner)
    assert not [each for each in said if ", dt " in each]


def test_what_is_kept_of_quarantines(shop: Shop) -> None:
    filled(shop)
    text = (
        "CREATE MATERIALIZED VIEW big (CONSTRAINT few EXPECT (amount < {0}) ON VIOLATION QUARANTINE ROW)"
        " PARTITIONED BY (dt) AS SELECT id, amount, dt FROM orders"
    )
    shop.runner(text.format(9)).refresh()
    runner, instants = shop.runner(text.format(7)), []

    def look() -> None:
        names = [f"{shop.database}.{name}{SUFFIX}" for name in ("big", "big_quarantine")]
        instants.append([state_of(shop.client.table(name)).instant for name in names])
        if len(instants) == 1:
            raise KeyboardInterrupt

    runner.pause = at("beside", look)
    with pytest.raises(KeyboardInterrupt):
        stepped(runner)
    runner = shop.runner(text.format(7))
    runner.pause = at("beside", look)
    stepped(runner)
    assert instants[0] == instants[1], "nothing was computed again"
    assert (shop.rows("big"), [row[0] for row in shop.rows("big_quarantine")]) == ([(1, 5, "d1")], [2, 3, 4])


def test_a_share_of_the_time(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(shop)
    shop.runner(CHAIN.format(5)).refresh()
    rests, took = [], []
    clock, sleep = time.monotonic, time.sleep
    runner = shop.runner(CHAIN.format(8))

    def rest(seconds: float) -> None:
        if threading.current_thread() is threading.main_thread():
            rests.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr("lake.layers.applying.beside.time", SimpleNamespace(monotonic=clock, sleep=rest))
    began = clock()
    apply_beside(runner, plan_of(runner), share=0.25)
    took.append(clock() - began)
    assert len(rests) >= 3, "a layer, another one, and those together"
    assert 0 < sum(rests) <= 3 * sum(took)
    assert min(rests) > 0


def test_tables_that_read_layers_which_stay_keep_their_hidden_keys(shop: Shop) -> None:
    """What they are made of is what those are known by: groups whose columns may be NULL."""
    shop.know((1, "Oslo"), (2, "Rome"), (3, "Rome"), (4, None))
    text = (
        "CREATE MATERIALIZED VIEW towns AS SELECT city, count(*) AS n FROM customers GROUP BY city;\n"
        "CREATE MATERIALIZED VIEW few AS SELECT city, n FROM towns WHERE n < {}"
    )
    shop.runner(text.format(5)).refresh()
    few = shop.client.table(f"{shop.database}.few")
    position, before = few.position().position, few.scan().to_arrow().to_pylist()
    result = applied(shop.runner(text.format(2)))
    assert how(result.layers) == {"towns": "unchanged", "few": "beside"}
    changes = [(each["city"], each[CHANGE_TYPE]) for each in few.changes(position).to_arrow().to_pylist()]
    assert changes == [("Rome", "delete")], "nothing else is written"
    shop.know((5, "Oslo"), (6, "Lima"))
    assert how(shop.runner(text.format(2)).refresh().layers)["few"] != "full"
    assert shop.rows("few") == [("Lima", 1), (None, 1)]
    keys = {each["city"]: each["_row_key"] for each in (*before, *few.scan().to_arrow().to_pylist())}
    assert [each["_row_key"] for each in before] == [keys[each["city"]] for each in before]


def test_sources_that_get_columns_meanwhile(shop: Shop) -> None:
    """The layers are refreshed meanwhile by definitions that say the same of other sources."""
    filled(shop)
    live = shop.runner(CHAIN.format(5))
    live.refresh()
    runner = shop.runner(CHAIN.format(8))

    def others() -> None:
        engine = DuckEngine(shop.client)
        engine.add_columns(shop.orders, {"note": "string"})
        engine.close()
        orders = shop.client.table(shop.orders.name)
        orders.upsert(rows_of([(7, 1, 20, "d3", "late")], {**ORDERS, "note": "string"}))
        assert how(live.refresh().layers)["big"] == "incremental"
        raise KeyboardInterrupt

    runner.pause = at("beside", others)
    with pytest.raises(KeyboardInterrupt):
        applied(runner)
    beside = shop.client.table(f"{shop.database}.big{SUFFIX}")
    first = state_of(beside).instant
    again = shop.runner(CHAIN.format(8))
    again.pause = at("beside", lambda: seen.append((beside.position().position, state_of(beside).record)))
    seen: list[tuple[int, Record | None]] = []
    applied(again)
    [(position, record)] = seen
    assert position > 1, "what was computed is kept"
    assert record is not None
    assert record.how == "incremental"
    assert first is not None
    assert shop.rows("big") == [(3, "d2", 9), (4, "d2", 9), (7, "d3", 20)]
    assert not [each for each in tables(shop) if each.endswith(SUFFIX)]


def test_a_table_beside_that_somebody_else_refreshes(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may not lock tables doesn't hear of others who compute the same."""
    filled(shop)
    monkeypatch.setattr(claims, "LockType", SimpleNamespace(EXCL_WRITE=99, SHARED_READ=LockType.SHARED_READ))
    shop.runner(CHAIN.format(5)).refresh()
    text = CHAIN.format(8)
    runner, other = shop.runner(text), shop.runner(text)
    look, looked = refresh.state_of, []

    def end() -> None:
        raise KeyboardInterrupt

    def state(lake: LakeTable) -> LayerState:
        if "cut" in looked and lake.name.endswith(SUFFIX):
            looked.clear()
            other.pause = at("beside", end)
            with pytest.raises(KeyboardInterrupt):
                applied(other)
        return look(lake)

    def before_the_cut_over() -> None:
        shop.order((7, 1, 20, "d3"))
        looked.append("cut")

    monkeypatch.setattr(refresh, "state_of", state)
    runner.pause = at("beside", before_the_cut_over)
    applied(runner)
    assert looked == []
    assert shop.rows("big") == [(3, "d2", 9), (4, "d2", 9), (7, "d3", 20)]
    assert how(shop.runner(text).refresh().layers) == dict.fromkeys(LAYERS, "unchanged")


def test_new_tables(shop: Shop) -> None:
    filled(shop)
    text = CHAIN.format(5)
    shop.runner(text).refresh()
    other = CHAIN.format(8) + ";\nCREATE MATERIALIZED VIEW days AS SELECT dt, count(*) AS n FROM big GROUP BY dt"
    result = applied(shop.runner(other))
    assert how(result.layers) == {"big": "beside", "towns": "unchanged", "sums": "beside", "days": "beside"}
    assert shop.rows("days") == [("d2", 2)]


def test_a_table_that_cannot_be_computed_leaves_all_as_they_were(shop: Shop) -> None:
    filled(shop)
    text = (
        "CREATE MATERIALIZED VIEW big (CONSTRAINT e EXPECT (amount < {0}) ON VIOLATION FAIL UPDATE)"
        " AS SELECT id, dt, amount FROM orders"
    )
    shop.runner(text.format(100)).refresh()
    before = shop.rows("big")
    with pytest.raises(Exception, match="rows don't meet e"):
        applied(shop.runner(text.format(6)))
    assert shop.rows("big") == before
    runner = shop.runner(text.format(50))
    runner.pause = at("beside", lambda: shop.order((7, 1, 70, "d3")))
    with pytest.raises(Exception, match="rows don't meet e"):
        applied(runner)
    assert shop.rows("big") == before


def test_rows_that_cannot_be_computed_leave_all_as_they_were(shop: Shop) -> None:
    text = "CREATE MATERIALIZED VIEW big AS SELECT id, dt, {} AS n FROM orders"
    others = ";\nCREATE MATERIALIZED VIEW towns AS SELECT city, count(*) AS n FROM customers GROUP BY city"
    shop.know((1, "Oslo"))
    shop.order((1, 1, 5, "7"))
    shop.runner(text.format("amount") + others).refresh()
    before, other = shop.rows("big"), text.format("CAST(dt AS BIGINT)") + others.replace("count(*)", "count(*) + 1")
    runner = shop.runner(other)
    runner.pause = at("beside", lambda: shop.order((2, 1, 5, "d1")))
    with pytest.raises(RefreshFailed, match=r"big can't be computed, and so nothing is cut over: .*d1"):
        applied(runner)
    with pytest.raises(RefreshFailed, match=r"big failed: .*d1.* Nothing is cut over"):
        applied(shop.runner(other))
    assert (shop.rows("big"), shop.rows("towns")) == (before, [("Oslo", 1)])
    shop.unorder((2, "d1"))
    applied(shop.runner(other))
    assert (shop.rows("big"), shop.rows("towns")) == ([(1, "7", 7)], [("Oslo", 2)])


@pytest.mark.long
def test_what_was_computed_beside_is_taken_back(shop: Shop) -> None:
    filled(shop)
    shop.runner(CHAIN.format(5)).refresh()
    shop.order((5, 1, 6, "d3"))
    applied(shop.runner(CHAIN.format(8)))
    shop.order((1, 1, 9, "d1"), (8, 2, 7, "d3"))
    runner = shop.runner(CHAIN.format(8))
    runner.refresh()
    revert = plan_revert(runner)
    assert {each.layer for each in revert.restored} == {f"{shop.database}.big", f"{shop.database}.sums"}
    apply_revert(runner, revert)
    rows_by(shop, 5)
    applied(shop.runner(CHAIN.format(7)))
    rows_by(shop, 7)


def test_partitions_turn_ready_as_with_any_refresh(shop: Shop) -> None:
    events = source(shop, "events")
    events.upsert(rows_of([(1, 5, "d1"), (2, -6, "d2"), (3, 1, "d3")], EVENTS))
    commit(events, "dt=d1", "dt=d2")
    text = (
        "CREATE MATERIALIZED VIEW good (CONSTRAINT positive EXPECT (n > 0) ON VIOLATION HOLD PARTITION)"
        " PARTITIONED BY (dt) AS SELECT id, {} AS n, dt FROM events;"
        " CREATE MATERIALIZED VIEW top PARTITIONED BY (dt) TBLPROPERTIES ('readiness' = 'sources') AS"
        " SELECT id, n * 2 AS n, dt FROM good"
    )
    shop.runner(text.format("n + 0")).refresh()
    assert (ready(shop, "good"), ready(shop, "top")) == (["dt=d1"], ["dt=d1"])
    runner = shop.runner(text.format("n + 10"))
    meanwhile = []
    runner.pause = at("beside", lambda: meanwhile.append(ready(shop, "top")))
    applied(runner)
    assert meanwhile == [["dt=d1"]]
    assert (ready(shop, "good"), ready(shop, "top")) == (["dt=d1", "dt=d2"], ["dt=d1", "dt=d2"])
    assert shop.rows("top") == [(1, 30, "d1"), (2, 8, "d2")]
    applied(shop.runner(text.format("n - 2")))
    assert (ready(shop, "good"), ready(shop, "top")) == (["dt=d1"], ["dt=d1"]), "d2 doesn't meet it any more"
    assert shop.rows("good") == [(1, 3, "d1")]


def test_what_is_refused(shop: Shop) -> None:
    filled(shop)
    shop.runner(CHAIN.format(5)).refresh()
    shop.table(f"big{SUFFIX}", {"id": "bigint"}, {"primary-key": "id"})
    with pytest.raises(CannotComputeBeside, match="isn't beside a layer of this project"):
        applied(shop.runner(CHAIN.format(8)))
    assert shop.rows("big") == [(2, "d1", 7), (3, "d2", 9), (4, "d2", 9)]
    own = f";\nCREATE MATERIALIZED VIEW sums{SUFFIX} AS SELECT city, count(*) AS n FROM customers GROUP BY city"
    with pytest.raises(CannotComputeBeside, match=f"sums{SUFFIX} is a table of the project itself"):
        applied(shop.runner(CHAIN.format(8) + own))


def test_a_second_one_is_refused(shop: Shop) -> None:
    filled(shop)
    shop.runner(CHAIN.format(5)).refresh()
    runner, said = shop.runner(CHAIN.format(8)), []

    def second() -> None:
        for apply in (applied, Runner.refresh):
            with pytest.raises(DefinedElsewhere) as refused:
                apply(shop.runner(CHAIN.format(6)))
            said.append(str(refused.value))

    runner.pause = at("beside", second)
    applied(runner)
    assert all("big gets another definition already" in each for each in said)
    assert shop.rows("big") == [(3, "d2", 9), (4, "d2", 9)]


def test_refreshes_wait_for_a_cut_over(shop: Shop) -> None:
    """Else who refreshes again and again would be quicker each time, and the cut-over begin again."""
    filled(shop)
    shop.runner(CHAIN.format(5)).refresh()
    live, runner = shop.runner(CHAIN.format(5)), shop.runner(CHAIN.format(8))
    stages: list[str] = []
    waits = threading.Event()
    live.progress = lambda said: waits.set() if re.fullmatch(r"waits for .+, who cuts .+\..+ over", said) else None
    with ThreadPoolExecutor(1) as pool:
        refreshes: list[Future[RefreshResult]] = []

        def pause(stage: str) -> None:
            stages.append(stage)
            if stage == "computed" and "beside" in stages and not refreshes:
                shop.order((7, 1, 20, "d3"))
                refreshes.append(pool.submit(live.refresh))
                assert waits.wait(20)

        runner.pause = pause
        applied(runner)
        with pytest.raises(DefinedElsewhere):
            refreshes[0].result(20)
    assert stages[stages.index("beside") :].count("computed") == 1
    assert shop.rows("big") == [(3, "d2", 9), (4, "d2", 9)], "the order came after the moment of the cut-over"


def test_nobody_waits_for_a_cut_over_that_has_ended(shop: Shop) -> None:
    filled(shop)
    live = shop.runner(CHAIN.format(5))
    live.refresh()
    live.heartbeat_seconds = 0.1
    with announced([live.table(f"{shop.database}.big")], "shop", heartbeat_seconds=60):
        shop.order((7, 1, 20, "d3"))
        assert how(live.refresh().layers)["big"] == "incremental"


@pytest.mark.parametrize("seed", [0, *(pytest.param(each, marks=pytest.mark.long) for each in range(1, share_of(100)))])
def test_random_definitions_beside(shop: Shop, seed: int) -> None:
    """With changes of sources, refreshes by the old definition and ends meanwhile: rows are those of the definition.
    Those with odd seeds are computed in steps."""
    rng, has_steps = random.Random(seed), seed % 2 == 1
    orders: dict[tuple[int, str], Order] = {}
    shop.know((1, "Oslo"))

    def change() -> None:
        ids = rng.sample(range(8), rng.randint(1, 3))
        rows = [(id, rng.choice([None, 1, 2]), rng.choice([None, 4, 5, 6, 9]), f"d{id % 3}") for id in ids]
        shop.order(*rows)
        orders.update({(row[0], row[3]): row for row in rows})
        if rng.random() < 0.3:
            gone = rng.choice([*orders])
            shop.unorder(gone)
            del orders[gone]

    def written(texts: Sequence[str]) -> str:
        if not has_steps:
            return rng.choice(texts) + ABOVE
        return f"{texts[0]}{ABOVE}".replace(" AS SELECT o.", " PARTITIONED BY (dt) AS SELECT o.").replace(
            "sums AS SELECT dt, count(*) AS n, sum(total) AS total",
            "sums PARTITIONED BY (dt) AS SELECT count(*) AS n, sum(total) AS total, dt",
        )

    def applied(runner: Runner) -> RefreshResult:
        return apply_beside(runner, plan_of(runner), step_bytes=1 if has_steps else STEP_BYTES)

    change()
    texts, meaning = MEANINGS[0]
    text = written(texts[:1])
    shop.runner(text).refresh()
    for _ in range(4):
        texts, meaning = rng.choice(MEANINGS)
        before, text = text, written(texts)
        for stage in (*rng.sample([*STAGES, *(["step"] * has_steps)], 2), "none"):
            runner = shop.runner(text)
            end = rng.random() < 0.6
            by = text if stage == "cut over" else before  # a program that starts then has the files of now
            runner.pause = at(stage, _doing(shop, by, change, rng.random() < 0.7, end=end))
            try:
                applied(runner)
                before = text
            except DefinedElsewhere:
                pass  # others have put their definition, which means the same, in other words
            except KeyboardInterrupt:
                before = text if stage == "cut over" else before
            if rng.random() < 0.3:
                change()
        applied(shop.runner(text))
        wanted = sorted(
            [(row[0], row[3], total) for row in orders.values() for total, there in [meaning(row)] if there], key=repr
        )
        columns = (0, 2, 1) if has_steps else (0, 1, 2)
        assert shop.rows("big") == sorted((tuple(map(row.__getitem__, columns)) for row in wanted), key=repr)
        sums: dict[str, list[int | None]] = {}
        for _id, dt, total in wanted:
            sums.setdefault(dt, []).append(total)
        known = {dt: [each for each in totals if each is not None] for dt, totals in sums.items()}
        found = [(dt, len(sums[dt]), sum(known[dt]) if known[dt] else None) for dt in sorted(sums)]
        columns = (1, 2, 0) if has_steps else (0, 1, 2)
        assert shop.rows("sums") == sorted((tuple(map(row.__getitem__, columns)) for row in found), key=repr)


def _doing(shop: Shop, before: str, change: Callable[[], None], refreshes: bool, *, end: bool) -> Callable[[], None]:
    """What others do while something is applied; then it ends, perhaps."""

    def do() -> None:
        change()
        if refreshes:
            other = shop.runner(before)
            other.heartbeat_seconds = 0.1  # so it takes a cut-over for one that has ended, and doesn't wait
            with contextlib.suppress(DefinedElsewhere):  # if the definition of before has been replaced
                other.refresh()
        if end:
            raise KeyboardInterrupt

    return do
