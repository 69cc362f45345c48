"""Asks Postgres what has been committed, once for all requests that wait for it. In the event loop alone."""

import asyncio
from collections.abc import Callable

import structlog

from metastore.cache.changes import Changes
from metastore.cache.stamp import Stamp
from metastore.store import cache_changes
from metastore.store.event_loop import LoopConnection, Rows

IDLE_SECONDS = 30.0
"""A round is made at least so often, so that changes are not forgotten unread."""

Then = Callable[[bool], None]
"""Called after a round; False if there was none."""

log = structlog.get_logger(__name__)


class Rounds:
    """Whoever joins waits for a round that begins afterwards: it sees what was acknowledged before.

    A database that takes long over a round is asked nothing more for a while: requests go their way without.
    """

    def __init__(self, url: str, changes: Changes, begin_anew: Callable[[], None]) -> None:
        """`url` is SQLAlchemy's. `begin_anew` is called when a crash of Postgres has ended what was known."""
        self._changes = changes
        self._begin_anew = begin_anew
        self._database = LoopConnection(
            url, cache_changes.PREPARE, name="metastore cache", ready=self._is_ready, lost=self._was_lost
        )
        self._ready = False
        self._waiting: list[Then] = []
        self._asking: list[Then] = []
        self._planned = False
        self._stopped = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._database.open()
        self._loop.call_later(IDLE_SECONDS, self._not_idle)

    def stop(self) -> None:
        self._stopped = True
        self._database.close()
        self._was_lost()

    def join(self, then: Then) -> None:
        """Calls `then` after the next round that begins; at once if none can be made now."""
        if not self._ready:
            then(False)
            return
        self._waiting.append(then)
        if not self._asking and not self._planned:
            # After whatever else has arrived by now has joined.
            self._planned = True
            self._loop.call_soon(self._ask)

    def _ask(self) -> None:
        self._planned = False
        if not self._ready or self._asking or not self._waiting:
            return
        self._asking, self._waiting = self._waiting, []
        last = self._changes.last
        since = (last.begun, list(last.open_)) if last is not None else (0, [])
        self._database.ask(cache_changes.ROUND, since, self._answered)

    def _answered(self, rows: Rows) -> None:
        self._last = self._loop.time()
        asked, self._asking = self._asking, []
        known = False
        try:
            known = self._learn(rows)
        except Exception:  # must not keep anybody waiting
            log.exception("a round's answer can't be understood")
            self._changes.forget()
        for then in asked:
            self._tell(then, known)
        self._ask()

    def _learn(self, rows: Rows) -> bool:
        found = cache_changes.round_of(rows)
        if found is None:
            self._changes.forget()
            self._begin_anew()
            return False
        stamp = Stamp.of(found.incarnation, found.snapshot)
        self._changes.add(stamp, found.floor, found.changes, complete=found.complete)
        return True

    def _is_ready(self) -> None:
        self._ready = True
        self.join(_nothing)  # to know what holds of what Redis has

    def _was_lost(self) -> None:
        self._ready = False
        waiting, self._waiting, self._asking = [*self._asking, *self._waiting], [], []
        for then in waiting:
            self._loop.call_soon(self._tell, then, False)

    def _not_idle(self) -> None:
        if self._stopped:
            return
        if self._loop.time() - self._last >= IDLE_SECONDS / 2:
            self.join(_nothing)
        self._loop.call_later(IDLE_SECONDS, self._not_idle)

    @staticmethod
    def _tell(then: Then, known: bool) -> None:
        try:
            then(known)
        except Exception:  # of one must not keep the others waiting
            log.exception("a request failed after a round")


def _nothing(_known: bool) -> None:
    """Nobody waits."""
