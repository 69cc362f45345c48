"""The files of lake tables' snapshots. Each row says from which position to which a file belongs to the snapshot."""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import IntEnum
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    LargeBinary,
    Select,
    Text,
    and_,
    any_,
    bindparam,
    cast,
    column,
    delete,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
    true,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by, insert

from metastore.postgres.prepared import Call, Prepared, execute_all, few
from metastore.store.engine import bulk, read_set
from metastore.store.engine.names import TableName
from metastore.store.engine.predicates import Predicate, to_sql
from metastore.store.files.attempts import is_due
from metastore.store.schema.catalog import catalogs, databases
from metastore.store.schema.partition import partitions
from metastore.store.schema.snapshot import data_files, lake_partitions, pending_deletions
from metastore.store.schema.table import tables
from metastore.store.schema.timeline import instant_plans, instants

WHOLE_TABLE = ""
"""The partition name for the files of an unpartitioned table."""


class Kind(IntEnum):
    """The kind of a file in a slice: base file or log file."""

    BASE = 0
    LOG = 1


class NewFile(NamedTuple):
    """A file that joins the snapshot.

    `path`: relative to the table. `size`: in bytes. Event times are in milliseconds since 1970. `columns`: the columns
    that the file has; None means all.
    """

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
    """A stored file. It belongs to the snapshots from position `added_at` on, and before position `removed_at`.

    `first_added_at`: of a file that a rollback brought back, the position at which it was added at first.
    """

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
    first_added_at: int | None


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
    data_files.c.first_added_at,
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
    """Uses the index on hashes of paths, since a path may be too long for an index."""
    hashes = select(func.md5(func.unnest(list(paths)))).scalar_subquery()
    return and_(func.md5(data_files.c.path).in_(hashes), data_files.c.path == func.any(list(paths)))


# --- writing --------------------------------------------------------------------------------------------------


def to_add(table_id: int, position: int, files: Iterable[NewFile]) -> list[Call]:
    """What adds files to the snapshot from a position on."""
    rows = [
        (
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
            None if each.columns is None else bulk.array(each.columns),
            each.statistics,
        )
        for each in files
    ]
    if not rows:
        return []
    columns = dict(zip(_ADDED, map(list, zip(*rows, strict=True)), strict=True))
    return [Call(_ADD, {"table_id": table_id, "position": position, **columns})]


_ADDED = {
    "partition_names": Text,
    "file_groups": Text,
    "slices": Text,
    "kinds": Integer,
    "versions": Integer,
    "paths": Text,
    "sizes": BigInteger,
    "row_counts": BigInteger,
    "min_event_times": BigInteger,
    "max_event_times": BigInteger,
    "columns": Text,
    "statistics": LargeBinary,
}
_ADD = Prepared(
    text(
        "INSERT INTO data_files (table_id, partition_name, file_group, slice, kind, version, path, size, row_count,"
        " min_event_time, max_event_time, columns, statistics, added_at)"
        " SELECT :table_id, n.partition_name, n.file_group, n.slice, n.kind, n.version, n.path, n.size, n.row_count,"
        " n.min_event_time, n.max_event_time, CAST(n.columns AS text[]), n.statistics, :position"
        f" FROM unnest({', '.join(f':{name}' for name in _ADDED)}) AS n (partition_name, file_group, slice, kind,"
        " version, path, size, row_count, min_event_time, max_event_time, columns, statistics)"
    ).bindparams(
        bindparam("table_id", type_=BigInteger),
        bindparam("position", type_=BigInteger),
        *(bindparam(name, type_=ARRAY(type_)) for name, type_ in _ADDED.items()),
    )
)


def to_close(file_ids: Collection[int], position: int) -> list[Call]:
    """What removes files from the snapshot from a position on."""
    return [Call(_CLOSE, {"file_ids": list(file_ids), "removed_at": position})] if file_ids else []


_CLOSE = Prepared(update(data_files).where(data_files.c.id == any_(few("file_ids", BigInteger))), ("removed_at",))


def add_again(tx: Connection, file_ids: Collection[int], position: int) -> None:
    """Adds removed files to the snapshot once more, from a position on. What they hold is as old as it was."""
    if not file_ids:
        return
    changed = ("added_at", "first_added_at")
    same = [column for column in data_files.c if column.name not in ("id", "removed_at", *changed)]
    first = func.coalesce(data_files.c.first_added_at, data_files.c.added_at)
    query = select(*same, literal(position), first).where(data_files.c.id == func.any(list(file_ids)))
    tx.execute(insert(data_files).from_select([*(c.name for c in same), *changed], query))


def purge(tx: Connection, table_id: int, file_ids: Collection[int]) -> None:
    """Removes the rows of files that no snapshot needs, and schedules the deletion of the files."""
    if not file_ids:
        return
    gone = delete(data_files).where(_of(table_id), data_files.c.id == func.any(list(file_ids)))
    paths = tx.execute(gone.returning(data_files.c.path)).scalars().all()
    schedule_deletion(tx, table_id, paths)


class PartitionSums(NamedTuple):
    """The sums over the files of a partition's latest snapshot: number, bytes, rows of base files."""

    name: str
    files: int
    size: int
    rows: int


def count_changes(
    tx: Connection,
    table_id: int,
    position: int,
    changes: Mapping[str, tuple[Sequence[str], int, int, int]],
    *,
    after: Sequence[Call] = (),
) -> list[PartitionSums]:
    """Adds differences to partitions' sums, given by name as (values, files, size, rows). Returns the new sums.

    `after`: what makes the changes, executed before and in the same message.
    """
    if not changes:
        execute_all(tx, after)
        return []
    # In the order of names, as everybody locks them.
    rows = [(name, bulk.array(values), *sums) for name, (values, *sums) in sorted(changes.items())]
    names = ("names", "values_of_each", "files", "sizes", "row_counts")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    found = _COUNT_CHANGES.all(tx, {"table_id": table_id, "position": position, **columns}, after=after)
    return sorted(PartitionSums(*row) for row in found)


_COUNT_CHANGES = Prepared(
    text(
        'INSERT INTO lake_partitions (table_id, name, "values", files, size, row_count, changed_at)'
        " SELECT :table_id, n.name, CAST(n.of_each AS text[]), n.files, n.size, n.row_count, :position"
        " FROM unnest(:names, :values_of_each, :files, :sizes, :row_counts)"
        " AS n (name, of_each, files, size, row_count)"
        " ON CONFLICT (table_id, name) DO UPDATE SET files = lake_partitions.files + excluded.files,"
        " size = lake_partitions.size + excluded.size,"
        " row_count = lake_partitions.row_count + excluded.row_count, changed_at = excluded.changed_at"
        " RETURNING name, files, size, row_count"
    ).bindparams(
        bindparam("table_id", type_=BigInteger),
        bindparam("position", type_=BigInteger),
        *(bindparam(name, type_=ARRAY(Text)) for name in ("names", "values_of_each")),
        *(bindparam(name, type_=ARRAY(BigInteger)) for name in ("files", "sizes", "row_counts")),
    )
)


def put_published(tx: Connection, table_id: int, names: Collection[str], position: int) -> None:
    """Stores which position of some partitions Hive sees from now on."""
    tx.execute(
        update(lake_partitions)
        .where(lake_partitions.c.table_id == table_id, lake_partitions.c.name == func.any(list(names)))
        .values(published_at=position)
    )


# --- looking up -----------------------------------------------------------------------------------------------


def live_in_partitions(tx: Connection, table_id: int, names: Collection[str]) -> list[FileRow]:
    """The files of some partitions in the latest snapshot."""
    query = select(*_COLUMNS).where(_of(table_id), _LIVE, data_files.c.partition_name == func.any(list(names)))
    return _rows(tx, query.order_by(*_ORDER))


def has_live(tx: Connection, table_id: int, *, up_to: int | None = None) -> bool:
    """Whether a table's latest snapshot has a file, with `up_to` one that was added up to that position."""
    query = select(data_files.c.id).where(_of(table_id), _LIVE)
    if up_to is not None:
        query = query.where(data_files.c.added_at <= up_to)
    return bool(tx.execute(select(query.exists())).scalar())


def live_in_groups(tx: Connection, table_id: int, groups: Collection[tuple[str, str]]) -> list[FileRow]:
    """The files of some file groups, given as (partition, file group), in the latest snapshot."""
    if not groups:
        return []
    names, file_groups = map(list, zip(*sorted(groups), strict=True))
    found = _LIVE_IN_GROUPS.all(tx, {"table_id": table_id, "partitions": names, "file_groups": file_groups})
    return [_file(row) for row in found]


def _looked_up(wanted: FromClause, name: str, *conditions: ColumnElement[bool]) -> Select[Any]:
    """The files of a table that satisfy the conditions for a row of `wanted`, by one look at an index for each row.

    OFFSET keeps Postgres from joining the rows with all of the table's files, as it would without statistics of it.
    """
    found = select(*_COLUMNS).where(data_files.c.table_id == bindparam("table_id"), *conditions)
    each = found.offset(literal_column("0")).correlate(wanted).lateral(name)
    return select(each).join_from(wanted, each, true())


_GROUPS = (
    func.unnest(few("partitions", Text), few("file_groups", Text))
    .table_valued(column("partition_name", Text), column("file_group", Text), name="wanted")
    .render_derived()
)
_LIVE_OF_GROUPS = _looked_up(
    _GROUPS,
    "found",
    _LIVE,
    data_files.c.partition_name == _GROUPS.c.partition_name,
    data_files.c.file_group == _GROUPS.c.file_group,
)
_LIVE_IN_GROUPS = Prepared(_LIVE_OF_GROUPS.order_by(*(_LIVE_OF_GROUPS.selected_columns[each.name] for each in _ORDER)))


def live_in_groups_or_with_paths(
    tx: Connection, table_id: int, groups: Collection[tuple[str, str]], paths: Collection[str]
) -> list[FileRow]:
    """What `live_in_groups` and `with_paths` find, each file once, in the order of `live_in_groups`."""
    if not groups and not paths:
        return []
    names, file_groups = map(list, zip(*groups, strict=True)) if groups else ([], [])
    values = {"table_id": table_id, "partitions": names, "file_groups": file_groups, "hashes": _hashes(paths)}
    found = {row.id: _file(row) for row in _LIVE_IN_GROUPS_OR_WITH_PATHS.all(tx, values)}
    return sorted((each for each in found.values() if each.removed_at is None or each.path in paths), key=_PLACE)


def live_paths(tx: Connection, table_id: int, paths: Collection[str]) -> list[FileRow]:
    """The files with these paths in the latest snapshot."""
    if not paths:
        return []
    # Filtered and sorted here: without statistics of the table, Postgres would scan the index of all live files.
    return sorted((each for each in with_paths(tx, table_id, paths) if each.removed_at is None), key=_PLACE)


def with_paths(tx: Connection, table_id: int, paths: Collection[str]) -> list[FileRow]:
    """The files with these paths in any snapshot; a path has several rows if a rollback brought its file back."""
    if not paths:
        return []
    found = _WITH_PATHS.all(tx, {"table_id": table_id, "hashes": _hashes(paths)})
    return [_file(row) for row in found if row.path in paths]


_PLACE = attrgetter("partition", "file_group", "slice", "kind", "version", "id")


def _hashes(paths: Iterable[str]) -> list[str]:
    """The hashes of paths that an index has, since a path may be too long for an index. Of each path one."""
    return [hashlib.md5(path.encode(), usedforsecurity=False).hexdigest() for path in dict.fromkeys(paths)]


def _file(row: Any) -> FileRow:
    """A row of a prepared statement, whose bytes are a memoryview."""
    found = FileRow(*row)
    return found if found.statistics is None else found._replace(statistics=bytes(found.statistics))


_HASHES = func.unnest(few("hashes", Text)).table_valued(column("hash", Text), name="wanted_paths").render_derived()
_WITH_HASHES = _looked_up(_HASHES, "with_path", func.md5(data_files.c.path) == _HASHES.c.hash)
_WITH_PATHS = Prepared(_WITH_HASHES)
_LIVE_IN_GROUPS_OR_WITH_PATHS = Prepared(union_all(_LIVE_OF_GROUPS, _WITH_HASHES))


def groups_of_removed(tx: Connection, table_id: int, paths: Collection[str], since: int) -> set[tuple[str, str]]:
    """The file groups, as (partition, file group), of files with these paths that were removed after a position."""
    if not paths:
        return set()
    query = select(data_files.c.partition_name, data_files.c.file_group).where(
        _of(table_id), _path_is(paths), data_files.c.removed_at > since
    )
    return {(row[0], row[1]) for row in tx.execute(query)}


def known_paths(tx: Connection, table_id: int, paths: Collection[str]) -> set[str]:
    """The ones among some paths that belong to a file of any snapshot."""
    if not paths:
        return set()
    return set(tx.execute(select(data_files.c.path).where(_of(table_id), _path_is(paths))).scalars())


def paths_of_partitions(tx: Connection, table_id: int, names: Collection[str]) -> set[str]:
    """The paths of all files of some partitions in any snapshot."""
    query = select(data_files.c.path).where(_of(table_id), data_files.c.partition_name == func.any(list(names)))
    return set(tx.execute(query).scalars())


def partitions_changed_at(tx: Connection, table_id: int, position: int) -> set[str]:
    """The partitions whose files changed with a completion, as far as the files' rows haven't been cleaned."""
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
    found: set[str] = set()
    for at in (data_files.c.added_at, data_files.c.removed_at):
        query = select(data_files.c.partition_name).distinct().where(_of(table_id), at == position)
        found |= set(tx.execute(query).scalars())
    return found


def changed_since(tx: Connection, table_id: int, position: int) -> tuple[list[FileRow], list[FileRow]]:
    """The changes since a position: live files that were added since, and files that were removed since."""
    added = select(*_COLUMNS).where(_of(table_id), _LIVE, data_files.c.added_at > position)
    removed = select(*_COLUMNS).where(
        _of(table_id), data_files.c.added_at <= position, data_files.c.removed_at > position
    )
    return _rows(tx, added.order_by(*_ORDER)), _rows(tx, removed.order_by(*_ORDER))


class PartitionSubset(NamedTuple):
    """The partitions that a reader gets: all, or those with these `names`, but never the `hidden` ones."""

    names: Collection[str] | None
    hidden: Collection[str]

    def includes(self, partition: str) -> bool:
        return (self.names is None or partition in self.names) and partition not in self.hidden

    def after(self, partition: str) -> "PartitionSubset":
        """The same subset without the partitions up to this one, in the order of names."""
        return PartitionSubset(
            None if self.names is None else [each for each in self.names if each > partition], self.hidden
        )

    def condition(self) -> list[ColumnElement[bool]]:
        """The SQL conditions on `data_files`."""
        conditions: list[ColumnElement[bool]] = []
        if self.names is not None:
            conditions.append(data_files.c.partition_name == func.any(list(self.names)))
        if self.hidden:
            conditions.append(data_files.c.partition_name != func.all(list(self.hidden)))
        return conditions


def snapshot(
    tx: Connection,
    table_id: int,
    wanted: PartitionSubset,
    position: int | None,
    *,
    base_only: bool = False,
    superseded: bool = False,
    after: tuple[str, str] | None = None,
    limit: int | None = None,
) -> list[FileRow]:
    """The files of the snapshot at a position, ordered by partition, file group, slice. None is the latest position.

    `base_only`: without log files. `superseded`: also files that were removed before. `after`: only file groups after
    this one, given as (partition, file group).
    """
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
    query = select(*_COLUMNS).where(_of(table_id), *_in_snapshot(position, base_only, superseded)).order_by(*_ORDER)
    if after is None:
        return _rows(tx, query.where(*wanted.condition()).limit(limit))
    # Two index ranges in order: the rest of a partition, then the following ones. Without statistics of the table,
    # Postgres would read and sort all of it instead.
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
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
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
    tx: Connection, table_id: int, wanted: PartitionSubset, after: int, up_to: int
) -> tuple[list[FileRow], list[FileRow]]:
    """The files that were added, and those that were removed, after one position up to another."""
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
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


def between(tx: Connection, table_id: int, wanted: PartitionSubset, first: int, last: int) -> list[FileRow]:
    """The files that were in a snapshot at least at one position from `first` to `last`."""
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
    query = select(*_COLUMNS).where(
        _of(table_id),
        data_files.c.added_at <= last,
        or_(_LIVE, data_files.c.removed_at > first),
        *wanted.condition(),
    )
    return _rows(tx, query.order_by(*_ORDER))


def partition_names(tx: Connection, table_id: int, predicate: Predicate) -> list[str]:
    """The names of the partitions that ever had files, and that satisfy a predicate."""
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
    query = select(lake_partitions.c.name).where(
        lake_partitions.c.table_id == table_id, to_sql(predicate, lake_partitions.c["values"])
    )
    return list(tx.execute(query.order_by(lake_partitions.c.name)).scalars())


def sums(tx: Connection, table_id: int, names: Collection[str] | None = None) -> list[PartitionSums]:
    """The sums of partitions in the latest snapshot: of all that ever had files, or of those with these names."""
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
    query = select(
        lake_partitions.c.name, lake_partitions.c.files, lake_partitions.c.size, lake_partitions.c.row_count
    ).where(lake_partitions.c.table_id == table_id)
    if names is not None:
        query = query.where(lake_partitions.c.name == func.any(list(names)))
    return [PartitionSums(*row) for row in tx.execute(query.order_by(lake_partitions.c.name))]


class PartitionPositions(NamedTuple):
    """The position of the last change of a partition's files, and the one that Hive sees; None: none was published."""

    changed_at: int
    published_at: int | None


def positions(tx: Connection, table_id: int, names: Collection[str]) -> dict[str, PartitionPositions]:
    """The positions of those of some partitions that ever had files, by name."""
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
    query = select(lake_partitions.c.name, lake_partitions.c.changed_at, lake_partitions.c.published_at).where(
        lake_partitions.c.table_id == table_id, lake_partitions.c.name == func.any(list(names))
    )
    return {row[0]: PartitionPositions(row[1], row[2]) for row in tx.execute(query)}


def is_unpublished(tx: Connection, table_id: int, *, only_ready: bool) -> bool:
    """Whether a keyed table has files, and none of its partitions was ever published.

    `only_ready`: the files of uncommitted partitions don't count.
    """
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
    read_set.record_read(read_set.Kind.PARTITIONS, table_id)
    of_table = lake_partitions.c.table_id == table_id
    published = select(lake_partitions.c.name).where(of_table, lake_partitions.c.published_at.is_not(None)).exists()
    files = select(lake_partitions.c.name).where(of_table, lake_partitions.c.files > 0)
    if only_ready:
        hidden = select(partitions.c.id).where(
            partitions.c.table_id == table_id, partitions.c.name == lake_partitions.c.name, ~partitions.c.ready
        )
        files = files.where(~hidden.exists())
    return bool(tx.execute(select(and_(files.exists(), ~published))).scalar())


def any_published(tx: Connection, table_id: int) -> bool:
    """Whether Hive sees files of a keyed table."""
    query = select(lake_partitions.c.name).where(
        lake_partitions.c.table_id == table_id, lake_partitions.c.published_at.is_not(None)
    )
    return tx.execute(query.limit(1)).first() is not None


def paths_if_any_below(tx: Connection, table_id: int, names: Collection[str], place: str) -> list[str]:
    """The paths of all files that partitions ever had; only of partitions with at least one file below `place`."""
    wanted = [_of(table_id), data_files.c.partition_name == func.any(list(names))]
    some = select(data_files.c.partition_name).where(*wanted, func.starts_with(data_files.c.path, f"{place}/"))
    query = select(data_files.c.path).where(*wanted, data_files.c.partition_name.in_(some))
    return list(tx.execute(query).scalars())


def forget_partitions(tx: Connection, table_id: int, names: Collection[str]) -> None:
    """Removes the rows of all files that partitions ever had."""
    tx.execute(delete(data_files).where(_of(table_id), data_files.c.partition_name == func.any(list(names))))


# --- cleaning -------------------------------------------------------------------------------------------------


class Kept(NamedTuple):
    """What cleans keep beside the latest snapshot and the inputs of pending plans.

    `positions`: whose snapshots are kept, because of savepoints and readers. `partitions`: all of whose files are.
    `since`: the position from which on all snapshots are; None for no such position.
    """

    positions: Collection[int]
    partitions: Collection[str]
    since: int | None = None


def _planned(file: FromClause) -> ColumnElement[bool]:
    """Whether an open plan of a table service is to rewrite a file: one that its maker could see."""
    query = (
        select(instant_plans.c.instant_id)
        .join(instants, instants.c.id == instant_plans.c.instant_id)
        .where(
            instants.c.table_id == file.c.table_id,
            instants.c.position.is_(None),
            instants.c.planned,
            instants.c.read_position >= file.c.added_at,
            instants.c.read_position < file.c.removed_at,
            instant_plans.c.partition_name == file.c.partition_name,
            instant_plans.c.file_group == file.c.file_group,
        )
    )
    return query.correlate(file).exists()


def _unneeded(table_id: int, kept: Kept, up_to: int | None = None) -> list[ColumnElement[bool]]:
    """Selects files that neither the latest snapshot needs, nor a pending plan, nor what else is `kept`.

    `up_to`: nor a snapshot from this position on. A log file that grew has several rows with the same path: the file is
    needed if one of them is.
    """
    input = data_files.alias("input")
    conditions = [_of(table_id), data_files.c.removed_at.is_not(None), ~_same_path(input, _planned(input))]
    later = data_files.alias("later")
    lives = later.c.removed_at.is_(None)
    horizon = min((each for each in (up_to, kept.since) if each is not None), default=None)
    conditions.append(~_same_path(later, lives if horizon is None else or_(lives, later.c.removed_at > horizon)))
    if kept.partitions:
        conditions.append(data_files.c.partition_name != func.all(list(kept.partitions)))
    if kept.positions:
        read = data_files.alias("read")
        wanted = func.unnest(cast(list(kept.positions), ARRAY(BigInteger))).table_valued("position")
        saved = wanted.render_derived(name="saved")
        covered = select(saved.c.position).where(
            read.c.added_at <= saved.c.position, read.c.removed_at > saved.c.position
        )
        conditions.append(~_same_path(read, covered.correlate(read).exists()))
    return conditions


def _same_path(other: FromClause, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether a row of the same file, perhaps the same row, satisfies a condition."""
    query = select(other.c.id).where(
        other.c.table_id == data_files.c.table_id,
        func.md5(other.c.path) == func.md5(data_files.c.path),
        other.c.path == data_files.c.path,
        condition,
    )
    return query.correlate(data_files).exists()


def removed_up_to(tx: Connection, table_id: int, position: int, kept: Kept, limit: int) -> list[FileRow]:
    """The files that no snapshot from a position on needs, and nothing that is `kept`."""
    query = select(*_COLUMNS).where(*_unneeded(table_id, kept, position), data_files.c.removed_at <= position)
    return _rows(tx, query.order_by(data_files.c.removed_at, *_ORDER).limit(limit))


def beyond_versions(tx: Connection, table_id: int, keep: int, kept: Kept, limit: int) -> list[FileRow]:
    """The files of all but the latest `keep` slices of each file group, without those that are `kept`.

    If a whole group was replaced, its replacement counts as its latest slice.
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
        .where(*_unneeded(table_id, kept), older)
    )
    return _rows(tx, query.order_by(data_files.c.removed_at, *_ORDER).limit(limit))


def unneeded_paths(tx: Connection, table_id: int, paths: Collection[str], kept: Kept) -> list[FileRow]:
    """The files with these paths that neither the latest snapshot needs, nor a pending plan, nor what is `kept`."""
    if not paths:
        return []
    return _rows(tx, select(*_COLUMNS).where(*_unneeded(table_id, kept), _path_is(paths)).order_by(*_ORDER))


def ids_of_paths(tx: Connection, table_id: int, paths: Collection[str]) -> dict[int, str]:
    """The rows of all snapshots with these paths: paths by id."""
    if not paths:
        return {}
    query = select(data_files.c.id, data_files.c.path).where(_of(table_id), _path_is(paths))
    return {row[0]: row[1] for row in tx.execute(query)}


# --- pending deletions ----------------------------------------------------------------------------------------


def schedule_deletion(tx: Connection, table_id: int, paths: Iterable[str], instant_id: int | None = None) -> None:
    """Schedules the deletion of files: now, or when the given open instant is aborted."""
    rows = [{"table_id": table_id, "instant_id": instant_id, "path": path} for path in sorted(set(paths))]
    if rows:
        tx.execute(insert(pending_deletions), rows)


def schedule_later_deletion(tx: Connection, table_id: int, paths: Iterable[str], seconds: float) -> None:
    """Schedules the deletion of files in so many seconds, at most a day."""
    rows = [{"table_id": table_id, "path": path} for path in sorted(set(paths))]
    if rows:
        due = func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, seconds)
        tx.execute(insert(pending_deletions).values(next_attempt_at=due), rows)


def cancel_deletions_of(tx: Connection, instant_id: int) -> None:
    """Cancels the pending deletions that wait for an instant."""
    _CANCEL.execute(tx, {"instant_id": instant_id})


_CANCEL = Prepared(delete(pending_deletions).where(pending_deletions.c.instant_id == bindparam("instant_id")))


class PendingDeletion(NamedTuple):
    """A file to delete; a directory if `path` ends with `/`. `path`: relative to the table."""

    id: int
    table_id: int
    path: str


def find_pending_deletions(tx: Connection, limit: int) -> list[PendingDeletion]:
    """Pending deletions that are due, locked until the transaction ends, the longest due first."""
    return [PendingDeletion(*row) for row in _PENDING_DELETIONS.all(tx, {"limit": limit})]


_PENDING_DELETIONS = Prepared(
    select(pending_deletions.c.id, pending_deletions.c.table_id, pending_deletions.c.path)
    .where(pending_deletions.c.instant_id.is_(None), is_due(pending_deletions.c.next_attempt_at))
    .order_by(pending_deletions.c.next_attempt_at, pending_deletions.c.id)
    .limit(bindparam("limit", type_=Integer))
    .with_for_update(skip_locked=True)
)


def pending_below(tx: Connection, table_id: int, place: str) -> set[str]:
    """The paths of all pending deletions of a directory and of what is in it; those of directories end with `/`."""
    query = select(pending_deletions.c.path).where(
        pending_deletions.c.table_id == table_id, func.starts_with(pending_deletions.c.path, f"{place}/")
    )
    return set(tx.execute(query).scalars())


def pending_among(tx: Connection, table_id: int, paths: Collection[str]) -> set[str]:
    """The ones among some paths whose files are pending deletions."""
    query = select(pending_deletions.c.path).where(
        pending_deletions.c.table_id == table_id, pending_deletions.c.path == func.any(list(paths))
    )
    return set(tx.execute(query).scalars())


def cancel_deletions_of_directories(tx: Connection, table_id: int, place: str) -> list[str]:
    """Cancels the pending deletions of a directory and of directories below it. Returns their paths, with `/`."""
    gone = delete(pending_deletions).where(
        pending_deletions.c.table_id == table_id,
        func.starts_with(pending_deletions.c.path, f"{place}/"),
        func.right(pending_deletions.c.path, 1) == "/",
    )
    return list(tx.execute(gone.returning(pending_deletions.c.path)).scalars())


def remove_pending_deletions(tx: Connection, ids: Collection[int]) -> None:
    """Removes pending deletions that are done."""
    tx.execute(delete(pending_deletions).where(pending_deletions.c.id == func.any(list(ids))))


def postpone_deletions(tx: Connection, failures: Mapping[int, str]) -> None:
    """Postpones failed deletions, given as errors by id: by 10 s, then twice as long each time, up to a day."""
    bulk.execute_for_rows(
        tx,
        "UPDATE pending_deletions SET attempts = attempts + 1, failure = n.failure, next_attempt_at = clock_timestamp()"
        " + least(interval '10 seconds' * power(2, least(attempts, 20)), interval '1 day')"
        " FROM unnest(%s::bigint[], %s::text[]) AS n (id, failure) WHERE pending_deletions.id = n.id",
        [(file_id, failure[:1_000]) for file_id, failure in failures.items()],
    )


UNDELETABLE_AFTER = 3
"""After so many failed attempts a file is reported as undeletable. It is tried further on."""


class Undeletable(NamedTuple):
    """A table with undeletable files. `files`: how many. The other fields are those of the most often tried file."""

    table: TableName
    files: int
    path: str
    attempts: int
    next_attempt_at: datetime
    failure: str | None


def undeletable(tx: Connection, limit: int) -> list[Undeletable]:
    """The tables with undeletable files, the ones with the most files first."""
    failed = pending_deletions.c.attempts >= UNDELETABLE_AFTER
    files = func.count().over(partition_by=pending_deletions.c.table_id)
    each = (
        select(
            pending_deletions.c.table_id,
            files.label("files"),
            pending_deletions.c.path,
            pending_deletions.c.attempts,
            pending_deletions.c.next_attempt_at,
            pending_deletions.c.failure,
        )
        .where(failed)
        .distinct(pending_deletions.c.table_id)
        .order_by(pending_deletions.c.table_id, pending_deletions.c.attempts.desc(), pending_deletions.c.id)
        .subquery()
    )
    query = (
        select(
            catalogs.c.name,
            databases.c.name,
            tables.c.name,
            each.c.files,
            each.c.path,
            each.c.attempts,
            each.c.next_attempt_at,
            each.c.failure,
        )
        .join(tables, tables.c.id == each.c.table_id)
        .join(databases, databases.c.id == tables.c.database_id)
        .join(catalogs, catalogs.c.id == databases.c.catalog_id)
        .order_by(each.c.files.desc(), each.c.table_id)
        .limit(limit)
    )
    return [Undeletable(TableName(*row[:3]), *row[3:]) for row in tx.execute(query)]


def count_pending_deletions(tx: Connection) -> tuple[int, int]:
    """The number of pending deletions, and how many of them are undeletable."""
    query = select(func.count(), func.count().filter(pending_deletions.c.attempts >= UNDELETABLE_AFTER))
    row = tx.execute(query.where(pending_deletions.c.instant_id.is_(None))).one()
    return row[0], row[1]
