"""How a program of the demo is stopped: between two statements, never inside one."""

import signal
from types import FrameType


class Stopped(Exception):
    """Somebody pressed Ctrl-C or sent SIGTERM."""


class StopSign:
    """Turns SIGINT and SIGTERM into `Stopped` at the next statement.

    Raising in the middle of one would leave the connection to Spark's JVM half read, and nothing could be
    cleared up through it.
    """

    def __init__(self) -> None:
        self.signal = 0

    def watch(self) -> None:
        """To be called again when Spark has started: it takes SIGINT for itself."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._seen)

    def _seen(self, number: int, _frame: FrameType | None) -> None:
        self.signal = number

    def check(self) -> None:
        if self.signal:
            raise Stopped
