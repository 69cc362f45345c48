"""The sequencer's thread: it gives events their numbers soon after their commit. Why so: see `log`."""

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

import structlog
from sqlalchemy import Connection

from eventbus.log import log as event_log

LOOK_SECONDS = 1.0
"""Seconds between one server's checks for events of servers that died after a commit, and after a failure."""

PAUSE_SECONDS = 0.02
"""Between two times that events get numbers: busy writers' events get theirs together."""

log = structlog.get_logger(__name__)

_waiting: "ContextVar[set[Sequencer] | None]" = ContextVar("sequencers to be woken later", default=None)


@contextmanager
def waking_later() -> "Iterator[Collection[Sequencer]]":
    """What a call does within the block wakes no sequencer. Gives those that are to be woken after it.

    A sequencer that is at work shares the processors, and Python's lock, with who sends the reply to the writer. If the
    block takes longer than LOOK_SECONDS, a server's leader numbers the events before that.
    """
    waiting: set[Sequencer] = set()
    token = _waiting.set(waiting)
    try:
        yield waiting
    finally:
        _waiting.reset(token)


class Sequencer:
    """Numbers events whenever it is woken. Any number of sequencers may share a database."""

    def __init__(self, write: Callable[[], AbstractContextManager[Connection]]) -> None:
        """`write`: opens a transaction, or a connection that commits one statement by itself."""
        self._write = write
        self._waked = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sequencer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread soon. Another sequencer, or the next reader, numbers the remaining events."""
        self._stopping.set()
        self._waked.set()

    def wake(self) -> None:
        """Call after an event was committed. Doesn't block. Within `waking_later` that is to be done after it."""
        waiting = _waiting.get()
        if waiting is None:
            self._waked.set()
        else:
            waiting.add(self)

    def catch_up(self) -> None:
        """Numbers all events that are committed by now, in the caller's thread."""
        with self._write() as tx:
            event_log.number(tx)

    def _run(self) -> None:
        pause: float | None = None
        while not self._stopping.is_set():
            self._waked.wait(pause)
            self._waked.clear()
            pause = None
            try:
                self.catch_up()
                self._stopping.wait(PAUSE_SECONDS)
            except Exception as error:
                log.warning("events can't be numbered", error=str(error), retry_seconds=LOOK_SECONDS)
                pause = LOOK_SECONDS
