"""How far event time has come in a table, what its writers reported, what came late, and which partitions are open."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, select, text, true, union, update
from sqlalchemy.dialects.postgresql import insert

from metastore.store.schema import partitions, table_readiness, tables, watermarks, writers


class Readiness(NamedTuple):
    """Times in milliseconds since 1970; the watermark never goes back."""

    watermark: int | None = None
    filled_until: int | None = None
    rerouted: int = 0
    reopened: int = 0
    dropped: int = 0


class Progress(NamedTuple):
    """How far one source of a chain has come, in milliseconds since 1970."""

    chain: str
    source: str
    watermark: int
    reported_at: int


_COLUMNS = (
    table_readiness.c.watermark,
    table_readiness.c.filled_until,
    table_readiness.c.rows_rerouted,
    table_readiness.c.rows_reopened,
    table_readiness.c.rows_dropped,
)


def get(tx: Connection, table_id: int) -> Readiness:
    """What is known of a table."""
    row = tx.execute(select(*_COLUMNS).where(table_readiness.c.table_id == table_id)).one_or_none()
    return Readiness(*row) if row else Readiness()


def hold(tx: Connection, table_id: int) -> Readiness:
    """The same, and nobody else changes it until the transaction ends."""
    tx.execute(insert(table_readiness).values(table_id=table_id).on_conflict_do_nothing())
    query = select(*_COLUMNS).where(table_readiness.c.table_id == table_id)
    return Readiness(*tx.execute(query.with_for_update()).one())


def put(tx: Connection, table_id: int, new: Readiness) -> None:
    """Replaces what is known of a table that is held."""
    tx.execute(
        update(table_readiness)
        .where(table_readiness.c.table_id == table_id)
        .values(
            watermark=new.watermark,
            filled_until=new.filled_until,
            rows_rerouted=new.rerouted,
            rows_reopened=new.reopened,
            rows_dropped=new.dropped,
        )
    )


def progress(tx: Connection, table_id: int) -> list[Progress]:
    """What the sources of a table have reported, by chain and source."""
    query = (
        select(watermarks.c.chain, watermarks.c.source, watermarks.c.watermark, watermarks.c.reported_at)
        .where(watermarks.c.table_id == table_id)
        .order_by(watermarks.c.chain, watermarks.c.source)
    )
    return [Progress(*row) for row in tx.execute(query)]


def put_progress(tx: Connection, table_id: int, new: Sequence[Progress]) -> None:
    """Keeps what sources reported."""
    if not new:
        return
    statement = insert(watermarks)
    changed = {"watermark": statement.excluded.watermark, "reported_at": statement.excluded.reported_at}
    key = [watermarks.c.table_id, watermarks.c.chain, watermarks.c.source]
    tx.execute(
        statement.on_conflict_do_update(index_elements=key, set_=changed),
        [{"table_id": table_id, **each._asdict()} for each in new],
    )


def forget_progress(tx: Connection, table_id: int, before: int) -> None:
    """Forgets the sources that have been silent since a time in milliseconds since 1970."""
    tx.execute(delete(watermarks).where(watermarks.c.table_id == table_id, watermarks.c.reported_at < before))


def last_batch(tx: Connection, table_id: int, writer: str) -> int | None:
    """The last batch of a writer that was accepted."""
    query = select(writers.c.batch).where(writers.c.table_id == table_id, writers.c.name == writer)
    return tx.execute(query).scalar_one_or_none()


def put_last_batch(tx: Connection, table_id: int, writer: str, batch: int) -> None:
    """Keeps which batch of a writer was accepted."""
    statement = insert(writers).values(table_id=table_id, name=writer, batch=batch)
    tx.execute(
        statement.on_conflict_do_update(index_elements=[writers.c.table_id, writers.c.name], set_={"batch": batch})
    )


class OpenPartition(NamedTuple):
    """An uncommitted partition. `commit_time`: when it was last committed; who has one waits for somebody's word."""

    name: str
    values: list[str]
    commit_time: int | None


def open_partitions(tx: Connection, table_id: int) -> list[OpenPartition]:
    """A table's uncommitted partitions in the order of their names."""
    # As text, since SQLAlchemy would go through every array again that the driver has read.
    query = text('SELECT name, "values", commit_time FROM partitions WHERE table_id = :id AND NOT ready ORDER BY name')
    return list(map(OpenPartition._make, tx.execute(query, {"id": table_id})))


class Candidate(NamedTuple):
    """A table that may have something to be committed: its version, its watermark, and what its sources reported."""

    table_id: int
    version: int
    watermark: int | None
    progress: list[Progress]


def candidates(tx: Connection, create_empty: str) -> list[Candidate]:
    """The tables with uncommitted partitions, and those with a watermark and a parameter `create_empty`."""
    wanted = union(
        select(partitions.c.table_id).where(~partitions.c.ready),
        select(table_readiness.c.table_id)
        .join(tables, tables.c.id == table_readiness.c.table_id)
        .where(table_readiness.c.watermark.is_not(None), tables.c.parameters.has_key(create_empty)),
    )
    query = (
        select(tables.c.id, tables.c.version, table_readiness.c.watermark)
        .outerjoin(table_readiness, table_readiness.c.table_id == tables.c.id)
        .where(tables.c.id.in_(wanted))
        .order_by(tables.c.id)
    )
    found = tx.execute(query).all()
    reported: dict[int, list[Progress]] = {}
    query_progress = select(
        watermarks.c.table_id, watermarks.c.chain, watermarks.c.source, watermarks.c.watermark, watermarks.c.reported_at
    ).where(watermarks.c.table_id == func.any([row.id for row in found]))
    for table_id, *rest in tx.execute(query_progress):
        reported.setdefault(table_id, []).append(Progress(*rest))
    return [Candidate(row.id, row.version, row.watermark, reported.get(row.id, [])) for row in found]


def wait_at_most(tx: Connection, seconds: float) -> None:
    """Lets a transaction wait only so long for what others hold, then raise store.DatabaseUnavailable."""
    tx.execute(select(func.set_config("lock_timeout", f"{int(seconds * 1000)}ms", true())))
