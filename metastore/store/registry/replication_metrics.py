"""How far replications are, as their executors report it."""

from sqlalchemy import Connection, delete, insert, select, update

from metastore.store.schema.registry import replication_metrics


def find(
    tx: Connection, *, execution_id: int | None = None, policy: str | None = None, lock: bool = False
) -> list[bytes]:
    """What is kept of the executions of a policy, the newest first, or of one execution."""
    query = select(replication_metrics.c.body).order_by(replication_metrics.c.scheduled_execution_id.desc())
    if execution_id is not None:
        query = query.where(replication_metrics.c.scheduled_execution_id == execution_id)
    if policy is not None:
        query = query.where(replication_metrics.c.policy == policy)
    return [bytes(body) for body in tx.execute(query.with_for_update() if lock else query).scalars()]


def add(tx: Connection, execution_id: int, policy: str, start_time: int, body: bytes) -> None:
    """Adds an execution. Raises store.Conflict if it is there; the time is in seconds since the epoch."""
    values = {"scheduled_execution_id": execution_id, "policy": policy, "start_time": start_time, "body": body}
    tx.execute(insert(replication_metrics), values)


def change(tx: Connection, execution_id: int, body: bytes) -> None:
    """Replaces what is kept of an execution."""
    condition = replication_metrics.c.scheduled_execution_id == execution_id
    tx.execute(update(replication_metrics).where(condition).values(body=body))


def forget(tx: Connection, before: int) -> None:
    """Removes the executions that began before then."""
    tx.execute(delete(replication_metrics).where(replication_metrics.c.start_time <= before))
