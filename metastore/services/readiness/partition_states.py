"""Calls that list the states of partitions, commit partitions, and reopen them."""

from collections.abc import Sequence

from lake.protocol.formats.partition_names import make_name, parse_name
from lake.protocol.hive import MetaException, NoSuchObjectException
from lake.protocol.lake import PartitionState, TableReference
from metastore.services.commit_flag import commit_flag
from metastore.services.commit_flag.partition_time import PartitionClock
from metastore.services.commit_flag.policy import ReadinessProperties
from metastore.services.commit_flag.transitions import Commits, properties_of
from metastore.services.filters import partition_filter
from metastore.services.instant_rules.keyed_tables import is_keyed
from metastore.services.model import hive_objects
from metastore.services.model.partition_codec import decoded
from metastore.services.model.visibility import Scope, readable
from metastore.services.partition.reads import partition_keys, values_of_existing
from metastore.services.readiness.due import due_partitions
from metastore.services.table.service import TableService
from metastore.store import Database
from metastore.store.catalog.databases import RowLock
from metastore.store.commit_flag import readiness
from metastore.store.engine.database import Transaction
from metastore.store.partition import partitions
from metastore.store.partition.partitions import PartitionRow, Selection
from metastore.store.snapshot import data_files
from metastore.store.table.tables import TableRow


class PartitionStates:
    """Lists and changes partitions' states, for clients that know of them."""

    def __init__(self, database: Database, tables: TableService, commits: Commits) -> None:
        self._database = database
        self._tables = tables
        self._commits = commits

    def listing(
        self, scope: Scope, table: TableReference, filter: str | None, limit: int | None, after: str | None
    ) -> list[PartitionState]:
        """The states of the partitions that a scope shows, ordered by name: at most `limit`, after the name `after`.

        Raises NoSuchObjectException, MetaException for an invalid filter.
        """
        with self._database.read() as tx:
            row = self._tables.row_of(tx, table)
            predicate = partition_filter.parse(filter, partition_keys(row)) if filter else None
            selection = readable(row, scope, predicate=predicate, after=after)
            found = partitions.rows(tx, selection, limit if limit is not None and limit >= 0 else None)
            values = decoded(tx, row, found)
            names = [partition.name for partition in found] if is_keyed(row) else []
            positions = data_files.positions(tx, row.id, names)
            properties = properties_of(row)
            waiting = self._waiting(tx, row, properties, found)
        clock = PartitionClock(properties)
        states = []
        for partition, value in zip(found, values, strict=True):
            parameters = value.parameters or {}
            position = positions.get(partition.name)
            states.append(
                PartitionState(
                    name=partition.name,
                    values=partition.values,
                    ready=partition.ready,
                    commitTime=partition.commit_time,
                    openedTime=_number(parameters.get(commit_flag.OPENED)),
                    committedBy=parameters.get(commit_flag.COMMITTED_BY),
                    createTime=(value.createTime or 0) * 1000,
                    location=hive_objects.location(value),
                    partitionTime=clock.start(partition.values),
                    changedAt=position and position.changed_at,
                    publishedAt=position and position.published_at,
                    waitsForPublish=(partition.name in waiting) or None,
                )
            )
        return states

    def _waiting(
        self, tx: Transaction, row: TableRow, properties: ReadinessProperties, found: Sequence[PartitionRow]
    ) -> set[str]:
        """The partitions that would be ready, had Hive got their latest rows."""
        held = [partition for partition in found if not partition.ready and partition.commit_time is None]
        unpublished = {*self._commits.unpublished(tx, row, [partition.name for partition in held])}
        held = [partition for partition in held if partition.name in unpublished]
        if not held:
            return set()
        return {each.name for each in due_partitions(tx, row, properties, held, readiness.get(tx, row.id))}

    def commit(
        self, table: TableReference, names: Sequence[str] | None, filter: str | None, by: str | None
    ) -> tuple[list[str], list[str]]:
        """Makes partitions ready, all or none. Returns the names of the changed ones, and of those ready before.

        Give either names or a filter. `by`: who commits. Raises NoSuchObjectException if a partition doesn't exist,
        MetaException.
        """
        with self._database.write() as tx:
            row, held = self._held(tx, table, names, filter)
            turned = self._commits.commit(tx, row, held, by)
        return turned, _others(held, turned)

    def reopen(
        self, table: TableReference, names: Sequence[str] | None, filter: str | None
    ) -> tuple[list[str], list[str]]:
        """Makes partitions uncommitted, all or none. Returns the names of the changed ones, and of the others.

        They stay uncommitted until somebody commits them. Raises NoSuchObjectException if a partition doesn't exist,
        MetaException.
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
        row = self._tables.row_of(tx, table, RowLock.SHARED)
        self._commits.hold_timeline(tx, row)
        if names is None:
            predicate = partition_filter.parse(filter or "", partition_keys(row))
            return row, partitions.rows(tx, Selection(row.id, predicate=predicate), lock=True)
        return row, held_by_name(tx, row, names)


def held_by_name(tx: Transaction, row: TableRow, names: Sequence[str]) -> list[PartitionRow]:
    """The named partitions, locked until the transaction ends. Raises NoSuchObjectException if one doesn't exist."""
    keys = hive_objects.key_names(hive_objects.table_of(row))
    wanted = sorted({exact_name(row, keys, name) for name in names})
    held = partitions.rows(tx, Selection(row.id, names=wanted), lock=True)
    if len(held) < len(wanted):
        missing = sorted(set(wanted) - {partition.name for partition in held})
        raise NoSuchObjectException(f"{row.name} has no partition {missing[0]}")
    return held


def exact_name(row: TableRow, keys: Sequence[str], name: str) -> str:
    """A partition's name in the stored form. Raises NoSuchObjectException unless it has exactly the table's keys.

    Hive's lookups ignore extra keys, and steps without a key. That would take a name for a wider partition than the
    caller means, and the path of another table's partition for a name.
    """
    values = values_of_existing(name, keys)
    if parse_name(name).keys() != set(keys) or len(name.split("/")) > len(keys):
        raise NoSuchObjectException(f"{name!r} names no partition of {row.name}; its keys are {', '.join(keys)}")
    return make_name(keys, values)


def _others(held: Sequence[PartitionRow], turned: Sequence[str]) -> list[str]:
    return [partition.name for partition in held if partition.name not in set(turned)]


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
