"""SQL for the readiness of tables: watermarks, sources' progress, counts of late rows, open partitions.

An open partition is an uncommitted one. `chain`: see `services.commit.watermarks`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, select, text, true, union, update
from sqlalchemy.dialects.postgresql import insert

from metastore.store.schema.commit import table_readiness, watermarks
from metastore.store.schema.partition import partitions
from metastore.store.schema.table import tables


class Readiness(NamedTuple):
    """A table's state. Times are in milliseconds since 1970. The watermark never decreases.

    `filled_until`: up to which time empty partitions were added. `rerouted`, `reopened`, `dropped`: the number of late
    rows that were treated so.
    """

    watermark: int | None = None
    filled_until: int | None = None
    rerouted: int = 0
    reopened: int = 0
    dropped: int = 0


class Progress(NamedTuple):
    """The progress of one source of a chain. Times in milliseconds since 1970."""

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
    """A table's state; that of an untouched table if nothing is stored."""
    row = tx.execute(select(*_COLUMNS).where(table_readiness.c.table_id == table_id)).one_or_none()
    return Readiness(*row) if row else Readiness()


def hold(tx: Connection, table_id: int) -> Readiness:
    """Locks a table's state until the transaction ends, and returns it."""
    tx.execute(insert(table_readiness).values(table_id=table_id).on_conflict_do_nothing())
    query = select(*_COLUMNS).where(table_readiness.c.table_id == table_id)
    return Readiness(*tx.execute(query.with_for_update()).one())


def put(tx: Connection, table_id: int, new: Readiness) -> None:
    """Replaces a table's state, which the caller has locked."""
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
    """Stores the progress that sources reported."""
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


class OpenPartition(NamedTuple):
    """An uncommitted partition. `commit_time`: of its last commit, in milliseconds since 1970.

    With a commit time the partition was reopened, and only a client commits it again.
    """

    name: str
    values: list[str]
    commit_time: int | None


def open_partitions(tx: Connection, table_id: int) -> list[OpenPartition]:
    """A table's uncommitted partitions in the order of their names."""
    # As text, since SQLAlchemy would go through every array again that the driver has read.
    query = text('SELECT name, "values", commit_time FROM partitions WHERE table_id = :id AND NOT ready ORDER BY name')
    return list(map(OpenPartition._make, tx.execute(query, {"id": table_id})))


class Candidate(NamedTuple):
    """A table that may have due partitions: its version, its watermark, and the progress of its sources."""

    table_id: int
    version: int
    watermark: int | None
    progress: list[Progress]


def candidates(tx: Connection, create_empty: str) -> list[Candidate]:
    """The tables with uncommitted partitions, and those with a watermark and the parameter named `create_empty`."""
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
    """Sets a time limit for waiting for locks in a transaction. A longer wait raises store.DatabaseUnavailable."""
    tx.execute(select(func.set_config("lock_timeout", f"{int(seconds * 1000)}ms", true())))
