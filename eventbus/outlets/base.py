"""The interface of outlets: destinations outside of the metastore to which events are delivered."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lake.protocol.events.filters import Filter
from lake.protocol.events.history import History
from lake.protocol.events.types import Event


@dataclass(frozen=True, slots=True)
class LogState:
    """The log's state. `last`: the last event's number. `trimmed`: the number of the last event that was removed.

    `marks`: returns the marks of events by their numbers, as far as the log has them (see `epochs.marks`).
    """

    last: int
    trimmed: int
    history: History
    marks: Callable[[Sequence[int]], dict[int, str]]

    def differs(self, number: int, mark: str | None) -> bool:
        """Whether a delivered event is surely not the log's event of that number."""
        if number > self.last:
            return True
        return bool(mark) and self.marks([number]).get(number, mark) != mark


class OutOfStep(Exception):
    """The destination's position is not the last delivery's. Call `resume` again to learn where to go on."""


class Diverged(Exception):
    """The destination has events that the log doesn't have: the log was restored from a backup without a new epoch.

    `after`: the last number whose event is surely the same in both.
    """

    def __init__(self, after: int) -> None:
        super().__init__(f"events after {after} were delivered that the log doesn't have")
        self.after = after


class Outlet(ABC):
    """A destination of events.

    `name`: the group under which the position is stored. `wanted`: which events it receives. `batch`: the most events
    per delivery. `attempts`: how many deliveries of an event may fail before it becomes a dead letter; None: no limit.
    `longest_pause`: the most seconds between two attempts. `from_oldest`: whether a new outlet starts with the oldest
    event, rather than with the next one. `may_end_process`: delivery runs foreign code that may end the process. Then
    an attempt is counted before it is made, `attempts` is a number, and `batch` is 1.
    """

    name: str
    wanted: Filter = Filter()
    batch: int = 1
    attempts: int | None = None
    longest_pause: float = 60.0
    from_oldest: bool = False
    may_end_process: bool = False
    history: History | None = None
    """The log's history as of the last `resume`."""

    @abstractmethod
    def deliver(self, events: Sequence[Event]) -> None:
        """Delivers events in order. Any exception means: try again."""

    def resume(self, position: int, log: LogState) -> int:
        """Returns the number of the event after which to go on. Called at the start, and when an epoch has begun.

        `position`: the outlet's stored position. Raises Diverged.
        """
        self.history = log.history
        return position

    def look(self) -> None:  # noqa: B027 - most can't lose anything
        """Checks the destination. Called from time to time while there is nothing to deliver. Raises OutOfStep."""

    def forget(self, trimmed: int) -> None:  # noqa: B027 - most keep nothing
        """Called when the events up to a number have been removed from the log."""

    def close(self) -> None:  # noqa: B027 - many have none
        """Closes connections."""
