"""The capture from MariaDB: from its log into a raw table, again and again, through failures of both.

A chunk is read in a transaction of which the source says at which position of the log it reads. Its rows rank there:
the log is read up to that position first, and what comes after it ranks behind.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pymysql
from thrift.Thrift import TException

from metastore.capture import metrics
from metastore.capture.errors import CaptureError
from metastore.capture.mysql.log import Begin, Change, Emptied, End, Gone, Log, LogEvent, LogTable
from metastore.capture.mysql.positions import Position
from metastore.capture.mysql.source import Chunk, MysqlSource, said
from metastore.capture.mysql.state import MysqlState
from metastore.capture.mysql.values import Column, RowEncoder
from metastore.capture.raw_table import Batch, RawTable, Row
from metastore.capture.results import Result
from metastore.capture.retries import Retries, passes
from metastore.capture.schemas import DescribedColumn, schema_of
from metastore.capture.state import Phase, TableProgress
from metastore.client.closing import Closing
from metastore.client.lake import LakeClient
from metastore.clock import now_ms

logger = logging.getLogger(__name__)

_ADVANCE_SECONDS = 1.0  # for chunks, until the log is read again
_LOOK_SECONDS = 10.0  # between two looks for new tables, and at the lag
_IDLE_BYTES = 16 << 20  # log without changes of ours, after which the position is stored anyway

CHUNK_CHARACTERS = 16 << 20
"""What a chunk should have, as texts."""

MAX_CHUNK_ROWS, MIN_CHUNK_ROWS = 20_000, 100


@dataclass(frozen=True)
class MysqlOptions:
    """What is captured, and how; times and rows as of `metastore.capture.capture.Options`.

    `tables`: their names with their databases'; none for all tables of the database in `source`.
    """

    source: str
    into: str
    tables: tuple[str, ...] = ()
    interval: float = 5.0
    batch_rows: int = 200_000
    chunk_rows: int = 5_000
    alarm_bytes: int = 1 << 30
    retry_seconds: float = 300.0
    new_snapshot: bool = False


class MysqlCapture:
    """Captures until it is stopped, or until it has caught up."""

    def __init__(self, client: LakeClient, options: MysqlOptions) -> None:
        self.client = client
        self.options = options
        self.result = Result()
        self.is_stopping = False
        self.pause: Callable[[str], None] = _nothing
        """Called with the name of each step, for tests that kill the process there."""
        self.on_commit: Callable[[MysqlState], None] = lambda state: None
        """Called after each batch."""

    def stop(self) -> None:
        """Lets `run` end soon, after what has come is written. May be called by a signal handler."""
        self.is_stopping = True

    def run(self, *, once: bool = False) -> Result:
        """Captures; with `once` until all tables are read, and what was committed before that.

        A source or a metastore that is lost is tried again. Raises CaptureError for what doesn't pass, or if the source
        can't be reached at first, and the last error if it doesn't pass for `retry_seconds`.
        """
        renew = self.options.new_snapshot
        has_begun = False
        retries = Retries(self.options.retry_seconds)
        while not self.is_stopping:
            batches = self.result.batches
            try:
                with _Session(self, renew=renew) as session:
                    renew, has_begun = False, True
                    session.run(once=once)
                return self.result
            except (pymysql.Error, TException, OSError) as error:
                if isinstance(error, pymysql.ProgrammingError):
                    raise CaptureError(f"the source: {said(error)}") from None
                if not passes(error):
                    raise
                if not has_begun and isinstance(error, pymysql.Error):
                    raise CaptureError(f"can't connect to the source: {said(error)}") from None
                retries.wait(error, has_advanced=self.result.batches > batches)
        return self.result


class _Session(Closing):
    """One attempt: from what the raw table has to the first failure, which leaves what was committed before."""

    def __init__(self, capture: MysqlCapture, *, renew: bool) -> None:
        self._capture = capture
        self._options = options = capture.options
        self._raw = RawTable(capture.client, options.into)
        self._raw.create()
        self._source = MysqlSource(options.source, options.tables)
        self._log: Log | None = None
        self._batch: Batch | None = None
        self._batch_due = 0.0
        self._rows: dict[str, int] = {}
        self._limits: dict[str, int] = {}
        self._encoders: dict[tuple[Column, ...], RowEncoder] = {}
        self._begun: Begin | None = None
        self._ordinal = 0
        self._pending: Chunk | None = None
        self._end: Position | None = None
        self._looked = 0.0
        self._last_commit_time = 0
        try:
            self._source.check()
            self.state = self._prepared(renew=renew)
        except BaseException:
            self.close()
            raise
        self._written = self.state.copy()

    def close(self) -> None:
        if self._batch is not None:
            self._batch.abandon()
            self._batch = None
        if self._log is not None:
            self._log.close()
        self._source.close()

    # --- before it begins -------------------------------------------------------------------------------------

    def _prepared(self, *, renew: bool) -> MysqlState:
        """The state to go on from. Raises CaptureError."""
        server = self._source.server()
        known = self._raw.latest(MysqlState.parse, even_undone=renew)
        if known is None:
            return MysqlState(server.number, server.end)
        if renew:
            return self._new_epoch(known, MysqlState(server.number, server.end, "", known.epoch + 1, known.batch + 1))
        if known.server != server.number:
            raise CaptureError(
                f"{self._options.into} has the changes of the server {known.server}, and the source is"
                f" {server.number}: start again with --new-snapshot, or give another table with --into"
            )
        self._source.check_position(known.position, known.gtid)
        return known

    def _new_epoch(self, known: MysqlState, state: MysqlState) -> MysqlState:
        """Writes down that all tables are read anew."""
        batch = self._raw.batch()
        for ordinal, name in enumerate(sorted(known.tables), 1):
            batch.add(name, Row("truncate", None, None, None, None, now_ms() * 1000, state.epoch, 0, ordinal))
        batch.complete(state)
        return state

    def run(self, *, once: bool) -> None:
        """Captures until the capture is stopped or, with `once`, has caught up."""
        self._find_tables()
        self._log = Log(self._source, self.state.position)
        self._capture.pause("streaming")
        for event in self._log.events():
            if event is not None:
                self._take(event)
            if self._begun is not None:
                continue
            until = time.monotonic() + _ADVANCE_SECONDS
            while self._advance() and time.monotonic() < until:
                self._commit_if_due()
            self._commit_if_due()
            if time.monotonic() - self._looked > _LOOK_SECONDS:
                self._look()
            if self._is_over(once=once):
                break
        self._commit()

    def _is_over(self, *, once: bool) -> bool:
        if self._capture.is_stopping:
            return True
        if not once or self._pending is not None or not self.state.is_snapshot_done:
            return False
        if self._end is None:
            self._find_tables()
            self._end = self._source.server().end
        return self.state.is_snapshot_done and self.state.position.number >= self._end.number

    # --- the log ----------------------------------------------------------------------------------------------

    def _take(self, event: LogEvent) -> None:
        match event:
            case Change():
                self._change(event)
            case Begin():
                self._begun, self._ordinal = event, 0
            case Emptied(table):
                self._empty(table)
            case Gone(tables):
                self._drop(tables)
            case End(position):
                if self._begun is not None:
                    self.state.gtid = self._begun.gtid
                    self._last_commit_time = self._begun.at
                self._begun = None
                self.state.position = position

    def _change(self, change: Change) -> None:
        table = change.table
        if not self._counts(table):
            return
        self._describe(table.name, table.columns, table.key)
        encoder = self._encoder(table.columns)
        before = None if change.before is None else encoder.encode(change.before)
        after = None if change.after is None else encoder.encode(change.after)
        op = "insert" if before is None else "delete" if after is None else "update"
        self._emit(table.name, op, before, after)

    def _counts(self, table: LogTable) -> bool:
        """Whether a change of a table in the open transaction is to be written. A new table is noted."""
        assert self._begun is not None
        progress = self.state.tables.get(table.name)
        if progress is None or table.name in self.state.dropped:
            has_chunks = bool(table.key) and all(each.orders_chunks for each in table.columns if each.in_key)
            self._begin_table(table.name, Phase.CHUNKS if has_chunks else Phase.WHOLE)
            progress = self.state.tables[table.name]
        return progress.phase is not Phase.WHOLE and self._begun.lsn >= progress.start_lsn

    def _begin_table(self, name: str, phase: Phase) -> None:
        """Notes a table that is new, or made anew: then what it had counts no more."""
        known = name in self.state.tables
        self.state.tables[name] = TableProgress(0, phase)
        self.state.dropped.discard(name)
        if self._pending is not None and self._pending.table.name == name:
            self._pending = None
        if known:
            self._empty(name)

    def _empty(self, table: str) -> None:
        progress = self.state.tables.get(table)
        if progress is None or (self._begun is not None and self._begun.lsn < progress.start_lsn):
            return
        self._emit(table, "truncate", None, None)

    def _drop(self, names: Iterable[str]) -> None:
        """Rows of tables that are gone stay, as what comes again by these names is made anew."""
        for name in names:
            whole = [each for each in self.state.tables if each.startswith(name)] if name.endswith(".") else [name]
            for each in whole:
                if each in self.state.tables:
                    self.state.dropped.add(each)
                    self.state.advance(each, phase=Phase.DONE)
                    if self._pending is not None and self._pending.table.name == each:
                        self._pending = None

    def _emit(self, table: str, op: str, before: str | None, after: str | None) -> None:
        """Adds a row at the next place of the open transaction or, without one, of the position."""
        self._ordinal += 1
        begun = self._begun
        if begun is None:  # before the rows that chunks may have there
            row = self._read_row(self.state.position, self._ordinal - (1 << 31), op, after)
        else:
            place = (begun.lsn, self._ordinal)
            row = Row(op, before, after, None, begun.number, begun.at, self.state.epoch, *place)
        self._add(table, row)

    def _describe(self, name: str, columns: Sequence[Column], key: Sequence[str], at: Position | None = None) -> None:
        """Writes down the columns of a table when they are new."""
        schema = schema_of(
            DescribedColumn(each.name, each.lake_type, each.source_type, each.name in key, False) for each in columns
        )
        if self.state.tables[name].shape == schema.form:
            return
        self.state.advance(name, shape=schema.form)
        if at is None:
            self._emit(name, "schema", None, schema.text)
        else:
            self._add(name, self._read_row(at, 0, "schema", schema.text))

    def _encoder(self, columns: tuple[Column, ...]) -> RowEncoder:
        found = self._encoders.get(columns)
        if found is None:
            found = self._encoders[columns] = RowEncoder(columns)
        return found

    # --- the snapshot -----------------------------------------------------------------------------------------

    def _find_tables(self) -> None:
        """Looks for tables that are there by now."""
        found = self._source.tables()
        for name in found:
            if name not in self.state.tables or name in self.state.dropped:
                self._begin_table(name, Phase.CHUNKS)
        for name, progress in [*self.state.tables.items()]:
            if progress.phase is not Phase.DONE and name not in found:
                self._drop([name])

    def _advance(self) -> bool:
        """Lands the pending chunk once the log is read so far; else reads the next one. Whether it did something."""
        if self._pending is not None:
            if self.state.position.number < self._pending.position.number:
                return False
            self._land(self._pending)
            return True
        for name, progress in self.state.tables.items():
            if progress.phase is Phase.CHUNKS:
                self._read_chunk(name, progress)
                return True
            if progress.phase is Phase.WHOLE:
                self._read_whole(name)
                return True
        return False

    def _read_chunk(self, name: str, progress: TableProgress) -> None:
        limit = self._limits.setdefault(name, self._options.chunk_rows)
        chunk = self._source.chunk(name, progress.key, progress.after, limit)
        if chunk is None:
            self.state.advance(name, phase=Phase.WHOLE)
            return
        # The log may have brought what the chunk doesn't see yet: then it is read again.
        if chunk.position.number < self.state.position.number:
            return
        size = sum(len(value) for row in chunk.rows for value in row if value is not None)
        if size:
            fitting = limit if chunk.is_last else limit * CHUNK_CHARACTERS // size
            self._limits[name] = max(MIN_CHUNK_ROWS, min(MAX_CHUNK_ROWS, 2 * limit, fitting))
        self._pending = chunk

    def _land(self, chunk: Chunk) -> None:
        self._pending = None
        table, name = chunk.table, chunk.table.name
        progress = self.state.tables[name]
        self._describe(name, table.columns, [each.name for each in table.columns if each.in_key], chunk.position)
        encoder = self._encoder(table.columns)
        places = [[each.name for each in table.columns].index(each) for each in table.key]
        after = progress.after
        for number, values in enumerate(chunk.rows, progress.rows + 1):
            after = tuple([str(values[place]) for place in places])
            self._add(name, self._read_row(chunk.position, number, "read", encoder.encode(values)))
        self.state.advance(
            name,
            key=table.key,
            after=after,
            rows=progress.rows + len(chunk.rows),
            phase=Phase.DONE if chunk.is_last else Phase.CHUNKS,
        )
        self._capture.pause("chunk")

    def _read_whole(self, name: str) -> None:
        """Reads a table by whose key no chunks can be read: all rows as of one position, its changes from there on."""
        with self._source.whole(name) as found:
            if found is None:
                self._drop([name])
                return
            table, position, rows = found
            if position.number < self.state.position.number:
                return
            # What came before is superseded.
            self._add(name, self._read_row(position, -1, "truncate", None))
            self._describe(name, table.columns, [each.name for each in table.columns if each.in_key], position)
            encoder, number = self._encoder(table.columns), 0
            for number, values in enumerate(rows, 1):
                self._add(name, self._read_row(position, number, "read", encoder.encode(values)))
        # A transaction's place is behind its first event, so those that the rows have are before the position.
        self.state.advance(name, phase=Phase.DONE, start_lsn=position.number, rows=number)

    def _read_row(self, position: Position, ordinal: int, op: str, after: str | None) -> Row:
        return Row(op, None, after, None, None, now_ms() * 1000, self.state.epoch, position.number, ordinal)

    # --- batches ----------------------------------------------------------------------------------------------

    def _add(self, table: str, row: Row) -> None:
        if self._batch is None:
            self._batch = self._raw.batch()
            self._batch_due = time.monotonic() + self._options.interval
        self._batch.add(table, row)
        self._rows[table] = self._rows.get(table, 0) + 1

    def _commit_if_due(self) -> None:
        if self._batch is not None:
            if self._batch.rows >= self._options.batch_rows or time.monotonic() >= self._batch_due:
                self._commit()
        elif self.state.position.number - self._written.position.number > _IDLE_BYTES:
            self._commit(even_without_rows=True)

    def _commit(self, *, even_without_rows: bool = False) -> None:
        """Completes the batch, with the state after it."""
        state, written = self.state, self._written
        is_same = (state.tables, state.dropped) == (written.tables, written.dropped)
        if self._batch is None and not even_without_rows and is_same:
            return
        batch = self._batch = self._batch or self._raw.batch()
        self.state.batch += 1
        self._capture.pause("before")
        batch.complete(self.state)
        self._batch = None
        self._capture.pause("completed")
        self._written = self.state.copy()
        self._capture.result.count(self._rows)
        self._rows.clear()
        metrics.ROWS.inc(batch.rows)
        metrics.BATCHES.inc()
        if self._last_commit_time:
            metrics.LAG_SECONDS.set(max(0.0, time.time() - self._last_commit_time / 1e6))
        self._capture.on_commit(self._written)

    def _look(self) -> None:
        """Looks for new tables, and how far the log is ahead."""
        self._looked = time.monotonic()
        self._find_tables()
        behind = self._source.behind(self.state.position)
        metrics.LAG_BYTES.set(behind)
        if behind > self._options.alarm_bytes:
            logger.warning(json.dumps({"alarm": "log lag", "bytes": behind}))


def _nothing(step: str) -> None:
    """The default of `pause`."""
