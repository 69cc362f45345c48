"""What no client waits for, and one server alone does for all that share a database.

Each server has one candidate. It stands by until the lock is free, and then does the duties until it finds that it
lost the lock. For a moment two may do the same: every duty bears that.
"""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

import structlog

from metastore.store import DatabaseUnavailable
from metastore.store.duties import DutyLock

LOOK_SECONDS = 1.0
"""Between looks for the lock: how long it takes the next one to notice that a holder died."""

log = structlog.get_logger(__name__)


class Duty(NamedTuple):
    """What is done every `seconds`. It must do no harm if another server does it at the same time."""

    name: str
    work: Callable[[], object]
    seconds: float


class Duties:
    """`start`, and sooner or later the duties are this process's, each in a thread of its own."""

    def __init__(self, lock: DutyLock, duties: Sequence[Duty]) -> None:
        self._lock = lock
        self._duties = duties
        self._ours = threading.Event()
        self._stopped = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._stand_by, name="duties", daemon=True).start()
        for duty in self._duties:
            threading.Thread(target=self._do, args=(duty,), name=duty.name, daemon=True).start()

    def stop(self) -> None:
        """Starts nothing any more; what is under way may be cut off, since all of it can be done again."""
        self._stopped.set()

    def _stand_by(self) -> None:
        while not self._stopped.is_set():
            try:
                ours = self._lock.take()
            except DatabaseUnavailable as error:
                log.warning("can't look after background duties", error=str(error), retry_seconds=LOOK_SECONDS)
                ours = False
            if ours and not self._ours.is_set():
                log.info("background duties are this server's")
                self._ours.set()
            elif self._ours.is_set() and not ours:
                log.info("background duties are no longer this server's")
                self._ours.clear()
            self._stopped.wait(LOOK_SECONDS)
        self._lock.release()

    def _do(self, duty: Duty) -> None:
        while self._ours.wait() and not self._stopped.is_set():
            try:
                duty.work()
            except Exception as error:
                log.warning("a duty failed", duty=duty.name, error=str(error), retry_seconds=duty.seconds)
            self._stopped.wait(duty.seconds)
