"""Heartbeats of instants and locks: if their holder dies, the server aborts an instant, or has its plan run by others,
and forgets a lock."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from thrift.Thrift import TException

from lake.client.lake_types import Instant
from lake.client.reconnecting import Connect, ReconnectingClient
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import HeartbeatRequest, InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import TableReference, TableReplaced
from lake.protocol.struct import ExceptionStruct

logger = logging.getLogger(__name__)

_HEARD_SECONDS = 5.0
"""How long a refused heartbeat waits for its instant to end before it is logged."""

_RETRY_SECONDS = 10.0
_LONGEST_WAIT = 3600.0


@dataclass(eq=False)
class _Beating:
    """What has heartbeats every so many seconds. `due`: when the next is, by the monotonic clock.

    `named`: what it is, for the log. `beat` sends one. `refused` is why the server refused one: then there are no more.
    """

    named: str
    beat: Callable[[ThriftClient], object]
    seconds: float
    due: float
    refused: str | None = None


class Heartbeats:
    """Sends those of any number of them, from one thread and connection of its own while there are some."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._beating: list[_Beating] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def sent(self, table: TableReference, instant: Instant, seconds: float) -> Iterator[None]:
        """Sends heartbeats of an instant while the block runs, the first after `seconds`."""

        def beat(opened: ThriftClient) -> None:
            opened.lake_heartbeat_instant(table, instant.timestamp, instant.action, instant.running)

        with self._sent(f"the instant {instant.timestamp} {instant.action}", beat, seconds):
            yield

    @contextmanager
    def sent_of_lock(self, number: int, seconds: float) -> Iterator[None]:
        """Sends heartbeats of a lock of Hive's while the block runs, the first after `seconds`."""

        def beat(opened: ThriftClient) -> None:
            opened.heartbeat(HeartbeatRequest(lockid=number))

        with self._sent(f"the lock {number}", beat, seconds):
            yield

    @contextmanager
    def _sent(self, named: str, beat: Callable[[ThriftClient], object], seconds: float) -> Iterator[None]:
        each = _Beating(named, beat, seconds, time.monotonic() + seconds)
        with self._changed:
            self._beating.append(each)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="heartbeats", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._beating.remove(each)
                self._changed.notify()

    def _run(self) -> None:
        client = ReconnectingClient(self._connect, retry_seconds=_RETRY_SECONDS)
        while (each := self._next()) is not None:
            self._send(client, each)
        client.close()

    def _next(self) -> _Beating | None:
        """Waits for the next that is due; None, and the thread ends, when there are no more."""
        with self._changed:
            while self._beating:
                each = min(self._beating, key=lambda beating: beating.due)
                rest = each.due - time.monotonic()
                if rest <= 0:
                    return each
                self._changed.wait(min(rest, _LONGEST_WAIT))
            self._thread = None
            return None

    def _send(self, client: ReconnectingClient, each: _Beating) -> None:
        if each.refused is not None:
            logger.warning("%s is no more: %s", each.named, each.refused)
            each.due = float("inf")
            return
        each.due = time.monotonic() + each.seconds
        try:
            client.call(each.beat)
        except (NoSuchObjectException, InvalidOperationException, TableReplaced) as error:
            # It may have been completed while the heartbeat waited: the writer hears of that at the same time.
            each.refused = error.message
            each.due = time.monotonic() + _HEARD_SECONDS
        except (ExceptionStruct, TException, OSError) as error:
            logger.warning("no heartbeat of %s was heard: %s", each.named, error)
