"""Reads what tables had before their changes were captured, while these go on, and without locks.

The method is DBLog's ("A Watermark Based Change-Data-Capture Framework", Netflix 2019), with transaction numbers for
the lower watermark: a chunk of rows is read, then a mark is written into the log. When the mark comes by the stream,
the chunk's rows rank there. Rows are left out that transactions changed which the stream has brought, and the chunk
hasn't seen.
"""

import logging
import time
import uuid
from collections.abc import Callable, Mapping
from typing import NamedTuple

import psycopg2

from lake.capture import metrics
from lake.capture.alarms import note_trouble
from lake.capture.chunks import ChunkLimits
from lake.capture.postgres.changes import Add, Changes, Commitment, Key
from lake.capture.postgres.layouts import Unlogged
from lake.capture.postgres.pgoutput import Begin, Column
from lake.capture.postgres.source import Chunk, Source, SourceTable, TableChanged, UnreadableTable, said
from lake.capture.postgres.state import State
from lake.capture.postgres.values import RowEncoder
from lake.capture.schema_changes.model import Untouched
from lake.capture.schemas import READ_AGAIN, Schema
from lake.capture.state import Phase, TableProgress
from lake.protocol.clock import now_ms

logger = logging.getLogger(__name__)

MAX_REREADS = 500
"""Keys in one query."""

_KEEP_ALIVE_SECONDS = 5.0

_LEFT_OUT = -1
"""The membership of a table that the publication doesn't have now. Its changes are missing until it is read again."""

_UNREADABLE = (
    UnreadableTable,
    psycopg2.ProgrammingError,
    psycopg2.DataError,
    psycopg2.InternalError,
    psycopg2.NotSupportedError,
)
"""What makes one table unreadable, rather than the source: rights that are missing, damage, a condition that fails."""


class _Pending(NamedTuple):
    """A chunk whose mark hasn't come yet. `limit`: rows that were requested; None for a re-read of `among`. `start`:
    the key's columns and the key after which it was read."""

    mark: str
    name: str
    chunk: Chunk
    limit: int | None
    among: frozenset[Key]
    start: tuple[tuple[str, ...], Key | None]


class _Another(NamedTuple):
    """A table that isn't the one that was read: it was made again, was left out of the publication for a time, or has
    changed in a way of which the log doesn't bring all rows.

    The log may say so itself before the mark: then the table is being read again already.
    """

    mark: str
    name: str
    known: int
    found: SourceTable


class Snapshots:
    """The snapshots of all tables of a capture, one chunk at a time."""

    def __init__(
        self,
        source: Source,
        state: State,
        changes: Changes,
        add: Add,
        *,
        chunk_rows: int,
        keep_alive: Callable[[], None],
    ) -> None:
        """`chunk_rows`: of the first chunk of each table. `keep_alive` is called while a long read goes on."""
        self._source = source
        self._state = state
        self._changes = changes
        self._add = add
        self._limits = ChunkLimits(chunk_rows)
        self._keep_alive = keep_alive
        self._pending: _Pending | _Another | None = None
        self._others: dict[str, SourceTable] = {}
        self._orders: dict[str, int] = {}
        self._tried: set[str] = set()  # tables that couldn't be read since the last look
        self._forms: dict[str, tuple[tuple[Column, ...], Schema]] = {}
        state.troubles.clear()

    @property
    def is_pending(self) -> bool:
        """Whether something waits for its mark, or has to be marked."""
        return self._pending is not None or bool(self._others)

    def find_tables(self) -> None:
        """Looks for tables that the publication has by now."""
        self._tried.clear()
        found = self._source.tables(self._state.publication)
        for each in found:
            known = self._state.tables.get(each.name)
            change = None if known is None else self._change_of(known, each)
            how = None if known is None or change is None else self._changes.of_untouched(known, change, each)
            if change is not None and how is not Untouched.FILL:  # that waits for a row that has the column
                logger.info("%s %s: %s", each.name, "is read again" if how is Untouched.RE_READ else how, change.why)
                self._others[each.name] = each
            elif known is not None:
                has_rows = known.layout is not None or known.phase is Phase.DONE
                layout = each.catalog.layout() if has_rows else None
                if known.shape and self._form(each).form != known.shape:
                    layout = known.layout  # no row has brought the new columns yet: others may come by their names
                self._state.advance(each.name, membership=each.membership, layout=layout)
            else:
                self._state.tables[each.name] = progress_of(each)
                if not each.key and each.identity != "f":
                    logger.warning(
                        "%s has no key: Postgres refuses updates and deletes of it unless you ALTER TABLE … REPLICA"
                        " IDENTITY FULL",
                        each.name,
                    )
        published = {each.name for each in found}
        for name, progress in [*self._state.tables.items()]:
            if name not in published:
                self._state.troubles.pop(name, None)
                if progress.phase is not Phase.DONE:
                    self._leave(name, progress)
                else:
                    self._state.advance(name, membership=_LEFT_OUT)
        metrics.TROUBLED_TABLES.set(len(self._state.troubles))

    def order(self, orders: Mapping[str, int]) -> None:
        """Lets tables be read again that somebody wants to be. `orders`: as of the state, which notes them when that
        begins. Those that the publication doesn't have wait."""
        self._orders = dict(orders)
        if orders:
            found = {each.name: each for each in self._source.tables(self._state.publication)}
            self._others |= {each: found[each] for each in orders if each in found}

    def _why_again(self, name: str, found: SourceTable) -> Unlogged | None:
        """Why a table is read from the start, or rows of it may be stale; None if neither."""
        known = self._state.tables.get(name)
        if known is None:
            return None
        return Unlogged("somebody has asked for it") if name in self._orders else self._change_of(known, found)

    def _change_of(self, known: TableProgress, found: SourceTable) -> Unlogged | None:
        """Why a table isn't the one that was read, or changes of it may be missing; None if it is."""
        if known.oid != found.oid:
            return Unlogged("it was made again")
        if known.membership not in (0, found.membership):
            return Unlogged("the publication left it out for a time")
        change = None if known.layout is None else found.catalog.change_since(known.layout)
        is_read = known.shape and known.phase is Phase.DONE and (change is None or change.kind is not None)
        if is_read and not self._form(found).continues(known.shape):
            return Unlogged("its columns changed, and no row has come since")
        return change

    def _form(self, table: SourceTable) -> Schema:
        """The schema of a table as the catalog has it. The names of its types are looked up once."""
        known = self._forms.get(table.name)
        if known is None or known[0] != table.columns:
            schema = self._changes.describe(table.oid, table.columns, table.key, table.catalog)
            known = self._forms[table.name] = table.columns, schema
        return known[1]

    def advance(self) -> None:
        """Reads the next chunk, unless one is pending or nothing is left to read. Raises psycopg2.Error."""
        if self._pending is not None:
            return
        if self._others:
            name, found = self._others.popitem()
            if self._why_again(name, found) is not None:
                self._pending = _Another(_mark(), name, self._state.tables[name].oid, found)
                self._source.mark(self._pending.mark)
                return
        for name, progress in [*self._state.tables.items()]:
            keys = self._state.rereads.get(name)
            if name in self._tried or (progress.phase is Phase.DONE and not keys):
                continue
            try:
                self._read(name, progress, keys)
            except TableChanged:
                pass  # the next attempt sees what it is now
            except (psycopg2.errors.UndefinedColumn, psycopg2.errors.UndefinedTable):
                self._begin_anew(name)
            except _UNREADABLE as error:
                self._note_trouble(name, said(error))
                continue
            else:
                self._state.troubles.pop(name, None)
            return

    def _read(self, name: str, progress: TableProgress, keys: set[Key] | None) -> None:
        """Reads what comes next of a table."""
        if progress.phase is Phase.WHOLE:
            self._read_whole(name, progress)
        elif keys:
            self._reread(name, progress, frozenset(sorted(keys)[:MAX_REREADS]))
        else:
            self._read_chunk(name, progress)

    def _note_trouble(self, name: str, why: str) -> None:
        """Goes on without a table, which is tried again with the next look."""
        self._tried.add(name)
        note_trouble(self._state, name, why)

    def _read_chunk(self, name: str, progress: TableProgress) -> None:
        limit = self._limits.of(name)
        chunk = self._source.chunk(self._state.publication, progress.oid, progress.key, progress.after, limit)
        if chunk is None:
            self._begin_anew(name)
            return
        self._limits.learn(name, chunk.rows)
        self._wait_for_mark(name, chunk, limit, frozenset())

    def _reread(self, name: str, progress: TableProgress, keys: frozenset[Key]) -> None:
        chunk = self._source.chunk(self._state.publication, progress.oid, progress.key, None, MAX_REREADS, among=keys)
        if chunk is None or any(len(each) != len(chunk.table.key) for each in keys):
            self._begin_anew(name)
            return
        self._wait_for_mark(name, chunk, None, keys)

    def _wait_for_mark(self, name: str, chunk: Chunk, limit: int | None, among: frozenset[Key]) -> None:
        progress = self._state.tables[name]
        self._pending = _Pending(_mark(), name, chunk, limit, among, (progress.key, progress.after))
        self._source.mark(self._pending.mark)

    def _begin_anew(self, name: str) -> None:
        """The table isn't published any more, was made anew, or has lost its key: looks what there is now."""
        self._state.rereads.pop(name, None)
        found = [each for each in self._source.tables(self._state.publication) if each.name == name]
        progress = self._state.tables[name]
        if not found:
            if progress.phase is not Phase.DONE:
                self._leave(name, progress)
        elif found[0].oid != progress.oid:
            self._others[name] = found[0]
        elif progress.phase is not Phase.DONE:
            self._state.advance(name, phase=_first_phase(found[0]), key=(), after=None)

    def _leave(self, name: str, progress: TableProgress) -> None:
        """A table isn't published any more of which not all rows have been read."""
        self._state.rereads.pop(name, None)
        if progress.rows or progress.is_open:  # they are removed first if it is published again
            self._state.advance(name, phase=Phase.DONE, membership=_LEFT_OUT)
        else:
            del self._state.tables[name]

    # --- rows that take their place ---------------------------------------------------------------------------

    def land(self, commitment: Commitment) -> bool:
        """Adds the pending chunk's rows if a transaction has its mark. Returns whether it did."""
        pending = self._pending
        if pending is None or pending.mark not in commitment.marks:
            return False
        self._pending = None
        if isinstance(pending, _Another):
            return self._replace(pending, commitment)
        name, chunk = pending.name, pending.chunk
        progress = self._state.tables.get(name)
        if progress is None or progress.oid != chunk.table.oid:
            return False
        if pending.limit is not None and pending.start != (progress.key, progress.after):
            return False  # the log has begun to read it from the start meanwhile
        described = self._changes.describe(chunk.table.oid, chunk.table.columns, chunk.table.key, chunk.table.catalog)
        if (progress.shape and not described.continues(progress.shape)) or (
            progress.layout is not None and chunk.table.catalog.change_since(progress.layout) is not None
        ):
            self._begin_again(chunk.table, commitment)
            return True
        known_key = self._changes.key_columns(chunk.table.oid)
        unseen = [each for each in self._changes.recent if not chunk.seen.sees(chunk.seen.whole_xid(each.begin.xid))]
        has_other_key = known_key not in (None, chunk.table.key)
        if any(name in each.tables or (has_other_key and name in each.keys) for each in unseen):
            return False  # it is read again
        changed = set[Key]().union(*(each.keys.get(name, ()) for each in unseen))
        partial = set[Key]().union(*(each.partial.get(name, ()) for each in unseen))
        ordinal, last, missed = self._add_rows(chunk, commitment, changed)
        layout = chunk.table.catalog.layout()
        if pending.limit is not None:
            is_last = len(chunk.rows) < pending.limit
            self._state.rereads[name] = self._state.rereads.get(name, set()) | (missed & partial)
            self._state.advance(
                name,
                key=chunk.table.key,
                after=last or progress.after,
                rows=progress.rows + len(chunk.rows),
                phase=Phase.DONE if is_last else Phase.CHUNKS,
                layout=layout,
            )
        else:
            self._state.rereads[name] = self._state.rereads.get(name, set()) - pending.among | missed
            self._state.advance(name, key=chunk.table.key, layout=layout)
        self._complete(name, commitment.begin, ordinal)
        return True

    def _complete(self, name: str, begin: Begin, ordinal: int) -> None:
        """Says that nothing is missing any more of a table of which something was."""
        progress = self._state.tables[name]
        if progress.is_open and progress.phase is Phase.DONE and not self._state.rereads.get(name):
            self._state.advance(name, is_read_again=False, is_incomplete=False)
            self._add(name, self._changes.row(begin, ordinal + 1, "complete", None, None))

    def _replace(self, pending: _Another, commitment: Commitment) -> bool:
        progress = self._state.tables.get(pending.name)
        change = self._why_again(pending.name, pending.found)
        if progress is None or progress.oid != pending.known or change is None:
            return False  # the log has said so before the mark
        if (at := self._orders.pop(pending.name, None)) is not None:
            self._state.orders[pending.name] = at
        elif self._changes.of_untouched(progress, change, pending.found) is Untouched.NOTE:
            self._note(pending.found, change, commitment)
            return True
        self._begin_again(pending.found, commitment)
        return True

    def _note(self, table: SourceTable, change: Unlogged, commitment: Commitment) -> None:
        """Writes down that rows may be stale, instead of reading them again."""
        begin = commitment.begin
        self._add(table.name, self._changes.row(begin, commitment.ordinal + 1, "stale", None, change.why))
        self._state.advance(table.name, layout=table.catalog.layout())

    def _begin_again(self, table: SourceTable, commitment: Commitment) -> None:
        metrics.REREADS.inc()
        self._changes.begin_again(table.name, progress_of(table), commitment.begin, commitment.ordinal)

    def _add_rows(self, chunk: Chunk, commitment: Commitment, changed: set[Key]) -> tuple[int, Key | None, set[Key]]:
        """Adds rows whose keys aren't among `changed`. Returns the last place, the last row's key, and those that were
        left out."""
        table = chunk.table
        places = table.key_places
        encoder = RowEncoder(table.columns)
        begin, ordinal = commitment.begin, commitment.ordinal
        ordinal = self._add_shape(begin, ordinal, table)
        key: Key | None = None
        missed = set()
        for values in chunk.rows:
            key = tuple([str(values[each]) for each in places])
            if key in changed:
                missed.add(key)
                continue
            ordinal += 1
            self._add(table.name, self._changes.row(begin, ordinal, "read", None, encoder.encode(values)))
        return ordinal, key, missed

    def _add_shape(self, begin: Begin, ordinal: int, table: SourceTable) -> int:
        """Writes down the columns of a table when they are new. Returns the last place."""
        schema = self._changes.describe(table.oid, table.columns, table.key, table.catalog)
        if self._state.tables[table.name].shape == schema.form:
            return ordinal
        self._state.advance(table.name, shape=schema.form)
        self._add(table.name, self._changes.row(begin, ordinal + 1, "schema", None, schema.text))
        return ordinal + 1

    def _read_whole(self, name: str, progress: TableProgress) -> None:
        """Reads a table without a key: all rows as of one position, and its changes from there on."""
        with self._source.whole(self._state.publication, progress.oid) as found:
            if found is None:
                self._begin_anew(name)
                return
            table, position, rows = found
            encoder = RowEncoder(table.columns)
            begin = Begin(position, now_ms() * 1000, 0)
            # What came before is superseded: without a key nothing says which of these rows it is.
            reason = READ_AGAIN if progress.is_open else None
            self._add(name, self._changes.row(begin, 0, "truncate", None, reason))
            self._state.advance(name, shape="")
            ordinal = self._add_shape(begin, 0, table)
            first, due = ordinal, time.monotonic() + _KEEP_ALIVE_SECONDS
            for values in rows:
                ordinal += 1
                self._add(name, self._changes.row(begin, ordinal, "read", None, encoder.encode(values)))
                if time.monotonic() > due:
                    self._keep_alive()
                    due = time.monotonic() + _KEEP_ALIVE_SECONDS
        self._state.advance(
            name, phase=Phase.DONE, start_lsn=position, rows=ordinal - first, layout=table.catalog.layout()
        )
        self._complete(name, begin, ordinal)


def _mark() -> str:
    return uuid.uuid4().hex


def progress_of(table: SourceTable) -> TableProgress:
    """The progress of a table of which nothing has been read."""
    return TableProgress(table.oid, _first_phase(table), membership=table.membership)


def _first_phase(table: SourceTable) -> Phase:
    return Phase.CHUNKS if table.key else Phase.WHOLE
