"""Figures about the files and instants of a table, by which its services are decided."""

from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Double,
    Select,
    and_,
    cast,
    exists,
    func,
    or_,
    select,
    true,
)

from metastore.store.engine.read_set import mark_uncacheable
from metastore.store.schema.snapshot import data_files, lake_partitions
from metastore.store.schema.table_services import service_jobs
from metastore.store.schema.timeline import instant_plans, instants
from metastore.store.snapshot.data_files import Kind

_SUPERSEDED = data_files.c.removed_at.is_not(None)
_LIVE = data_files.c.removed_at.is_(None)


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


def logs(tx: Connection, table_id: int, tombstones: bytes) -> LogFigures:
    """The log files to merge. `tombstones`: the statistics of log files that nobody has to merge."""
    mark_uncacheable()
    merges = and_(data_files.c.kind == Kind.LOG, data_files.c.statistics.is_distinct_from(tombstones))
    of_base = data_files.c.kind == Kind.BASE
    by_group = (
        select(
            data_files.c.partition_name,
            data_files.c.file_group,
            func.count().filter(merges).label("logs"),
            func.sum(data_files.c.size).filter(merges).label("log_size"),
            func.sum(data_files.c.size).filter(of_base).label("base_size"),
            func.min(data_files.c.added_at).filter(merges).label("first"),
        )
        .where(data_files.c.table_id == table_id, _LIVE)
        .group_by(data_files.c.partition_name, data_files.c.file_group)
        .subquery()
    )
    planned = _planned_groups(table_id).subquery()
    in_plan = exists().where(
        planned.c.partition_name == by_group.c.partition_name, planned.c.file_group == by_group.c.file_group
    )
    query = select(
        _sum(by_group.c.logs),
        _sum(by_group.c.log_size),
        func.count(),
        _sum(by_group.c.base_size),
        func.min(by_group.c.first),
    ).where(by_group.c.logs > 0, ~in_plan)
    return LogFigures(*tx.execute(query).one())


def base_files(tx: Connection, table_id: int) -> tuple[int, int]:
    """The number of base files in the latest snapshot, and their bytes."""
    mark_uncacheable()
    query = select(func.count(), _sum(data_files.c.size))
    row = tx.execute(query.where(data_files.c.table_id == table_id, _LIVE, data_files.c.kind == Kind.BASE)).one()
    return row[0], row[1]


def small(tx: Connection, table_id: int, below: int, target: int) -> SmallFigures:
    """The base files smaller than `below` bytes of each partition that would become fewer files of `target` bytes.

    Partitions that a pending plan names are left out, and those with files that others must merge.
    """
    mark_uncacheable()
    is_small = data_files.c.size < below
    by_partition = (
        _whole_partitions(table_id)
        .add_columns(func.count().filter(is_small).label("files"), _sum(data_files.c.size, is_small).label("size"))
        .subquery()
    )
    become = func.greatest(1, cast(func.round(cast(by_partition.c.size, Double) / target), BigInteger))
    query = select(_sum(by_partition.c.files), _sum(by_partition.c.size), _sum(become))
    return SmallFigures(*tx.execute(query.where(become < by_partition.c.files)).one())


def unordered(tx: Connection, table_id: int, order: bytes) -> tuple[int, int]:
    """The base files whose statistics don't say this order: their number and bytes, as `small` of whole partitions."""
    mark_uncacheable()
    other = data_files.c.statistics.is_distinct_from(order)
    by_partition = (
        _whole_partitions(table_id)
        .add_columns(func.count().filter(other).label("files"), _sum(data_files.c.size, other).label("size"))
        .subquery()
    )
    row = tx.execute(select(_sum(by_partition.c.files), _sum(by_partition.c.size))).one()
    return row[0], row[1]


def _whole_partitions(table_id: int) -> Select[Any]:
    """Selects the partitions that a clustering may rewrite."""
    whole = and_(data_files.c.kind == Kind.BASE, data_files.c.columns.is_(None))
    planned = _planned_groups(table_id).subquery()
    return (
        select(data_files.c.partition_name)
        .where(data_files.c.table_id == table_id, _LIVE)
        .where(~exists().where(planned.c.partition_name == data_files.c.partition_name))
        .group_by(data_files.c.partition_name)
        .having(func.bool_and(whole))
    )


def _planned_groups(table_id: int) -> Select[Any]:
    return (
        select(instant_plans.c.partition_name, instant_plans.c.file_group)
        .join(instants, instants.c.id == instant_plans.c.instant_id)
        .where(instants.c.table_id == table_id, instants.c.position.is_(None), instants.c.planned)
    )


def delta_commits(tx: Connection, table_id: int) -> int:
    """The delta commits that completed since the last compaction was planned."""
    mark_uncacheable()
    own = instants.c.table_id == table_id
    last = select(func.max(instants.c.read_position)).where(own, instants.c.begun_as == "compaction")
    query = (
        select(func.count())
        .select_from(instants)
        .where(
            own,
            instants.c.begun_as == "deltacommit",
            instants.c.undone_by.is_(None),
            instants.c.position > func.coalesce(last.scalar_subquery(), 0),
        )
    )
    return tx.execute(query).scalar_one()


def unpublished(tx: Connection, table_id: int, tombstones: bytes, *, together: bool) -> tuple[int, int]:
    """Partitions of a keyed table whose latest rows Hive doesn't have, and could have: none has log files to merge.

    Returns their number, and the commits since the position that Hive sees of the oldest of them. `tombstones`: the
    statistics of log files that nobody has to merge. `together`: all are published, or none.
    """
    mark_uncacheable()
    own = lake_partitions.c
    merges = exists().where(
        data_files.c.table_id == table_id,
        _LIVE,
        data_files.c.partition_name == own.name,
        data_files.c.kind == Kind.LOG,
        data_files.c.statistics.is_distinct_from(tombstones),
    )
    seen = func.coalesce(own.published_at, 0)
    behind = select(func.count(), func.count().filter(merges), func.min(seen).filter(~merges)).where(
        own.table_id == table_id, own.changed_at > seen, or_(own.published_at.is_not(None), own.files > 0)
    )
    partitions, unmerged, oldest = tx.execute(behind).one()
    if oldest is None or (together and unmerged):
        return 0, 0
    commits = select(func.count()).where(
        instants.c.table_id == table_id,
        instants.c.begun_as.in_(("commit", "deltacommit", "replacecommit", "rollback", "restore")),
        instants.c.position > oldest,
    )
    return partitions - unmerged, tx.execute(commits).scalar_one()


def first_superseded_at(tx: Connection, table_id: int) -> int | None:
    """The first position that superseded a file which is still there; None without one."""
    mark_uncacheable()
    query = select(func.min(data_files.c.removed_at)).where(data_files.c.table_id == table_id, _SUPERSEDED)
    return tx.execute(query).scalar()


def completed_at(tx: Connection, table_id: int, position: int) -> int:
    """When a position was reached, in milliseconds since 1970; 0 if that is no longer known, since it is long ago."""
    mark_uncacheable()
    query = select(instants.c.changed_at).where(instants.c.table_id == table_id, instants.c.position == position)
    return tx.execute(query).scalar() or 0


def plans(tx: Connection, table_id: int, limit: int) -> list[PlanRow]:
    """The plans of a table that aren't completed, the oldest first."""
    mark_uncacheable()
    jobs = service_jobs.c
    of_plan = select(
        jobs.state, cast(func.floor(func.extract("epoch", jobs.finished_at) * 1000), BigInteger).label("at")
    )
    last = (
        of_plan.where(jobs.table_id == instants.c.table_id, jobs.instant == instants.c.timestamp)
        .order_by(jobs.id.desc())
        .limit(1)
        .lateral("job")
    )
    groups = select(func.count()).select_from(instant_plans).where(instant_plans.c.instant_id == instants.c.id)
    query = (
        select(
            instants.c.timestamp,
            instants.c.begun_as,
            instants.c.state,
            instants.c.requested_at,
            groups.scalar_subquery(),
            last.c.state,
            last.c.at,
        )
        .outerjoin(last, true())
        .where(instants.c.table_id == table_id, instants.c.position.is_(None), instants.c.planned)
        .order_by(instants.c.timestamp)
        .limit(limit)
    )
    return [PlanRow(*row) for row in tx.execute(query)]


def _sum(column: ColumnElement[Any], condition: ColumnElement[bool] | None = None) -> ColumnElement[int]:
    summed = func.sum(column)
    return cast(func.coalesce(summed if condition is None else summed.filter(condition), 0), BigInteger)
