"""Structs that are looked up by name alone, of a database or of none."""

from enum import IntEnum
from typing import NamedTuple

from sqlalchemy import Connection, and_, delete, exists, insert, select, update
from sqlalchemy.sql import ColumnElement

from metastore.store.engine.names import DatabaseName
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.registry import named_objects


class Kind(IntEnum):
    """What an object is."""

    TYPE = 1
    SERDE = 2
    DATA_CONNECTOR = 3
    DELEGATION_TOKEN = 4
    SCHEMA = 5
    STORED_PROCEDURE = 6
    PACKAGE = 7


class NamedRow(NamedTuple):
    """A stored object; `database` is None for one of no database."""

    id: int
    database: DatabaseName | None
    name: str
    body: bytes


def _of(database: DatabaseName | None) -> ColumnElement[bool]:
    if database is None:
        return named_objects.c.database_id.is_(None)
    return and_(catalogs.c.name == database.catalog, databases.c.name == database.database)


_JOINED = (
    select(named_objects.c.id, named_objects.c.name, named_objects.c.body)
    .outerjoin(databases, databases.c.id == named_objects.c.database_id)
    .outerjoin(catalogs, catalogs.c.id == databases.c.catalog_id)
)


def find(
    tx: Connection, kind: Kind, name: str, database: DatabaseName | None = None, *, lock: bool = False
) -> NamedRow | None:
    """The object of that kind and name; with `lock` nobody else changes it until the transaction ends."""
    query = _JOINED.where(named_objects.c.kind == kind, named_objects.c.name == name, _of(database))
    row = tx.execute(query.with_for_update(of=named_objects) if lock else query).one_or_none()
    return None if row is None else NamedRow(row.id, database, row.name, bytes(row.body))


def names(tx: Connection, kind: Kind) -> list[str]:
    """The names of all objects of a kind that is of no database, in order."""
    query = select(named_objects.c.name).where(named_objects.c.kind == kind).order_by(named_objects.c.name)
    return list(tx.execute(query).scalars())


def names_in_catalog(tx: Connection, kind: Kind, catalog: str, database: str | None) -> list[str]:
    """The names of a kind's objects in a database, or in all databases of a catalog, in order."""
    query = (
        select(named_objects.c.name)
        .join(databases, databases.c.id == named_objects.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(named_objects.c.kind == kind, catalogs.c.name == catalog)
        .order_by(named_objects.c.name)
    )
    if database is not None:
        query = query.where(databases.c.name == database)
    return list(tx.execute(query).scalars())


def any_in_database(tx: Connection, kind: Kind, database_id: int) -> bool:
    """Whether a database has objects of that kind."""
    condition = and_(named_objects.c.kind == kind, named_objects.c.database_id == database_id)
    return bool(tx.execute(select(exists().where(condition))).scalar())


def add(tx: Connection, kind: Kind, name: str, body: bytes, database_id: int | None = None) -> None:
    """Adds an object. Raises store.Conflict if the name is taken."""
    tx.execute(insert(named_objects), {"kind": kind, "name": name, "body": body, "database_id": database_id})


def change(tx: Connection, object_id: int, body: bytes) -> None:
    """Replaces what is kept of an object."""
    tx.execute(update(named_objects).where(named_objects.c.id == object_id).values(body=body))


def remove(tx: Connection, object_id: int) -> None:
    """Removes an object."""
    tx.execute(delete(named_objects).where(named_objects.c.id == object_id))
