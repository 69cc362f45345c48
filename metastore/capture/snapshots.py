"""Reads what tables had before their changes were captured, while these go on, and without locks.

The method is DBLog's ("A Watermark Based Change-Data-Capture Framework", Netflix 2019), with transaction numbers for
the lower watermark: a chunk of rows is read, then a mark is written into the log. When the mark comes by the stream,
the chunk's rows rank there. Rows are left out that transactions changed which the stream has brought, and the chunk
hasn't seen.
"""

import logging
import time
import uuid
from collections.abc import Callable
from typing import NamedTuple

from metastore.capture.changes import Add, Changes, Commitment, Key
from metastore.capture.pgoutput import Begin
from metastore.capture.source import Chunk, Source, SourceTable
from metastore.capture.state import Phase, State, TableProgress
from metastore.capture.values import RowEncoder
from metastore.clock import now_ms

logger = logging.getLogger(__name__)

CHUNK_CHARACTERS = 16 << 20
"""What a chunk should have, as texts."""

MAX_CHUNK_ROWS = 20_000
MIN_CHUNK_ROWS = 100
MAX_REREADS = 500
"""Keys in one query."""

_KEEP_ALIVE_SECONDS = 5.0


class _Pending(NamedTuple):
    """A chunk whose mark hasn't come yet. `limit`: rows that were asked for; None for a re-read of `among`."""

    mark: str
    name: str
    chunk: Chunk
    limit: int | None
    among: frozenset[Key]


class _MadeAnew(NamedTuple):
    """A table that has another oid than the one known, or was left out of the publication for a time.

    If changes by the new oid haven't come before the mark, it has none.
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
        self._first_limit = chunk_rows
        self._limits: dict[str, int] = {}
        self._keep_alive = keep_alive
        self._pending: _Pending | _MadeAnew | None = None
        self._made_anew: dict[str, SourceTable] = {}

    @property
    def is_pending(self) -> bool:
        """Whether something waits for its mark, or has to be marked."""
        return self._pending is not None or bool(self._made_anew)

    def find_tables(self) -> None:
        """Looks for tables that the publication has by now."""
        found = self._source.tables(self._state.publication)
        for each in found:
            known = self._state.tables.get(each.name)
            if known is not None and _is_another(known, each):
                self._made_anew[each.name] = each
            elif known is not None:
                self._state.advance(each.name, membership=each.membership)
            else:
                self._state.tables[each.name] = _progress(each)
                if not each.key and each.identity != "f":
                    logger.warning(
                        "%s has no key: Postgres refuses updates and deletes of it unless you ALTER TABLE … REPLICA"
                        " IDENTITY FULL",
                        each.name,
                    )
        published = {each.name for each in found}
        for name, progress in [*self._state.tables.items()]:
            if progress.phase is not Phase.DONE and name not in published:
                self._leave(name, progress)

    def advance(self) -> None:
        """Reads the next chunk, unless one is pending or nothing is left to read. Raises psycopg2.Error."""
        if self._pending is not None:
            return
        if self._made_anew:
            name, found = self._made_anew.popitem()
            known = self._state.tables.get(name)
            if known is not None and _is_another(known, found):
                self._pending = _MadeAnew(_mark(), name, known.oid, found)
                self._source.mark(self._pending.mark)
                return
        for name, progress in self._state.tables.items():
            if progress.phase is Phase.WHOLE:
                self._read_whole(name, progress)
                return
            if keys := self._state.rereads.get(name):
                self._reread(name, progress, frozenset(sorted(keys)[:MAX_REREADS]))
                return
            if progress.phase is Phase.CHUNKS:
                self._read_chunk(name, progress)
                return

    def _read_chunk(self, name: str, progress: TableProgress) -> None:
        limit = self._limits.setdefault(name, self._first_limit)
        chunk = self._source.chunk(self._state.publication, progress.oid, progress.key, progress.after, limit)
        if chunk is None:
            self._begin_anew(name)
            return
        size = sum(len(value) for row in chunk.rows for value in row if value is not None)
        if chunk.rows and size:
            fitting = limit * CHUNK_CHARACTERS // size if len(chunk.rows) == limit else limit
            self._limits[name] = max(MIN_CHUNK_ROWS, min(MAX_CHUNK_ROWS, 2 * limit, fitting))
        self._wait_for_mark(name, chunk, limit, frozenset())

    def _reread(self, name: str, progress: TableProgress, keys: frozenset[Key]) -> None:
        chunk = self._source.chunk(self._state.publication, progress.oid, progress.key, None, MAX_REREADS, among=keys)
        if chunk is None or any(len(each) != len(chunk.table.key) for each in keys):
            self._begin_anew(name)
            return
        self._wait_for_mark(name, chunk, None, keys)

    def _wait_for_mark(self, name: str, chunk: Chunk, limit: int | None, among: frozenset[Key]) -> None:
        self._pending = _Pending(_mark(), name, chunk, limit, among)
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
            self._made_anew[name] = found[0]
        elif progress.phase is not Phase.DONE:
            self._state.advance(name, phase=_first_phase(found[0]), key=(), after=None)

    def _leave(self, name: str, progress: TableProgress) -> None:
        """A table isn't published any more of which not all rows have been read."""
        self._state.rereads.pop(name, None)
        if progress.rows:  # they are removed first if it is published again
            self._state.advance(name, phase=Phase.DONE)
        else:
            del self._state.tables[name]

    # --- rows that take their place ---------------------------------------------------------------------------

    def land(self, commitment: Commitment) -> bool:
        """Adds the pending chunk's rows if a transaction has its mark. Returns whether it did."""
        pending = self._pending
        if pending is None or pending.mark not in commitment.marks:
            return False
        self._pending = None
        if isinstance(pending, _MadeAnew):
            return self._replace(pending, commitment)
        name, chunk = pending.name, pending.chunk
        progress = self._state.tables.get(name)
        if progress is None or progress.oid != chunk.table.oid:
            return False
        known_key = self._changes.key_columns(chunk.table.oid)
        unseen = [each for each in self._changes.recent if not chunk.seen.sees(chunk.seen.whole_xid(each.begin.xid))]
        if known_key not in (None, chunk.table.key) or any(name in each.tables for each in unseen):
            return False  # it is read again
        changed = set[Key]().union(*(each.keys.get(name, ()) for each in unseen))
        partial = set[Key]().union(*(each.partial.get(name, ()) for each in unseen))
        last, missed = self._add_rows(chunk, commitment, changed)
        rereads = self._state.rereads.get(name, set()) - pending.among | (missed & partial)
        self._state.rereads[name] = rereads
        if pending.limit is not None:
            is_last = len(chunk.rows) < pending.limit
            self._state.advance(
                name,
                key=chunk.table.key,
                after=last or progress.after,
                rows=progress.rows + len(chunk.rows),
                phase=Phase.DONE if is_last else Phase.CHUNKS,
            )
        else:
            self._state.advance(name, key=chunk.table.key)
        return True

    def _replace(self, pending: _MadeAnew, commitment: Commitment) -> bool:
        progress = self._state.tables.get(pending.name)
        if progress is None or progress.oid != pending.known:
            return False  # its first change came before the mark, and removed the rows of old
        self._add(pending.name, self._changes.row(commitment.begin, commitment.ordinal + 1, "truncate", None, None))
        self._state.rereads.pop(pending.name, None)
        self._state.tables[pending.name] = _progress(pending.found)
        return True

    def _add_rows(self, chunk: Chunk, commitment: Commitment, changed: set[Key]) -> tuple[Key | None, set[Key]]:
        """Adds rows whose keys aren't among `changed`. Returns the last row's key, and those that were left out."""
        table = chunk.table
        places = table.key_places
        encoder = RowEncoder(table.columns)
        begin, ordinal = commitment.begin, commitment.ordinal
        ordinal = self._add_shape(table.name, begin, ordinal, chunk)
        key: Key | None = None
        missed = set()
        for values in chunk.rows:
            key = tuple([str(values[each]) for each in places])
            if key in changed:
                missed.add(key)
                continue
            ordinal += 1
            self._add(table.name, self._changes.row(begin, ordinal, "read", None, encoder.encode(values)))
        return key, missed

    def _add_shape(self, name: str, begin: Begin, ordinal: int, chunk: Chunk) -> int:
        described, shape = self._changes.describe(chunk.table.columns, chunk.table.key)
        if self._state.tables[name].shape == shape:
            return ordinal
        self._state.advance(name, shape=shape)
        self._add(name, self._changes.row(begin, ordinal + 1, "schema", None, described))
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
            chunk = Chunk(table, self._source.seen_now(), [])
            # What came before is superseded: without a key nothing says which of these rows it is.
            self._add(name, self._changes.row(begin, 0, "truncate", None, None))
            ordinal = self._add_shape(name, begin, 0, chunk)
            first, due = ordinal, time.monotonic() + _KEEP_ALIVE_SECONDS
            for values in rows:
                ordinal += 1
                self._add(name, self._changes.row(begin, ordinal, "read", None, encoder.encode(values)))
                if time.monotonic() > due:
                    self._keep_alive()
                    due = time.monotonic() + _KEEP_ALIVE_SECONDS
        self._state.advance(name, phase=Phase.DONE, start_lsn=position, rows=ordinal - first)


def _mark() -> str:
    return uuid.uuid4().hex


def _is_another(known: TableProgress, found: SourceTable) -> bool:
    """Whether a table was made anew, or changes of it may be missing since the publication left it out for a time."""
    return known.oid != found.oid or known.membership not in (0, found.membership)


def _progress(table: SourceTable) -> TableProgress:
    """Of a table of which nothing has been read."""
    return TableProgress(table.oid, _first_phase(table), membership=table.membership)


def _first_phase(table: SourceTable) -> Phase:
    return Phase.CHUNKS if table.key else Phase.WHOLE
