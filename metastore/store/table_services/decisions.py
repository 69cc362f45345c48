"""What was decided about tables, and how far the table management service has looked at them."""

from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Double,
    Select,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    or_,
    select,
    union_all,
)
from sqlalchemy.dialects.postgresql import Insert, insert

from metastore.postgres.prepared import Prepared, execute_all
from metastore.store.engine.clock import in_ms
from metastore.store.engine.names import TableName
from metastore.store.engine.read_set import mark_uncacheable
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.table import tables
from metastore.store.schema.table_services import service_decisions, service_jobs, service_tables
from metastore.store.schema.timeline import instants, timelines


class DecisionRow(NamedTuple):
    """A stored decision. `decided_at`: in milliseconds since 1970; None of a new one: now, by the database's clock.

    `service`: compaction, clustering, clean or publish; `action`: the same, or None if nothing is to be done.
    """

    service: str
    action: str | None
    reason: str
    figures: str | None
    gain: float | None
    cost: float | None
    decided_at: int | None
    position: int


class Standing(NamedTuple):
    """How the table management service stands to a table. `paused`: why; None if it isn't. Times in ms since 1970."""

    paused: str | None
    resumed_at: int | None


_OF_SERVICE = and_(
    service_decisions.c.table_id == bindparam("table_id"), service_decisions.c.service == bindparam("service")
)
_ADD = Prepared(
    insert(service_decisions),
    ["table_id", "service", "action", "reason", "figures", "gain", "cost", "position"],
)
_REMOVE_OLDER = Prepared(
    delete(service_decisions).where(
        _OF_SERVICE,
        service_decisions.c.id
        <= select(service_decisions.c.id)
        .where(_OF_SERVICE)
        .order_by(service_decisions.c.id.desc())
        .offset(bindparam("keep"))
        .limit(1)
        .scalar_subquery(),
    )
)


def add(tx: Connection, table_id: int, decision: DecisionRow, keep: int) -> None:
    """Stores a decision, and removes all but the latest `keep` of that table and service."""
    execute_all(tx, [_ADD, _REMOVE_OLDER], {"table_id": table_id, "keep": keep, **decision._asdict()})


def latest(tx: Connection, table_id: int, limit: int) -> list[DecisionRow]:
    """The latest decisions about a table, the latest first."""
    mark_uncacheable()
    c = service_decisions.c
    decided_at = in_ms(c.decided_at)
    query = select(c.service, c.action, c.reason, c.figures, c.gain, c.cost, decided_at, c.position)
    query = query.where(c.table_id == table_id).order_by(c.id.desc()).limit(limit)
    return [DecisionRow(*row) for row in tx.execute(query)]


def _put_look() -> Insert:
    new = insert(service_tables).values(
        table_id=bindparam("table_id"),
        position=bindparam("position"),
        look_at=func.to_timestamp(cast(bindparam("look_at"), Double) / 1000),
    )
    return new.on_conflict_do_update(
        index_elements=["table_id"],
        set_={"position": new.excluded.position, "look_at": new.excluded.look_at},
        where=service_tables.c.position <= new.excluded.position,
    )


_PUT_LOOK = Prepared(_put_look())


def put_look(tx: Connection, table_id: int, position: int, look_at: int | None) -> None:
    """Stores up to which position decisions are about a table, and when (in ms since 1970) to look at it again.

    What a later position says stays.
    """
    _PUT_LOOK.execute(tx, {"table_id": table_id, "position": position, "look_at": look_at})


def put_paused(tx: Connection, table_id: int, reason: str | None) -> None:
    """Pauses a table, or with None lets it go on; then it is looked at soon."""
    values: dict[str, Any] = {"paused": reason}
    if reason is None:
        values |= {"resumed_at": func.clock_timestamp(), "look_at": func.clock_timestamp()}
    new = insert(service_tables).values(table_id=table_id, **values)
    tx.execute(new.on_conflict_do_update(index_elements=["table_id"], set_=values))


_STANDING = Prepared(
    select(
        service_tables.c.paused,
        in_ms(service_tables.c.resumed_at).label("resumed_at"),
    ).where(service_tables.c.table_id == bindparam("table_id"))
)


def standing(tx: Connection, table_id: int) -> Standing:
    """How the service stands to a table."""
    mark_uncacheable()
    row = _STANDING.first(tx, {"table_id": table_id})
    return Standing(None, None) if row is None else Standing(*row)


def due(tx: Connection, limit: int) -> list[tuple[int, TableName]]:
    """Ids and names of tables to look at.

    The time has come, instants completed since the last look, or a plan has no job.

    Paused ones aren't among them unless instants completed.
    """
    mark_uncacheable()
    some = union_all(
        _due_by_time().limit(limit), _due_by_commits().limit(limit), _due_by_plans().limit(limit)
    ).subquery()
    query = (
        select(tables.c.id, catalogs.c.name, databases.c.name, tables.c.name)
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .where(tables.c.id.in_(select(some.c.table_id)))
        .order_by(tables.c.id)
        .limit(limit)
    )
    return [(row[0], TableName(*row[1:])) for row in tx.execute(query)]


def _due_by_time() -> Select[tuple[int]]:
    soonest = service_tables.c.look_at
    return (
        select(service_tables.c.table_id)
        .where(soonest <= func.clock_timestamp(), service_tables.c.paused.is_(None))
        .order_by(soonest)
    )


def _due_by_commits() -> Select[tuple[int]]:
    behind = or_(service_tables.c.table_id.is_(None), service_tables.c.position < timelines.c.position)
    return (
        select(timelines.c.table_id)
        .outerjoin(service_tables, service_tables.c.table_id == timelines.c.table_id)
        .where(timelines.c.position > 0, behind)
        .order_by(timelines.c.table_id)
    )


def _due_by_plans() -> Select[tuple[int]]:
    paused = exists().where(service_tables.c.table_id == instants.c.table_id, service_tables.c.paused.is_not(None))
    job = exists().where(service_jobs.c.table_id == instants.c.table_id, service_jobs.c.instant == instants.c.timestamp)
    return (
        select(instants.c.table_id)
        .where(instants.c.position.is_(None), instants.c.planned, ~job, ~paused)
        .order_by(instants.c.id)
    )
