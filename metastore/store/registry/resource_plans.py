"""SQL for Hive's resource plans. A plan is small, so it is stored, read and changed as one document (`body`)."""

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

from metastore.store.schema.registry import resource_plans


class PlanRow(NamedTuple):
    """A stored plan; `status` is Thrift's WMResourcePlanStatus."""

    id: int
    namespace: str
    name: str
    status: int
    body: bytes


def find(tx: Connection, namespace: str, name: str, *, lock: bool = False) -> PlanRow | None:
    """The plan of that name; with `lock` nobody else changes it until the transaction ends."""
    return _one(tx, namespace, resource_plans.c.name == name, lock)


def find_with_status(tx: Connection, namespace: str, status: int, *, lock: bool = False) -> PlanRow | None:
    """The plan of a namespace with a status that at most one plan has, such as ACTIVE."""
    return _one(tx, namespace, resource_plans.c.status == status, lock)


def _one(tx: Connection, namespace: str, condition: ColumnElement[bool], lock: bool) -> PlanRow | None:
    query = select(resource_plans).where(resource_plans.c.namespace == namespace, condition)
    row = tx.execute(query.with_for_update() if lock else query).one_or_none()
    return None if row is None else _plan(row)


def _plan(row: Row[Any]) -> PlanRow:
    return PlanRow(row.id, row.namespace, row.name, row.status, bytes(row.body))


def find_all(tx: Connection, namespace: str) -> list[PlanRow]:
    """All plans of a namespace by name."""
    query = select(resource_plans).where(resource_plans.c.namespace == namespace).order_by(resource_plans.c.name)
    return [_plan(row) for row in tx.execute(query)]


def add(tx: Connection, namespace: str, name: str, status: int, body: bytes) -> None:
    """Adds a plan. Raises store.Conflict if the name is taken."""
    tx.execute(insert(resource_plans), {"namespace": namespace, "name": name, "status": status, "body": body})


def change(tx: Connection, plan_id: int, name: str, status: int, body: bytes) -> None:
    """Replaces a plan, its name included. Raises store.Conflict if that is taken."""
    values = {"name": name, "status": status, "body": body}
    tx.execute(update(resource_plans).where(resource_plans.c.id == plan_id).values(values))


def remove(tx: Connection, plan_id: int) -> None:
    """Removes a plan."""
    tx.execute(delete(resource_plans).where(resource_plans.c.id == plan_id))
