"""Asks Postgres what has been committed, once for all requests that wait for it. In the event loop alone.

The connection is psycopg2's asynchronous one: an answer costs no switch between threads.
"""

import asyncio
import contextlib
from collections.abc import Callable

import psycopg2
import psycopg2.extensions
import structlog
from sqlalchemy.engine import make_url

from metastore.cache.changes import Changes
from metastore.cache.stamp import Stamp
from metastore.store import cache_changes

ANSWER_SECONDS = 1.0
"""A database that takes longer is asked nothing more for a while: requests go their way without the cache."""

RETRY_SECONDS = 1.0
IDLE_SECONDS = 30.0
"""A round is made at least so often, so that changes are not forgotten unread."""

Then = Callable[[bool], None]
"""Called after a round; False if there was none."""

log = structlog.get_logger(__name__)


class Rounds:
    """Whoever joins waits for a round that begins afterwards: it sees what was acknowledged before."""

    def __init__(self, url: str, changes: Changes, begin_anew: Callable[[], None]) -> None:
        """`url` is SQLAlchemy's. `begin_anew` is called when a crash of Postgres has ended what was known."""
        parameters = make_url(url).translate_connect_args(username="user", database="dbname")
        self._parameters = {**make_url(url).query, **parameters}
        self._changes = changes
        self._begin_anew = begin_anew
        self._connection: psycopg2.extensions.connection | None = None
        self._cursor: psycopg2.extensions.cursor | None = None
        self._fd = -1
        self._writing = False
        self._ready = False
        self._then: Callable[[], None] | None = None
        self._waiting: list[Then] = []
        self._asking: list[Then] = []
        self._deadline: asyncio.TimerHandle | None = None
        self._planned = False
        self._stopped = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._connect()
        self._loop.call_later(IDLE_SECONDS, self._not_idle)

    def stop(self) -> None:
        self._stopped = True
        self._drop()

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

    # -- a round ---------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        self._planned = False
        if not self._ready or self._asking:
            return
        self._asking, self._waiting = self._waiting, []
        last = self._changes.last
        since = (last.begun, list(last.open_)) if last is not None else (0, [])
        self._execute(cache_changes.ROUND, since, self._answered)

    def _answered(self) -> None:
        assert self._cursor is not None
        found = cache_changes.round_of(self._cursor.fetchall())
        if found is None:
            self._changes.forget()
            self._begin_anew()
        else:
            stamp = Stamp.of(found.incarnation, found.snapshot)
            self._changes.add(stamp, found.floor, found.changes, complete=found.complete)
        self._last = self._loop.time()
        asked, self._asking = self._asking, []
        for then in asked:
            self._tell(then, found is not None)
        if self._waiting:
            self._ask()

    def _not_idle(self) -> None:
        if self._stopped:
            return
        if self._loop.time() - self._last >= IDLE_SECONDS / 2:
            self.join(_nothing)
        self._loop.call_later(IDLE_SECONDS, self._not_idle)

    # -- the connection --------------------------------------------------------------------------------------

    def _connect(self) -> None:
        if self._stopped:
            return
        try:
            self._connection = psycopg2.connect(
                **self._parameters, async_=True, connect_timeout=10, application_name="metastore cache"
            )
        except psycopg2.Error as error:
            self._lost(error)
            return
        self._then = self._connected
        self._deadline = self._loop.call_later(10 * ANSWER_SECONDS, self._too_slow)
        self._poll()

    def _connected(self) -> None:
        assert self._connection is not None
        self._cursor = self._connection.cursor()
        self._execute(cache_changes.PREPARE, None, self._prepared)

    def _prepared(self) -> None:
        self._ready = True
        self.join(_nothing)  # to know what holds of what Redis has

    def _execute(self, statement: str, values: tuple[object, ...] | None, then: Callable[[], None]) -> None:
        assert self._cursor is not None
        self._then = then
        self._deadline = self._loop.call_later(ANSWER_SECONDS, self._too_slow)
        try:
            self._cursor.execute(statement, values)
        except psycopg2.Error as error:
            self._lost(error)
            return
        self._poll()

    def _poll(self) -> None:
        """Goes on with what is under way, as far as the socket lets it."""
        if self._connection is None:
            return
        try:
            state = self._connection.poll()
            self._watch(self._connection.fileno(), writing=state == psycopg2.extensions.POLL_WRITE)
        except psycopg2.Error as error:
            self._lost(error)
            return
        if state == psycopg2.extensions.POLL_OK and self._then is not None:
            then, self._then = self._then, None
            if self._deadline is not None:
                self._deadline.cancel()
            try:
                then()
            except psycopg2.Error as error:
                self._lost(error)

    def _watch(self, fd: int, *, writing: bool) -> None:
        if fd != self._fd:  # libpq tries one host after the other
            self._unwatch()
            self._fd = fd
            self._loop.add_reader(fd, self._poll)
        if writing and not self._writing:
            self._loop.add_writer(fd, self._poll)
        elif self._writing and not writing:
            self._loop.remove_writer(fd)
        self._writing = writing

    def _unwatch(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self._loop.remove_reader(self._fd)
                self._loop.remove_writer(self._fd)
        self._fd, self._writing = -1, False

    def _too_slow(self) -> None:
        self._lost(TimeoutError(f"no answer within {ANSWER_SECONDS:g} s"))

    def _lost(self, error: Exception) -> None:
        log.warning("the cache can't ask the database what has changed", error=str(error).strip())
        self._drop()
        if not self._stopped:
            self._loop.call_later(RETRY_SECONDS, self._connect)

    def _drop(self) -> None:
        self._ready = False
        self._unwatch()
        if self._deadline is not None:
            self._deadline.cancel()
        connection, self._connection, self._cursor, self._then = self._connection, None, None, None
        if connection is not None:
            with contextlib.suppress(psycopg2.Error):
                connection.close()
        waiting, self._waiting, self._asking = [*self._asking, *self._waiting], [], []
        for then in waiting:
            self._loop.call_soon(self._tell, then, False)

    @staticmethod
    def _tell(then: Then, known: bool) -> None:
        try:
            then(known)
        except Exception:  # of one must not keep the others waiting
            log.exception("a request failed after a round")


def _nothing(_known: bool) -> None:
    """Nobody waits."""
