"""How far streams have come that write into lake tables."""

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.postgresql import insert

from metastore.store.schema.timeline import stream_batches


def last(tx: Connection, table_id: int, stream: str) -> int | None:
    """The greatest number of a stream's batches that completed in a table; None for a stream that isn't known."""
    query = select(stream_batches.c.batch).where(
        stream_batches.c.table_id == table_id, stream_batches.c.stream == stream
    )
    return tx.execute(query).scalar_one_or_none()


def put(tx: Connection, table_id: int, stream: str, batch: int, *, timestamp: str, position: int, keep: int) -> None:
    """Stores a stream's last batch, with the instant that completed it. Of the table's streams the latest `keep` stay.

    The caller holds the table's timeline.
    """
    values = {"batch": batch, "timestamp": timestamp, "position": position}
    new = insert(stream_batches).values(table_id=table_id, stream=stream, **values)
    tx.execute(new.on_conflict_do_update(index_elements=["table_id", "stream"], set_=values))
    older = (
        select(stream_batches.c.position)
        .where(stream_batches.c.table_id == table_id)
        .order_by(stream_batches.c.position.desc())
        .offset(keep)
        .limit(1)
        .scalar_subquery()
    )
    tx.execute(delete(stream_batches).where(stream_batches.c.table_id == table_id, stream_batches.c.position <= older))
