"""Changelogs of keyed tables: files with the rows that a completion changed. They belong to no snapshot."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, or_, select

from metastore.store.engine import read_set
from metastore.store.schema.snapshot import changelog_files, changelogs
from metastore.store.schema.timeline import instants

_FILE = changelog_files.c


class ChangelogFile(NamedTuple):
    """A file with rows of one file group that a completion changed. `path`: relative to the table. `size`: in bytes."""

    partition: str
    file_group: str
    path: str
    size: int
    rows: int | None


def put(tx: Connection, table_id: int, position: int, files: Iterable[ChangelogFile]) -> None:
    """Stores all that a completion changed; no files if it changed no row."""
    tx.execute(insert(changelogs).values(table_id=table_id, position=position))
    rows = [
        {
            "table_id": table_id,
            "position": position,
            "partition_name": each.partition,
            "file_group": each.file_group,
            "path": each.path,
            "size": each.size,
            "row_count": each.rows,
        }
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
    tx: Connection, table_id: int, after: int, up_to: int, partitions: Collection[str] | None
) -> Sequence[tuple[int, ChangelogFile]]:
    """The files of completions after a position up to another, with their positions and in that order.

    `partitions`: of these alone; None for all.
    """
    read_set.record_read(read_set.Kind.TIMELINE, table_id)
    query = select(_FILE.position, _FILE.partition_name, _FILE.file_group, _FILE.path, _FILE.size, _FILE.row_count)
    query = query.where(_FILE.table_id == table_id, _FILE.position > after, _FILE.position <= up_to)
    if partitions is not None:
        query = query.where(_FILE.partition_name == func.any(list(partitions)))
    return [
        (row[0], ChangelogFile(*row[1:]))
        for row in tx.execute(query.order_by(_FILE.position, _FILE.partition_name, _FILE.file_group, _FILE.id))
    ]


def forget(tx: Connection, table_id: int, up_to: int) -> list[str]:
    """Removes the changelogs of the completions up to a position. Returns the paths of their files."""
    tx.execute(delete(changelogs).where(changelogs.c.table_id == table_id, changelogs.c.position <= up_to))
    gone = delete(changelog_files).where(_FILE.table_id == table_id, _FILE.position <= up_to)
    return list(tx.execute(gone.returning(_FILE.path)).scalars())
