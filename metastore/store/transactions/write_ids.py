"""SQL for write ids: the numbers under which transactions write to a table, from 1 for each table.

Allocating ids of a table locks its row in `table_write_ids`.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from metastore.store.engine.names import TableName
from metastore.store.schema.transactions import table_write_ids, transaction_write_ids
from metastore.store.transactions.transactions import of_table


class WriteId(NamedTuple):
    transaction_id: int
    write_id: int


def _key(name: TableName) -> dict[str, str]:
    return {"catalog": name.catalog, "database_name": name.database, "table_name": name.table}


def begin(tx: Connection, name: TableName, following: int) -> bool:
    """The first write id of a table will be that one; whether it had none before."""
    statement = upsert(table_write_ids).values(**_key(name), next=following).on_conflict_do_nothing()
    return tx.execute(statement).rowcount > 0


def hold_next(tx: Connection, name: TableName) -> int:
    """The write id that a table gives next; nobody else gives one while it is held."""
    begin(tx, name, 1)
    query = select(table_write_ids.c.next).where(of_table(table_write_ids, name)).with_for_update()
    return int(tx.execute(query).scalar_one())


def continue_at(tx: Connection, name: TableName, following: int) -> None:
    """The next write id of a table is that one. `hold_next` comes first."""
    tx.execute(update(table_write_ids).where(of_table(table_write_ids, name)).values(next=following))


def highest(tx: Connection, name: TableName) -> int:
    """The highest write id that a table has given, 0 for none."""
    following = tx.execute(select(table_write_ids.c.next).where(of_table(table_write_ids, name))).scalar_one_or_none()
    return 0 if following is None else following - 1


def add(tx: Connection, name: TableName, given: Iterable[WriteId]) -> None:
    """Notes which transaction writes under which id."""
    rows = [{**_key(name), "write_id": each.write_id, "transaction_id": each.transaction_id} for each in given]
    tx.execute(insert(transaction_write_ids), rows)


def remove_all(tx: Connection, name: TableName) -> None:
    """Forgets which transactions wrote under which ids."""
    tx.execute(delete(transaction_write_ids).where(of_table(transaction_write_ids, name)))


def remove(tx: Connection, name: TableName, ids: Sequence[int]) -> None:
    """Forgets the write ids that transactions have for a table."""
    tx.execute(
        delete(transaction_write_ids).where(
            of_table(transaction_write_ids, name), transaction_write_ids.c.transaction_id == func.any(list(ids))
        )
    )


def of_transactions(tx: Connection, name: TableName, ids: Sequence[int]) -> list[WriteId]:
    """The write ids that transactions have for a table, by transaction."""
    query = select(transaction_write_ids.c.transaction_id, transaction_write_ids.c.write_id).where(
        of_table(transaction_write_ids, name), transaction_write_ids.c.transaction_id == func.any(list(ids))
    )
    return [WriteId(*row) for row in tx.execute(query.order_by(transaction_write_ids.c.transaction_id))]


def transaction_of(tx: Connection, name: TableName, write_id: int) -> int | None:
    """The transaction that writes under an id; None if it is unknown, or forgotten."""
    query = select(transaction_write_ids.c.transaction_id).where(
        of_table(transaction_write_ids, name), transaction_write_ids.c.write_id == write_id
    )
    return tx.execute(query).scalar_one_or_none()


def highest_of(tx: Connection, name: TableName, transaction_id: int) -> int:
    """The highest write id that a transaction up to that one has, or one that is forgotten; 0 if there is none.

    What is forgotten was committed, so it must not lie above the highest one.
    """
    query = select(transaction_write_ids.c.write_id).where(
        of_table(transaction_write_ids, name), transaction_write_ids.c.transaction_id > transaction_id
    )
    found = highest(tx, name)
    for later in tx.execute(query.order_by(transaction_write_ids.c.write_id.desc())).scalars():
        if later != found:
            break
        found -= 1
    return found


def up_to(tx: Connection, name: TableName, write_id: int) -> list[WriteId]:
    """All known write ids of a table up to that one, in order."""
    query = select(transaction_write_ids.c.transaction_id, transaction_write_ids.c.write_id).where(
        of_table(transaction_write_ids, name), transaction_write_ids.c.write_id <= write_id
    )
    return [WriteId(*row) for row in tx.execute(query.order_by(transaction_write_ids.c.write_id))]
