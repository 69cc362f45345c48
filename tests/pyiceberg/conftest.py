"""PyIceberg's catalog of Hive, on our server."""

import itertools
from collections.abc import Iterator

import pytest
from pyiceberg.catalog.hive import HiveCatalog

from lake.protocol.connection.thrift_client import ThriftClient
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def catalog(metastore_server: MetastoreServer) -> HiveCatalog:
    return HiveCatalog("lake", uri=metastore_server.uri)


@pytest.fixture
def namespace(catalog: HiveCatalog) -> str:
    """A namespace of the test's own."""
    name = f"iceberg_{next(NUMBERS)}"
    catalog.create_namespace(name)
    return name


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    """What another engine sees of the tables."""
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        yield client
