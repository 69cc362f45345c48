"""Exchanging partitions between tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from eventbus.events import EventType
from metastore.services import lake_removal, objects, partition_rows
from metastore.services import names as given
from metastore.services.commit_flag import Flag
from metastore.services.events import Events, PartitionChange
from metastore.services.moves import Mover
from metastore.services.partition_reads import alternatives
from metastore.services.publishing import Publisher
from metastore.services.tables import TableService
from metastore.services.visibility import Scope, readable
from metastore.store import Conflict, Database, moves, partitions, tables
from metastore.store.database import Transaction
from metastore.store.databases import Hold
from metastore.store.moves import Move
from metastore.store.partitions import Selection
from metastore.store.tables import TableRow
from metastore.warehouse import Warehouse
from metastore.wire.hive import MetaException, Partition


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
    ) -> None:
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

        A partial spec selects what the caller sees, one of all keys its partition whoever sees it.

        Raises NoSuchObjectException, MetaException; InvalidObjectException where the target has one of them.
        """
        recorded: list[Move] = []
        try:
            with self._database.write() as tx:
                source, target = self._two_tables(tx, (source_database, source_table), (target_database, target_table))
                giving, taking = objects.table_of(source), objects.table_of(target)
                keys = objects.key_names(giving)
                wanted = dict(spec or {})
                if not wanted.keys() <= set(keys) or not any(wanted.values()):
                    raise MetaException(f"the partition spec {wanted} names no partition of {source.name}")
                values = [alternatives(wanted.get(key) or "") for key in keys]
                # Whoever knows a partition's exact values may write to it.
                selection = Selection(source.id) if None not in values else readable(source, scope)
                found = partitions.rows(tx, replace(selection, values=values), lock=True)
                if not found:
                    raise MetaException(
                        f"No partition is found with the values {wanted} for the table {source.name.table}"
                    )
                assert giving.sd is not None and taking.sd is not None
                if not _same_columns(giving.sd.cols, taking.sd.cols) or not _same_columns(
                    giving.partitionKeys, taking.partitionKeys
                ):
                    raise MetaException("The tables have different schemas. Their partitions cannot be exchanged.")
                taken = partitions.existing(tx, target.id, [p.name for p in found])
                if taken:
                    raise MetaException(f"Partition already exists: {target.name} {min(taken)}")
                self._publisher.settle(tx, [partition.id for partition in found])
                self._mover.settle_within(tx, [source.location, target.location])
                encoder = partition_rows.encoder(tx, source)
                answers, changes, told = [], [], []
                for old in found:
                    value = encoder.decoded(old.stored)
                    value.dbName, value.tableName, value.catName = (
                        target.name.database,
                        target.name.table,
                        target.name.catalog,
                    )
                    before = objects.location(value)
                    if value.sd is not None and target.location is not None and before is not None:
                        value.sd.location = self._warehouse.partition_location(target.location, old.name)
                        if self._warehouse.exists(value.sd.location):
                            raise MetaException(f"{value.sd.location} exists already")
                        recorded.append(moves.add(tx, before, value.sd.location))
                    kept = (old.name, old.values, value, Flag(old.ready, old.commit_time))
                    changes.append((old.id, partition_rows.new_rows(tx, target, [kept])[0]))
                    answers.append(value)
                    told.append((old, encoder.decoded(old.stored), value, changes[-1][1].descriptor_id))
                lake_removal.refuse_rename(tx, source, [old.name for old in found], "exchanged")
                partitions.move(tx, [old.id for old in found], target.id)
                partitions.change_many(tx, changes)
                self._events.partitions(
                    tx,
                    EventType.ADD_PARTITIONS,
                    taking,
                    [PartitionChange(o.name, o.ready, None, new, number) for o, _, new, number in told],
                )
                self._events.partitions(
                    tx,
                    EventType.DROP_PARTITIONS,
                    giving,
                    [
                        PartitionChange(o.name, o.ready, before=v, descriptor_before=o.stored.storage_descriptor_id)
                        for o, v, _, _ in told
                    ],
                )
                tables.touch(tx, source.id)
                tables.touch(tx, target.id)
        except Conflict:
            raise MetaException(f"A partition exists already in {target_database}.{target_table}") from None
        self._mover.carry_out(recorded)
        for move in recorded:
            self._mover.delete_empty_parents([move.source], source.location, depth=len(keys) - 1)
        return answers

    def _two_tables(
        self, tx: Transaction, source: tuple[str | None, str | None], target: tuple[str | None, str | None]
    ) -> tuple[TableRow, TableRow]:
        """Both tables, held in the order of their names, so that two exchanges can't wait for each other."""
        held = {
            pair: self._tables.row(tx, *pair, hold=Hold.EXCLUSIVE)
            for pair in sorted({source, target}, key=lambda pair: given.table_name(*pair))
        }
        return held[source], held[target]


def _same_columns(one: Sequence[Any] | None, other: Sequence[Any] | None) -> bool:
    """Hive's compareFieldColumns: the same names and types in the same order, whatever the comments say."""
    return [(f.name, f.type) for f in one or ()] == [(f.name, f.type) for f in other or ()]
