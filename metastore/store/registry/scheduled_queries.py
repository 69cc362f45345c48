"""Scheduled queries and their executions. All times are in seconds since the epoch."""

from collections.abc import Collection
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, delete, insert, select, update

from metastore.store.schema.registry import scheduled_executions, scheduled_queries


class QueryRow(NamedTuple):
    """A stored scheduled query."""

    id: int
    namespace: str
    name: str
    enabled: bool
    next_execution: int | None
    active_execution_id: int | None
    body: bytes


class ExecutionRow(NamedTuple):
    """An execution; `state` is Thrift's QueryState."""

    id: int
    scheduled_query_id: int
    state: int


def find(tx: Connection, namespace: str, name: str, *, lock: bool = False) -> QueryRow | None:
    """The query of that name; with `lock` nobody else changes it until the transaction ends."""
    query = select(scheduled_queries).where(
        scheduled_queries.c.namespace == namespace, scheduled_queries.c.name == name
    )
    row = tx.execute(query.with_for_update() if lock else query).one_or_none()
    return None if row is None else _query(row)


def due(tx: Connection, namespace: str, now: int) -> QueryRow | None:
    """The enabled query that should have begun earliest and isn't running, held; those that others hold are skipped."""
    query = (
        select(scheduled_queries)
        .where(
            scheduled_queries.c.namespace == namespace,
            scheduled_queries.c.enabled,
            scheduled_queries.c.next_execution <= now,
            scheduled_queries.c.active_execution_id.is_(None),
        )
        .order_by(scheduled_queries.c.next_execution, scheduled_queries.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    row = tx.execute(query).one_or_none()
    return None if row is None else _query(row)


def _query(row: Row[Any]) -> QueryRow:
    return QueryRow(
        row.id,
        row.namespace,
        row.name,
        row.enabled,
        row.next_execution,
        row.active_execution_id,
        bytes(row.body),
    )


def add(tx: Connection, namespace: str, name: str, *, enabled: bool, next_execution: int | None, body: bytes) -> None:
    """Adds a query. Raises store.Conflict if the name is taken."""
    values = {
        "namespace": namespace,
        "name": name,
        "enabled": enabled,
        "next_execution": next_execution,
        "body": body,
    }
    tx.execute(insert(scheduled_queries), values)


def change(tx: Connection, query_id: int, *, enabled: bool, next_execution: int | None, body: bytes) -> None:
    """Replaces what is kept of a query."""
    values = {"enabled": enabled, "next_execution": next_execution, "body": body}
    tx.execute(update(scheduled_queries).where(scheduled_queries.c.id == query_id).values(values))


def remove(tx: Connection, query_id: int) -> None:
    """Removes a query with its executions."""
    tx.execute(delete(scheduled_queries).where(scheduled_queries.c.id == query_id))


def begin(tx: Connection, query_id: int, state: int, now: int, next_execution: int | None) -> int:
    """Adds an execution of a query that will be due again at `next_execution`, and returns the execution's id."""
    added = insert(scheduled_executions).returning(scheduled_executions.c.id)
    values = {"scheduled_query_id": query_id, "state": state, "start_time": now, "last_update_time": now}
    execution_id = int(tx.execute(added, values).scalar_one())
    changed = {"active_execution_id": execution_id, "next_execution": next_execution}
    tx.execute(update(scheduled_queries).where(scheduled_queries.c.id == query_id).values(changed))
    return execution_id


def find_execution(tx: Connection, execution_id: int) -> ExecutionRow | None:
    """An execution, held."""
    query = select(scheduled_executions).where(scheduled_executions.c.id == execution_id).with_for_update()
    row = tx.execute(query).one_or_none()
    return None if row is None else ExecutionRow(row.id, row.scheduled_query_id, row.state)


def find_silent(tx: Connection, since: int, states: Collection[int]) -> list[ExecutionRow]:
    """Executions in one of the states that haven't been heard of since then, held; others' are skipped."""
    query = (
        select(scheduled_executions)
        .where(scheduled_executions.c.last_update_time <= since, scheduled_executions.c.state.in_(states))
        .with_for_update(skip_locked=True)
    )
    return [ExecutionRow(row.id, row.scheduled_query_id, row.state) for row in tx.execute(query)]


def progress(
    tx: Connection,
    execution: ExecutionRow,
    state: int,
    now: int,
    *,
    ended: bool,
    executor_query_id: str | None,
    error_message: str | None,
) -> None:
    """An execution is in another state; once it has ended its query may be executed again."""
    values: dict[str, Any] = {"state": state, "last_update_time": None if ended else now}
    if ended:
        values["end_time"] = now
    if executor_query_id is not None:
        values["executor_query_id"] = executor_query_id
    if error_message is not None:
        values["error_message"] = error_message
    tx.execute(update(scheduled_executions).where(scheduled_executions.c.id == execution.id).values(values))
    if ended:
        tx.execute(
            update(scheduled_queries)
            .where(scheduled_queries.c.id == execution.scheduled_query_id)
            .where(scheduled_queries.c.active_execution_id == execution.id)
            .values(active_execution_id=None)
        )


def forget_executions(tx: Connection, before: int) -> None:
    """Removes the executions that began before then; what they kept from running may run again."""
    old = select(scheduled_executions.c.id).where(scheduled_executions.c.start_time <= before)
    tx.execute(
        update(scheduled_queries)
        .where(scheduled_queries.c.active_execution_id.in_(old))
        .values(active_execution_id=None)
    )
    tx.execute(delete(scheduled_executions).where(scheduled_executions.c.start_time <= before))
