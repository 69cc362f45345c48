"""Sends records that aren't events, such as those of an audit, to a webhook, a Redis stream or a topic of Kafka.

Whoever adds a record never waits. While the destination is away so many records are kept; those that come then are
lost, and counted. So a record that matters is also written elsewhere.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from eventbus.outlets.webhooks import Poster
from lake.protocol.events.streams import connect

ROOM = 10_000
"""Records that wait at most."""

AT_ONCE = 500
"""Records of one delivery."""

MOST_IN_STREAM = 1_000_000
"""Entries of a Redis stream, about; older ones are removed."""

CONTENT_TYPE = "application/x-ndjson"
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 10.0
_REMIND_SECONDS = 60.0

log = structlog.get_logger(__name__)


class Destination(Protocol):
    """Where records go."""

    def send(self, records: Sequence[str]) -> None:
        """Delivers records, each a line of JSON. Any exception means: try again."""


class WebhookDestination:
    """Posts records as lines of JSON, several in a request; signed like those of events, if there is a secret."""

    def __init__(self, url: str, secret: str | None, timeout: float = 10.0) -> None:
        """`timeout`: of a request, in seconds."""
        self._poster = Poster(url, secret, timeout, CONTENT_TYPE)

    def send(self, records: Sequence[str]) -> None:
        """See `Destination`. Raises NotAccepted, urllib3's HTTPError."""
        self._poster.send("".join(f"{each}\n" for each in records).encode())


class StreamDestination:
    """Adds records to a Redis stream, each as the field `record` of an entry."""

    def __init__(self, url: str, stream: str) -> None:
        """`url`: of Redis. Raises ValueError if it is none."""
        self._redis = connect(url)
        self._stream = stream

    def send(self, records: Sequence[str]) -> None:
        """See `Destination`. Raises redis' errors."""
        with self._redis.pipeline(transaction=True) as pipeline:
            for each in records:
                pipeline.xadd(self._stream, {"record": each}, maxlen=MOST_IN_STREAM, approximate=True)
            pipeline.execute()


class RecordOutlet:
    """Delivers records by a thread of its own, in their order. Thread-safe."""

    def __init__(
        self, name: str, destination: Destination, *, lost: Callable[[int], None] = lambda _: None, room: int = ROOM
    ) -> None:
        """`name`: for the log. `lost` is called with the number of records that could not be kept."""
        self._name = name
        self._destination = destination
        self._lost = lost
        self._waiting: queue.Queue[str] = queue.Queue(room)
        self._closing = threading.Event()
        self._sending: Sequence[str] = ()
        self._reminded = 0.0
        self._thread = threading.Thread(target=self._run, name=f"{name} outlet", daemon=True)
        self._thread.start()

    def add(self, record: str) -> None:
        """Takes a record, a line of JSON. Does not wait. After `close` it is lost, and counted."""
        if self._closing.is_set():
            self._lost(1)
            return
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self._lost(1)

    def close(self, seconds: float = 2.0) -> None:
        """Delivers what waits, for some seconds at most, and ends. What is left is lost, and counted.

        What is just being sent counts as lost, too: whether it arrives isn't known.
        """
        self._closing.set()
        self._thread.join(seconds)
        if left := self._waiting.qsize() + len(self._sending):
            self._lost(left)

    def _run(self) -> None:
        while True:
            records = self._next()
            if records:
                self._sending = records
                self._deliver(records)
                self._sending = ()
            elif self._closing.is_set():
                return

    def _next(self) -> list[str]:
        """The records that wait, AT_ONCE at most; waits for the first, but not long."""
        found: list[str] = []
        with contextlib.suppress(queue.Empty):
            found.append(self._waiting.get(timeout=0.2))
            while len(found) < AT_ONCE:
                found.append(self._waiting.get_nowait())
        return found

    def _deliver(self, records: Sequence[str]) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                self._destination.send(records)
                return
            except Exception as error:
                self._remind(error)
                if self._closing.wait(pause):
                    self._lost(len(records))
                    return
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _remind(self, error: Exception) -> None:
        if time.monotonic() - self._reminded >= _REMIND_SECONDS or not self._reminded:
            self._reminded = time.monotonic()
            log.error("records can't be delivered, they wait", outlet=self._name, error=f"{error!r:.300}")
