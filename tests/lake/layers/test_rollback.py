"""What an instant brought is undone, and the layers follow; layers go back to a moment, and on from there."""

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lake.client.lake_types import Moment
from lake.layers.errors import BadDefinition
from lake.layers.runner.records import state_of
from lake.layers.undo.restore import apply_restore, plan_restore
from lake.layers.undo.rollback import ChangedSince, Rollback
from lake.protocol.errors import UserError
from lake.protocol.hive import NoSuchObjectException
from tests.lake.layers.shop import QUERIES, Shop, how
from tests.support.long_runs import share_of
from tests.support.server import MetastoreServer

GROUPS = {"details": "incremental", "revenue": "by group", "best": "by group"}


def filled(shop: Shop) -> None:
    shop.order((1, 1, 5, "d1"), (2, 1, 7, "d1"), (3, 2, 9, "d2"), (4, None, 9, "d2"))
    shop.know((1, "Oslo"), (2, "Rome"))


def latest(shop: Shop) -> str:
    found = shop.orders.position().last_completed
    assert found is not None
    return found


def sources(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.rows("orders")


def test_an_instant_of_a_source_is_undone_through_all_layers(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    good = {name: shop.rows(name) for name in QUERIES}, sources(shop)
    shop.order((1, 1, 500, "d1"), (9, 2, 900, "d2"))
    wrong = latest(shop)
    runner.refresh()
    shop.order((3, 2, 9, "d2"))  # changes nothing
    with Rollback(runner, "orders", wrong) as rollback:
        assert rollback.plan.layers == [f"{shop.database}.{name}" for name in QUERIES]
        [planned] = rollback.plan.tables
        assert planned.rows == {"updated": 1, "deleted": 1}
        assert planned.changed_since == 0
        done = rollback.apply()
    assert how(done.layers) == GROUPS
    assert ({name: shop.rows(name) for name in QUERIES}, sources(shop)) == good
    shop.check()
    with Rollback(runner, "orders", wrong) as again:
        assert not again.plan.tables[0].rows, "it is undone already"
        assert how(again.apply().layers) == dict.fromkeys(QUERIES, "unchanged")


KILLED = """
import os, signal, sys
from pathlib import Path
from lake.tables.lake import LakeClient
from lake.layers.compiler.graph import graph_of
from lake.layers.definitions.projects import read_project
from lake.layers.undo.rollback import Rollback
from tests.lake.layers.duck_lake import runner
uri, project, instant, stage = sys.argv[1:]
with LakeClient(uri) as client:
    made = runner(graph_of(read_project(Path(project))), client)
    made.pause = lambda reached: os.kill(os.getpid(), signal.SIGKILL) if reached == stage else None
    with Rollback(made, "orders", instant) as rollback:
        rollback.apply()
"""
LONG = pytest.mark.long
STAGES = [
    pytest.param("planned", marks=LONG),
    "undoing",
    pytest.param("undone", marks=LONG),
    pytest.param("begun", marks=LONG),
    "written",
    pytest.param("completed", marks=LONG),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stage", STAGES)
def test_a_rollback_that_is_killed(shop: Shop, metastore_server: MetastoreServer, stage: str) -> None:
    filled(shop)
    shop.runner().refresh()
    good = sources(shop)
    shop.order((1, 1, 500, "d1"), (9, 2, 900, "d2"))
    wrong, bad = latest(shop), sources(shop)
    shop.runner().refresh()
    layers = {name: shop.rows(name) for name in QUERIES}
    command = [sys.executable, "-c", KILLED, metastore_server.uri, str(shop.directory), wrong, stage]
    root = Path(__file__).parents[3]
    killed = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert sources(shop) == (bad if stage in ("planned", "undoing") else good), "nothing is undone, or all"
    if stage != "completed":
        assert {name: shop.rows(name) for name in QUERIES} == layers
    with Rollback(shop.runner(), "orders", wrong) as again:
        again.apply()
    assert sources(shop) == good
    shop.check()


State = dict[tuple[Any, ...], tuple[Any, ...]]


class History:
    """The shop's sources at all of their positions, in memory."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.tables = {"orders": shop.orders, "customers": shop.customers}
        self.states: dict[str, dict[int, State]] = {name: {0: {}} for name in self.tables}
        self.now: dict[str, State] = {name: {} for name in self.tables}

    def change(self, chance: random.Random) -> None:
        """Writes some rows, or deletes some."""
        name = chance.choice([*self.tables])
        now, number = self.now[name], chance.randint(1, 4)
        if name == "customers":
            rows: State = {(key,): (key, chance.choice(["Oslo", "Rome"])) for key in chance.sample(range(4), number)}
            self.shop.know(*rows.values())
            now |= rows
        elif chance.random() < 0.3 and now:
            keys = chance.sample(sorted(now), min(2, len(now)))
            self.shop.unorder(*keys)
            self.now[name] = {key: row for key, row in now.items() if key not in keys}
        else:
            keys = [(key, chance.choice(["d1", "d2"])) for key in chance.sample(range(8), number)]
            rows = {(key, day): (key, chance.randrange(4), chance.randrange(9), day) for key, day in keys}
            self.shop.order(*rows.values())
            now |= rows
        self.note()

    def note(self) -> None:
        """Keeps what the tables have now under their positions."""
        for name, table in self.tables.items():
            self.states[name][table.position().position] = dict(self.now[name])

    def undo(self, name: str, after: int, up_to: int) -> None:
        """Makes the keys that a range of positions has changed what they were before."""
        before, after_all = (self.states[name][at] for at in (after, up_to))
        for key in before.keys() | after_all.keys():
            if before.get(key) != after_all.get(key):
                self.now[name].pop(key, None)
                self.now[name] |= {key: before[key]} if key in before else {}

    def check(self) -> None:
        """Raises AssertionError unless the sources are as they should be, and the layers are the answers for them."""
        for name in self.tables:
            assert self.shop.rows(name) == sorted(self.now[name].values()), name
        self.shop.check()


def positions(history: History) -> dict[str, int]:
    return {name: table.position().position for name, table in history.tables.items()}


def run_history(shop: Shop, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    history, runner = History(shop), shop.runner()
    history.change(chance)
    runner.refresh()
    refreshed: list[tuple[str, dict[str, int]]] = [("", positions(history))]  # the instants of `details`
    for _ in range(steps):
        for _ in range(chance.randint(0, 2)):
            history.change(chance)
        if chance.random() < 0.5 and len(refreshed) > 1:
            place = chance.randrange(1, len(refreshed))
            table, instant = f"{shop.database}.details", refreshed[place][0]
            ranges = {name: (refreshed[place - 1][1][name], refreshed[place][1][name]) for name in history.tables}
        else:
            name = chance.choice([*history.tables])
            changes = [each.instant for each in history.tables[name].changes(0)]
            if not changes:
                continue
            chosen = chance.choice(changes)
            table, instant, at = f"{shop.database}.{name}", chosen.timestamp, chosen.position
            assert at is not None
            ranges = {name: (at - 1, at)}
        with Rollback(runner, table, instant) as rollback:
            done = rollback.apply(force=True)
        for name, (after, up_to) in ranges.items():
            history.undo(name, after, up_to)
        history.note()
        if details := done.instants.get(f"{shop.database}.details"):
            refreshed.append((details.timestamp, positions(history)))
        history.check()


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=LONG)])
def test_random_histories(shop: Shop, seed: int) -> None:
    run_history(shop, seed, steps=8)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 100 + share_of(50)))
def test_many_random_histories(shop: Shop, seed: int) -> None:
    run_history(shop, seed, steps=20)


@pytest.mark.long
def test_an_instant_of_a_layer_is_undone_where_it_came_from(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    good = sources(shop)
    shop.order((1, 1, 500, "d1"))
    shop.know((2, "Bern"))
    done = runner.refresh()
    instant = done.instants[f"{shop.database}.best"]
    with Rollback(runner, f"{shop.database}.best", instant.timestamp) as rollback:
        assert [each.table for each in rollback.plan.tables] == [
            f"{shop.database}.{x}" for x in ("customers", "orders")
        ]
        rollback.apply()
    assert sources(shop) == good
    assert shop.rows("customers") == [(1, "Oslo"), (2, "Rome")]
    shop.check()
    moments = {table.position().moment for table in (shop.orders, shop.customers)}
    assert len(moments) == 1, "both are undone at one moment"


@pytest.mark.long
def test_rows_that_were_changed_since_are_named(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    good = sources(shop)
    shop.order((1, 1, 500, "d1"), (2, 1, 600, "d1"))
    wrong = latest(shop)
    shop.order((2, 1, 8, "d1"))
    with Rollback(runner, "orders", wrong) as rollback:
        [planned] = rollback.plan.tables
        assert planned.changed_since == 1
        assert planned.keys == [{"id": 2, "dt": "d1"}]
        position = shop.orders.position().position
        with pytest.raises(ChangedSince, match=r"1 of these rows .*id=2, dt=d1.*--force"):
            rollback.apply()
        assert shop.orders.position().position == position, "nothing was written"
        rollback.apply(force=True)
    assert sources(shop) == good
    shop.check()


def test_what_can_not_be_undone(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    first = runner.refresh().instants[f"{shop.database}.details"]
    with pytest.raises(NoSuchObjectException, match="no completed commit 17"):
        Rollback(runner, "orders", "17")
    with pytest.raises(UserError, match="first refresh"):
        Rollback(runner, "details", first.timestamp)
    with pytest.raises(UserError, match="isn't of the project"):
        Rollback(runner, "other.orders", "17")


def test_layers_go_back_to_a_moment_and_on(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    details = shop.client.table(f"{shop.database}.details")
    moments = []
    for number in range(3):
        shop.order((1, 1, number, "d1"), (5 + number, 2, 7, "d2"))
        runner.refresh()
        moments.append(details.position().moment or 0)
    restore = plan_restore(runner, Moment(moments[0]))
    assert {each.layer: len(each.instants) for each in restore.layers} == {
        f"{shop.database}.{name}": 2 for name in QUERIES
    }
    before = state_of(details).record
    assert before is not None
    done = apply_restore(runner, restore)
    assert how(done.layers) == GROUPS, "it goes on by increments"
    shop.check()
    assert (state_of(details).record or before).number == before.number + 1
    now = max(table.position().moment or 0 for table in (shop.orders, details))
    assert not plan_restore(runner, Moment(now)).layers
    assert done.completed.number == now, "a run says the moment that shows it"
    assert not plan_restore(runner, done.completed).layers


def test_nothing_is_rolled_back_under_definitions_that_can_not_be_computed(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    first = runner.refresh()
    shop.order((1, 1, 70, "d1"))
    instant = shop.orders.position().last_completed
    assert instant is not None
    runner.refresh()
    before = shop.client.table(f"{shop.database}.details").position()
    broken = shop.runner("CREATE MATERIALIZED VIEW details AS SELECT id, amuont FROM orders")
    with pytest.raises(BadDefinition, match="amuont"):
        plan_restore(broken, first.completed)
    with pytest.raises(BadDefinition, match="amuont"):
        Rollback(broken, "orders", instant)
    assert shop.client.table(f"{shop.database}.details").position() == before


def test_a_column_that_is_admitted_late(shop: Shop) -> None:
    filled(shop)
    text = "CREATE MATERIALIZED VIEW seen AS SELECT id, dt, amount{} FROM orders"
    shop.runner(text.format("")).refresh()
    since = Moment(shop.orders.position().moment or 0)
    shop.order((2, 5, 7, "d1"))
    runner = shop.runner(text.format(", cust"))
    done = runner.refresh(replay={"seen": since})
    assert how(done.layers) == {"seen": "replay"}
    assert done.layers[0].changed == {"updated": 1}
    rows = {row[0]: row[3] for row in shop.rows("seen")}
    assert rows == {1: None, 2: 5, 3: None, 4: None}, "the rows from before stay as they were"
    assert how(runner.refresh().layers) == {"seen": "unchanged"}, "its definition is the new one"
    assert how(runner.refresh(["seen"]).layers) == {"seen": "full"}
    assert {row[0]: row[3] for row in shop.rows("seen")} == {1: 1, 2: 5, 3: 2, 4: None}


def test_replays_come_to_the_same_rows(shop: Shop) -> None:
    filled(shop)
    runner = shop.runner()
    runner.refresh()
    since = Moment(shop.orders.position().moment or 0)
    shop.order((2, 1, 70, "d1"))
    runner.refresh()
    done = runner.refresh(replay={"revenue": since})
    assert how(done.layers) == {"details": "unchanged", "revenue": "replay", "best": "unchanged"}
    assert not done.layers[1].changed
    shop.unorder((1, "d1"))
    done = runner.refresh(replay={"revenue": since})
    assert how(done.layers) == {"details": "incremental", "revenue": "full", "best": "by group"}
    shop.check()
