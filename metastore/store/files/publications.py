"""SQL for publications: pending moves of staged files into partitions.

Completed instants record them. "Held" means that a row is locked until the transaction ends.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Select,
    and_,
    any_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    select,
)

from metastore.postgres.prepared import Prepared
from metastore.store.schema.files import publications
from metastore.store.schema.partition import partitions
from metastore.store.schema.table import tables

WHOLE_TABLE = 0
"""In place of a partition's id: the file joins a table without partition keys."""


class Publication(NamedTuple):
    """A staged file, and the partition that it joins, at `path` relative to its table or at `location`."""

    id: int
    source: str
    name: str
    table_location: str | None
    path: str | None
    location: str | None


def add(tx: Connection, table_id: int, files: Iterable[tuple[int, str, str]]) -> None:
    """Records files as (partition id, source, name)."""
    rows = [
        {"table_id": table_id, "partition_id": partition, "source": source, "name": name}
        for partition, source, name in files
    ]
    if rows:
        tx.execute(insert(publications), rows)


def of_table(tx: Connection, table_id: int, *, skip_held: bool = False) -> list[Publication]:
    """A table's publications, locked until the transaction ends. `skip_held`: without those that others have locked."""
    found = (_OF_TABLE_FREE if skip_held else _OF_TABLE).all(tx, {"table_id": table_id})
    return [Publication(*row) for row in found]


def of_partitions(tx: Connection, partition_ids: Sequence[int]) -> list[Publication]:
    """The publications of partitions, locked until the transaction ends."""
    return [Publication(*row) for row in _OF_PARTITIONS.all(tx, {"partition_ids": list(partition_ids)})]


def below(tx: Connection, table_id: int, place: str) -> list[Publication]:
    """The publications of files staged below a directory, locked until the transaction ends."""
    return [Publication(*row) for row in _BELOW.all(tx, {"table_id": table_id, "begin": f"{place}/"})]


def _held(condition: ColumnElement[bool], *, skip_held: bool = False) -> Select[*tuple[Any, ...]]:
    return (
        select(
            publications.c.id,
            publications.c.source,
            publications.c.name,
            tables.c.location.label("table_location"),
            case((publications.c.partition_id == WHOLE_TABLE, ""), else_=partitions.c.path).label("path"),
            partitions.c.location,
        )
        .join(tables, tables.c.id == publications.c.table_id)
        .outerjoin(partitions, partitions.c.id == publications.c.partition_id)
        .where(condition)
        .order_by(publications.c.id)
        .with_for_update(of=publications, skip_locked=skip_held)
    )


_TABLE = publications.c.table_id == bindparam("table_id")
_TABLE_BELOW = and_(_TABLE, func.starts_with(publications.c.source, bindparam("begin")))
_BELOW = Prepared(_held(_TABLE_BELOW))
_OF_TABLE, _OF_TABLE_FREE = Prepared(_held(_TABLE)), Prepared(_held(_TABLE, skip_held=True))
_OF_PARTITIONS = Prepared(
    _held(publications.c.partition_id == any_(bindparam("partition_ids", type_=ARRAY(BigInteger))))
)


def names(tx: Connection, partition_ids: Sequence[int]) -> set[tuple[int, str]]:
    """The names of the files that are on their way into partitions, each with its partition's id."""
    query = select(publications.c.partition_id, publications.c.name).where(
        publications.c.partition_id == func.any(list(partition_ids))
    )
    return {(partition_id, name) for partition_id, name in tx.execute(query)}


def has_any_below(tx: Connection, table_id: int, place: str) -> bool:
    """Whether files that lie below a place are still to join a table's partitions."""
    return _ANY_BELOW.first(tx, {"table_id": table_id, "begin": f"{place}/"}) is not None


_ANY_BELOW = Prepared(select(publications.c.id).where(_TABLE_BELOW).limit(1))
ANY_BELOW = exists().where(_TABLE_BELOW)
"""SQL for `has_any_below`, of the parameters `table_id` and `begin`, which is the place with a slash."""


def count(tx: Connection) -> int:
    """The number of publications of all tables."""
    return tx.execute(select(func.count()).select_from(publications)).scalar_one()


def tables_with_any(tx: Connection) -> list[int]:
    """The ids of the tables for which something is recorded."""
    return list(tx.execute(select(publications.c.table_id).distinct()).scalars())


def forget(tx: Connection, ids: Sequence[int]) -> None:
    """Removes publications that are carried out."""
    if ids:
        tx.execute(delete(publications).where(publications.c.id == func.any(list(ids))))


def _discarding(owner: Column[int], ids: str) -> tuple[Prepared, Prepared]:
    these = owner == any_(bindparam(ids, type_=ARRAY(BigInteger)))
    # Held in the order in which all take hold of them; a DELETE has its own.
    held = select(publications.c.id).where(these).order_by(publications.c.id).with_for_update()
    return Prepared(held), Prepared(delete(publications).where(these))


DISCARD_OF_TABLES = _discarding(publications.c.table_id, "table_ids")
"""Removes the publications of dropped tables, after waiting for those who carry them out."""
DISCARD_OF_PARTITIONS = _discarding(publications.c.partition_id, "partition_ids")
"""The same for partitions."""
