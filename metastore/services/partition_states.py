"""Which partitions of a table are ready, and turning them so or open again on somebody's word."""

from collections.abc import Sequence

from metastore.services import commit_flag, objects, partition_filter
from metastore.services.commits import Commits, properties_of
from metastore.services.partition_names import make_name, parse_name
from metastore.services.partition_reads import partition_keys, values_of_existing
from metastore.services.partition_rows import decoded
from metastore.services.partition_time import PartitionClock
from metastore.services.tables import TableService
from metastore.services.visibility import Scope, readable
from metastore.store import Database, partitions
from metastore.store.database import Transaction
from metastore.store.databases import Hold
from metastore.store.partitions import PartitionRow, Selection
from metastore.store.tables import TableRow
from metastore.wire.hive import MetaException, NoSuchObjectException
from metastore.wire.lake import PartitionState, TableReference


class PartitionStates:
    """Partitions and their flags, for those who know of them."""

    def __init__(self, database: Database, tables: TableService, commits: Commits) -> None:
        self._database = database
        self._tables = tables
        self._commits = commits

    def listing(
        self, scope: Scope, table: TableReference, filter: str | None, limit: int | None, after: str | None
    ) -> list[PartitionState]:
        """What a reader of that scope sees, in the order of names: at most `limit`, those after a name.

        Raises NoSuchObjectException, MetaException for a bad filter.
        """
        with self._database.read() as tx:
            row = self._tables.row(tx, table.database, table.table, table.catalog)
            predicate = partition_filter.parse(filter, partition_keys(row)) if filter else None
            selection = readable(row, scope, predicate=predicate, after=after)
            found = partitions.rows(tx, selection, limit if limit is not None and limit >= 0 else None)
            values = decoded(tx, row, found)
        clock = PartitionClock(properties_of(row))
        states = []
        for partition, value in zip(found, values, strict=True):
            parameters = value.parameters or {}
            states.append(
                PartitionState(
                    name=partition.name,
                    values=partition.values,
                    ready=partition.ready,
                    commitTime=partition.commit_time,
                    openedTime=_number(parameters.get(commit_flag.OPENED)),
                    committedBy=parameters.get(commit_flag.COMMITTED_BY),
                    createTime=(value.createTime or 0) * 1000,
                    location=objects.location(value),
                    partitionTime=clock.start(partition.values),
                )
            )
        return states

    def commit(
        self, table: TableReference, names: Sequence[str] | None, filter: str | None, by: str | None
    ) -> tuple[list[str], list[str]]:
        """Makes partitions ready, all or none; the names of those that weren't, and of those that were.

        Raises NoSuchObjectException if one is missing, MetaException.
        """
        with self._database.write() as tx:
            row, held = self._held(tx, table, names, filter)
            turned = self._commits.commit(tx, row, held, by)
        return turned, _others(held, turned)

    def reopen(
        self, table: TableReference, names: Sequence[str] | None, filter: str | None
    ) -> tuple[list[str], list[str]]:
        """Makes partitions uncommitted, all or none; the names of those that weren't, and of those that were.

        They stay so until somebody commits them. Raises NoSuchObjectException if one is missing, MetaException.
        """
        with self._database.write() as tx:
            row, held = self._held(tx, table, names, filter)
            turned = self._commits.reopen(tx, row, held)
        return turned, _others(held, turned)

    def _held(
        self, tx: Transaction, table: TableReference, names: Sequence[str] | None, filter: str | None
    ) -> tuple[TableRow, list[PartitionRow]]:
        if (names is None) == (filter is None):
            raise MetaException("give either the names of partitions or a filter")
        row = self._tables.row(tx, table.database, table.table, table.catalog, Hold.SHARED)
        if names is None:
            predicate = partition_filter.parse(filter or "", partition_keys(row))
            return row, partitions.rows(tx, Selection(row.id, predicate=predicate), lock=True)
        return row, held_by_name(tx, row, names)


def held_by_name(tx: Transaction, row: TableRow, names: Sequence[str]) -> list[PartitionRow]:
    """The named partitions, held until the transaction ends. Raises NoSuchObjectException if one is missing."""
    keys = objects.key_names(objects.table_of(row))
    wanted = sorted({exact_name(row, keys, name) for name in names})
    held = partitions.rows(tx, Selection(row.id, names=wanted), lock=True)
    if len(held) < len(wanted):
        missing = sorted(set(wanted) - {partition.name for partition in held})
        raise NoSuchObjectException(f"{row.name} has no partition {missing[0]}")
    return held


def exact_name(row: TableRow, keys: Sequence[str], name: str) -> str:
    """A partition's name as it is kept. Unlike in Hive's lookups it may say nothing but the table's keys: who names a
    partition more narrowly than there are doesn't mean the wider one. Raises NoSuchObjectException."""
    values = values_of_existing(name, keys)
    if parse_name(name).keys() != set(keys):
        raise NoSuchObjectException(f"{name!r} names no partition of {row.name}; its keys are {', '.join(keys)}")
    return make_name(keys, values)


def _others(held: Sequence[PartitionRow], turned: Sequence[str]) -> list[str]:
    return [partition.name for partition in held if partition.name not in set(turned)]


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
