"""SQL for Hive 2.3's indexes. An index stores its data in a table of its own."""

from typing import NamedTuple

from sqlalchemy import Connection, bindparam, delete, exists, insert, select, update

from metastore.postgres.prepared import Prepared
from metastore.store.schema.table import table_indexes, tables


class IndexRow(NamedTuple):
    """A stored index, with the name of the table that holds its data. `made`: that table was made with the index."""

    id: int
    name: str
    index_table_id: int
    index_table: str
    body: bytes
    made: bool


_OF_TABLE = (
    select(table_indexes, tables.c.name.label("index_table"))
    .join(tables, tables.c.id == table_indexes.c.index_table_id)
    .where(table_indexes.c.table_id == bindparam("table_id"))
)
_ALL = Prepared(_OF_TABLE.order_by(table_indexes.c.name))
_NAMED = Prepared(_OF_TABLE.where(table_indexes.c.name == bindparam("name")))


def of_table(tx: Connection, table_id: int, name: str | None = None) -> list[IndexRow]:
    """A table's indexes by name, or the one of that name."""
    values = {"table_id": table_id, "name": name}
    return [
        IndexRow(row.id, row.name, row.index_table_id, row.index_table, bytes(row.body), row.made)
        for row in (_ALL if name is None else _NAMED).all(tx, values)
    ]


def holds_index(tx: Connection, table_id: int) -> bool:
    """Whether a table was made for the data of another's index."""
    return bool(_HOLDS_INDEX.scalar(tx, {"table_id": table_id}))


_HOLDS_INDEX = Prepared(
    select(exists().where(table_indexes.c.index_table_id == bindparam("table_id"), table_indexes.c.made))
)


def add(tx: Connection, table_id: int, name: str, index_table_id: int, body: bytes) -> None:
    """Adds an index whose table was made with it. Raises store.Conflict if the name is taken."""
    values = {"table_id": table_id, "name": name, "index_table_id": index_table_id, "body": body, "made": True}
    tx.execute(insert(table_indexes), values)


def change(tx: Connection, index_id: int, body: bytes) -> None:
    """Replaces the stored fields of an index."""
    tx.execute(update(table_indexes).where(table_indexes.c.id == index_id).values(body=body))


def remove(tx: Connection, index_id: int) -> None:
    """Removes an index, not the table of its data."""
    tx.execute(delete(table_indexes).where(table_indexes.c.id == index_id))
