"""Records events for changes, in the transaction of the change.

Payloads use the names of Hive's fields (`wire.plain`). Partitions share storage descriptors: a partition's `sd` has its
own location, and the index of the rest in the payload's list `descriptors`.

Hive's clients don't know uncommitted partitions. To them a partition appears when it becomes ready, and is dropped when
it is reopened. Each event therefore has the number of its notifications in Hive's log.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from eventbus.log import log
from eventbus.outlets.pre_events import PreEvents, Veto
from lake.protocol.clock import now_ms
from lake.protocol.codec import splice
from lake.protocol.codec.packed_partitions import PackedPartitions, PackedStates
from lake.protocol.codec.plain import to_plain
from lake.protocol.events.types import EventType, NewEvent, Origin
from lake.protocol.hive import Catalog, Database, DataConnector, Function, InvalidOperationException, Partition, Table
from lake.protocol.struct import Struct
from metastore.postgres.prepared import Call
from metastore.services.model import hive_objects
from metastore.store.engine.database import Transaction, after_commit
from metastore.store.engine.names import TableName
from metastore.store.partition.partitions import NewPartition, PartitionRow
from metastore.store.table.tables import TableRow

VERSION = 1
"""The version of the payloads' form."""

_NAMES = ("dbName", "tableName", "catName")
"""The fields of a partition that repeat its table's names. Payloads leave them out of partitions."""

MAX_PARTITIONS = 1_000
"""The most partitions that an instant's event names. If there are more, the event has only their number."""

_SERVER = Origin()
_origin: ContextVar[Origin] = ContextVar("origin", default=_SERVER)


@contextmanager
def acting(user: str | None, connection: str) -> Iterator[None]:
    """Events that this thread records within the block name this user and this connection as their origin."""
    token = _origin.set(Origin(user, connection))
    try:
        yield
    finally:
        _origin.reset(token)


class KeptPartition(NamedTuple):
    """A partition, the id of its storage descriptor, and the body in which it is stored."""

    value: Partition
    descriptor: int
    body: bytes


def kept_before(value: Partition, row: PartitionRow) -> KeptPartition:
    """A partition that its row was decoded to."""
    return KeptPartition(value, row.stored.storage_descriptor_id, row.stored.body)


def kept_changed(value: Partition, row: PartitionRow) -> KeptPartition:
    """A changed partition that keeps its row's storage descriptor."""
    return KeptPartition(value, row.stored.storage_descriptor_id, splice.partition_body(value))


def kept_after(value: Partition, row: NewPartition) -> KeptPartition:
    """A partition of which its row was made."""
    return KeptPartition(value, row.descriptor_id, row.body)


class PartitionChange(NamedTuple):
    """The change of one partition. `ready`: its state afterwards, or before its drop.

    All changes of one event have a `before`, or none; the same goes for `after`.
    """

    name: str
    ready: bool
    before: KeptPartition | None = None
    after: KeptPartition | None = None
    renamed_from: str | None = None


class Insert(NamedTuple):
    """An insert into a table, or a partition of it, that a writer reports."""

    files: Sequence[str]
    replace: bool
    partition: Partition | None = None
    ready: bool = True


class Completion(NamedTuple):
    """A completed instant of a lake table, and its changes."""

    timestamp: str
    action: str
    begun_as: str
    completion_time: str
    position: int
    partitions: Sequence[str]
    files_added: int
    files_removed: int


class Events:
    """Records events. `wake` is called after their commit; `pre_events` are called before.

    Every method raises InvalidOperationException if a listener vetoes.
    """

    def __init__(self, wake: Callable[[], None], pre_events: PreEvents) -> None:
        self._wake = wake
        self._pre_events = pre_events

    def catalog(self, tx: Transaction, type: EventType, before: Catalog | None, after: Catalog | None) -> None:
        """Records that a catalog was created, altered or dropped. Hive's log gets no entry."""
        value = after or before
        assert value is not None
        self._append(tx, type, _before_and_after(before, after), catalog=value.name, notifications=0)

    def database(self, tx: Transaction, type: EventType, before: Database | None, after: Database | None) -> None:
        """Records that a database was created, altered or dropped."""
        value = after or before
        assert value is not None
        self._append(tx, type, _before_and_after(before, after), catalog=value.catalogName, database=value.name)

    def table(self, tx: Transaction, type: EventType, before: Table | None, after: Table | None) -> None:
        """Records that a table was created, altered, truncated or dropped. `before` has a renamed one's old name."""
        value = after or before
        assert value is not None
        self._append(tx, type, _before_and_after(before, after), _name(value))

    def tables_dropped(self, tx: Transaction, dropped: Iterable[Table]) -> None:
        """Records that tables were dropped, with one event for each."""
        self._record(tx, [self._new(EventType.DROP_TABLE, {"before": to_plain(each)}, _name(each)) for each in dropped])

    def function(self, tx: Transaction, type: EventType, before: Function | None, after: Function | None) -> None:
        """Records that a function was created, altered or dropped. Hive's log gets no entry for an alteration."""
        value = after or before
        assert value is not None
        self._append(
            tx,
            type,
            _before_and_after(before, after),
            catalog=value.catName,
            database=value.dbName,
            notifications=0 if type is EventType.ALTER_FUNCTION else 1,
        )

    def data_connector(
        self, tx: Transaction, type: EventType, before: DataConnector | None, after: DataConnector | None
    ) -> None:
        """Records that a data connector was created, altered or dropped. Not in Hive's log. Passwords are omitted."""
        payload = _before_and_after(
            *(each and each.replace(parameters=_without_secrets(each.parameters)) for each in (before, after))
        )
        self._append(tx, type, payload, notifications=0)

    def constraints(self, tx: Transaction, table: TableRow, added: Mapping[str, Sequence[Struct]]) -> None:
        """Records that constraints were added to a table. `added`: lists by Hive's field, a notification each."""
        lists = {kind: [to_plain(each) for each in some] for kind, some in added.items() if some}
        payload = {"tableId": table.id, "constraints": lists}
        self._append(tx, EventType.ADD_CONSTRAINTS, payload, table.name, notifications=len(lists))

    def constraint_dropped(self, tx: Transaction, table: TableRow, constraint: str) -> None:
        """Records that a constraint was dropped."""
        payload = {"tableId": table.id, "constraint": constraint}
        self._append(tx, EventType.DROP_CONSTRAINT, payload, table.name)

    def inserts(self, tx: Transaction, table: Table, inserts: Sequence[Insert]) -> list[int]:
        """Records inserts, an event for each. Returns the events' ids (see `eventbus.log.log.notifications_of`)."""
        new = []
        for insert in inserts:
            payload: dict[str, Any] = {"table": to_plain(table), "replace": insert.replace, "files": list(insert.files)}
            if insert.partition is not None:
                payload["partition"] = to_plain(insert.partition, without=_NAMES)
                payload["ready"] = insert.ready
            new.append(self._new(EventType.INSERT, payload, _name(table), notifications=int(insert.ready)))
        return self._record(tx, new)

    def to_record_instant(self, tx: Transaction, table: TableRow, completed: Completion) -> Call:
        """What records that an instant of a lake table was completed. Hive's log gets no entry."""
        payload = {
            "tableId": table.id,
            "timestamp": completed.timestamp,
            "action": completed.action,
            "begunAs": completed.begun_as,
            "completionTime": completed.completion_time,
            "position": completed.position,
            "partitions": completed.partitions[:MAX_PARTITIONS],
            "partitionCount": len(completed.partitions),
            "filesAdded": completed.files_added,
            "filesRemoved": completed.files_removed,
        }
        new = self._new(EventType.COMPLETE_INSTANT, payload, table.name, notifications=0)
        self._ask(tx, [new])
        return log.to_append(new)

    def statistics(
        self, tx: Transaction, type: EventType, table: TableRow, partitions: Sequence[str], columns: Sequence[str]
    ) -> None:
        """Records that column statistics of a table, or of its `partitions`, changed."""
        payload = {"tableId": table.id, "partitions": list(partitions), "columns": list(columns)}
        self._append(tx, type, payload, table.name, notifications=0)

    def partitions(self, tx: Transaction, type: EventType, table: Table, changes: Sequence[PartitionChange]) -> None:
        """Records one type of change to partitions of a table."""
        if not changes:
            return
        visible = sum(change.ready or type is EventType.REOPEN_PARTITIONS for change in changes)
        each = type in (EventType.ALTER_PARTITIONS, EventType.TRUNCATE_PARTITIONS)
        fields: dict[str, Sequence[Any]] = {
            "name": [change.name for change in changes],
            "ready": [change.ready for change in changes],
        }
        if any(change.renamed_from is not None for change in changes):
            fields["renamedFrom"] = [change.renamed_from for change in changes]
        descriptors = _Descriptors()
        states = {
            "before": descriptors.packed([change.before for change in changes]),
            "after": descriptors.packed([change.after for change in changes]),
        }
        partitions = PackedPartitions(fields, {name: state for name, state in states.items() if state.bodies})
        self._append(
            tx,
            type,
            {
                "table": to_plain(table),
                "descriptors": descriptors.plain,
                "partitions": partitions,
            },
            _name(table),
            notifications=visible if each else min(visible, 1),
        )

    def _append(
        self,
        tx: Transaction,
        type: EventType,
        payload: Mapping[str, Any],
        table: TableName | None = None,
        *,
        catalog: str | None = None,
        database: str | None = None,
        notifications: int = 1,
    ) -> None:
        new = self._new(type, payload, table, catalog=catalog, database=database, notifications=notifications)
        self._ask(tx, [new])
        log.append_with_commit(tx, new)

    def _record(self, tx: Transaction, new: Sequence[NewEvent]) -> list[int]:
        self._ask(tx, new)
        return log.append(tx, new)

    def _ask(self, tx: Transaction, new: Sequence[NewEvent]) -> None:
        try:
            self._pre_events.ask(new)
        except Veto as veto:
            raise InvalidOperationException(str(veto)) from None
        after_commit(tx, self._wake)

    @staticmethod
    def _new(
        type: EventType,
        payload: Mapping[str, Any],
        table: TableName | None = None,
        *,
        catalog: str | None = None,
        database: str | None = None,
        notifications: int = 1,
    ) -> NewEvent:
        return NewEvent(
            type,
            now_ms(),
            _origin.get(),
            table.catalog if table else catalog,
            table.database if table else database,
            table.table if table else None,
            notifications,
            {"version": VERSION, **payload},
        )


class _Descriptors:
    """The storage descriptors of an event's partitions, each of them once."""

    def __init__(self) -> None:
        self.plain: list[dict[str, Any]] = []
        self._places: dict[int, int] = {}

    def packed(self, some: Sequence[KeptPartition | None]) -> PackedStates:
        """Partitions with the places of their descriptors in `plain`."""
        kept = [each for each in some if each is not None]
        return PackedStates(
            [hive_objects.location(each.value) for each in kept],
            [*map(self._place, kept)],
            [each.body for each in kept],
        )

    def _place(self, partition: KeptPartition) -> int | None:
        if partition.value.sd is None:
            return None
        place = self._places.setdefault(partition.descriptor, len(self.plain))
        if place == len(self.plain):
            self.plain.append(to_plain(partition.value.sd, without=("location",)))
        return place


def _before_and_after(before: Struct | None, after: Struct | None) -> dict[str, Any]:
    payload = {}
    if before is not None:
        payload["before"] = to_plain(before)
    if after is not None:
        payload["after"] = to_plain(after)
    return payload


def _without_secrets(parameters: Mapping[str, str] | None) -> dict[str, str]:
    return {key: "***" if "password" in key.lower() else value for key, value in (parameters or {}).items()}


def _name(table: Table) -> TableName:
    return TableName(table.catName or "", table.dbName or "", table.tableName or "")
