"""Hive's notification log: what Hive's readers are told of the events, and what writers report themselves."""

from collections.abc import Sequence

from thrift.Thrift import TApplicationException

from eventbus import hive_messages, log
from eventbus.sequencer import Sequencer
from metastore.services import names as given
from metastore.services import objects, partition_names, partition_rows
from metastore.services.events import Events, Insert
from metastore.services.tables import TableService
from metastore.store import Database, partitions
from metastore.store.database import Transaction
from metastore.store.databases import Hold
from metastore.store.partitions import PartitionRow, Selection
from metastore.store.tables import TableRow
from metastore.wire.hive import InsertEventRequestData, MetaException, NoSuchObjectException, NotificationEvent

MAX_BYTES = 16 << 20
"""Of messages in one reply; a single greater one goes out all the same."""


class Notifications:
    """Hive's notification API. Whatever was committed before a call is in its answer."""

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
    ) -> list[NotificationEvent]:
        """The notifications after a number, at most so many (None, 0 and less: all), as far as one reply may hold.

        `skip`: Hive's event types that are left out; `only`: those that are not. With a catalog, a database or tables,
        those alone. Where some are gone, a client that reads all numbers is given what is left, and sees the hole (as
        from Hive); one that could not see it gets a TApplicationException.
        """
        skipped, wanted = set(skip or ()), set(only or ())
        silent = [
            type
            for type, names in hive_messages.HIVE_TYPES.items()
            if skipped.issuperset(names) or (wanted and wanted.isdisjoint(names))
        ]
        filtered = bool(skipped or wanted) or catalog is not None or database is not None or bool(tables)
        self._sequencer.catch_up()
        found: list[NotificationEvent] = []
        size = 0
        with self._database.read() as tx:
            now = log.positions(tx)
            if after < now.trimmed_notification and (filtered or now.last_notification == now.trimmed_notification):
                raise _gone(after, now.trimmed_notification)
            for event in log.read_notifications(
                tx,
                after,
                skip=silent,
                catalog=given.normalized(catalog) if catalog is not None else None,
                database=given.normalized(database) if database is not None else None,
                tables=[given.normalized(each) for each in tables or ()],
            ):
                for each in hive_messages.notifications(event, after):
                    if each.eventType in skipped or (wanted and each.eventType not in wanted):
                        continue
                    size += len(each.message or "")
                    if found and size > MAX_BYTES:
                        return found
                    found.append(each)
                    if len(found) == limit:
                        return found
        return found

    def last(self) -> int:
        """The number of the last notification, 0 if there has been none."""
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
    ) -> int:
        """How many notifications about a database (`*`: all), or tables of it, come after a number, up to another; at
        most `limit`. Raises MetaException without a database.
        """
        name = given.database_name(database, catalog)
        self._sequencer.catch_up()
        with self._database.read() as tx:
            found = log.count_notifications(
                tx,
                after,
                upto,
                catalog=name.catalog,
                database=None if name.database == "*" else name.database,
                tables=[given.normalized(each) for each in tables or ()],
            )
        return found if limit is None else min(found, max(limit, 0))

    def insert(
        self, database: str | None, table: str | None, inserts: Sequence[InsertEventRequestData], catalog: str | None
    ) -> list[int]:
        """A writer has inserted rows, once for each of `inserts`; the numbers of the notifications about it.

        Hive's readers are not told of uncommitted partitions. Raises NoSuchObjectException where the table or a
        partition is unknown, MetaException.
        """
        with self._database.write() as tx:
            row = self._tables.row(tx, database, table, catalog, Hold.SHARED)
            told = []
            for each in inserts:
                replace = getattr(each, "replace") is not False  # noqa: B009  # a field, and a method of every struct
                if not each.partitionVal:
                    told.append(Insert(_files(each), replace))
                    continue
                found = _partition(tx, row, each.partitionVal)
                [value] = partition_rows.decoded(tx, row, [found])
                told.append(Insert(_files(each), replace, value, found.ready))
            ids = self._events.inserts(tx, objects.table_of(row), told)
        self._sequencer.catch_up()
        with self._database.read() as tx:
            return log.notifications_of(tx, ids)

    def check_written(
        self, database: str | None, table: str | None, values: Sequence[str] | None, catalog: str | None = None
    ) -> None:
        """A transaction has written to a table, or a partition of it. Raises NoSuchObjectException, MetaException.

        Hive keeps it for its replication, together with the transaction, until that commits; here only the names
        are checked, since there are no notifications about transactions.
        """
        with self._database.write() as tx:
            row = self._tables.row(tx, database, table, catalog, Hold.SHARED)
            if values:
                _partition(tx, row, values)


def _partition(tx: Transaction, row: TableRow, values: Sequence[str]) -> PartitionRow:
    """The partition with exactly these values, ready or not: whoever writes to it knows it."""
    name = partition_names.make_name(objects.key_names(objects.table_of(row)), values)
    found = partitions.rows(tx, Selection(row.id, names=[name]))
    if not found:
        raise NoSuchObjectException(f"partition values=[{', '.join(values)}]")
    return found[0]


def _files(inserted: InsertEventRequestData) -> list[str]:
    """Files as Hive's log names them: with their checksums behind a `#`."""
    files, checksums = inserted.filesAdded or [], inserted.filesAddedChecksum or []
    if not checksums:
        return files
    if len(checksums) != len(files):
        raise MetaException(f"{len(files)} files and {len(checksums)} checksums of an insert don't match")
    return [f"{file}#{checksum}" for file, checksum in zip(files, checksums, strict=True)]


def _gone(after: int, upto: int) -> TApplicationException:
    return TApplicationException(
        TApplicationException.INTERNAL_ERROR,
        f"the notifications after {after} are no longer kept, the oldest is {upto + 1}."
        f" Read the current state of the tables, then go on after {upto}",
    )
