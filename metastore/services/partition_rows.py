"""Between partitions in Hive's form and rows of the store."""

from collections.abc import Iterable, Sequence

from metastore.services import objects
from metastore.services.commit_flag import Flag
from metastore.store import descriptors
from metastore.store.database import Transaction
from metastore.store.partitions import NewPartition, PartitionRow
from metastore.store.tables import TableRow
from metastore.warehouse import Warehouse
from metastore.wire import splice
from metastore.wire.hive import Partition

Kept = tuple[str, list[str], Partition, Flag]
"""What is to be kept of a partition: its name, its values, the object in Hive's form, and its flag."""


def new_rows(tx: Transaction, warehouse: Warehouse, row: TableRow, values: Sequence[Kept]) -> list[NewPartition]:
    """Rows for partitions of a table; their descriptors are kept."""
    bodies = [None if value.sd is None else splice.descriptor_body(value.sd) for _, _, value, _ in values]
    ids = descriptors.keep(tx, [body for body in bodies if body is not None])
    rows = []
    for (name, own, value, flag), body in zip(values, bodies, strict=True):
        path, location = _place(warehouse, row, value)
        number = splice.NO_DESCRIPTOR if body is None else ids[body]
        rows.append(NewPartition(name, own, *flag, path, location, number, splice.partition_body(value)))
    return rows


def encoder(tx: Transaction, row: TableRow, found: Iterable[PartitionRow]) -> splice.PartitionEncoder:
    """What turns a table's rows into partitions."""
    used = {partition.stored.storage_descriptor_id for partition in found}
    return splice.PartitionEncoder(*row.name, row.location, descriptors.bodies(tx, used))


def decoded(tx: Transaction, row: TableRow, found: Sequence[PartitionRow]) -> list[Partition]:
    """Partitions as Hive gives them."""
    encode = encoder(tx, row, found)
    return [encode.decoded(partition.stored) for partition in found]


def _place(warehouse: Warehouse, row: TableRow, value: Partition) -> tuple[str | None, str | None]:
    """Where a partition lies: below the table's location, or elsewhere, or nowhere."""
    location = objects.location(value)
    if location is None:
        return None, None
    if row.location is not None:
        path = "" if location == row.location else warehouse.relative_to(location, row.location)
        # Only if splicing gives the location back to the letter.
        if path is not None and (f"{row.location}/{path}" if path else row.location) == location:
            return path, None
    return None, location
