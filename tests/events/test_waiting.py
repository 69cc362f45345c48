"""Of many who wait for events, only those are asked again whom the news concern."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine
from sqlalchemy.engine import Engine

from eventbus import EventType, NewEvent, headlines, log, schema
from eventbus.events import Origin
from eventbus.filters import Filter
from metastore.server.connection import News
from metastore.server.threads import ThreadPool
from metastore.services.event_waits import EventWaits
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
        return log.number(tx).last


def test_whom_news_concern(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headlines, "KEPT", 4)
    database = Database(engine.url.render_as_string(hide_password=False))
    waits = EventWaits(database)

    def one(table: str, after: int) -> Callable[[int], bool]:
        return waits.concern(Filter.parse([f"d.{table}"], []), after)

    last = commit(engine, "a")
    a, b, late = one("a", last), one("b", last), one("c", 0)
    assert (a(1), b(1), late(1)) == (False, False, False)
    last = commit(engine, "b")
    assert not b(1)  # the log is read once for each of the news
    assert (a(2), b(2)) == (False, True)
    b = one("b", last)
    commit(engine, "x", "a", "x")
    assert (a(3), b(3)) == (True, False)
    for news in range(4, 20):  # what is kept is bounded
        commit(engine, "x")
        assert (b(news), one("z", 0)(news)) == (False, news > 6)
    commit(engine, *"xxxxxxxxx")  # too many to be looked at
    assert b(20)
    with engine.begin() as tx:
        log.trim(tx, older_than=0, keep=0, limit=100)
    last = commit(engine, "x")
    assert b(21) and not one("b", last)(21)
    database.close()


class Waiter:
    """What `News` knows of a connection."""

    def __init__(self, news: News) -> None:
        self.news, self.asked = news, 0

    def ask_again(self) -> None:
        self.asked += 1
        self.news.discard(self)  # type: ignore[arg-type]


def test_only_they_ask_again() -> None:
    looks: list[tuple[str, int]] = []

    def when(name: str, *concerning: int) -> Callable[[int], bool]:
        def concerned(generation: int) -> bool:
            looks.append((name, generation))
            if generation == 3:
                raise RuntimeError("the database is down")
            return generation in concerning

        return concerned

    async def story() -> None:
        news = News(asyncio.get_running_loop(), ThreadPool(2))
        one, two, three, anything = (Waiter(news) for _ in range(4))

        def add(waiter: Any, concerned: Callable[[int], bool] | None, generation: int) -> None:
            news.add(waiter, concerned, generation)

        async def looked(count: int) -> None:
            async with asyncio.timeout(30):
                while len(looks) < count or news._looking:
                    await asyncio.sleep(0.005)

        add(one, when("one", 2), 0)
        add(two, when("two"), 0)
        add(anything, None, 0)
        news.tell()
        await looked(2)
        assert [one.asked, two.asked, anything.asked] == [0, 0, 1]
        news.tell()
        await looked(4)
        assert [one.asked, two.asked] == [1, 0]
        add(three, when("three", 2), 1)  # news came while it was asking
        await looked(6)
        assert [two.asked, three.asked] == [0, 1]
        news.tell()  # whoever can't be told by a look asks
        await looked(7)
        assert two.asked == 1
        news.tell()
        assert len(looks) == 7  # nobody waits
        add(three, when("three"), 4)
        news.tell(everybody=True)
        assert (three.asked, len(looks)) == (2, 7)
        add(three, when("three"), 4)  # while it was asking
        assert (three.asked, len(looks)) == (3, 7)

    asyncio.run(story())
    assert looks[:4] == [("one", 1), ("two", 1), ("one", 2), ("two", 2)]
