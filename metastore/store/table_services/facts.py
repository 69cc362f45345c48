"""Figures about the files and instants of a table, by which its services are decided."""

from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Double,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    cast,
    exists,
    func,
    or_,
    select,
    true,
)

from metastore.postgres.prepared import Prepared
from metastore.store.engine.clock import in_ms
from metastore.store.engine.read_set import mark_uncacheable
from metastore.store.schema.snapshot import data_files, lake_partitions
from metastore.store.schema.table_services import service_jobs
from metastore.store.schema.timeline import instant_plans, instants
from metastore.store.snapshot.data_files import Kind

_TABLE: BindParameter[int] = bindparam("table_id")
_SUPERSEDED = data_files.c.removed_at.is_not(None)
_LIVE = and_(data_files.c.table_id == _TABLE, data_files.c.removed_at.is_(None))
_IS_BASE = data_files.c.kind == int(Kind.BASE)
_MERGES = and_(data_files.c.kind == int(Kind.LOG), data_files.c.statistics.is_distinct_from(bindparam("tombstones")))
"""Log files that somebody has to merge."""

_CHANGES_ROWS = bindparam("actions", ["commit", "deltacommit", "replacecommit", "rollback", "restore"], ARRAY(Text))


class LogFigures(NamedTuple):
    """Log files of the latest snapshot that no pending plan merges, and the base files beside them. Sizes in bytes.

    `first_added_at`: the position at which the oldest of them was added; None without any.
    """

    files: int
    size: int
    groups: int
    merged_size: int
    first_added_at: int | None


class SmallFigures(NamedTuple):
    """Base files of partitions in which small ones could become fewer. Sizes in bytes."""

    files: int
    size: int
    become: int


class PlanRow(NamedTuple):
    """A plan that isn't completed, with the latest job that was to run it. Times in milliseconds since 1970."""

    timestamp: str
    action: str
    state: str
    requested_at: int
    file_groups: int
    job_state: str | None
    job_finished_at: int | None


def _sum(column: ColumnElement[Any], condition: ColumnElement[bool] | None = None) -> ColumnElement[int]:
    summed = func.sum(column)
    return cast(func.coalesce(summed if condition is None else summed.filter(condition), 0), BigInteger)


def _planned_groups() -> Select[*tuple[Any, ...]]:
    return (
        select(instant_plans.c.partition_name, instant_plans.c.file_group)
        .join(instants, instants.c.id == instant_plans.c.instant_id)
        .where(instants.c.table_id == _TABLE, instants.c.position.is_(None), instants.c.planned)
    )


def _logs() -> Select[*tuple[Any, ...]]:
    by_group = (
        select(
            data_files.c.partition_name,
            data_files.c.file_group,
            func.count().filter(_MERGES).label("logs"),
            func.sum(data_files.c.size).filter(_MERGES).label("log_size"),
            func.sum(data_files.c.size).filter(_IS_BASE).label("base_size"),
            func.min(data_files.c.added_at).filter(_MERGES).label("first"),
        )
        .where(_LIVE)
        .group_by(data_files.c.partition_name, data_files.c.file_group)
        .subquery()
    )
    planned = _planned_groups().subquery()
    in_plan = exists().where(
        planned.c.partition_name == by_group.c.partition_name, planned.c.file_group == by_group.c.file_group
    )
    return select(
        _sum(by_group.c.logs).label("files"),
        _sum(by_group.c.log_size).label("size"),
        func.count().label("groups"),
        _sum(by_group.c.base_size).label("merged_size"),
        func.min(by_group.c.first).label("first_added_at"),
    ).where(by_group.c.logs > 0, ~in_plan)


_LOGS = Prepared(_logs())


def logs(tx: Connection, table_id: int, tombstones: bytes) -> LogFigures:
    """The log files to merge. `tombstones`: the statistics of log files that nobody has to merge."""
    mark_uncacheable()
    return LogFigures(*_LOGS.first(tx, {"table_id": table_id, "tombstones": tombstones}))


_BASE_FILES = Prepared(
    select(func.count().label("files"), _sum(data_files.c.size).label("size")).where(_LIVE, _IS_BASE)
)


def base_files(tx: Connection, table_id: int) -> tuple[int, int]:
    """The number of base files in the latest snapshot, and their bytes."""
    mark_uncacheable()
    found = _BASE_FILES.first(tx, {"table_id": table_id})
    return found.files, found.size


def _whole_partitions() -> Select[*tuple[Any, ...]]:
    """Selects the partitions that a clustering may rewrite."""
    whole = and_(_IS_BASE, data_files.c.columns.is_(None))
    planned = _planned_groups().subquery()
    return (
        select(data_files.c.partition_name)
        .where(_LIVE, ~exists().where(planned.c.partition_name == data_files.c.partition_name))
        .group_by(data_files.c.partition_name)
        .having(func.bool_and(whole))
    )


def _small() -> Select[*tuple[Any, ...]]:
    is_small = data_files.c.size < bindparam("below")
    by_partition = (
        _whole_partitions()
        .add_columns(func.count().filter(is_small).label("files"), _sum(data_files.c.size, is_small).label("size"))
        .subquery()
    )
    target = cast(bindparam("target"), Double)
    become = func.greatest(1, cast(func.round(cast(by_partition.c.size, Double) / target), BigInteger))
    return select(
        _sum(by_partition.c.files).label("files"), _sum(by_partition.c.size).label("size"), _sum(become).label("become")
    ).where(become < by_partition.c.files)


_SMALL = Prepared(_small())


def small(tx: Connection, table_id: int, below: int, target: int) -> SmallFigures:
    """The base files smaller than `below` bytes of each partition that would become fewer files of `target` bytes.

    Partitions that a pending plan names are left out, and those with files that others must merge.
    """
    mark_uncacheable()
    return SmallFigures(*_SMALL.first(tx, {"table_id": table_id, "below": below, "target": target}))


def _unordered() -> Select[*tuple[Any, ...]]:
    other = data_files.c.statistics.is_distinct_from(bindparam("order"))
    by_partition = (
        _whole_partitions()
        .add_columns(func.count().filter(other).label("files"), _sum(data_files.c.size, other).label("size"))
        .subquery()
    )
    return select(_sum(by_partition.c.files).label("files"), _sum(by_partition.c.size).label("size"))


_UNORDERED = Prepared(_unordered())


def unordered(tx: Connection, table_id: int, order: bytes) -> tuple[int, int]:
    """The base files whose statistics don't say this order: their number and bytes, as `small` of whole partitions."""
    mark_uncacheable()
    found = _UNORDERED.first(tx, {"table_id": table_id, "order": order})
    return found.files, found.size


def _delta_commits() -> Select[*tuple[Any, ...]]:
    own = instants.c.table_id == _TABLE
    last = select(func.max(instants.c.read_position)).where(own, instants.c.begun_as == "compaction")
    return select(func.count()).where(
        own,
        instants.c.begun_as == "deltacommit",
        instants.c.undone_by.is_(None),
        instants.c.position > func.coalesce(last.scalar_subquery(), 0),
    )


_DELTA_COMMITS = Prepared(_delta_commits())


def delta_commits(tx: Connection, table_id: int) -> int:
    """The delta commits that completed since the last compaction was planned."""
    mark_uncacheable()
    return int(_DELTA_COMMITS.scalar(tx, {"table_id": table_id}))


def _behind() -> Select[*tuple[Any, ...]]:
    own = lake_partitions.c
    merges = exists().where(_LIVE, data_files.c.partition_name == own.name, _MERGES)
    seen = func.coalesce(own.published_at, 0)
    return select(
        func.count().label("partitions"),
        func.count().filter(merges).label("unmerged"),
        func.min(seen).filter(~merges).label("oldest"),
    ).where(own.table_id == _TABLE, own.changed_at > seen, or_(own.published_at.is_not(None), own.files > 0))


_BEHIND = Prepared(_behind())
_COMMITS_SINCE = Prepared(
    select(func.count()).where(
        instants.c.table_id == _TABLE,
        instants.c.begun_as == any_(_CHANGES_ROWS),
        instants.c.position > bindparam("position"),
    )
)


def unpublished(tx: Connection, table_id: int, tombstones: bytes, *, together: bool) -> tuple[int, int]:
    """Partitions of a keyed table whose latest rows Hive doesn't have, and could have: none has log files to merge.

    Returns their number, and the commits since the position that Hive sees of the oldest of them. `tombstones`: the
    statistics of log files that nobody has to merge. `together`: all are published, or none.
    """
    mark_uncacheable()
    partitions, unmerged, oldest = _BEHIND.first(tx, {"table_id": table_id, "tombstones": tombstones})
    if oldest is None or (together and unmerged):
        return 0, 0
    return partitions - unmerged, _COMMITS_SINCE.scalar(tx, {"table_id": table_id, "position": oldest})


_FIRST_SUPERSEDED = Prepared(
    select(func.min(data_files.c.removed_at)).where(data_files.c.table_id == _TABLE, _SUPERSEDED)
)


def first_superseded_at(tx: Connection, table_id: int) -> int | None:
    """The first position that superseded a file which is still there; None without one."""
    mark_uncacheable()
    found: int | None = _FIRST_SUPERSEDED.scalar(tx, {"table_id": table_id})
    return found


_COMPLETED_AT = Prepared(
    select(instants.c.changed_at).where(instants.c.table_id == _TABLE, instants.c.position == bindparam("position"))
)


def completed_at(tx: Connection, table_id: int, position: int) -> int:
    """When a position was reached, in milliseconds since 1970; 0 if that is no longer known, since it is long ago."""
    mark_uncacheable()
    return _COMPLETED_AT.scalar(tx, {"table_id": table_id, "position": position}) or 0


def _plans() -> Select[*tuple[Any, ...]]:
    jobs = service_jobs.c
    of_plan = select(jobs.state, in_ms(jobs.finished_at).label("at"))
    last = (
        of_plan.where(jobs.table_id == instants.c.table_id, jobs.instant == instants.c.timestamp)
        .order_by(jobs.id.desc())
        .limit(1)
        .lateral("job")
    )
    groups = select(func.count()).select_from(instant_plans).where(instant_plans.c.instant_id == instants.c.id)
    return (
        select(
            instants.c.timestamp,
            instants.c.begun_as,
            instants.c.state,
            instants.c.requested_at,
            groups.scalar_subquery().label("file_groups"),
            last.c.state.label("job_state"),
            last.c.at.label("job_finished_at"),
        )
        .outerjoin(last, true())
        .where(instants.c.table_id == _TABLE, instants.c.position.is_(None), instants.c.planned)
        .order_by(instants.c.timestamp)
        .limit(bindparam("most"))
    )


_PLANS = Prepared(_plans())


def plans(tx: Connection, table_id: int, limit: int) -> list[PlanRow]:
    """The plans of a table that aren't completed, the oldest first."""
    mark_uncacheable()
    return [PlanRow(*row) for row in _PLANS.all(tx, {"table_id": table_id, "most": limit})]
