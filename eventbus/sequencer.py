"""The thread that gives events their numbers soon after they were committed."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

import structlog
from sqlalchemy import Connection

from eventbus import log as event_log

LOOK_SECONDS = 1.0
"""Between looks of one server for events of those that died after their commit; before another try after a failure."""

log = structlog.get_logger(__name__)


class Sequencer:
    """Numbers events whenever `wake` is called. Any number of them may run on a database."""

    def __init__(
        self,
        read: Callable[[], AbstractContextManager[Connection]],
        write: Callable[[], AbstractContextManager[Connection]],
    ) -> None:
        """`read` and `write` open transactions."""
        self._read = read
        self._write = write
        self._waked = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="sequencer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread soon; what it leaves undone others do, or the next reader."""
        self._stopped = True
        self._waked.set()

    def wake(self) -> None:
        """An event was committed."""
        self._waked.set()

    def catch_up(self) -> None:
        """Gives numbers to everything that is committed by now."""
        with self._read() as tx:
            if not event_log.has_unnumbered(tx):
                return
        with self._write() as tx:
            event_log.number(tx)

    def _run(self) -> None:
        pause: float | None = None
        while not self._stopped:
            self._waked.wait(pause)
            self._waked.clear()
            pause = None
            try:
                self.catch_up()
            except Exception as error:
                log.warning("events can't be numbered", error=str(error), retry_seconds=LOOK_SECONDS)
                pause = LOOK_SECONDS
