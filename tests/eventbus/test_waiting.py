"""New events wake the long polls that ask for them, and no others."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine
from sqlalchemy.engine import Engine

from eventbus import EventType, NewEvent
from eventbus.log import headlines, log, schema
from lake.protocol.events.filters import Filter
from lake.protocol.events.types import Origin
from metastore.server.connection.event_notifier import EventNotifier
from metastore.server.threads import ThreadPool
from metastore.services.subscriptions.wakeups import EventWaits
from metastore.store import Database


@pytest.fixture
def engine(postgres_url: str) -> Iterator[Engine]:
    engine = create_engine(postgres_url, poolclass=NullPool)
    with engine.begin() as tx:
        schema.metadata.create_all(tx)
        tx.execute(schema.event_log.insert().values(id=1))
    yield engine
    engine.dispose()


def commit(engine: Engine, *tables: str) -> int:
    """Events about tables; the last number."""
    new = [NewEvent(EventType.ALTER_TABLE, 1, Origin(), "hive", "d", table, 1, {}) for table in tables]
    with engine.begin() as tx:
        log.append(tx, new)
        log.number(tx)
        return log.positions(tx).last


def test_which_waiters_new_events_concern(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headlines, "KEPT", 4)
    database = Database(engine.url.render_as_string(hide_password=False))
    waits = EventWaits(database)

    def one(table: str, after: int) -> Callable[[int], bool]:
        return waits.predicate(Filter.parse([f"d.{table}"], []), after)

    last = commit(engine, "a")
    a, b, late = one("a", last), one("b", last), one("c", 0)
    assert (a(1), b(1), late(1)) == (False, False, False)
    last = commit(engine, "b")
    assert not b(1)  # the log is read once for each generation
    assert (a(2), b(2)) == (False, True)
    b = one("b", last)
    commit(engine, "x", "a", "x")
    assert (a(3), b(3)) == (True, False)
    for generation in range(4, 20):  # what is kept is bounded
        commit(engine, "x")
        assert (b(generation), one("z", 0)(generation)) == (False, generation > 6)
    commit(engine, *"xxxxxxxxx")  # too many to be looked at
    assert b(20)
    with engine.begin() as tx:
        log.trim(tx, older_than=log.FOREVER, keep=0, limit=100)
    last = commit(engine, "x")
    assert b(21) and not one("b", last)(21)
    database.close()


class Waiter:
    """What `EventNotifier` knows of a long poll."""

    def __init__(self, notifier: EventNotifier) -> None:
        self.notifier, self.asked = notifier, 0

    def ask_again(self) -> None:
        self.asked += 1
        self.notifier.discard(self)


def test_only_they_ask_again() -> None:
    looks: list[tuple[str, int]] = []

    def when(name: str, *concerning: int) -> Callable[[int], bool]:
        def predicate(generation: int) -> bool:
            looks.append((name, generation))
            if generation == 3:
                raise RuntimeError("the database is down")
            return generation in concerning

        return predicate

    async def story() -> None:
        notifier = EventNotifier(asyncio.get_running_loop(), ThreadPool(2))
        one, two, three, anything = (Waiter(notifier) for _ in range(4))

        def add(waiter: Any, predicate: Callable[[int], bool] | None, generation: int) -> None:
            notifier.add(waiter, predicate, generation)

        async def looked(count: int) -> None:
            async with asyncio.timeout(30):
                while len(looks) < count or notifier._looking:
                    await asyncio.sleep(0.005)

        add(one, when("one", 2), 0)
        add(two, when("two"), 0)
        add(anything, None, 0)
        notifier.notify()
        await looked(2)
        assert [one.asked, two.asked, anything.asked] == [0, 0, 1]
        notifier.notify()
        await looked(4)
        assert [one.asked, two.asked] == [1, 0]
        add(three, when("three", 2), 1)  # events came while the call was running
        await looked(6)
        assert [two.asked, three.asked] == [0, 1]
        notifier.notify()  # a predicate that fails makes its waiter ask
        await looked(7)
        assert two.asked == 1
        notifier.notify()
        assert len(looks) == 7  # nobody waits
        add(three, when("three"), 4)
        notifier.notify(everybody=True)
        assert (three.asked, len(looks)) == (2, 7)
        add(three, when("three"), 4)  # while it was asking
        assert (three.asked, len(looks)) == (3, 7)

    asyncio.run(story())
    assert looks[:4] == [("one", 1), ("two", 1), ("one", 2), ("two", 2)]


def test_a_log_that_was_restored(engine: Engine) -> None:
    """Under servers that run on: what they knew by the same numbers is not what came since."""
    database = Database(engine.url.render_as_string(hide_password=False))
    waits = EventWaits(database)
    commit(engine, "a", "a", "a")
    assert not waits.predicate(Filter.parse(["d.b"], []), 2)(1)
    with engine.begin() as tx:
        tx.execute(schema.events.delete().where(schema.events.c.number > 1))
        tx.execute(schema.event_log.update().values(last_number=1, last_notification=1))
    assert commit(engine, "b") == 2
    assert waits.predicate(Filter.parse(["d.b"], []), 1)(2)
    database.close()
