"""Commits and reopens partitions."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from lake.protocol.events.types import EventType
from lake.protocol.formats.keyed_table import PUBLISH, Publish
from lake.protocol.hive import InvalidOperationException, MetaException, Partition
from metastore.services.commit_flag import commit_flag
from metastore.services.commit_flag.policy import ReadinessProperties
from metastore.services.events.recorder import Events, PartitionChange, kept_changed
from metastore.services.files.deletable import Deletable
from metastore.services.files.relocator import Mover
from metastore.services.files.staged_files import Publisher
from metastore.services.model import hive_objects
from metastore.services.model.flag import Flag
from metastore.services.model.partition_codec import decoded
from metastore.store.engine import clock
from metastore.store.engine.database import Transaction
from metastore.store.partition import partitions
from metastore.store.partition.partitions import PartitionRow
from metastore.store.table import tables
from metastore.store.table.tables import TableRow
from metastore.warehouse import Warehouse


class Timelines(Protocol):
    """Records on the timelines of lake tables which partitions turn ready or uncommitted."""

    def hold(self, tx: Transaction, row: TableRow) -> None:
        """Locks out completions until the transaction ends. Call it before partitions are locked, as these do."""

    def unpublished(self, tx: Transaction, row: TableRow, names: Collection[str]) -> list[str]:
        """Those of some partitions whose latest rows Hive must get before they turn ready, and hasn't got."""

    def turned(self, tx: Transaction, row: TableRow, names: Collection[str], *, ready: bool) -> None:
        """Some partitions have turned ready, or uncommitted. The caller has called `hold`."""


class Commits:
    """Commits and reopens partitions. All ways to do so come through here.

    A partition becomes ready only when its files are complete: its staged files are in place, and it has a success file
    if the table's `sink.partition-commit.policy.kind` asks for one. A reopened partition loses that file first.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        mover: Mover,
        publisher: Publisher,
        deletable: Deletable,
        events: Events,
        timelines: Timelines,
    ) -> None:
        self._mover = mover
        self._deletable = deletable
        self._events = events
        self._warehouse = warehouse
        self._publisher = publisher
        self._timelines = timelines

    def hold_timeline(self, tx: Transaction, row: TableRow) -> None:
        """Locks out completions of a lake table. Call it once the table's row is locked, before its partitions are."""
        self._timelines.hold(tx, row)

    def commit(self, tx: Transaction, row: TableRow, held: Sequence[PartitionRow], by: str | None = None) -> list[str]:
        """Makes those of some partitions ready that aren't, all or none; returns their names.

        The caller has called `hold_timeline`, and holds the partitions' rows. Raises WarehouseError, and
        InvalidOperationException if Hive must get the rows of some first, see `unpublished`.
        """
        turning = [partition for partition in held if not partition.ready]
        if not turning:
            return []
        self.check_published(tx, row, [each.name for each in turning])
        values, now = decoded(tx, row, turning), clock.once(tx)
        self.prepare_commit(tx, row, [(p.id, hive_objects.location(v)) for p, v in zip(turning, values, strict=True)])
        return self._turn(
            tx,
            EventType.COMMIT_PARTITIONS,
            row,
            turning,
            values,
            lambda old, parameters: commit_flag.commit(parameters, now, by, old.commit_time),
        )

    def reopen(
        self, tx: Transaction, row: TableRow, held: Sequence[PartitionRow], *, for_late_rows: bool = False
    ) -> list[str]:
        """Makes those of some partitions uncommitted that are ready, all or none; returns their names.

        `for_late_rows`: they are to turn ready again by event time, not by somebody's hand. The caller has called
        `hold_timeline`, and holds the partitions' rows. Raises WarehouseError.
        """
        turning = [partition for partition in held if partition.ready]
        if not turning:
            return []
        values, now = decoded(tx, row, turning), clock.once(tx)
        self.prepare_reopening(tx, row, [hive_objects.location(value) for value in values])
        return self._reopen(tx, row, turning, values, now, for_late_rows=for_late_rows)

    def reopen_first(self, tx: Transaction, row: TableRow, held: Sequence[PartitionRow]) -> list[str | None]:
        """Makes ready partitions uncommitted for late rows; returns where they lie.

        The caller calls `prepare_reopening` with that last, because it deletes files, which a rollback can't restore.
        """
        values = decoded(tx, row, held)
        self._reopen(tx, row, held, values, clock.once(tx), for_late_rows=True)
        return [hive_objects.location(value) for value in values]

    def _reopen(
        self,
        tx: Transaction,
        row: TableRow,
        turning: Sequence[PartitionRow],
        values: Sequence[Partition],
        now: commit_flag.Now,
        *,
        for_late_rows: bool,
    ) -> list[str]:
        return self._turn(
            tx,
            EventType.REOPEN_PARTITIONS,
            row,
            turning,
            values,
            lambda old, parameters: commit_flag.reopen(parameters, old, now, for_late_rows=for_late_rows),
        )

    def _turn(
        self,
        tx: Transaction,
        type: EventType,
        row: TableRow,
        turning: Sequence[PartitionRow],
        values: Sequence[Partition],
        turned: Callable[[Flag, dict[str, str]], Flag],
    ) -> list[str]:
        """Turns flags: `turned` makes the new one of the old and puts it into the parameters."""
        flags, changes = [], []
        for partition, value in zip(turning, values, strict=True):
            value.parameters = value.parameters or {}
            flag = turned(Flag(partition.ready, partition.commit_time), value.parameters)
            after = kept_changed(value, partition)
            flags.append((partition.id, *flag, after.body))
            changes.append(PartitionChange(partition.name, flag.ready, None, after))
        partitions.change_flags(tx, flags)
        self._events.partitions(tx, type, hive_objects.table_of(row), changes)
        names = [partition.name for partition in turning]
        self.record_turned(tx, row, names, ready=type is EventType.COMMIT_PARTITIONS)
        tables.touch(tx, row.id)
        return names

    def record_turned(self, tx: Transaction, row: TableRow, names: Sequence[str], *, ready: bool) -> None:
        """Records on a lake table's timeline that partitions have turned. The caller has called `hold_timeline`."""
        self._timelines.turned(tx, row, names, ready=ready)

    def unpublished(self, tx: Transaction, row: TableRow, names: Sequence[str]) -> list[str]:
        """Those of some partitions that can't turn ready yet, since Hive must get their latest rows before."""
        return self._timelines.unpublished(tx, row, names)

    def check_published(self, tx: Transaction, row: TableRow, names: Sequence[str]) -> None:
        """Raises InvalidOperationException if some partitions can't turn ready yet, as of `unpublished`."""
        missing = self.unpublished(tx, row, names)
        if missing:
            raise InvalidOperationException(
                f"{row.name}: the latest rows of {missing[0]} are not published, and {PUBLISH}={Publish.AT_READINESS}:"
                " compact its log files, publish it, then commit it"
            )

    def prepare_commit(self, tx: Transaction, row: TableRow, turning: Sequence[tuple[int, str | None]]) -> None:
        """Completes the files of partitions, given as (id, location), that are about to turn ready."""
        self._publisher.settle(tx, [number for number, _ in turning])
        self.write_success_files(tx, row, [location for _, location in turning])

    def write_success_files(self, tx: Transaction, row: TableRow, locations: Sequence[str | None]) -> None:
        """Says in the directories of partitions that they are complete, if the table wants it."""
        name = properties_of(row).success_file
        if name is not None:
            self._mover.settle_within(tx, locations)  # nothing may come to a place before what is to move there
            self._warehouse.write_empty_files([f"{location}/{name}" for location in locations if location is not None])

    def prepare_reopening(self, tx: Transaction, row: TableRow, locations: Sequence[str | None]) -> None:
        """Takes the success files out of partitions that are about to be opened again. Those of others stay."""
        name = properties_of(row).success_file
        if name is not None:
            self._mover.settle_within(tx, locations)
            own = self._deletable.exclusive(tx, [each for each in locations if each is not None], of=row.id)
            # Somebody's own file of that name isn't empty, as those are that a commit writes.
            self._warehouse.delete_empty_files([f"{location}/{name}" for location in own])


def properties_of(row: TableRow) -> ReadinessProperties:
    """What a table says about the readiness of its partitions. Raises MetaException where that makes no sense."""
    try:
        return ReadinessProperties.of_table(row.parameters, hive_objects.key_names(hive_objects.table_of(row)))
    except ValueError as error:
        raise MetaException(f"{row.name}: {error}") from None
