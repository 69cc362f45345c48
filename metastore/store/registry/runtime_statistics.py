"""What engines found out about their queries, for their planners."""

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from metastore.store.schema.registry import runtime_statistics


class StatisticsRow(NamedTuple):
    """The time is in seconds since the epoch."""

    create_time: int
    weight: int
    payload: bytes


def add(tx: Connection, create_time: int, weight: int, payload: bytes) -> None:
    """Adds an entry."""
    tx.execute(insert(runtime_statistics), {"create_time": create_time, "weight": weight, "payload": payload})


def newest(tx: Connection, before: int | None) -> Iterator[StatisticsRow]:
    """Entries, the newest first, those made before a time alone; they are read while they are asked for."""
    query = select(runtime_statistics).order_by(runtime_statistics.c.create_time.desc(), runtime_statistics.c.id.desc())
    if before is not None:
        query = query.where(runtime_statistics.c.create_time < before)
    with tx.execution_options(yield_per=50).execute(query) as result:
        for row in result:
            yield StatisticsRow(row.create_time, row.weight, bytes(row.payload))


def forget(tx: Connection, before: int) -> None:
    """Removes the entries made before then."""
    tx.execute(delete(runtime_statistics).where(runtime_statistics.c.create_time <= before))
