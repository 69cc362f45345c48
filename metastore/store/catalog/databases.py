"""SQL for databases, and the ways to lock a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, exists, func, insert, select, update

from metastore.postgres.prepared import Prepared
from metastore.store.engine import name_patterns
from metastore.store.engine.names import DatabaseName
from metastore.store.engine.read_set import Kind, mark_uncacheable, record_read
from metastore.store.schema.catalog import catalogs, databases, functions
from metastore.store.schema.table import tables


class RowLock(Enum):
    """How a row is locked until the transaction ends."""

    NOT = "not"
    SHARED = "shared"  # the row can't be removed; others may lock it so too, and one at a time may change its version
    EXCLUSIVE = "exclusive"  # nobody else changes it, removes it or adds to it


def for_update(lock: RowLock) -> dict[str, bool]:
    """The arguments of `with_for_update` for a lock of a row.

    FOR KEY SHARE, not FOR SHARE: two transactions that hold a row FOR SHARE and then both change its version
    wait for each other for ever.
    """
    return {"read": True, "key_share": True} if lock is RowLock.SHARED else {}


@dataclass(frozen=True, slots=True)
class DatabaseRow:
    id: int
    name: DatabaseName
    location: str | None
    owner: str | None
    body: bytes
    managed_location: str | None = None


def _locked(query: Select[*tuple[Any, ...]], lock: RowLock) -> Select[*tuple[Any, ...]]:
    if lock is RowLock.NOT:
        return query
    return query.with_for_update(**for_update(lock), of=databases)


_NAMED = {
    lock: Prepared(
        _locked(
            select(databases)
            .join(catalogs, catalogs.c.id == databases.c.catalog_id)
            .where(catalogs.c.name == bindparam("catalog"), databases.c.name == bindparam("database")),
            lock,
        )
    )
    for lock in RowLock
}


def find(tx: Connection, name: DatabaseName, lock: RowLock = RowLock.NOT) -> DatabaseRow | None:
    """The database of that name."""
    row = _NAMED[lock].first(tx, name._asdict())
    if row is None:
        record_read(Kind.DATABASES, 0)
        return None
    record_read(Kind.DATABASE, row.id)
    return DatabaseRow(row.id, name, row.location, row.owner, bytes(row.body), row.managed_location)


def names(tx: Connection, catalog: str, patterns: Sequence[str] | None = None) -> list[str]:
    """The names of a catalog's databases, in order; `patterns` are LIKE patterns of which one must match."""
    record_read(Kind.DATABASES, 0)
    query = (
        select(databases.c.name)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == catalog)
        .order_by(databases.c.name)
    )
    if patterns is not None:
        query = query.where(name_patterns.matching(databases.c.name, patterns))
    return list(tx.execute(query).scalars())


def find_all(tx: Connection, catalog: str, patterns: Sequence[str] | None = None) -> list[DatabaseRow]:
    """A catalog's databases by name; `patterns` are LIKE patterns of which one must match."""
    mark_uncacheable()
    query = (
        select(databases)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == catalog)
        .order_by(databases.c.name)
    )
    if patterns is not None:
        query = query.where(name_patterns.matching(databases.c.name, patterns))
    return [
        DatabaseRow(
            row.id, DatabaseName(catalog, row.name), row.location, row.owner, bytes(row.body), row.managed_location
        )
        for row in tx.execute(query)
    ]


def add(
    tx: Connection,
    catalog_id: int,
    name: str,
    location: str | None,
    owner: str | None,
    body: bytes,
    managed_location: str | None = None,
) -> int:
    """Adds a database and returns its id. Raises store.Conflict if the name is taken."""
    values = {
        "catalog_id": catalog_id,
        "name": name,
        "location": location,
        "managed_location": managed_location,
        "owner": owner,
        "body": body,
    }
    return int(tx.execute(insert(databases).returning(databases.c.id), values).scalar_one())


def change(
    tx: Connection,
    database_id: int,
    *,
    location: str | None,
    owner: str | None,
    body: bytes,
    managed_location: str | None,
) -> None:
    """Replaces the stored fields of a database. `body`: the encoded Thrift struct without these fields."""
    tx.execute(
        update(databases)
        .where(databases.c.id == database_id)
        .values(
            location=location,
            managed_location=managed_location,
            owner=owner,
            body=body,
            version=databases.c.version + 1,
        )
    )


def remove(tx: Connection, database_id: int) -> None:
    """Removes an empty database."""
    tx.execute(delete(databases).where(databases.c.id == database_id))


def has_tables(tx: Connection, database_id: int) -> bool:
    return bool(tx.execute(select(exists().where(tables.c.database_id == database_id))).scalar())


def has_functions(tx: Connection, database_id: int) -> bool:
    return bool(tx.execute(select(exists().where(functions.c.database_id == database_id))).scalar())


def count(tx: Connection) -> int:
    """How many databases there are in all catalogs."""
    return tx.execute(select(func.count()).select_from(databases)).scalar_one()
