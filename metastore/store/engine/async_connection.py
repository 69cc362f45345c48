"""An asyncio connection to Postgres: a query needs no switch between threads."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import psycopg2
import psycopg2.extensions
import structlog
from sqlalchemy.engine import make_url

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 1.0
RETRY_SECONDS = 1.0

Rows = list[tuple[Any, ...]]

log = structlog.get_logger(__name__)


class LoopConnection:
    """Executes one statement at a time, each in a transaction of its own. Reconnects by itself.

    A statement without an answer within `ANSWER_SECONDS` closes the connection. Use it in the event loop only.
    """

    def __init__(
        self,
        url: str,
        prepared: str,
        *,
        name: str,
        ready: Callable[[], None],
        lost: Callable[[], None],
        unasked: Callable[[], None] | None = None,
    ) -> None:
        """`url`: the database as a SQLAlchemy URL. `name`: the application name that Postgres shows.

        `prepared`: a statement that is executed on each new connection; then `ready` is called. `lost`: called when the
        connection is lost; the pending answer then never comes. `unasked`: called when something arrives that is no
        answer; it has to read that from the socket, or to `reconnect`.
        """
        parsed = make_url(url)
        self._parameters = {
            **parsed.query,
            **parsed.translate_connect_args(username="user", database="dbname"),
            "application_name": name,
            "connect_timeout": int(CONNECT_SECONDS),
        }
        self._prepared = prepared
        self._ready = ready
        self._lost = lost
        self._unasked = unasked
        self._connection: psycopg2.extensions.connection | None = None
        self._cursor: psycopg2.extensions.cursor | None = None
        self._then: Callable[[], None] | None = None
        self._fd = -1
        self._writing = False
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0  # by the loop's clock, for the pending answer
        self._closed = False

    def open(self) -> None:
        """Connects in the running event loop. Call it once."""
        self._loop = asyncio.get_running_loop()
        self._connect()

    def close(self) -> None:
        """Closes the connection for good."""
        self._closed = True
        self._drop()

    @property
    def descriptor(self) -> int:
        """The connection's file descriptor, -1 without a connection."""
        return self._fd

    def reconnect(self, seconds: float) -> None:
        """Closes the connection, and connects anew after so many seconds."""
        self._drop()
        if not self._closed:
            self._loop.call_later(seconds, self._connect)

    def ask(self, statement: str, values: Sequence[object], then: Callable[[Rows], None]) -> None:
        """Executes a statement and calls `then` with its rows. Call it after `ready`, and after the last answer."""
        self._execute(statement, values, lambda: then(self._rows()))

    def _rows(self) -> Rows:
        assert self._cursor is not None
        return self._cursor.fetchall()

    def _connect(self) -> None:
        if self._closed:
            return
        try:
            self._connection = psycopg2.connect(**self._parameters, async_=True)
        except psycopg2.Error as error:
            self._fail(error)
            return
        self._await(self._connected, CONNECT_SECONDS)

    def _connected(self) -> None:
        assert self._connection is not None
        self._cursor = self._connection.cursor()
        self._execute(self._prepared, (), self._ready)

    def _execute(self, statement: str, values: Sequence[object], then: Callable[[], None]) -> None:
        assert self._cursor is not None
        try:
            self._cursor.execute(statement, tuple(values) or None)
        except psycopg2.Error as error:
            self._fail(error)
            return
        self._await(then, ANSWER_SECONDS)

    def _await(self, then: Callable[[], None], seconds: float) -> None:
        self._then = then
        self._deadline = self._loop.time() + seconds
        # A timer for each statement would take longer than the statement: this one outlives many.
        if self._timer is None or self._timer.when() > self._deadline:
            self._look_at(self._deadline)
        self._poll()

    def _look_at(self, time: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(time, self._is_late)

    def _is_late(self) -> None:
        self._timer = None
        if self._then is None:
            return
        if self._loop.time() < self._deadline:  # of a later statement
            self._look_at(self._deadline)
        else:
            self._fail(TimeoutError("no answer in time"))

    def _poll(self) -> None:
        """Continues the pending operation as far as the socket allows."""
        if self._connection is None:
            return
        if self._then is None and self._unasked is not None:
            self._unasked()
            return
        try:
            state = self._connection.poll()
            self._watch(self._connection.fileno(), writing=state == psycopg2.extensions.POLL_WRITE)
            if state == psycopg2.extensions.POLL_OK and self._then is not None:
                then, self._then = self._then, None
                then()
        except psycopg2.Error as error:
            self._fail(error)

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

    def _fail(self, error: Exception) -> None:
        log.warning("a connection to the database is lost", name=self._parameters["application_name"], error=str(error))
        self._drop()
        self._lost()
        if not self._closed:
            self._loop.call_later(RETRY_SECONDS, self._connect)

    def _drop(self) -> None:
        self._unwatch()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        connection, self._connection, self._cursor, self._then = self._connection, None, None, None
        if connection is not None:
            with contextlib.suppress(psycopg2.Error):
                connection.close()
