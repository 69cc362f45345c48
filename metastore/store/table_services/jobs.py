"""The queue of table services' jobs. All times are the database's.

A job is pending, running, or has ended. Of a table and action one runs at a time, and one waits per plan. Whoever takes
a job gets an attempt number, and everything that it says of the job later counts only as long as that is the latest.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    func,
    literal_column,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from metastore.postgres.prepared import Prepared
from metastore.store.engine.clock import in_ms
from metastore.store.engine.names import TableName
from metastore.store.engine.read_set import mark_uncacheable
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.table import tables
from metastore.store.schema.table_services import service_jobs, service_tables

PENDING, RUNNING = "pending", "running"
SUCCEEDED, FAILED, CANCELLED = "succeeded", "failed", "cancelled"
STATES = (PENDING, RUNNING, SUCCEEDED, FAILED, CANCELLED)
ENDED = (SUCCEEDED, FAILED, CANCELLED)

LOST = "lost"
"""The outcome of an attempt of which nothing was heard any more."""

MAX_FAILURES = 8
"""Attempts in a row that may fail before a job is set aside."""

_NOW = func.clock_timestamp()


class NewJob(NamedTuple):
    """A job to be enqueued. `instant`: the plan to run; None to make one."""

    action: str
    instant: str | None
    reason: str | None
    gain: float | None
    cost: float | None
    bytes: int | None
    priority: int
    windows: str | None
    pool: str | None


class JobRow(NamedTuple):
    """A stored job. Times are in milliseconds since 1970, `cost` is in seconds."""

    id: int
    table_id: int
    table: TableName
    action: str
    state: str
    instant: str | None
    reason: str | None
    gain: float | None
    cost: float | None
    bytes: int | None
    priority: int
    windows: str | None
    pool: str | None
    attempt: int
    failures: int
    worker: str | None
    enqueued_at: int
    not_before: int | None
    started_at: int | None
    finished_at: int | None
    stopping: bool
    outcome: str | None
    log: str | None


def _rows(with_logs: bool) -> Select[Any]:
    c = service_jobs.c
    return (
        select(
            c.id,
            c.table_id,
            catalogs.c.name.label("catalog"),
            databases.c.name.label("database"),
            tables.c.name.label("table"),
            c.action,
            c.state,
            c.instant,
            c.reason,
            c.gain,
            c.cost,
            c.bytes,
            c.priority,
            c.windows,
            c.pool,
            c.attempt,
            c.failures,
            c.worker,
            in_ms(c.enqueued_at).label("enqueued_at"),
            case((func.isfinite(c.not_before), in_ms(c.not_before))).label("not_before"),
            in_ms(c.started_at).label("started_at"),
            in_ms(c.finished_at).label("finished_at"),
            c.stopping,
            c.outcome,
            c.log if with_logs else cast(None, Text).label("log"),
        )
        .join(tables, tables.c.id == c.table_id)
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
    )


def _row(row: Sequence[Any]) -> JobRow:
    return JobRow(row[0], row[1], TableName(*row[2:5]), *row[5:])


_TO_BE_RUN = (
    service_jobs.c.priority.desc(),
    service_jobs.c.instant.is_(None),
    service_jobs.c.instant,
    service_jobs.c.id,
)


def find(tx: Connection, job_id: int) -> JobRow | None:
    """A job by its id."""
    mark_uncacheable()
    row = tx.execute(_rows(True).where(service_jobs.c.id == job_id)).one_or_none()
    return None if row is None else _row(row)


def listing(
    tx: Connection,
    *,
    table_id: int | None = None,
    states: Collection[str] | None = None,
    limit: int,
    latest_first: bool = False,
    with_logs: bool = False,
) -> list[JobRow]:
    """Jobs in the order in which they are to be run: by priority, then plans that exist, the oldest first; or the
    latest first."""
    mark_uncacheable()
    query = _rows(with_logs)
    if table_id is not None:
        query = query.where(service_jobs.c.table_id == table_id)
    if states is not None:
        query = query.where(service_jobs.c.state.in_(states))
    order = (service_jobs.c.id.desc(),) if latest_first else _TO_BE_RUN
    return [_row(row) for row in tx.execute(query.order_by(*order).limit(limit))]


_OF_TABLE = _rows(with_logs=False).where(service_jobs.c.table_id == bindparam("table_id")).limit(bindparam("most"))
_LATEST = Prepared(_OF_TABLE.order_by(service_jobs.c.id.desc()))
_WAITING = Prepared(_OF_TABLE.where(service_jobs.c.state == PENDING).order_by(*_TO_BE_RUN))


def latest(tx: Connection, table_id: int, limit: int) -> list[JobRow]:
    """The latest jobs of a table, the latest first, without their logs."""
    mark_uncacheable()
    return [_row(row) for row in _LATEST.all(tx, {"table_id": table_id, "most": limit})]


def waiting(tx: Connection, table_id: int, limit: int) -> list[JobRow]:
    """The pending jobs of a table in the order in which they are to be run, without their logs."""
    mark_uncacheable()
    return [_row(row) for row in _WAITING.all(tx, {"table_id": table_id, "most": limit})]


def enqueue(tx: Connection, table_id: int, job: NewJob, *, at_once: bool = False) -> int | None:
    """Enqueues a job, or renews what is said of the one that waits for the same. Returns its id.

    None if a job is running the same plan already. `at_once`: neither a window nor a pause delays it.
    """
    _lock(tx, f"service jobs of {table_id}")
    c = service_jobs.c
    if job.instant is not None:
        same = and_(c.table_id == table_id, c.action == job.action, c.instant == job.instant, c.state == RUNNING)
        if tx.execute(select(exists().where(same))).scalar():
            return None
    new = insert(service_jobs).values(table_id=table_id, state=PENDING, **job._asdict())
    changes: dict[str, Any] = {name: new.excluded[name] for name in ("reason", "gain", "cost", "bytes", "windows")}
    changes["priority"] = func.greatest(c.priority, new.excluded.priority)
    changes["pool"] = func.coalesce(new.excluded.pool, c.pool)
    if at_once:
        changes["not_before"] = literal_column("'-infinity'::timestamptz")
    statement = new.on_conflict_do_update(
        index_elements=[c.table_id, c.action, text("coalesce(instant, '')")],
        index_where=text("state = 'pending'"),
        set_=changes,
    )
    return int(tx.execute(statement.returning(c.id)).scalar_one())


def take(
    tx: Connection,
    ids: Sequence[int],
    worker: str,
    call: str,
    lease_seconds: int,
    *,
    database_quotas: Mapping[str, int],
    pool_quotas: Mapping[str, int],
) -> int | None:
    """Makes the first of some pending jobs that can run a running one, with the next attempt number. Returns its id.

    `call`: names the call; a repeated one gets the same job. The quotas: how many jobs may run, by database and by
    pool; others may run without a bound. None if no job can run: it isn't due, its table is paused or has a running job
    of the action, or a quota is used up.
    """
    _lock(tx, "taking service jobs")
    c = service_jobs.c
    if (again := tx.execute(select(c.id).where(c.call == call, c.state == RUNNING)).scalar()) is not None:
        return int(again)
    other = service_jobs.alias("other")
    running = other.c.table_id == c.table_id, other.c.action == c.action, other.c.state == RUNNING
    paused = service_tables.c.table_id == c.table_id, service_tables.c.paused.is_not(None)
    query = (
        select(c.id, databases.c.name, c.pool)
        .join(tables, tables.c.id == c.table_id)
        .join(databases, databases.c.id == tables.c.database_id)
        .where(c.id.in_(ids), c.state == PENDING, c.not_before <= _NOW, ~exists().where(*running))
        .where(~exists().where(*paused))
    )
    found = {row[0]: (row[1], row[2]) for row in tx.execute(query)}
    databases_full = _full(database_quotas, _running(tx, databases.c.name)) if database_quotas else set()
    pools_full = _full(pool_quotas, _running(tx, c.pool)) if pool_quotas else set()
    for job_id in ids:
        if job_id not in found:
            continue
        database, pool = found[job_id]
        if database in databases_full or pool in pools_full:
            continue
        changes = {
            "state": RUNNING,
            "attempt": c.attempt + 1,
            "worker": worker,
            "call": call,
            "started_at": _NOW,
            "lease_until": _in_seconds(lease_seconds),
            "finished_at": None,
        }
        if tx.execute(update(service_jobs).where(c.id == job_id, c.state == PENDING).values(changes)).rowcount:
            return job_id
    return None


def _full(quotas: Mapping[str, int], running: Mapping[str, int]) -> set[str]:
    return {name for name, most in quotas.items() if running.get(name, 0) >= most}


def _running(tx: Connection, by: ColumnElement[Any]) -> dict[str, int]:
    query = (
        select(by, func.count())
        .select_from(service_jobs)
        .join(tables, tables.c.id == service_jobs.c.table_id)
        .join(databases, databases.c.id == tables.c.database_id)
        .where(service_jobs.c.state == RUNNING)
        .group_by(by)
    )
    return {row[0]: row[1] for row in tx.execute(query)}


def renew(tx: Connection, job_id: int, attempt: int, lease_seconds: int) -> bool | None:
    """Renews the lease on a running job. Returns whether it shall stop; None if that attempt doesn't run it."""
    c = service_jobs.c
    paused = exists().where(service_tables.c.table_id == c.table_id, service_tables.c.paused.is_not(None))
    statement = update(service_jobs).where(c.id == job_id, c.attempt == attempt, c.state == RUNNING)
    statement = statement.values(lease_until=_in_seconds(lease_seconds))
    return tx.execute(statement.returning(or_(c.stopping, paused))).scalar()


def claim_plan(tx: Connection, job_id: int, attempt: int, instant: str) -> bool | None:
    """Says which plan a running job runs. False if that is or was another job's; None if that attempt doesn't run the
    job."""
    c = service_jobs.c
    mine = select(c.table_id, c.action, c.instant).where(c.id == job_id, c.attempt == attempt, c.state == RUNNING)
    found = tx.execute(mine).one_or_none()
    if found is None:
        return None
    _lock(tx, f"service jobs of {found.table_id}")
    same = (c.table_id == found.table_id, c.action == found.action, c.instant == instant, c.id != job_id)
    if tx.execute(select(exists().where(*same))).scalar():
        return False
    tx.execute(update(service_jobs).where(c.id == job_id).values(instant=instant))
    return True


def finish(
    tx: Connection,
    job_id: int,
    attempt: int,
    state: str,
    outcome: str,
    *,
    log: str | None,
    cost: float | None,
    failed: bool,
    retry_seconds: int,
) -> bool:
    """Ends an attempt at a job, which is over or waits to be run again. Returns whether that attempt ran it.

    `failed`: the attempt counts as a failure; after MAX_FAILURES of them in a row the job is set aside.
    """
    c = service_jobs.c
    waits = state == PENDING
    changes: dict[str, Any] = {
        "outcome": outcome,
        "log": log,
        "finished_at": _NOW,
        "lease_until": None,
        "failures": c.failures + 1 if failed else 0 if state == SUCCEEDED else c.failures,
        "state": _waiting_or_failed(failed) if waits else state,
    }
    if waits:
        changes["not_before"] = _in_seconds(retry_seconds)
        changes["stopping"] = False
    elif cost is not None:
        changes["cost"] = cost
    mine = and_(c.id == job_id, c.attempt == attempt, c.state == RUNNING)
    table_id = tx.execute(select(c.table_id).where(mine)).scalar()
    if table_id is None:
        return False
    _lock(tx, f"service jobs of {table_id}")
    return bool(tx.execute(update(service_jobs).where(mine).values(changes)).rowcount)


def _waiting_or_failed(failed: bool) -> ColumnElement[str]:
    """The state of a job that is to be run again: set aside if it failed too often, over if another one waits."""
    c, other = service_jobs.c, service_jobs.alias("other")
    waits = exists().where(
        other.c.table_id == c.table_id,
        other.c.action == c.action,
        func.coalesce(other.c.instant, "") == func.coalesce(c.instant, ""),
        other.c.state == PENDING,
    )
    over: list[tuple[ColumnElement[bool], str]] = [(waits, FAILED)]
    if failed:
        over.append((c.failures + 1 >= MAX_FAILURES, FAILED))
    return case((c.stopping, CANCELLED), *over, else_=PENDING)


def give_back_lost(tx: Connection) -> int:
    """Makes running jobs pending again whose leases have expired. Returns how many.

    Each counts as a failure, and waits the longer the more of them there were: who runs it may have been killed by it.
    """
    _lock(tx, "taking service jobs")
    c = service_jobs.c
    lost = select(c.id, c.table_id).where(c.state == RUNNING, c.lease_until < _NOW).order_by(c.table_id)
    found = tx.execute(lost).all()
    for job_id, table_id in found:
        _lock(tx, f"service jobs of {table_id}")
        pause = func.least(10.0 * (func.power(2, func.least(c.failures, 20)) - 1), 3600.0)
        changes = {
            "state": _waiting_or_failed(True),
            "outcome": LOST,
            "failures": c.failures + 1,
            "finished_at": _NOW,
            "lease_until": None,
            "not_before": _NOW + func.make_interval(0, 0, 0, 0, 0, 0, pause),
        }
        still = and_(c.id == job_id, c.state == RUNNING, c.lease_until < _NOW)
        tx.execute(update(service_jobs).where(still).values(changes))
    return len(found)


def cancel(tx: Connection, job_id: int) -> bool:
    """Ends a pending job, and marks a running one to be stopped. Returns whether it was one of these."""
    c = service_jobs.c
    ended = {"state": CANCELLED, "outcome": CANCELLED, "finished_at": _NOW}
    if tx.execute(update(service_jobs).where(c.id == job_id, c.state == PENDING).values(ended)).rowcount:
        return True
    return bool(
        tx.execute(update(service_jobs).where(c.id == job_id, c.state == RUNNING).values(stopping=True)).rowcount
    )


def trim(tx: Connection, table_id: int, keep: int) -> None:
    """Removes all but the latest `keep` jobs of a table that have ended, and the last success of each action."""
    c = service_jobs.c
    ended = and_(c.table_id == table_id, c.state.in_(ENDED))
    older = select(c.id).where(ended).order_by(c.id.desc()).offset(keep).limit(1).scalar_subquery()
    successes = select(func.max(c.id)).where(c.table_id == table_id, c.state == SUCCEEDED).group_by(c.action)
    tx.execute(delete(service_jobs).where(ended, c.id <= older, c.id.not_in(successes)))


_LAST_SUCCESS = Prepared(
    select(in_ms(func.max(service_jobs.c.finished_at))).where(
        service_jobs.c.table_id == bindparam("table_id"),
        service_jobs.c.action == bindparam("action"),
        service_jobs.c.state == SUCCEEDED,
    )
)


def last_success(tx: Connection, table_id: int, action: str) -> int | None:
    """When the latest job of an action succeeded, in milliseconds since 1970; None if none is known."""
    found: int | None = _LAST_SUCCESS.scalar(tx, {"table_id": table_id, "action": action})
    return found


def table_of(tx: Connection, job_id: int) -> int | None:
    """The id of a job's table."""
    return tx.execute(select(service_jobs.c.table_id).where(service_jobs.c.id == job_id)).scalar()


def _in_seconds(seconds: int) -> ColumnElement[Any]:
    return _NOW + func.make_interval(0, 0, 0, 0, 0, 0, seconds)


def _lock(tx: Connection, what: str) -> None:
    tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(what, 0))))
