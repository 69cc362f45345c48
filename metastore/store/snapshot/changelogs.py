"""Changelogs of keyed tables: files with the rows that a completion changed. They belong to no snapshot."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, or_, select

from metastore.store.engine import read_set
from metastore.store.schema.snapshot import changelog_files, changelogs
from metastore.store.schema.timeline import instants

_FILE = changelog_files.c


class ChangelogFile(NamedTuple):
    """A file with rows of one file group that the completion at a position changed.

    `timestamp`: of its instant. `path`: relative to the table. `size`: in bytes.
    """

    position: int
    timestamp: str
    partition: str
    file_group: str
    path: str
    size: int
    rows: int | None


_COLUMNS = (
    _FILE.position,
    _FILE.timestamp,
    _FILE.partition_name,
    _FILE.file_group,
    _FILE.path,
    _FILE.size,
    _FILE.row_count,
)


def put(tx: Connection, table_id: int, position: int, files: Iterable[ChangelogFile]) -> None:
    """Stores all that the completion at a position changed; no files if it changed no row."""
    tx.execute(insert(changelogs).values(table_id=table_id, position=position))
    rows = [
        {"table_id": table_id, **{column.name: value for column, value in zip(_COLUMNS, each, strict=True)}}
        for each in files
    ]
    if rows:
        tx.execute(insert(changelog_files), rows)


def cover(tx: Connection, table_id: int, after: int, up_to: int, besides: Collection[str]) -> bool:
    """Whether each completion after a position up to another has a changelog, or began as one of the actions `besides`.

    An instant that has been deleted since has none.
    """
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
    written = select(changelogs.c.position).where(
        changelogs.c.table_id == instants.c.table_id, changelogs.c.position == instants.c.position
    )
    query = select(func.count()).where(
        instants.c.table_id == table_id,
        instants.c.position > after,
        instants.c.position <= up_to,
        or_(instants.c.begun_as.in_(besides), written.exists()),
    )
    return bool(tx.execute(query).scalar_one() == up_to - after)


def between(
    tx: Connection,
    table_id: int,
    after: int,
    up_to: int,
    partitions: Collection[str] | None = None,
    limit: int | None = None,
) -> list[ChangelogFile]:
    """The files of completions after a position up to another, in the order of positions, at most `limit`.

    `partitions`: of these alone; None for all.
    """
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
    query = select(*_COLUMNS).where(_FILE.table_id == table_id, _FILE.position > after, _FILE.position <= up_to)
    if partitions is not None:
        query = query.where(_FILE.partition_name == func.any(list(partitions)))
    ordered = query.order_by(_FILE.position, _FILE.partition_name, _FILE.file_group, _FILE.id).limit(limit)
    return [ChangelogFile(*row) for row in tx.execute(ordered)]


def known_paths(tx: Connection, table_id: int, paths: Collection[str]) -> set[str]:
    """The ones among some paths that are files of a changelog."""
    query = select(_FILE.path).where(_FILE.table_id == table_id, _FILE.path == func.any(list(paths)))
    return set(tx.execute(query).scalars()) if paths else set()


def forget(tx: Connection, table_id: int, up_to: int) -> list[str]:
    """Removes the changelogs of the completions up to a position. Returns the paths of their files."""
    tx.execute(delete(changelogs).where(changelogs.c.table_id == table_id, changelogs.c.position <= up_to))
    gone = delete(changelog_files).where(_FILE.table_id == table_id, _FILE.position <= up_to)
    return list(tx.execute(gone.returning(_FILE.path)).scalars())
