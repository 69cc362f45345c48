"""Calls that an event loop makes itself, and that are suspended while Postgres works.

To hand a small call to a thread, and its result back, costs as much as a third of its work. A call in the loop may
compute, and have one transaction carried out that is a single message. While it waits for the answer, the loop goes
on. Whatever else would take time raises NeedsThread before anything is done: the call is then made again in a thread.
"""

import asyncio
import os
import select
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from greenlet import getcurrent, greenlet

T = TypeVar("T")
A = TypeVar("A")

_READ_BYTES = 65_536


class NeedsThread(BaseException):
    """A call would hold up the event loop. Nothing was done, and it can be made again in a thread.

    It is no Exception, so that what handles a call's errors doesn't take it for one. `once`: the next call of the same
    kind will probably need none.
    """

    def __init__(self, *, once: bool = False) -> None:
        super().__init__()
        self.once = once


class LoopCall(greenlet, Generic[T]):
    """One call in an event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[], T],
        then: Callable[[T], None],
        otherwise: Callable[[NeedsThread], None],
    ) -> None:
        """`work` is the call, which must not raise. `then` gets its result. `otherwise` is called if it needs a thread.

        Use it in the loop, not within another call.
        """
        super().__init__(work)
        self._caller = getcurrent()
        self._loop = loop
        self._then = then
        self._otherwise = otherwise
        self._sent = False

    def begin(self) -> None:
        """Begins in the loop's next turn."""
        self._loop.call_soon(self._go_on)

    @property
    def may_have_done_something(self) -> bool:
        """Whether it can't be made again: Postgres may have carried its transaction out."""
        return self._sent

    def exchange(self, descriptor: int, message: bytes, answer_of: Callable[[bytes], A | None]) -> A:
        """Sends a message through a socket that doesn't block, and returns the answer. The loop goes on meanwhile.

        `answer_of` makes it of all the bytes that have come so far, or returns None while it isn't whole. Raises what
        that raises, OSError, and EOFError if the other side has closed the socket.
        """
        self._sent = True
        _send(descriptor, message)
        received = b""
        self._loop.add_reader(descriptor, self._go_on)
        try:
            while (answer := answer_of(received)) is None:
                self._caller.switch()
                try:
                    data = os.read(descriptor, _READ_BYTES)
                except BlockingIOError:
                    continue
                if not data:
                    raise EOFError
                received += data
            return answer
        finally:
            if not self._loop.is_closed():
                self._loop.remove_reader(descriptor)

    def undone(self) -> NeedsThread:
        """Postgres has rolled the transaction back. Returns what to raise."""
        self._sent = False
        return NeedsThread()

    def _go_on(self) -> None:
        try:
            result = self.switch()
        except NeedsThread as needs:
            self._otherwise(needs)
        else:
            if self.dead:
                self._then(cast(T, result))


def current() -> LoopCall[Any] | None:
    """The call in an event loop that is being made; None in a thread."""
    call = getcurrent()
    return call if isinstance(call, LoopCall) else None


def before_waiting(*, once: bool = False) -> None:
    """To be called before what may take long. Raises NeedsThread, of `once`, within a call in an event loop."""
    call = current()
    if call is not None and not call.may_have_done_something:
        raise NeedsThread(once=once)


def _send(descriptor: int, message: bytes) -> None:
    left = memoryview(message)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:  # a message that is longer than the socket's buffer, which Postgres reads at once
            waiting = select.poll()
            waiting.register(descriptor, select.POLLOUT)
            waiting.poll()
