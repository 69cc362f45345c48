"""Resource plans: how Hive's workload management divides a cluster among queries.

At most one plan of a namespace is active.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from lake.protocol.codec import binary
from lake.protocol.hive import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    WMFullResourcePlan,
    WMNullableResourcePlan,
    WMPool,
    WMResourcePlan,
    WMResourcePlanStatus,
    WMTrigger,
    WMValidateResourcePlanResponse,
)
from metastore.services.model import names as given
from metastore.services.registry import resource_plan_rules as rules
from metastore.store import Conflict, Database
from metastore.store.engine.database import Transaction
from metastore.store.registry import resource_plans
from metastore.store.registry.resource_plans import PlanRow

DEFAULT_NAMESPACE = "default"
DEFAULT_POOL = "default"
DEFAULT_POOL_SIZE = 4  # Hive's metastore.wm.default.pool.size

_ACTIVE, _ENABLED, _DISABLED = (
    WMResourcePlanStatus.ACTIVE,
    WMResourcePlanStatus.ENABLED,
    WMResourcePlanStatus.DISABLED,
)


class ResourcePlanService:
    """Hive's calls for resource plans."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, plan: WMResourcePlan, copy_from: str | None) -> None:
        """Adds a disabled plan: with one pool that gets everything, or a copy of what another plan has.

        Raises InvalidObjectException, AlreadyExistsException, NoSuchObjectException if the other plan isn't there.
        """
        name, namespace = rules.required_name(plan.name, "resource plan"), _namespace(plan.ns)
        if not name:
            raise InvalidObjectException("Resource name cannot be empty.")
        if copy_from is None and plan.queryParallelism is not None and plan.queryParallelism <= 0:
            raise InvalidObjectException("Query parallelism should be positive.")
        try:
            with self._database.write() as tx:
                if copy_from is not None:
                    value = _full(_existing(tx, copy_from, namespace))
                    assert value.plan is not None
                    value.plan = plan.replace(
                        queryParallelism=value.plan.queryParallelism, defaultPoolPath=value.plan.defaultPoolPath
                    )
                else:
                    size = DEFAULT_POOL_SIZE if plan.queryParallelism is None else plan.queryParallelism
                    pool = WMPool(poolPath=DEFAULT_POOL, allocFraction=1.0, queryParallelism=size)
                    value = WMFullResourcePlan(plan=plan.replace(defaultPoolPath=DEFAULT_POOL), pools=[pool])
                resource_plans.add(tx, namespace, name, _DISABLED, binary.encode(value))
        except Conflict:
            raise AlreadyExistsException("Resource plan already exists: ") from None

    def get(self, name: str | None, namespace: str | None) -> WMFullResourcePlan:
        """A plan with all its parts. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            return _full(_existing(tx, name, _namespace(namespace)))

    def active(self, namespace: str | None) -> WMFullResourcePlan | None:
        """A namespace's active plan with all its parts, if there is one."""
        with self._database.read() as tx:
            row = resource_plans.find_with_status(tx, _namespace(namespace), _ACTIVE)
        return row and _full(row)

    def all(self, namespace: str | None) -> list[WMResourcePlan]:
        """A namespace's plans by name, without their parts."""
        with self._database.read() as tx:
            rows = resource_plans.find_all(tx, _namespace(namespace))
        return [plan for row in rows if (plan := _full(row).plan) is not None]

    def triggers(self, name: str | None, namespace: str | None) -> list[WMTrigger]:
        """A plan's triggers. Raises NoSuchObjectException."""
        return self.get(name, namespace).triggers or []

    def validate(self, name: str | None, namespace: str | None) -> WMValidateResourcePlanResponse:
        """What is wrong with a plan. Raises NoSuchObjectException."""
        return rules.validate(self.get(name, namespace))

    def drop(self, name: str | None, namespace: str | None) -> None:
        """Removes a plan. Raises NoSuchObjectException, MetaException for the active one."""
        with self._database.write() as tx:
            row = _existing(tx, name, _namespace(namespace), lock=True)
            if row.status == _ACTIVE:
                raise MetaException("Cannot drop an active resource plan")
            resource_plans.remove(tx, row.id)

    @contextmanager
    def edited(self, name: str | None, namespace: str | None) -> Iterator[WMFullResourcePlan]:
        """A plan whose parts are changed in the block, and kept at its end.

        Raises NoSuchObjectException, InvalidOperationException unless the plan is disabled.
        """
        with self._database.write() as tx:
            row = _existing(tx, name, _namespace(namespace), lock=True)
            _check_disabled(row)
            value = _full(row)
            yield value
            _keep(tx, row, value)

    # --- altering ---------------------------------------------------------------------------------------------

    def alter(
        self,
        name: str | None,
        namespace: str | None,
        changes: WMNullableResourcePlan,
        *,
        activate_disabled: bool = False,
        deactivate: bool = False,
        replace: bool = False,
    ) -> WMFullResourcePlan | None:
        """Changes a plan's values or its status, or puts it in the place of another. Answers a plan that became active.

        Without a name the active plan is meant. `activate_disabled`: a disabled plan may become active at once;
        `deactivate`: the active one may be no longer. Raises InvalidOperationException for what may not be,
        NoSuchObjectException, AlreadyExistsException if a new name is taken.
        """
        if activate_disabled + deactivate + replace > 1:
            raise MetaException("Invalid request; multiple flags are set")
        if replace and name is None:
            raise InvalidOperationException("Cannot replace without specifying the source plan")
        where = _namespace(namespace)
        try:
            with self._database.write() as tx:
                if replace:
                    return _replace(tx, name, where, changes)
                if name is None:
                    row = _active(tx, where)
                else:
                    row = _existing(tx, name, where, lock=True)
                return _alter(tx, row, changes, activate_disabled=activate_disabled, deactivate=deactivate)
        except Conflict as error:
            if error.constraint == "resource_plans_active_idx":
                raise MetaException("another resource plan was activated at the same time; try again") from None
            raise AlreadyExistsException("Resource plan name should be unique: ") from None


def _alter(
    tx: Transaction, row: PlanRow, changes: WMNullableResourcePlan, *, activate_disabled: bool, deactivate: bool
) -> WMFullResourcePlan | None:
    if changes.status is None:
        _check_disabled(row)
    if changes.ns is not None and changes.ns != row.namespace:
        raise InvalidOperationException(f"Cannot change ns; from {row.namespace} to {changes.ns}")
    renamed = changes.name is not None and changes.name != row.name
    if changes.status is not None and (
        changes.isSetQueryParallelism is not None or changes.isSetDefaultPoolPath is not None or renamed
    ):
        raise InvalidOperationException("Cannot change values during status switch.")
    value = _full(row)
    assert value.plan is not None
    if changes.name is not None:
        new_name = given.normalized(changes.name)
        if not new_name:
            raise InvalidOperationException("Cannot rename to empty value.")
        row = row._replace(name=new_name)
    if changes.isSetQueryParallelism:
        if changes.queryParallelism is not None and changes.queryParallelism <= 0:
            raise InvalidOperationException("queryParallelism should be positive.")
        value.plan.queryParallelism = changes.queryParallelism
    if changes.isSetDefaultPoolPath:
        path = changes.defaultPoolPath
        value.plan.defaultPoolPath = None if path is None else rules.find_pool(value, path).poolPath
    if changes.status is not None:
        status = _next_status(row, value, changes.status, activate_disabled, deactivate)
        activated = status == _ACTIVE and row.status != _ACTIVE
        if activated:
            _deactivate(tx, row.namespace)
        row = row._replace(status=status)
        _keep(tx, row, value)
        return _full(row) if activated else None
    _keep(tx, row, value)
    return None


def _next_status(
    row: PlanRow, value: WMFullResourcePlan, wanted: int, activate_disabled: bool, deactivate: bool
) -> int:
    """The status that a plan may have next: Hive's transitions. Raises InvalidOperationException."""
    if wanted == row.status:
        return wanted
    if wanted not in (_ACTIVE, _ENABLED, _DISABLED):
        raise InvalidOperationException(f"Invalid status: {wanted}")
    if row.status == _ACTIVE and not deactivate:
        raise InvalidOperationException(
            f"Resource plan {row.name} is active; activate another plan first, or disable workload management."
        )
    if row.status == _DISABLED:
        if wanted == _ACTIVE and not activate_disabled:
            raise InvalidOperationException(
                f"Resource plan {row.name} is disabled and should be enabled before activation (or in the same command)"
            )
        errors = rules.validate(value).errors
        if errors:
            raise InvalidOperationException(f"ResourcePlan: {row.name} is invalid: [{', '.join(errors)}]")
    return wanted


def _replace(
    tx: Transaction, name: str | None, namespace: str, changes: WMNullableResourcePlan
) -> WMFullResourcePlan | None:
    """A plan takes the name and the status of another, which is kept, disabled, under a name that tells the time."""
    if changes.queryParallelism is not None or changes.defaultPoolPath is not None:
        raise InvalidOperationException("Cannot change values during replace.")
    if (changes.status == _ACTIVE) == (changes.name is not None):
        status = None if changes.status is None else WMResourcePlanStatus(changes.status).name
        raise InvalidOperationException(f"Must specify a name, or the active plan; received {changes.name}, {status}")
    if changes.name is not None:
        replaced = _existing(tx, changes.name, namespace, lock=True)
    else:
        replaced = _active(tx, namespace)
    row = _existing(tx, name, namespace, lock=True)
    if replaced.id == row.id:
        raise InvalidOperationException("A plan cannot replace itself")
    stem = copy = f"{replaced.name}_old_{time.strftime('%Y_%m_%d_%H_%M_%S')}"
    number = 0
    while resource_plans.find(tx, namespace, copy) is not None:
        number += 1
        copy = f"{stem}_{number}"
    _keep(tx, replaced._replace(name=copy, status=_DISABLED), _full(replaced))
    row = row._replace(name=replaced.name, status=replaced.status)
    _keep(tx, row, _full(row))
    return _full(row) if row.status == _ACTIVE else None


def _deactivate(tx: Transaction, namespace: str) -> None:
    row = resource_plans.find_with_status(tx, namespace, _ACTIVE, lock=True)
    if row is not None:
        _keep(tx, row._replace(status=_ENABLED), _full(row))


# --- rows -----------------------------------------------------------------------------------------------------


def _namespace(namespace: str | None) -> str:
    return given.normalized(DEFAULT_NAMESPACE if namespace is None else namespace)


def _existing(tx: Transaction, name: str | None, namespace: str, *, lock: bool = False) -> PlanRow:
    wanted = rules.required_name(name, "resource plan")
    row = resource_plans.find(tx, namespace, wanted, lock=lock)
    if row is None:
        raise NoSuchObjectException(f"There is no resource plan named: {wanted} in {namespace}")
    return row


def _active(tx: Transaction, namespace: str) -> PlanRow:
    row = resource_plans.find_with_status(tx, namespace, _ACTIVE, lock=True)
    if row is None:
        raise InvalidOperationException(f"There is no active resource plan in {namespace}")
    return row


def _check_disabled(row: PlanRow) -> None:
    if row.status != _DISABLED:
        raise InvalidOperationException("Resource plan must be disabled to edit it.")


def _full(row: PlanRow) -> WMFullResourcePlan:
    """A plan as Hive gives it: every part bears the plan's name and namespace, and lists without items are unset."""
    value = binary.decode_preserving(WMFullResourcePlan, row.body)
    assert value.plan is not None
    value.plan.name, value.plan.ns, value.plan.status = row.name, row.namespace, row.status
    for part in (*(value.pools or ()), *(value.mappings or ()), *(value.triggers or ())):
        part.resourcePlanName, part.ns = row.name, row.namespace
    value.pools = value.pools or []
    value.mappings, value.triggers = value.mappings or None, value.triggers or None
    value.poolTriggers = value.poolTriggers or None
    return value


def _keep(tx: Transaction, row: PlanRow, value: WMFullResourcePlan) -> None:
    resource_plans.change(tx, row.id, row.name, row.status, binary.encode(value))
