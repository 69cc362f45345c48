"""Rules of resource plans: validation, and changes that follow from a change of a part.

A resource plan is Hive's workload management. It divides a cluster into a tree of pools. Mappings assign users, groups
and applications to pools, and triggers act on queries that exceed a limit.
"""

from collections import defaultdict
from collections.abc import Iterable

from lake.protocol.hive import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    WMFullResourcePlan,
    WMMapping,
    WMNullablePool,
    WMPool,
    WMPoolSchedulingPolicy,
    WMPoolTrigger,
    WMTrigger,
    WMValidateResourcePlanResponse,
)
from metastore.services.model import names as given

_ENTITY_TYPES = ("USER", "GROUP", "APPLICATION")
_TOLERANCE = 0.00001


def required_name(name: str | None, what: str) -> str:
    """A name as it is kept. Raises MetaException if there's none."""
    if name is None:
        raise MetaException(f"the {what}'s name is missing")
    return given.normalized(name)


# --- pools ----------------------------------------------------------------------------------------------------


def find_pool(plan: WMFullResourcePlan, path: str | None) -> WMPool:
    """The pool of that path. Raises NoSuchObjectException."""
    wanted = required_name(path, "pool")
    for pool in plan.pools or ():
        if pool.poolPath == wanted:
            return pool
    raise NoSuchObjectException(f"Cannot find pool: {wanted}")


def add_pool(plan: WMFullResourcePlan, pool: WMPool) -> None:
    """Adds a pool below one that is there, or at the root.

    Raises NoSuchObjectException without a parent, InvalidOperationException for an unknown policy,
    AlreadyExistsException.
    """
    path = required_name(pool.poolPath, "pool")
    _check_parent(plan, path)
    _check_policy(pool.schedulingPolicy)
    if _has_pool(plan, path):
        raise AlreadyExistsException("Pool already exists: ")
    plan.pools = [
        *(plan.pools or ()),
        pool.replace(
            poolPath=path, allocFraction=pool.allocFraction or 0.0, queryParallelism=pool.queryParallelism or 0
        ),
    ]


def alter_pool(plan: WMFullResourcePlan, path: str | None, changes: WMNullablePool) -> None:
    """Changes the given fields of a pool. With a new path, the pools below it move along, and references follow.

    Raises NoSuchObjectException for an unknown pool or parent, InvalidOperationException for an unknown policy,
    AlreadyExistsException if the new path is taken.
    """
    pool = find_pool(plan, path)
    if changes.allocFraction is not None:
        pool.allocFraction = changes.allocFraction
    if changes.queryParallelism is not None:
        pool.queryParallelism = changes.queryParallelism
    if changes.isSetSchedulingPolicy:
        _check_policy(changes.schedulingPolicy)
        pool.schedulingPolicy = changes.schedulingPolicy
    new = required_name(changes.poolPath, "pool")
    assert pool.poolPath is not None
    if new != pool.poolPath:
        _check_parent(plan, new)
        if _has_pool(plan, new):
            raise AlreadyExistsException(f"Pool already exists: {new}")
        _move_pools(plan, pool.poolPath, new)


def drop_pool(plan: WMFullResourcePlan, path: str | None) -> None:
    """Removes a pool. Raises NoSuchObjectException, InvalidOperationException for one that is still needed."""
    gone = required_name(path, "pool")
    if plan.plan is not None and plan.plan.defaultPoolPath == gone:
        raise InvalidOperationException("Cannot drop default pool of a resource plan")
    if any((pool.poolPath or "").startswith(f"{gone}.") for pool in plan.pools or ()):
        raise InvalidOperationException("Cannot drop a pool that has child pools")
    if not _has_pool(plan, gone):
        raise NoSuchObjectException(f"Cannot delete pool: {gone}")
    if any(mapping.poolPath == gone for mapping in plan.mappings or ()):
        raise InvalidOperationException("Please remove all mappings for this pool.")
    plan.pools = [pool for pool in plan.pools or () if pool.poolPath != gone]
    plan.poolTriggers = [link for link in plan.poolTriggers or () if link.pool != gone]


def _has_pool(plan: WMFullResourcePlan, path: str) -> bool:
    return any(pool.poolPath == path for pool in plan.pools or ())


def _check_parent(plan: WMFullResourcePlan, path: str) -> None:
    parent, dot, _ = path.rpartition(".")
    if dot and not _has_pool(plan, parent):
        raise NoSuchObjectException("Pool path is invalid, the parent does not exist")


def _check_policy(policy: str | None) -> None:
    if not _is_policy(policy):
        raise InvalidOperationException(f"Invalid scheduling policy {policy}")


def _is_policy(policy: str | None) -> bool:
    return policy is None or policy.strip().upper() in ("DEFAULT", *WMPoolSchedulingPolicy.__members__)


def _move_pools(plan: WMFullResourcePlan, old: str, new: str) -> None:
    def moved(path: str | None) -> str | None:
        if path is not None and (path == old or path.startswith(f"{old}.")):
            return new + path[len(old) :]
        return path

    for pool in plan.pools or ():
        pool.poolPath = moved(pool.poolPath)
    for mapping in plan.mappings or ():
        mapping.poolPath = moved(mapping.poolPath)
    for link in plan.poolTriggers or ():
        link.pool = moved(link.pool)
    if plan.plan is not None:
        plan.plan.defaultPoolPath = moved(plan.plan.defaultPoolPath)


# --- triggers -------------------------------------------------------------------------------------------------


def add_trigger(plan: WMFullResourcePlan, trigger: WMTrigger) -> None:
    """Adds a trigger. Raises AlreadyExistsException."""
    name = required_name(trigger.triggerName, "trigger")
    if any(known.triggerName == name for known in plan.triggers or ()):
        raise AlreadyExistsException("Trigger already exists, use alter: ")
    kept = trigger.replace(triggerName=name, isInUnmanaged=bool(trigger.isInUnmanaged))
    plan.triggers = [*(plan.triggers or ()), kept]


def alter_trigger(plan: WMFullResourcePlan, changes: WMTrigger) -> None:
    """Changes what is given of a trigger. Raises NoSuchObjectException."""
    trigger = find_trigger(plan, changes.triggerName)
    if changes.triggerExpression is not None:
        trigger.triggerExpression = changes.triggerExpression
    if changes.actionExpression is not None:
        trigger.actionExpression = changes.actionExpression
    if changes.isInUnmanaged is not None:
        trigger.isInUnmanaged = changes.isInUnmanaged


def drop_trigger(plan: WMFullResourcePlan, name: str | None) -> None:
    """Removes a trigger, from the pools too. Raises NoSuchObjectException."""
    gone = required_name(name, "trigger")
    left = [trigger for trigger in plan.triggers or () if trigger.triggerName != gone]
    if len(left) == len(plan.triggers or ()):
        raise NoSuchObjectException(f"Cannot delete trigger: {gone}")
    plan.triggers = left
    plan.poolTriggers = [link for link in plan.poolTriggers or () if link.trigger != gone]


def find_trigger(plan: WMFullResourcePlan, name: str | None) -> WMTrigger:
    """The trigger of that name. Raises NoSuchObjectException."""
    wanted = required_name(name, "trigger")
    for trigger in plan.triggers or ():
        if trigger.triggerName == wanted:
            return trigger
    raise NoSuchObjectException(f"Cannot find trigger with name: {wanted}")


def link_trigger(plan: WMFullResourcePlan, trigger: str | None, pool: str | None, *, drop: bool) -> None:
    """Links a trigger to a pool; with `drop`, unlinks it. Raises NoSuchObjectException if one of them doesn't exist."""
    link = WMPoolTrigger(pool=find_pool(plan, pool).poolPath, trigger=find_trigger(plan, trigger).triggerName)
    links = [other for other in plan.poolTriggers or () if (other.pool, other.trigger) != (link.pool, link.trigger)]
    plan.poolTriggers = links if drop else [*links, link]


# --- mappings -------------------------------------------------------------------------------------------------


def put_mapping(plan: WMFullResourcePlan, mapping: WMMapping, *, update: bool) -> None:
    """Maps a user, group or application to a pool, or to none.

    An update changes the pool alone. Raises InvalidObjectException for an unknown type, NoSuchObjectException for an
    unknown pool or nothing to update, AlreadyExistsException.
    """
    kind, name = _entity(mapping)
    pool = None if mapping.poolPath is None else find_pool(plan, mapping.poolPath).poolPath
    known = [m for m in plan.mappings or () if (m.entityType, m.entityName) == (kind, name)]
    if update:
        if not known:
            raise NoSuchObjectException(f"Cannot find mapping of {kind} {name}")
        known[0].poolPath = pool
        return
    if known:
        raise AlreadyExistsException(f"Mapping of {kind} {name} already exists, use alter")
    kept = mapping.replace(entityType=kind, entityName=name, poolPath=pool, ordering=mapping.ordering or 0)
    plan.mappings = [*(plan.mappings or ()), kept]


def drop_mapping(plan: WMFullResourcePlan, mapping: WMMapping) -> None:
    """Removes a mapping. Raises NoSuchObjectException."""
    entity = _entity(mapping)
    left = [m for m in plan.mappings or () if (m.entityType, m.entityName) != entity]
    if len(left) == len(plan.mappings or ()):
        raise NoSuchObjectException("Cannot delete mapping.")
    plan.mappings = left


def _entity(mapping: WMMapping) -> tuple[str, str]:
    kind = (mapping.entityType or "").strip().upper()
    if kind not in _ENTITY_TYPES:
        raise InvalidObjectException(f"{mapping.entityType} is none of {', '.join(_ENTITY_TYPES)}")
    return kind, required_name(mapping.entityName, "entity")


# --- the whole plan -------------------------------------------------------------------------------------------


def validate(plan: WMFullResourcePlan) -> WMValidateResourcePlanResponse:
    """Checks a plan. `errors` prevent that it is enabled; `warnings` don't."""
    pools = plan.pools or []
    wanted = plan.plan.queryParallelism if plan.plan is not None else None
    errors, warnings = [], []
    if wanted is not None and wanted < 1:
        errors.append(f"Query parallelism should for resource plan be positive. Got: {wanted}")
    for pool in pools:
        if (pool.queryParallelism or 0) < 1:
            errors.append(f"Invalid query parallelism for pool: {pool.poolPath}")
        if not _is_policy(pool.schedulingPolicy):
            errors.append(f"Invalid scheduling policy {pool.schedulingPolicy} for pool: {pool.poolPath}")
    total = sum(pool.queryParallelism for pool in pools if pool.queryParallelism and pool.queryParallelism > 0)
    sums = f"Sum of all pools' query parallelism: {total}"
    if wanted is not None and wanted < total:
        errors.append(f"{sums} exceeds resource plan query parallelism: {wanted}")
    elif wanted is not None and wanted != total:
        warnings.append(f"{sums} is less than resource plan query parallelism: {wanted}")
    errors += _fraction_errors(pools)
    return WMValidateResourcePlanResponse(errors=errors, warnings=warnings)


def _fraction_errors(pools: Iterable[WMPool]) -> list[str]:
    """The fractions of the pools below one must make sense, and those at the root be the whole."""
    paths, fractions = set(), defaultdict[str, float](float)
    for pool in pools:
        path = pool.poolPath or ""
        paths.add(path)
        fractions[path.rpartition(".")[0]] += pool.allocFraction or 0.0
    errors = []
    for parent, fraction in sorted(fractions.items()):
        if parent == "":
            if abs(1.0 - fraction) > _TOLERANCE:
                errors.append(
                    f"Sum of root children pools' alloc fraction should be 1.0 got: {fraction} for pool: {parent}"
                )
            continue
        if parent not in paths:
            errors.append(f"Pool does not exists but has children: {parent}")
        if fraction - 1.0 > _TOLERANCE:
            errors.append(
                f"Sum of children pools' alloc fraction should be less than 1 got: {fraction} for pool: {parent}"
            )
    return errors
