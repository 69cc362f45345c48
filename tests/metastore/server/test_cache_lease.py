"""While a lease lasts no change is committed, and whoever commits one has ended it before."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy import Engine, NullPool, create_engine, text
from sqlalchemy.engine import make_url

from lake.protocol.codec.binary import CALL, encode, message_header
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.services import METHODS
from metastore.cache.changes import Changes
from metastore.server.cache_lease import CacheLease
from metastore.server.invalidation_polls import LEASE_SECONDS, InvalidationPolls
from metastore.store import migrations
from metastore.store.cache import cache_changes
from tests.support import builders
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

CHANGE = text("INSERT INTO cache_changes (xid, kind, id) VALUES (pg_current_xact_id()::text::bigint, 't', :id)")
HOLDERS = text(
    "SELECT pid FROM pg_locks WHERE relation = 'cache_lease'::regclass AND mode = 'ShareLock' AND granted ORDER BY pid"
)
NAME = "metastore cache lease"


@pytest.fixture
def url(upgraded_url: str) -> str:
    return upgraded_url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(url, poolclass=NullPool)
    yield engine
    engine.dispose()


async def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it didn't happen"
        await asyncio.sleep(0.01)


async def taken(lease: CacheLease) -> CacheLease:
    """A lease that lasts."""
    await until(lease.may_be_taken)
    done: list[bool] = []
    lease.take(lambda: done.append(True))
    await until(lambda: done)
    return lease


def holders(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return list(connection.scalars(HOLDERS))


def change(engine: Engine, number: int = 1) -> None:
    with engine.begin() as connection:
        connection.execute(CHANGE, {"id": number})


def run(scene: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        await scene()

    asyncio.run(within())


@contextlib.contextmanager
def opened(url: str) -> Iterator[CacheLease]:
    lease = CacheLease(url)
    lease.open()
    try:
        yield lease
    finally:
        lease.close()


def test_a_change_ends_it_before_it_is_committed(url: str, engine: Engine) -> None:
    async def scene() -> None:
        with opened(url) as lease:
            first = (await taken(lease)).holds()
            assert first
            # The event loop stands still, and with it whoever holds the lease: the change waits for nobody.
            change(engine)
            assert not lease.holds()
            await until(lease.may_be_taken)
            assert (await taken(lease)).holds() > first

    run(scene)


def test_every_lease_is_ended(url: str, engine: Engine) -> None:
    async def scene() -> None:
        with opened(url) as one, opened(url) as two:
            await taken(one)
            await taken(two)
            assert len(holders(engine)) == 2
            change(engine)
            assert (one.holds(), two.holds()) == (0, 0)

    run(scene)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM cache_state",
        "TRUNCATE cache_state",
        "TRUNCATE cache_changes",
        "UPDATE cache_state SET incarnation = 'another'",
        "SET session_replication_role = replica; DELETE FROM cache_state",
        "TRUNCATE tables CASCADE",
        "INSERT INTO column_statistics (table_id, partition_id, column_name, last_analyzed, body)"
        " VALUES (1, 1, 'a', 0, '')",
    ],
)
def test_what_else_ends_it(url: str, engine: Engine, statement: str) -> None:
    """What a cache must know of, done by hand."""
    with engine.begin() as connection:
        cache_changes.begin(connection)

    async def scene() -> None:
        with opened(url) as lease:
            await taken(lease)
            with engine.begin() as connection:
                connection.execute(text(statement))
            assert not lease.holds()

    run(scene)


@pytest.mark.parametrize("statement", ["UPDATE cache_state SET floor = floor", "SELECT count(*) FROM cache_changes"])
def test_what_changes_nothing_leaves_it(url: str, engine: Engine, statement: str) -> None:
    async def scene() -> None:
        with opened(url) as lease:
            await taken(lease)
            with engine.begin() as connection:
                connection.execute(text(statement))
            assert lease.holds()

    run(scene)


def test_none_begins_within_a_change(url: str, engine: Engine) -> None:
    """From the first change of a transaction until it has ended, whether it commits or not."""

    async def scene() -> None:
        with opened(url) as lease, engine.connect() as writer:
            writer.execute(CHANGE, {"id": 1})
            done: list[bool] = []
            await until(lease.may_be_taken)
            lease.take(lambda: done.append(True))
            await until(lease.may_be_taken)  # it has been refused, and has waited
            assert done == [] and holders(engine) == []
            writer.rollback()
            assert (await taken(lease)).holds()

    run(scene)


def test_one_that_ends_before_its_answer_is_read_was_none(url: str, engine: Engine) -> None:
    """The answer and the word that it has ended lie in the socket together."""

    async def scene() -> None:
        with opened(url) as lease:
            await until(lease.may_be_taken)
            lasted: list[int] = []
            lease.take(lambda: lasted.append(lease.holds()))
            wait_until(lambda: holders(engine))  # the event loop stands still: nobody reads the answer
            change(engine)
            await until(lease.may_be_taken)
            assert lasted in ([], [0])
            assert (await taken(lease)).holds()

    run(scene)


@pytest.mark.parametrize("how", ["terminate", "cancel"])
def test_a_session_that_somebody_ends(url: str, engine: Engine, how: str) -> None:
    """A session that waits for its client can't be cancelled."""

    async def scene() -> None:
        with opened(url) as lease:
            await taken(lease)
            [pid] = holders(engine)
            with engine.begin() as connection:
                connection.execute(text(f"SELECT pg_{how}_backend({pid})"))
            wait_until(lambda: how == "cancel" or holders(engine) == [])
            assert bool(lease.holds()) == (how == "cancel")

    run(scene)


def test_postgres_is_killed(tmp_path: Path) -> None:
    postgres = Postgres(tmp_path)
    try:
        url = postgres.url("postgres")
        migrations.upgrade(url)
        engine = create_engine(url, poolclass=NullPool)

        async def scene() -> None:
            with opened(url) as lease:
                await taken(lease)
                [pid] = holders(engine)
                psutil.Process(pid).kill()
                psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], timeout=10)
                assert not lease.holds()
                wait_until(lambda: can_connect(engine), what="Postgres recovers")
                await taken(lease)
                postgres.kill()
                wait_until(lambda: not lease.holds())  # nobody waits for the killed processes
                postgres.start()
                assert (await taken(lease)).holds()

        run(scene)
    finally:
        postgres.close()


def can_connect(engine: Engine) -> bool:
    with contextlib.suppress(Exception), engine.connect():
        return True
    return False


def test_a_server_that_stops_leaves_no_lease(url: str, engine: Engine) -> None:
    async def scene() -> None:
        with opened(url) as lease:
            await taken(lease)
        wait_until(lambda: holders(engine) == [])

    run(scene)


class Proxy:
    """A Unix socket that leads to another one, as poolers and proxies have."""

    def __init__(self, directory: Path, target: str) -> None:
        self._target = target
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(directory / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    @staticmethod
    def _copy(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()


def test_there_is_none_through_a_proxy(url: str, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> None:
    """It could keep the word of Postgres back."""
    parsed = make_url(url)
    directory = tmp_path_factory.mktemp("p")
    proxy = Proxy(directory, f"{parsed.query['host']}/.s.PGSQL.{parsed.query['port']}")
    through = parsed.update_query_dict({"host": str(directory), "port": "5432"}).render_as_string(hide_password=False)

    async def scene() -> None:
        with opened(through) as lease:
            done: list[bool] = []
            await until(lease.may_be_taken)
            lease.take(lambda: done.append(True))
            await until(lambda: connections(engine) == 0)  # it has closed its session for good
            assert done == [] and not lease.holds() and not lease.may_be_taken()

    try:
        run(scene)
    finally:
        proxy.close()


def connections(engine: Engine) -> int:
    """Sessions that hold a lease, or could."""
    with engine.connect() as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = :name AND datname = current_database()"
        return int(connection.scalar(text(query), {"name": NAME}) or 0)


def test_another_user_may_not_hold_one(url: str, engine: Engine) -> None:
    """Whose session the owner of the tables could not end."""
    with engine.begin() as connection:
        for statement in (
            "DROP ROLE IF EXISTS guest",
            "CREATE ROLE guest LOGIN",
            "GRANT ALL ON ALL TABLES IN SCHEMA public TO guest",
        ):
            connection.execute(text(statement))
    guest = make_url(url).set(username="guest").render_as_string(hide_password=False)
    try:
        with create_engine(guest, poolclass=NullPool).connect() as connection:
            assert connection.scalar(text("SELECT take_cache_lease()")) is None
            connection.execute(CHANGE, {"id": 1})  # it may record changes, and end leases of others by that
    finally:
        with engine.begin() as connection:
            connection.execute(text("DROP OWNED BY guest"))
            connection.execute(text("DROP ROLE guest"))


class TestPolls:
    """What a worker makes of leases."""

    def test_reads_ask_nobody(self, url: str, engine: Engine) -> None:
        with engine.begin() as connection:
            cache_changes.begin(connection)

        async def scene() -> None:
            polls = InvalidationPolls(url, Changes(), lambda: None)
            polls.start()
            try:
                await leased(polls)
                before = statements(engine)
                known: list[bool] = []
                for _ in range(100):
                    polls.join(known.append)
                await asyncio.sleep(0)
                assert known == [True] * 100
                assert statements(engine) == before
                change(engine)
                assert not polls.leased()
                polls.join(known.append)
                assert len(known) == 100  # it waits for Postgres
                await until(lambda: len(known) == 101)
                await leased(polls)
            finally:
                polls.stop()

        run(scene)

    def test_a_poll_that_began_before_is_not_enough(self, url: str, engine: Engine) -> None:
        """A change between that poll and the lease would be missed."""
        with engine.begin() as connection:
            cache_changes.begin(connection)

        async def scene() -> None:
            polls = InvalidationPolls(url, Changes(), lambda: None)
            polls.start()
            try:
                await leased(polls)
                for number in range(20):
                    change(engine, number)
                    waited: list[int] = []
                    polls.join(lambda _, at=number, waited=waited: waited.append(at))
                    await until(lambda waited=waited: waited)
                    seen = {number for (kind, number) in polls._changes._known if kind == "t"}
                    assert number in seen
                    if number % 5 == 0:
                        await leased(polls)
            finally:
                polls.stop()

        run(scene)


def test_many_messages_sent_together(metastore_server: MetastoreServer) -> None:
    """All of them are answered, in their order, when reads ask nobody."""
    calls = 3_000
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        client.create_database(builders.database("together"))
        table = builders.table("together", "t")
        client.create_table(table)
        arguments = METHODS["get_table"].args(dbname="together", tbl_name="t")
        name = b"get_table"
        message = message_header("get_table", CALL, 7) + encode(arguments)
        with socket.create_connection((metastore_server.host, metastore_server.port), timeout=60) as connection:
            deadline = time.monotonic() + 1
            size = 0
            while time.monotonic() < deadline:  # until a lease has been taken, most likely
                connection.sendall(message)
                size = len(connection.recv(1 << 16))
            sender = threading.Thread(target=connection.sendall, args=(message * calls,))
            sender.start()
            received = b""
            while len(received) < size * calls:
                data = connection.recv(1 << 20)
                assert data
                received += data
            sender.join()
        assert received == received[:size] * calls and name in received[:40]
        client.drop_table("together", "t", True)
        client.drop_database("together", False, False)


async def leased(polls: InvalidationPolls) -> None:
    """Reads come until there is a lease."""
    deadline = time.monotonic() + 20 + LEASE_SECONDS
    while not polls.leased():
        assert time.monotonic() < deadline, "no lease is taken"
        polls.join(lambda _: None)
        await asyncio.sleep(0.005)


def statements(engine: Engine) -> str:
    """When the session that polls began its last statement."""
    with engine.connect() as connection:
        query = "SELECT max(query_start) FROM pg_stat_activity WHERE application_name = 'metastore cache'"
        return str(connection.scalar(text(f"{query} AND datname = current_database()")))
