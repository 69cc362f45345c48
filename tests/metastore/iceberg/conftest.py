"""A server with the REST catalog, and a client that knows nothing but HTTP."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog

from lake.protocol.connection.thrift_client import ThriftClient
from lake.tables.lake import LakeClient
from metastore.iceberg.routes import BASE
from tests.metastore.iceberg.shown import Duck
from tests.support.exposition import http_address
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)


@dataclass
class Catalog:
    """The REST catalog of a server. `user`: the name and password that requests are sent with."""

    server: MetastoreServer
    user: tuple[str, str] | None = None
    session: requests.Session = field(default_factory=requests.Session)

    @property
    def uri(self) -> str:
        return f"{http_address(self.server)}{BASE}"

    def send(self, method: str, path: str, body: Any = None, **named: Any) -> requests.Response:
        return self.session.request(method, f"{self.uri}/v1/{path}", json=body, timeout=60, auth=self.user, **named)

    def ask(self, method: str, path: str, body: Any = None, **named: Any) -> Any:
        """The answer's value. Raises AssertionError for any other status than 2xx."""
        response = self.send(method, path, body, **named)
        assert response.ok, response.text
        return response.json() if response.content else None

    def refused(self, method: str, path: str, body: Any = None, **named: Any) -> tuple[int, str, str]:
        """The status, the type and the text of an error."""
        response = self.send(method, path, body, **named)
        error = response.json()["error"]
        assert error["code"] == response.status_code
        return response.status_code, error["type"], error["message"]

    def namespace(self) -> str:
        """A new namespace of the test's own."""
        name = f"rest_{next(NUMBERS)}"
        self.ask("POST", "hive/namespaces", {"namespace": [name], "properties": {}})
        return name


@pytest.fixture(scope="session")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    """A server shared by all tests."""
    with MetastoreServer(tmp_path_factory.mktemp("rest") / "data", "--http-port", "0", "--workers", "1") as server:
        yield Catalog(server)


@pytest.fixture
def client(rest: Catalog) -> Iterator[ThriftClient]:
    """What clients of Hive's see."""
    with ThriftClient(rest.server.host, rest.server.port) as client:
        yield client


@pytest.fixture(scope="module")
def lake(rest: Catalog) -> Iterator[LakeClient]:
    with LakeClient(rest.server.uri) as client:
        yield client


@pytest.fixture(scope="module")
def ours(rest: Catalog) -> RestCatalog:
    return RestCatalog("ours", uri=rest.uri)


@pytest.fixture
def duck(rest: Catalog) -> Iterator[Duck]:
    duck = Duck(rest.uri)
    with duck.connection:
        yield duck
