"""Databases."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import Connection, Select, bindparam, delete, exists, func, insert, or_, select, update

from metastore.store.footprint import Kind, note, spoil
from metastore.store.names import DatabaseName
from metastore.store.prepared import Prepared
from metastore.store.schema import catalogs, databases, functions, tables


class Hold(Enum):
    """How a row is held until the transaction ends."""

    NOT = "not"
    SHARED = "shared"  # it stays; others may hold it so too, and one at a time may give it a new version
    EXCLUSIVE = "exclusive"  # nobody else changes it, removes it or adds to it


def lock(hold: Hold) -> dict[str, bool]:
    """The arguments of `with_for_update` for a hold.

    FOR KEY SHARE, not FOR SHARE: two transactions that hold a row FOR SHARE and then both change its version
    wait for each other for ever.
    """
    return {"read": True, "key_share": True} if hold is Hold.SHARED else {}


@dataclass(frozen=True, slots=True)
class DatabaseRow:
    id: int
    name: DatabaseName
    location: str | None
    owner: str | None
    body: bytes


def _held(query: Select[*tuple[Any, ...]], hold: Hold) -> Select[*tuple[Any, ...]]:
    if hold is Hold.NOT:
        return query
    return query.with_for_update(**lock(hold), of=databases)


_NAMED = {
    hold: Prepared(
        _held(
            select(databases)
            .join(catalogs, catalogs.c.id == databases.c.catalog_id)
            .where(catalogs.c.name == bindparam("catalog"), databases.c.name == bindparam("database")),
            hold,
        )
    )
    for hold in Hold
}


def find(tx: Connection, name: DatabaseName, hold: Hold = Hold.NOT) -> DatabaseRow | None:
    """The database of that name."""
    row = _NAMED[hold].first(tx, name._asdict())
    if row is None:
        note(Kind.DATABASES, 0)
        return None
    note(Kind.DATABASE, row.id)
    return DatabaseRow(row.id, name, row.location, row.owner, bytes(row.body))


def names(tx: Connection, catalog: str, patterns: Sequence[str] | None = None) -> list[str]:
    """The names of a catalog's databases, in order; `patterns` are LIKE patterns of which one must match."""
    note(Kind.DATABASES, 0)
    query = (
        select(databases.c.name)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == catalog)
        .order_by(databases.c.name)
    )
    if patterns is not None:
        query = query.where(or_(False, *(databases.c.name.like(p, escape="\\") for p in patterns)))
    return list(tx.execute(query).scalars())


def find_all(tx: Connection, catalog: str, patterns: Sequence[str] | None = None) -> list[DatabaseRow]:
    """A catalog's databases by name; `patterns` are LIKE patterns of which one must match."""
    spoil()
    query = (
        select(databases)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == catalog)
        .order_by(databases.c.name)
    )
    if patterns is not None:
        query = query.where(or_(False, *(databases.c.name.like(p, escape="\\") for p in patterns)))
    return [
        DatabaseRow(row.id, DatabaseName(catalog, row.name), row.location, row.owner, bytes(row.body))
        for row in tx.execute(query)
    ]


def add(tx: Connection, catalog_id: int, name: str, location: str | None, owner: str | None, body: bytes) -> int:
    """Adds a database and returns its id. Raises store.Conflict if the name is taken."""
    values = {"catalog_id": catalog_id, "name": name, "location": location, "owner": owner, "body": body}
    return int(tx.execute(insert(databases).returning(databases.c.id), values).scalar_one())


def change(tx: Connection, database_id: int, *, location: str | None, owner: str | None, body: bytes) -> None:
    """Replaces what is kept of a database."""
    tx.execute(
        update(databases)
        .where(databases.c.id == database_id)
        .values(location=location, owner=owner, body=body, version=databases.c.version + 1)
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
