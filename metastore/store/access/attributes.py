"""SQL for what policies look at: owners and parameters of databases and tables."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from metastore.store.engine.names import DatabaseName
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.table import tables


class Attributes(NamedTuple):
    """`parameters`: None where `body` has them. `body`: the object, encoded; it has the owner's type."""

    name: str
    owner: str | None
    parameters: Mapping[str, str] | None
    body: bytes


def of_database(tx: Connection, name: DatabaseName) -> Attributes | None:
    """What policies look at in a database; None if there is no such one."""
    row = tx.execute(
        select(databases.c.name, databases.c.owner, databases.c.body)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == name.catalog, databases.c.name == name.database)
    ).first()
    return row and Attributes(row.name, row.owner, None, bytes(row.body))


def of_tables(tx: Connection, name: DatabaseName, names: Collection[str]) -> list[Attributes]:
    """The same of those tables of a database that there are."""
    if not names:
        return []
    query = (
        select(tables.c.name, tables.c.owner, tables.c.parameters, tables.c.body)
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == name.catalog, databases.c.name == name.database)
        .where(tables.c.name == func.any(list(names)))
    )
    return [Attributes(row.name, row.owner, row.parameters, bytes(row.body)) for row in tx.execute(query)]
