"""SQL for compactions of tables and partitions: requested, running and finished ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, insert, or_, select, update

from metastore.store.engine.clock import NOW_MS
from metastore.store.engine.names import TableName
from metastore.store.schema.partition import partitions
from metastore.store.schema.statistics import column_statistics
from metastore.store.schema.transactions import (
    compaction_metrics,
    compactions,
    completed_components,
    transaction_components,
    transactions,
)
from metastore.store.transactions.transactions import State as TransactionState
from metastore.store.transactions.transactions import of_table

WHOLE = ""  # the partition of what concerns the whole table


class State(StrEnum):
    """Hive's CompactionState, as the letters that its clients send."""

    INITIATED = "i"
    WORKING = "w"
    READY_FOR_CLEANING = "r"
    FAILED = "f"
    SUCCEEDED = "s"
    DID_NOT_INITIATE = "a"
    REFUSED = "c"
    ABORTED = "x"


QUEUED = (State.INITIATED, State.WORKING, State.READY_FOR_CLEANING)
"""The states of a compaction that isn't finished."""


@dataclass(frozen=True, slots=True)
class CompactionRow:
    """A stored compaction. Times in milliseconds since 1970."""

    id: int
    table: TableName
    partition: str
    type: int
    state: State
    properties: str | None
    pool: str | None
    bucket_count: int | None
    order_by: str | None
    run_as: str | None
    initiator_id: str | None
    initiator_version: str | None
    worker_id: str | None
    worker_version: str | None
    hadoop_job_id: str | None
    error_message: str | None
    highest_write_id: int | None
    transaction_id: int | None
    next_transaction_id: int | None
    enqueued_at: int
    started_at: int | None
    committed_at: int | None
    ended_at: int | None


def _row(row: Row[Any]) -> CompactionRow:
    values = dict(row._mapping)
    table = TableName(values.pop("catalog"), values.pop("database_name"), values.pop("table_name"))
    return CompactionRow(
        table=table, partition=values.pop("partition_name"), state=State(values.pop("state")), **values
    )


def enter_queue(tx: Connection, name: TableName, partition: str) -> None:
    """Locks the queue for a table or partition: other requests for it wait until this transaction ends."""
    key = func.hashtextextended("\0".join(("compaction", *name, partition)).replace("\0", "\1"), 0)
    tx.execute(select(func.pg_advisory_xact_lock(key)))


def scheduled(tx: Connection, name: TableName, partition: str, highest_write_id: int) -> CompactionRow | None:
    """The compaction of a table or partition that is queued, runs, or has compacted up to that write id. Or None."""
    query = (
        select(compactions)
        .where(
            of_table(compactions, name),
            compactions.c.partition_name == partition,
            or_(
                compactions.c.state.in_((State.INITIATED, State.WORKING)),
                and_(
                    compactions.c.state == State.READY_FOR_CLEANING,
                    compactions.c.highest_write_id == highest_write_id,
                ),
            ),
        )
        .order_by(compactions.c.id)
        .limit(1)
    )
    row = tx.execute(query).one_or_none()
    return _row(row) if row else None


def add(tx: Connection, name: TableName, partition: str, values: Mapping[str, Any]) -> int:
    """Adds a compaction, with values for its columns, and returns its id."""
    statement = insert(compactions).values(
        catalog=name.catalog,
        database_name=name.database,
        table_name=name.table,
        partition_name=partition,
        enqueued_at=NOW_MS,
        **values,
    )
    return int(tx.execute(statement.returning(compactions.c.id)).scalar_one())


def take_next(
    tx: Connection, worker_id: str | None, worker_version: str | None, pool: str | None, pool_timeout: timedelta
) -> CompactionRow | None:
    """Assigns the compaction that has waited longest in a pool to a worker. No two workers get the same one.

    A worker without a pool gets compactions without a pool, and those that have waited longer than `pool_timeout`.
    """
    left = compactions.c.enqueued_at < NOW_MS - int(pool_timeout.total_seconds() * 1000)
    mine = or_(compactions.c.pool.is_(None), left) if pool is None else compactions.c.pool == pool
    first = (
        select(compactions.c.id)
        .where(compactions.c.state == State.INITIATED, mine)
        .order_by(compactions.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
        .scalar_subquery()
    )
    statement = (
        update(compactions)
        .where(compactions.c.id == first)
        .values(state=State.WORKING, worker_id=worker_id, worker_version=worker_version, started_at=NOW_MS)
        .returning(compactions)
    )
    row = tx.execute(statement).one_or_none()
    return _row(row) if row else None


def change(tx: Connection, compaction_id: int, **values: Any) -> bool:
    """Changes columns of an unfinished compaction. Returns whether there is one."""
    statement = update(compactions).where(compactions.c.id == compaction_id, compactions.c.state.in_(QUEUED))
    return tx.execute(statement.values(**values)).rowcount > 0


def finish(tx: Connection, compaction_id: int, state: State, **values: Any) -> bool:
    """Stores the final state of an unfinished compaction. Returns whether there was one."""
    return change(tx, compaction_id, state=state, ended_at=NOW_MS, **values)


def abort_waiting(tx: Connection, compaction_ids: Sequence[int], message: str) -> set[int]:
    """Aborts compactions that no worker has begun. Returns the ids of those."""
    statement = (
        update(compactions)
        .where(compactions.c.id == func.any(list(compaction_ids)), compactions.c.state == State.INITIATED)
        .values(state=State.ABORTED, ended_at=NOW_MS, error_message=message)
        .returning(compactions.c.id)
    )
    return set(tx.execute(statement).scalars())


def states(tx: Connection, compaction_ids: Sequence[int]) -> dict[int, State]:
    """The states of compactions by id. Unknown ids are left out."""
    query = select(compactions.c.id, compactions.c.state).where(compactions.c.id == func.any(list(compaction_ids)))
    return {row.id: State(row.state) for row in tx.execute(query)}


def committed(tx: Connection, transaction_id: int, highest_id: int) -> None:
    """Stores that the transaction of a compaction is committed. `highest_id`: the last transaction id then."""
    statement = update(compactions).where(compactions.c.transaction_id == transaction_id)
    tx.execute(statement.values(next_transaction_id=highest_id, committed_at=NOW_MS))


def find_all(tx: Connection, conditions: Mapping[str, Any], limit: int | None = None) -> list[CompactionRow]:
    """The compactions whose columns have these values, the latest first, as in Hive."""
    last = func.greatest(compactions.c.ended_at, compactions.c.started_at, compactions.c.committed_at)
    query = select(compactions).order_by(last.desc().nulls_first(), compactions.c.enqueued_at, compactions.c.id)
    query = query.where(*(compactions.c[column] == value for column, value in conditions.items()))
    return [_row(row) for row in tx.execute(query.limit(limit))]


def latest_done(
    tx: Connection, name: TableName, partitions_wanted: Sequence[str], after: int | None
) -> list[CompactionRow]:
    """The last visible compaction of a table or of each wanted partition. An empty `partitions_wanted` means all."""
    query = (
        select(compactions)
        .distinct(compactions.c.partition_name)
        .where(
            of_table(compactions, name),
            compactions.c.state.in_((State.SUCCEEDED, State.READY_FOR_CLEANING)),
        )
        .order_by(compactions.c.partition_name, compactions.c.id.desc())
    )
    if partitions_wanted:
        query = query.where(compactions.c.partition_name == func.any(list(partitions_wanted)))
    if after is not None:
        query = query.where(compactions.c.id > after)
    return sorted((_row(row) for row in tx.execute(query)), key=lambda row: -row.id)


def compacted_after(tx: Connection, name: TableName, write_id: int, also: Sequence[int]) -> bool:
    """Whether a table is being compacted, or was after a reader's snapshot.

    That snapshot has the write ids up to `write_id`, without those in `also`."""
    query = select(compactions.c.id).where(
        of_table(compactions, name),
        or_(
            compactions.c.state.in_(QUEUED),
            compactions.c.highest_write_id > write_id,
            compactions.c.highest_write_id == func.any(list(also)),
        ),
    )
    return tx.execute(query.limit(1)).one_or_none() is not None


def clean_up(tx: Connection, name: TableName, partition: str, write_id: int | None) -> None:
    """Removes the records of writes up to a write id: they are compacted, and files of aborted ones are deleted."""
    for source in (completed_components, transaction_components):
        doomed = delete(source).where(of_table(source, name))
        if partition != WHOLE:
            doomed = doomed.where(source.c.partition_name == partition)
        if write_id is not None:
            doomed = doomed.where(source.c.write_id <= write_id)
        if source is transaction_components:
            aborted = select(transactions.c.id).where(transactions.c.state == TransactionState.ABORTED)
            doomed = doomed.where(source.c.transaction_id.in_(aborted))
        tx.execute(doomed)


def columns_with_statistics(tx: Connection, table_id: int, partition: str) -> list[str]:
    """The columns of which a table, or a partition of it, has statistics."""
    query = select(column_statistics.c.column_name).distinct().where(column_statistics.c.table_id == table_id)
    if partition == WHOLE:
        query = query.where(column_statistics.c.partition_id == 0)
    else:
        query = query.join(partitions, partitions.c.id == column_statistics.c.partition_id).where(
            partitions.c.table_id == table_id, partitions.c.name == partition
        )
    return list(tx.execute(query.order_by(column_statistics.c.column_name)).scalars())


def forget_old(tx: Connection, keep: Mapping[State, int]) -> None:
    """Removes old finished compactions. `keep`: how many are kept per table or partition, by state."""
    place = [compactions.c[each] for each in ("catalog", "database_name", "table_name", "partition_name")]
    rank = func.row_number().over(partition_by=[*place, compactions.c.state], order_by=compactions.c.id.desc())
    ranked = select(compactions.c.id, compactions.c.state, rank.label("rank")).subquery()
    for state, count in keep.items():
        doomed = select(ranked.c.id).where(ranked.c.state == state, ranked.c.rank > count)
        tx.execute(delete(compactions).where(compactions.c.id.in_(doomed)))


# --- metrics --------------------------------------------------------------------------------------------------


def put_metric(tx: Connection, name: TableName, partition: str, type: int, value: int) -> None:
    """Stores the number of delta files of a kind of a table or partition, under the next version."""
    place = {"catalog": name.catalog, "database_name": name.database, "table_name": name.table}
    known = and_(
        of_table(compaction_metrics, name),
        compaction_metrics.c.partition_name == partition,
        compaction_metrics.c.type == type,
    )
    statement = update(compaction_metrics).where(known)
    if not tx.execute(statement.values(value=value, version=compaction_metrics.c.version + 1)).rowcount:
        tx.execute(
            insert(compaction_metrics).values(**place, partition_name=partition, type=type, value=value, version=1)
        )


def remove_metric(tx: Connection, name: TableName, partition: str, type: int) -> bool:
    """Removes the stored number of delta files of a kind. Returns whether there was one."""
    statement = delete(compaction_metrics).where(
        of_table(compaction_metrics, name),
        compaction_metrics.c.partition_name == partition,
        compaction_metrics.c.type == type,
    )
    return tx.execute(statement).rowcount > 0
