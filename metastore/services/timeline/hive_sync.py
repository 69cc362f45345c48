"""Keeps Hive's partitions in step with a timeline: commits add partitions and update their statistics.

Of keyed tables commits add partitions alone; the rest changes when they are published.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lake.protocol.clock import now_seconds
from lake.protocol.codec import splice
from lake.protocol.events.types import EventType
from lake.protocol.formats.commit_mode import CommitMode
from lake.protocol.hive import InvalidOperationException, Partition, StorageDescriptor, Table
from metastore.services.commit_flag import commit_flag
from metastore.services.commit_flag.transitions import properties_of
from metastore.services.events.recorder import (
    Events,
    KeptPartition,
    PartitionChange,
    kept_after,
    kept_before,
    kept_changed,
)
from metastore.services.instant_rules import readiness_changes
from metastore.services.instant_rules.paths import base_of
from metastore.services.model import hive_objects, partition_codec
from metastore.services.model.flag import Flag
from metastore.services.model.partition_codec import Kept
from metastore.services.partition.reads import values_of_existing
from metastore.services.readiness.partition_states import exact_name
from metastore.services.table.service import DDL_TIME
from metastore.store.engine import clock
from metastore.store.engine.database import Transaction
from metastore.store.partition import partitions
from metastore.store.partition.partitions import PartitionRow, Selection
from metastore.store.snapshot import data_files
from metastore.store.snapshot.data_files import PartitionSums
from metastore.store.table import descriptors, tables
from metastore.store.table.tables import TableRow
from metastore.warehouse import Warehouse

_SPARKS_PATH = "path"


class LakePartition(NamedTuple):
    """A partition by its exact name. An unpartitioned table has one with an empty name and no values."""

    name: str
    values: list[str]


def lake_partition(row: TableRow, name: str | None) -> LakePartition:
    """The partition for a name from a client. Raises NoSuchObjectException, InvalidOperationException."""
    keys = hive_objects.key_names_of(row)
    if not keys:
        if name:
            raise InvalidOperationException(f"{row.name} has no partition keys: its files belong to the partition ''")
        return LakePartition(data_files.WHOLE_TABLE, [])
    exact = exact_name(row, keys, name or "")
    return LakePartition(exact, values_of_existing(exact, keys))


class HiveView:
    """Updates partitions and tables as Hive's clients see them."""

    def __init__(self, warehouse: Warehouse, events: Events) -> None:
        self._warehouse = warehouse
        self._events = events

    def update(
        self,
        tx: Transaction,
        row: TableRow,
        sums: Sequence[PartitionSums],
        values: Mapping[str, Sequence[str]],
        directories: Mapping[str, str],
        relocated: Mapping[str, str],
    ) -> None:
        """Adds new partitions, and updates the statistics (files, bytes, rows) of existing ones.

        `sums`: the new statistics. `values`: partition values by name. `directories`: by name, relative to the table,
        for new partitions that don't lie in the directory of their name. `relocated`: new directories, also for
        existing partitions. The table's properties decide whether a new partition is ready; an existing one keeps its
        state. For an unpartitioned table the table itself is updated. The caller has locked the table's row. Raises
        WarehouseError, and InvalidOperationException if a listener vetoes.
        """
        owner = hive_objects.table_of(row)
        if not owner.partitionKeys:
            self._update_table(tx, row, owner, sums, relocated.get(data_files.WHOLE_TABLE))
            return
        names = {each.name for each in sums} | relocated.keys()
        found = partitions.rows(tx, Selection(row.id, names=sorted(names)), lock=True)
        there = {each.name for each in found}
        of = {each.name: _counts(each) for each in sums}
        coming = [each for each in sums if each.name not in there and each.files]
        self._add(tx, row, owner, coming, values, {**directories, **relocated})
        if not found:
            return
        before = partition_codec.decoded(tx, row, found)
        after = [
            value.replace(parameters={**(value.parameters or {}), **of.get(old.name, {})})
            for old, value in zip(found, before, strict=True)
        ]
        if relocated:
            after = [
                new.replace(sd=self._moved(new.sd, row.location, relocated[old.name])) if old.name in relocated else new
                for old, new in zip(found, after, strict=True)
            ]
            kept = self._put(tx, row, found, after)
        else:
            kept = [kept_changed(new, old) for old, new in zip(found, after, strict=True)]
            partitions.put_bodies(tx, [(old.id, new.body) for old, new in zip(found, kept, strict=True)])
        self._events.partitions(
            tx,
            EventType.ALTER_PARTITIONS,
            owner,
            [
                PartitionChange(old.name, old.ready, kept_before(value, old), new)
                for old, value, new in zip(found, before, kept, strict=True)
            ],
        )

    @staticmethod
    def _put(
        tx: Transaction, row: TableRow, found: Sequence[PartitionRow], after: Sequence[Partition]
    ) -> list[KeptPartition]:
        """Stores all that is kept of changed partitions."""
        kept = [
            (old.name, old.values, new, Flag(old.ready, old.commit_time)) for old, new in zip(found, after, strict=True)
        ]
        rows = partition_codec.new_rows(tx, row, kept)
        partitions.change_many(tx, [(old.id, new) for old, new in zip(found, rows, strict=True)])
        return [kept_after(value, new) for value, new in zip(after, rows, strict=True)]

    def add(
        self, tx: Transaction, row: TableRow, sums: Sequence[PartitionSums], values: Mapping[str, Sequence[str]]
    ) -> None:
        """Adds those partitions of a keyed table that have files and are new to Hive, which sees no files in them yet.

        Arguments, locks and exceptions are as of `update`.
        """
        owner = hive_objects.table_of(row)
        names = sorted(each.name for each in sums if each.files)
        if not owner.partitionKeys or not names:
            return
        new = {*names} - {*partitions.names(tx, Selection(row.id, names=names))}
        self._add(tx, row, owner, [PartitionSums(name, 0, 0, 0) for name in sorted(new)], values, {})

    def _add(
        self,
        tx: Transaction,
        row: TableRow,
        owner: Table,
        sums: Sequence[PartitionSums],
        values: Mapping[str, Sequence[str]],
        directories: Mapping[str, str],
    ) -> None:
        assert owner.sd is not None and row.location is not None
        born_ready = properties_of(row).mode is CommitMode.NONE
        now, turned_at = now_seconds(), clock.once(tx)
        kept: list[Kept] = []
        for each in sums:
            parameters = {**_counts(each), DDL_TIME: str(now)}
            flag = commit_flag.of_new(parameters, turned_at, born_ready=born_ready)
            location = self._warehouse.partition_location(row.location, directories.get(each.name, each.name))
            self._warehouse.make_directory(location)
            value = Partition(
                values=list(values[each.name]),
                catName=owner.catName,
                dbName=owner.dbName,
                tableName=owner.tableName,
                createTime=now,
                lastAccessTime=0,
                sd=owner.sd.replace(location=location),
                parameters=parameters,
            )
            kept.append((each.name, list(values[each.name]), value, flag))
        if not kept:
            return
        rows = partition_codec.new_rows(tx, row, kept)
        partitions.add(tx, row.id, rows)
        readiness_changes.added(tx, row, [name for name, _, _, flag in kept if not flag.ready])
        self._events.partitions(
            tx,
            EventType.ADD_PARTITIONS,
            owner,
            [
                PartitionChange(name, flag.ready, None, kept_after(value, new))
                for (name, _, value, flag), new in zip(kept, rows, strict=True)
            ],
        )

    def _update_table(
        self, tx: Transaction, row: TableRow, owner: Table, sums: Sequence[PartitionSums], directory: str | None
    ) -> None:
        if not sums and directory is None:
            return
        changed = owner.replace(parameters={**(owner.parameters or {}), **(_counts(sums[0]) if sums else {})})
        number = row.descriptor_id
        if directory is not None:
            moved = _with_sparks_path(self._moved(owner.sd, base_of(row.location or ""), directory))
            changed = changed.replace(sd=moved)
            body = splice.descriptor_body(moved)
            number = descriptors.keep(tx, [body])[body]
        tables.change(tx, row.id, row.database_id, hive_objects.table_values(changed, number))
        self._events.table(tx, EventType.ALTER_TABLE, owner, changed)

    def _moved(self, sd: StorageDescriptor | None, base: str | None, directory: str) -> StorageDescriptor:
        """The storage descriptor with another directory, which is created if necessary."""
        assert sd is not None and base is not None
        location = self._warehouse.join(base, directory) if directory else base
        self._warehouse.make_directory(location)
        return sd.replace(location=location)


def _with_sparks_path(sd: StorageDescriptor) -> StorageDescriptor:
    """Updates Spark's own copy of the location, too: for its own tables Spark prefers that one."""
    serde = sd.serdeInfo
    if serde is None or _SPARKS_PATH not in (serde.parameters or {}):
        return sd
    parameters = {**(serde.parameters or {}), _SPARKS_PATH: sd.location or ""}
    return sd.replace(serdeInfo=serde.replace(parameters=parameters))


def _counts(sums: PartitionSums) -> dict[str, str]:
    return {"numFiles": str(sums.files), "totalSize": str(sums.size), "numRows": str(sums.rows)}
