"""The background leader tasks of a cluster: one server has them, and another one soon after it is gone."""

import itertools
import json
import time

import pytest
from sqlalchemy import Engine, text

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import ReadEventsRequest
from metastore.server import leader_tasks as background
from metastore.server.leader_tasks import LeaderTask, LeaderTasks
from metastore.store import DatabaseUnavailable
from metastore.store.engine.leader_lock import LeaderLock, holder
from tests.cluster.conftest import Prepare
from tests.crash import processes
from tests.support import builders
from tests.support.called import output
from tests.support.processes import suspend
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

READY_AT_ONCE = {"partition.commit.mode": "process-time", "sink.partition-commit.delay": "0 s"}
NUMBERS = itertools.count(1)


@pytest.fixture
def pair(prepare: Prepare) -> list[MetastoreServer]:
    """Two servers; the first one has the leader tasks."""
    options = ("--readiness-seconds", "0.3", "--housekeeping-seconds", "1")
    one, two = prepare("one", *options), prepare("two", *options)
    one.start()
    wait_for(one, one)
    two.start()
    with ThriftClient(one.host, one.port) as client:
        client.create_database(builders.database("d"))
        client.create_table(builders.table("d", "t", keys=("ds",), parameters=READY_AT_ONCE))
    return [one, two]


def wait_for(server: MetastoreServer, asked: MetastoreServer) -> None:
    """Until a server has the leader tasks, says `metastore status` of the one that is asked."""

    def has_them() -> bool:
        status = json.loads(output("status", "--json", "--uri", asked.uri))
        return str(status["leader"]).endswith(f":{server.port}")

    wait_until(has_them, 60, f"{server.uri} has the leader tasks")


def wait_until_ready(server: MetastoreServer) -> None:
    """A new partition, which is hidden at first, turns ready: somebody looks after that."""
    value = str(next(NUMBERS))
    with ThriftClient(server.host, server.port) as client:
        client.add_partition(builders.partition("d", "t", value))
        wait_until(lambda: f"ds={value}" in client.get_partition_names("d", "t", -1), 60, f"ds={value} turns ready")


def times_committed(server: MetastoreServer) -> list[str]:
    """The partitions that turned ready, each as often as that happened."""
    with ThriftClient(server.host, server.port) as client:
        events = client.lake_read_events(ReadEventsRequest(after=0, types=["COMMIT_PARTITIONS"])).events
    return sorted(each["name"] for event in events for each in json.loads(event.payload)["partitions"])


def test_they_move_when_their_holder_is_killed(pair: list[MetastoreServer]) -> None:
    one, two = pair
    wait_until_ready(two)
    one.kill()
    wait_for(two, two)
    wait_until_ready(two)
    one.start()
    wait_for(two, one)
    assert two.stop() == 0
    wait_for(one, one)
    wait_until_ready(one)


@pytest.mark.long
def test_they_move_when_their_holder_stands_still(pair: list[MetastoreServer]) -> None:
    one, two = pair
    for _ in range(3):
        still = processes.everything(one)
        for process in still:
            suspend(process)
        try:
            wait_for(two, two)
            wait_until_ready(two)
        finally:
            for process in reversed(still):
                process.resume()
        wait_until_ready(one)
        wait_for(two, one)
        one, two = two, one
    committed = times_committed(one)
    assert committed == sorted(set(committed)), "a partition turned ready twice"


class TestLock:
    def test_one_has_it(self, postgres_url: str, engine: Engine) -> None:
        first, second = LeaderLock(postgres_url, "first"), LeaderLock(postgres_url, "second")
        assert (first.take(), second.take(), first.take()) == (True, False, True)
        with engine.connect() as connection:
            assert holder(connection) == "first"
        first.release()
        wait_until(second.take, 20, "the lock is free")
        with engine.connect() as connection:
            assert holder(connection) == "second"
        second.release()
        with engine.connect() as connection:
            wait_until(lambda: holder(connection) is None, 20, "nobody has it")

    def test_one_who_says_nothing_loses_it(self, postgres_url: str) -> None:
        silent, other = LeaderLock(postgres_url, "silent", silent_seconds=0.5), LeaderLock(postgres_url, "other")
        assert silent.take()
        wait_until(other.take, 20, "the lock is free")
        with pytest.raises(DatabaseUnavailable):
            silent.take()
        assert not silent.take()
        other.release()
        wait_until(silent.take, 20, "the lock is free")
        silent.release()


class TestLeaderTasks:
    """One candidate, `mine`, and somebody else."""

    @pytest.fixture(autouse=True)
    def soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(background, "LOOK_SECONDS", 0.05)

    def test_begin_with_the_lock_and_end_with_it(self, postgres_url: str, engine: Engine) -> None:
        runs: list[None] = []

        def fail() -> None:
            raise RuntimeError("no")

        def is_quiet() -> bool:
            before = len(runs)
            time.sleep(0.3)  # in which thirty runs would come
            return len(runs) == before

        somebody = LeaderLock(postgres_url, "somebody else")
        assert somebody.take()
        tasks = [LeaderTask("fails", fail, 0.01), LeaderTask("works", lambda: runs.append(None), 0.01)]
        mine = LeaderTasks(LeaderLock(postgres_url, "mine"), tasks)
        mine.start()
        try:
            assert is_quiet()
            somebody.release()
            wait_until(lambda: len(runs) > 2, 20, "they begin")
            wait_until(lambda: took_it(somebody, engine), 20, "the lock goes to somebody else")
            wait_until(is_quiet, 20, "they end")
        finally:
            mine.stop()
            somebody.release()


def took_it(lock: LeaderLock, engine: Engine) -> bool:
    """Cuts the connection of who has the lock, and tries to be the next."""
    cut = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = :name")
    with engine.connect() as connection:
        connection.execute(cut, {"name": "metastore leader mine"})
    return lock.take()
