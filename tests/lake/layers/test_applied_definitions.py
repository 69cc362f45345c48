"""Two who apply changed definitions at once, or one while another refreshes: the second is refused, and nobody undoes
what the other has applied."""

import operator
import random
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from lake.layers.applying.planning import plan_of
from lake.layers.runner import claims
from lake.layers.runner.claims import DefinedElsewhere
from lake.layers.runner.runner import Runner
from lake.protocol.hive import (
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    ShowLocksRequest,
    UnlockRequest,
)
from tests.lake.layers.shop import Shop, how
from tests.lake.layers.test_changed_definitions import CHAIN, MEANINGS, OTHER, SAME, TEXT, Order, filled, refreshed
from tests.support.long_runs import share_of

NOW, OTHERS, THIRD = (
    CHAIN.format(5),
    CHAIN.format(8),
    CHAIN.format(8).replace("id, dt, amount FROM", "id, dt, amount + 1 AS amount FROM"),
)


def at(stage: str, do: Callable[[], object]) -> Callable[[str], None]:
    """Does something once, at a stage of a refresh."""
    begun = []

    def pause(reached: str) -> None:
        if reached == stage and not begun:
            begun.append(True)
            do()

    return pause


def positions(shop: Shop) -> dict[str, int]:
    return {name: shop.client.table(f"{shop.database}.{name}").position().position for name in ("big", "towns", "sums")}


def locks(shop: Shop) -> list[object]:
    request = ShowLocksRequest(dbname=shop.database)
    return list(shop.client.call(lambda thrift: thrift.show_locks(request)).locks or [])


def forget_claims(shop: Shop) -> None:
    """Does what the server does a while after somebody who has claimed a table was killed."""
    request = ShowLocksRequest(dbname=shop.database)
    for lock in shop.client.call(lambda thrift: thrift.show_locks(request)).locks or []:
        release = UnlockRequest(lock.lockid)
        shop.client.call(operator.methodcaller("unlock", release))


def test_the_second_of_two_is_refused_and_the_first_named(shop: Shop) -> None:
    filled(shop)
    shop.runner(NOW).refresh()
    first = shop.runner(OTHERS)
    before = positions(shop)
    said = []

    def second() -> None:
        runner = shop.runner(THIRD)
        with pytest.raises(DefinedElsewhere) as refused:
            runner.refresh()
        said.append(str(refused.value))
        assert positions(shop) == before, "nothing was written"
        shop.order((7, 1, 20, "d3"))
        assert how(shop.runner(NOW).refresh().layers)["big"] == "incremental", "the layers are refreshed meanwhile"

    first.pause = at("computed", second)
    assert how(first.refresh().layers)["big"] == "full", "on what was refreshed meanwhile"
    assert f"{shop.database}.big gets another definition already: " in said[0]
    assert f"layers of {shop.database}" in said[0]
    assert shop.rows("big") == [(3, "d2", 9), (4, "d2", 9), (7, "d3", 20)]
    assert locks(shop) == []
    assert how(shop.runner(THIRD).refresh().layers)["big"] == "full", "now it is its turn"


@pytest.mark.long
def test_an_apply_that_fails_or_is_interrupted_keeps_no_claim(shop: Shop) -> None:
    filled(shop)
    shop.runner(NOW).refresh()
    runner = shop.runner(OTHERS)

    def fail() -> None:
        assert len(locks(shop)) == 1, "only of the table whose definition has changed"
        raise KeyboardInterrupt

    runner.pause = at("computed", fail)
    with pytest.raises(KeyboardInterrupt):
        runner.refresh()
    assert locks(shop) == []


def test_what_was_applied_since_the_plan_is_not_undone(shop: Shop) -> None:
    filled(shop)
    shop.runner(NOW).refresh()
    runner = shop.runner(THIRD)
    plan_of(runner)
    shop.runner(OTHERS).refresh()
    before = positions(shop)
    with pytest.raises(DefinedElsewhere, match=r"another definition of \w+\.big meanwhile, by the refresh \d+ at 20"):
        runner.refresh()
    assert positions(shop) == before
    plan_of(runner)
    assert how(runner.refresh().layers)["big"] == "full", "it has been planned again"


@pytest.mark.long
def test_a_runner_does_not_undo_what_another_has_applied(shop: Shop) -> None:
    """One that was started before, for instance, and goes on by the project's files of then."""
    filled(shop)
    old, again = shop.runner(TEXT), shop.runner(SAME[0])
    for runner in (old, again):
        runner.refresh()
    shop.order((5, 2, 100, "d1"))
    assert (how(again.refresh().layers), how(old.refresh().layers)) == ({"big": "incremental"}, {"big": "unchanged"})
    shop.order((6, 2, 100, "d1"))
    assert how(old.refresh().layers) == {"big": "incremental"}, "what means the same is no other definition"
    refreshed(shop, OTHER[0])
    for runner in (old, again, old):
        with pytest.raises(DefinedElsewhere):
            runner.refresh()
    big = shop.client.table(f"{shop.database}.big")
    last = next(iter(big.instants(states=["completed"], latest_first=True)))
    big.roll_back(last)
    assert how(old.refresh().layers) == {"big": "unchanged"}, "it isn't there any more"


def test_what_was_applied_to_a_table_that_was_made_again_is_not_undone(shop: Shop) -> None:
    """Its refreshes are counted anew: its number says nothing of another table's."""
    filled(shop)
    old = shop.runner(TEXT)
    old.refresh()
    shop.order((5, 2, 100, "d1"))
    old.refresh()
    shop.client.call(lambda thrift: thrift.drop_table(shop.database, "big", True))
    refreshed(shop, OTHER[0])
    before = shop.rows("big")
    with pytest.raises(DefinedElsewhere):
        old.refresh()
    assert shop.rows("big") == before


def test_what_means_the_same_is_not_taken_for_another_definition(shop: Shop) -> None:
    filled(shop)
    shop.runner(NOW).refresh()
    runner = shop.runner(OTHERS)
    plan_of(runner)
    shop.order((7, 1, 20, "d3"))
    shop.runner(NOW.replace("SELECT id", "SELECT /* key */ id")).refresh()
    assert how(runner.refresh().layers)["big"] == "full"


def test_a_first_refresh_is_not_undone_either(shop: Shop) -> None:
    filled(shop)
    slow = shop.runner(NOW)
    slow.pause = at("computed", shop.runner(OTHERS).refresh)
    with pytest.raises(DefinedElsewhere, match=r"another definition of \w+\.big meanwhile"):
        slow.refresh()
    assert shop.rows("big") == [(3, "d2", 9), (4, "d2", 9)]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(share_of(100)))
def test_random_runners_at_once(shop: Shop, seed: int) -> None:
    """Of two definitions that are applied at once one is, and the layers have its rows."""
    rng = random.Random(seed)
    meanings = [([TEXT, *SAME], MEANINGS[0][1]), *MEANINGS[1:]]
    orders: dict[tuple[int, str], Order] = {}
    stands: int | None = None

    def change() -> None:
        rows = [
            (id, rng.choice([None, 1, 2]), rng.choice([None, 4, 5, 6, 9]), f"d{id % 3}")
            for id in rng.sample(range(8), rng.randint(1, 3))
        ]
        shop.order(*rows)
        orders.update({(row[0], row[3]): row for row in rows})

    for _ in range(10):
        change()
        first, second = (rng.randrange(len(meanings)) for _ in range(2))
        done: list[bool] = []

        def meanwhile(which: int = second, done: list[bool] = done) -> None:
            if rng.random() < 0.5:
                change()
            try:
                shop.runner(rng.choice(meanings[which][0])).refresh()
                done.append(True)
            except DefinedElsewhere:
                done.append(False)

        runner = shop.runner(rng.choice(meanings[first][0]))
        runner.pause = at(rng.choice(["computed", "begun", "written"]), meanwhile)
        try:
            wrote = bool(runner.refresh().instants)
        except DefinedElsewhere:
            wrote = False
        second_applied = done == [True] and second != stands
        if second_applied and second != first:
            assert not wrote, "it has undone what the other has applied"
        if stands is not None and stands not in (first, second):
            assert wrote
            assert done in ([], [False])
        stands = second if second_applied else first
        shop.runner(meanings[stands][0][0]).refresh()
        found = [(row[0], row[3], *meanings[stands][1](row)) for row in orders.values()]
        wanted = sorted([(id, dt, total) for id, dt, total, is_there in found if is_there], key=repr)
        assert sorted(shop.rows("big"), key=repr) == wanted
        assert locks(shop) == []


@pytest.mark.long
def test_a_claim_whose_answer_was_lost(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call is repeated, and waits for its own first one."""
    filled(shop)
    shop.runner(NOW).refresh()
    runner = shop.runner(OTHERS)
    call = shop.client.call

    def twice(request: Callable[..., object]) -> object:
        found = call(request)
        return call(request) if getattr(found, "state", None) == LockState.ACQUIRED and not lost else found

    lost: list[bool] = []
    monkeypatch.setattr(shop.client, "call", lambda request: twice(request))
    runner.pause = at("computed", lambda: lost.append(True))
    assert how(runner.refresh().layers)["big"] == "full"
    monkeypatch.undo()
    assert locks(shop) == []


@pytest.mark.long
def test_who_may_not_lock_is_refused_at_the_end(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(shop)
    shop.runner(NOW).refresh()
    runner = shop.runner(OTHERS)
    monkeypatch.setattr(claims, "LockType", SimpleNamespace(EXCL_WRITE=99))  # which the server refuses
    runner.pause = at("computed", shop.runner(THIRD).refresh)
    with pytest.raises(DefinedElsewhere, match="meanwhile, by the refresh"):
        runner.refresh()
    assert (3, "d2", 10) in shop.rows("big")


@pytest.mark.long
def test_locks_of_readers_hinder_nobody(shop: Shop) -> None:
    filled(shop)
    shop.runner(NOW).refresh()
    reading = LockComponent(LockType.SHARED_READ, LockLevel.TABLE, shop.database, "big")
    request = LockRequest([reading], user="reader", hostname="host")
    assert shop.client.call(lambda thrift: thrift.lock(request)).state == LockState.ACQUIRED

    def read() -> None:
        assert shop.client.call(lambda thrift: thrift.lock(request)).state == LockState.ACQUIRED

    runner: Runner = shop.runner(OTHERS)
    runner.pause = at("computed", read)
    assert how(runner.refresh().layers)["big"] == "full"
