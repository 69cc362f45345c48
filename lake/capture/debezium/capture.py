"""The capture of Debezium's messages: from files or topics into a raw table, through failures of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from lake.capture.debezium.events import Column, Event, Statement
from lake.capture.debezium.files import FileInput
from lake.capture.debezium.inputs import Arrived, Input
from lake.capture.debezium.state import DebeziumState, TableState
from lake.capture.debezium.values import UNAVAILABLE, Placeholder
from lake.capture.errors import CaptureError
from lake.capture.raw_table import Row
from lake.capture.runner import CaptureOptions, Runner, Session
from lake.capture.schemas import EMPTIED, READ_AGAIN, DescribedColumn, Schema, schema_of, text_of_statement
from lake.protocol.clock import now_ms

_WAIT_SECONDS = 0.5
_MAX_EARLIER = 8  # columns of a table before, of which late messages are known
_MAX_TABLES = 10_000  # the state of each is in every instant


@dataclass(frozen=True, kw_only=True)
class DebeziumOptions(CaptureOptions):
    """What is captured, and how.

    `source`: a file or a directory, or `kafka://host:port?topic=NAME`. `kafka`: options of librdkafka. `keys`: the
    columns of tables' keys, where messages don't say. `placeholder`: the connector's `unavailable.value.placeholder`.
    """

    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kafka: Mapping[str, str] = field(default_factory=dict)
    placeholder: str = UNAVAILABLE


class DebeziumCapture(Runner[DebeziumOptions, DebeziumState]):
    """The capture of messages."""

    def session(self, *, renew: bool) -> "_Session":
        return _Session(self, renew=renew)


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


class _Session(Session[DebeziumOptions, DebeziumState]):
    def __init__(self, capture: DebeziumCapture, *, renew: bool) -> None:
        super().__init__(capture)
        self._input = _open(self._options)
        self._input.placeholder = Placeholder(self._options.placeholder)
        self._columns: dict[str, tuple[Column, ...]] = {}
        self._whole: set[str] = set()
        try:
            self._raw.create()
            self.state = self._prepared(renew=renew)
            self._input.begin(self.state.offsets)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        super().close()
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
        self._capture.pause("reading")
        while not self._capture.is_stopping:
            arrived = self._input.read(_WAIT_SECONDS)
            for each in arrived:
                self._take(each)
            if self._input.has_caught_up and (whole := self.state.whole()):
                self._complete(whole)
            if self._is_due:
                self._commit()
            if once and self._input.has_caught_up and not self.state.whole():
                break
        self._commit()

    def _complete(self, whole: set[str]) -> None:
        """Lets the rows that tables have in this epoch count in place of those before, once all are read."""
        if whole != self._whole:
            self._whole = whole
            self._commit()
            self._input.look_again()  # another place may have got rows before the last message that came
            return
        for table in sorted(whole):
            self._add_row(table, "complete", None, None, None, None, now_ms() * 1000, 2)
            self.state.advance(table, is_read_again=False)

    def _take(self, arrived: Arrived) -> None:
        self._begin_batch()  # the offset is written even if no row is
        self.state.offsets[arrived.place] = arrived.next
        event = arrived.event
        if event is None:
            return
        self.state.number += 1
        if isinstance(event, Statement):
            self._add_statement(event)
            return
        self._describe(event)
        is_superseded = event.op == "truncate" and self.state.tables[event.table].is_read_again
        self._add_change(event, event.op, event.before, EMPTIED if is_superseded else event.after, 1)
        if event.op == "truncate":  # its rows may have any columns from here on
            self.state.advance(event.table, shape="", earlier=())
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
        if missing := [each for each in key if each not in {column.name for column in columns}]:
            raise CaptureError(f"{event.table} has no column {missing[0]}, which is said to be in its key")
        schema = schema_of(
            DescribedColumn(each.name, each.type, each.source_type, each.key, each.large) for each in columns
        )
        if known.is_late(schema.form, event.committed_at):
            return
        self._columns[event.table] = columns
        if schema.form == known.shape:
            return
        earlier: tuple[tuple[str, int], ...] = ()
        if known.shape and _is_read_by(schema, known.shape, columns):
            earlier = (*known.earlier, (known.shape, event.committed_at))[-_MAX_EARLIER:]
        elif known.shape:
            self._add_change(event, "hold", None, _altered(event.table), -1)
        self.state.advance(event.table, key=key, shape=schema.form, earlier=earlier)
        self._add_change(event, "schema", None, schema.text, 0)

    def _add_statement(self, statement: Statement) -> None:
        """Writes down a statement for the tables that are captured. It comes by another topic than their rows, so its
        place among these doesn't say which of them have been changed by it."""
        for table, change in statement.changes.items():
            if table in self.state.tables:
                after = text_of_statement(statement.text, change=change)
                self._add_row(table, "statement", None, after, None, None, statement.committed_at, 1)

    def _add_change(self, event: Event, op: str, before: str | None, after: str | None, ordinal: int) -> None:
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
        state = self.state
        row = Row(op, before, after, unchanged, transaction_id, committed_at, state.epoch, state.number, ordinal)
        self._add(table, row)
        state.advance(table, rows=state.tables[table].rows + 1)

    def _commit(self) -> None:
        """Completes the batch, with the offsets after it."""
        if self._batch is None:
            return
        for place in self._input.gone():
            self.state.offsets.pop(place, None)
        self._complete_batch()


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
