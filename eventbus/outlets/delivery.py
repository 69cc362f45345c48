"""Delivers the log's events to one outlet: at least once, in order, without gaps.

Any number of processes may run the delivery of an outlet; one of them works at a time. It holds an advisory lock of
Postgres, which ends with its connection. The position is read and written through that same connection, so that a
process that has lost the lock can't move the position.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
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

from eventbus.log import epochs, group_positions, reader
from eventbus.log import log as event_log
from eventbus.log.listener import Notices
from eventbus.log.sequencer import Sequencer
from eventbus.outlets import dead_letters
from eventbus.outlets.base import Diverged, LogState, Outlet, OutOfStep
from lake.protocol.clock import now_ms
from lake.protocol.errors import UserError
from lake.protocol.events.history import History
from lake.protocol.events.types import Event

LOOK_SECONDS = 1.0
"""Seconds between checks for changes without a notification: a free lock, dead letters that are to be sent again."""
STATEMENT_SECONDS = 600
"""Time limit of a statement; reading events takes far less."""
RETRY_SECONDS = 0.5
"""Pause before the second attempt; it doubles each time."""
_EVENTS, _BYTES = 500, 8 << 20
_LOCK = text("SELECT pg_try_advisory_lock(hashtextextended(:name, 7402))")

T = TypeVar("T")

log = structlog.get_logger(__name__)


class ProcessEnded(Exception):
    """An outlet's process ended while it delivered an event."""


class LogUnavailable(UserError):
    """The log's database can't be reached."""


class _Stopped(Exception):
    """`stop` was called before the action succeeded."""


class _DatabaseLost(Exception):
    """The database became unreachable during an action of the outlet."""


class _Undeliverable(Exception):
    """All attempts failed. `__cause__` is the last error."""


class Delivery:
    """Delivers to one outlet: call `begin`, then `run`. Any thread may call `stop`."""

    def __init__(self, url: str, outlet: Outlet, after_restore: Callable[[Connection], None]) -> None:
        """`url`: the log's database as a SQLAlchemy URL.

        `after_restore`: called in the transaction that begins an epoch because the outlet has noticed a restore.
        """
        self._outlet = outlet
        self._after_restore = after_restore
        self._engine = create_engine(
            url,
            poolclass=NullPool,
            connect_args={
                "application_name": f"metastore {outlet.name}"[:63],
                "connect_timeout": 10,
                "keepalives_idle": 30,
                "keepalives_interval": 10,
                "keepalives_count": 3,
                "tcp_user_timeout": 60_000,
                # Postgres notices within a minute that the lock's holder has vanished.
                "options": f"-c statement_timeout={STATEMENT_SECONDS * 1000}"
                " -c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3",
            },
        )
        self._notices = Notices(url)
        self._waked = threading.Event()
        self._stopped = threading.Event()
        self._trimmed = 0
        self._epoch = epochs.NONE  # the log's epoch at the last `resume`
        self._connection: Connection | None = None
        self._seen_at = 0.0  # when `seen_at` was last written; by time.monotonic()
        self._counted: int | None = None  # the event whose next attempt is counted already
        self._under_way: int | None = None  # the event whose counted attempt is running

    def begin(self) -> None:
        """Stores the position of a new outlet. From now on it misses no event, and the log keeps what it needs.

        Raises LogUnavailable.
        """
        try:
            with self._engine.connect() as connection:
                _catch_up(connection)
                with _write(connection) as tx:
                    now = event_log.positions(tx)
                    position = now.trimmed if self._outlet.from_oldest else now.last
                    group_positions.begin(tx, self._outlet.name, position, now_ms())
        except (psycopg2.Error, SQLAlchemyError) as error:
            raise LogUnavailable(f"the event log can't be reached: {error_line(error)}") from error

    def stop(self) -> None:
        """Ends `run` after the current delivery."""
        self._stopped.set()
        self._waked.set()

    def abandon(self) -> None:
        """Uncounts the running attempt, because the process is about to end. Raises SQLAlchemyError."""
        if self._under_way is not None:
            with self._engine.connect() as connection, _write(connection) as tx:
                group_positions.take_back_attempt(tx, self._outlet.name, self._under_way)

    def run(self) -> None:
        """Delivers until `stop` is called. When the database can't be reached, it waits and tries again."""
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
                except (psycopg2.Error, SQLAlchemyError, _DatabaseLost) as error:
                    log.warning(
                        "events can't be read", outlet=self._outlet.name, error=error_line(error.__cause__ or error)
                    )
                    self._stopped.wait(LOOK_SECONDS)
        finally:
            self._notices.stop()
            self._outlet.close()

    def _locked(self, connection: Connection) -> bool:
        """Waits for the outlet's lock. Returns False if `stop` was called first."""
        while not self._stopped.is_set():
            with _write(connection) as tx:
                if tx.execute(_LOCK, {"name": self._outlet.name}).scalar_one():
                    return True
            self._stopped.wait(LOOK_SECONDS)
        return False

    def _deliver(self, connection: Connection) -> None:
        position: int | None = None
        self._connection = connection
        while not self._stopped.is_set():
            self._waked.clear()
            self._note_seen()
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
                log.warning("an outlet is out of step", outlet=self._outlet.name, reason=str(error))
                position = None
            else:
                if idle:
                    self._waked.wait(LOOK_SECONDS)

    def _resume(self, connection: Connection) -> int:
        with _read(connection) as tx:
            kept = group_positions.find(tx, self._outlet.name)
            now = event_log.positions(tx)
            history = epochs.history(tx)
        position = kept.position if kept else now.trimmed if self._outlet.from_oldest else now.last
        state = LogState(now.last, now.trimmed, history, partial(self._marks, connection))
        self._epoch = history.now.id
        try:
            return self._attempt(partial(self._outlet.resume, position, state), None)
        except Diverged as found:
            self._begin_epoch(connection, history, found)
            return self._resume(connection)

    def _begin_epoch(self, connection: Connection, known: History, found: Diverged) -> None:
        with _write(connection) as tx:
            if epochs.history(tx).now.id != known.now.id:
                return  # another process was first
            epoch = epochs.begin(
                tx, f"{self._outlet.name} has events that the log does not have", lossy=True, after=found.after
            )
            self._after_restore(tx)
        log.error(
            "the event log was restored from a backup, a new epoch begins",
            outlet=self._outlet.name,
            epoch=epoch.name,
            after=epoch.after,
        )
        _catch_up(connection)

    @staticmethod
    def _marks(connection: Connection, numbers: Sequence[int]) -> dict[int, str]:
        try:
            with _read(connection) as tx:
                return epochs.marks(tx, numbers)
        except (psycopg2.Error, SQLAlchemyError) as error:
            raise _DatabaseLost from error

    def _deliver_next(self, connection: Connection, position: int) -> tuple[int, bool]:
        """Delivers one page of events after a position.

        Returns the new position, and whether there was nothing to deliver. Raises Trimmed, OutOfStep.
        """
        with _read(connection) as tx:
            page = reader.read(tx, position, self._outlet.wanted, limit=_EVENTS, max_bytes=_BYTES)
            trimmed = event_log.positions(tx).trimmed
            epoch = epochs.history(tx).now
        if epoch.id != self._epoch:
            raise OutOfStep(f"the log began the epoch {epoch.name}: {epoch.reason}")
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
            except _Undeliverable as failure:
                error = error_line(failure.__cause__ or failure)
                log.error("event dead-lettered", outlet=self._outlet.name, number=some[0].number, error=error)
            following = page.events[first + 1].number if first + 1 < len(page.events) else None
            with _write(connection) as tx:
                if error is not None:
                    for event in some:
                        dead_letters.put(
                            tx, self._outlet.name, event.number, error, self._outlet.attempts or 0, now_ms()
                        )
                group_positions.move(tx, self._outlet.name, some[-1].number, now_ms())
                if self._outlet.may_end_process and following is not None and not self._stopped.is_set():
                    group_positions.count_attempt(tx, self._outlet.name, following)
                    self._counted = following
            if self._stopped.is_set():
                raise _Stopped
        if page.position > position:
            with _write(connection) as tx:
                group_positions.move(tx, self._outlet.name, page.position, now_ms())
        return page.position, not page.events

    def _deliver_counted(self, connection: Connection, event: Event) -> None:
        """Delivers an event. Attempts by earlier processes, which it may have ended, count towards the limit."""
        assert self._outlet.attempts is not None
        if self._counted == event.number:
            made = 0
        else:
            self._counted = None
            with _read(connection) as tx:
                made = group_positions.attempts(tx, self._outlet.name, event.number)
        if made >= self._outlet.attempts:
            raise _Undeliverable from ProcessEnded(f"the process ended while the event was delivered, attempt {made}")

        def deliver() -> None:
            if self._counted != event.number:
                try:
                    with _write(connection) as tx:
                        group_positions.count_attempt(tx, self._outlet.name, event.number)
                except (psycopg2.Error, SQLAlchemyError) as error:
                    raise _DatabaseLost from error
            self._counted = None
            self._under_way = event.number
            try:
                self._outlet.deliver([event])
            finally:
                self._under_way = None

        self._attempt(deliver, self._outlet.attempts - made)

    def _attempt(self, action: Callable[[], T], attempts: int | None) -> T:
        """Calls an action of the outlet until it succeeds, at most `attempts` times, with growing pauses.

        Raises _Undeliverable, _Stopped, OutOfStep, Diverged.
        """
        stop = stop_when_event_set(self._stopped)
        retrying = Retrying(
            stop=stop_any(stop, stop_after_attempt(attempts)) if attempts else stop,
            wait=wait_exponential(multiplier=RETRY_SECONDS, max=self._outlet.longest_pause),
            retry=retry_if_not_exception_type((OutOfStep, Diverged, _DatabaseLost)),
            sleep=sleep_using_event(self._stopped),
            before_sleep=self._note_failure,
        )
        try:
            return retrying(action)
        except RetryError as failure:
            if self._stopped.is_set():
                raise _Stopped from None
            raise _Undeliverable from failure.last_attempt.exception()

    def _note_failure(self, state: RetryCallState) -> None:
        assert state.outcome is not None
        assert state.next_action is not None
        log.warning(
            "events can't be delivered",
            outlet=self._outlet.name,
            attempt=state.attempt_number,
            error=error_line(state.outcome.exception()),
            retry_seconds=state.next_action.sleep,
        )
        self._note_seen()

    def _note_seen(self) -> None:
        """Records from time to time that the outlet is in use: otherwise its position would expire."""
        assert self._connection is not None
        if time.monotonic() - self._seen_at < group_positions.SEEN_EVERY.total_seconds():
            return
        try:
            with _write(self._connection) as tx:
                group_positions.see(tx, self._outlet.name)
        except (psycopg2.Error, SQLAlchemyError) as error:
            raise _DatabaseLost from error
        self._seen_at = time.monotonic()

    def _deliver_again(self, connection: Connection) -> None:
        """Sends the dead letters again that somebody asked for, with one attempt each."""
        with _read(connection) as tx:
            again = dead_letters.asked_for(tx, self._outlet.name, _EVENTS)
        for event, attempts in again:
            if self._stopped.is_set():
                raise _Stopped
            error = None
            if self._outlet.may_end_process:
                with _write(connection) as tx:
                    ended = error_line(ProcessEnded("the process ended while the event was delivered again"))
                    dead_letters.failed_again(tx, self._outlet.name, event.number, ended, attempts + 1, now_ms())
            try:
                self._outlet.deliver([event])
            except Exception as failure:
                error = error_line(failure)
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
            group_positions.move(tx, self._outlet.name, gone.oldest - 1, now_ms())


def error_line(error: BaseException | None) -> str:
    """The type and the first line of an error, for logs."""
    text = str(error).strip().partition("\n")[0][:1000]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def _read(connection: Connection) -> Iterator[Connection]:
    """A REPEATABLE READ transaction: all statements see one state."""
    with connection.execution_options(isolation_level="REPEATABLE READ").begin():
        yield connection


@contextmanager
def _write(connection: Connection) -> Iterator[Connection]:
    with connection.execution_options(isolation_level="READ COMMITTED").begin():
        yield connection


def _catch_up(connection: Connection) -> None:
    Sequencer(partial(_write, connection)).catch_up()
