"""What Prometheus is shown of a server: each metric appears, and moves when that happens of which it tells."""

import re
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, NullPool, create_engine, text

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import NoSuchObjectException
from lake.protocol.lake import EventGroup, TableReference
from metastore.server.monitoring import metrics
from tests.support import builders, streams
from tests.support.exposition import Exposition
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

TASKS = {
    *("housekeeping", "readiness", "file deletions", "lost jobs of table services", "counting pending work"),
    "sequencer",
}
OPTIONS = (
    *("--workers", "1", "--threads", "2", "--database-pool-size", "1", "--http-port", "0"),
    *("--readiness-seconds", "0.2", "--housekeeping-seconds", "3600"),
)
EVENT_TIME = {
    "partition.commit.mode": "event-time",
    "partition.time-extractor.timestamp-pattern": "$ds 00:00:00",
    "sink.partition-commit.delay": "1 h",
}
DAY = 86_400_000
MB = 1 << 20


@pytest.fixture
def start(upgraded_url: str, tmp_path: Path) -> Iterator[Callable[..., MetastoreServer]]:
    """Starts a server on the test's database."""
    started: list[MetastoreServer] = []

    def start(*options: str) -> MetastoreServer:
        server = MetastoreServer(tmp_path / f"server{len(started)}", "--database-url", upgraded_url, *OPTIONS, *options)
        started.append(server.start())
        return server

    yield start
    for server in started:
        if server.running():
            server.stop()


@pytest.fixture
def engine(upgraded_url: str) -> Iterator[Engine]:
    engine = create_engine(upgraded_url, poolclass=NullPool)
    yield engine
    engine.dispose()


@contextmanager
def tables_held(engine: Engine) -> Iterator[None]:
    """Nobody can read or write tables."""
    with engine.begin() as tx:
        tx.execute(text("LOCK TABLE tables IN ACCESS EXCLUSIVE MODE"))
        yield


def look_for_table(server: MetastoreServer, name: str) -> None:
    with ThriftClient(server.host, server.port) as client, pytest.raises(NoSuchObjectException):
        client.get_table("default", name)


@pytest.mark.long
def test_only_the_leader_shows_what_concerns_all(start: Callable[..., MetastoreServer]) -> None:
    before = time.time()
    server = start()
    one = Exposition(server)
    success = "metastore_leader_task_success_timestamp_seconds"
    wait_until(lambda: one.values(success, "task").keys() == TASKS, 30, "every leader task has run")
    assert one.value("metastore_leader") == 1
    assert all(before <= moment <= time.time() for moment in one.values(success, "task").values())
    seen = one.values(success, "task")["readiness"]
    wait_until(lambda: one.values(success, "task")["readiness"] > seen, 30, "the task runs again")

    two = Exposition(start())
    wait_until(lambda: two.value("metastore_leader") == 0, 30, "the other stands by")
    assert not two.families().keys() & metrics._OF_LEADER.keys()
    server.stop()
    wait_until(lambda: two.value("metastore_leader") == 1, 30, "the other takes over")
    wait_until(lambda: two.families().keys() >= metrics._OF_LEADER.keys(), 30, "it shows all")


@pytest.mark.long
def test_requests_that_wait_for_a_thread_or_a_connection(start: Callable[..., MetastoreServer], engine: Engine) -> None:
    server = start()
    shown = Exposition(server)
    assert shown.value("metastore_queued_requests", waiting_for="thread") == 0
    waits, seconds = "metastore_database_pool_wait_seconds_count", "metastore_database_pool_wait_seconds_sum"
    before, before_seconds = shown.value(waits), shown.value(seconds)
    assert before is not None and before_seconds is not None
    with ThreadPoolExecutor(4) as clients:
        with tables_held(engine):
            # Of four, one has the connection, one waits for it, two wait for a thread.
            found = [clients.submit(look_for_table, server, f"t{number}") for number in range(4)]
            wait_until(
                lambda: (shown.value("metastore_queued_requests", waiting_for="thread") or 0) >= 2, 30, "two wait"
            )
        for each in found:
            each.result(30)
    wait_until(lambda: shown.value("metastore_queued_requests", waiting_for="thread") == 0, 30, "nobody waits")
    assert (shown.value(waits) or 0) > before
    assert (shown.value(seconds) or 0) > before_seconds


@pytest.mark.long
def test_requests_that_wait_for_memory(start: Callable[..., MetastoreServer], engine: Engine) -> None:
    server = start("--max-request-memory", str(8 * MB))
    shown = Exposition(server)

    def create(number: int) -> None:
        table = builders.table("default", f"t{number}", parameters={"comment": "x" * 2 * MB})
        with ThriftClient(server.host, server.port) as client:
            client.create_table(table)

    with ThreadPoolExecutor(3) as clients:
        with tables_held(engine):
            made = [clients.submit(create, number) for number in range(3)]
            wait_until(
                lambda: (shown.value("metastore_queued_requests", waiting_for="memory") or 0) >= 1, 30, "one waits"
            )
        for each in made:
            each.result(30)
    wait_until(lambda: shown.value("metastore_queued_requests", waiting_for="memory") == 0, 30, "nobody waits")


@pytest.mark.long
def test_pending_work(start: Callable[..., MetastoreServer], engine: Engine) -> None:
    shown = Exposition(start())
    names = ("metastore_pending_moves", "metastore_pending_publications")

    def pending() -> list[float | None]:
        return [shown.value(name) for name in names]

    wait_until(lambda: pending() == [0, 0], 30, "nothing is pending")
    assert shown.values("metastore_files_to_delete", "state") == {"waiting": 0, "undeletable": 0}
    with engine.begin() as tx:
        tx.execute(text("INSERT INTO moves (source, target) VALUES ('file:/a', 'file:/b'), ('file:/c', NULL)"))
        # Of a table that is none: nobody carries it out.
        tx.execute(text("INSERT INTO publications (table_id, partition_id, source, name) VALUES (-1, 0, '/s/f', 'f')"))
    wait_until(lambda: pending() == [2, 1], 30, "it is counted")
    with engine.begin() as tx:
        tx.execute(text("DELETE FROM moves"))
        tx.execute(text("DELETE FROM publications"))
    wait_until(lambda: pending() == [0, 0], 30, "it is done")


@pytest.mark.long
def test_watermarks_and_overdue_partitions(start: Callable[..., MetastoreServer], engine: Engine) -> None:
    server = start()
    shown = Exposition(server)
    age, overdue = "metastore_watermark_age_seconds", "metastore_overdue_partitions"
    wait_until(lambda: shown.value(age) == 0, 30, "nothing waits")
    assert shown.value(overdue) == 0
    today = int(time.time() * 1000) // DAY * DAY
    with ThriftClient(server.host, server.port) as client:
        client.create_table(builders.table("default", "t", keys=("ds",), parameters=EVENT_TIME))
        client.add_partition(builders.partition("default", "t", time.strftime("%Y-%m-%d", time.gmtime(today / 1000))))

        def report(batch: int, event_time: int) -> None:
            reference = TableReference(database="default", table="t")
            streams.report(client, reference, {"s": event_time})

        report(1, today - 3 * DAY)
        wait_until(lambda: 3 * 86_400 <= (shown.value(age) or 0) < 4.1 * 86_400, 30, "the watermark is days old")
        report(2, today - DAY)
        wait_until(lambda: 86_400 <= (shown.value(age) or 0) < 2.1 * 86_400, 30, "it has moved")
        assert shown.value(overdue) == 0
        with engine.begin() as tx:
            # The day before, whose time has come, is in somebody else's hands.
            client.add_partition(
                builders.partition("default", "t", time.strftime("%Y-%m-%d", time.gmtime(today / 1000 - 5 * 86_400)))
            )
            tx.execute(text("SELECT id FROM partitions FOR UPDATE"))
            wait_until(lambda: shown.value(overdue) == 1, 30, "it is overdue")
        wait_until(lambda: shown.value(overdue) == 0, 30, "it is ready")


def test_no_more_groups_are_shown_than_a_bound() -> None:
    groups = [EventGroup(name=f"g{number}", position=1, seenAt=number) for number in range(metrics.MAX_GROUPS + 100)]
    text = metrics.groups_exposition(groups).decode()
    shown = re.findall(r'^metastore_event_group_position{group="(\w+)"}', text, re.MULTILINE)
    assert set(shown) == {f"g{number}" for number in range(100, metrics.MAX_GROUPS + 100)}
    assert f"\nmetastore_event_groups {metrics.MAX_GROUPS + 100}.0\n" in text


def test_traffic_and_the_cache(start: Callable[..., MetastoreServer]) -> None:
    server = start()
    shown = Exposition(server)

    def traffic() -> list[float]:
        names = ("metastore_received_bytes_total", "metastore_sent_bytes_total")
        return [
            *(shown.value(name) or 0 for name in names),
            shown.value("metastore_requests_total", method="get_database", outcome="ok") or 0,
            shown.value("metastore_request_seconds_count", method="get_database") or 0,
            shown.value("metastore_cache_answers_total", level="memory") or 0,
        ]

    with ThriftClient(server.host, server.port) as client:
        client.get_database("default")
        before = traffic()
        client.get_database("default")
        wait_until(lambda: all(after > early for after, early in zip(traffic(), before, strict=True)), 30, "all moves")
        assert shown.value("metastore_cache_answers_total", level="database") == 1
        assert (shown.value("metastore_cache_bytes") or 0) > 0
    with socket.create_connection((server.host, server.port)) as browser:
        browser.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert browser.recv(1000)
    assert shown.value("metastore_rejected_messages_total", reason="http") == 1
