"""Hive's notification log: a view of the event log for Hive's clients, and the events that Hive's writers report."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from itertools import islice
from typing import NamedTuple

from eventbus.log import log
from eventbus.log.sequencer import Sequencer
from eventbus.outlets import hive_messages
from lake.protocol.events.types import Event, EventType
from lake.protocol.formats import partition_names
from lake.protocol.hive import InsertEventRequestData, MetaException, NoSuchObjectException, NotificationEvent
from metastore.services.events.recorder import Events, Insert
from metastore.services.instant_rules import engine_writes
from metastore.services.model import hive_objects, partition_codec
from metastore.services.model import names as given
from metastore.services.table.service import TableService
from metastore.store import Database
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.database import Transaction
from metastore.store.partition import partitions
from metastore.store.partition.partitions import PartitionRow, Selection
from metastore.store.table.tables import TableRow

_AT_ONCE = 20
"""Events that are read together for a reader who may not see all: a single one may hold 100,000 partitions."""


class Notifications:
    """Hive's notification calls. Each sees everything that was committed before it."""

    def __init__(self, database: Database, sequencer: Sequencer, events: Events, tables: TableService) -> None:
        self._database = database
        self._sequencer = sequencer
        self._events = events
        self._tables = tables

    def read(
        self,
        after: int,
        limit: int | None,
        *,
        skip: Sequence[str] | None = None,
        only: Sequence[str] | None = None,
        catalog: str | None = None,
        database: str | None = None,
        tables: Sequence[str] | None = None,
        shown: Callable[[Sequence[Event]], list[bool]] | None = None,
    ) -> list[NotificationEvent]:
        """The notifications with numbers greater than `after`, as many as fit into one reply.

        `limit`: at most so many; None, 0 and less mean no limit. `skip`: Hive's event types to leave out; `only`: those
        to return. `catalog`, `database`, `tables`: restrict to these names. If some notifications were trimmed, a
        client without filters receives the rest, and sees the gap in the numbers, as with Hive. A client that could
        not see the gap gets a TApplicationException.

        `shown`: says of events whether the reader may see them; None if it may see all. Of those that it may not, only
        numbers and times are left, because Hive's clients stop at a gap in the numbers. Where types, a database or
        tables are chosen, even that would tell what the event is about: then they are left out.
        """
        skipped, wanted = set(skip or ()), set(only or ())
        silent = [
            type
            for type, names in hive_messages.HIVE_TYPES.items()
            if skipped.issuperset(names) or (wanted and wanted.isdisjoint(names))
        ]
        chosen = bool(skipped or wanted) or database is not None or bool(tables)
        conditions = _Conditions(
            silent,
            given.normalized(catalog) if catalog is not None else None,
            given.normalized(database) if database is not None else None,
            [given.normalized(each) for each in tables or ()],
        )
        self._sequencer.catch_up()
        found: list[NotificationEvent] = []
        size = 0
        events = self._events_after(after, conditions, filtered=chosen or catalog is not None, shown=shown)
        with contextlib.closing(events):
            for event, sees in events:
                if not sees and chosen:
                    continue
                for each in hive_messages.notifications(event, after):
                    if each.eventType in skipped or (wanted and each.eventType not in wanted):
                        continue
                    new = (
                        each
                        if sees
                        else hive_messages.without_content(each.eventId, each.eventTime, each.messageFormat)
                    )
                    size += len(new.message or "")
                    if found and size > hive_messages.MAX_BYTES:
                        return found
                    found.append(new)
                    if len(found) == limit:
                        return found
        return found

    def _events_after(
        self,
        after: int,
        conditions: "_Conditions",
        *,
        filtered: bool,
        shown: Callable[[Sequence[Event]], list[bool]] | None,
    ) -> Generator[tuple[Event, bool], None, None]:
        """The events behind the notifications after a number, and whether the reader may see each of them."""
        if shown is None:
            with self._database.read() as tx:
                _check_kept(tx, after, filtered=filtered)
                for event in log.read_notifications(tx, after, **conditions._asdict()):
                    yield event, True
            return
        while True:
            with self._database.read() as tx:  # `shown` has transactions of its own
                _check_kept(tx, after, filtered=filtered)
                rows = log.read_notifications(tx, after, **conditions._asdict())
                with contextlib.closing(rows):
                    some = list(islice(rows, _AT_ONCE))
            yield from zip(some, shown(some), strict=True)
            if len(some) < _AT_ONCE:
                return
            after = some[-1].first_notification + some[-1].notifications - 1

    def last(self) -> int:
        """The number of the last notification; 0 if there has been none."""
        self._sequencer.catch_up()
        with self._database.read() as tx:
            return log.positions(tx).last_notification

    def count(
        self,
        after: int,
        upto: int | None,
        limit: int | None,
        *,
        catalog: str | None,
        database: str | None,
        tables: Sequence[str] | None = None,
        shown: Callable[[Sequence[Event]], list[bool]] | None = None,
    ) -> int:
        """Counts the notifications about a database (`*`: all), or tables of it, after a number, up to another.

        `shown`: says of events whether the reader may see them; None if it may see all. Returns at most `limit`. Raises
        MetaException without a database.
        """
        name = given.database_name(database, catalog)
        conditions = _Conditions(
            [],
            name.catalog,
            None if name.database == "*" else name.database,
            [given.normalized(each) for each in tables or ()],
        )
        self._sequencer.catch_up()
        if shown is None:
            with self._database.read() as tx:
                found = log.count_notifications(
                    tx,
                    after,
                    upto,
                    catalog=name.catalog,
                    database=conditions.database,
                    tables=conditions.tables,
                )
        else:
            found = self._count_shown(after, upto, conditions, shown)
        return found if limit is None else min(found, max(limit, 0))

    def _count_shown(
        self, after: int, upto: int | None, conditions: "_Conditions", shown: Callable[[Sequence[Event]], list[bool]]
    ) -> int:
        found = 0
        with contextlib.closing(self._events_after(after, conditions, filtered=False, shown=shown)) as events:
            for event, sees in events:
                last = event.first_notification + event.notifications - 1
                if upto is not None:
                    last = min(last, upto)
                if sees:
                    found += max(last - max(event.first_notification - 1, after), 0)
                if upto is not None and last >= upto:
                    break
        return found

    def insert(
        self, database: str | None, table: str | None, inserts: Sequence[InsertEventRequestData], catalog: str | None
    ) -> list[int]:
        """Records that a writer has inserted rows, once per entry of `inserts`. Returns the notifications' numbers.

        Inserts into uncommitted partitions make no notification. Raises NoSuchObjectException if the table or a
        partition doesn't exist, MetaException if files and checksums don't match, or if rows belong to the table's
        timeline.
        """
        with self._database.write() as tx:
            row = self._tables.row(tx, database, table, catalog, RowLock.SHARED)
            engine_writes.check_report(tx, row)
            written = []
            for each in inserts:
                replace = getattr(each, "replace") is not False  # noqa: B009  # a field, and a method of every struct
                if not each.partitionVal:
                    written.append(Insert(_files(each), replace))
                    continue
                found = _partition(tx, row, each.partitionVal)
                [value] = partition_codec.decoded(tx, row, [found])
                written.append(Insert(_files(each), replace, value, found.ready))
            ids = self._events.inserts(tx, hive_objects.table_of(row), written)
        self._sequencer.catch_up()
        with self._database.read() as tx:
            return log.notifications_of(tx, ids)

    def check_written(
        self, database: str | None, table: str | None, values: Sequence[str] | None, catalog: str | None = None
    ) -> None:
        """Checks the names in a transaction's report that it has written. Raises NoSuchObjectException, MetaException.

        Hive stores the report for replication until the transaction commits. Here it is not stored, because there are
        no notifications about transactions.
        """
        with self._database.write() as tx:
            row = self._tables.row(tx, database, table, catalog, RowLock.SHARED)
            engine_writes.check_report(tx, row)
            if values:
                _partition(tx, row, values)


def _partition(tx: Transaction, row: TableRow, values: Sequence[str]) -> PartitionRow:
    """The partition with exactly these values, ready or not: a writer may use uncommitted partitions."""
    name = partition_names.make_name(hive_objects.key_names(hive_objects.table_of(row)), values)
    found = partitions.rows(tx, Selection(row.id, names=[name]))
    if not found:
        raise NoSuchObjectException(f"partition values=[{', '.join(values)}]")
    return found[0]


def _files(inserted: InsertEventRequestData) -> list[str]:
    """Files in the form of Hive's log: `path#checksum`. Raises MetaException."""
    files, checksums = inserted.filesAdded or [], inserted.filesAddedChecksum or []
    if not checksums:
        return files
    if len(checksums) != len(files):
        raise MetaException(f"{len(files)} files and {len(checksums)} checksums of an insert don't match")
    return [f"{file}#{checksum}" for file, checksum in zip(files, checksums, strict=True)]


class _Conditions(NamedTuple):
    """Which events are read; the arguments of `log.read_notifications`."""

    skip: Sequence[EventType]
    catalog: str | None
    database: str | None
    tables: Sequence[str]


def _check_kept(tx: Transaction, after: int, *, filtered: bool) -> None:
    """Raises TApplicationException if notifications were trimmed and the client could not see the gap."""
    now = log.positions(tx)
    hive_messages.check_kept(after, now.last_notification, now.trimmed_notification, filtered=filtered)
