"""Heartbeats: one thread sends those of all instants, and what a writer gets for those that are refused."""

import threading
from collections import Counter
from contextlib import ExitStack
from typing import Any

import pytest

from lake.client import heartbeats
from lake.client.heartbeats import Heartbeats
from lake.client.lake_types import Instant
from lake.protocol import lake as wire
from lake.protocol.hive import InvalidOperationException
from tests.support.waiting import wait_until


class Completing:
    """A server that refuses a heartbeat, as the instant has been completed meanwhile."""

    def __init__(self) -> None:
        self.refusing = threading.Event()

    def lake_heartbeat_instant(self, *_: object) -> None:
        self.refusing.set()
        raise InvalidOperationException("the instant is completed: it needs no heartbeats")

    def close(self) -> None:
        pass


class Counting:
    """A server that counts heartbeats by instant."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()
        self.threads: set[int] = set()

    def lake_heartbeat_instant(self, _: object, timestamp: str, *__: object) -> None:
        self.heard[timestamp] += 1
        self.threads.add(threading.get_ident())

    def close(self) -> None:
        pass


TABLE = wire.TableReference(database="d", table="t")


def instant(number: int) -> Instant:
    return Instant.of(wire.Instant(f"{20260131120000000 + number}", "commit", "inflight", 0, 0))


def ended() -> bool:
    return not any(each.name == "heartbeats" for each in threading.enumerate())


def test_an_instant_that_has_just_been_completed_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    server: Any = Completing()
    with Heartbeats(lambda: server).sent(TABLE, instant(0), 0.01):
        assert server.refusing.wait(30)
    wait_until(ended)
    assert caplog.messages == []


def test_an_instant_that_is_gone_is_named(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "_HEARD_SECONDS", 0.01)
    server: Any = Completing()
    with Heartbeats(lambda: server).sent(TABLE, instant(0), 0.01):
        wait_until(lambda: bool(caplog.messages))
        server.refusing.clear()
    assert "the instant 20260131120000000 commit is no more" in caplog.messages[0]
    assert not server.refusing.is_set(), "there are no more heartbeats"


def test_many_instants_have_one_thread() -> None:
    server: Any = Counting()
    beating = Heartbeats(lambda: server)
    with ExitStack() as stack:
        for number in range(200):
            stack.enter_context(beating.sent(TABLE, instant(number), 0.05))
        wait_until(lambda: len(server.heard) == 200 and min(server.heard.values()) >= 2)
        with beating.sent(TABLE, instant(200), 0.01):
            wait_until(lambda: server.heard[instant(200).timestamp] >= 2)
        assert len(server.threads) == 1
    wait_until(ended)
