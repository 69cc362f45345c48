"""What captures of all sources have in common: attempts until one ends well, and batches of rows."""

import dataclasses
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from thrift.Thrift import TException

from lake.capture import metrics
from lake.capture.errors import CaptureError
from lake.capture.raw_table import Batch, RawTable, Row
from lake.capture.rereads import ordered
from lake.capture.results import Result
from lake.capture.retries import Retries, passes
from lake.capture.schema_changes.model import OfUntouched, re_read
from lake.capture.schemas import READ_AGAIN
from lake.capture.state import CaptureState, DatabaseState, TableProgress
from lake.protocol.clock import now_ms
from lake.protocol.connection.closing import Closing
from lake.tables.lake import LakeClient


@dataclass(frozen=True, kw_only=True)
class CaptureOptions:
    """What is captured, and how.

    `source`: where from; `into`: the name of the raw table. `interval`: seconds from the first row of a batch to its
    commit. `batch_rows`: a batch with this many rows is committed earlier. `retry_seconds`: how long a source or a
    metastore that doesn't answer is tried again. `new_snapshot`: reads everything again, in a new epoch.
    """

    source: str
    into: str
    interval: float = 5.0
    batch_rows: int = 200_000
    retry_seconds: float = 300.0
    new_snapshot: bool = False


@dataclass(frozen=True, kw_only=True)
class DatabaseOptions(CaptureOptions):
    """Options for databases, whose tables are read in chunks.

    `chunk_rows`: rows of the first chunk of each table. `alarm_bytes`: log of the source that isn't captured; more than
    this is logged as a warning. `untouched`: what becomes of rows that change without the log, where the source can be
    asked; as of Policy.of_untouched.
    """

    chunk_rows: int = 5_000
    alarm_bytes: int = 1 << 30
    untouched: OfUntouched = re_read


OptionsT = TypeVar("OptionsT", bound=CaptureOptions)
StateT = TypeVar("StateT", bound=CaptureState)
DatabaseStateT = TypeVar("DatabaseStateT", bound=DatabaseState)


class Runner(ABC, Generic[OptionsT, StateT]):
    """Captures until it is stopped, or until it has caught up.

    `transient`: errors of the source's driver that may pass. `permanent`: those among them that don't.
    """

    transient: ClassVar[tuple[type[Exception], ...]] = ()
    permanent: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self, client: LakeClient, options: OptionsT) -> None:
        self.client = client
        self.options = options
        self.result = Result()
        self.is_stopping = False
        self.pause: Callable[[str], None] = _nothing
        """Called with the name of each step, for tests that kill the process there."""
        self.on_commit: Callable[[StateT], None] = _nothing
        """Called after each batch."""
        self.on_defined: Callable[[Collection[str]], None] = _nothing
        """Called after a batch that says how tables are defined, with their names."""

    def stop(self) -> None:
        """Lets `run` end soon, after what has come is written. May be called by a signal handler."""
        self.is_stopping = True

    def run(self, *, once: bool = False) -> Result:
        """Captures; with `once` until all tables are read, and what was there at the start is written.

        A table that can't be read is named in the result; the others go on.

        A source or a metastore that is lost is tried again. Raises CaptureError for what doesn't pass, or if the source
        can't be reached at first, and the last error if it doesn't pass for `retry_seconds`.
        """
        renew = self.options.new_snapshot
        has_begun = False
        retries = Retries(self.options.retry_seconds)
        while not self.is_stopping:
            batches = self.result.batches
            try:
                with self.session(renew=renew) as session:
                    renew, has_begun = False, True
                    session.run(once=once)
                    self.result.troubles = dict(session.state.troubles)
                return self.result
            except self.permanent as error:
                raise CaptureError(f"the source: {self.said(error)}") from None
            except (*self.transient, TException, OSError) as error:
                if not passes(error):
                    raise
                if not has_begun and isinstance(error, self.transient):
                    raise CaptureError(f"can't connect to the source: {self.said(error)}") from None
                retries.wait(error, has_advanced=self.result.batches > batches)
        return self.result

    @abstractmethod
    def session(self, *, renew: bool) -> "Session[OptionsT, StateT]":
        """Begins an attempt, with `renew` in a new epoch. Raises what `run` does, and what may pass."""

    @staticmethod
    def said(error: Exception) -> str:
        """What an error of the source's driver says, in one line."""
        return " ".join(str(error).split())


class Session(Closing, Generic[OptionsT, StateT]):
    """One attempt: from what the raw table has to the first failure, which leaves what was committed before."""

    state: StateT

    def __init__(self, capture: Runner[OptionsT, StateT]) -> None:
        self._capture = capture
        self._options = capture.options
        self._raw = RawTable(capture.client, capture.options.into)
        self._batch: Batch | None = None
        self._batch_due = 0.0
        self._rows: dict[str, int] = {}
        self._defined: set[str] = set()
        self._last_commit_time = 0

    @abstractmethod
    def run(self, *, once: bool) -> None:
        """Captures until the capture is stopped or, with `once`, has caught up."""

    def close(self) -> None:
        if self._batch is not None:
            self._batch.abandon()
            self._batch = None

    def _begin_batch(self) -> Batch:
        """The open batch; else a new one, which is due after the interval."""
        if self._batch is None:
            self._batch = self._raw.batch()
            self._batch_due = time.monotonic() + self._options.interval
        return self._batch

    def _add(self, table: str, row: Row) -> None:
        self._begin_batch().add(table, row)
        self._rows[table] = self._rows.get(table, 0) + 1
        if row.op in ("schema", "hold"):
            self._defined.add(table)

    @property
    def _is_due(self) -> bool:
        """Whether there is a batch that has waited long enough, or has enough rows."""
        return self._batch is not None and (
            self._batch.rows >= self._options.batch_rows or time.monotonic() >= self._batch_due
        )

    def _complete_batch(self) -> None:
        """Completes the batch, with the state after it."""
        batch = self._begin_batch()
        self.state.batch += 1
        self._capture.pause("before")
        batch.complete(self.state)
        self._batch = None
        self._capture.pause("completed")
        self._capture.result.count(self._rows)
        self._rows.clear()
        metrics.ROWS.inc(batch.rows)
        metrics.BATCHES.inc()
        if self._last_commit_time:
            metrics.LAG_SECONDS.set(max(0.0, time.time() - self._last_commit_time / 1e6))
        self._completed()
        self._capture.on_commit(self.state)
        if self._defined:
            self._capture.on_defined(self._defined)
            self._defined.clear()

    def _completed(self) -> None:
        """Called when a batch is in the raw table."""


class DatabaseSession(Session[OptionsT, DatabaseStateT]):
    """An attempt at a database. `_written`: the state as the raw table has it."""

    _written: DatabaseStateT

    def _commit(self, *, even_without_rows: bool = False) -> None:
        """Completes the batch, with the state after it. Without rows only if the state has changed."""
        if self._batch is not None or even_without_rows or self.state.kept != self._written.kept:
            self._complete_batch()

    def _completed(self) -> None:
        self._written = self.state.copy()

    def _ordered(self) -> dict[str, int]:
        """The tables that somebody wants to be read again, with their orders, and that aren't by now."""
        return {
            name: at
            for name, at in ordered(self._raw.lake).items()
            if name in self.state.tables and at > self.state.orders.get(name, 0)
        }

    def _begin_epoch(
        self,
        state: DatabaseStateT,
        before: Iterable[str],
        there: Mapping[str, TableProgress],
        transaction_id: int | None = None,
    ) -> DatabaseStateT:
        """Writes down that all tables are read again, and those that aren't `there` any more are gone.

        What the raw table has of the tables `before` counts until they are read.
        """
        batch, now = self._raw.batch(), now_ms() * 1000

        def add(table: str, op: str, after: str | None, ordinal: int) -> None:
            batch.add(table, Row(op, None, after, None, transaction_id, now, state.epoch, 0, ordinal))

        for each in sorted(before):
            if each in there:
                state.tables[each] = dataclasses.replace(there[each], is_read_again=True)
                add(each, "truncate", READ_AGAIN, 1)
            else:
                add(each, "truncate", None, 1)
                add(each, "complete", None, 2)  # it may have been open
        batch.complete(state)
        return state


def _nothing(_: object) -> None:
    """The default of `pause` and `on_commit`."""
