"""Groups over the metastore's own port, of real processes."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import ReadGroupEventsRequest
from lake.subscriptions import Subscription, subscribe
from tests.eventbus.changes import first_seen, log_of
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
TABLES = 24


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("groups") / "data", "--workers", "2") as server:
        yield server


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        yield client


class Handled(NamedTuple):
    pid: int
    number: int
    table: str | None


@contextmanager
def running(server: MetastoreServer, group: str, path: Path) -> "Iterator[subprocess.Popen[bytes]]":
    command = [sys.executable, "-m", "tests.eventbus.group_member", server.uri, group, str(path)]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def handled(path: Path) -> list[Handled]:
    """What was noted so far; who is killed may leave half a line."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [Handled(*json.loads(line)) for line in lines if line.endswith("]\n")]


def change(client: ThriftClient, rounds: int) -> None:
    for number in range(rounds):
        for table in range(TABLES):
            value = client.get_table("shared", f"t{table}")
            client.alter_table("shared", f"t{table}", value.replace(parameters={"round": str(number)}))


def test_one_is_killed(server: MetastoreServer, client: ThriftClient, tmp_path: Path) -> None:
    """Its tables go to the others, with what it had not acknowledged; each table's events stay in order."""
    path = tmp_path / "handled"
    client.create_database(builders.database("shared"))
    for table in range(TABLES):
        client.create_table(builders.table("shared", f"t{table}"))
    with running(server, "killed", path) as one, running(server, "killed", path) as two:
        with running(server, "killed", path) as three:
            pids = {one.pid, two.pid, three.pid}
            wait_until(
                lambda: [each.members for each in client.lake_event_groups() if each.name == "killed"] == [3], 60
            )
            deadline = time.monotonic() + 60
            while {each.pid for each in handled(path)} != pids:
                assert time.monotonic() < deadline, "not all have work"
                change(client, 1)
            os.kill(three.pid, signal.SIGKILL)
            change(client, 2)
            wanted = {each.number for each in log_of(client) if each.database == "shared"}
            wait_until(lambda: {each.number for each in handled(path)} == wanted, 90)
        wait_until(lambda: [each.members for each in client.lake_event_groups() if each.name == "killed"] == [2], 60)
    last = client.lake_event_positions(None, None).last
    with subscribe(server.uri, group="killed") as events:  # the two were killed, too: what they have comes again

        def all_is_done() -> bool:
            events.poll(1)
            events.acknowledge()
            return client.lake_event_positions("killed", None).group == last

        wait_until(all_is_done, 60)
    by_table: defaultdict[str | None, list[int]] = defaultdict(list)
    for each in handled(path):
        by_table[each.table].append(each.number)
    for numbers in by_table.values():
        assert first_seen(numbers) == sorted(set(numbers))


def member(server: MetastoreServer, group: str) -> Subscription:
    return subscribe(server.uri, tables="joined.*", group=group)


def shards(subscription: Subscription) -> int:
    return len(subscription._shards)  # type: ignore[attr-defined]


def test_who_waits_shares_with_who_comes(server: MetastoreServer, client: ThriftClient) -> None:
    """One that waits in its long poll lets go of half, and whoever leaves leaves it to the other at once."""
    client.create_database(builders.database("joined"))
    stop = threading.Event()
    with member(server, "joined") as first:
        first.poll()
        assert shards(first) == 16

        def wait() -> None:
            while not stop.is_set():
                for event in first.poll(30):
                    first.acknowledge(event)

        waiting = threading.Thread(target=wait)
        waiting.start()
        try:
            with member(server, "joined") as second:
                wait_until(lambda: second.poll(0.1) == [] and (shards(first), shards(second)) == (8, 8))
            wait_until(lambda: shards(first) == 16)
        finally:
            stop.set()
            client.create_table(builders.table("joined", "t"))
            waiting.join()


def test_a_lone_member_waits_for_long_and_in_one_call(server: MetastoreServer, client: ThriftClient) -> None:
    with ThriftClient(server.host, server.port) as alone:
        request = ReadGroupEventsRequest(group="lone", member="m", start=0, maxWait=0, tables=["no.table"])
        answer = alone.lake_read_group_events(request)
        assert (len(answer.shards), answer.members) == (16, 1)
        dealt_with = [each.replace(done=each.read) for each in answer.shards]
        waits = request.replace(maxWait=4_000, shards=dealt_with, members=1)
        began = time.monotonic()
        assert alone.lake_read_group_events(waits).events == []
        assert time.monotonic() - began >= 4  # with several members the answer comes sooner
        with ThriftClient(server.host, server.port) as another:

            def shared() -> bool:
                another.lake_read_group_events(request.replace(member="n"))
                answer = alone.lake_read_group_events(waits)  # at once: there are two of them now
                return (len(answer.shards), answer.members) == (8, 2)

            wait_until(shared)
