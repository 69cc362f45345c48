"""Catalogs, which came after Hive 2.3."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlreadyExistsException,
    AlterCatalogRequest,
    Catalog,
    CreateCatalogRequest,
    DropCatalogRequest,
    GetCatalogRequest,
    GetDatabaseRequest,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)
from tests.support.builders import database
from tests.support.expect import refused

pytestmark = pytest.mark.hive4


@pytest.fixture
def catalog(client: ThriftClient, unused_name: str, tmp_path: Path) -> Iterator[str]:
    """The name of a catalog that nobody uses."""
    name = f"c_{unused_name}"
    client.create_catalog(CreateCatalogRequest(Catalog(name, "what it is for", f"file:{tmp_path}/{name}")))
    yield name
    client.drop_catalog(DropCatalogRequest(name))


def test_reads_back(client: ThriftClient, catalog: str, tmp_path: Path) -> None:
    found = client.get_catalog(GetCatalogRequest(catalog)).catalog
    assert (found.name, found.description) == (catalog, "what it is for")
    assert found.locationUri == f"file:{tmp_path}/{catalog}"
    assert {"hive", catalog} <= set(client.get_catalogs().names)


def test_has_a_default_database(client: ThriftClient, catalog: str) -> None:
    found = client.get_database_req(GetDatabaseRequest("default", catalog))
    assert (found.name, found.catalogName) == ("default", catalog)
    assert client.get_database(f"@{catalog}#default") == found


def test_altered(client: ThriftClient, catalog: str, tmp_path: Path) -> None:
    new = Catalog(catalog, "something else", f"file:{tmp_path}/other")
    client.alter_catalog(AlterCatalogRequest(catalog, new))
    found = client.get_catalog(GetCatalogRequest(catalog)).catalog
    assert (found.description, found.locationUri) == (new.description, new.locationUri)
    with refused(InvalidOperationException):
        client.alter_catalog(AlterCatalogRequest(catalog, new.replace(name=f"{catalog}_renamed")))


def test_taken(client: ThriftClient, catalog: str, tmp_path: Path) -> None:
    with refused(AlreadyExistsException):
        client.create_catalog(CreateCatalogRequest(Catalog(catalog, None, f"file:{tmp_path}/other")))


def test_dropped_when_empty(client: ThriftClient, catalog: str) -> None:
    client.create_database(database("inside", catalogName=catalog))
    with refused(InvalidOperationException):
        client.drop_catalog(DropCatalogRequest(catalog))
    client.drop_database(f"@{catalog}#inside", True, True)


def test_missing(client: ThriftClient, unused_name: str) -> None:
    with refused(NoSuchObjectException):
        client.get_catalog(GetCatalogRequest(unused_name))
    with refused(MetaException):
        client.drop_catalog(DropCatalogRequest("hive"))
