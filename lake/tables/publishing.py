"""Publishes keyed tables: Hive, and whoever lists directories, gets the rows of one position."""

import json
from collections import defaultdict
from typing import NamedTuple

from lake.client.lake_types import Completion, DataFile, Instant, PartitionPositions
from lake.protocol.hive import InvalidOperationException
from lake.tables.buckets import needs_merging
from lake.tables.keyed.files import link_files
from lake.tables.keyed_tables import layout_of
from lake.tables.lake import LakeTable, Snapshot

PUBLISH = "publish"

MAX_ATTEMPTS = 5
"""How often a publish begins anew because files were cleaned, or partitions dropped, while it linked them."""


class Published(NamedTuple):
    """What a publish did. The instant is None if there was nothing to publish.

    `files`: of the published partitions, of which `linked` are hard links, the others copies. `unmerged`: changed
    partitions that were left out, because they have log files that Hive's readers would not merge.
    """

    instant: Instant | None
    partitions: list[str]
    files: int
    linked: int
    unmerged: list[str]

    @property
    def advice(self) -> str | None:
        """What to do about partitions that were left out."""
        if not self.unmerged:
            return None
        return f"{len(self.unmerged)} partitions have log files: compact them (plan_compaction), then publish again"


def publish(
    lake: LakeTable, *, filter: str | None = None, waiting: bool = False, heartbeat_seconds: float = 20.0
) -> Published:
    """Gives Hive the rows of a keyed table's latest position: the partitions that changed since they were published.

    `filter` is on partition keys, in Hive's grammar. With `waiting`, only partitions that are due to turn ready, and
    wait for it (`publish=at-readiness`): these turn ready right after. Partitions with log files are left out: compact
    them before.

    The files of each changed partition become hard links on a local file system, which cost nothing but names. On all
    other storages they are copied, all files of the partition, not only the new ones: that costs as many bytes as
    the partition has, of reading, writing and, until the next publish and its grace, of storage. Files from before a
    column was renamed are written again, since Hive finds columns by their names.

    Of a table whose key is unique over all partitions, all partitions that changed are published together, or none: a
    row that moved would be there twice. So it takes no `filter`.

    Raises NotKeyed, ValueError for such a filter and for column families, InvalidOperationException if others cleaned
    or dropped what is published, again and again, and what the storage raises; then Hive sees what it saw before.
    """
    keyed = lake.schema().keyed_table()
    if keyed is not None and keyed.families:
        raise ValueError(
            f"{lake.name} has column families: Hive's readers find whole rows in a file, and can't join them"
        )
    if filter is not None and keyed is not None and keyed.is_table_wide:
        raise ValueError(f"rows of {lake.name} move between partitions: they are published together, without a filter")
    for number in range(1, MAX_ATTEMPTS + 1):
        snapshot = lake.snapshot(filter=filter, include_uncommitted=True)
        try:
            return _publish(lake, snapshot, filter, heartbeat_seconds, waiting=waiting)
        except (InvalidOperationException, FileNotFoundError):
            if number == MAX_ATTEMPTS or not _is_outdated(lake, snapshot, filter):
                raise
    raise AssertionError("the last attempt returns or raises")


def _publish(
    lake: LakeTable, snapshot: Snapshot, filter: str | None, heartbeat_seconds: float, *, waiting: bool
) -> Published:
    layout = layout_of(lake.name, lake.schema(snapshot.table_version), snapshot.location)
    files: defaultdict[str, list[DataFile]] = defaultdict(list)
    for each in snapshot:
        files[each.partition].append(each)
    changed = {
        name: files[name]
        for name, each in sorted(lake.positions(filter=filter).items())
        if (each.waits or not waiting) and _is_behind(each, snapshot.position, has_files=bool(files[name]))
    }
    unmerged = [name for name, some in changed.items() if needs_merging(some)]
    wanted = {name: some for name, some in changed.items() if name not in unmerged}
    if not wanted or (unmerged and layout.table.is_table_wide):
        return Published(None, [], 0, 0, unmerged)
    with lake.writing(PUBLISH, heartbeat_seconds=heartbeat_seconds) as writing:
        below = [
            (each, f"{name}/{_file(each)}" if name else _file(each))
            for name, some in wanted.items()
            for each in some
            if each.kind == "base"
        ]
        pairs = [
            (layout.uri(each), f"{writing.directory}/{path}") for each, path in below if not layout.is_renamed(each)
        ]
        linked = link_files(pairs)
        for each, path in below:
            if layout.is_renamed(each):
                layout.rewrite(each, f"{writing.directory}/{path}")
        about = {"operation": PUBLISH, "partitions": len(wanted), "files": len(below), "linked": linked}
        done = writing.complete(
            Completion(
                published=[*wanted],
                read_position=snapshot.position,
                metadata=json.dumps(about).encode(),
                layout=layout.table.layout(),
            )
        )
    return Published(done.instant, [*wanted], len(below), linked, unmerged)


def _is_behind(partition: PartitionPositions, position: int, *, has_files: bool) -> bool:
    """Whether Hive sees an older state of a partition than that at a position."""
    if partition.published_at is None:
        return has_files
    return partition.published_at < min(partition.changed_at, position)


def _is_outdated(lake: LakeTable, snapshot: Snapshot, filter: str | None) -> bool:
    """Whether others have cleaned or dropped what is in a snapshot, or published a later one."""
    if lake.position().oldest_readable > snapshot.position:
        return True
    now = lake.positions(filter=filter)
    later = any(each.published_at is not None and each.published_at > snapshot.position for each in now.values())
    return later or any(each.partition not in now for each in snapshot)


def _file(file: DataFile) -> str:
    return file.path.rpartition("/")[2]
