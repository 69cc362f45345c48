"""From messages of the log to rows of the raw table, and which keys the latest transactions have changed."""

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from lake.capture.errors import CaptureError
from lake.capture.postgres.layouts import CatalogTable, StoredColumn, Unlogged
from lake.capture.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Column,
    Commit,
    Decoded,
    Message,
    Relation,
    Truncate,
    Values,
)
from lake.capture.postgres.positions import SnapshotOfTransactions
from lake.capture.postgres.preparation import PREFIX, SaidChange
from lake.capture.postgres.source import MESSAGE_PREFIX, SourceTable
from lake.capture.postgres.state import State
from lake.capture.postgres.values import RowEncoder, lake_type, may_be_unchanged, values_of
from lake.capture.raw_table import Row
from lake.capture.schema_changes.model import Kind, OfUntouched, Untouched, re_read
from lake.capture.schemas import (
    EMPTIED,
    INCOMPLETE,
    READ_AGAIN,
    DescribedColumn,
    Schema,
    schema_of,
    text_of_statement,
)
from lake.capture.state import Phase, TableProgress

Key = tuple[str, ...]
"""The values of a row's key, as texts."""

MAX_KEYS = 1_000_000
"""Keys that are remembered of one transaction and table. Beyond them any row counts as changed."""

Add = Callable[[str, Row], None]


class Commitment(NamedTuple):
    """A transaction that the stream has brought to its end. `marks`: what this capture wrote into the log with it."""

    begin: Begin
    end_lsn: int
    is_new: bool
    ordinal: int
    marks: tuple[str, ...]


@dataclass
class Transaction:
    """The keys that a transaction changed, by table. In `partial` are those of which a value isn't in the log.

    `tables`: those of which any row may have changed.
    """

    begin: Begin
    keys: dict[str, set[Key]] = field(default_factory=dict)
    partial: dict[str, set[Key]] = field(default_factory=dict)
    tables: set[str] = field(default_factory=set)


class TableLog:
    """A table as the stream last described it. `found`: as it is in the source by now. `may_swap_keys`: as of
    SourceTable."""

    def __init__(self, relation: Relation, key: tuple[str, ...], found: SourceTable | None) -> None:
        self.relation = relation
        self.catalog = None if found is None else found.catalog
        self.may_swap_keys = found is not None and found.may_swap_keys
        self.name = relation.name
        self.encoder = RowEncoder(relation.columns)
        names = [each.name for each in relation.columns]
        self.key_columns = tuple(each for each in key if each in names)
        self._places = tuple(names.index(each) for each in self.key_columns)

    def key(self, values: Values) -> Key:
        """The key of a row."""
        return tuple([str(values[each]) for each in self._places])


class Changes:
    """Takes the messages of a stream, and gives rows for the raw table."""

    def __init__(
        self,
        state: State,
        add: Add,
        found: Callable[[int], SourceTable | None],
        type_names: Callable[[Iterable[Column]], list[str]],
        untouched: OfUntouched = re_read,
    ) -> None:
        """`found`: a table as it is now in the source, by its oid. `state` is changed as the rows are added.
        `untouched`: as of Policy.of_untouched."""
        self.token: int | None = None
        """What messages of the source's event trigger bear; None if there is none."""
        self.state = state
        self.add = add
        self._found = found
        self._type_names = type_names
        self._untouched = untouched
        self._tables: dict[int, TableLog] = {}
        self._open: Transaction | None = None
        self._is_new = False
        self._ordinal = 0
        self._marks: list[str] = []
        self.recent: deque[Transaction] = deque()
        """Transactions that a snapshot may not have seen, although the stream has brought them."""

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._open is not None

    def take(self, message: Decoded) -> Commitment | None:
        """Takes a message; returns a transaction that ends with it. Raises CaptureError for messages out of order."""
        match message:
            case Change():
                self._change(message)
            case Begin():
                self._open = Transaction(message)
                # A stream that begins again repeats what wasn't acknowledged.
                self._is_new = message.commit_lsn >= self.state.lsn
                self._ordinal = 0
                self._marks = []
            case Commit():
                return self._commit(message)
            case Relation():
                self._relation(message)
            case Truncate():
                self._truncate(message)
            case Message(prefix, content) if prefix == MESSAGE_PREFIX:
                self._marks.append(content.decode())
            case Message(prefix, content) if prefix == PREFIX:
                self._said(SaidChange.parse(content))
        return None

    def key_columns(self, oid: int) -> tuple[str, ...] | None:
        """The key of a table as the stream last described it; None if it hasn't."""
        log = self._tables.get(oid)
        return None if log is None else log.key_columns

    def forget_seen(self, seen: SnapshotOfTransactions) -> None:
        """Forgets transactions that later queries see, as one did."""
        self.recent = deque(each for each in self.recent if not seen.sees(seen.whole_xid(each.begin.xid)))

    # --- rows -------------------------------------------------------------------------------------------------

    def row(
        self,
        begin: Begin,
        ordinal: int,
        op: str,
        before: str | None,
        after: str | None,
        unchanged: list[str] | None = None,
    ) -> Row:
        """A row of the raw table at a place in a transaction."""
        return Row(
            op, before, after, unchanged, begin.xid, begin.commit_time, self.state.epoch, begin.commit_lsn, ordinal
        )

    def _emit(
        self, table: str, op: str, before: str | None, after: str | None, unchanged: list[str] | None = None
    ) -> None:
        """Adds a row at the next place of the open transaction."""
        assert self._open is not None
        begin = self._open.begin
        self._ordinal += 1
        self.add(table, self.row(begin, self._ordinal, op, before, after, unchanged))

    def _counts(self, table: str) -> bool:
        """Whether a change of a table in the open transaction is to be written."""
        if not self._is_new:
            return False
        progress = self.state.tables.get(table)
        assert self._open is not None
        if progress is None:
            return False  # it was left out of the publication before any of its rows were read
        return progress.phase is not Phase.WHOLE and self._open.begin.commit_lsn >= progress.start_lsn

    def _change(self, change: Change) -> None:
        transaction = self._open
        log = self._tables.get(change.relation_oid)
        if transaction is None or log is None:
            raise CaptureError("a change came outside a transaction, or without its table")
        new, old = change.new, change.old
        if new is not None and old is not None and UNCHANGED in new:
            filled = zip(old, new, strict=True)
            new = [was if value is UNCHANGED and was is not None else value for was, value in filled]
        unchanged = None
        if new is not None and UNCHANGED in new:
            unchanged = [each.name for each, value in zip(log.relation.columns, new, strict=True) if value is UNCHANGED]
        is_taken = (
            log.may_swap_keys and log.key_columns and old is not None and self._has_changed(transaction, log, old)
        )
        moved = self._track(transaction, log, old, new, is_partial=unchanged is not None)
        if not self._counts(log.name):
            return
        if not self.state.tables[log.name].shape:
            self._write_schema(log, self.describe(log.relation.oid, log.relation.columns, log.key_columns, log.catalog))
        if is_taken and (new is None or moved):
            # Another row may have got this key before: nothing says which of the two is gone.
            assert old is not None
            self.state.rereads.setdefault(log.name, set()).add(log.key(old))
            self._leave_open(log.name)
        if unchanged and (moved or change.kind == "I"):
            # Its values are in the log by the old key at most, and nowhere if the snapshot hasn't come there yet, or if
            # the publication has left out rows with that key.
            assert new is not None
            self.state.rereads.setdefault(log.name, set()).add(log.key(new))
            self._leave_open(log.name)
        if unchanged and self.state.tables[log.name].phase is Phase.CHUNKS:
            self._leave_open(log.name)  # the snapshot may not have come to this row yet
        before = None
        if old is not None:
            before = log.encoder.encode_key(old) if change.old_is_key else log.encoder.encode(old)
        after = None if new is None else log.encoder.encode(new)
        self._emit(log.name, _OPS[change.kind], before, after, unchanged)

    def _leave_open(self, table: str) -> None:
        """Lets the rows of a table from the open transaction on count only once all that is missing is read."""
        progress = self.state.tables[table]
        if progress.is_open:
            return
        assert self._open is not None
        self.state.advance(table, is_incomplete=True)
        # Before the transaction's first row, so that nobody sees half of it.
        self.add(table, self.row(self._open.begin, 0, "incomplete", None, INCOMPLETE))

    def _has_changed(self, transaction: Transaction, log: TableLog, row: Values) -> bool:
        """Whether the transaction has changed a row with the key of this one before, or may have."""
        return log.name in transaction.tables or log.key(row) in transaction.keys.get(log.name, ())

    def _track(
        self, transaction: Transaction, log: TableLog, old: Values | None, new: Values | None, *, is_partial: bool
    ) -> bool:
        """Notes the keys of a change. Returns whether it gave the row another key."""
        if not log.key_columns:
            return False
        keys = transaction.keys.get(log.name)
        if keys is None:
            keys = transaction.keys[log.name] = set()
        before = None if old is None else log.key(old)
        after = None if new is None else log.key(new)
        if before is not None:
            keys.add(before)
        if after is not None:
            keys.add(after)
        if len(keys) > MAX_KEYS:
            transaction.tables.add(log.name)
            keys.clear()
        if after is not None and is_partial and log.name not in transaction.tables:
            transaction.partial.setdefault(log.name, set()).add(after)
        return before is not None and after is not None and before != after

    def _truncate(self, message: Truncate) -> None:
        transaction = self._open
        if transaction is None:
            raise CaptureError("a truncation came outside a transaction")
        for oid in message.relation_oids:
            log = self._tables.get(oid)
            if log is None:
                raise CaptureError("a truncation came without its table")
            transaction.tables.add(log.name)
            if self._counts(log.name):
                self._empty(log)

    def _empty(self, log: TableLog) -> None:
        """Writes down that the log has emptied a table. The columns of its rows are written down again before the
        next one."""
        progress = self.state.tables[log.name]
        layout = None if progress.layout is None else progress.layout.emptied()
        self.state.advance(log.name, layout=layout, shape="")
        self._emit(log.name, "truncate", None, EMPTIED if progress.is_open else None)

    def _write_schema(self, log: TableLog, schema: Schema) -> None:
        self.state.advance(log.name, shape=schema.form)
        self._emit(log.name, "schema", None, schema.text)

    def _relation(self, relation: Relation) -> None:
        transaction = self._open
        if transaction is None:
            raise CaptureError("a table came outside a transaction")
        found = self._found(relation.oid)
        log = self._tables[relation.oid] = TableLog(relation, _key(relation, found), found)
        known = self.state.tables.get(log.name)
        if not self._is_new or (known is not None and transaction.begin.commit_lsn < known.start_lsn):
            return
        schema = self.describe(relation.oid, relation.columns, log.key_columns, log.catalog)
        is_known = known is not None and known.oid == relation.oid
        fills = self._fills(known, schema, relation.columns, found) if known is not None and is_known else {}
        if known is None or not is_known or fills is None or self._has_changed_since(known, schema, found):
            phase = Phase.CHUNKS if log.key_columns else Phase.WHOLE  # without a key there is nothing to read chunks by
            self._ordinal = self.begin_again(
                log.name, TableProgress(relation.oid, phase), transaction.begin, self._ordinal
            )
            fills = {}
        if self.state.tables[log.name].shape != schema.form:
            if fills:
                schema = self.describe(relation.oid, relation.columns, log.key_columns, log.catalog, fills)
            self._write_schema(log, schema)

    def _has_changed_since(self, known: TableProgress, schema: Schema, found: SourceTable | None) -> bool:
        """Whether a table has changed in a way of which the log doesn't bring all rows."""
        if known.shape and not schema.continues(known.shape):
            return True
        if found is None or known.layout is None:
            return False
        change = found.catalog.change_since(known.layout, may_be_emptied=True)
        return change is not None and self.of_untouched(known, change, found) is Untouched.RE_READ

    def of_untouched(self, known: TableProgress, change: Unlogged, found: SourceTable) -> Untouched:
        """What becomes of rows that a change has changed without the log. `found`: the table as the catalog has it."""
        if change.kind is None or known.phase is not Phase.DONE:
            return Untouched.RE_READ
        chosen = self._untouched(found.name, change.kind)
        if chosen is Untouched.FILL and known.layout is not None:
            added = found.catalog.columns[known.layout.count :]
            if any(each.is_filled and each.missing is None for each in added):
                return Untouched.RE_READ
        return chosen

    def _fills(
        self, known: TableProgress, schema: Schema, columns: Sequence[Column], found: SourceTable | None
    ) -> dict[str, str] | None:
        """What rows have by now that were written before the latest columns of a table came: objects as JSON, by these
        columns. Empty where nobody wants that; None if it isn't known for certain."""
        if found is None or known.layout is None or known.shape not in schema.forms:
            return {}
        change = found.catalog.change_since(known.layout, may_be_emptied=True)
        if change is None or change.kind is not Kind.ADD_FILLED:
            return {}
        if self.of_untouched(known, change, found) is not Untouched.FILL:
            return {}
        there = found.catalog.columns[: len(columns)]
        if not _are_same(there, columns):
            return None
        fresh = zip(there, columns, strict=True)
        count = schema.forms.index(known.shape) + 1
        return {
            column.name: RowEncoder([column]).encode([stored.missing])
            for stored, column in [*fresh][count:]
            if stored.missing is not None
        }

    def begin_again(self, name: str, progress: TableProgress, begin: Begin, ordinal: int) -> int:
        """Lets the rows of a table be read from the start. What the raw table has counts until that is done.

        `ordinal`: the last place in the transaction `begin` that has a row. Returns the last one afterwards.
        """
        is_read_again = name in self.state.tables
        if is_read_again and self._open is not None and self._ordinal:
            self._leave_open(name)  # earlier changes of the transaction count together with later ones
        self.state.tables[name] = dataclasses.replace(progress, is_read_again=is_read_again)
        self.state.rereads.pop(name, None)
        if not is_read_again:
            return ordinal
        # Until chunks see these transactions, any row may be one that they changed.
        for each in (*self.recent, *([] if self._open is None else [self._open])):
            each.tables.add(name)
        self.add(name, self.row(begin, ordinal + 1, "truncate", None, READ_AGAIN))
        return ordinal + 1

    def describe(
        self,
        oid: int,
        columns: Iterable[Column],
        key: tuple[str, ...],
        catalog: CatalogTable | None,
        fills: Mapping[str, str] | None = None,
    ) -> Schema:
        """The schema of a table. Its columns' numbers are those of the catalog, if that has the same columns by now.

        `fills`: objects with the values that columns have in older rows, as JSON, by the columns' names.
        """
        columns = list(columns)
        numbers = {}
        if catalog is not None and _are_same(catalog.columns, columns):
            numbers = {each.name: each.number for each in catalog.columns}
        return schema_of(
            DescribedColumn(
                each.name,
                lake_type(each),
                name,
                each.name in key,
                may_be_unchanged(each),
                values_of(each, name),
                numbers.get(each.name),
                oid,
                (fills or {}).get(each.name),
            )
            for each, name in zip(columns, self._type_names(columns), strict=True)
        )

    def _said(self, change: SaidChange | None) -> None:
        """Writes down what the source's event trigger says of tables. What others write as messages doesn't count."""
        if change is None or self._open is None or self.token is None or change.token != self.token:
            return
        by_oid = {each.oid: name for name, each in self.state.tables.items()}
        for table in change.tables:
            name = by_oid.get(table.oid)
            if name is not None and self._counts(name):
                self._emit(name, "statement", None, text_of_statement(change.statement, columns=table.columns))

    def _commit(self, commit: Commit) -> Commitment:
        transaction, self._open = self._open, None
        if transaction is None:
            raise CaptureError("a transaction ended that had not begun")
        if transaction.keys or transaction.tables:
            self.recent.append(transaction)
        return Commitment(transaction.begin, commit.end_lsn, self._is_new, self._ordinal, tuple(self._marks))


_OPS = {"I": "insert", "U": "update", "D": "delete"}


def _are_same(stored: Sequence[StoredColumn], columns: Sequence[Column]) -> bool:
    """Whether the catalog has the columns of the log. Else it is ahead, and may have other columns by their names."""
    return [(each.name, each.type_oid, each.modifier) for each in stored] == [
        (each.name, each.type_oid, each.modifier) for each in columns
    ]


def _key(relation: Relation, found: SourceTable | None) -> tuple[str, ...]:
    """The key of a table, in the order in which chunks have it."""
    flagged = tuple(each.name for each in relation.columns if each.in_key)
    if found is not None and (relation.identity in "fn" or set(found.key) == {*flagged}):
        return found.key
    return () if relation.identity in "fn" else flagged
