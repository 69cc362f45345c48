"""Runs planned clusterings: the plan's files are rewritten elsewhere, the other files of their partitions come along.

A partition that is rewritten lies in the directory of the instant from then on, so that who lists directories finds
each row once. Files that aren't rewritten become links there, or copies where there are no links. Rows that others add
while it runs come along, too. What others replace meanwhile makes the clustering lose.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from thrift.Thrift import TException

from lake.client.lake_types import Completed, Completion, DataFile, Details, FileGroup, Schema
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import InstantConflict
from lake.protocol.struct import ExceptionStruct
from lake.tables.clustering import CLUSTERING, Order, Settings, by_partition, check_clusterable, is_whole
from lake.tables.lake import LakeTable, Writing

MAX_ATTEMPTS = 20
"""How often a completion is tried again because others added rows while files were linked."""


class Rewriting(NamedTuple):
    """Files of one partition that become so many others."""

    partition: str
    files: Sequence[DataFile]
    outputs: int


class Job(NamedTuple):
    """What is to be rewritten, of a table with this schema at this location."""

    schema: Schema
    location: str
    order: Order
    tasks: Sequence[Rewriting]


Rewrite = Callable[[Writing, Job], list[DataFile]]
"""Writes the rows of a job's files, in its order, into `writing.directory`, below the names of their partitions."""


class Placing(Protocol):
    """What bringing files along needs of a storage."""

    def link(self, pairs: Sequence[tuple[str, str]]) -> object:
        """Puts files at new places, given as URIs (source, target), by links where there are any."""

    def remove_files(self, uris: Sequence[str]) -> None:
        """Removes files."""


def run_clustering(
    lake: LakeTable, timestamp: str, rewrite: Rewrite, placing: Placing, *, heartbeat_seconds: float = 20.0
) -> Completed:
    """Runs a planned clustering. A plan that was completed already is a success, and changes nothing.

    If the process dies or fails, the plan stays, to be run again. Raises InstantConflict if others changed the files of
    the plan since it was made; then it is aborted, because it can't succeed any more: plan again. Raises
    NoSuchObjectException without the plan, InvalidOperationException if another process runs it, ValueError for a plan
    of another program's, NotClusterable.
    """
    details = lake.details(timestamp, CLUSTERING)
    if details.instant.position is not None:
        return Completed(details.instant, True, 0)
    settings = Settings.received(details.metadata.get("requested", b""))
    with lake.resuming(details.instant, heartbeat_seconds=heartbeat_seconds) as writing:
        try:
            return _run(lake, details, settings, writing, rewrite, placing)
        except InstantConflict:
            with suppress(ExceptionStruct, TException, OSError):
                lake.abort(writing.instant)
            raise


def _run(
    lake: LakeTable, details: Details, settings: Settings, writing: Writing, rewrite: Rewrite, placing: Placing
) -> Completed:
    state = _State(lake, details)
    schema = lake.schema(state.table_version)
    check_clusterable(lake.name, schema)
    tasks = [
        Rewriting(name, some, settings.outputs(some)) for name, some in sorted(by_partition(state.planned).items())
    ]
    written = rewrite(writing, Job(schema, state.location, settings.order, tasks))
    _check_rows(tasks, written)
    added = [_with_facts(each, task, settings.order) for task in tasks for each in written if each.partition == task[0]]
    carried = _Carried(writing, state.location, placing, added)
    for number in range(1, MAX_ATTEMPTS + 1):
        try:
            kept = carried.bring(state.others)
            about = {"operation": CLUSTERING, "files": len(added), "rewritten": len(details.plan), "kept": len(kept)}
            return writing.complete(
                Completion(
                    added=[*added, *kept.values()],
                    removed_groups=details.plan,
                    removed_paths=list(kept),
                    relocate=True,
                    new_action="replacecommit",
                    read_position=state.position,
                    metadata=json.dumps(about).encode(),
                )
            )
        except (InvalidOperationException, InstantConflict, FileNotFoundError):
            before, state = state, _State(lake, details)
            if number == MAX_ATTEMPTS or state.position == before.position:
                raise
    raise AssertionError("the last attempt returns or raises")


class _State:
    """The files of a plan's partitions now: `planned` are those to rewrite, `others` are beside them.

    Raises InstantConflict if the planned ones have changed since the plan was made.
    """

    def __init__(self, lake: LakeTable, details: Details) -> None:
        snapshot = lake.snapshot(partitions=sorted({each.partition for each in details.plan}), include_uncommitted=True)
        self.position, self.location = snapshot.position, snapshot.location
        self.table_version = snapshot.table_version
        groups, planned_at = set(details.plan), details.instant.read_position
        files = list(snapshot)
        self.planned = [each for each in files if FileGroup(each.partition, each.file_group) in groups]
        self.others = [each for each in files if FileGroup(each.partition, each.file_group) not in groups]
        whole = [each for each in self.planned if is_whole(each) and (each.added_at or 0) <= planned_at]
        if len(whole) < len(groups) or len(self.planned) > len(groups):
            raise self._conflict(lake, details, groups - {FileGroup(each.partition, each.file_group) for each in whole})
        if merged := [each for each in self.others if not is_whole(each)]:
            raise self._conflict(lake, details, {FileGroup(each.partition, each.file_group) for each in merged})

    @staticmethod
    def _conflict(lake: LakeTable, details: Details, changed: Iterable[FileGroup]) -> InstantConflict:
        places = [(f"partition {each.partition}" if each.partition else "the table", each.name) for each in changed]
        named = [f"{place} file group {name}" for place, name in sorted(places)]
        return InstantConflict(
            f"{lake.name}: since {details.instant.timestamp} {CLUSTERING} was planned, others changed what it was to"
            f" rewrite: {'; '.join(named[:10])}. The plan is aborted: plan again",
            [],
            named,
            [],
        )


class _Carried:
    """The files that come along into the directory of the instant, by where they are now."""

    def __init__(self, writing: Writing, location: str, placing: Placing, added: Sequence[DataFile]) -> None:
        self._writing = writing
        self._location = location
        self._placing = placing
        self._partitions = {each.partition for each in added}
        self._names = {each.path.removeprefix(f"{writing.path}/") for each in added}
        self._kept: dict[str, DataFile] = {}

    def bring(self, others: Iterable[DataFile]) -> Mapping[str, DataFile]:
        """Links files that aren't there yet, and removes links of those that are no longer wanted.

        Only of partitions that get rewritten files: one that has lost all its rows stays where it is.
        """
        wanted = {each.path: each for each in others if each.partition in self._partitions}
        gone = [self._kept.pop(path) for path in self._kept.keys() - wanted.keys()]
        self._placing.remove_files([self._uri(each) for each in gone])
        coming = {
            path: wanted[path]._replace(path=f"{self._writing.path}/{self._name(wanted[path])}")
            for path in sorted(wanted.keys() - self._kept.keys())
        }
        try:
            self._placing.link([(f"{self._location}/{path}", self._uri(each)) for path, each in coming.items()])
        except BaseException:  # one is gone, perhaps: all of them may be linked again, by other names
            self._placing.remove_files([self._uri(each) for each in coming.values()])
            raise
        self._kept.update(coming)
        return self._kept

    def _name(self, file: DataFile) -> str:
        """Where a file lies in the instant's directory: below the name of its partition, beside none of its name."""
        directory, name = f"{file.partition}/" if file.partition else "", file.path.rpartition("/")[2]
        found, number = f"{directory}{name}", 1
        while found in self._names:
            found, number = f"{directory}{number}-{name}", number + 1
        self._names.add(found)
        return found

    def _uri(self, file: DataFile) -> str:
        return f"{self._writing.directory}{file.path.removeprefix(self._writing.path)}"


def _check_rows(tasks: Sequence[Rewriting], written: Sequence[DataFile]) -> None:
    """Raises AssertionError if rows have been lost, or have come: then nothing may be completed."""
    if strange := {each.partition for each in written} - {each.partition for each in tasks}:
        raise AssertionError(f"files were written into {min(strange)!r}, of which none was to be rewritten")
    for task in tasks:
        before, after = [each.rows for each in task.files], [each.rows for each in written if each.partition == task[0]]
        if None not in (*before, *after) and sum(filter(None, before)) != sum(filter(None, after)):
            raise AssertionError(
                f"partition {task.partition!r}: {sum(filter(None, before))} rows became {sum(filter(None, after))}"
            )


def _with_facts(file: DataFile, task: Rewriting, order: Order) -> DataFile:
    """A new file with what is known of its rows: their order, and that their event times are among the old files'."""
    firsts = [each.min_event_time for each in task.files if each.rows != 0]
    lasts = [each.max_event_time for each in task.files if each.rows != 0]
    first = None if None in firsts else min(filter(None, firsts), default=None)
    last = None if None in lasts else max(filter(None, lasts), default=None)
    return file._replace(statistics=order.mark(), min_event_time=first, max_event_time=last)
