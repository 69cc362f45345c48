"""The database goes away under a running server and comes back."""

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lake.client.reconnecting import ReconnectingClient, connect_to
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException
from metastore.server.embedded_postgres import EmbeddedPostgres
from tests.crash import processes
from tests.crash.storm import DATABASE_DOWN, Storm
from tests.eventbus.hooks import Receiver
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

ANSWER_SECONDS = 5.0  # in which a client must hear that the database is down


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A Postgres that is not the server's own."""
    postgres = EmbeddedPostgres(tmp_path / "elsewhere")
    postgres.start()
    yield postgres
    postgres.stop()


def refused_at_once(client: ThriftClient) -> None:
    """The client gets the error that the database is down, soon, and keeps its connection."""
    for call in (
        lambda: client.get_table("d", "t"),
        lambda: client.create_table(builders.table("d", "new")),
        lambda: client.get_all_databases(),
    ):
        started = time.monotonic()
        with pytest.raises(MetaException, match=DATABASE_DOWN):
            call()
        assert time.monotonic() - started < ANSWER_SECONDS


def test_external_database_stops_and_starts(tmp_path: Path, postgres: EmbeddedPostgres) -> None:
    with MetastoreServer(tmp_path / "data", "--database-url", postgres.url) as server:
        clients = [ThriftClient(server.host, server.port, timeout=20) for _ in range(12)]
        clients[0].create_database(builders.database("d"))
        clients[0].create_table(builders.table("d", "t"))
        for client in clients:
            assert client.get_table("d", "t").tableName == "t"

        postgres.stop()
        for client in clients:
            refused_at_once(client)

        postgres.start()
        for number, client in enumerate(clients):
            assert client.get_table("d", "t").tableName == "t"
            client.create_table(builders.table("d", f"t{number}"))
        assert len(clients[0].get_all_tables("d")) == 1 + len(clients)


@pytest.mark.long
def test_first_call_of_a_connection_is_repeated(
    tmp_path: Path, postgres: EmbeddedPostgres, caplog: pytest.LogCaptureFixture
) -> None:
    """Its client's version isn't known then, and get_partition_names declares other exceptions in Hive 2.3."""
    with MetastoreServer(tmp_path / "data", "--database-url", postgres.url, "--workers", "1") as server:
        with ThriftClient(server.host, server.port) as client:
            client.create_database(builders.database("d"))
            client.create_table(builders.table("d", "t", keys=("ds",)))
            client.add_partition(builders.partition("d", "t", "1"))
        postgres.stop()
        with ThriftClient(server.host, server.port) as client, pytest.raises(MetaException, match=DATABASE_DOWN):
            client.get_partition_names("d", "t", -1)
        with ReconnectingClient(connect_to(server.uri)) as client, ThreadPoolExecutor(1) as thread:
            names = thread.submit(client.call, lambda each: each.get_partition_names("d", "t", -1))
            wait_until(lambda: names.done() or DATABASE_DOWN in caplog.text)
            postgres.start()
            assert names.result(60) == ["ds=1"]


@pytest.mark.long
def test_server_needs_its_database_to_start(tmp_path: Path, postgres: EmbeddedPostgres) -> None:
    """A database that is down when the server starts is an error in one line, not a server that hangs."""
    server = MetastoreServer(tmp_path / "data", "--database-url", postgres.url)
    postgres.stop()
    with pytest.raises(Exception, match="exited with 1") as caught:
        server.start()
    assert "can't use the database" in str(caught.value)
    assert "Traceback" not in str(caught.value)
    postgres.start()
    with server, ThriftClient(server.host, server.port) as client:
        assert client.get_all_databases() == ["default"]


@pytest.mark.long
def test_processes_that_start_meanwhile(tmp_path: Path, postgres: EmbeddedPostgres) -> None:
    """They are started again until the database is back, with a line for each time and no traceback."""
    with Receiver() as receiver:
        options = ("--database-url", postgres.url, "--workers", "1", "--event-webhooks", f"hook={receiver.url}")
        with MetastoreServer(tmp_path / "data", *options) as server:
            postgres.stop()
            processes.kill(processes.workers(server))

            def ended(name: str) -> bool:
                """By itself."""
                lines = [line for line in server.log_tail(1_000_000).splitlines() if f"name={name}" in line]
                return any("process ended" in line and "SIGKILL" not in line for line in lines)

            wait_until(lambda: ended("worker-0") and ended("outlet-webhook:hook"), 60, "both try to start")
            assert "Traceback" not in server.log_tail(1_000_000)
            postgres.start()
            with ThriftClient(server.host, server.port, timeout=120) as client:
                client.create_database(builders.database("d"))
            wait_until(lambda: bool(receiver.requests), 120, "the webhook is served")


@pytest.mark.long
def test_embedded_database_is_killed(tmp_path: Path) -> None:
    with MetastoreServer(tmp_path / "data") as server:
        clients = [ThriftClient(server.host, server.port, timeout=20) for _ in range(8)]
        clients[0].create_database(builders.database("d"))
        clients[0].create_table(builders.table("d", "t"))
        workers = {each.pid for each in processes.workers(server)}

        processes.kill([processes.postmaster(server)])

        deadline = time.monotonic() + 30
        for client in clients:
            while True:
                started = time.monotonic()
                try:
                    assert client.get_table("d", "t").tableName == "t"
                    break
                except MetaException as error:
                    assert DATABASE_DOWN in (error.message or "")
                    assert time.monotonic() < deadline, "the database doesn't come back"
                    time.sleep(0.1)
                finally:
                    assert time.monotonic() - started < ANSWER_SECONDS
        assert {each.pid for each in processes.workers(server)} == workers


@pytest.mark.long
@pytest.mark.parametrize("embedded", [pytest.param(True, marks=pytest.mark.long), False], ids=["embedded", "external"])
def test_writers_lose_nothing_when_the_database_dies(
    tmp_path: Path, postgres: EmbeddedPostgres, embedded: bool, seed: int
) -> None:
    chance = random.Random(seed)
    options = () if embedded else ("--database-url", postgres.url)
    # A rename whose data could not be moved because the database was gone is made good by the housekeeping.
    with MetastoreServer(tmp_path / "data", "--housekeeping-seconds", "1", *options) as server:

        def connect() -> ThriftClient:
            return ThriftClient(server.host, server.port, timeout=30)

        storm = Storm(connect, tmp_path / "data/warehouse", seed, persistent=True)
        storm.start()
        for _ in range(3):
            time.sleep(chance.uniform(0.3, 2.0))  # a random moment of the work
            before = storm.acknowledged
            if embedded:
                processes.kill([processes.postmaster(server)])
            else:
                postgres.stop()
                postgres.start()
            wait_until(lambda seen=before: storm.acknowledged > seen + 10, 30, "the storm goes on")
        storm.stop()
        storm.settle()
        assert sum(writer.breaks for writer in storm.writers) > 0
        assert max(writer.slowest for writer in storm.writers) < 30
