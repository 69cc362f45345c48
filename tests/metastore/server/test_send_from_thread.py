"""A thread that sends a reply itself, past the event loop: `Connection.send_from_thread`."""

import asyncio
import os
import socket
from collections.abc import Iterator
from typing import Any, cast

import pytest

from metastore.server.connection.connection import Connection, State
from metastore.server.connection.context import WorkerContext


class Transport(asyncio.Transport):
    """asyncio's, as far as a connection asks it for its socket."""

    def __init__(self, own: socket.socket) -> None:
        super().__init__({"socket": own, "peername": ("127.0.0.1", 1)})

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class NoConnections:
    def remove(self, connection: Connection) -> None:
        pass


class Context:
    """Of a worker's context, what a connection takes that answers nothing."""

    limits = None
    connections = NoConnections()


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, client = socket.socketpair()
    ours.setblocking(False)
    client.settimeout(10)
    with ours, client:
        yield ours, client


def opened(own: socket.socket) -> Connection:
    connection = Connection("1", cast(WorkerContext, Context()), State)
    connection.connection_made(Transport(own))
    return connection


def test_all_that_fits_is_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, client = pair
    connection = opened(ours)
    assert connection.send_from_thread(b"reply") == 5
    assert client.recv(100) == b"reply"
    sent = connection.send_from_thread(bytes(64 << 20))
    assert 0 < sent < 64 << 20
    assert connection.send_from_thread(b"more") == 0


def test_nothing_is_sent_past_a_layer(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, _ = pair
    connection = opened(ours)
    connection.transport = cast(Any, object())
    assert connection.send_from_thread(b"reply") == 0


def test_nothing_overtakes_what_is_unsent(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, _ = pair
    connection = opened(ours)
    connection.unsent = True
    assert connection.send_from_thread(b"reply") == 0


def test_a_client_that_has_gone(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, client = pair
    connection = opened(ours)
    client.close()
    assert connection.send_from_thread(b"reply") == 0


def test_the_descriptor_of_an_ended_connection_is_somebody_elses(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, _ = pair
    connection = opened(ours)
    connection.connection_lost(None)
    theirs, other = socket.socketpair()
    with theirs, other:
        os.dup2(theirs.fileno(), ours.fileno())
        assert connection.send_from_thread(b"reply") == 0
        other.setblocking(False)
        with pytest.raises(BlockingIOError):
            other.recv(100)
