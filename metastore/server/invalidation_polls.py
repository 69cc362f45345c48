"""Polls Postgres for committed changes, one poll for all cache requests that wait. Event loop only."""

import asyncio
from collections.abc import Callable
from functools import partial

import structlog

from metastore.cache.changes import Changes
from metastore.cache.stamp import Stamp
from metastore.server.cache_lease import CacheLease
from metastore.store.cache import cache_changes
from metastore.store.engine import local_peer
from metastore.store.engine.async_connection import LoopConnection, Rows

IDLE_SECONDS = 30.0
"""The longest time between two polls, so that changes are not purged before this worker has seen them."""

LEASE_POLLS = 10
LEASE_SECONDS = 0.1
"""After so many polls, and so long a time, without a change a lease is taken: reads are frequent and changes rare."""

Then = Callable[[bool], None]
"""Called after a poll with True, or with False if no poll was possible."""

log = structlog.get_logger(__name__)


class InvalidationPolls:
    """Runs invalidation polls and adds their results to `Changes`.

    A request that joins waits for a poll that begins later: that sees all that was acknowledged before. Polls pause
    when the database takes long over one; requests then go on without the cache. While there is a lease, the last poll
    still says what holds, and no request waits.
    """

    def __init__(self, url: str, changes: Changes, begin_anew: Callable[[], None]) -> None:
        """`url` is SQLAlchemy's. `begin_anew` is called when a crash of Postgres has ended the incarnation."""
        self._changes = changes
        self._begin_anew = begin_anew
        self._database = LoopConnection(
            url, cache_changes.PREPARE, name="metastore cache", ready=self._is_ready, lost=self._was_lost
        )
        self._lease = CacheLease(url) if local_peer.through_unix_socket(url) else None
        self._polled_under = 0  # the number of the lease after whose beginning the last poll began
        self._unchanged = 0  # polls since the last change
        self._changed_at = 0.0  # by the loop's clock
        self._ready = False
        self._waiting: list[Then] = []
        self._asking: list[Then] = []
        self._planned = False
        self._stopped = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._database.open()
        if self._lease is not None:
            self._lease.open()
        self._loop.call_later(IDLE_SECONDS, self._not_idle)

    def stop(self) -> None:
        self._stopped = True
        self._database.close()
        if self._lease is not None:
            self._lease.close()
        self._was_lost()

    def join(self, then: Then) -> None:
        """Calls `then` after the next poll that begins; soon if there is a lease, at once if no poll is possible."""
        if self.leased():
            # Not at once: a client may have sent thousands of messages together.
            self._loop.call_soon(self._call, then, True)
        elif not self._ready:
            then(False)
        else:
            self._poll(then)

    def leased(self) -> bool:
        """Whether the last poll says what holds now: there has been a lease since before it, and there is now."""
        return self._polled_under != 0 and self._lease is not None and self._lease.holds() == self._polled_under

    def _poll(self, then: Then) -> None:
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
        self._consider_lease(changed=bool(found.changes))
        return True

    def _consider_lease(self, *, changed: bool) -> None:
        """Takes a lease if that may spare polls."""
        self._unchanged = 0 if changed else self._unchanged + 1
        if changed:
            self._changed_at = self._last
        elif (
            self._lease is not None
            and self._unchanged >= LEASE_POLLS
            and self._last - self._changed_at >= LEASE_SECONDS
            and self._lease.may_be_taken()
        ):
            self._lease.take(self._lease_taken)

    def _lease_taken(self) -> None:
        if self._ready and self._lease is not None:
            self._poll(partial(self._polled, self._lease.holds()))

    def _polled(self, lease: int, known: bool) -> None:
        self._polled_under = lease if known else 0

    def _is_ready(self) -> None:
        self._ready = True
        self.join(_nothing)  # entries from Redis can be judged from now on

    def _was_lost(self) -> None:
        self._ready, self._polled_under = False, 0
        waiting, self._waiting, self._asking = [*self._asking, *self._waiting], [], []
        for then in waiting:
            self._loop.call_soon(self._call, then, False)

    def _not_idle(self) -> None:
        if self._stopped:
            return
        if self._ready and self._loop.time() - self._last >= IDLE_SECONDS / 2:
            self._poll(_nothing)
        self._loop.call_later(IDLE_SECONDS, self._not_idle)

    @staticmethod
    def _call(then: Then, known: bool) -> None:
        try:
            then(known)
        except Exception:  # the other requests must not wait for ever
            log.exception("a request failed after a poll")


def _nothing(_known: bool) -> None:
    """No request waits for this poll."""
