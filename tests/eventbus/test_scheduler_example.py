"""The scheduler of examples/: by itself, and once with Spark."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.scheduler import Scheduler
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import CommitPartitionsRequest, TableReference
from tests.support import builders
from tests.support.server import MetastoreServer

ROOT = Path(__file__).resolve().parents[2]
NEEDS = ["shop.orders", "shop.payments", "shop.visits"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path / "data", "--workers", "1") as server:
        yield server


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        yield client


def lake(client: ThriftClient) -> None:
    client.create_database(builders.database("shop"))
    for name in NEEDS:
        manual = {"partition.commit.mode": "manual"}
        client.create_table(builders.table("shop", name[5:], keys=("dt",), parameters=manual))
        client.add_partitions([builders.partition("shop", name[5:], day) for day in ("2026-01-30", "2026-01-31")])
    client.create_table(builders.table("shop", "daily", keys=("dt",)))


def commit(client: ThriftClient, table: str, *days: str) -> None:
    names = [f"dt={day}" for day in days]
    client.lake_commit_partitions(CommitPartitionsRequest(TableReference(None, "shop", table), names))


@pytest.mark.long
def test_runs_once_when_all_three_are_ready(server: MetastoreServer, client: ThriftClient) -> None:
    lake(client)
    made: list[str] = []

    def run(partition: str, values: dict[str, str]) -> None:
        client.add_partition(builders.partition("shop", "daily", values["dt"]))
        made.append(partition)

    def work() -> list[str]:
        """What a scheduler that was just started makes."""
        made.clear()
        scheduler = Scheduler(server.uri, NEEDS, "shop.daily", run)
        with scheduler.subscription("jobs") as events:
            for event in events.poll():
                scheduler.handle(event)
                events.acknowledge(event)
        return list(made)

    assert work() == []
    commit(client, "orders", "2026-01-31")
    commit(client, "payments", "2026-01-30", "2026-01-31")
    assert work() == []
    commit(client, "visits", "2026-01-31")
    assert work() == ["dt=2026-01-31"]
    commit(client, "visits", "2026-01-30")
    commit(client, "orders", "2026-01-30")
    assert work() == ["dt=2026-01-30"]
    assert work() == []


@pytest.mark.spark
@pytest.mark.long
def test_with_spark(server: MetastoreServer, client: ThriftClient) -> None:
    lake(client)
    for name in NEEDS:
        commit(client, name[5:], "2026-01-31")
    sql = "INSERT INTO shop.daily PARTITION (dt) SELECT 1L, 'all ready', :dt"
    command = [
        *(sys.executable, "examples/scheduler.py", "--uri", server.uri, "--makes", "shop.daily", "--sql", sql),
        *(part for name in NEEDS for part in ("--needs", name)),
        *("--count", "1"),
    ]
    result = subprocess.run(command, cwd=ROOT, env=None, capture_output=True, text=True, timeout=300)
    assert result.stdout.splitlines()[-1:] == ["made shop.daily dt=2026-01-31"], result.stderr[-3000:]
    assert client.get_partition_names("shop", "daily", -1) == ["dt=2026-01-31"]
    assert [group.name for group in client.lake_event_groups()] == ["scheduler"]
