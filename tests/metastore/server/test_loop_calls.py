"""A server whose event loop makes calls itself is held up by none of them."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, NullPool, create_engine, text

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import Table
from metastore.server.loop_calls import LastCalls
from metastore.store.table import known_tables
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

STEADY = known_tables._IN_A_ROW + 3
"""Alterations of a connection after which the loop makes the next one."""


@pytest.fixture
def server(upgraded_url: str, tmp_path: Path) -> Iterator[MetastoreServer]:
    options = ("--threads", "1", "--database-pool-size", "6")
    with MetastoreServer.on_database(upgraded_url, tmp_path, *options) as started:
        yield started


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        client.create_database(builders.database("d"))
        client.create_table(builders.table("d", "t", keys=("ds:string",)))
        yield client


def alter(client: ThriftClient, mark: str) -> None:
    value: Table = client.get_table("d", "t")
    client.alter_table("d", "t", value.replace(parameters={**(value.parameters or {}), "mark": mark}))


def mark(client: ThriftClient) -> str | None:
    return (client.get_table("d", "t").parameters or {}).get("mark")


@contextmanager
def locked(url: str) -> Iterator[Connection]:
    with create_engine(url, poolclass=NullPool).begin() as tx:
        tx.execute(text("SELECT 1 FROM tables WHERE name = 't' FOR UPDATE"))
        yield tx


def waits(tx: Connection) -> int:
    tx.execute(text("SELECT pg_stat_clear_snapshot()"))
    statement = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    return int(tx.execute(text(statement)).scalar_one())


def test_the_only_thread_is_free_while_an_alteration_waits(
    server: MetastoreServer, client: ThriftClient, upgraded_url: str
) -> None:
    """Unless a task in the background had the connection last: then the alteration takes the thread, to prepare it."""
    with ThriftClient(server.host, server.port) as other, ThreadPoolExecutor(2) as threads:
        for attempt in range(5):
            for number in range(STEADY):
                alter(client, str(number))
            with locked(upgraded_url) as tx:
                altered = threads.submit(alter, client, "loop")
                wait_until(lambda: waits(tx) == 1, 20, "that the alteration waits")
                created = threads.submit(other.create_table, builders.table("d", f"u{attempt}"))
                wait([created], 10)
                made_meanwhile = created.done()
                assert not altered.done()
            altered.result(30)
            created.result(30)
            assert mark(other) == mark(client) == "loop"
            if made_meanwhile:
                return
    raise AssertionError("the alterations were made by the thread")


def test_a_server_that_stops_answers_what_its_loop_has_begun(
    server: MetastoreServer, client: ThriftClient, upgraded_url: str
) -> None:
    for number in range(STEADY):
        alter(client, str(number))
    with ThreadPoolExecutor(1) as threads:
        with locked(upgraded_url) as tx:
            altered = threads.submit(alter, client, "loop")
            wait_until(lambda: waits(tx) == 1, 20, "that the alteration waits")
            stopping = threading.Thread(target=server.stop)
            stopping.start()
            wait_until(lambda: "stop" in server.log.read_text(), 20, "that the server stops")
        altered.result(30)
        stopping.join(30)
    with create_engine(upgraded_url, poolclass=NullPool).connect() as tx:
        assert tx.execute(text("SELECT parameters->>'mark' FROM tables WHERE name = 't'")).scalar_one() == "loop"


def test_errors_are_what_they_are_in_a_thread(client: ThriftClient) -> None:
    for number in range(STEADY):
        alter(client, str(number))
    value = client.get_table("d", "t")
    with pytest.raises(Exception, match="partition keys"):
        client.alter_table("d", "t", value.replace(partitionKeys=builders.columns("other")))
    client.drop_table("d", "t", True)
    with pytest.raises(Exception, match="not found"):
        client.alter_table("d", "t", value)
    client.create_table(builders.table("d", "t", keys=("ds:string",)))
    for number in range(STEADY):
        alter(client, str(number))
    assert mark(client) == str(STEADY - 1)


def test_which_calls_are_made_in_the_loop() -> None:
    calls = LastCalls()
    assert not calls.suggest_loop("alter_table")
    calls.were_one_message("alter_table")
    assert calls.suggest_loop("alter_table")
    assert not calls.suggest_loop("create_table")
    calls.needed_thread()
    tries = 0
    while not calls.suggest_loop("alter_table"):
        calls.were_one_message("alter_table")
        tries += 1
    assert tries > 100
