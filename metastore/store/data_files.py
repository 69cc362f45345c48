"""Which files made up the snapshots of lake tables, from which position to which."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from operator import attrgetter
from typing import Any, NamedTuple

from psycopg2.extras import execute_values
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    and_,
    bindparam,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by, insert

from metastore.store.predicates import Predicate, to_sql
from metastore.store.prepared import Prepared
from metastore.store.schema import data_files, lake_partitions, leftover_files

WHOLE_TABLE = ""
"""The name of the one partition of a table without partition keys."""


class Kind(IntEnum):
    """What a file of a slice is."""

    BASE = 0
    LOG = 1


class NewFile(NamedTuple):
    """A file that joins the snapshot. Sizes in bytes, event times in milliseconds since 1970."""

    partition: str
    file_group: str
    slice: str
    kind: Kind
    version: int
    path: str
    size: int
    rows: int | None = None
    min_event_time: int | None = None
    max_event_time: int | None = None
    columns: Sequence[str] | None = None
    statistics: bytes | None = None


class FileRow(NamedTuple):
    """A file as it is kept: it belongs to the snapshots from `added_at` on and before `removed_at`."""

    id: int
    partition: str
    file_group: str
    slice: str
    kind: int
    version: int
    path: str
    size: int
    rows: int | None
    min_event_time: int | None
    max_event_time: int | None
    columns: list[str] | None
    statistics: bytes | None
    added_at: int
    removed_at: int | None


_COLUMNS = (
    data_files.c.id,
    data_files.c.partition_name,
    data_files.c.file_group,
    data_files.c.slice,
    data_files.c.kind,
    data_files.c.version,
    data_files.c.path,
    data_files.c.size,
    data_files.c.row_count,
    data_files.c.min_event_time,
    data_files.c.max_event_time,
    data_files.c.columns,
    data_files.c.statistics,
    data_files.c.added_at,
    data_files.c.removed_at,
)
_ORDER = (
    data_files.c.partition_name,
    data_files.c.file_group,
    data_files.c.slice,
    data_files.c.kind,
    data_files.c.version,
    data_files.c.id,
)
_LIVE = data_files.c.removed_at.is_(None)


def _rows(tx: Connection, query: Select[Any]) -> list[FileRow]:
    return [FileRow(*row) for row in tx.execute(query)]


def _of(table_id: int) -> ColumnElement[bool]:
    return data_files.c.table_id == table_id


def _path_is(paths: Collection[str]) -> ColumnElement[bool]:
    """By the index of hashes, since paths may be longer than an index takes."""
    hashes = select(func.md5(func.unnest(list(paths)))).scalar_subquery()
    return and_(func.md5(data_files.c.path).in_(hashes), data_files.c.path == func.any(list(paths)))


# --- writing --------------------------------------------------------------------------------------------------


def add(tx: Connection, table_id: int, position: int, files: Iterable[NewFile]) -> None:
    """Adds files to the snapshot from a position on."""
    rows = [
        (
            table_id,
            each.partition,
            each.file_group,
            each.slice,
            int(each.kind),
            each.version,
            each.path,
            each.size,
            each.rows,
            each.min_event_time,
            each.max_event_time,
            None if each.columns is None else list(each.columns),
            each.statistics,
            position,
        )
        for each in files
    ]
    if not rows:
        return
    cursor = tx.connection.cursor()
    try:
        execute_values(
            cursor,
            "INSERT INTO data_files (table_id, partition_name, file_group, slice, kind, version, path, size, row_count,"
            " min_event_time, max_event_time, columns, statistics, added_at) VALUES %s",
            rows,
            template="(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::text[], %s, %s)",
            page_size=1_000,
        )
    finally:
        cursor.close()


def close(tx: Connection, file_ids: Collection[int], position: int) -> None:
    """Takes files out of the snapshot from a position on."""
    if file_ids:
        tx.execute(update(data_files).where(data_files.c.id == func.any(list(file_ids))).values(removed_at=position))


def add_again(tx: Connection, file_ids: Collection[int], position: int) -> None:
    """Puts files that had been removed into the snapshot again, from a position on."""
    if not file_ids:
        return
    same = [column for column in data_files.c if column.name not in ("id", "added_at", "removed_at")]
    query = select(*same, literal(position).label("added_at")).where(data_files.c.id == func.any(list(file_ids)))
    tx.execute(insert(data_files).from_select([*(c.name for c in same), "added_at"], query))


def purge(tx: Connection, table_id: int, file_ids: Collection[int]) -> None:
    """Forgets files that nobody reads any more, and has them deleted."""
    if not file_ids:
        return
    gone = delete(data_files).where(_of(table_id), data_files.c.id == func.any(list(file_ids)))
    paths = tx.execute(gone.returning(data_files.c.path)).scalars().all()
    leave_over(tx, table_id, paths)


class PartitionSums(NamedTuple):
    """What the files of a partition's latest snapshot add up to."""

    name: str
    files: int
    size: int
    rows: int


def count_changes(
    tx: Connection, table_id: int, position: int, changes: Mapping[str, tuple[Sequence[str], int, int, int]]
) -> list[PartitionSums]:
    """Adds to the sums of partitions, given by name as (values, files, size, rows); the new sums."""
    if not changes:
        return []
    statement = insert(lake_partitions).values(
        [
            {
                "table_id": table_id,
                "name": name,
                "values": list(values),
                "files": files,
                "size": size,
                "row_count": rows,
                "changed_at": position,
            }
            for name, (values, files, size, rows) in sorted(changes.items())
        ]
    )
    statement = statement.on_conflict_do_update(
        index_elements=[lake_partitions.c.table_id, lake_partitions.c.name],
        set_={
            "files": lake_partitions.c.files + statement.excluded.files,
            "size": lake_partitions.c.size + statement.excluded.size,
            "row_count": lake_partitions.c.row_count + statement.excluded.row_count,
            "changed_at": statement.excluded.changed_at,
        },
    )
    found = tx.execute(
        statement.returning(
            lake_partitions.c.name, lake_partitions.c.files, lake_partitions.c.size, lake_partitions.c.row_count
        )
    )
    return sorted(PartitionSums(*row) for row in found)


# --- looking up -----------------------------------------------------------------------------------------------


def live_in_partitions(tx: Connection, table_id: int, names: Collection[str]) -> list[FileRow]:
    """The files of partitions' latest snapshot."""
    query = select(*_COLUMNS).where(_of(table_id), _LIVE, data_files.c.partition_name == func.any(list(names)))
    return _rows(tx, query.order_by(*_ORDER))


def live_in_groups(tx: Connection, table_id: int, groups: Collection[tuple[str, str]]) -> list[FileRow]:
    """The files of the latest snapshot of file groups, given as (partition, file group)."""
    found: list[FileRow] = []
    wanted = sorted(groups)
    for start in range(0, len(wanted), 1_000):
        some = wanted[start : start + 1_000]
        pairs = tuple_(data_files.c.partition_name, data_files.c.file_group).in_(some)
        found += _rows(tx, select(*_COLUMNS).where(_of(table_id), _LIVE, pairs).order_by(*_ORDER))
    return found


def live_paths(tx: Connection, table_id: int, paths: Collection[str]) -> list[FileRow]:
    """The files of the latest snapshot with these paths."""
    if not paths:
        return []
    # Neither live ones alone nor in order: Postgres would go through all live ones, in the order of their index, where
    # it doesn't know yet how many there are.
    found = _rows(tx, select(*_COLUMNS).where(_of(table_id), _path_is(paths)))
    place = attrgetter("partition", "file_group", "slice", "kind", "version", "id")
    return sorted((each for each in found if each.removed_at is None), key=place)


def groups_of_removed(tx: Connection, table_id: int, paths: Collection[str], since: int) -> set[tuple[str, str]]:
    """The file groups, as (partition, file group), of files with these paths that were removed after a position."""
    if not paths:
        return set()
    query = select(data_files.c.partition_name, data_files.c.file_group).where(
        _of(table_id), _path_is(paths), data_files.c.removed_at > since
    )
    return {(row[0], row[1]) for row in tx.execute(query)}


def known_paths(tx: Connection, table_id: int, paths: Collection[str]) -> set[str]:
    """Those of some paths that any snapshot has a file of."""
    if not paths:
        return set()
    return set(tx.execute(select(data_files.c.path).where(_of(table_id), _path_is(paths))).scalars())


def partitions_changed_at(tx: Connection, table_id: int, position: int) -> set[str]:
    """The partitions that a completion gave files to or took files from, as far as those haven't been cleaned."""
    found: set[str] = set()
    for at in (data_files.c.added_at, data_files.c.removed_at):
        query = select(data_files.c.partition_name).distinct().where(_of(table_id), at == position)
        found |= set(tx.execute(query).scalars())
    return found


def changed_since(tx: Connection, table_id: int, position: int) -> tuple[list[FileRow], list[FileRow]]:
    """What would have to be undone to come back to a position: live files that were added since, and files that
    belonged to the snapshot then and have been removed since."""
    added = select(*_COLUMNS).where(_of(table_id), _LIVE, data_files.c.added_at > position)
    removed = select(*_COLUMNS).where(
        _of(table_id), data_files.c.added_at <= position, data_files.c.removed_at > position
    )
    return _rows(tx, added.order_by(*_ORDER)), _rows(tx, removed.order_by(*_ORDER))


class Wanted(NamedTuple):
    """Which partitions a reader wants: all, or those of these names; never those that are `hidden` from it."""

    names: Collection[str] | None
    hidden: Collection[str]

    def includes(self, partition: str) -> bool:
        return (self.names is None or partition in self.names) and partition not in self.hidden

    def after(self, partition: str) -> "Wanted":
        """Of the partitions after this one, in the order of names, what is wanted."""
        return Wanted(None if self.names is None else [each for each in self.names if each > partition], self.hidden)

    def condition(self) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = []
        if self.names is not None:
            conditions.append(data_files.c.partition_name == func.any(list(self.names)))
        if self.hidden:
            conditions.append(data_files.c.partition_name != func.all(list(self.hidden)))
        return conditions


def snapshot(
    tx: Connection,
    table_id: int,
    wanted: Wanted,
    position: int | None,
    *,
    base_only: bool = False,
    superseded: bool = False,
    after: tuple[str, str] | None = None,
    limit: int | None = None,
) -> list[FileRow]:
    """The files of the snapshot at a position, None for the latest, ordered by partition, file group, slice.

    `base_only`: no log files; `superseded`: those that were removed before, too; `after`: only file groups after this
    one, given as (partition, file group).
    """
    query = select(*_COLUMNS).where(_of(table_id), *_in_snapshot(position, base_only, superseded)).order_by(*_ORDER)
    if after is None:
        return _rows(tx, query.where(*wanted.condition()).limit(limit))
    # Two ranges of an index in its order: the rest of a partition, then those that follow. Postgres would rather read
    # and sort all of a table that it has no statistics of.
    tx.exec_driver_sql("SET LOCAL enable_sort = off")
    partition, group = after
    found = []
    if wanted.includes(partition):
        rest = query.where(data_files.c.partition_name == partition, data_files.c.file_group > group)
        found = _rows(tx, rest.limit(limit))
    if limit is None or len(found) < limit:
        later = query.where(*wanted.after(partition).condition(), data_files.c.partition_name > partition)
        found += _rows(tx, later.limit(None if limit is None else limit - len(found)))
    tx.exec_driver_sql("SET LOCAL enable_sort TO DEFAULT")
    return found


def snapshot_of_group(
    tx: Connection,
    table_id: int,
    group: tuple[str, str],
    position: int,
    *,
    base_only: bool = False,
    superseded: bool = False,
) -> list[FileRow]:
    """The files of one file group, given as (partition, file group), of the snapshot at a position; as `snapshot`."""
    query = select(*_COLUMNS).where(
        _of(table_id),
        data_files.c.partition_name == group[0],
        data_files.c.file_group == group[1],
        *_in_snapshot(position, base_only, superseded),
    )
    return _rows(tx, query.order_by(*_ORDER))


def _in_snapshot(position: int | None, base_only: bool, superseded: bool) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if position is None:
        if not superseded:
            conditions.append(_LIVE)
    else:
        conditions.append(data_files.c.added_at <= position)
        if not superseded:
            conditions.append(or_(_LIVE, data_files.c.removed_at > position))
    if base_only:
        conditions.append(data_files.c.kind == int(Kind.BASE))
    return conditions


def changes(
    tx: Connection, table_id: int, wanted: Wanted, after: int, up_to: int
) -> tuple[list[FileRow], list[FileRow]]:
    """The files that were added, and those that were removed, after a position up to another."""
    added = select(*_COLUMNS).where(
        _of(table_id), data_files.c.added_at > after, data_files.c.added_at <= up_to, *wanted.condition()
    )
    removed = select(*_COLUMNS).where(
        _of(table_id), data_files.c.removed_at > after, data_files.c.removed_at <= up_to, *wanted.condition()
    )
    return (
        _rows(tx, added.order_by(data_files.c.added_at, *_ORDER)),
        _rows(tx, removed.order_by(data_files.c.removed_at, *_ORDER)),
    )


def partition_names(tx: Connection, table_id: int, predicate: Predicate) -> list[str]:
    """The partitions that ever had files and for which a filter holds."""
    query = select(lake_partitions.c.name).where(
        lake_partitions.c.table_id == table_id, to_sql(predicate, lake_partitions.c["values"])
    )
    return list(tx.execute(query.order_by(lake_partitions.c.name)).scalars())


def sums(tx: Connection, table_id: int, names: Collection[str] | None = None) -> list[PartitionSums]:
    """What the files of each partition's latest snapshot add up to; of all that ever had files, or of those named."""
    query = select(
        lake_partitions.c.name, lake_partitions.c.files, lake_partitions.c.size, lake_partitions.c.row_count
    ).where(lake_partitions.c.table_id == table_id)
    if names is not None:
        query = query.where(lake_partitions.c.name == func.any(list(names)))
    return [PartitionSums(*row) for row in tx.execute(query.order_by(lake_partitions.c.name))]


def paths_if_any_below(tx: Connection, table_id: int, names: Collection[str], place: str) -> list[str]:
    """The paths of all files that partitions ever had, of those partitions that had one below a place."""
    wanted = [_of(table_id), data_files.c.partition_name == func.any(list(names))]
    some = select(data_files.c.partition_name).where(*wanted, func.starts_with(data_files.c.path, f"{place}/"))
    query = select(data_files.c.path).where(*wanted, data_files.c.partition_name.in_(some))
    return list(tx.execute(query).scalars())


def forget_partitions(tx: Connection, table_id: int, names: Collection[str]) -> None:
    """Forgets every file that partitions ever had."""
    tx.execute(delete(data_files).where(_of(table_id), data_files.c.partition_name == func.any(list(names))))


# --- cleaning -------------------------------------------------------------------------------------------------


def _unneeded(table_id: int, saved: Collection[int]) -> list[ColumnElement[bool]]:
    """Files of no latest snapshot, and of none of the snapshots at `saved` positions."""
    live = data_files.alias("live")
    conditions = [
        _of(table_id),
        data_files.c.removed_at.is_not(None),
        # A log file that grew is there several times.
        ~select(live.c.id)
        .where(
            live.c.table_id == table_id,
            live.c.removed_at.is_(None),
            func.md5(live.c.path) == func.md5(data_files.c.path),
            live.c.path == data_files.c.path,
        )
        .exists(),
    ]
    return conditions + [~and_(data_files.c.added_at <= each, data_files.c.removed_at > each) for each in saved]


def removed_up_to(tx: Connection, table_id: int, position: int, saved: Collection[int], limit: int) -> list[FileRow]:
    """Files that nobody needs who reads at a position or later, or at one of the `saved` ones."""
    query = select(*_COLUMNS).where(*_unneeded(table_id, saved), data_files.c.removed_at <= position)
    return _rows(tx, query.order_by(data_files.c.removed_at, *_ORDER).limit(limit))


def beyond_versions(tx: Connection, table_id: int, keep: int, saved: Collection[int], limit: int) -> list[FileRow]:
    """Files of all but the latest `keep` slices of each file group, and but for the `saved` positions.

    Of a group that was replaced altogether, what replaced it counts as the latest.
    """
    slices = func.array_agg(aggregate_order_by(data_files.c.slice.distinct(), data_files.c.slice.desc()))
    versions = (
        select(
            data_files.c.partition_name,
            data_files.c.file_group,
            slices.label("slices"),
            func.bool_or(_LIVE).label("lives"),
        )
        .where(_of(table_id))
        .group_by(data_files.c.partition_name, data_files.c.file_group)
        .subquery()
    )
    older = text(
        "data_files.slice <> ALL(versions.slices[1 : :keep - CASE WHEN versions.lives THEN 0 ELSE 1 END])"
    ).bindparams(keep=keep)
    named = versions.alias("versions")
    query = (
        select(*_COLUMNS)
        .join(
            named,
            and_(named.c.partition_name == data_files.c.partition_name, named.c.file_group == data_files.c.file_group),
        )
        .where(*_unneeded(table_id, saved), older)
    )
    return _rows(tx, query.order_by(data_files.c.removed_at, *_ORDER).limit(limit))


def unneeded_paths(tx: Connection, table_id: int, paths: Collection[str], saved: Collection[int]) -> list[FileRow]:
    """The files with these paths that are in no latest snapshot and in none at a `saved` position."""
    if not paths:
        return []
    return _rows(tx, select(*_COLUMNS).where(*_unneeded(table_id, saved), _path_is(paths)).order_by(*_ORDER))


# --- files that are to be deleted -----------------------------------------------------------------------------


def leave_over(tx: Connection, table_id: int, paths: Iterable[str], instant_id: int | None = None) -> None:
    """Has files deleted: at once, or when an instant is gone that isn't completed."""
    rows = [{"table_id": table_id, "instant_id": instant_id, "path": path} for path in sorted(set(paths))]
    if rows:
        tx.execute(insert(leftover_files), rows)


def forget_leftovers_of(tx: Connection, instant_id: int) -> None:
    """Keeps the files of an instant after all."""
    _FORGET.execute(tx, {"instant_id": instant_id})


_FORGET = Prepared(delete(leftover_files).where(leftover_files.c.instant_id == bindparam("instant_id")))


class Leftover(NamedTuple):
    """A file that is to be deleted, by its path below its table's location."""

    id: int
    table_id: int
    path: str


def leftovers(tx: Connection, limit: int) -> list[Leftover]:
    """Files to be deleted, held until the transaction ends."""
    return [Leftover(*row) for row in _LEFTOVERS.all(tx, {"limit": limit})]


_LEFTOVERS = Prepared(
    select(leftover_files.c.id, leftover_files.c.table_id, leftover_files.c.path)
    .where(leftover_files.c.instant_id.is_(None))
    .order_by(leftover_files.c.id)
    .limit(bindparam("limit", type_=Integer))
    .with_for_update(skip_locked=True)
)


def forget_leftover(tx: Connection, table_id: int, path: str) -> bool:
    """Forgets that a file, or a directory, of a table is to be deleted; whether it was."""
    gone = delete(leftover_files).where(leftover_files.c.table_id == table_id, leftover_files.c.path == path)
    return bool(tx.execute(gone).rowcount)


def forget_leftovers(tx: Connection, ids: Collection[int]) -> None:
    """Forgets files that have been deleted."""
    tx.execute(delete(leftover_files).where(leftover_files.c.id == func.any(list(ids))))
