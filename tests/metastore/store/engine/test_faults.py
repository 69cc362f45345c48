"""Whatever is raised wherever, no connection of the pool is lost, and none is returned in the middle of something."""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import psycopg2
import pytest
from sqlalchemy import Connection, bindparam, text

from metastore.postgres import prepared
from metastore.postgres.prepared import Call, Prepared
from metastore.store import Database
from metastore.store.engine.database import after_commit

CONNECTIONS = 3
NAME = "metastore-faults"

_LENGTH = Prepared(text("SELECT length(:value)").bindparams(bindparam("value")))


class Injected(BaseException):
    """What no handler expects."""


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    opened = Database(postgres_url, pool_size=CONNECTIONS, application_name=NAME)
    with opened.write() as tx:
        tx.exec_driver_sql("CREATE TABLE faults (id int)")
    yield opened
    opened.close()


def check_whole(database: Database) -> None:
    """All connections can be in use at once, and none has been forgotten in a transaction."""
    gc.collect()
    all_there = threading.Barrier(CONNECTIONS)

    def held(_number: int) -> int:
        with database.write() as tx:
            all_there.wait(20)
            return int(_LENGTH.scalar(tx, {"value": "abc"}))

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        assert list(threads.map(held, range(CONNECTIONS))) == [3] * CONNECTIONS
    url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    other = psycopg2.connect(url)
    with other, other.cursor() as cursor:
        cursor.execute("SELECT state FROM pg_stat_activity WHERE application_name = %s", (NAME,))
        states = [row[0] for row in cursor.fetchall()]
    other.close()
    assert len(states) <= CONNECTIONS
    assert set(states) <= {"idle"}


def reading(database: Database) -> None:
    with database.read() as tx:
        _LENGTH.scalar(tx, {"value": "abc"})
        tx.execute(text("SELECT 1")).scalar_one()


def at_once(database: Database) -> None:
    with database.at_once() as tx:
        _LENGTH.scalar(tx, {"value": "abc"})


def writing(database: Database) -> None:
    with database.write() as tx:
        tx.execute(text("INSERT INTO faults VALUES (1)"))
        prepared.put_off(tx, [Call(_LENGTH, {"value": "abc"})])
        after_commit(tx, lambda: None)


def streaming(database: Database) -> None:
    def rows() -> Iterator[int]:
        with database.read() as tx:
            found = tx.execution_options(stream_results=True, yield_per=2).execute(text("SELECT generate_series(1, 9)"))
            yield from found.scalars()

    for _ in rows():
        pass


BODIES: list[Callable[[Database], None]] = [reading, at_once, writing, streaming]


class Injector:
    """Raises an exception at the nth call of a function of some files, as where there is no memory for its frame."""

    def __init__(self, nth: int, error: type[BaseException]) -> None:
        self._left = nth
        self._error = error
        self.raised = False

    def __call__(self, frame: FrameType, _event: str, _argument: Any) -> None:
        name = frame.f_code.co_filename
        if "/sqlalchemy/" in name or "/metastore/postgres/" in name or "/metastore/store/engine/" in name:
            self._left -= 1
            if self._left == 0:
                self.raised = True
                raise self._error


def injected(body: Callable[[Database], None], database: Database, nth: int, error: type[BaseException]) -> bool:
    """Whether there was an nth call. The body runs in a thread of its own, as those of requests do."""
    injector = Injector(nth, error)

    def run() -> None:
        sys.settrace(injector)
        try:
            body(database)
        except BaseException:
            pass
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return injector.raised


@pytest.mark.sampled(2)
@pytest.mark.parametrize("error", [Injected, pytest.param(MemoryError, marks=pytest.mark.long)])
@pytest.mark.parametrize("body", BODIES)
def test_an_exception_in_any_call(
    database: Database, body: Callable[[Database], None], error: type[BaseException]
) -> None:
    body(database)
    nth = 1
    while injected(body, database, nth, error):
        assert not database._holders, nth
        nth += 1
    assert nth > 20
    check_whole(database)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("body", BODIES)
def test_no_room_on_the_stack(database: Database, body: Callable[[Database], None]) -> None:
    """At each depth at which a call may run out of it."""

    def deeper(levels: int) -> None:
        if levels:
            deeper(levels - 1)
        else:
            body(database)

    outcomes = set()

    def run(levels: int) -> None:
        try:
            deeper(levels)
            outcomes.add("ok")
        except RecursionError:
            outcomes.add("too deep")

    limit = sys.getrecursionlimit()
    for levels in (*range(limit - 330, limit - 120, 10), *range(limit - 120, limit)):
        thread = threading.Thread(target=run, args=(levels,))
        thread.start()
        thread.join()
    assert outcomes == {"ok", "too deep"}
    check_whole(database)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("error", [KeyError, MemoryError, RecursionError, SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("kind", ["read", "at_once", "write"])
def test_an_exception_of_a_caller(database: Database, kind: str, error: type[BaseException]) -> None:
    for _ in range(2 * CONNECTIONS):
        with pytest.raises(error), getattr(database, kind)() as tx:
            _LENGTH.scalar(tx, {"value": "abc"})
            raise error
    check_whole(database)


def test_a_write_that_fails_is_undone(database: Database) -> None:
    def insert(tx: Connection) -> None:
        tx.exec_driver_sql("INSERT INTO faults VALUES (77)")

    for error in (KeyError, MemoryError, SystemExit):
        with pytest.raises(error), database.write() as tx:
            insert(tx)
            raise error
    with database.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM faults WHERE id = 77").scalar_one() == 0


@pytest.mark.parametrize("error", [RuntimeError, Injected])
def test_what_follows_a_commit_follows_though_one_part_fails(database: Database, error: type[BaseException]) -> None:
    done = []

    def fail() -> None:
        raise error

    with pytest.raises(error), database.write() as tx:
        after_commit(tx, lambda: done.append("first"))
        after_commit(tx, fail)
        after_commit(tx, lambda: done.append("last"))
    assert done == ["first", "last"]
    check_whole(database)


@pytest.mark.parametrize("error", [KeyError, SystemExit])
def test_a_reply_that_fails_in_the_middle(database: Database, error: type[BaseException]) -> None:
    def rows() -> Iterator[int]:
        with database.read() as tx:
            yield from tx.exec_driver_sql("SELECT generate_series(1, 3)").scalars()

    def pieces(source: Iterator[int]) -> Iterator[int]:
        for each in source:
            if each == 2:
                raise error
            yield each

    for _ in range(2 * CONNECTIONS):
        with pytest.raises(error):
            list(pieces(rows()))
        unfinished = pieces(rows())
        next(unfinished)
        del unfinished
    check_whole(database)
