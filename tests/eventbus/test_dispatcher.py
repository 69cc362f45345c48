"""Whatever is killed when: every outlet gets all that was committed, in order."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from sqlalchemy import NullPool, create_engine, text

from lake.protocol.connection.thrift_client import ThriftClient
from metastore.server.embedded_postgres import running_url
from tests.eventbus.changes import first_seen, log_of, make
from tests.eventbus.hooks import Receiver, noted
from tests.eventbus.test_streams import numbers, state
from tests.support import builders
from tests.support.redis import RedisServer
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

EVERYTHING = "tests.eventbus.hooks:Everything"


def serving(url: str) -> dict[str, int]:
    """Who delivers to an outlet, as Postgres sees it: how many connections hold its lock."""
    query = text(
        "SELECT a.application_name, count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
        " WHERE l.locktype = 'advisory' AND l.granted AND a.application_name ~ '^metastore (redis|webhook|listener)'"
        " GROUP BY 1"
    )
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return {row.application_name: row.count for row in connection.execute(query)}


@contextmanager
def dispatcher(*options: str, **environment: str) -> "Iterator[subprocess.Popen[bytes]]":
    process = subprocess.Popen(
        [sys.executable, "-m", "lake.cli", "outlets", "run", *options],
        env={**os.environ, **environment},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.long
def test_a_storm(tmp_path: Path) -> None:
    """Writers go on while outlets' processes, Redis and the server are killed."""
    dice = random.Random(5)
    with RedisServer(tmp_path / "redis") as streams, Receiver() as receiver:
        server = MetastoreServer(
            tmp_path / "data",
            *("--workers", "1", "--redis-url", streams.url, "--event-attempts", "1000"),
            *("--event-webhooks", f"hook={receiver.url}", "--event-listeners", EVERYTHING),
            environment={"LISTENER_DIRECTORY": str(tmp_path)},
        )
        with server:
            stop = threading.Event()

            def write(writer: int) -> None:
                count = 0
                while not stop.is_set():
                    try:
                        with ThriftClient(server.host, server.port, timeout=10) as client:
                            client.create_database(builders.database(f"w{writer}_{count}"))
                            count += 1
                            for table in range(20):
                                client.create_table(builders.table(f"w{writer}_{count - 1}", f"t{table}"))
                                time.sleep(0.01)
                    except Exception:  # the server was killed; what it acknowledged is in the log
                        count += 1
                        time.sleep(0.1)

            writers = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
            for writer in writers:
                writer.start()
            for blow in range(12):
                time.sleep(0.5)  # writers and outlets go on between two blows
                if blow in (3, 8):
                    streams.kill()
                    time.sleep(0.3)  # Redis is away for a while
                    streams.start()
                elif blow == 6:
                    server.kill()
                    server.start()
                else:
                    victims = [
                        child for child in psutil.Process(server.pid).children() if "postgres" not in child.name()
                    ]
                    os.kill(dice.choice(victims).pid, signal.SIGKILL)
            stop.set()
            for writer in writers:
                writer.join()
            with ThriftClient(server.host, server.port) as client:
                committed = [each.number for each in log_of(client)]
                assert committed == list(range(1, len(committed) + 1))
                assert len(committed) > 50
                last = committed[-1]
                wait_until(lambda: state(streams).get("position") == str(last))
                wait_until(lambda: last in receiver.arrived)
                wait_until(lambda: [each["number"] for each in noted(tmp_path, "everything")][-1:] == [last])
                wait_until(lambda: {group.position for group in client.lake_event_groups()} == {last})
                assert client.lake_dead_events(None) == []
    assert first_seen([each.event["data"]["number"] for each in receiver.requests]) == committed
    assert first_seen([each["number"] for each in noted(tmp_path, "everything")]) == committed


@pytest.mark.long
def test_dispatchers_stand_by(tmp_path: Path) -> None:
    """Two dispatchers of their own beside a server without outlets: one works, the other takes over."""
    with (
        RedisServer(tmp_path / "redis") as streams,
        Receiver() as receiver,
        MetastoreServer(tmp_path / "data", "--workers", "1") as server,
        ThriftClient(server.host, server.port) as client,
    ):
        url = running_url(tmp_path / "data")
        assert url is not None
        make(client, "before", 3)
        options = ("--database-url", url, "--redis-url", streams.url, "--event-webhooks", f"hook={receiver.url}")
        with dispatcher(*options) as first:
            wait_until(lambda: serving(url) == {"metastore redis": 1, "metastore webhook:hook": 1})
            with dispatcher(*options) as second:
                make(client, "during", 10)
                wait_until(lambda: 13 in receiver.arrived)
                assert set(serving(url).values()) == {1}
                os.killpg(first.pid, signal.SIGKILL)
                first.wait()
                make(client, "after", 10)
                wait_until(lambda: 23 in receiver.arrived)
                wait_until(lambda: state(streams).get("position") == "23")
                assert serving(url) == {"metastore redis": 1, "metastore webhook:hook": 1}
                victims = [child.pid for child in psutil.Process(second.pid).children(recursive=True)]
                for victim in victims:
                    os.kill(victim, signal.SIGKILL)
                make(client, "again", 5)
                wait_until(lambda: 28 in receiver.arrived)
                wait_until(lambda: state(streams).get("position") == "28")
        committed = [each.number for each in log_of(client)]
        # A webhook begins with what comes after it was set up, Redis with what is kept.
        assert first_seen([each.event["data"]["number"] for each in receiver.requests]) == committed[3:]
        assert numbers(streams) == committed
        wait_until(lambda: serving(url) == {})
