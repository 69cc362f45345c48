"""Which of the servers on a database does what one alone shall do: the one with a lock of Postgres.

It is an advisory lock of a session: Postgres frees it when the session ends. A process that dies takes its session
with it at once. One that stands still, or can't be reached any more, keeps it for as long as Postgres lets a session
idle, which is here no longer than `SILENT_SECONDS`.
"""

from typing import Any

import psycopg2
from sqlalchemy import Connection, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from metastore.store.database import DatabaseUnavailable

SILENT_SECONDS = 15.0
"""After which Postgres takes the lock from a holder of which it hears nothing."""

_LOCK = 5_021_971_317  # any number that nobody else uses for an advisory lock
_NAME = "metastore duties "


class DutyLock:
    """One who wants the lock, or has it. Not for several threads at once."""

    def __init__(self, url: str, name: str, *, silent_seconds: float = SILENT_SECONDS) -> None:
        """`url` is SQLAlchemy's; by `name` others know who has the lock. Connects on first use only."""
        silent_ms = int(silent_seconds * 1000)
        self._engine = create_engine(
            url,
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args={
                "application_name": f"{_NAME}{name}"[:63],  # longer ones Postgres cuts off, with a notice
                "connect_timeout": 10,
                "tcp_user_timeout": silent_ms,
                "options": f"-c idle_session_timeout={silent_ms}",
            },
        )
        self._connection: Connection | None = None
        self._held = False

    def take(self) -> bool:
        """Whether the lock is ours, from now on or still. Who asks too seldom loses it.

        Raises DatabaseUnavailable if nobody can tell: then it is not.
        """
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            statement = "SELECT true" if self._held else "SELECT pg_try_advisory_lock(:key)"
            self._held = self._connection.execute(text(statement), {} if self._held else {"key": _LOCK}).scalar_one()
        except (DBAPIError, psycopg2.Error) as error:
            self.release()
            raise DatabaseUnavailable(str(getattr(error, "orig", error)).strip().partition("\n")[0]) from error
        return self._held

    def release(self) -> None:
        """Leaves the lock to others."""
        self._held = False
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.invalidate()  # closed as it is: it may be broken
            connection.close()


def holder(tx: Connection) -> str | None:
    """The name of who has the lock; None if nobody has, or it belongs to another user of Postgres."""
    query = text(
        "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
        " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND (l.classid::bigint << 32) + l.objid::bigint = :key"
    )
    found: Any = tx.execute(query, {"key": _LOCK}).scalar_one_or_none()
    return found.removeprefix(_NAME) if found else None
