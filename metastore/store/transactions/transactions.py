"""SQL for Hive's transactions: open and aborted ones, and their write sets.

A Hive transaction spans many calls. It isn't the database transaction `tx` in which a function here runs.

Ids come from one counter. Opening transactions, and committing one that wrote, locks the counter's row. So a snapshot
of the database never shows an id without all smaller ones, and commits have an order. Rows of `transactions` are locked
before the counter, never after it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Connection,
    FromClause,
    and_,
    any_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    text,
    update,
)

from metastore.postgres.prepared import Prepared, put_off
from metastore.store.engine.names import TableName
from metastore.store.schema.transactions import (
    completed_components,
    counters,
    replicated_transactions,
    transaction_components,
    transaction_write_ids,
    transactions,
    write_sets,
)

WHOLE = ""  # the partition of what concerns the whole table
_COUNTER = "transaction"


class State(IntEnum):
    """Hive's TxnState."""

    COMMITTED = 1
    ABORTED = 2
    OPEN = 3


class Operation(IntEnum):
    """What a transaction does to a table or partition; the numbers of Hive's DataOperationType, and compaction."""

    COMPACT = 0
    INSERT = 2
    UPDATE = 3
    DELETE = 4


CHANGES = (Operation.UPDATE, Operation.DELETE)
"""The operations that conflict with each other."""


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A transaction. `type` is Hive's TxnType."""

    id: int
    state: State
    type: int
    user: str
    host: str
    started_at: datetime
    heartbeat_at: datetime


class Written(NamedTuple):
    """A written partition, or a whole table."""

    table: TableName
    partition: str
    operation: Operation
    write_id: int | None


class Conflict(NamedTuple):
    """A transaction that wrote to the same table or partition and committed first."""

    transaction_id: int
    commit_id: int
    table: TableName
    partition: str
    operation: Operation
    committed_operation: Operation


# --- the counter ----------------------------------------------------------------------------------------------


_NEXT = select(counters.c.next).where(counters.c.name == _COUNTER)
_HIGHEST = Prepared(_NEXT)
_LOCKED_COUNTER = Prepared(_NEXT.with_for_update())
_TAKE_IDS = Prepared(
    update(counters)
    .where(counters.c.name == _COUNTER)
    .values(next=counters.c.next + bindparam("count"))
    .returning(counters.c.next)
)


def take_ids(tx: Connection, count: int) -> range:
    """Takes the next `count` ids. The counter stays locked until the database transaction ends."""
    end: int = _TAKE_IDS.scalar(tx, {"count": count})
    return range(end - count, end)


def hold_counter(tx: Connection) -> int:
    """Locks the counter: no other transaction that wrote commits, and none opens. Returns the highest id so far."""
    return int(_LOCKED_COUNTER.scalar(tx)) - 1


def highest_id(tx: Connection) -> int:
    """The highest id given so far."""
    return int(_HIGHEST.scalar(tx)) - 1


def continue_at(tx: Connection, following: int) -> None:
    """Sets the id of the next transaction. The caller has called `hold_counter`."""
    tx.execute(update(counters).where(counters.c.name == _COUNTER).values(next=following))


# --- transactions ---------------------------------------------------------------------------------------------


def add(tx: Connection, ids: Iterable[int], *, type: int, user: str, host: str) -> None:
    """Adds open transactions."""
    values = {"ids": list(ids), "state": State.OPEN.value, "type": type, "user_name": user, "host": host}
    put_off(tx, [_ADD], values)


_ADD = Prepared(
    text(
        "INSERT INTO transactions (id, state, type, user_name, host)"
        " SELECT id, :state, :type, :user_name, :host FROM unnest(CAST(:ids AS bigint[])) AS id"
    )
)


_BY_ID = select(transactions).where(transactions.c.id == bindparam("transaction_id"))
_FIND, _LOCKED = Prepared(_BY_ID), Prepared(_BY_ID.with_for_update())


def find(tx: Connection, transaction_id: int, *, lock: bool = False) -> TransactionRow | None:
    """A transaction by its id; None if it never existed or was removed.

    `lock`: nobody else ends it until this database transaction ends.
    """
    row = (_LOCKED if lock else _FIND).first(tx, {"transaction_id": transaction_id})
    return _row(row) if row else None


def find_many(tx: Connection, ids: Collection[int], *, lock: bool = False) -> list[TransactionRow]:
    """The existing ones among some transactions, ordered by id."""
    query = select(transactions).where(transactions.c.id == func.any(list(ids))).order_by(transactions.c.id)
    return [_row(row) for row in tx.execute(query.with_for_update() if lock else query)]


def uncommitted(tx: Connection) -> list[TransactionRow]:
    """All open and aborted transactions, ordered by id."""
    # The state is a literal, as in the partial index.
    query = select(transactions).where(transactions.c.state != literal(1, literal_execute=True))
    return [_row(row) for row in tx.execute(query.order_by(transactions.c.id))]


def _row(row: Any) -> TransactionRow:
    return TransactionRow(row.id, State(row.state), row.type, row.user_name, row.host, row.started_at, row.heartbeat_at)


def heartbeat(tx: Connection, ids: Iterable[int]) -> set[int]:
    """Stores a heartbeat of transactions. Returns the ids of the open ones, which stay locked."""
    return set(_HEARTBEAT.scalars(tx, {"ids": list(ids)}))


_ALIVE = (
    select(transactions.c.id)
    .where(
        transactions.c.id == any_(bindparam("ids", type_=ARRAY(BigInteger))), transactions.c.state == State.OPEN.value
    )
    .order_by(transactions.c.id)
    .with_for_update()
    .cte("alive")
)
_HEARTBEAT = Prepared(
    update(transactions)
    .where(transactions.c.id == _ALIVE.c.id)
    .values(heartbeat_at=func.clock_timestamp())
    .returning(transactions.c.id)
)


def expired(tx: Connection, timeout: timedelta, slow_types: Collection[int], slow_timeout: timedelta) -> list[int]:
    """Locks the open transactions without a heartbeat for `timeout`, and returns their ids.

    `slow_types`: types for which `slow_timeout` applies instead. It never waits: a transaction that is locked by
    somebody else is in use.
    """
    slow = transactions.c.type.in_(list(slow_types))
    now = func.clock_timestamp()
    query = (
        select(transactions.c.id)
        .where(
            transactions.c.state == State.OPEN,
            transactions.c.state != literal(1, literal_execute=True),
            or_(
                and_(~slow, transactions.c.heartbeat_at < now - timeout),
                and_(slow, transactions.c.heartbeat_at < now - slow_timeout),
            ),
        )
        .order_by(transactions.c.id)
        .with_for_update(skip_locked=True)
    )
    return list(tx.execute(query).scalars())


def end(tx: Connection, ids: Iterable[int], state: State, *, commit_id: int | None = None) -> None:
    """Marks open transactions as committed or aborted, and releases their Hive locks. The caller has locked them.

    The records of what a committed transaction writes and rebuilds are removed. Those of an aborted one stay.
    """
    values = {"ids": list(ids), "state": state.value, "open": State.OPEN.value, "commit_id": commit_id}
    put_off(tx, (*(_FINISHED if state is State.COMMITTED else ()), *_ENDED), values)


_FINISHED = (
    Prepared(text("DELETE FROM transaction_components WHERE transaction_id = ANY(:ids)")),
    Prepared(text("DELETE FROM materialization_rebuilds WHERE transaction_id = ANY(:ids)")),
)
_ENDED = (
    # Locks without a transaction have the number 0, and no place in the index.
    Prepared(text("DELETE FROM locks WHERE transaction_id = ANY(:ids) AND transaction_id <> 0")),
    Prepared(text("DELETE FROM replicated_transactions WHERE target_id = ANY(:ids)")),
    Prepared(
        text(
            "UPDATE transactions SET state = :state, ended_at = clock_timestamp(), commit_id = :commit_id"
            " WHERE id = ANY(:ids) AND state = :open"
        )
    ),
)


# --- what they write ------------------------------------------------------------------------------------------


def of_table(source: FromClause, name: TableName) -> ColumnElement[bool]:
    """Whether a row is about that table."""
    return and_(
        source.c.catalog == name.catalog,
        source.c.database_name == name.database,
        source.c.table_name == name.table,
    )


def add_written(tx: Connection, transaction_id: int, written: Iterable[Written]) -> None:
    """Records what a transaction writes."""
    rows = [
        {
            "transaction_id": transaction_id,
            "catalog": each.table.catalog,
            "database_name": each.table.database,
            "table_name": each.table.table,
            "partition_name": each.partition,
            "operation": each.operation,
            "write_id": each.write_id,
        }
        for each in written
    ]
    if rows:
        tx.execute(insert(transaction_components), rows)


def remove_written_whole(tx: Connection, transaction_id: int, name: TableName) -> None:
    """Removes the record that a transaction writes a whole table: its partitions have been reported."""
    tx.execute(
        delete(transaction_components).where(
            transaction_components.c.transaction_id == transaction_id,
            of_table(transaction_components, name),
            transaction_components.c.partition_name == WHOLE,
        )
    )


def wrote(tx: Connection, transaction_id: int) -> set[Operation]:
    """The operations of a transaction without compactions. INSERT is included if it only took a write id."""
    return {Operation(each) for each in _WROTE.scalars(tx, {"transaction_id": transaction_id})}


def _wrote() -> CompoundSelect[*tuple[Any, ...]]:
    transaction_id: BindParameter[int] = bindparam("transaction_id")
    done = (
        select(transaction_components.c.operation)
        .distinct()
        .where(
            transaction_components.c.transaction_id == transaction_id,
            transaction_components.c.operation != Operation.COMPACT,
        )
    )
    ids = exists().where(transaction_write_ids.c.transaction_id == transaction_id)
    return done.union_all(select(literal(Operation.INSERT.value)).where(ids))


_WROTE = Prepared(_wrote())


_committed, _mine = write_sets.alias("committed"), transaction_components.alias("mine")


def _same_object(*, whole_takes_all: bool = False) -> ColumnElement[bool]:
    same = _committed.c.partition_name == _mine.c.partition_name
    return and_(
        _committed.c.catalog == _mine.c.catalog,
        _committed.c.database_name == _mine.c.database_name,
        _committed.c.table_name == _mine.c.table_name,
        or_(same, _mine.c.partition_name == WHOLE) if whole_takes_all else same,
        # They overlap: the other was committed after this one began.
        _committed.c.commit_id >= _mine.c.transaction_id,
        _mine.c.operation.in_(CHANGES),
    )


def find_conflict(tx: Connection, transaction_id: int, *, deletes_conflict: bool) -> Conflict | None:
    """A transaction that changed rows of the same table or partition, and committed after this one had begun.

    `deletes_conflict`: whether two transactions that only delete conflict.
    """
    query = (
        select(
            _committed,
            _mine.c.operation.label("my_operation"),
        )
        .join(_mine, _same_object())
        .where(_mine.c.transaction_id == transaction_id)
        .order_by(_committed.c.commit_id, _committed.c.id)
        .limit(1)
    )
    if not deletes_conflict:
        query = query.where(or_(_mine.c.operation == Operation.UPDATE, _committed.c.operation == Operation.UPDATE))
    row = tx.execute(query).one_or_none()
    if row is None:
        return None
    return Conflict(
        row.transaction_id,
        row.commit_id,
        TableName(row.catalog, row.database_name, row.table_name),
        row.partition_name,
        Operation(row.my_operation),
        Operation(row.operation),
    )


def latest_conflict(tx: Connection, transaction_id: int) -> int:
    """The highest id of a committed transaction that this one conflicts with, 0 for none."""
    query = (
        select(func.max(_committed.c.transaction_id))
        .join(_mine, _same_object(whole_takes_all=True))
        .where(_mine.c.transaction_id == transaction_id)
    )
    return tx.execute(query).scalar_one() or 0


def complete(tx: Connection, transaction_id: int, commit_id: int, *, changes_rows: bool) -> None:
    """Records what a transaction that commits has written, for compactions and for later checks of conflicts."""
    mine = transaction_components
    own = and_(mine.c.transaction_id == transaction_id, mine.c.operation != Operation.COMPACT)
    place = ("catalog", "database_name", "table_name", "partition_name")
    if changes_rows:
        sets = (
            select(mine.c.transaction_id, literal(commit_id), *(mine.c[each] for each in place), mine.c.operation)
            .distinct()
            .where(own, mine.c.operation.in_(CHANGES))
        )
        tx.execute(insert(write_sets).from_select(["transaction_id", "commit_id", *place, "operation"], sets))
    done = select(
        mine.c.transaction_id, *(mine.c[each] for each in place), mine.c.write_id, literal(changes_rows)
    ).where(own)
    tx.execute(insert(completed_components).from_select(["transaction_id", *place, "write_id", "changes_rows"], done))


def changed_after(
    tx: Connection,
    name: TableName,
    *,
    write_id: int,
    also: Sequence[int],
    highest: int,
    invalid: Sequence[int],
) -> bool:
    """Whether rows of a table were updated or deleted since a snapshot of it, as a later snapshot shows it.

    The earlier one had the write ids up to `write_id` but not those in `also`; the later one has the transactions up
    to `highest` but not those in `invalid`.
    """
    done = completed_components
    query = select(done.c.id).where(
        of_table(done, name),
        done.c.changes_rows,
        or_(done.c.write_id > write_id, done.c.write_id == func.any(list(also))),
        done.c.transaction_id <= highest,
        done.c.transaction_id != func.all(list(invalid)),
    )
    return tx.execute(query.limit(1)).one_or_none() is not None


# --- replication ----------------------------------------------------------------------------------------------


def replicated(tx: Connection, policy: str, source_ids: Sequence[int] | None = None) -> dict[int, int]:
    """The local ids of replicated transactions, by the ids at their source; of all, or of `source_ids`."""
    query = select(replicated_transactions.c.source_id, replicated_transactions.c.target_id).where(
        replicated_transactions.c.policy == policy
    )
    if source_ids is not None:
        query = query.where(replicated_transactions.c.source_id == func.any(list(source_ids)))
    return {row.source_id: row.target_id for row in tx.execute(query.order_by(replicated_transactions.c.source_id))}


def add_replicated(tx: Connection, policy: str, pairs: Iterable[tuple[int, int]]) -> None:
    """Records which local transactions replicate which others, given as (id at the source, local id)."""
    rows = [{"policy": policy, "source_id": source, "target_id": target} for source, target in pairs]
    tx.execute(insert(replicated_transactions), rows)


# --- forgetting -----------------------------------------------------------------------------------------------


def forget_ended(tx: Connection, keep: timedelta) -> int:
    """Removes ended transactions that no snapshot needs, once they ended `keep` ago. Returns their number.

    These are the ones that were committed before every open one began, and aborted ones that left nothing to clean up.
    Their write ids are removed, too. Every reader takes a write id without a record as valid.
    """
    oldest_open = (
        select(func.min(transactions.c.id))
        .where(transactions.c.state == State.OPEN, transactions.c.state != literal(1, literal_execute=True))
        .scalar_subquery()
    )
    floor = tx.execute(
        select(func.coalesce(oldest_open, counters.c.next)).where(counters.c.name == _COUNTER)
    ).scalar_one()
    tx.execute(delete(write_sets).where(write_sets.c.commit_id < floor))
    wrote = select(transaction_components.c.id).where(transaction_components.c.transaction_id == transactions.c.id)
    doomed = (
        select(transactions.c.id)
        .where(
            transactions.c.ended_at < func.clock_timestamp() - keep,
            or_(
                and_(transactions.c.state == State.COMMITTED, transactions.c.commit_id < floor),
                and_(transactions.c.state == State.ABORTED, ~wrote.exists()),
            ),
        )
        .with_for_update(skip_locked=True)
    )
    ids = list(tx.execute(doomed).scalars())
    tx.execute(delete(transaction_write_ids).where(transaction_write_ids.c.transaction_id == func.any(ids)))
    tx.execute(delete(transactions).where(transactions.c.id == func.any(ids)))
    return len(ids)


def merge_completed(tx: Connection) -> None:
    """Merges the records of committed writes since the last compaction: the newest per place and kind."""
    older, newer = completed_components, completed_components.alias("newer")
    tx.execute(
        delete(older).where(
            older.c.catalog == newer.c.catalog,
            older.c.database_name == newer.c.database_name,
            older.c.table_name == newer.c.table_name,
            older.c.partition_name == newer.c.partition_name,
            older.c.changes_rows == newer.c.changes_rows,
            or_(
                older.c.write_id < newer.c.write_id,
                and_(func.coalesce(older.c.write_id, 0) == func.coalesce(newer.c.write_id, 0), older.c.id < newer.c.id),
            ),
        )
    )
