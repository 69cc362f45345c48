"""Changes that are made again because their answer was lost."""

import logging
import socket
from typing import Any

import pytest
from thrift.transport.TTransport import TTransportException

from lake.client.reconnecting import ReconnectingClient, connect_to
from lake.protocol.hive import AlreadyExistsException, InvalidOperationException, MetaException

LOST = TTransportException(message="the connection broke")
BUSY = MetaException("another change came between; try again")
DONE = AlreadyExistsException("it exists")


class Server:
    """Answers calls from a script, one after the other: None, or an exception."""

    def __init__(self, *answers: BaseException | None) -> None:
        self.answers = list(answers)

    def create(self) -> None:
        if (answer := self.answers.pop(0)) is not None:
            raise answer

    def close(self) -> None:
        pass


def change(*answers: Exception | None) -> None:
    server: Any = Server(*answers)
    with ReconnectingClient(lambda: server, retry_seconds=30) as client:
        client.change(lambda each: each.create(), done=AlreadyExistsException)
    assert server.answers == []


@pytest.mark.parametrize("lost", [LOST, BUSY])
def test_what_was_done_before_counts(lost: Exception) -> None:
    change(lost, DONE)
    change(lost, None)


def test_what_somebody_else_did_before_is_refused() -> None:
    with pytest.raises(AlreadyExistsException):
        change(DONE)


def test_other_refusals_stay() -> None:
    with pytest.raises(InvalidOperationException):
        change(LOST, InvalidOperationException("no"))


def test_a_late_answer_is_nobodys() -> None:
    """An answer that is not waited for any more would be taken for that of the next call on the connection."""
    servers: list[Any] = [Server(KeyboardInterrupt()), Server(None)]
    with ReconnectingClient(lambda: servers.pop(0)) as client:
        with pytest.raises(KeyboardInterrupt):
            client.call(lambda each: each.create())
        client.call(lambda each: each.create())
    assert servers == []


def test_a_server_that_is_away_is_logged_once_for_each_try(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uri = f"thrift://127.0.0.1:{listener.getsockname()[1]}"
    with (
        ReconnectingClient(connect_to(uri), retry_seconds=0.3) as client,
        caplog.at_level(logging.WARNING),
        pytest.raises(TTransportException),
    ):
        client.call(lambda each: each.getVersion())
    assert {each.name for each in caplog.records} == {"lake.client.reconnecting"}
