"""Converts partitions between Hive's objects and stored rows."""

from collections.abc import Iterable, Mapping, Sequence

from lake.protocol.codec import splice
from lake.protocol.hive import Partition
from metastore.services.model import hive_objects
from metastore.services.model.flag import Flag
from metastore.store.engine.database import Transaction
from metastore.store.partition.partitions import NewPartition, PartitionRow
from metastore.store.table import descriptors
from metastore.store.table.tables import TableRow

Kept = tuple[str, list[str], Partition, Flag]
"""A partition to store: its name, its values, Hive's object, and its flag."""

_NONE: Mapping[bytes, int] = {}


def new_rows(
    tx: Transaction, row: TableRow, values: Sequence[Kept], known: Mapping[bytes, int] = _NONE
) -> list[NewPartition]:
    """Converts partitions of a table to rows. Stores their descriptors.

    `known`: ids of descriptors, by body, that partitions have which this transaction has locked.
    """
    bodies = splice.descriptor_bodies([value.sd for _, _, value, _ in values])
    ids = {**known, **descriptors.keep(tx, {body for body in bodies if body is not None and body not in known})}
    rows = []
    for (name, own, value, flag), body in zip(values, bodies, strict=True):
        path, location = _place(row, value)
        number = splice.NO_DESCRIPTOR if body is None else ids[body]
        rows.append(NewPartition(name, own, *flag, path, location, number, splice.partition_body(value)))
    return rows


def encoder(tx: Transaction, row: TableRow, *, columns: bool = True) -> splice.PartitionEncoder:
    """The encoder that converts a table's rows to Thrift, with or without their columns."""

    def bodies(numbers: Iterable[int]) -> Mapping[int, bytes]:
        wanted = set(numbers)
        kept = {row.descriptor_id: row.descriptor} if row.descriptor_id in wanted else {}  # that of most partitions
        if others := wanted - kept.keys():
            kept |= descriptors.bodies(tx, others)
        return kept if columns else {number: splice.without_columns(body) for number, body in kept.items()}

    return splice.PartitionEncoder(*row.name, row.location, bodies)


def decoded(tx: Transaction, row: TableRow, found: Sequence[PartitionRow]) -> list[Partition]:
    """Converts rows to Hive's objects."""
    return encoder(tx, row).all_decoded([partition.stored for partition in found])


def _place(row: TableRow, value: Partition) -> tuple[str | None, str | None]:
    """A partition's location as (path relative to the table's location, other location). One of them is None."""
    location = hive_objects.location(value)
    if location is None:
        return None, None
    if row.location is not None:
        if location == row.location:
            return "", None
        # Both are normalised, so joining them again gives exactly the same location.
        if location.startswith(f"{row.location}/"):
            return location[len(row.location) + 1 :], None
    return None, location
