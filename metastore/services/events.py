"""Which event a change makes: it is recorded in the transaction of the change.

Objects are told by the names of Hive's fields (`wire.plain`). Partitions share descriptors: `sd` of a partition has its
location and the index of the rest in the payload's `descriptors`.

Hive's readers know no uncommitted partitions. To them one appears when it turns ready and is gone when it is opened
again; so an event says how many notifications it makes in their log: none of what they would not understand.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from eventbus import log
from eventbus.events import EventType, NewEvent, Origin
from eventbus.pre_events import PreEvents, Veto
from metastore.clock import now_ms
from metastore.store.database import Transaction, after_commit
from metastore.store.names import TableName
from metastore.wire.hive import Catalog, Database, DataConnector, Function, InvalidOperationException, Partition, Table
from metastore.wire.plain import to_plain
from metastore.wire.struct import Struct

VERSION = 1
"""Of the payloads' form."""

_NAMES = ("dbName", "tableName", "catName")
"""Of a partition: they are its table's."""
_NAMES_AND_DESCRIPTOR = (*_NAMES, "sd")

MAX_PARTITIONS = 1_000
"""That the event of an instant names; of more it says how many they are."""

_SERVER = Origin()
_origin: ContextVar[Origin] = ContextVar("origin", default=_SERVER)


@contextmanager
def acting(user: str | None, connection: str) -> Iterator[None]:
    """Whatever is changed within, in this thread, is changed by that user on that connection."""
    token = _origin.set(Origin(user, connection))
    try:
        yield
    finally:
        _origin.reset(token)


class PartitionChange(NamedTuple):
    """What happened to one partition. `ready` as it is afterwards, or was when it was dropped.

    `descriptor` and `descriptor_before`: the ids of the storage descriptors of `after` and `before`.
    """

    name: str
    ready: bool
    before: Partition | None = None
    after: Partition | None = None
    descriptor: int = 0
    descriptor_before: int = 0
    renamed_from: str | None = None


class Insert(NamedTuple):
    """Rows that a writer says it has inserted into a table, or a partition of it, by these files."""

    files: Sequence[str]
    replace: bool
    partition: Partition | None = None
    ready: bool = True


class Completion(NamedTuple):
    """An instant of a lake table that was completed, and what changed by it."""

    timestamp: str
    action: str
    begun_as: str
    completion_time: str
    position: int
    partitions: Sequence[str]
    files_added: int
    files_removed: int


class Events:
    """Records events. `wake` is called once they are committed; `pre_events` are asked before.

    Every method raises InvalidOperationException if a listener vetoes.
    """

    def __init__(self, wake: Callable[[], None], pre_events: PreEvents) -> None:
        self._wake = wake
        self._pre_events = pre_events

    def catalog(self, tx: Transaction, type: EventType, before: Catalog | None, after: Catalog | None) -> None:
        """A catalog was created, altered or dropped. Hive's log doesn't tell of catalogs."""
        value = after or before
        assert value is not None
        self._append(tx, type, _told(before, after), catalog=value.name, notifications=0)

    def database(self, tx: Transaction, type: EventType, before: Database | None, after: Database | None) -> None:
        """A database was created, altered or dropped."""
        value = after or before
        assert value is not None
        self._append(tx, type, _told(before, after), catalog=value.catalogName, database=value.name)

    def table(self, tx: Transaction, type: EventType, before: Table | None, after: Table | None) -> None:
        """A table was created, altered, truncated or dropped. One that was renamed bears its old name in `before`."""
        value = after or before
        assert value is not None
        self._append(tx, type, _told(before, after), _name(value))

    def tables_dropped(self, tx: Transaction, dropped: Iterable[Table]) -> None:
        """Many tables were dropped, each an event."""
        self._record(tx, [self._new(EventType.DROP_TABLE, {"before": to_plain(each)}, _name(each)) for each in dropped])

    def function(self, tx: Transaction, type: EventType, before: Function | None, after: Function | None) -> None:
        """A function was created, altered or dropped. Hive tells of no alterations."""
        value = after or before
        assert value is not None
        self._append(
            tx,
            type,
            _told(before, after),
            catalog=value.catName,
            database=value.dbName,
            notifications=0 if type is EventType.ALTER_FUNCTION else 1,
        )

    def data_connector(
        self, tx: Transaction, type: EventType, before: DataConnector | None, after: DataConnector | None
    ) -> None:
        """A data connector was created, altered or dropped. Its passwords are not told, and nothing in Hive's log."""
        told = _told(*(each and each.replace(parameters=_without_secrets(each.parameters)) for each in (before, after)))
        self._append(tx, type, told, notifications=0)

    def constraints(self, tx: Transaction, name: TableName, added: Mapping[str, Sequence[Struct]]) -> None:
        """Constraints were added to a table: lists by kind, as Hive names the kinds' lists. One notification a kind."""
        told = {kind: [to_plain(each) for each in some] for kind, some in added.items() if some}
        self._append(tx, EventType.ADD_CONSTRAINTS, {"constraints": told}, name, notifications=len(told))

    def constraint_dropped(self, tx: Transaction, name: TableName, constraint: str) -> None:
        """A constraint was dropped."""
        self._append(tx, EventType.DROP_CONSTRAINT, {"constraint": constraint}, name)

    def inserts(self, tx: Transaction, table: Table, inserts: Sequence[Insert]) -> list[int]:
        """Rows were inserted, each time an event; their ids (`eventbus.log.notifications_of`)."""
        new = []
        for insert in inserts:
            payload: dict[str, Any] = {"table": to_plain(table), "replace": insert.replace, "files": list(insert.files)}
            if insert.partition is not None:
                payload["partition"] = to_plain(insert.partition, without=_NAMES)
                payload["ready"] = insert.ready
            new.append(self._new(EventType.INSERT, payload, _name(table), notifications=int(insert.ready)))
        return self._record(tx, new)

    def instant(self, tx: Transaction, name: TableName, completed: Completion) -> int:
        """An instant of a lake table was completed; the event's id. Hive's log doesn't tell of instants."""
        payload = {
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
        return self._record(tx, [self._new(EventType.COMPLETE_INSTANT, payload, name, notifications=0)])[0]

    def statistics(
        self, tx: Transaction, type: EventType, name: TableName, partitions: Sequence[str], columns: Sequence[str]
    ) -> None:
        """Column statistics of a table, or of partitions of it, changed."""
        payload = {"partitions": list(partitions), "columns": list(columns)}
        self._append(tx, type, payload, name, notifications=0)

    def partitions(self, tx: Transaction, type: EventType, table: Table, changes: Sequence[PartitionChange]) -> None:
        """Something happened to partitions of a table, the same to all of them."""
        if not changes:
            return
        visible = sum(change.ready or type is EventType.REOPEN_PARTITIONS for change in changes)
        each = type in (EventType.ALTER_PARTITIONS, EventType.TRUNCATE_PARTITIONS)
        descriptors: dict[int, int] = {}
        kept: list[dict[str, Any]] = []

        def plain(value: Partition, descriptor: int) -> dict[str, Any]:
            told = to_plain(value, without=_NAMES_AND_DESCRIPTOR)
            if value.sd is not None:
                if descriptor not in descriptors:
                    descriptors[descriptor] = len(kept)
                    kept.append(to_plain(value.sd, without=("location",)))
                told["sd"] = {"location": value.sd.location, "descriptor": descriptors[descriptor]}
            return told

        told = []
        for change in changes:
            one: dict[str, Any] = {"name": change.name, "ready": change.ready}
            if change.renamed_from is not None:
                one["renamedFrom"] = change.renamed_from
            if change.before is not None:
                one["before"] = plain(change.before, change.descriptor_before)
            if change.after is not None:
                one["after"] = plain(change.after, change.descriptor)
            told.append(one)
        self._append(
            tx,
            type,
            {"table": to_plain(table), "descriptors": kept, "partitions": told},
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
        self._record(tx, [new])

    def _record(self, tx: Transaction, new: Sequence[NewEvent]) -> list[int]:
        try:
            self._pre_events.ask(new)
        except Veto as veto:
            raise InvalidOperationException(str(veto)) from None
        ids = log.append(tx, new)
        after_commit(tx, self._wake)
        return ids

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


def _told(before: Struct | None, after: Struct | None) -> dict[str, Any]:
    told = {}
    if before is not None:
        told["before"] = to_plain(before)
    if after is not None:
        told["after"] = to_plain(after)
    return told


def _without_secrets(parameters: Mapping[str, str] | None) -> dict[str, str]:
    return {key: "***" if "password" in key.lower() else value for key, value in (parameters or {}).items()}


def _name(table: Table) -> TableName:
    return TableName(table.catName or "", table.dbName or "", table.tableName or "")
