"""What a writer gets for heartbeats that are refused."""

import threading
from typing import Any

import pytest

from metastore.client.heartbeats import Heartbeats
from metastore.client.lake_types import Instant
from metastore.wire import lake as wire
from metastore.wire.hive import InvalidOperationException


class Completing:
    """A server that refuses a heartbeat, as the instant has been completed meanwhile."""

    def __init__(self) -> None:
        self.refusing = threading.Event()

    def lake_heartbeat_instant(self, *_: object) -> None:
        self.refusing.set()
        raise InvalidOperationException("the instant is completed: it needs no heartbeats")

    def close(self) -> None:
        pass


def test_an_instant_that_has_just_been_completed_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    server: Any = Completing()
    instant = Instant.of(wire.Instant("20260131120000000", "commit", "inflight", 0, 0))
    with Heartbeats(lambda: server, wire.TableReference(database="d", table="t"), instant, 0.01) as heartbeats:
        assert server.refusing.wait(30)
        heartbeats._thread.join(0.1)
    heartbeats._thread.join(30)
    assert caplog.messages == []
