"""SQL for the names of tables that Iceberg's REST catalog lists."""

from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from metastore.postgres.prepared import Prepared
from metastore.store.catalog import databases
from metastore.store.engine.names import DatabaseName
from metastore.store.engine.read_set import Kind, record_read
from metastore.store.schema.table import EXPOSING, OF_ICEBERG, VIEWS_OF_ICEBERG, tables


class FoundNames(NamedTuple):
    """Names of a database's tables, each list in order. `database`: the database itself.

    `exposing`: the tables whose own property says that they are shown as Iceberg, whatever they are.
    """

    tables: list[str]
    views: list[str]
    exposing: list[str]
    database: databases.DatabaseRow


_OF_DATABASE = tables.c.database_id == bindparam("database_id")
_TABLES, _VIEWS, _EXPOSING = (
    Prepared(select(tables.c.name).where(_OF_DATABASE, condition).order_by(tables.c.name))
    for condition in (OF_ICEBERG, VIEWS_OF_ICEBERG, EXPOSING)
)


def find(tx: Connection, name: DatabaseName) -> FoundNames | None:
    """The names in a database; None if there is none of that name."""
    row = databases.find(tx, name)
    if row is None:
        return None
    record_read(Kind.TABLES, row.id)
    values = {"database_id": row.id}
    return FoundNames(_TABLES.scalars(tx, values), _VIEWS.scalars(tx, values), _EXPOSING.scalars(tx, values), row)
