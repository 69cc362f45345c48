"""A worker process dies: its clients reconnect, everybody else notices nothing."""

import random
import time
from pathlib import Path

import pytest
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.thrift_client import ThriftClient
from tests.crash import processes
from tests.crash.storm import Storm
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

WORKERS = 2


@pytest.mark.long
def test_only_the_dead_worker_s_clients_notice(tmp_path: Path) -> None:
    with MetastoreServer(tmp_path / "data", "--workers", str(WORKERS)) as server:
        victim = processes.workers(server)[0]
        clients: list[ThriftClient] = []
        while len(processes.clients_of(victim)) < 2 or len(clients) - len(processes.clients_of(victim)) < 2:
            assert len(clients) < 100, "all connections go to one worker"
            clients.append(ThriftClient(server.host, server.port))
            clients[-1].getStatus()
        lost = len(processes.clients_of(victim))

        victim.kill()
        victim.wait(10)

        broken = 0
        for client in clients:
            try:
                assert client.get_all_databases() == ["default"]
            except (TTransportException, OSError):
                broken += 1
        assert broken == lost
        with ThriftClient(server.host, server.port) as again:
            assert again.get_all_databases() == ["default"]
        wait_until(lambda: len(processes.workers(server)) == WORKERS, 10, "the worker is replaced")
        assert victim.pid not in {each.pid for each in processes.workers(server)}


def test_writers_lose_nothing_when_workers_die(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with MetastoreServer(tmp_path / "data", "--workers", str(WORKERS), "--housekeeping-seconds", "1") as server:

        def connect() -> ThriftClient:
            return ThriftClient(server.host, server.port, timeout=20)

        storm = Storm(connect, tmp_path / "data/warehouse", seed, persistent=True)
        storm.start()
        for _ in range(4):
            time.sleep(chance.uniform(0.2, 2.0))  # a random moment of the work
            # The oldest: all who have connections are killed sooner or later.
            min(processes.workers(server), key=lambda worker: worker.create_time()).kill()
            wait_until(lambda: len(processes.workers(server)) == WORKERS, 10, "the worker is replaced")
        time.sleep(1)  # the storm goes on for a while
        storm.stop()
        storm.settle()
        assert sum(writer.breaks for writer in storm.writers) > 0
        assert storm.acknowledged > 20
