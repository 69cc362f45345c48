"""Connections to workers that the HTTP port keeps: for the same caller alone, and for a while."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from thrift.Thrift import TException

from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import GetCatalogRequest, NoSuchObjectException
from metastore.server.credentials.identity import Identity
from metastore.server.login.passing_on import PassedOn
from metastore.server.web import kept_connections
from metastore.server.web.kept_connections import KeptConnections
from metastore.server.web.worker_client import WorkerClient
from tests.metastore.iceberg.conftest import Catalog
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

ANN = PassedOn(Identity("ann", "plain", ("sales",), passwords=(("ann", "1"),)), "10.0.0.1:5000")
OTHERS = {
    "nobody": PassedOn(None, ANN.peer),
    "peer": replace(ANN, peer="10.0.0.1:5001"),
    "groups": replace(ANN, identity=replace(ANN.identity, groups=())),
    "proxy": replace(ANN, identity=replace(ANN.identity, real_user="trino")),
    "password": replace(ANN, identity=replace(ANN.identity, passwords=(("ann", "2"),))),
    "token": replace(ANN, identity=replace(ANN.identity, mechanism="token", token=7)),
}


class Opened:
    """Opens connections to a server, and remembers them."""

    def __init__(self, server: MetastoreServer) -> None:
        self.clients: list[WorkerClient] = []
        self._server = server

    def __call__(self, caller: PassedOn) -> WorkerClient:
        client = WorkerClient(self._server.host, self._server.port, timeout=60, login=Login())
        self.clients.append(client)
        return client


@pytest.fixture
def opened(rest: Catalog) -> Iterator[Opened]:
    found = Opened(rest.server)
    yield found
    for each in found.clients:
        each.close()


def use(kept: KeptConnections, caller: PassedOn = ANN) -> WorkerClient:
    with kept.connection(caller) as client:
        client.get_all_databases()
        return client


def test_the_next_request_of_a_caller_has_the_same(opened: Opened) -> None:
    kept = KeptConnections(opened)
    assert use(kept) is use(kept)
    with kept.connection(ANN) as client, pytest.raises(NoSuchObjectException):
        client.get_catalog(GetCatalogRequest("nothing"))
    assert use(kept) is client
    assert len(opened.clients) == 1


@pytest.mark.parametrize("who", OTHERS)
def test_others_have_another(opened: Opened, who: str) -> None:
    kept = KeptConnections(opened)
    first = use(kept)
    assert use(kept, OTHERS[who]) is not first
    assert use(kept) is first


def test_two_requests_at_once_have_one_each(opened: Opened) -> None:
    kept = KeptConnections(opened)
    with kept.connection(ANN) as first, kept.connection(ANN) as second:
        assert first is not second
    assert use(kept) in (first, second)
    assert sum(each._socket.isOpen() for each in opened.clients) == 1


def test_a_call_that_broke_off_is_not_gone_on_with(opened: Opened) -> None:
    """Its answer would be taken for that of the next call."""
    kept = KeptConnections(opened)
    with kept.connection(ANN) as client, pytest.raises(OSError):
        client._transport.write = raising
        client.get_all_databases()
    assert use(kept) is not client


def raising(data: bytes) -> None:
    raise OSError("no route")


def test_what_the_worker_ended_is_replaced(opened: Opened) -> None:
    kept = KeptConnections(opened)
    first = use(kept)
    first._socket.handle.shutdown(socket.SHUT_WR)  # so the worker hangs up
    wait_until(lambda: not first.is_usable)
    assert use(kept) is not first


def test_they_are_kept_for_a_while(opened: Opened) -> None:
    kept = KeptConnections(opened, seconds=0.2)
    first = use(kept)
    wait_until(lambda: not first._socket.isOpen())
    assert use(kept) is not first


def test_some_are_kept(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_connections, "MOST_KEPT", 2)
    kept = KeptConnections(opened)
    callers = [replace(ANN, peer=str(number)) for number in range(3)]
    found = [use(kept, each) for each in callers]
    assert [each._socket.isOpen() for each in found] == [False, True, True]
    kept.close()
    assert not any(each._socket.isOpen() for each in found)


@pytest.mark.long
def test_a_worker_that_is_killed_between_requests(tmp_path: Path) -> None:
    """Neither a read nor a change fails: the connection is seen to have ended before anything is sent."""
    with MetastoreServer(tmp_path / "data", "--http-port", "0", "--workers", "1") as server:
        rest = Catalog(server)
        path = f"hive/namespaces/{rest.namespace()}"
        [worker] = workers(server)
        worker.kill()
        wait_until(lambda: not worker.is_running())
        wait_until(lambda: answers(server))
        rest.ask("POST", f"{path}/properties", {"removals": [], "updates": {"a": "1"}})
        [worker] = workers(server)
        worker.kill()
        wait_until(lambda: not worker.is_running())
        wait_until(lambda: answers(server))
        assert rest.ask("GET", path)["properties"]["a"] == "1"


def workers(server: MetastoreServer) -> list[psutil.Process]:
    """The processes to which something is connected on the Thrift port."""
    return [
        each
        for each in psutil.Process(server.pid).children(recursive=True)
        if any(
            found.status == psutil.CONN_ESTABLISHED and found.laddr.port == server.port
            for found in each.net_connections("tcp")
        )
    ]


def answers(server: MetastoreServer) -> bool:
    try:
        with ThriftClient(server.host, server.port) as client:
            return bool(client.get_all_databases())
    except (OSError, TException):
        return False
