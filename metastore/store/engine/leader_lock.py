"""The leader lock: an advisory lock of Postgres that decides which server runs the leader tasks.

The lock belongs to a session, and Postgres releases it when the session ends. When a process dies, its session ends at
once. When a process hangs or its host vanishes, Postgres ends the idle session after `SILENT_SECONDS`.
"""

from typing import Any

import psycopg2
from sqlalchemy import Connection, NullPool, create_engine, text
from sqlalchemy.exc import DBAPIError

from metastore.store.engine.database import DatabaseUnavailable

SILENT_SECONDS = 15.0
"""After this time without a statement, Postgres takes the lock from its holder."""

_LOCK = 5_021_971_317  # the advisory lock's id: an arbitrary number

OF_FRONTS = 5_021_971_319
"""The id of another lock: that of the front that follows logs. Servers may use the same database."""

_NAME = "metastore leader "


class LeaderLock:
    """One candidate for the leader lock. Not thread-safe."""

    def __init__(self, url: str, name: str, *, silent_seconds: float = SILENT_SECONDS, lock: int = _LOCK) -> None:
        """Connects on first use. `url`: a SQLAlchemy URL. `name`: of the candidate; see `holder`. `lock`: its id."""
        self._lock = lock
        silent_ms = int(silent_seconds * 1000)
        self._engine = create_engine(
            url,
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args={
                "application_name": f"{_NAME}{name}"[:63],  # Postgres' limit
                "connect_timeout": 10,
                "tcp_user_timeout": silent_ms,
                "options": f"-c idle_session_timeout={silent_ms}",
            },
        )
        self._connection: Connection | None = None
        self._held = False

    def take(self) -> bool:
        """Takes or renews the lock. Returns whether this candidate has it.

        Call it more often than every `silent_seconds`, or the lock is lost. Raises DatabaseUnavailable; then the lock
        is not held.
        """
        try:
            if self._connection is None:
                self._connection = self._engine.connect()
            statement = "SELECT true" if self._held else "SELECT pg_try_advisory_lock(:key)"
            self._held = self._connection.execute(
                text(statement), {} if self._held else {"key": self._lock}
            ).scalar_one()
        except (DBAPIError, psycopg2.Error) as error:
            self.release()
            raise DatabaseUnavailable(str(getattr(error, "orig", error)).strip().partition("\n")[0]) from error
        return self._held

    def release(self) -> None:
        """Releases the lock."""
        self._held = False
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.invalidate()  # it may be broken, so it is closed without a rollback
            connection.close()


def holder(tx: Connection) -> str | None:
    """The holder's name; None if nobody holds the lock, or if it belongs to another Postgres user."""
    query = text(
        "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
        " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " AND (l.classid::bigint << 32) + l.objid::bigint = :key"
    )
    found: Any = tx.execute(query, {"key": _LOCK}).scalar_one_or_none()
    return found.removeprefix(_NAME) if found else None
