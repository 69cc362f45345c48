"""The capture of Debezium's messages: from files or topics into a raw table, through failures of both."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from thrift.Thrift import TException

from lake.capture import metrics
from lake.capture.debezium.events import Column, Event
from lake.capture.debezium.files import FileInput
from lake.capture.debezium.inputs import Arrived, Input
from lake.capture.debezium.state import DebeziumState, TableState
from lake.capture.errors import CaptureError
from lake.capture.raw_table import Batch, RawTable, Row
from lake.capture.results import Result
from lake.capture.retries import Retries, passes
from lake.capture.schemas import READ_AGAIN, DescribedColumn, Schema, schema_of
from lake.protocol.clock import now_ms
from lake.protocol.connection.closing import Closing
from lake.tables.lake import LakeClient

_WAIT_SECONDS = 0.5
_MAX_TABLES = 10_000  # the state of each is in every instant


@dataclass(frozen=True)
class DebeziumOptions:
    """What is captured, and how; times and rows as of `lake.capture.postgres.capture.Options`.

    `source`: a file or a directory, or `kafka://host:port?topic=NAME`. `kafka`: options of librdkafka. `keys`: the
    columns of tables' keys, where messages don't say.
    """

    source: str
    into: str
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kafka: Mapping[str, str] = field(default_factory=dict)
    interval: float = 5.0
    batch_rows: int = 200_000
    retry_seconds: float = 300.0
    new_snapshot: bool = False


def _nothing(step: str) -> None:
    """The default of `pause`."""


class DebeziumCapture:
    """Captures until it is stopped, or until it has caught up."""

    def __init__(self, client: LakeClient, options: DebeziumOptions) -> None:
        self.client = client
        self.options = options
        self.result = Result()
        self.is_stopping = False
        self.pause: Callable[[str], None] = _nothing
        """Called with the name of each step, for tests that kill the process there."""
        self.on_commit: Callable[[DebeziumState], None] = lambda state: None
        """Called after each batch."""

    def stop(self) -> None:
        """Lets `run` end soon, after what has come is written. May be called by a signal handler."""
        self.is_stopping = True

    def run(self, *, once: bool = False) -> Result:
        """Captures; with `once` until all is written that was there at the start.

        Raises CaptureError for what doesn't pass, and the last error if it doesn't pass for `retry_seconds`.
        """
        renew = self.options.new_snapshot
        retries = Retries(self.options.retry_seconds)
        while not self.is_stopping:
            batches = self.result.batches
            try:
                with _Session(self, renew=renew) as session:
                    renew = False
                    session.run(once=once)
                return self.result
            except (TException, OSError) as error:
                if not passes(error):
                    raise
                retries.wait(error, has_advanced=self.result.batches > batches)
        return self.result


def _open(options: DebeziumOptions) -> Input:
    if not options.source.startswith("kafka://"):
        return FileInput(options.source)
    try:
        from lake.capture.debezium.topics import TopicInput
    except ModuleNotFoundError:
        _missing()
    return TopicInput(options.source, options.kafka)


def _missing() -> NoReturn:
    raise CaptureError("confluent-kafka is missing: pip install 'lake-metastore-client[kafka]'") from None


class _Session(Closing):
    """One attempt: from what the raw table has to the first failure, which leaves what was committed before."""

    def __init__(self, capture: DebeziumCapture, *, renew: bool) -> None:
        self._capture = capture
        self._options = capture.options
        self._raw = RawTable(capture.client, self._options.into)
        self._input = _open(self._options)
        self._batch: Batch | None = None
        self._batch_due = 0.0
        self._rows: dict[str, int] = {}
        self._columns: dict[str, tuple[Column, ...]] = {}
        self._whole: set[str] = set()
        self._has_moved = False
        self._last_commit_time = 0
        try:
            self._raw.create()
            self.state = self._prepared(renew=renew)
            self._input.begin(self.state.offsets)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._batch is not None:
            self._batch.abandon()
            self._batch = None
        self._input.close()

    def _prepared(self, *, renew: bool) -> DebeziumState:
        """The state to go on from. Raises CaptureError for a raw table of another source."""
        known = self._raw.latest(DebeziumState.parse, even_undone=renew)
        source = self._input.source
        if known is None:
            return DebeziumState(source)
        if renew:
            return self._new_epoch(known)
        if known.source != source:
            raise CaptureError(
                f"{self._options.into} has the messages of {known.source}, not of {source}: give another table"
            )
        return known

    def _new_epoch(self, known: DebeziumState) -> DebeziumState:
        """Writes down that all messages are read again. What the raw table has counts until that is done."""
        state = DebeziumState(self._input.source, known.epoch + 1, known.batch + 1)
        batch = self._raw.batch()
        for ordinal, table in enumerate(sorted(known.tables), 1):
            state.tables[table] = TableState(is_read_again=True)
            batch.add(table, Row("truncate", None, READ_AGAIN, None, None, now_ms() * 1000, state.epoch, 0, ordinal))
        batch.complete(state)
        return state

    def run(self, *, once: bool) -> None:
        """Captures until the capture is stopped or, with `once`, has caught up."""
        self._capture.pause("reading")
        while not self._capture.is_stopping:
            arrived = self._input.read(_WAIT_SECONDS)
            for each in arrived:
                self._take(each)
            if self._input.has_caught_up and (whole := self.state.whole()):
                self._complete(whole)
            is_due = self._has_moved and time.monotonic() >= self._batch_due
            if is_due or (self._batch is not None and self._batch.rows >= self._options.batch_rows):
                self._commit()
            if once and self._input.has_caught_up and not self.state.whole():
                break
        self._commit()

    def _move(self) -> None:
        """Lets a batch be due soon."""
        if not self._has_moved:
            self._has_moved = True
            self._batch_due = time.monotonic() + self._options.interval

    def _complete(self, whole: set[str]) -> None:
        """Lets the rows that tables have in this epoch count in place of those before, once all are read."""
        if whole != self._whole:
            self._whole = whole
            self._commit()
            self._input.look_again()  # another place may have got rows before the last message that came
            return
        self._move()
        for table in sorted(whole):
            self._add_row(table, "complete", None, None, None, None, now_ms() * 1000, 2)
            self.state.tables[table] = dataclasses.replace(self.state.tables[table], is_read_again=False)

    def _take(self, arrived: Arrived) -> None:
        self._move()
        self.state.offsets[arrived.place] = arrived.next
        event = arrived.event
        if event is None:
            return
        self.state.number += 1
        self._describe(event)
        is_superseded = event.op == "truncate" and self.state.tables[event.table].is_read_again
        self._add(event, event.op, event.before, READ_AGAIN if is_superseded else event.after, 1)
        if event.op == "truncate":  # its rows may have any columns from here on
            self.state.tables[event.table] = dataclasses.replace(self.state.tables[event.table], shape="")
            self._columns.pop(event.table, None)
        self.state.tables[event.table] = self.state.tables[event.table].after(event.sent_at, event.follows)
        self._last_commit_time = event.committed_at

    def _describe(self, event: Event) -> None:
        """Writes down the columns of a table when they are new."""
        known = self.state.tables.get(event.table)
        if known is None:
            if len(self.state.tables) >= _MAX_TABLES:
                raise CaptureError(f"a raw table can have {_MAX_TABLES:,} tables: capture the others into another")
            known = self.state.tables[event.table] = TableState()
        key = self._options.keys.get(event.table) or event.key or known.key
        columns = tuple(each._replace(key=each.name in key) for each in event.columns)
        if not columns or event.op == "truncate" or self._columns.get(event.table) == columns:
            return
        self._columns[event.table] = columns
        if missing := [each for each in key if each not in {column.name for column in columns}]:
            raise CaptureError(f"{event.table} has no column {missing[0]}, which is said to be in its key")
        schema = schema_of(
            DescribedColumn(each.name, each.type, each.source_type, each.key, each.large) for each in columns
        )
        if schema.form == known.shape:
            return
        self.state.tables[event.table] = dataclasses.replace(known, key=key, shape=schema.form)
        if known.shape and not _is_read_by(schema, known.shape, columns):
            self._add(event, "hold", None, _altered(event.table), -1)
        self._add(event, "schema", None, schema.text, 0)

    def _add(self, event: Event, op: str, before: str | None, after: str | None, ordinal: int) -> None:
        unchanged = None if op in ("schema", "hold") else event.unchanged
        self._add_row(event.table, op, before, after, unchanged, event.transaction_id, event.committed_at, ordinal)

    def _add_row(
        self,
        table: str,
        op: str,
        before: str | None,
        after: str | None,
        unchanged: list[str] | None,
        transaction_id: int | None,
        committed_at: int,
        ordinal: int,
    ) -> None:
        """Adds a row with a place at the latest message."""
        if self._batch is None:
            self._batch = self._raw.batch()
        state = self.state
        row = Row(op, before, after, unchanged, transaction_id, committed_at, state.epoch, state.number, ordinal)
        self._batch.add(table, row)
        self._rows[table] = self._rows.get(table, 0) + 1
        known = state.tables[table]
        state.tables[table] = dataclasses.replace(known, rows=known.rows + 1)

    def _commit(self) -> None:
        """Completes the batch, with the offsets after it."""
        if not self._has_moved:
            return
        for place in self._input.gone():
            self.state.offsets.pop(place, None)
        batch = self._batch = self._batch or self._raw.batch()
        self.state.batch += 1
        self._capture.pause("before")
        batch.complete(self.state)
        self._batch = None
        self._has_moved = False
        self._capture.pause("completed")
        self._capture.result.count(self._rows)
        self._rows.clear()
        metrics.ROWS.inc(batch.rows)
        metrics.BATCHES.inc()
        if self._last_commit_time:
            metrics.LAG_SECONDS.set(max(0.0, time.time() - self._last_commit_time / 1e6))
        self._capture.on_commit(self.state)


def _is_read_by(schema: Schema, known: str, columns: Sequence[Column]) -> bool:
    """Whether rows with the columns of the fingerprint `known` are rows of a schema, with NULL in its other columns."""
    if not schema.continues(known):
        return False
    return all(each.is_null_before for each in columns[schema.forms.index(known) + 1 :])


def _altered(table: str) -> str:
    return (
        f"{table} was altered at the source, and its older messages don't say what its rows have now: let Debezium"
        " write its snapshot into another topic or directory, and capture that with --new-snapshot"
    )
