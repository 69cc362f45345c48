"""Which calls the event loop makes itself, instead of handing them to a thread: see `metastore.in_loop`."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from metastore.in_loop import LoopCall, NeedsThread

_AFTER_A_FAILURE = 100

T = TypeVar("T")


class LoopCalls:
    """Makes calls in the event loop, as long as there are connections to the database for them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, database_ready: Callable[[], bool], most: int) -> None:
        """`database_ready`: whether a call would find a connection at once. `most`: so many calls at a time.

        It must be less than the pool of connections has: the loop may have to wait for one that a thread is using, but
        never for one that waits for the loop.
        """
        self._loop = loop
        self._database_ready = database_ready
        self._free = most

    def begin(self, work: Callable[[], T], then: Callable[[T], None], otherwise: Callable[[NeedsThread], None]) -> bool:
        """Makes a call in the loop, see `LoopCall`. False: not now, nothing was done."""
        if not self._free or not self._database_ready():
            return False
        self._free -= 1
        LoopCall(self._loop, work, partial(self._done, then), partial(self._done, otherwise)).begin()
        return True

    def _done(self, then: Callable[[T], None], result: T) -> None:
        self._free += 1
        then(result)


class LastCalls:
    """What a connection's last calls say about the next one: whether it will be one message to the database."""

    __slots__ = ("_in_a_row", "_method")

    def __init__(self) -> None:
        self._method = ""
        self._in_a_row = 0

    @property
    def suggest_any(self) -> bool:
        """Whether there is a method whose calls had better be made in the loop."""
        return self._in_a_row > 0

    def suggest_loop(self, method: str) -> bool:
        """Whether a call of that method had better be made in the loop."""
        return self.suggest_any and method == self._method

    def were_one_message(self, method: str) -> None:
        """A call of that method was."""
        self._method = method
        self._in_a_row += 1

    def needed_thread(self) -> None:
        """The call that was begun in the loop had to be made again. It will be some time before the next one is."""
        self._in_a_row = -_AFTER_A_FAILURE
