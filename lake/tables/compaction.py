"""Compaction of keyed tables: log files and base files of a bucket become one new base file.

A plan is apart from its run. `plan_compaction` leaves a requested instant that names the buckets; from then on writers'
log files go to a new slice of these. `run_compaction` merges the files before that slice, whenever and wherever it
runs; if it ends halfway, the plan stays. A compaction never makes a writer fail.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from lake.client.lake_types import Completed, Completion, DataFile, FileGroup, Instant, Schema
from lake.tables.buckets import Bucket, BucketWriter, by_bucket, is_tombstones
from lake.tables.keyed_tables import layout_of
from lake.tables.lake import LakeTable

COMPACTION = "compaction"

Task = tuple[Bucket, Sequence[DataFile]]
"""A bucket, and its files that become one."""


class Work(NamedTuple):
    """What a run has to do: tasks, whose files are those of the snapshot at `position`, in the columns of `schema`."""

    writer: BucketWriter
    tasks: Sequence[Task]
    schema: Schema
    position: int


RunTasks = Callable[[Work], Iterable[DataFile]]
"""Runs the tasks of a run, somewhere. Returns the new files of all."""


class Planned(NamedTuple):
    """A plan that was made: its instant and how many buckets it names. Without one, `reason` says why not."""

    instant: Instant | None
    buckets: int
    reason: str


def plan_compaction(
    lake: LakeTable, *, partitions: Sequence[str] | None = None, filter: str | None = None, min_log_files: int = 1
) -> Planned:
    """Plans the compaction of the buckets that have so many log files.

    Give either the names of `partitions` or a `filter` on their keys, in Hive's grammar, or neither for all. Buckets
    that another plan names are left out. Raises NotKeyed.
    """
    snapshot = lake.snapshot(partitions=partitions, filter=filter, include_uncommitted=True)
    layout = layout_of(lake.name, lake.schema(snapshot.table_version), snapshot.location)
    if not layout.table.is_merge_on_read:
        return Planned(None, 0, f"{lake.name} is copy-on-write: it has no log files to compact")
    logs = {
        bucket: sum(each.kind == "log" and not is_tombstones(each) for each in files)
        for bucket, files in by_bucket(snapshot).items()
    }
    enough = {bucket for bucket, count in logs.items() if count >= min_log_files}
    if not enough:
        most = max(logs.values(), default=0)
        return Planned(None, 0, f"no bucket has {min_log_files} log files: the most are {most}")
    pending = {Bucket(*each) for each in lake.planned_groups()}
    groups = sorted(enough - pending)
    if not groups:
        return Planned(None, 0, f"all {len(enough)} buckets with enough log files are in pending plans")
    about = json.dumps({"buckets": len(groups), "min_log_files": min_log_files}).encode()
    begun = lake.begin(
        COMPACTION,
        state="requested",
        metadata=about,
        plan=[FileGroup(each.partition, each.file_group) for each in groups],
        layout=layout.table.layout(),
    )
    return Planned(begun.instant, len(groups), f"{len(groups)} buckets have {min_log_files} log files or more")


def run_compaction(
    lake: LakeTable, timestamp: str, *, run_tasks: RunTasks | None = None, heartbeat_seconds: float = 20.0
) -> Completed:
    """Runs a planned compaction. A plan that was completed already is a success, and changes nothing.

    `run_tasks` runs the buckets' tasks elsewhere; by default they run here, by `compacted`, one after the other. Raises
    NoSuchObjectException without the plan, InvalidOperationException if another process runs it, InstantConflict if
    writers changed the buckets' older files meanwhile: then the plan stays, to be run again.
    """
    details = lake.details(timestamp, COMPACTION)
    if details.instant.position is not None:
        return Completed(details.instant, True, 0)
    with lake.resuming(details.instant, heartbeat_seconds=heartbeat_seconds) as writing:
        planned = {Bucket(each.partition, each.name) for each in details.plan}
        snapshot = lake.snapshot(partitions=sorted({each.partition for each in planned}), include_uncommitted=True)
        schema = lake.schema(snapshot.table_version)
        layout = layout_of(lake.name, schema, snapshot.location)
        writer = BucketWriter(layout, timestamp, writing.directory, writing.path)
        older = by_bucket(
            each for each in snapshot if each.slice < timestamp and Bucket(each.partition, each.file_group) in planned
        )
        work = Work(writer, sorted(older.items()), schema, snapshot.position)
        added = list((run_tasks or _run_here)(work))
        about = json.dumps({"operation": COMPACTION, "files": len(added), "buckets": len(older)}).encode()
        return writing.complete(
            Completion(
                added=added,
                new_action="commit",
                read_position=snapshot.position,
                metadata=about,
                layout=layout.table.layout(),
            )
        )


def compacted(writer: BucketWriter, task: Task) -> list[DataFile]:
    """The new files of one bucket."""
    bucket, files = task
    merged = writer.layout.read(files)
    first = min((each.min_event_time for each in files if each.min_event_time is not None), default=None)
    last = max((each.max_event_time for each in files if each.max_event_time is not None), default=None)
    return writer.put_merged(bucket, merged.rows, merged.tombstones, (first, last))


def _run_here(work: Work) -> list[DataFile]:
    return [file for task in work.tasks for file in compacted(work.writer, task)]
