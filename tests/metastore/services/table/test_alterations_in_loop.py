"""Alterations of known tables in an event loop: the same outcome as in a thread, or nothing, and a thread is needed."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, NullPool, create_engine, text

from eventbus import NewEvent
from eventbus.outlets import pre_events
from lake.protocol.events.filters import Filter
from lake.protocol.hive import FieldSchema, InvalidOperationException
from metastore.in_loop import LoopCall
from metastore.services.wiring import Metastore
from metastore.store.engine.database import DatabaseUnavailable
from tests.metastore.services.table.test_known_tables import STEADY
from tests.support import builders
from tests.support.waiting import wait_until

NEEDS_THREAD = "a thread is needed"
KEYS = ("ds:string",)


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread."""
    made = asyncio.new_event_loop()
    with ThreadPoolExecutor(1) as threads:
        threads.submit(made.run_forever)
        yield made
        made.call_soon_threadsafe(made.stop)
    made.close()


def begun(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> "Future[object]":
    """What came of a call in the loop: what it raised, or None, or `NEEDS_THREAD`."""
    future: Future[object] = Future()

    def caught() -> object:
        try:
            return work()
        except Exception as error:
            return error

    call = LoopCall[object]
    loop.call_soon_threadsafe(
        lambda: call(loop, caught, future.set_result, lambda _: future.set_result(NEEDS_THREAD)).begin()
    )
    return future


def outcome(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> object:
    return begun(loop, work).result(30)


def known(metastore: Metastore, db: str, name: str = "t", keys: tuple[str, ...] = KEYS) -> None:
    """Creates a table that the metastore has altered until it knows it. By default it has partitions."""
    metastore.tables.create(builders.table(db, name, keys=keys), {})
    for number in range(STEADY):
        alteration(metastore, db, str(number), name)()


def alteration(metastore: Metastore, db: str, mark: str, name: str = "t", **fields: object) -> Callable[[], None]:
    """Alters a parameter of a table, and perhaps something else."""
    table = metastore.tables.get(db, name)
    value = table.replace(parameters={**(table.parameters or {}), "mark": mark}, **fields)
    return lambda: metastore.tables.alter(db, name, value, {})


def mark(metastore: Metastore, db: str, name: str = "t") -> str | None:
    return (metastore.tables.get(db, name).parameters or {}).get("mark")


@contextmanager
def locked(metastore: Metastore, db: str) -> Iterator[Connection]:
    """Somebody else holds the table's row."""
    engine = create_engine(metastore.database.url, poolclass=NullPool)
    statement = "SELECT 1 FROM tables JOIN databases d ON d.id = database_id WHERE d.name = :db FOR UPDATE OF tables"
    with engine.begin() as tx:
        tx.execute(text(statement), {"db": db})
        yield tx


def waits(tx: Connection) -> int:
    """How many of the metastore's sessions wait for a lock."""
    statement = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    tx.execute(text("SELECT pg_stat_clear_snapshot()"))
    return int(tx.execute(text(statement)).scalar_one())


def test_a_known_table_is_altered(metastore: Metastore, db: str, loop: asyncio.AbstractEventLoop) -> None:
    known(metastore, db)
    for number in range(3):
        assert outcome(loop, alteration(metastore, db, f"loop {number}")) is None
        assert mark(metastore, db) == f"loop {number}"
    alteration(metastore, db, "thread")()
    assert mark(metastore, db) == "thread"


def two_known(metastore: Metastore, db: str) -> None:
    """Two tables, t and u, that the metastore knows, and two connections to the database."""
    for name in ("t", "u"):
        known(metastore, db, name)
    work = [alteration(metastore, db, "thread", name) for name in ("t", "u")]
    with ThreadPoolExecutor(2) as threads:
        with locked(metastore, db) as tx:
            done = [threads.submit(each) for each in work]
            wait_until(lambda: waits(tx) == 2, 20, "that both wait")
        assert [each.result(30) for each in done] == [None, None]


def test_the_loop_goes_on_meanwhile(metastore: Metastore, db: str, loop: asyncio.AbstractEventLoop) -> None:
    two_known(metastore, db)
    work = [alteration(metastore, db, "loop", name) for name in ("t", "u")]
    with locked(metastore, db) as tx:
        both = [begun(loop, each) for each in work]
        wait_until(lambda: waits(tx) == 2, 20, "that both wait")
        assert outcome(loop, lambda: None) is None
        assert not any(each.done() for each in both)
    assert [each.result(30) for each in both] == [None, None]
    assert [mark(metastore, db, name) for name in ("t", "u")] == ["loop", "loop"]


def test_a_connection_that_would_have_to_be_made_needs_a_thread(
    metastore: Metastore, db: str, loop: asyncio.AbstractEventLoop
) -> None:
    known(metastore, db)
    work = alteration(metastore, db, "loop")
    metastore.database.close()
    assert outcome(loop, work) == NEEDS_THREAD
    work()
    assert mark(metastore, db) == "loop"
    assert outcome(loop, alteration(metastore, db, "again")) is None, "the table is known no more"
    assert mark(metastore, db) == "again"


def test_a_connection_that_has_rested_is_left_to_a_thread(
    metastore: Metastore, db: str, loop: asyncio.AbstractEventLoop
) -> None:
    def sessions(tx: Connection) -> set[int]:
        tx.execute(text("SELECT pg_stat_clear_snapshot()"))
        statement = (
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"  # and not a vacuum that begins meanwhile
        )
        return set(tx.execute(text(statement)).scalars())

    two_known(metastore, db)
    first, second = (alteration(metastore, db, "loop", name) for name in ("t", "u"))
    wait_until(lambda: not metastore.database.may_be_used_in_loop(), 20, "that both connections have rested")
    mark(metastore, db)  # uses one
    with locked(metastore, db) as tx:
        before = sessions(tx)
        waiting = begun(loop, first)
        wait_until(lambda: waits(tx) == 1, 20, "that the first one waits")
        assert outcome(loop, second) == NEEDS_THREAD
        assert sessions(tx) == before
    assert waiting.result(30) is None
    second()
    assert [mark(metastore, db, name) for name in ("t", "u")] == ["loop", "loop"]


def test_a_table_that_is_not_known_needs_a_thread(
    metastore: Metastore, db: str, loop: asyncio.AbstractEventLoop
) -> None:
    metastore.tables.create(builders.table(db, keys=KEYS), {})
    assert outcome(loop, alteration(metastore, db, "loop")) == NEEDS_THREAD
    assert mark(metastore, db) is None


def test_a_table_that_somebody_else_has_changed_needs_a_thread(
    metastore: Metastore, db: str, loop: asyncio.AbstractEventLoop
) -> None:
    known(metastore, db)
    work = alteration(metastore, db, "loop")
    with locked(metastore, db) as tx:
        tx.execute(text("UPDATE tables SET version = version + 1 WHERE name = 't'"))
    before = mark(metastore, db)
    assert outcome(loop, work) == NEEDS_THREAD
    assert mark(metastore, db) == before
    work()
    assert mark(metastore, db) == "loop"


@pytest.mark.parametrize("change", ["location", "columns", "name", "files to be counted"])
def test_what_takes_more_than_a_message_needs_a_thread(
    metastore: Metastore, db: str, loop: asyncio.AbstractEventLoop, change: str
) -> None:
    known(metastore, db, keys=() if change == "files to be counted" else KEYS)
    table = metastore.tables.get(db, "t")
    assert table.sd is not None
    fields: dict[str, object] = {}
    if change == "location":
        fields["sd"] = table.sd.replace(location=f"{table.sd.location}_elsewhere")
    elif change == "columns":
        fields["sd"] = table.sd.replace(cols=[FieldSchema("other", "string")])
    elif change == "name":
        fields["tableName"] = "other"
    before = metastore.tables.get(db, "t")
    work = alteration(metastore, db, "loop", **fields)
    assert outcome(loop, work) == NEEDS_THREAD
    assert metastore.tables.get(db, "t") == before
    work()
    assert mark(metastore, db, "other" if change == "name" else "t") == "loop"


def test_a_listener_is_asked_in_a_thread(
    metastore: Metastore, db: str, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    known(metastore, db)
    asked: list[NewEvent] = []
    listener = pre_events._Guard("a listener", Filter(), asked.append, threading.Semaphore())
    monkeypatch.setattr(metastore.tables._events, "_pre_events", pre_events.PreEvents([listener], 5))
    work = alteration(metastore, db, "loop")
    assert outcome(loop, work) == NEEDS_THREAD
    assert asked == []
    work()
    assert len(asked) == 1


def test_a_broken_rule_is_an_error_in_the_loop_only_if_the_table_is_as_assumed(
    metastore: Metastore, db: str, loop: asyncio.AbstractEventLoop
) -> None:
    """Such an error may be about a state that is no more. So the table is looked for, which needs a thread."""
    known(metastore, db)
    work = alteration(metastore, db, "loop", partitionKeys=[FieldSchema("other", "string")])
    assert outcome(loop, work) == NEEDS_THREAD
    with pytest.raises(InvalidOperationException):
        work()


def test_a_connection_that_breaks_meanwhile(metastore: Metastore, db: str, loop: asyncio.AbstractEventLoop) -> None:
    """Nobody knows whether Postgres has done it: an error, as in a thread. The next call gets another connection."""
    known(metastore, db)
    work = alteration(metastore, db, "loop")
    before = mark(metastore, db)
    with locked(metastore, db) as tx:
        result = begun(loop, work)
        wait_until(lambda: waits(tx) == 1, 20, "that it waits")
        tx.execute(text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
        assert isinstance(result.result(30), DatabaseUnavailable)
    assert mark(metastore, db) == before
    alteration(metastore, db, "thread")()
    assert mark(metastore, db) == "thread"


def test_a_statement_that_takes_too_long_fails(metastore: Metastore, db: str, loop: asyncio.AbstractEventLoop) -> None:
    """In a thread it would take as long again."""
    known(metastore, db)
    work = alteration(metastore, db, "loop")
    with locked(metastore, db) as tx:
        result = begun(loop, work)
        wait_until(lambda: waits(tx) == 1, 20, "that it waits")
        tx.execute(text("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"))
        assert isinstance(result.result(30), DatabaseUnavailable)
    work()
    assert mark(metastore, db) == "loop"


def test_the_database_is_ready_for_the_loop_after_a_moment_of_use(metastore: Metastore, db: str) -> None:
    known(metastore, db)
    assert metastore.database.may_be_used_in_loop()
    wait_until(lambda: not metastore.database.may_be_used_in_loop(), 20, "that its connections have rested")
    mark(metastore, db)
    assert metastore.database.may_be_used_in_loop()
