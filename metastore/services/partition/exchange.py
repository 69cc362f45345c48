"""Hive's exchange_partitions: moves partitions from one table to another."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any, NamedTuple

from lake.protocol.events.types import EventType
from lake.protocol.hive import MetaException, NoSuchObjectException, Partition
from metastore.services.events.recorder import Events, PartitionChange, kept_after, kept_before
from metastore.services.files.deletable import Deletable
from metastore.services.files.relocator import Mover
from metastore.services.files.staged_files import Publisher
from metastore.services.instant_rules import engine_writes, hive_drops
from metastore.services.model import hive_objects, partition_codec
from metastore.services.model import names as given
from metastore.services.model.flag import Flag
from metastore.services.model.visibility import Scope, readable
from metastore.services.partition.reads import alternatives
from metastore.services.table.service import TableService
from metastore.store import Conflict, Database
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.database import Transaction
from metastore.store.files import moves
from metastore.store.files.moves import Move
from metastore.store.partition import partitions
from metastore.store.partition.partitions import NewPartition, PartitionRow, Selection
from metastore.store.table import tables
from metastore.store.table.tables import TableRow
from metastore.warehouse import Warehouse


class _Moved(NamedTuple):
    """A moved partition: its old row, the old and the new object, and the new row."""

    row: PartitionRow
    before: Partition
    value: Partition
    new: NewPartition


class PartitionExchange:
    """Moves partitions, data included, from one table to another."""

    def __init__(
        self,
        database: Database,
        warehouse: Warehouse,
        mover: Mover,
        tables: TableService,
        publisher: Publisher,
        events: Events,
        deletable: Deletable,
    ) -> None:
        self._deletable = deletable
        self._database = database
        self._warehouse = warehouse
        self._mover = mover
        self._tables = tables
        self._publisher = publisher
        self._events = events

    def exchange(
        self,
        scope: Scope,
        spec: Mapping[str, str] | None,
        source_database: str | None,
        source_table: str | None,
        target_database: str | None,
        target_table: str | None,
    ) -> list[Partition]:
        """Moves the partitions that a spec selects to a table of the same schema, data included.

        `spec`: values by key. A partial spec has the values of the first keys, and selects what the scope shows. A full
        spec selects its partition in any scope. As in Hive, unknown keys are ignored, and only partitions in the
        directory of their name are moved: data elsewhere may belong to another table.

        Raises MetaException, also if a table doesn't exist or the target has one of the partitions.
        """
        recorded: list[Move] = []
        try:
            with self._database.write() as tx:
                source, target = self._two_tables(tx, (source_database, source_table), (target_database, target_table))
                if source.name.catalog != target.name.catalog:
                    raise MetaException("You cannot move a partition across catalogs")
                engine_writes.check_report(tx, target)
                found = self._selected(tx, scope, spec or {}, source, target)
                self._publisher.settle(tx, [partition.id for partition in found])
                self._mover.settle_within(tx, [source.location, target.location])
                moved, recorded = self._relocated(tx, source, target, found)
                self._write(tx, source, target, moved)
        except Conflict:
            raise MetaException(f"A partition exists already in {target_database}.{target_table}") from None
        self._mover.carry_out(recorded)
        keys = hive_objects.key_names(hive_objects.table_of(source))
        for move in recorded:
            self._mover.delete_empty_parents([move.source], source.location, depth=len(keys) - 1)
        return [each.value for each in moved]

    @staticmethod
    def _selected(
        tx: Transaction, scope: Scope, spec: Mapping[str, str], source: TableRow, target: TableRow
    ) -> list[PartitionRow]:
        """The partitions to move, locked. Raises MetaException if there are none, or if the target can't take them."""
        giving, taking = hive_objects.table_of(source), hive_objects.table_of(target)
        values = [alternatives(value) for value in _wanted(source, hive_objects.key_names(giving), spec)]
        # With exact values, the caller may select an uncommitted partition in any scope.
        selection = Selection(source.id) if None not in values else readable(source, scope)
        found = partitions.rows(tx, replace(selection, values=values), lock=True)
        if not found:
            raise MetaException(f"No partition is found with the values {spec} for the table {source.name.table}")
        assert giving.sd is not None and taking.sd is not None
        if not _same_columns(giving.sd.cols, taking.sd.cols) or not _same_columns(
            giving.partitionKeys, taking.partitionKeys
        ):
            raise MetaException("The tables have different schemas. Their partitions cannot be exchanged.")
        taken = partitions.existing(tx, target.id, [p.name for p in found])
        if taken:
            raise MetaException(f"Partition already exists: {target.name} {min(taken)}")
        hive_drops.refuse_rename(tx, source, [old.name for old in found], "exchanged")
        return found

    def _relocated(
        self, tx: Transaction, source: TableRow, target: TableRow, found: Sequence[PartitionRow]
    ) -> tuple[list["_Moved"], list[Move]]:
        """The partitions with their new table and location, and the recorded moves of their directories."""
        encoder = partition_codec.encoder(tx, source)
        moved, recorded = [], []
        for old in found:
            value = encoder.decoded(old.stored)
            value.dbName, value.tableName, value.catName = target.name.database, target.name.table, target.name.catalog
            before = hive_objects.location(value)
            if value.sd is not None and target.location is not None and before is not None:
                self._check_place(source, old.name, before)
                value.sd.location = self._warehouse.partition_location(target.location, old.name)
                self._warehouse.check_move(before, value.sd.location)
                recorded.append(moves.add(tx, before, value.sd.location))
            kept = (old.name, old.values, value, Flag(old.ready, old.commit_time))
            [new] = partition_codec.new_rows(tx, target, [kept])
            moved.append(_Moved(old, encoder.decoded(old.stored), value, new))
        if there := self._warehouse.existing([move.target for move in recorded if move.target]):
            raise MetaException(f"{min(there)} exists already")
        self._deletable.check(tx, [move.source for move in recorded], "moved", besides=source.id)
        for move in recorded:
            if move.target is not None:
                self._deletable.record_moved(tx, move.source, move.target)
        return moved, recorded

    def _write(self, tx: Transaction, source: TableRow, target: TableRow, moved: Sequence["_Moved"]) -> None:
        """Changes the rows of moved partitions, and records the events."""
        partitions.move(tx, [each.row.id for each in moved], target.id)
        partitions.change_many(tx, [(each.row.id, each.new) for each in moved])
        self._events.partitions(
            tx,
            EventType.ADD_PARTITIONS,
            hive_objects.table_of(target),
            [PartitionChange(each.row.name, each.row.ready, None, kept_after(each.value, each.new)) for each in moved],
        )
        self._events.partitions(
            tx,
            EventType.DROP_PARTITIONS,
            hive_objects.table_of(source),
            [PartitionChange(each.row.name, each.row.ready, kept_before(each.before, each.row)) for each in moved],
        )
        tables.touch(tx, source.id)
        tables.touch(tx, target.id)

    def _two_tables(
        self, tx: Transaction, source: tuple[str | None, str | None], target: tuple[str | None, str | None]
    ) -> tuple[TableRow, TableRow]:
        """Both tables, held in the order of their names, so that two exchanges can't wait for each other.

        Raises MetaException if one is missing.
        """
        held = {}
        for pair in sorted({source, target}, key=lambda pair: given.table_name(*pair)):
            try:
                held[pair] = self._tables.row(tx, *pair, lock=RowLock.EXCLUSIVE)
            except NoSuchObjectException as error:
                raise MetaException(error.message) from None
        return held[source], held[target]

    def _check_place(self, source: TableRow, name: str, place: str) -> None:
        """A partition of the source table lies where its name says, and something is there."""
        usual = source.location and self._warehouse.partition_location(source.location, name)
        if place != usual:
            raise MetaException(
                f"{name} of {source.name} lies at {place}, not at {usual}, and only data that lies where its"
                " partition's name says is exchanged: move it there and alter the partition's location"
            )
        if self._warehouse.is_gone(place):
            raise MetaException(f"{place}, the directory of {name} of {source.name}, is missing: nothing is exchanged")


def _wanted(source: TableRow, keys: Sequence[str], spec: Mapping[str, str]) -> list[str]:
    """The values that a spec gives the keys, empty for those after the last. Raises MetaException."""
    values = [spec.get(key) or "" for key in keys]
    leading = len(list(takewhile(bool, values)))
    if any(values[leading:]):
        raise MetaException(
            f"the partition spec {spec} leaves out {keys[leading]} before another key: give values of the first of"
            f" {', '.join(keys)}, without a gap"
        )
    if not leading:
        raise MetaException(f"the partition spec {spec} names no partition of {source.name}")
    return values


def _same_columns(one: Sequence[Any] | None, other: Sequence[Any] | None) -> bool:
    """Hive's compareFieldColumns: the same names and types in the same order, whatever the comments say."""
    return [(f.name, f.type) for f in one or ()] == [(f.name, f.type) for f in other or ()]
