"""Connections and transactions."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg2.errors
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from metastore.store import binary_rows, footprint

_RESTED_SECONDS = 1.0
_AFTER_COMMIT = "after commit"
_NUL = "a text must not contain the NUL character"

# What services hand from one function of the store to the next, without knowing what it is.
Transaction = Connection


class DatabaseUnavailable(RuntimeError):
    """The database can't answer now: it is down, overloaded, or the statement took too long. Trying again may help."""


class _Unreachable(DatabaseUnavailable):
    """A connection can't be had, or broke."""


class Unstorable(ValueError):
    """A value that Postgres can't keep, such as a text with a NUL character."""


class Conflict(RuntimeError):
    """Another transaction made the same thing first (a unique key is taken). `constraint` names the key."""

    def __init__(self, constraint: str | None) -> None:
        super().__init__(constraint)
        self.constraint = constraint


class Database:
    """A pool of connections to one Postgres database."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        statement_timeout: float = 0,
        application_name: str = "metastore",
    ) -> None:
        """`url` is SQLAlchemy's, `statement_timeout` in seconds (0: none). Connects on first use only.

        By `application_name` Postgres tells others who is connected.
        """
        self.url = make_url(url)
        milliseconds = int(statement_timeout * 1000)
        self._engine = create_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=0,
            pool_use_lifo=True,  # what was used last is what the caches of Postgres' process, and of the machine, hold
            pool_timeout=30,
            connect_args={
                "application_name": application_name,
                "client_encoding": "utf8",  # whatever else is set: texts leave as Postgres encodes them
                "connect_timeout": 10,
                # A database host that vanished is noticed within a minute.
                "keepalives_idle": 30,
                "keepalives_interval": 10,
                "keepalives_count": 3,
                "tcp_user_timeout": 60_000,  # milliseconds
                # Postgres notices within a minute that this host vanished, and lets go of what it held.
                "options": f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds} -c jit=off"
                # What is read lies in memory: its order on a disk is of no account.
                " -c random_page_cost=1.1"
                " -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
            },
        )
        binary_rows.prepare(self._engine)
        event.listen(self._engine, "checkout", self._check)
        event.listen(self._engine, "checkin", _note_use)
        self._lost_at = 0.0  # when a connection was found broken: the others may be
        self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read-only transaction that sees one snapshot of the database throughout."""
        with self._translated(), self._reader.connect() as tx, _discarded_if_broken(tx):
            footprint.begin(tx)
            yield tx

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that commits at the end of the block, or rolls back if the block raises."""
        footprint.spoil()
        with self._translated(), self._engine.begin() as tx, _discarded_if_broken(tx):
            actions: list[Callable[[], None]] = []
            tx.info[_AFTER_COMMIT] = actions
            yield tx
        for action in actions:
            action()

    def close(self) -> None:
        self._engine.dispose()

    def _check(self, connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
        """Makes sure that a connection still works if it has rested, or another broke since; the pool replaces it.

        SQLAlchemy's own pre-ping asks each time, which a busy server would pay for with every request.
        """
        if record.info.get("used", 0.0) > max(time.monotonic() - _RESTED_SECONDS, self._lost_at):
            return
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            connection.rollback()
        except psycopg2.Error as error:
            raise DisconnectionError(str(error)) from error

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except PoolTimeout as error:
            raise DatabaseUnavailable("all connections to the database are busy; try again later") from error
        except (DBAPIError, psycopg2.Error) as error:  # of statements that go past SQLAlchemy, too
            meaning = _meaning(error.orig if isinstance(error, DBAPIError) else error, error)
            if isinstance(meaning, _Unreachable):
                self._lost_at = time.monotonic()
            raise meaning from error
        except ValueError as error:
            if "NUL" in str(error):  # psycopg2's own check, before anything is sent
                raise Unstorable(_NUL) from error
            raise


def after_commit(tx: Transaction, action: Callable[[], None]) -> None:
    """Has something done once a transaction of `Database.write` has committed; it must not raise."""
    tx.info[_AFTER_COMMIT].append(action)


@contextmanager
def _discarded_if_broken(tx: Transaction) -> Iterator[None]:
    """What SQLAlchemy does with a connection that breaks, for statements that go past it."""
    try:
        yield
    except psycopg2.Error as error:
        if tx.connection.closed:
            tx.invalidate(error)
        raise


def _note_use(_connection: Any, record: ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _meaning(cause: BaseException | None, error: Exception) -> Exception:
    """What to raise for an error of psycopg2: `error` itself where it is a fault of ours."""
    if isinstance(cause, psycopg2.errors.UniqueViolation):
        return Conflict(cause.diag.constraint_name)
    if isinstance(cause, psycopg2.errors.QueryCanceled):
        return DatabaseUnavailable("the request took longer than its time limit")
    if isinstance(cause, psycopg2.errors.LockNotAvailable):
        return DatabaseUnavailable("another change of the same object takes too long; try again later")
    if isinstance(cause, psycopg2.errors.DeadlockDetected | psycopg2.errors.SerializationFailure):
        return DatabaseUnavailable("another change came between; try again")
    if isinstance(cause, psycopg2.errors.CharacterNotInRepertoire):  # Postgres's own check, of a text that is copied in
        return Unstorable(_NUL)
    if isinstance(cause, psycopg2.errors.UntranslatableCharacter):  # Postgres's own check, of a text within JSON
        return Unstorable(_NUL)
    if isinstance(cause, psycopg2.errors.ProgramLimitExceeded):  # of an index's entries
        return Unstorable(f"a name is too long: {str(cause).splitlines()[0]}")
    if isinstance(cause, psycopg2.DataError):
        return Unstorable(str(cause).splitlines()[0])
    # The general class, where a crash of Postgres cut the connection before an answer that has a code.
    if isinstance(cause, psycopg2.OperationalError | psycopg2.InterfaceError) or type(cause) is psycopg2.DatabaseError:
        return _Unreachable("the metastore's database can't be reached; try again later")
    return error
