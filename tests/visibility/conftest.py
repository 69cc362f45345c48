"""A server with a second listener, connections of every scope, and databases."""

import itertools
import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import NoSuchObjectException
from tests.support.builders import database
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until
from tests.visibility.readers import Ports, Readers

NUMBERS = itertools.count(1)
SECOND = re.compile(r"uncommitted partitions included: thrift://[^:]+:(\d+)")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    options = ("--uncommitted-port", "0", "--workers", "1")
    with MetastoreServer(tmp_path_factory.mktemp("visibility") / "data", *options) as running:
        yield running


@pytest.fixture(scope="session")
def ports(server: MetastoreServer) -> Ports:
    # Printed after the line that says it is ready.
    answer = wait_until(lambda: SECOND.search("".join(server.output)), 10, "the server prints its second port")
    assert answer is not None
    return Ports(server.host, server.port, int(answer[1]))


@pytest.fixture(scope="session")
def warehouse(server: MetastoreServer) -> Path:
    """The directory in which the server makes databases."""
    return server.data_dir / "warehouse"


@pytest.fixture
def readers(ports: Ports) -> Iterator[Readers]:
    """Makes connections, closed when the test ends."""
    with ExitStack() as stack:
        yield Readers(ports, stack)


@pytest.fixture
def client(readers: Readers) -> ThriftClient:
    """A connection without a scope."""
    return readers.plain()


@pytest.fixture
def seeing(readers: Readers) -> ThriftClient:
    """A connection that sees all partitions."""
    return readers.metaconf()


@pytest.fixture
def db(client: ThriftClient) -> Iterator[str]:
    """The name of an empty database, dropped afterwards."""
    name = f"db_{next(NUMBERS)}"
    client.create_database(database(name))
    yield name
    with suppress(NoSuchObjectException):
        client.drop_database(name, True, True)
