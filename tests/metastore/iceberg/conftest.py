"""The REST catalog in front of a server, in an HTTP server of its own."""

import itertools
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import anyio.from_thread
import pytest
import requests
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request

from lake.protocol.connection.thrift_client import ThriftClient
from metastore.iceberg.routes import BASE, Port, iceberg_routes
from metastore.warehouse import Warehouse
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)


class Refused(Exception):
    status = 413
    headers: dict[str, str] = {}


def read_body(request: Request, limit: int) -> bytes:
    content: bytes = anyio.from_thread.run(request.body)
    if len(content) > limit:
        raise Refused("the body is too long")
    return content


@dataclass
class Catalog:
    """A client of the REST catalog that knows nothing but HTTP."""

    uri: str
    server: MetastoreServer
    session: requests.Session = field(default_factory=requests.Session)

    def send(self, method: str, path: str, body: Any = None, **named: Any) -> requests.Response:
        return self.session.request(method, f"{self.uri}/v1/{path}", json=body, timeout=60, **named)

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


def serve(port: Port, warehouse: Warehouse) -> Iterator[str]:
    """Serves the catalog's routes in a thread, and gives their address."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = Starlette(routes=iceberg_routes(port, warehouse))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}{BASE}"
    server.should_exit = True
    thread.join(30)


@pytest.fixture(scope="session")
def rest(metastore_server: MetastoreServer) -> Iterator[Catalog]:
    """In front of the server that all tests share."""
    port = Port(
        caller=lambda request: None,
        connect=lambda caller: ThriftClient(metastore_server.host, metastore_server.port),
        body=read_body,
        refused=Refused,
    )
    for uri in serve(port, Warehouse(str(metastore_server.data_dir / "warehouse"))):
        yield Catalog(uri, metastore_server)


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    """What clients of Hive's see."""
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        yield client
