"""Delivers the log's events to one outlet: at least once, in order, none left out.

Any number of processes may run the delivery of an outlet on a database; one at a time works. It holds an advisory lock
of Postgres, which ends with its connection, and reads and keeps its position through that same connection: one that
has lost its lock can't move the position.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import psycopg2
import structlog
from sqlalchemy import Connection, NullPool, create_engine, text
from sqlalchemy.exc import SQLAlchemyError
from tenacity import (
    RetryCallState,
    RetryError,
    Retrying,
    retry_if_not_exception_type,
    sleep_using_event,
    stop_after_attempt,
    stop_any,
    stop_when_event_set,
    wait_exponential,
)

from eventbus import dead_letters, groups, reader
from eventbus import log as event_log
from eventbus.events import Event
from eventbus.notices import Notices
from eventbus.outlets import Outlet, OutOfStep
from eventbus.sequencer import Sequencer
from metastore.clock import now_ms
from metastore.errors import UserError

LOOK_SECONDS = 1.0
"""Between looks for what nobody tells of: the lock of a process that died, events that are to be sent again."""
RETRY_SECONDS = 0.5
"""Before the second attempt; then twice as long each time."""
_EVENTS, _BYTES = 500, 8 << 20
_LOCK = text("SELECT pg_try_advisory_lock(hashtextextended(:name, 7402))")

T = TypeVar("T")

log = structlog.get_logger(__name__)


class ProcessEnded(Exception):
    """The process of an outlet ended while it delivered an event."""


class LogUnavailable(UserError):
    """Its database can't be reached now."""


class _Stopped(Exception):
    """Delivery was told to stop before something succeeded."""


class _NotCounted(Exception):
    """The database can't be reached to count an attempt before it is made."""


class _SetAside(Exception):
    """All attempts failed, the last one for `__cause__`."""


class Delivery:
    """`begin`, then `run` until `stop`, which any thread may call."""

    def __init__(self, url: str, outlet: Outlet) -> None:
        """`url` is SQLAlchemy's."""
        self._outlet = outlet
        self._engine = create_engine(
            url,
            poolclass=NullPool,
            connect_args={
                "application_name": f"metastore {outlet.name}"[:63],
                "connect_timeout": 10,
                "tcp_user_timeout": 60_000,
                # Postgres notices within a minute that the lock's holder has vanished.
                "options": "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
            },
        )
        self._notices = Notices(url)
        self._waked = threading.Event()
        self._stopped = threading.Event()
        self._trimmed = 0
        self._counted: int | None = None  # the event of which the next attempt is counted already
        self._under_way: int | None = None  # the event of which a counted attempt is being made

    def begin(self) -> None:
        """Gives a new outlet its position, so that from now on it misses nothing and nothing is trimmed that it wants.

        Raises LogUnavailable.
        """
        try:
            with self._engine.connect() as connection:
                _catch_up(connection)
                with _write(connection) as tx:
                    now = event_log.positions(tx)
                    position = now.trimmed if self._outlet.from_oldest else now.last
                    groups.begin(tx, self._outlet.name, position, now_ms())
        except (psycopg2.Error, SQLAlchemyError) as error:
            raise LogUnavailable(f"the event log can't be reached: {told(error)}") from error

    def stop(self) -> None:
        """Lets what is being delivered be finished, and nothing else begin."""
        self._stopped.set()
        self._waked.set()

    def abandon(self) -> None:
        """Takes an attempt back that is under way, for the process is about to end. Raises SQLAlchemyError."""
        if self._under_way is not None:
            with self._engine.connect() as connection, _write(connection) as tx:
                groups.take_back_attempt(tx, self._outlet.name, self._under_way)

    def run(self) -> None:
        """Delivers until it is stopped; faults of the database are waited for."""
        self._notices.start(self._waked.set)
        try:
            while not self._stopped.is_set():
                try:
                    with self._engine.connect() as connection:
                        if self._locked(connection):
                            log.info("delivering events", outlet=self._outlet.name)
                            self._deliver(connection)
                except _Stopped:
                    return
                except (psycopg2.Error, SQLAlchemyError, _NotCounted) as error:
                    log.warning("events can't be read", outlet=self._outlet.name, error=told(error.__cause__ or error))
                    self._stopped.wait(LOOK_SECONDS)
        finally:
            self._notices.stop()
            self._outlet.close()

    def _locked(self, connection: Connection) -> bool:
        """Waits until nobody else delivers; False: stopped before."""
        while not self._stopped.is_set():
            with _write(connection) as tx:
                if tx.execute(_LOCK, {"name": self._outlet.name}).scalar_one():
                    return True
            self._stopped.wait(LOOK_SECONDS)
        return False

    def _deliver(self, connection: Connection) -> None:
        position: int | None = None
        while not self._stopped.is_set():
            self._waked.clear()
            _catch_up(connection)
            try:
                if position is None:
                    position = self._resume(connection)
                self._deliver_again(connection)
                position, idle = self._deliver_next(connection, position)
                if idle:
                    self._attempt(self._outlet.look, None)
            except event_log.Trimmed as gone:
                assert position is not None
                self._note_gone(connection, position, gone)
                position = None
            except OutOfStep as error:
                log.warning("an outlet lost events", outlet=self._outlet.name, reason=str(error))
                position = None
            else:
                if idle:
                    self._waked.wait(LOOK_SECONDS)

    def _resume(self, connection: Connection) -> int:
        with _read(connection) as tx:
            kept = groups.find(tx, self._outlet.name)
            now = event_log.positions(tx)
        position = kept.position if kept else now.trimmed if self._outlet.from_oldest else now.last
        return self._attempt(partial(self._outlet.resume, position, now.last, now.trimmed), None)

    def _deliver_next(self, connection: Connection, position: int) -> tuple[int, bool]:
        """Delivers the events after a position, as far as they are read at once.

        Returns where to go on, and whether there was nothing. Raises Trimmed, OutOfStep.
        """
        with _read(connection) as tx:
            page = reader.read(tx, position, self._outlet.wanted, limit=_EVENTS, max_bytes=_BYTES)
            trimmed = event_log.positions(tx).trimmed
        if trimmed != self._trimmed:
            self._attempt(partial(self._outlet.forget, trimmed), None)
            self._trimmed = trimmed
        for first in range(0, len(page.events), self._outlet.batch):
            some = page.events[first : first + self._outlet.batch]
            error = None
            try:
                if self._outlet.may_end_process:
                    self._deliver_counted(connection, some[0])
                else:
                    self._attempt(partial(self._outlet.deliver, some), self._outlet.attempts)
            except _SetAside as failure:
                error = told(failure.__cause__ or failure)
                log.error("event set aside", outlet=self._outlet.name, number=some[0].number, error=error)
            following = page.events[first + 1].number if first + 1 < len(page.events) else None
            with _write(connection) as tx:
                if error is not None:
                    for event in some:
                        dead_letters.put(
                            tx, self._outlet.name, event.number, error, self._outlet.attempts or 0, now_ms()
                        )
                groups.move(tx, self._outlet.name, some[-1].number, now_ms())
                if self._outlet.may_end_process and following is not None and not self._stopped.is_set():
                    groups.count_attempt(tx, self._outlet.name, following)
                    self._counted = following
            if self._stopped.is_set():
                raise _Stopped
        if page.position > position:
            with _write(connection) as tx:
                groups.move(tx, self._outlet.name, page.position, now_ms())
        return page.position, not page.events

    def _deliver_counted(self, connection: Connection, event: Event) -> None:
        """Delivers an event, so often at most, whatever became of the processes that tried it before this one."""
        assert self._outlet.attempts is not None
        if self._counted == event.number:
            made = 0
        else:
            self._counted = None
            with _read(connection) as tx:
                made = groups.attempts(tx, self._outlet.name, event.number)
        if made >= self._outlet.attempts:
            raise _SetAside from ProcessEnded(f"the process ended while the event was delivered, attempt {made}")

        def deliver() -> None:
            if self._counted != event.number:
                try:
                    with _write(connection) as tx:
                        groups.count_attempt(tx, self._outlet.name, event.number)
                except (psycopg2.Error, SQLAlchemyError) as error:
                    raise _NotCounted from error
            self._counted = None
            self._under_way = event.number
            try:
                self._outlet.deliver([event])
            finally:
                self._under_way = None

        self._attempt(deliver, self._outlet.attempts - made)

    def _attempt(self, action: Callable[[], T], attempts: int | None) -> T:
        """Does something at the outlet, at most so often. Raises _SetAside, _Stopped, OutOfStep."""
        stop = stop_when_event_set(self._stopped)
        retrying = Retrying(
            stop=stop_any(stop, stop_after_attempt(attempts)) if attempts else stop,
            wait=wait_exponential(multiplier=RETRY_SECONDS, max=self._outlet.longest_pause),
            retry=retry_if_not_exception_type((OutOfStep, _NotCounted)),
            sleep=sleep_using_event(self._stopped),
            before_sleep=self._note_failure,
        )
        try:
            return retrying(action)
        except RetryError as failure:
            if self._stopped.is_set():
                raise _Stopped from None
            raise _SetAside from failure.last_attempt.exception()

    def _note_failure(self, state: RetryCallState) -> None:
        assert state.outcome is not None
        assert state.next_action is not None
        log.warning(
            "events can't be delivered",
            outlet=self._outlet.name,
            attempt=state.attempt_number,
            error=told(state.outcome.exception()),
            retry_seconds=state.next_action.sleep,
        )

    def _deliver_again(self, connection: Connection) -> None:
        """What somebody asked for: one attempt for each."""
        with _read(connection) as tx:
            again = dead_letters.asked_for(tx, self._outlet.name, _EVENTS)
        for event, attempts in again:
            if self._stopped.is_set():
                raise _Stopped
            error = None
            if self._outlet.may_end_process:
                with _write(connection) as tx:
                    ended = told(ProcessEnded("the process ended while the event was delivered again"))
                    dead_letters.failed_again(tx, self._outlet.name, event.number, ended, attempts + 1, now_ms())
            try:
                self._outlet.deliver([event])
            except Exception as failure:
                error = told(failure)
                log.warning(
                    "event can't be delivered again", outlet=self._outlet.name, number=event.number, error=error
                )
            with _write(connection) as tx:
                if error is None:
                    dead_letters.remove(tx, self._outlet.name, event.number)
                else:
                    dead_letters.failed_again(tx, self._outlet.name, event.number, error, attempts + 1, now_ms())

    def _note_gone(self, connection: Connection, position: int, gone: event_log.Trimmed) -> None:
        lost = f"the events {position + 1} to {gone.oldest - 1} were removed from the log before they were delivered"
        log.error("events lost for an outlet", outlet=self._outlet.name, reason=lost)
        with _write(connection) as tx:
            dead_letters.put_gone(tx, self._outlet.name, position + 1, lost, now_ms())
            groups.move(tx, self._outlet.name, gone.oldest - 1, now_ms())


def told(error: BaseException | None) -> str:
    """An error in one line."""
    text = str(error).strip().partition("\n")[0][:1000]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def _read(connection: Connection) -> Iterator[Connection]:
    """A transaction that sees one snapshot throughout."""
    with connection.execution_options(isolation_level="REPEATABLE READ").begin():
        yield connection


@contextmanager
def _write(connection: Connection) -> Iterator[Connection]:
    with connection.execution_options(isolation_level="READ COMMITTED").begin():
        yield connection


def _catch_up(connection: Connection) -> None:
    Sequencer(partial(_read, connection), partial(_write, connection)).catch_up()
