"""A long reply breaks off while it leaves: its client must not take it for whole, and nobody after it may notice."""

import socket
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import NullPool, create_engine, text

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import Partition
from metastore.store.migrations import application_name
from metastore.store.partition.partitions import PAGE
from tests.metastore.server.stand_in import call
from tests.support import builders
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

DB, TABLE = "d", "t"
COUNT = PAGE + 500  # more than a page, of which a client that doesn't read keeps the server from sending the first
BYTES = COUNT * 3_000


@pytest.fixture(scope="module")
def url(postgres: Postgres) -> Iterator[str]:
    with postgres.fresh_database(upgraded=True) as url:
        yield url


@pytest.fixture(scope="module")
def server(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """Of one connection to its database; its cache has room for the reply."""
    options = ("--workers", "1", "--threads", "2", "--database-pool-size", "1", "--cache-memory", "400MiB")
    directory = tmp_path_factory.mktemp("half") / "data"
    with MetastoreServer(directory, "--database-url", url, *options) as server:
        with ThriftClient(server.host, server.port) as client:
            client.create_database(builders.database(DB))
            client.create_table(builders.view(DB, TABLE, keys=("ds",)))
            parameters = {"k": "v" * 3_000}
            names = [f"{number:05}" for number in range(COUNT)]
            client.add_partitions([Partition([name], DB, TABLE, parameters=parameters) for name in names])
        yield server


def broken(server: MetastoreServer) -> int:
    """How many replies have broken off so far."""
    return server.log.read_text().count("reply not delivered")


def cut(url: str, reader: socket.socket) -> None:
    """Postgres ends the connection on which the rest would be read; the client takes what comes."""
    query = text("SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE application_name = :name")
    with create_engine(url, poolclass=NullPool).connect() as connection:
        assert set(connection.execute(query, {"name": application_name()}).scalars()) == {True}
    received = 0
    while piece := reader.recv(1 << 20):
        received += len(piece)
    assert received < BYTES


def leave(_url: str, reader: socket.socket) -> None:
    """The client has enough."""
    reader.close()


@pytest.mark.long
@pytest.mark.parametrize("end", [cut, leave])
def test_the_next_one_has_it_whole(
    server: MetastoreServer, url: str, end: Callable[[str, socket.socket], None]
) -> None:
    before = broken(server)
    limit = COUNT + 1 if end is cut else COUNT + 2  # so that it has not been asked before
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        reader.settimeout(60)
        reader.connect((server.host, server.port))
        reader.sendall(call("get_partitions", DB, TABLE, limit))
        assert reader.recv(1)
        end(url, reader)
    wait_until(lambda: broken(server) > before)
    with ThriftClient(server.host, server.port) as client:
        for _ in range(2):
            assert len(client.get_partitions(DB, TABLE, limit)) == COUNT
        assert len(client.get_partition_names(DB, TABLE, 7)) == 7
