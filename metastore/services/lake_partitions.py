"""Partitions as timelines name them, and what commits make of them in Hive's view."""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eventbus.events import EventType
from metastore.services import commit_flag, objects, partition_rows
from metastore.services.commit_flag import Flag
from metastore.services.commits import properties_of
from metastore.services.events import Events, PartitionChange
from metastore.services.instant_directories import base_of
from metastore.services.partition_reads import values_of_existing
from metastore.services.partition_rows import Kept
from metastore.services.partition_states import exact_name
from metastore.services.readiness_properties import CommitMode
from metastore.services.tables import DDL_TIME
from metastore.store import data_files, descriptors, partitions, tables
from metastore.store.data_files import PartitionSums
from metastore.store.database import Transaction
from metastore.store.partitions import Selection
from metastore.store.tables import TableRow
from metastore.warehouse import Warehouse
from metastore.wire import splice
from metastore.wire.hive import InvalidOperationException, Partition, StorageDescriptor, Table

_SPARKS_PATH = "path"


class LakePartition(NamedTuple):
    """A partition by its exact name; a table without keys has one with neither name nor values."""

    name: str
    values: list[str]


def lake_partition(row: TableRow, name: str | None) -> LakePartition:
    """A partition that a client names. Raises NoSuchObjectException, InvalidOperationException."""
    keys = objects.key_names(objects.table_of(row))
    if not keys:
        if name:
            raise InvalidOperationException(f"{row.name} has no partition keys: its files belong to the partition ''")
        return LakePartition(data_files.WHOLE_TABLE, [])
    exact = exact_name(row, keys, name or "")
    return LakePartition(exact, values_of_existing(exact, keys))


class HiveView:
    """Keeps what Hive's readers see in step with a timeline."""

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
        """Adds partitions that have come, and gives those that are there the counts of their files.

        A partition that comes is ready or not as the table's properties say; one that is there stays what it is. It
        lies in the directory of its name, unless `directories` names another one, relative to the table; those of
        `relocated` get that directory also if they are there. The partition of a table without keys is the table.
        The caller holds the table's row. Raises WarehouseError, InvalidOperationException if a listener vetoes.
        """
        owner = objects.table_of(row)
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
        before = partition_rows.decoded(tx, row, found)
        kept: list[Kept] = []
        for old, value in zip(found, before, strict=True):
            new = value.replace(parameters={**(value.parameters or {}), **of.get(old.name, {})})
            if old.name in relocated:
                new = new.replace(sd=self._moved(new.sd, row.location, relocated[old.name]))
            kept.append((old.name, old.values, new, Flag(old.ready, old.commit_time)))
        rows = partition_rows.new_rows(tx, row, kept)
        partitions.change_many(tx, [(old.id, new) for old, new in zip(found, rows, strict=True)])
        self._events.partitions(
            tx,
            EventType.ALTER_PARTITIONS,
            owner,
            [
                PartitionChange(old.name, old.ready, value, new, after.descriptor_id, old.stored.storage_descriptor_id)
                for old, value, (_, _, new, _), after in zip(found, before, kept, rows, strict=True)
            ],
        )

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
        now = int(time.time())
        kept: list[Kept] = []
        for each in sums:
            parameters = {**_counts(each), DDL_TIME: str(now)}
            flag = commit_flag.of_new(parameters, born_ready=born_ready)
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
        rows = partition_rows.new_rows(tx, row, kept)
        partitions.add(tx, row.id, rows)
        self._events.partitions(
            tx,
            EventType.ADD_PARTITIONS,
            owner,
            [
                PartitionChange(name, flag.ready, None, value, new.descriptor_id)
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
        tables.change(tx, row.id, row.database_id, objects.table_values(changed, number))
        self._events.table(tx, EventType.ALTER_TABLE, owner, changed)

    def _moved(self, sd: StorageDescriptor | None, base: str | None, directory: str) -> StorageDescriptor:
        """The same storage in another directory, which is made if it isn't there."""
        assert sd is not None and base is not None
        location = self._warehouse.join(base, directory) if directory else base
        self._warehouse.make_directory(location)
        return sd.replace(location=location)


def _with_sparks_path(sd: StorageDescriptor) -> StorageDescriptor:
    """The same with the location also where Spark keeps it of its own tables, which it believes more."""
    serde = sd.serdeInfo
    if serde is None or _SPARKS_PATH not in (serde.parameters or {}):
        return sd
    parameters = {**(serde.parameters or {}), _SPARKS_PATH: sd.location or ""}
    return sd.replace(serdeInfo=serde.replace(parameters=parameters))


def _counts(sums: PartitionSums) -> dict[str, str]:
    return {"numFiles": str(sums.files), "totalSize": str(sums.size), "numRows": str(sums.rows)}
