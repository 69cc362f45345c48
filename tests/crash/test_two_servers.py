"""Two servers on one database and one warehouse, as replicas of each other."""

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import AlreadyExistsException, NoSuchObjectException
from tests.crash import processes
from tests.crash.storm import Storm
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until


@pytest.fixture
def pair(tmp_path: Path, postgres_url: str) -> Iterator[tuple[MetastoreServer, MetastoreServer]]:
    """Started at the same moment, on a database that has no schema yet."""
    warehouse = str(tmp_path / "warehouse")
    servers = [
        MetastoreServer(
            tmp_path / name,
            *("--database-url", postgres_url, "--warehouse-dir", warehouse),
            *("--workers", "1", "--housekeeping-seconds", "1"),
        )
        for name in ("one", "two")
    ]
    with ExitStack() as stack:
        with ThreadPoolExecutor(2) as pool:
            for server in pool.map(MetastoreServer.start, servers):
                stack.enter_context(server)
        yield servers[0], servers[1]


def test_a_change_is_seen_through_the_other_server_at_once(pair: tuple[MetastoreServer, MetastoreServer]) -> None:
    one, two = pair
    with ThriftClient(one.host, one.port) as writer, ThriftClient(two.host, two.port) as reader:
        writer.create_database(builders.database("d"))
        for number in range(30):
            writer, reader = reader, writer
            name = f"t{number}"
            writer.create_table(builders.table("d", name, keys=("ds",)))
            assert reader.get_table("d", name).tableName == name
            with pytest.raises(AlreadyExistsException):
                reader.create_table(builders.table("d", name))
            writer.add_partition(builders.partition("d", name, "1"))
            assert reader.get_partition_names("d", name, -1) == ["ds=1"]
            altered = writer.get_table("d", name)
            altered.parameters["seen"] = str(number)
            writer.alter_table("d", name, altered)
            assert reader.get_table("d", name).parameters["seen"] == str(number)
            altered.tableName = f"r{number}"
            writer.alter_table("d", name, altered)
            assert reader.get_all_tables("d") == [f"r{number}"]
            writer.drop_table("d", f"r{number}", True)
            with pytest.raises(NoSuchObjectException):
                reader.get_table("d", f"r{number}")


@pytest.mark.long
def test_each_is_killed_in_turn(pair: tuple[MetastoreServer, MetastoreServer], tmp_path: Path, seed: int) -> None:
    """Clients go to the other server, as with two URIs in `hive.metastore.uris`, and find all that they did."""
    chance = random.Random(seed)

    def connect() -> ThriftClient:
        """To one of the two; to the other if that one is down."""
        first, second = chance.sample(pair, 2)
        try:
            return ThriftClient(first.host, first.port, timeout=20)
        except TTransportException:
            return ThriftClient(second.host, second.port, timeout=20)

    storm = Storm(connect, tmp_path / "warehouse", seed, persistent=True)
    storm.start()
    for victim in (*pair, *pair):
        time.sleep(chance.uniform(0.3, 1.5))  # a random moment of the work
        before = storm.acknowledged
        processes.kill(processes.everything(victim))
        wait_until(lambda seen=before: storm.acknowledged > seen + 10, 30, "the storm goes on")
        victim.start()
    storm.stop()
    for server in pair:
        with ThriftClient(server.host, server.port) as client:
            for writer in storm.writers:
                writer.settle(client)
    assert sum(writer.breaks for writer in storm.writers) > 0
