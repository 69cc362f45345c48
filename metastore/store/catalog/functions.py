"""SQL for user-defined functions."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update

from metastore.store.engine import name_patterns
from metastore.store.engine.names import DatabaseName
from metastore.store.schema.catalog import catalogs, databases, functions


class FunctionRow(NamedTuple):
    """A stored function; `body`: its other fields, encoded."""

    id: int
    database: DatabaseName
    name: str
    body: bytes


_JOINED = (
    select(functions.c.id, functions.c.name, functions.c.body, databases.c.name, catalogs.c.name)
    .join(databases, databases.c.id == functions.c.database_id)
    .join(catalogs, catalogs.c.id == databases.c.catalog_id)
)


def find(tx: Connection, database: DatabaseName, name: str, *, lock: bool = False) -> FunctionRow | None:
    """The function of that name."""
    query = _JOINED.where(
        catalogs.c.name == database.catalog, databases.c.name == database.database, functions.c.name == name
    )
    row = tx.execute(query.with_for_update(of=functions) if lock else query).one_or_none()
    return row and FunctionRow(row[0], DatabaseName(row[4], row[3]), row[1], bytes(row[2]))


def find_all(tx: Connection, catalog: str) -> list[FunctionRow]:
    """All functions of a catalog by database and name."""
    query = _JOINED.where(catalogs.c.name == catalog).order_by(databases.c.name, functions.c.name)
    return [FunctionRow(row[0], DatabaseName(row[4], row[3]), row[1], bytes(row[2])) for row in tx.execute(query)]


def find_in(tx: Connection, database: DatabaseName, patterns: Sequence[str] | None) -> list[FunctionRow]:
    """A database's functions by name, those that match one of the LIKE patterns."""
    query = _JOINED.where(catalogs.c.name == database.catalog, databases.c.name == database.database)
    if patterns is not None:
        query = query.where(name_patterns.matching(functions.c.name, patterns))
    rows = tx.execute(query.order_by(functions.c.name))
    return [FunctionRow(row[0], database, row[1], bytes(row[2])) for row in rows]


def names(tx: Connection, database: DatabaseName, patterns: Sequence[str] | None) -> list[str]:
    """Names of a database's functions in order, those that match one of the LIKE patterns."""
    query = (
        select(functions.c.name)
        .join(databases, databases.c.id == functions.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == database.catalog, databases.c.name == database.database)
        .order_by(functions.c.name)
    )
    if patterns is not None:
        query = query.where(name_patterns.matching(functions.c.name, patterns))
    return list(tx.execute(query).scalars())


def add(tx: Connection, database_id: int, name: str, body: bytes) -> None:
    """Adds a function. Raises store.Conflict if the name is taken."""
    tx.execute(insert(functions), {"database_id": database_id, "name": name, "body": body})


def change(tx: Connection, function_id: int, database_id: int, name: str, body: bytes) -> None:
    """Replaces a function, its name included. Raises store.Conflict if that is taken."""
    values = {"database_id": database_id, "name": name, "body": body}
    tx.execute(update(functions).where(functions.c.id == function_id).values(values))


def remove(tx: Connection, function_id: int) -> None:
    tx.execute(delete(functions).where(functions.c.id == function_id))


def remove_all(tx: Connection, database_id: int) -> None:
    """Removes all functions of a database."""
    tx.execute(delete(functions).where(functions.c.database_id == database_id))


def count(tx: Connection) -> int:
    """How many functions there are in all databases."""
    return tx.execute(select(func.count()).select_from(functions)).scalar_one()
