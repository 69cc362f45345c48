"""Between partitions in Hive's form and rows of the store."""

from collections.abc import Sequence
from functools import partial

from metastore.services import objects
from metastore.services.commit_flag import Flag
from metastore.store import descriptors
from metastore.store.database import Transaction
from metastore.store.partitions import NewPartition, PartitionRow
from metastore.store.tables import TableRow
from metastore.wire import splice
from metastore.wire.hive import Partition

Kept = tuple[str, list[str], Partition, Flag]
"""What is to be kept of a partition: its name, its values, the object in Hive's form, and its flag."""


def new_rows(tx: Transaction, row: TableRow, values: Sequence[Kept]) -> list[NewPartition]:
    """Rows for partitions of a table; their descriptors are kept."""
    bodies = splice.descriptor_bodies([value.sd for _, _, value, _ in values])
    ids = descriptors.keep(tx, {body for body in bodies if body is not None})
    rows = []
    for (name, own, value, flag), body in zip(values, bodies, strict=True):
        path, location = _place(row, value)
        number = splice.NO_DESCRIPTOR if body is None else ids[body]
        rows.append(NewPartition(name, own, *flag, path, location, number, splice.partition_body(value)))
    return rows


def encoder(tx: Transaction, row: TableRow) -> splice.PartitionEncoder:
    """What turns a table's rows into partitions."""
    return splice.PartitionEncoder(*row.name, row.location, partial(descriptors.bodies, tx))


def decoded(tx: Transaction, row: TableRow, found: Sequence[PartitionRow]) -> list[Partition]:
    """Partitions as Hive gives them."""
    encode = encoder(tx, row)
    return [encode.decoded(partition.stored) for partition in found]


def _place(row: TableRow, value: Partition) -> tuple[str | None, str | None]:
    """Where a partition lies: below the table's location, or elsewhere, or nowhere."""
    location = objects.location(value)
    if location is None:
        return None, None
    if row.location is not None:
        if location == row.location:
            return "", None
        # Both are normalised, so what follows is a path, and splicing gives the location back to the letter.
        if location.startswith(f"{row.location}/"):
            return location[len(row.location) + 1 :], None
    return None, location
