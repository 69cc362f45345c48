"""Plans whose runs ended without a word: their jobs wait to be run again, and their heartbeats have stopped."""

from typing import NamedTuple

from sqlalchemy import Connection, and_, func, select

from metastore.store.engine.read_set import mark_uncacheable
from metastore.store.schema.table_services import service_jobs
from metastore.store.schema.timeline import instants
from metastore.store.table_services.jobs import PENDING


class LostPlan(NamedTuple):
    """An inflight instant with a plan, by its key."""

    table_id: int
    timestamp: str
    action: str


def lost_plans(tx: Connection, silent_seconds: float, limit: int) -> list[LostPlan]:
    """At most `limit` inflight plans without a heartbeat for so long, of jobs that were run before and now wait."""
    mark_uncacheable()
    jobs = service_jobs.c
    same = and_(
        instants.c.table_id == jobs.table_id,
        instants.c.timestamp == jobs.instant,
        instants.c.begun_as == jobs.action,
    )
    silent = func.clock_timestamp() - func.make_interval(0, 0, 0, 0, 0, 0, silent_seconds)
    query = (
        select(instants.c.table_id, instants.c.timestamp, instants.c.action)
        .join(service_jobs, same)
        .where(jobs.state == PENDING, jobs.attempt > 0)
        .where(instants.c.position.is_(None), instants.c.planned, instants.c.state == "inflight")
        .where(instants.c.heartbeat_at < silent)
        .order_by(instants.c.table_id, instants.c.timestamp)
        .limit(limit)
    )
    return [LostPlan(*row) for row in tx.execute(query)]
