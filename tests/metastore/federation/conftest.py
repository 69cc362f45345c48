"""A front before a server of ours and Hive's own."""

from collections.abc import Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from tests.hive_client.conftest import jvm
from tests.support.front import FrontServer
from tests.support.reference import HiveReference
from tests.support.server import MetastoreServer

__all__ = ["jvm"]


@pytest.fixture(scope="session")
def front(
    metastore_server: MetastoreServer, hive_reference: HiveReference, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontServer]:
    """`main` is ours, under its own names. `eu` is Hive 2.3, under names with `eu_` and as catalog."""
    hive = f"thrift://{hive_reference.host}:{hive_reference.port}"
    backends = {
        "main": f'uris = "{metastore_server.uri}"\nprimary = true\ndeny = ["hidden", "people"]',
        "eu": f'uris = ["{hive}"]\nprefix = "eu_"\nnumber = 1\nrename = {{ people = "hr" }}',
    }
    with FrontServer(tmp_path_factory.mktemp("front"), backends) as server:
        yield server


@pytest.fixture
def client(front: FrontServer) -> Iterator[ThriftClient]:
    with ThriftClient(front.host, front.port) as connection:
        yield connection


@pytest.fixture
def ours(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(metastore_server.host, metastore_server.port) as connection:
        yield connection


@pytest.fixture
def hive(hive_reference: HiveReference) -> Iterator[ThriftClient]:
    with ThriftClient(hive_reference.host, hive_reference.port) as connection:
        yield connection
