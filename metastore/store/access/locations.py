"""SQL for decisions by the storage: where databases and tables lie.

The functions for one object record what they read, so that a location can be kept until that object changes.
"""

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, func, select

from metastore.store.engine.names import DatabaseName, TableName
from metastore.store.engine.prepared import Prepared
from metastore.store.engine.read_set import Kind, record_read
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.table import tables

NOWHERE = ""
"""The location of a table that has none, such as a view."""

_IN_DATABASE = (catalogs.c.name == bindparam("catalog"), databases.c.name == bindparam("database"))
_DATABASE = Prepared(
    select(databases.c.id, databases.c.location)
    .join(catalogs, catalogs.c.id == databases.c.catalog_id)
    .where(*_IN_DATABASE)
)
_TABLE = Prepared(
    select(tables.c.id, tables.c.database_id, tables.c.location)
    .join(databases, databases.c.id == tables.c.database_id)
    .join(catalogs, catalogs.c.id == databases.c.catalog_id)
    .where(*_IN_DATABASE, tables.c.name == bindparam("table"))
)


def of_database(tx: Connection, name: DatabaseName) -> str | None:
    """The location of a database; None if there is no such database."""
    row = _DATABASE.first(tx, name._asdict())
    if row is None:
        record_read(Kind.DATABASES, 0)
        return None
    record_read(Kind.DATABASE, row.id)
    return row.location  # type: ignore[no-any-return]


def of_table(tx: Connection, name: TableName) -> str | None:
    """The location of a table, or NOWHERE; None if there is no such table."""
    row = _TABLE.first(tx, name._asdict())
    if row is not None:
        record_read(Kind.TABLE, row.id)
        record_read(Kind.DATABASE, row.database_id)
        return row.location or NOWHERE
    database = _DATABASE.first(tx, {"catalog": name.catalog, "database": name.database})
    if database is None:
        record_read(Kind.DATABASES, 0)
    else:
        record_read(Kind.DATABASE, database.id)
        record_read(Kind.TABLES, database.id)
    return None


def of_tables(tx: Connection, name: DatabaseName, names: Collection[str]) -> dict[str, str]:
    """The locations, or NOWHERE, of those tables of a database that there are, by their names."""
    query = (
        select(tables.c.name, tables.c.location)
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == name.catalog, databases.c.name == name.database)
        .where(tables.c.name == func.any(list(names)))
    )
    return {row.name: row.location or NOWHERE for row in tx.execute(query)}
