"""Locks that clients hold on databases, tables and partitions.

A lock is a row of `locks`, with one row of `lock_components` per locked object. Every change of a lock first locks its
row in `locks`, so components need no locks of their own.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Row,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    cast,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    true,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import array

from metastore.postgres.prepared import Prepared, put_off
from metastore.store.engine import bulk
from metastore.store.engine.names import DatabaseName, TableName
from metastore.store.schema.transactions import lock_components, locks

NO_TRANSACTION = 0
WHOLE = ""  # the name of no table, or no partition: the whole database, or the whole table
MANY_TABLES = 50

ConflictRule = tuple[int, bool, int, bool]
"""Type of the lock that is asked for, whether it is for a whole database; the same of one that stands before it."""


class Component(NamedTuple):
    """One of the things that a lock is on; `table` and `partition` may be WHOLE."""

    catalog: str
    database: str
    table: str
    partition: str
    type: int


@dataclass(frozen=True, slots=True)
class ComponentRow:
    """A stored component, with its lock."""

    lock_id: int
    number: int
    component: Component
    transaction_id: int
    acquired_at: datetime | None
    heartbeat_at: datetime
    user: str
    host: str
    agent: str
    blocked_by: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A lock's state after its heartbeat was recorded."""

    acquired: bool


class Blocker(NamedTuple):
    """A component of the requested lock, its type, and the conflicting component of another lock."""

    number: int
    type: int
    held_lock: int
    held_number: int


# --- taking a place -------------------------------------------------------------------------------------------


def enter_queue(tx: Connection, components: Iterable[Component]) -> None:
    """Makes every other transaction that enters the queue for one of the same objects wait until this one ends.

    Whoever takes a lock's id afterwards knows that every smaller id for these objects is committed, and no smaller
    one will come. A table's queue is held exclusively and its database's shared; for the whole database, or for
    many tables, the database's is held exclusively. Everyone takes the queues in the same order, so nobody deadlocks.
    """
    wanted: dict[DatabaseName, set[str]] = {}
    for component in components:
        name = DatabaseName(component.catalog, component.database)
        wanted.setdefault(name, set()).add(component.table)
    queues: dict[int, bool] = {}
    for database, tables in wanted.items():
        whole = WHOLE in tables or len(tables) > MANY_TABLES
        key = _queue(database)
        queues[key] = whole or queues.get(key, False)
        if not whole:
            queues.update((_queue(TableName(*database, table)), True) for table in tables)
    takes = [
        f"SELECT pg_advisory_xact_lock{'' if exclusive else '_shared'}({key})"
        for key, exclusive in sorted(queues.items())
    ]
    bulk.execute_all(tx, takes, {})


def _queue(name: DatabaseName | TableName) -> int:
    """The number of an object's queue. Two objects of one number would wait for each other without need, no more."""
    digest = hashlib.blake2b("\0".join(("lock", *name)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def add(
    tx: Connection, components: Sequence[Component], *, transaction_id: int, user: str, host: str, agent: str
) -> int:
    """Adds a lock that waits, and returns its id. `enter_queue` comes first."""
    values = {"transaction_id": transaction_id, "user_name": user, "host": host, "agent": agent}
    lock_id: int = _ADD.scalar(tx, values)
    names = ("catalogs", "databases", "tables", "partitions", "types")
    columns = dict(zip(names, map(list, zip(*components, strict=True)), strict=True))
    _ADD_COMPONENTS.execute(tx, {"lock_id": lock_id, "transaction_id": transaction_id, **columns})
    return lock_id


_ADD = Prepared(insert(locks).returning(locks.c.id), ["transaction_id", "user_name", "host", "agent"])
_ADD_COMPONENTS = Prepared(
    text(
        "INSERT INTO lock_components"
        " (lock_id, transaction_id, catalog, database_name, table_name, partition_name, type, number)"
        " SELECT :lock_id, :transaction_id, component.* FROM unnest(CAST(:catalogs AS text[]),"
        " CAST(:databases AS text[]), CAST(:tables AS text[]), CAST(:partitions AS text[]), CAST(:types AS int[]))"
        " WITH ORDINALITY AS component"
    )
)


# --- deciding -------------------------------------------------------------------------------------------------

_wanted = lock_components.alias("wanted")
_held = lock_components.alias("held")


def find_blocker(tx: Connection, lock_id: int, conflicts: Collection[ConflictRule]) -> Blocker | None:
    """The first lock with a smaller id that must go before this one can be had; None if there is none.

    Locks of one transaction don't stand in each other's way. Of several components that are blocked the one with
    the smallest type is returned.
    """
    codes = [_code(*rule) for rule in conflicts]
    row = _BLOCKER.first(tx, {"lock_id": lock_id, "codes": codes})
    return Blocker(*row) if row else None


def _blocker() -> Select[Any]:
    lock_id, codes = bindparam("lock_id", type_=BigInteger), bindparam("codes", type_=ARRAY(Integer))
    on_database = and_(
        _held.c.catalog == _wanted.c.catalog,
        _held.c.database_name == _wanted.c.database_name,
        _held.c.lock_id < lock_id,
        or_(_wanted.c.transaction_id == NO_TRANSACTION, _held.c.transaction_id != _wanted.c.transaction_id),
        _code(_wanted.c.type, _is_whole(_wanted), _held.c.type, _is_whole(_held)) == any_(codes),
    )
    on_table = and_(on_database, _held.c.table_name == any_(array([WHOLE, _wanted.c.table_name])))
    on_partition = and_(on_table, _held.c.partition_name == any_(array([WHOLE, _wanted.c.partition_name])))
    # A query for each level, so that an index finds what is on the same objects.
    found = union_all(
        _first_held(on_database).where(_wanted.c.lock_id == lock_id, _wanted.c.table_name == WHOLE),
        _first_held(on_table).where(
            _wanted.c.lock_id == lock_id, _wanted.c.table_name != WHOLE, _wanted.c.partition_name == WHOLE
        ),
        _first_held(on_partition).where(
            _wanted.c.lock_id == lock_id, _wanted.c.table_name != WHOLE, _wanted.c.partition_name != WHOLE
        ),
    ).subquery()
    query = select(found).order_by(found.c.wanted_type, found.c.lock_id, found.c.number, found.c.wanted_number)
    return query.limit(1)


def _first_held(condition: ColumnElement[bool]) -> Select[Any]:
    """Every wanted component that is blocked, with what blocks it. Looked up one by one, whatever statistics say."""
    first = (
        select(_held.c.lock_id, _held.c.number)
        .where(condition)
        .order_by(_held.c.lock_id, _held.c.number)
        .limit(1)
        .correlate(_wanted)
        .lateral()
    )
    wanted = select(_wanted.c.number.label("wanted_number"), _wanted.c.type.label("wanted_type"))
    return wanted.add_columns(first.c.lock_id, first.c.number).select_from(_wanted.join(first, true()))


def _code(wanted: Any, wanted_whole: Any, held: Any, held_whole: Any) -> Any:
    """A conflict rule as one number, so that Postgres has one comparison to make and not dozens."""
    return ((wanted * 2 + wanted_whole) * 16 + held) * 2 + held_whole


def _is_whole(component: FromClause) -> ColumnElement[int]:
    return cast(component.c.table_name == WHOLE, Integer)


_BLOCKER = Prepared(_blocker())


def acquire(tx: Connection, lock_id: int) -> None:
    """A waiting lock is had from now on."""
    put_off(tx, _ACQUISITION, {"lock_id": lock_id})


_ACQUISITION = (
    Prepared(
        text("UPDATE locks SET acquired_at = clock_timestamp(), heartbeat_at = clock_timestamp() WHERE id = :lock_id")
    ),
    Prepared(
        text(
            "UPDATE lock_components SET blocked_by_lock = NULL, blocked_by_number = NULL"
            " WHERE lock_id = :lock_id AND blocked_by_lock IS NOT NULL"
        )
    ),
)


def note_blocker(tx: Connection, lock_id: int, blocker: Blocker) -> None:
    """Keeps what a lock waits for, for those who ask."""
    tx.execute(
        update(lock_components)
        .where(lock_components.c.lock_id == lock_id, lock_components.c.number == blocker.number)
        .values(blocked_by_lock=blocker.held_lock, blocked_by_number=blocker.held_number)
    )


def transaction_of(tx: Connection, lock_id: int) -> int | None:
    """The transaction that has a lock, NO_TRANSACTION for none; None if there is no such lock."""
    transaction_id: int | None = _TRANSACTION.scalar(tx, {"lock_id": lock_id})
    return transaction_id


_THIS = locks.c.id == bindparam("lock_id")
_TRANSACTION = Prepared(select(locks.c.transaction_id).where(_THIS))


def heartbeat(tx: Connection, lock_id: int) -> Heartbeat | None:
    """Notes that a lock's holder is alive, and holds the lock's row; None if there is no such lock."""
    row = _HEARTBEAT.first(tx, {"lock_id": lock_id})
    return Heartbeat(row.acquired_at is not None) if row else None


_HEARTBEAT = Prepared(
    update(locks).where(_THIS).values(heartbeat_at=func.clock_timestamp()).returning(locks.c.acquired_at)
)


# --- removing -------------------------------------------------------------------------------------------------


def release(tx: Connection, lock_id: int) -> bool:
    """Removes a lock; one of a transaction only while it waits. Whether it was removed."""
    return _RELEASE.execute(tx, {"lock_id": lock_id}) > 0


_RELEASE = Prepared(
    delete(locks).where(_THIS, or_(locks.c.transaction_id == NO_TRANSACTION, locks.c.acquired_at.is_(None)))
)


def remove_expired(tx: Connection, timeout: timedelta) -> int:
    """Removes locks without a heartbeat for so long, transactions' apart, and returns how many.

    It never waits: a lock that another transaction holds at this moment is alive, or gone without our help.
    """
    expired = (
        select(locks.c.id)
        .where(locks.c.transaction_id == NO_TRANSACTION, locks.c.heartbeat_at < func.clock_timestamp() - timeout)
        .with_for_update(skip_locked=True)
    )
    return tx.execute(delete(locks).where(locks.c.id.in_(expired))).rowcount


# --- looking --------------------------------------------------------------------------------------------------

_LOCK_COLUMNS = (
    locks.c.acquired_at,
    locks.c.heartbeat_at,
    locks.c.user_name,
    locks.c.host,
    locks.c.agent,
)


def find(
    tx: Connection,
    *,
    lock_id: int | None = None,
    number: int | None = None,
    transaction_id: int | None = None,
    database: DatabaseName | None = None,
    table: str | None = None,
    partition: str | None = None,
) -> list[ComponentRow]:
    """Components of all locks for which every condition that is given holds, by lock and number."""
    query = (
        select(lock_components, *_LOCK_COLUMNS)
        .join(locks, locks.c.id == lock_components.c.lock_id)
        .order_by(lock_components.c.lock_id, lock_components.c.number)
    )
    conditions = {
        locks.c.id: lock_id,
        lock_components.c.number: number,
        locks.c.transaction_id: transaction_id,
        lock_components.c.catalog: database and database.catalog,
        lock_components.c.database_name: database and database.database,
        lock_components.c.table_name: table,
        lock_components.c.partition_name: partition,
    }
    for column, value in conditions.items():
        if value is not None:
            query = query.where(column == value)
    return [_component_row(row) for row in tx.execute(query)]


def find_acquired(tx: Connection, name: TableName, type: int) -> ComponentRow | None:
    """The first acquired lock of a type on a whole table, or on its database; None if there is none."""
    row = _ACQUIRED.first(tx, {**name._asdict(), "type": type})
    return None if row is None else _component_row(row)


_ACQUIRED = Prepared(
    select(lock_components, *_LOCK_COLUMNS)
    .join(locks, locks.c.id == lock_components.c.lock_id)
    .where(
        lock_components.c.catalog == bindparam("catalog"),
        lock_components.c.database_name == bindparam("database"),
        lock_components.c.table_name == any_(array([WHOLE, bindparam("table", type_=Text)])),
        lock_components.c.partition_name == WHOLE,
        lock_components.c.type == bindparam("type", type_=Integer),
        locks.c.acquired_at.is_not(None),
    )
    .order_by(lock_components.c.lock_id)
    .limit(1)
)


def _component_row(row: Row[Any]) -> ComponentRow:
    return ComponentRow(
        row.lock_id,
        row.number,
        Component(row.catalog, row.database_name, row.table_name, row.partition_name, row.type),
        row.transaction_id,
        row.acquired_at,
        row.heartbeat_at,
        row.user_name,
        row.host,
        row.agent,
        (row.blocked_by_lock, row.blocked_by_number) if row.blocked_by_lock is not None else None,
    )
