"""Polls Postgres for committed changes, one poll for all cache requests that wait. Event loop only."""

import asyncio
from collections.abc import Callable

import structlog

from metastore.cache.changes import Changes
from metastore.cache.stamp import Stamp
from metastore.store.cache import cache_changes
from metastore.store.engine.async_connection import LoopConnection, Rows

IDLE_SECONDS = 30.0
"""The longest time between two polls, so that changes are not purged before this worker has seen them."""

Then = Callable[[bool], None]
"""Called after a poll with True, or with False if no poll was possible."""

log = structlog.get_logger(__name__)


class InvalidationPolls:
    """Runs invalidation polls and adds their results to `Changes`.

    A request that joins waits for a poll that begins later: that sees all that was acknowledged before. Polls pause
    when the database takes long over one; requests then go on without the cache.
    """

    def __init__(self, url: str, changes: Changes, begin_anew: Callable[[], None]) -> None:
        """`url` is SQLAlchemy's. `begin_anew` is called when a crash of Postgres has ended the incarnation."""
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
        """Calls `then` after the next poll that begins; at once if no poll is possible."""
        if not self._ready:
            then(False)
            return
        self._waiting.append(then)
        if not self._asking and not self._planned:
            # Later, so that the other requests that have arrived share the poll.
            self._planned = True
            self._loop.call_soon(self._ask)

    def _ask(self) -> None:
        self._planned = False
        if not self._ready or self._asking or not self._waiting:
            return
        self._asking, self._waiting = self._waiting, []
        last = self._changes.last
        since = (last.begun, list(last.open_)) if last is not None else (0, [])
        self._database.ask(cache_changes.POLL, since, self._answered)

    def _answered(self, rows: Rows) -> None:
        self._last = self._loop.time()
        asked, self._asking = self._asking, []
        known = False
        try:
            known = self._learn(rows)
        except Exception:  # the requests must not wait for ever
            log.exception("a poll's answer can't be understood")
            self._changes.forget()
        for then in asked:
            self._call(then, known)
        self._ask()

    def _learn(self, rows: Rows) -> bool:
        found = cache_changes.poll_of(rows)
        if found is None:
            self._changes.forget()
            self._begin_anew()
            return False
        stamp = Stamp.of(found.incarnation, found.snapshot)
        self._changes.add(stamp, found.floor, found.changes, complete=found.complete)
        return True

    def _is_ready(self) -> None:
        self._ready = True
        self.join(_nothing)  # entries from Redis can be judged from now on

    def _was_lost(self) -> None:
        self._ready = False
        waiting, self._waiting, self._asking = [*self._asking, *self._waiting], [], []
        for then in waiting:
            self._loop.call_soon(self._call, then, False)

    def _not_idle(self) -> None:
        if self._stopped:
            return
        if self._loop.time() - self._last >= IDLE_SECONDS / 2:
            self.join(_nothing)
        self._loop.call_later(IDLE_SECONDS, self._not_idle)

    @staticmethod
    def _call(then: Then, known: bool) -> None:
        try:
            then(known)
        except Exception:  # the other requests must not wait for ever
            log.exception("a request failed after a poll")


def _nothing(_known: bool) -> None:
    """No request waits for this poll."""
