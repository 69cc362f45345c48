"""Where messages come from: what the inputs have in common."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from lake.capture.debezium.events import Event, Statement
from lake.capture.debezium.state import Offset
from lake.capture.debezium.values import Placeholder
from lake.protocol.connection.closing import Closing

MAX_MESSAGE_BYTES: Final = 64 << 20
"""A longer line isn't taken for a message."""


class Arrived(NamedTuple):
    """A message. `place`: the file, or the partition of a topic; `next`: where the message after it begins."""

    place: str
    next: Offset
    event: Event | Statement | None


class Input(Closing):
    """Messages, in order for each place."""

    placeholder = Placeholder()
    """What stands for large values in the messages."""

    source: str
    """What is read, without anything secret: another source needs another raw table."""

    @abstractmethod
    def begin(self, offsets: Mapping[str, Offset]) -> None:
        """Reads on from there; places without an offset from their beginning.

        Raises CaptureError if the messages after an offset aren't there any more.
        """

    @abstractmethod
    def read(self, seconds: float) -> Sequence[Arrived]:
        """The next messages; none if none come for so long.

        Raises CaptureError for one that can't be captured; it says where it is. Raises OSError.
        """

    @property
    @abstractmethod
    def has_caught_up(self) -> bool:
        """Whether all has been read that was there at the beginning, or at the last `look_again`."""

    @abstractmethod
    def look_again(self) -> None:
        """Lets `has_caught_up` be about all that is there now. Raises OSError."""

    @abstractmethod
    def gone(self) -> Sequence[str]:
        """Places that aren't there any more, whose offsets may be forgotten."""
