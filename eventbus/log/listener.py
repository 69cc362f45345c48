"""A thread that listens for the sequencer's notifications (Postgres' LISTEN) and calls back when there are new events.

Every wait has a time limit, so that a Postgres that hangs without closing its connections is noticed, too.
"""

import contextlib
import select
import threading
import time
from collections.abc import Callable

import psycopg2
import psycopg2.extensions
import structlog
from psycopg2.extensions import POLL_OK, POLL_READ
from sqlalchemy.engine import make_url

from eventbus.log.log import CHANNEL

RETRY_SECONDS = 1.0
"""Pause before the next attempt to connect."""
ANSWER_SECONDS = 10.0
"""Time limit for Postgres to accept a connection, and for each answer."""
SILENT_SECONDS = 30.0
"""A connection that is silent for this long is checked with a query."""
_LOOK_SECONDS = 1.0

log = structlog.get_logger(__name__)


class Notices:
    """One listening connection, in a thread of its own. After a reconnect it calls back at once, for what it missed."""

    def __init__(
        self, url: str, *, answer_seconds: float = ANSWER_SECONDS, silent_seconds: float = SILENT_SECONDS
    ) -> None:
        """`url`: the database as a SQLAlchemy URL."""
        parsed = make_url(url)
        self._parameters = {
            **parsed.query,
            **parsed.translate_connect_args(username="user", database="dbname"),
            "application_name": "metastore events",
            "connect_timeout": max(2, int(answer_seconds)),
            # Postgres notices within a minute that this host vanished. The other direction: `silent_seconds`.
            "options": "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
        }
        self._answer_seconds = answer_seconds
        self._silent_seconds = silent_seconds
        self._stopped = threading.Event()

    def start(self, tell: Callable[[], object], tell_more: Callable[[], object] | None = None) -> None:
        """Starts the thread, which calls `tell` whenever there may be new events.

        It calls `tell_more` instead, if given, when the members of a group may have changed, too.
        """
        threading.Thread(target=self._run, args=(tell, tell_more or tell), name="notices", daemon=True).start()

    def stop(self) -> None:
        """Ends the thread within a second."""
        self._stopped.set()

    def _run(self, tell: Callable[[], object], tell_more: Callable[[], object]) -> None:
        while not self._stopped.is_set():
            try:
                self._listen(tell, tell_more)
            except _Stopped:
                return
            except (psycopg2.Error, OSError, TimeoutError) as error:
                log.warning("can't listen for events", error=str(error).strip(), retry_seconds=RETRY_SECONDS)
                self._stopped.wait(RETRY_SECONDS)

    def _listen(self, tell: Callable[[], object], tell_more: Callable[[], object]) -> None:
        # An asynchronous connection, since waits of the others have no time limit.
        with contextlib.closing(psycopg2.connect(**self._parameters, async_=True)) as connection:
            self._finish(connection)
            self._ask(connection, f"LISTEN {CHANNEL}")
            tell_more()  # for notifications that were missed
            heard = time.monotonic()
            while not self._stopped.is_set():
                if select.select([connection], [], [], min(_LOOK_SECONDS, self._silent_seconds))[0]:
                    connection.poll()
                    heard = time.monotonic()
                elif time.monotonic() - heard >= self._silent_seconds:
                    self._ask(connection, "SELECT 1")
                    heard = time.monotonic()
                if connection.notifies:
                    only_events = all(notice.payload for notice in connection.notifies)
                    connection.notifies.clear()
                    (tell if only_events else tell_more)()

    def _ask(self, connection: psycopg2.extensions.connection, statement: str) -> None:
        with contextlib.closing(connection.cursor()) as cursor:
            cursor.execute(statement)
            self._finish(connection)

    def _finish(self, connection: psycopg2.extensions.connection) -> None:
        """Waits until the pending operation is done. Raises TimeoutError, _Stopped."""
        deadline = time.monotonic() + self._answer_seconds
        while (state := connection.poll()) != POLL_OK:
            if self._stopped.is_set():
                raise _Stopped
            if time.monotonic() >= deadline:
                raise TimeoutError(f"no answer from Postgres within {self._answer_seconds:g} s")
            reading, seconds = state == POLL_READ, min(_LOOK_SECONDS, max(deadline - time.monotonic(), 0))
            select.select([connection] if reading else [], [] if reading else [connection], [], seconds)


class _Stopped(Exception):
    """`stop` was called."""
