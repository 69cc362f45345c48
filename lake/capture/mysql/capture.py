"""The capture from MariaDB: from its log into a raw table, again and again, through failures of both.

A chunk is read in a transaction of which the source says at which position of the log it reads. Its rows rank there:
the log is read up to that position first, and what comes after it ranks behind.
"""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

import pymysql

from lake.capture import metrics
from lake.capture.alarms import alarm, note_trouble
from lake.capture.chunks import ChunkLimits
from lake.capture.errors import CaptureError
from lake.capture.mysql.cascades import Cascades
from lake.capture.mysql.log import Begin, Change, End, Log, LogEvent, Unreadable
from lake.capture.mysql.positions import Position
from lake.capture.mysql.source import BY_TRANSACTION, Chunk, MysqlSource, SourceTable, said
from lake.capture.mysql.state import MysqlState
from lake.capture.mysql.statements import Altered, Emptied, Gone, Linked, Stated, Unlinked, Widened, Written
from lake.capture.mysql.values import Column, RowEncoder
from lake.capture.raw_table import Row
from lake.capture.runner import DatabaseOptions, DatabaseSession, Runner
from lake.capture.schema_changes.model import Kind, Untouched
from lake.capture.schemas import (
    EMPTIED,
    INCOMPLETE,
    READ_AGAIN,
    WHOLE_ORDINAL,
    DescribedColumn,
    Schema,
    schema_of,
    text_of_statement,
    unwidened,
    widened,
)
from lake.capture.state import Phase, TableProgress
from lake.protocol.clock import now_ms

logger = logging.getLogger(__name__)

_ADVANCE_SECONDS = 1.0  # for chunks, until the log is read again
_LOOK_SECONDS = 10.0  # between two looks for new tables, and at the lag
_PAUSES = 10  # after a table was read for its foreign keys, in the time that this took
_IDLE_BYTES = 16 << 20  # log without changes of ours, after which the position is stored anyway

_DENIED = frozenset({1044, 1142, 1143, 1370, 1449, 1356})  # of a query: what the user may not do
_CHANGED = frozenset({1051, 1054, 1146, 1412})  # the table isn't as it was described just before


@dataclass(frozen=True, kw_only=True)
class MysqlOptions(DatabaseOptions):
    """What is captured, and how.

    `tables`: their names with their databases'; none for all tables of the database in `source`.
    """

    tables: tuple[str, ...] = ()


class MysqlCapture(Runner[MysqlOptions, MysqlState]):
    """The capture of a MariaDB."""

    transient = (pymysql.Error,)
    permanent = (pymysql.ProgrammingError,)
    said = staticmethod(said)

    def session(self, *, renew: bool) -> "_Session":
        return _Session(self, renew=renew)


class _Session(DatabaseSession[MysqlOptions, MysqlState]):
    def __init__(self, capture: MysqlCapture, *, renew: bool) -> None:
        super().__init__(capture)
        self._raw.create()
        self._source = MysqlSource(self._options.source, self._options.tables)
        self._log: Log | None = None
        self._limits = ChunkLimits(self._options.chunk_rows)
        self._encoders: dict[tuple[Column, ...], RowEncoder] = {}
        self._schemas: dict[tuple[tuple[Column, ...], tuple[str, ...]], Schema] = {}
        self._cascades = Cascades()
        self._unreadable: set[str] = set()  # of which the log's rows can't be read
        self._hidden: set[str] = set()  # that were looked for in vain since the last look
        self._tried: set[str] = set()  # that couldn't be read since the last look
        self._differing: dict[str, str] = {}
        self._pauses: dict[str, float] = {}
        self._is_once = False
        self._begun: Begin | None = None
        self._ordinal = 0
        self._touched: set[str] = set()  # by the statement that is being read
        self._pending: Chunk | None = None
        self._end: Position | None = None
        self._looked = 0.0
        self._parents: set[str] = set()
        try:
            self._source.check()
            self.state = self._prepared(renew=renew)
            self.state.troubles.clear()  # each is tried again
        except BaseException:
            self.close()
            raise
        self._written = self.state.copy()

    def close(self) -> None:
        super().close()
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
            state = MysqlState(server.number, server.end, "", known.epoch + 1, known.batch + 1)
            there = dict.fromkeys(self._source.tables(), TableProgress(0, Phase.CHUNKS))
            return self._begin_epoch(state, known.tables, there)
        if known.server != server.number:
            raise CaptureError(
                f"{self._options.into} has the changes of the server {known.server}, and the source is"
                f" {server.number}: start again with --new-snapshot, or give another table with --into"
            )
        self._source.check_position(known.position, known.gtid)
        return known

    def run(self, *, once: bool) -> None:
        self._is_once = once
        self._find_tables()
        self._take_orders()
        self._look_at_references()
        self._log = Log(self._source, self.state.position, self._parents)
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
        if not self.state.is_snapshot_done or self.state.position.number < self._end.number:
            return False
        self._alarm()
        return True

    # --- the log ----------------------------------------------------------------------------------------------

    def _take(self, event: LogEvent) -> None:
        match event:
            case Emptied() | Gone() | Altered() | Widened():
                self._touched |= self._named_by(event)
        match event:
            case Change():
                self._change(event)
            case Stated():
                self._state(event)
            case Begin():
                self._begun, self._ordinal = event, 0
            case Emptied(table):
                self._empty(table)
            case Gone(tables):
                self._drop(tables)
            case Altered(tables, of_partitions):
                noted = {each for each in tables if of_partitions and self._is_noted(each)}
                for each in sorted(noted):
                    self._emit(each, "stale", None, "its partitions changed")
                tables = tuple(each for each in tables if each not in noted)
                self._read_again(tables, "a statement may have changed its columns, or rows that aren't in the log")
            case Widened(table):
                self._widen(table)
            case Unreadable():
                self._pass_over(event)
            case Written():
                self._written_by_statement(event)
            case Linked(table, cascades):
                if cascades:
                    self.state.cascading.add(table)
                self._look_at_references()
            case Unlinked(table):
                # Its rows may have changed before that by a key which nobody has seen by then.
                others = self._cascades.below(table)
                for each in {table, *others} & self.state.cascading:
                    self._read_whole_again(each, "it has lost a foreign key")
                self._look_at_references()
            case End(position):
                if self._begun is not None:
                    self.state.gtid = self._begun.gtid
                    self._last_commit_time = self._begun.at
                self._begun = None
                self.state.position = position

    def _change(self, change: Change) -> None:
        table = change.table
        if table.name in self._cascades:
            for each in self._cascades.changed_by(change):
                self._read_whole_again(each, f"rows of {table.name} changed that its foreign keys reference")
        if not self._counts(table.name):
            return
        schema = self._schema(table.columns, table.key)
        shape = self.state.tables[table.name].shape
        if shape != schema.form:
            if shape and not schema.follows(shape):
                self._differ(table.name, schema)
                return
            self.state.advance(table.name, shape=schema.form)
            self._emit(table.name, "schema", None, schema.text)
        encoder = self._encoder(table.columns)
        before = None if change.before is None else encoder.encode(change.before)
        after = None if change.after is None else encoder.encode(change.after)
        op = "insert" if before is None else "delete" if after is None else "update"
        self._emit(table.name, op, before, after)

    def _named_by(self, effect: Emptied | Gone | Altered | Widened) -> set[str]:
        """The captured tables that a statement names."""
        names = (effect.table,) if isinstance(effect, Emptied | Widened) else effect.tables
        found = {each for each in names if each in self.state.tables}
        schemas = tuple(each for each in names if each.endswith("."))
        found |= {each for each in self.state.tables if schemas and each.startswith(schemas)}
        return {each for each in found if each not in self.state.dropped and not self._is_seen(self.state.tables[each])}

    def _state(self, stated: Stated) -> None:
        """Writes down what the source ran, behind what that did to tables."""
        for each in sorted(self._touched):
            self._emit(each, "statement", None, text_of_statement(stated.text, stated.renamed.get(each, {})))
        self._touched.clear()

    def _is_noted(self, name: str) -> bool:
        """Whether a table isn't read again whose partitions changed, but listed."""
        progress = self.state.tables.get(name)
        if progress is None or name in self.state.dropped or self._is_seen(progress):
            return False
        if progress.phase is not Phase.DONE or progress.is_open:
            return False
        return self._options.untouched(name, Kind.PARTITIONS) is Untouched.NOTE

    def _widen(self, name: str) -> None:
        """Notes that the next row may have more columns. Those that it had stay known: a change of them that isn't in
        the log must not pass with the statement."""
        progress = self.state.tables.get(name)
        if progress is not None and progress.shape:
            self.state.advance(name, shape=widened(progress.shape))

    def _counts(self, name: str) -> bool:
        """Whether a change of a table in the open transaction is to be written. A new table is noted."""
        assert self._begun is not None
        if not self._is_captured(name):
            return False
        progress = self.state.tables[name]
        return progress.phase is not Phase.WHOLE and not self._is_seen(progress)

    def _is_captured(self, name: str) -> bool:
        """Whether changes of a table are captured by now. One that isn't known yet is looked for."""
        if not self._source.wanted.has(name) or name in self._unreadable or name in self._hidden:
            return False
        if name not in self.state.tables or name in self.state.dropped:
            self._find_tables()
            if name not in self.state.tables or name in self.state.dropped:
                self._hidden.add(name)  # perhaps the log has its end, too
                return False
        progress = self.state.tables[name]
        is_unread = progress.phase is Phase.CHUNKS and progress.after is None
        return not (is_unread and name in self.state.troubles)

    def _is_seen(self, progress: TableProgress) -> bool:
        """Whether the rows that were read of a table have the open transaction."""
        return self._begun is not None and self._begun.lsn < progress.start_lsn

    def _differ(self, name: str, schema: Schema) -> None:
        """Meets other columns in the log than before, and no statement that says so."""
        if self._differing.get(name) == schema.form:  # it was read again because of them, and that didn't help
            self._unreadable.add(name)
            self._note_trouble(name, "the log has other columns of it than the user may see: GRANT SELECT on all")
            return
        self._differing[name] = schema.form
        self._read_again([name], "its columns changed")

    def _pass_over(self, event: Unreadable) -> None:
        """Goes on without rows that can't be read."""
        for each in self._cascades.below(event.table):
            self._read_whole_again(each, f"rows of {event.table} changed that its foreign keys reference")
        if not self._is_captured(event.table):
            return
        self._read_again([event.table], event.reason)
        if not event.passes:
            self._unreadable.add(event.table)
            self._note_trouble(event.table, event.reason)

    def _written_by_statement(self, event: Written) -> None:
        """Reads tables again that a session wrote to without rows in the log. Triggers may have written to any."""
        schemas = {event.schema, *(each.partition(".")[0] for each in event.tables)}
        if any(self.state.troubles.get(each) == BY_TRANSACTION for each in event.tables):
            self._read_again(event.tables, "a statement wrote to it")
        elif not schemas.isdisjoint(self._source.wanted.schemas):
            self._read_again(
                [*self.state.tables], "a session wrote with binlog_format=STATEMENT, and the log has no rows"
            )

    def _begin_table(self, name: str) -> None:
        """Notes a table that is new, or made again. What the raw table has counts until all rows are read."""
        is_known = name in self.state.tables
        self._leave_open(name)
        self.state.tables[name] = TableProgress(0, Phase.CHUNKS, is_read_again=is_known)
        self.state.dropped.discard(name)
        if self._pending is not None and self._pending.table.name == name:
            self._pending = None
        if is_known:
            self._emit(name, "truncate", None, READ_AGAIN)

    def _leave_open(self, name: str) -> None:
        """Lets what the open transaction has changed in a table count together with what is read of it later."""
        progress, begun = self.state.tables.get(name), self._begun
        if progress is None or progress.is_open or begun is None or not self._ordinal:
            return
        self.state.advance(name, is_incomplete=True)
        place = (begun.lsn, 0)
        self._add(name, Row("incomplete", None, INCOMPLETE, None, begun.number, begun.at, self.state.epoch, *place))

    def _read_again(self, names: Iterable[str], why: str) -> None:
        """Lets tables be read from the start."""
        for name in names:
            progress = self.state.tables.get(name)
            if progress is None or name in self.state.dropped or self._is_seen(progress):
                continue
            self._unreadable.discard(name)
            self._tried.discard(name)
            if progress.phase is Phase.WHOLE or _is_unwritten(progress):
                continue  # it is going to be read anyway
            metrics.REREADS.inc()
            alarm("table is read again", table=name, reason=why)
            self._begin_table(name)

    def _read_whole_again(self, name: str, why: str) -> None:
        """Lets a table be read as a whole, so that it is complete however often that is needed."""
        progress = self.state.tables.get(name)
        if progress is None or name in self.state.dropped or self._is_seen(progress) or _is_unwritten(progress):
            return
        if progress.phase is not Phase.WHOLE:
            metrics.REREADS.inc()
            alarm("table is read again", table=name, reason=why)
            self._leave_open(name)
            self.state.advance(name, phase=Phase.WHOLE, key=(), after=None)
        if self._pending is not None and self._pending.table.name == name:
            self._pending = None

    def _empty(self, table: str) -> None:
        progress = self.state.tables.get(table)
        if progress is None or table in self.state.dropped or self._is_seen(progress):
            return
        self.state.advance(table, shape="")  # the columns are written down again before the next row
        self._emit(table, "truncate", None, EMPTIED if progress.is_open else None)

    def _drop(self, names: Iterable[str]) -> None:
        """Rows of tables that are gone stay, as what comes again by these names is made again."""
        known = {*self.state.tables, *self.state.troubles, *self.state.cascading, *self._parents, *self._hidden}
        gone = {each for name in names for each in known if each == name or (name[-1] == "." and each.startswith(name))}
        for each in gone:
            self._hidden.discard(each)
            # A parent that has another name now had its changes by the old one, which nobody knew.
            for child in self._cascades.below(each):
                self._read_whole_again(child, f"{each} was dropped, renamed or replaced")
            progress = self.state.tables.get(each)
            if progress is not None and self._is_seen(progress):
                continue
            self.state.troubles.pop(each, None)
            self._unreadable.discard(each)
            if progress is not None:
                self.state.dropped.add(each)
                self.state.advance(each, phase=Phase.DONE)
                if self._pending is not None and self._pending.table.name == each:
                    self._pending = None
        if not gone.isdisjoint(self.state.cascading | self._parents):
            self._look_at_references()

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

    def _schema(self, columns: tuple[Column, ...], key: tuple[str, ...]) -> Schema:
        found = self._schemas.get((columns, key))
        if found is None:
            found = self._schemas[columns, key] = schema_of(
                DescribedColumn(each.name, each.lake_type, each.source_type, each.name in key, large=False)
                for each in columns
            )
        return found

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
                self._begin_table(name)
                self._hidden.discard(name)
        missing = {name for name, each in self.state.tables.items() if each.phase is not Phase.DONE}
        missing |= {each for each in self._source.wanted.names if each not in self.state.tables}
        for name in sorted(missing.difference(found, self._unreadable)):
            self._note_trouble(name, _MISSING)

    def _take_orders(self) -> None:
        """Begins to read tables again that somebody wants to be."""
        orders = {name: at for name, at in self._ordered().items() if name not in self.state.dropped}
        if orders:
            # The log may end where they were read before, and their rows rank there: these rank behind by the epoch.
            self.state.epoch += 1
            self._read_again(orders, "somebody has asked for it")
            self.state.orders |= orders

    def _look_at_references(self) -> None:
        """Looks for foreign keys by which rows change without being in the log."""
        found = self._source.references()
        self._cascades = Cascades(found)
        self._parents.clear()
        self._parents.update(each.parent for each in found)
        for each in found:
            if each.child in self.state.tables and each.child not in self.state.cascading:
                logger.warning(
                    "rows of %s change with those of %s, by a foreign key whose effects MariaDB doesn't log: it is read"
                    " again as a whole when these are deleted, or their keys change",
                    *(each.child, each.parent),
                )
            self.state.cascading.add(each.child)

    def _advance(self) -> bool:
        """Lands the pending chunk once the log is read so far; else reads the next one. Whether it did something."""
        if self._pending is not None:
            if self.state.position.number < self._pending.position.number:
                return False
            self._land(self._pending)
            return True
        for name, progress in [*self.state.tables.items()]:
            if progress.phase is Phase.DONE or name in self._tried or name in self._unreadable:
                continue
            if not self._is_once and time.monotonic() < self._pauses.get(name, 0):
                continue
            try:
                reason = self._refusal(name) if progress.after is None else None
                if reason is None:
                    (self._read_chunk if progress.phase is Phase.CHUNKS else self._read_whole)(name)
            except CaptureError as error:
                reason = str(error)
            except pymysql.Error as error:
                if error.args[0] in _CHANGED:
                    self._tried.add(name)  # the log says soon what has become of it
                    continue
                if error.args[0] not in _DENIED:
                    raise
                reason = said(error)
            if reason is None:
                if self.state.troubles.pop(name, None) is not None:
                    metrics.TROUBLED_TABLES.set(len(self.state.troubles))
                return True
            self._note_trouble(name, reason)
        return False

    def _refusal(self, name: str) -> str | None:
        """Why a table can't be read rightly; None if it can."""
        hidden = [each for each in self._cascades.above(name) if not self._source.sees(each)]
        if hidden:
            return f"its rows change with those of {hidden[0]}, and the user has no SELECT on that"
        return self._source.refusal(name)

    def _note_trouble(self, name: str, why: str) -> None:
        """Goes on without a table, which is tried again with the next look."""
        self._tried.add(name)
        note_trouble(self.state, name, why)

    def _read_chunk(self, name: str) -> None:
        progress = self.state.tables[name]
        chunk = self._source.chunk(name, progress.key, progress.after, self._limits.of(name))
        if chunk is None:
            self.state.advance(name, phase=Phase.WHOLE)
            return
        # The log may have brought what the chunk doesn't see yet: then it is read again.
        if chunk.position.number < self.state.position.number:
            return
        self._limits.learn(name, chunk.rows)
        self._pending = chunk

    def _land(self, chunk: Chunk) -> None:
        self._pending = None
        table, name = chunk.table, chunk.table.name
        progress = self.state.tables[name]
        schema = self._schema(table.columns, _key_of(table))
        if progress.shape and not schema.continues(unwidened(progress.shape)):
            # What changed it comes later in the log, and lets the table be read again.
            self._note_trouble(
                name, "its columns changed without a statement in the log: use --new-snapshot if that stays"
            )
            return
        if progress.shape != schema.form:
            self.state.advance(name, shape=schema.form)
            self._add(name, self._read_row(chunk.position, 0, "schema", schema.text))
        encoder = self._encoder(table.columns)
        places = [[each.name for each in table.columns].index(each) for each in table.key]
        after, number = progress.after, progress.rows
        for number, values in enumerate(chunk.rows, progress.rows + 1):
            after = tuple([str(values[place]) for place in places])
            self._add(name, self._read_row(chunk.position, number, "read", encoder.encode(values)))
        self.state.advance(
            name, key=table.key, after=after, rows=number, phase=Phase.DONE if chunk.is_last else Phase.CHUNKS
        )
        self._complete(name, chunk.position)
        self._capture.pause("chunk")

    def _read_whole(self, name: str) -> None:
        """Reads all rows of a table as of one position. Its changes count from there on."""
        begun = time.monotonic()
        with self._source.whole(name) as found:
            if found is None:
                raise CaptureError(_MISSING)
            table, position, rows = found
            if position.number < self.state.position.number:
                return
            # What came before is superseded.
            reason = READ_AGAIN if self.state.tables[name].is_open else None
            schema = self._schema(table.columns, _key_of(table))
            self._add(name, self._read_row(position, WHOLE_ORDINAL, "truncate", reason))
            self._add(name, self._read_row(position, 0, "schema", schema.text))
            encoder, number = self._encoder(table.columns), 0
            for number, values in enumerate(rows, 1):
                self._add(name, self._read_row(position, number, "read", encoder.encode(values)))
        # A transaction's place is behind its first event, so those that the rows have are before the position.
        self.state.advance(name, phase=Phase.DONE, start_lsn=position.number, rows=number, shape=schema.form)
        self._complete(name, position)
        if name in self.state.cascading:
            now = time.monotonic()
            self._pauses[name] = now + _PAUSES * (now - begun)

    def _complete(self, name: str, position: Position) -> None:
        """Says that nothing is missing any more of a table of which something was."""
        progress = self.state.tables[name]
        if progress.is_open and progress.phase is Phase.DONE:
            self.state.advance(name, is_read_again=False, is_incomplete=False)
            self._add(name, self._read_row(position, progress.rows + 1, "complete", None))

    def _read_row(self, position: Position, ordinal: int, op: str, after: str | None) -> Row:
        return Row(op, None, after, None, None, now_ms() * 1000, self.state.epoch, position.number, ordinal)

    # --- batches ----------------------------------------------------------------------------------------------

    def _commit_if_due(self) -> None:
        if self._is_due:
            self._commit()
        elif self._batch is None and self.state.position.number - self._written.position.number > _IDLE_BYTES:
            self._commit(even_without_rows=True)

    def _alarm(self) -> None:
        """Says again which tables can't be read, and of which there are changes without a table to be seen."""
        for name in sorted(self._unreadable):
            self._note_trouble(name, self.state.troubles.get(name, _MISSING))
        for name in sorted(self._hidden):
            self._note_trouble(name, f"the log has changes of it, but {_MISSING}")

    def _look(self) -> None:
        """Looks for new tables, and how far the log is ahead."""
        self._looked = time.monotonic()
        self._tried.clear()
        self._find_tables()
        self._take_orders()
        self._alarm()
        metrics.TROUBLED_TABLES.set(len(self.state.troubles))
        if self._batch is None and self.state.troubles != self._written.troubles:
            self._commit(even_without_rows=True)
        behind = self._source.behind(self.state.position)
        metrics.LAG_BYTES.set(behind)
        if behind > self._options.alarm_bytes:
            alarm("log lag", bytes=behind)


_MISSING = "it isn't there, or the user has no SELECT on it"


def _is_unwritten(progress: TableProgress) -> bool:
    """Whether the raw table has nothing of a table since its rows were to be read from the start."""
    return progress.phase is Phase.CHUNKS and progress.after is None and not progress.shape


def _key_of(table: SourceTable) -> tuple[str, ...]:
    return tuple(each.name for each in table.columns if each.in_key)
