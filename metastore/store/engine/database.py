"""The pool of connections, transactions, and the translation of database errors."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import psycopg2.errors
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from lake.protocol.errors import (
    CHANGED_BETWEEN,
    DATABASE_FULL,
    DATABASE_READ_ONLY,
    DATABASE_UNREACHABLE,
    LOCKED,
    POOL_BUSY,
    TIME_LIMIT,
)
from metastore.postgres.joined_messages import JoiningConnection
from metastore.store.engine import beginnings, binary_rows, read_set

_RESTED_SECONDS = 1.0
_WAIT_SECONDS = 30.0  # for a connection, if all are in use
_FRAMES = 250  # that the pool, the driver and this module may need on a thread's stack
_AFTER_COMMIT = "after commit"
READ_ONLY = (
    f"{DATABASE_READ_ONLY}: it is a standby, or its default_transaction_read_only is on; try again once it accepts"
    " them, or point the server's database_url at the primary"
)
_NUL = "a text must not contain the NUL character"

# Services pass it from one function of the store to the next. They don't use it themselves.
Transaction = Connection


class DatabaseUnavailable(RuntimeError):
    """The database can't answer now: it is down, overloaded, or the statement took too long. Retrying may help."""


class DatabaseBusy(DatabaseUnavailable):
    """The database didn't get to it in time, or another transaction was in the way. Nothing was done."""


class DatabaseReadOnly(DatabaseUnavailable):
    """The database accepts no changes: it is a standby, or read-only by its settings. Nothing was done."""


class DatabaseFull(DatabaseUnavailable):
    """The database has no space for a change on its disk. Nothing was done."""


class _Unreachable(DatabaseUnavailable):
    """No connection can be made, or it broke."""


class Unstorable(ValueError):
    """Postgres can't store a value, such as a text with a NUL character."""


class Conflict(RuntimeError):
    """A unique key exists already: another transaction was first. `constraint`: the key's name."""

    def __init__(self, constraint: str | None) -> None:
        super().__init__(constraint)
        self.constraint = constraint


class NestedTransaction(RuntimeError):
    """A call in a transaction begins another one on the same database. This is a programming error."""


class Database:
    """A pool of connections to one Postgres database.

    A call has at most one transaction. Otherwise calls that hold all connections of the pool could wait for a
    second one for ever.
    """

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        statement_timeout: float = 0,
        application_name: str = "metastore",
        waited: Callable[[float], None] | None = None,
    ) -> None:
        """Connects on first use. `url`: a SQLAlchemy URL. `statement_timeout`: in seconds; 0 means none.

        `application_name`: shown by Postgres for each connection. `waited`: called with the seconds that a transaction
        waited because all connections of the pool were in use, also if it got none in the end.
        """
        self.url = make_url(url)
        self._waited = waited
        # Connections in use are counted here: after an exception in the middle of SQLAlchemy's pool its own count
        # would stay wrong. So its overflow has no limit.
        self._places = threading.BoundedSemaphore(pool_size)
        milliseconds = int(statement_timeout * 1000)
        self._engine = create_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=-1,
            pool_use_lifo=True,  # the caches of the last used connection are the warmest
            connect_args={
                "application_name": application_name,
                "client_encoding": "utf8",  # whatever the database's default: stored bytes are sent as they are
                "connect_timeout": 10,
                "connection_factory": JoiningConnection,
                # This side notices within a minute that the database's host vanished.
                "keepalives_idle": 30,
                "keepalives_interval": 10,
                "keepalives_count": 3,
                "tcp_user_timeout": 60_000,  # milliseconds
                # Postgres notices within a minute that this host vanished, and releases its locks.
                "options": f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds} -c jit=off"
                # The data is cached in memory, where random access costs little more than sequential access.
                " -c random_page_cost=1.1"
                " -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
            },
        )
        binary_rows.prepare(self._engine)
        event.listen(self._engine, "checkout", self._check)
        event.listen(self._engine, "checkin", self._note_use)
        self._holders: set[int] = set()  # ids of threads that are in a transaction
        self._lost_at = 0.0  # when a connection broke last; connections that are older are checked

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read-only REPEATABLE READ transaction. Records in the read set. Raises NestedTransaction."""
        with self._connected(writes=False) as tx, _discarded_if_broken(tx):
            driver = _in_own_transactions(tx)
            driver.set_session(isolation_level="REPEATABLE READ", readonly=True)
            read_set.begin(tx)
            yield tx

    @contextmanager
    def at_once(self) -> Iterator[Connection]:
        """For one statement that is a transaction of its own: one message instead of three or four.

        A statement of which the cache keeps the result has to pass its columns `read_set.STAMP` to `read_set.stamp`.
        One that writes must not change what kept replies are made of. Raises as `write`.
        """
        with self._connected() as tx, _discarded_if_broken(tx):
            _in_own_transactions(tx).autocommit = True
            yield tx

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that commits at the end of the block, or rolls back if the block raises.

        Raises NestedTransaction, and Conflict, Unstorable and DatabaseUnavailable for errors of the database.
        """
        read_set.mark_uncacheable()
        with self._connected() as tx:
            driver = _in_own_transactions(tx)
            driver.autocommit = True  # BEGIN and COMMIT are sent by the connection itself
            actions: list[Callable[[], None]] = []
            tx.info[_AFTER_COMMIT] = actions
            with tx.begin(), _discarded_if_broken(tx):
                driver.begin()
                beginnings.begin(tx)
                yield tx
        with ExitStack() as following:  # all of them, also if one fails
            for action in reversed(actions):
                following.callback(action)

    @contextmanager
    def _connected(self, *, writes: bool = True) -> Iterator[Connection]:
        _check_stack()
        with self._alone(), self._place(), self._translated(writes), self._engine.connect() as tx:
            yield tx

    def check_writable(self) -> None:
        """Raises DatabaseUnavailable if Postgres doesn't answer, and DatabaseReadOnly if it accepts no changes."""
        with self.at_once() as tx:
            if tx.exec_driver_sql("SELECT current_setting('transaction_read_only')").scalar_one() == "on":
                raise DatabaseReadOnly(READ_ONLY)

    def close(self) -> None:
        """Closes all idle connections."""
        self._engine.dispose()

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Waits until fewer than `pool_size` calls have a connection. Raises DatabaseUnavailable if that takes long."""
        taken = False
        try:
            taken = self._places.acquire(blocking=False)
            if not taken:
                since = time.monotonic()
                try:
                    taken = self._places.acquire(timeout=_WAIT_SECONDS)
                finally:
                    if self._waited is not None:
                        self._waited(time.monotonic() - since)
            if not taken:
                raise DatabaseBusy(f"{POOL_BUSY}; try again later")
            yield
        finally:
            if taken:
                self._places.release()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        holder = threading.get_ident()
        if holder in self._holders:
            raise NestedTransaction("a transaction begins within another one: pass the first one on instead")
        try:
            self._holders.add(holder)
            yield
        finally:
            self._holders.discard(holder)  # not the current thread's id: another thread may close a generator

    def _check(self, connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
        """Tests a connection that was idle, or is older than the last break; the pool replaces a broken one.

        SQLAlchemy's pre-ping tests at every checkout, which would slow down each request.
        """
        if self._needs_no_test(record):
            return
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            connection.rollback()
        except psycopg2.Error as error:
            raise DisconnectionError(str(error)) from error

    def _needs_no_test(self, record: ConnectionPoolEntry) -> bool:
        used: float = record.info.get("used", 0.0)
        return used > max(time.monotonic() - _RESTED_SECONDS, self._lost_at)

    def _note_use(self, _connection: Any, record: ConnectionPoolEntry) -> None:
        record.info["used"] = time.monotonic()

    @contextmanager
    def _translated(self, writes: bool) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, psycopg2.Error) as error:  # some statements bypass SQLAlchemy
            cause = error.orig if isinstance(error, DBAPIError) else error
            if writes and isinstance(cause, psycopg2.errors.ReadOnlySqlTransaction):
                raise DatabaseReadOnly(READ_ONLY) from error
            translated = _translate(cause, error)
            if isinstance(translated, _Unreachable):
                self._lost_at = time.monotonic()
            raise translated from error
        except UnicodeEncodeError as error:  # JSON within a text can say what no UTF-8 can
            raise Unstorable("a text has half of a surrogate pair, which is no character") from error
        except ValueError as error:
            if "NUL" in str(error):  # psycopg2's own check, before anything is sent
                raise Unstorable(_NUL) from error
            raise


def after_commit(tx: Transaction, action: Callable[[], None]) -> None:
    """Calls a function after a transaction of `Database.write` has committed. The function should not raise."""
    tx.info[_AFTER_COMMIT].append(action)


def _in_own_transactions(tx: Transaction) -> JoiningConnection:
    """The driver's connection with its defaults. In this order, none of the settings takes a message."""
    driver = cast(JoiningConnection, tx.connection.driver_connection)
    if driver.autocommit:
        driver.autocommit = False
    driver.set_session(isolation_level="DEFAULT", readonly="default")
    return driver


def _check_stack() -> None:
    """Raises RecursionError if there may not be room for the calls of a transaction.

    An exception in the middle of the pool's or the driver's own code leaves them in a state that nobody knows.
    """
    try:
        sys._getframe(max(sys.getrecursionlimit() - _FRAMES, 1))
    except ValueError:  # the stack is not that deep
        return
    raise RecursionError("too many calls within another for a transaction")


@contextmanager
def _discarded_if_broken(tx: Transaction) -> Iterator[None]:
    """Invalidates a connection that is broken, or whose state nobody knows.

    SQLAlchemy does that for its own statements. What is no ordinary exception may come in the middle of the driver's
    code, or between a statement and what this side notes about it.
    """
    try:
        yield
    except psycopg2.Error as error:
        if tx.connection.closed:
            tx.invalidate(error)
        raise
    except GeneratorExit:  # raised where nothing is under way
        raise
    except (MemoryError, RecursionError) as error:
        tx.invalidate(error)
        raise
    except Exception:
        raise
    except BaseException as error:
        tx.invalidate(error)
        raise


def _translate(cause: BaseException | None, error: Exception) -> Exception:
    """The exception to raise for an error of psycopg2. It is `error` itself for a fault of the program."""
    if isinstance(cause, psycopg2.errors.UniqueViolation):
        return Conflict(cause.diag.constraint_name)
    if isinstance(cause, psycopg2.errors.QueryCanceled):
        return DatabaseBusy(TIME_LIMIT)
    if isinstance(cause, psycopg2.errors.LockNotAvailable):
        return DatabaseBusy(f"{LOCKED}; try again later")
    if isinstance(cause, psycopg2.errors.DeadlockDetected | psycopg2.errors.SerializationFailure):
        return DatabaseBusy(f"{CHANGED_BETWEEN}; try again")
    if isinstance(cause, psycopg2.errors.CharacterNotInRepertoire):  # Postgres's own check, of a text that is copied in
        return Unstorable(_NUL)
    if isinstance(cause, psycopg2.errors.UntranslatableCharacter):  # Postgres's own check, of a text within JSON
        return Unstorable(_NUL)
    if isinstance(cause, psycopg2.errors.ProgramLimitExceeded):  # of an index's entries
        return Unstorable(f"a name is too long: {str(cause).splitlines()[0]}")
    # Lists of pairs, say, nest as deep as they are long.
    if isinstance(cause, psycopg2.errors.StatementTooComplex):
        return Unstorable("request too large; send fewer names")
    if isinstance(cause, psycopg2.DataError):
        return Unstorable(str(cause).splitlines()[0])
    if isinstance(cause, psycopg2.errors.DiskFull):
        reason = str(cause).splitlines()[0]
        return DatabaseFull(f"{DATABASE_FULL}: {reason}. Nothing was done; free some space there, then try again")
    # psycopg2 raises the plain DatabaseError if Postgres crashes before it sends an error code.
    if isinstance(cause, psycopg2.OperationalError | psycopg2.InterfaceError) or type(cause) is psycopg2.DatabaseError:
        return _Unreachable(f"{DATABASE_UNREACHABLE}; try again later")
    return error
