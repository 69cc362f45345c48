"""What an outlet is: a place outside of the metastore to which events are delivered."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from eventbus.events import Event
from eventbus.filters import Filter


class OutOfStep(Exception):
    """The place doesn't stand where the last delivery left it: ask it again where to go on."""


class Outlet(ABC):
    """`name` is the group under which its position is kept; at most `batch` events are delivered at once.

    `attempts` to deliver something are made before it is set aside as a dead letter; None: there is no end of them.
    `longest_pause` in seconds between two. A new outlet begins with the oldest event if `from_oldest`, else with those
    that come. Where delivering `may_end_process`, for it runs code that isn't ours, an attempt is counted before it is
    made; such an outlet has a number of attempts, and a batch of one.
    """

    name: str
    wanted: Filter = Filter()
    batch: int = 1
    attempts: int | None = None
    longest_pause: float = 60.0
    from_oldest: bool = False
    may_end_process: bool = False

    @abstractmethod
    def deliver(self, events: Sequence[Event]) -> None:
        """Delivers events, in order. Whatever it raises means that it has to be tried again."""

    def resume(self, position: int, last: int, trimmed: int) -> int:
        """After which event to go on. `position` is kept for the outlet; events up to `trimmed` are gone."""
        return position

    def look(self) -> None:  # noqa: B027 - most can't lose anything
        """Is called now and then while there is nothing to deliver. Raises OutOfStep."""

    def forget(self, trimmed: int) -> None:  # noqa: B027 - most keep nothing
        """The events up to a number have been removed from the log."""

    def close(self) -> None:  # noqa: B027 - many have none
        """Ends connections."""
