"""SQL for materialized views and the locks of their rebuilds."""

from datetime import timedelta

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from metastore.store.engine.names import TableName
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.table import tables
from metastore.store.schema.transactions import materialization_rebuilds, transactions
from metastore.store.transactions.transactions import State, of_table


def views(tx: Connection, catalog: str) -> list[int]:
    """The ids of a catalog's materialized views, by database and name."""
    query = (
        select(tables.c.id)
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(catalogs.c.name == catalog, tables.c.type == "MATERIALIZED_VIEW")
        .order_by(databases.c.name, tables.c.name)
    )
    return list(tx.execute(query).scalars())


def begin_rebuild(tx: Connection, name: TableName, transaction_id: int) -> bool:
    """A transaction rebuilds a view from now on, unless another does; whether it does."""
    values = {"catalog": name.catalog, "database_name": name.database, "table_name": name.table}
    statement = insert(materialization_rebuilds).values(**values, transaction_id=transaction_id)
    return tx.execute(statement.on_conflict_do_nothing()).rowcount > 0


def heartbeat(tx: Connection, name: TableName, transaction_id: int) -> bool:
    """Notes that a rebuild goes on; whether there is one."""
    statement = (
        update(materialization_rebuilds)
        .where(of_table(materialization_rebuilds, name), materialization_rebuilds.c.transaction_id == transaction_id)
        .values(heartbeat_at=func.clock_timestamp())
    )
    return tx.execute(statement).rowcount > 0


def remove_stale(tx: Connection, timeout: timedelta) -> int:
    """Removes rebuilds without a heartbeat for so long whose transaction isn't open, and returns how many."""
    open_one = select(transactions.c.id).where(
        transactions.c.id == materialization_rebuilds.c.transaction_id, transactions.c.state == State.OPEN
    )
    statement = delete(materialization_rebuilds).where(
        materialization_rebuilds.c.heartbeat_at < func.clock_timestamp() - timeout, ~open_one.exists()
    )
    return tx.execute(statement).rowcount
