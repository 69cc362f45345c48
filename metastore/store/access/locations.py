"""SQL for decisions by the storage: where databases and tables lie.

The functions for one object record what they read, so that a location can be kept until that object changes.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, and_, bindparam, func, select

from metastore.postgres.prepared import Prepared
from metastore.store.engine.names import DatabaseName, TableName
from metastore.store.engine.read_set import Kind, record_read
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.partition import partitions
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
    select(databases.c.id.label("database_id"), tables.c.id, tables.c.location)
    .join(catalogs, catalogs.c.id == databases.c.catalog_id)
    .outerjoin(tables, and_(tables.c.database_id == databases.c.id, tables.c.name == bindparam("table")))
    .where(*_IN_DATABASE)
)
_PARTITION = Prepared(
    select(tables.c.id, tables.c.location, partitions.c.path, partitions.c.location.label("elsewhere"))
    .join(databases, databases.c.id == tables.c.database_id)
    .join(catalogs, catalogs.c.id == databases.c.catalog_id)
    .outerjoin(
        partitions,
        and_(
            partitions.c.table_id == tables.c.id,
            partitions.c["values"][1] == bindparam("first"),  # which is indexed
            partitions.c["values"] == bindparam("values"),
        ),
    )
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
    """The location of a table, or NOWHERE; None if there is no such table. That takes as long as if there is one."""
    row = _TABLE.first(tx, name._asdict())
    if row is None:
        record_read(Kind.DATABASES, 0)
        return None
    record_read(Kind.DATABASE, row.database_id)
    if row.id is None:
        record_read(Kind.TABLES, row.database_id)
        return None
    record_read(Kind.TABLE, row.id)
    return row.location or NOWHERE


def of_partition(tx: Connection, name: TableName, values: Sequence[str]) -> str | None:
    """The location of the partition with these values, of which there is one; None if it or its table isn't there."""
    row = _PARTITION.first(tx, {**name._asdict(), "first": values[0], "values": list(values)})
    if row is None:
        return None
    record_read(Kind.PARTITIONS, row.id)
    record_read(Kind.TABLE, row.id)
    return row.elsewhere or (row.path and f"{row.location}/{row.path}")


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
