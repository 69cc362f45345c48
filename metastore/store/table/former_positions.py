"""The last positions of the tables that had a name before.

The positions of a table go on after them. So a client that sends a position without the id of its table can't take the
position of a dropped table for one of the table that has the name now.
"""

from sqlalchemy import ARRAY, BigInteger, Connection, any_, bindparam, func, select
from sqlalchemy.dialects.postgresql import insert

from metastore.postgres.prepared import Prepared
from metastore.store.engine.names import TableName
from metastore.store.engine.read_set import Kind, record_read
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.table import tables
from metastore.store.schema.timeline import former_positions, timelines

_FORMER = former_positions.c
_NOW = insert(former_positions).from_select(
    ["catalog", "database_name", "table_name", "position"],
    select(catalogs.c.name, databases.c.name, tables.c.name, timelines.c.position)
    .join(databases, databases.c.id == tables.c.database_id)
    .join(catalogs, catalogs.c.id == databases.c.catalog_id)
    .join(timelines, timelines.c.table_id == tables.c.id)
    .where(tables.c.id == any_(bindparam("table_ids", type_=ARRAY(BigInteger))), timelines.c.position > 0),
)
KEEP = Prepared(
    _NOW.on_conflict_do_update(
        index_elements=[_FORMER.catalog, _FORMER.database_name, _FORMER.table_name],
        set_={"position": func.greatest(_FORMER.position, _NOW.excluded.position)},
    )
)
"""Keeps the last positions of the tables `table_ids`, which are about to lose their names."""

_LAST = Prepared(
    select(_FORMER.position).where(
        _FORMER.catalog == bindparam("catalog"),
        _FORMER.database_name == bindparam("database"),
        _FORMER.table_name == bindparam("table"),
    )
)


def keep(tx: Connection, table_id: int) -> None:
    """Keeps the last position of a table that is about to lose its name. The caller has locked its row."""
    KEEP.execute(tx, {"table_ids": [table_id]})


def last(tx: Connection, name: TableName, table_id: int) -> int:
    """The last position of any table that had this name before; 0 if there was none with a position.

    `table_id`: of the table that has the name now. Only with another one does the answer change.
    """
    record_read(Kind.TIMELINE, table_id)
    row = _LAST.first(tx, name._asdict())
    return row[0] if row else 0
