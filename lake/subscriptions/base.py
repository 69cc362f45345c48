"""The interface of subscriptions, and what their implementations share."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime
from types import TracebackType
from typing import Literal, Self

from lake.protocol.events.types import Event

Start = Literal["latest", "earliest"] | int | datetime | str
"""Where to begin: a name, an event's number, a time, or a bookmark. See `eventbus.subscribe`."""

WAIT_SECONDS = 30.0
"""The length of one long poll. The connection's own time limit is longer."""

ANSWER_SECONDS = 10.0
"""Time limit for a response, in addition to the time for which a poll may wait."""

PATIENCE_SECONDS = 60.0
"""How long `acknowledge` retries while the server or Redis can't be reached."""


class SourceUnavailable(ConnectionError):
    """The metastore, or Redis, doesn't answer. Nothing is lost: call again."""


class Subscription(ABC):
    """An endless iterator of events. Not thread-safe.

    Iterating raises EventsGone if the log no longer has the events after the position: read the current state of the
    tables, then start after `oldest - 1`. Its `restored` is true if the metastore was restored from a backup, and
    events that this subscriber has received are undone: then also discard everything derived from them.
    """

    def __init__(self, start: Start) -> None:
        self._start, self._history = _parted(start)
        self._position: int | None = None
        self._pending: list[Event] = []

    @property
    def position(self) -> int | None:
        """The number of the last event that was received or filtered out; None before the first read."""
        if self._pending:
            return self._pending[-1].number - 1
        return self._position

    @property
    def bookmark(self) -> str | None:
        """The position together with the log's identity and epoch; None before the first read.

        A program that stores its position itself should store this, and pass it as `start`.
        """
        if self.position is None or self._history is None:
            return None
        return f"{self.position}@{self._history}"

    @abstractmethod
    def acknowledge(self, event: Event | int | None = None) -> None:
        """Stores for the group that all events up to `event` are processed; by default up to `position`.

        Raises ValueError without a group. Raises SourceUnavailable after PATIENCE_SECONDS without a response; then the
        events arrive again.
        """

    @abstractmethod
    def poll(self, wait: float = 0.0) -> list[Event]:
        """The next events; an empty list if there are none within `wait` seconds.

        Raises SourceUnavailable if there is no response within that time and a few seconds more. Raises EventsGone.
        """

    @abstractmethod
    def close(self) -> None:
        """Closes the connection."""

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while not self._pending:
            with contextlib.suppress(SourceUnavailable):  # already logged; an iterator waits for ever
                self._pending = self.poll(WAIT_SECONDS)[::-1]
        return self._pending.pop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


def _parted(start: Start) -> tuple[Literal["latest", "earliest"] | int | datetime, str | None]:
    """Splits a bookmark into the number and the history; other starts have no history. Raises ValueError."""
    if not isinstance(start, str) or start in ("latest", "earliest"):
        return start, None  # type: ignore[return-value]
    number, at, history = start.partition("@")
    if not at or not number.isdecimal():
        raise ValueError(f"{start!r} is no valid start: expected latest, earliest, a number, a datetime or a bookmark")
    return int(number), history
