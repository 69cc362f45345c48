"""Listens for the sequencer: a thread that is told by Postgres when there are new events."""

import contextlib
import select
import threading
from collections.abc import Callable

import psycopg2
import structlog
from sqlalchemy import NullPool, create_engine
from sqlalchemy.exc import SQLAlchemyError

from eventbus.log import CHANNEL

RETRY_SECONDS = 1.0
_LOOK_SECONDS = 1.0

log = structlog.get_logger(__name__)


class Notices:
    """One connection that listens. While the database can't be reached nothing is told, and then at once."""

    def __init__(self, url: str) -> None:
        """`url` is SQLAlchemy's."""
        self._engine = create_engine(
            url, poolclass=NullPool, isolation_level="AUTOCOMMIT", connect_args={"application_name": "metastore events"}
        )
        self._stopped = threading.Event()

    def start(self, tell: Callable[[], object], tell_more: Callable[[], object] | None = None) -> None:
        """Calls `tell`, in a thread, whenever there may be new events.

        With `tell_more`, that instead whenever something else may have changed, too: the members of a group.
        """
        threading.Thread(target=self._run, args=(tell, tell_more or tell), name="notices", daemon=True).start()

    def stop(self) -> None:
        """Ends the thread within a second."""
        self._stopped.set()

    def _run(self, tell: Callable[[], object], tell_more: Callable[[], object]) -> None:
        while not self._stopped.is_set():
            try:
                self._listen(tell, tell_more)
            except (psycopg2.Error, SQLAlchemyError, OSError) as error:
                log.warning("can't listen for events", error=str(error).strip(), retry_seconds=RETRY_SECONDS)
                self._stopped.wait(RETRY_SECONDS)

    def _listen(self, tell: Callable[[], object], tell_more: Callable[[], object]) -> None:
        pooled = self._engine.raw_connection()
        connection = pooled.driver_connection
        assert connection is not None
        # Given back to the pool it would be rolled back, which fails, and is logged, once Postgres has ended it.
        pooled.detach()
        with contextlib.closing(connection):
            with connection.cursor() as cursor:
                cursor.execute(f"LISTEN {CHANNEL}")
            tell_more()  # of what came while nobody listened
            while not self._stopped.is_set():
                if select.select([connection], [], [], _LOOK_SECONDS)[0]:
                    connection.poll()
                    if connection.notifies:
                        only_events = all(notice.payload for notice in connection.notifies)
                        connection.notifies.clear()
                        (tell if only_events else tell_more)()
