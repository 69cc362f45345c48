"""Which files make up a lake table: now, at any moment that can still be read, and what changed in between."""

import json
from collections.abc import Sequence

from eventbus import log as event_log
from eventbus.sequencer import Sequencer
from metastore.clock import now_ms
from metastore.services import instant_rules as rules
from metastore.services import partition_filter
from metastore.services.instant_directories import base_of
from metastore.services.instant_files import InstantFiles
from metastore.services.lake_partitions import lake_partition
from metastore.services.partition_reads import partition_keys
from metastore.services.tables import TableService
from metastore.services.timeline import lake_table, placed, told
from metastore.services.visibility import Scope, hides_uncommitted
from metastore.store import Database, data_files, instants, partitions
from metastore.store.data_files import FileRow, Kind, Wanted
from metastore.store.database import Transaction
from metastore.store.instants import Timeline
from metastore.store.partitions import Selection
from metastore.store.tables import TableRow
from metastore.wire.hive import InvalidOperationException, NoSuchObjectException
from metastore.wire.lake import (
    DataFile,
    InstantChanges,
    PlanCleanRequest,
    ReadChangesRequest,
    ReadChangesResponse,
    SnapshotGone,
    SnapshotRequest,
    SnapshotResponse,
)

MAX_FILES = 100_000
"""In one reply, but for a file group that has more."""

MAX_INSTANTS = 1_000
"""Whose changes are in one reply."""

_HOUR = 3_600_000  # milliseconds


class FileSnapshots:
    """Reads what timelines have made of tables."""

    def __init__(self, database: Database, tables: TableService, sequencer: Sequencer, files: InstantFiles) -> None:
        self._database = database
        self._tables = tables
        self._sequencer = sequencer
        self._files = files

    def read(self, scope: Scope, request: SnapshotRequest) -> SnapshotResponse:
        """The files of one snapshot, ordered by partition, file group, slice.

        Raises NoSuchObjectException, InvalidOperationException, SnapshotGone, MetaException for a bad filter.
        """
        limit = _limit(request.limit, MAX_FILES)
        if request.asOfMoment is not None:
            self._sequencer.catch_up()
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, request.table)
            line = instants.timeline(tx, row.id)
            wanted = self._wanted(tx, row, scope, request.partitions, request.filter)
            if request.after is not None:
                position, after = _page(request.after)
            else:
                position, after = self._position(tx, row, line, request), None
            if not request.allVersions:
                check_readable(tx, row, line, position)
            found = data_files.snapshot(
                tx,
                row.id,
                wanted,
                None if position == line.position else position,
                base_only=bool(request.readOptimized),
                superseded=bool(request.allVersions),
                after=after,
                limit=limit + 1,
            )
            pending = self._files.pending(tx, row)
            next_page = None
            if len(found) > limit:
                found = self._whole_groups(tx, row, found, position, request)
                next_page = json.dumps([position, found[-1].partition, found[-1].file_group])
        if pending:  # a snapshot names no file that isn't in its place
            self._files.settle(row)
        location = base_of(row.location or "")
        return SnapshotResponse(position, [told_file(each) for each in found], next_page, location, row.version)

    @staticmethod
    def _whole_groups(
        tx: Transaction, row: TableRow, found: list[FileRow], position: int, request: SnapshotRequest
    ) -> list[FileRow]:
        """A page without the file group that it ends within, or with all of that group if there is no other."""
        torn = found[-1].partition, found[-1].file_group
        whole = [each for each in found if (each.partition, each.file_group) != torn]
        if whole:
            return whole
        return data_files.snapshot_of_group(
            tx,
            row.id,
            torn,
            position,
            base_only=bool(request.readOptimized),
            superseded=bool(request.allVersions),
        )

    def changes(self, scope: Scope, request: ReadChangesRequest) -> ReadChangesResponse:
        """What was added and removed after one position up to another, by instant, in the order of completions.

        Raises NoSuchObjectException, InvalidOperationException, SnapshotGone, MetaException for a bad filter.
        """
        limit = _limit(request.limit, MAX_INSTANTS)
        self._sequencer.catch_up()
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, request.table)
            line = instants.timeline(tx, row.id)
            wanted = self._wanted(tx, row, scope, request.partitions, request.filter)
            after = _known(row, line, request.after or 0)
            last = _known(row, line, request.upTo) if request.upTo is not None else line.position
            check_readable(tx, row, line, after)
            completed = instants.completed_after(tx, row.id, after, last, limit)
            if len(completed) == limit:
                last = completed[-1].position or last
            added, removed = data_files.changes(tx, row.id, wanted, after, last)
            pending = self._files.pending(tx, row)
            told_instants = placed(tx, completed)
        if pending:
            self._files.settle(row)
        by_added, by_removed = _grouped(added, "added_at"), _grouped(removed, "removed_at")
        return ReadChangesResponse(
            [
                InstantChanges(
                    told(each),
                    [told_file(file) for file in by_added.get(each.position or 0, ())],
                    [told_file(file) for file in by_removed.get(each.position or 0, ())],
                )
                for each in told_instants
            ],
            max(after, last),
            base_of(row.location or ""),
        )

    def plan_clean(self, request: PlanCleanRequest) -> list[DataFile]:
        """Files that nobody needs who reads what is to be kept, or a savepoint; for a clean to name.

        Raises NoSuchObjectException, InvalidOperationException.
        """
        given = [each for each in (request.keepCommits, request.keepHours, request.keepVersions) if each is not None]
        if len(given) != 1 or given[0] < 1:
            raise InvalidOperationException("say one of keepCommits, keepHours and keepVersions, at least 1")
        limit = _limit(request.limit, MAX_FILES)
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, request.table)
            saved = instants.saved_positions(tx, row.id)
            if request.keepVersions is not None:
                found = data_files.beyond_versions(tx, row.id, request.keepVersions, saved, limit)
            else:
                if request.keepCommits is not None:
                    horizon = instants.nth_latest(tx, row.id, request.keepCommits, rules.DELETABLE)
                else:
                    since = now_ms() - (request.keepHours or 0) * _HOUR
                    horizon = instants.position_at_time(tx, row.id, rules.timestamp_at(max(since, 0)))
                found = data_files.removed_up_to(tx, row.id, horizon, saved, limit)
        return [told_file(each) for each in found]

    def _wanted(
        self, tx: Transaction, row: TableRow, scope: Scope, names: Sequence[str] | None, filter: str | None
    ) -> Wanted:
        """Which partitions a reader sees of those that it asks for."""
        if names is not None and filter is not None:
            raise InvalidOperationException("give either the names of partitions or a filter")
        hidden = []
        if hides_uncommitted(scope, row.name):
            hidden = partitions.names(tx, Selection(row.id, only_uncommitted=True))
        if filter is not None:
            predicate = partition_filter.parse(filter, partition_keys(row))
            return Wanted(data_files.partition_names(tx, row.id, predicate), hidden)
        if names is not None:
            return Wanted([lake_partition(row, name).name for name in names], hidden)
        return Wanted(None, hidden)

    @staticmethod
    def _position(tx: Transaction, row: TableRow, line: Timeline, request: SnapshotRequest) -> int:
        """The position that is asked for."""
        given = (request.asOf, request.asOfPosition, request.asOfTime, request.asOfMoment)
        if sum(each is not None for each in given) > 1:
            raise InvalidOperationException("say at most one of asOf, asOfPosition, asOfTime and asOfMoment")
        if request.asOf is not None:
            done = instants.completed_at(tx, row.id, request.asOf)
            if done is None:
                raise NoSuchObjectException(f"{row.name} has no completed instant {request.asOf}")
            return done.position or 0
        if request.asOfPosition is not None:
            return _known(row, line, request.asOfPosition)
        if request.asOfTime is not None:
            return instants.position_at_time(tx, row.id, rules.timestamp_at(max(request.asOfTime, 0)))
        if request.asOfMoment is not None:
            return _position_at_moment(tx, row, request.asOfMoment)
        return line.position


def check_readable(tx: Transaction, row: TableRow, line: Timeline, position: int) -> None:
    """Raises SnapshotGone if files of the snapshot at a position have been cleaned."""
    if position >= line.oldest_readable or position in instants.saved_positions(tx, row.id):
        return
    oldest = instants.completed_after(tx, row.id, line.oldest_readable - 1, line.position, 1)
    timestamp = oldest[0].timestamp if oldest else None
    raise SnapshotGone(
        f"files of {row.name}'s snapshot at position {position} have been cleaned: the oldest that can be read is"
        f" position {line.oldest_readable}, the instant {timestamp}",
        line.oldest_readable,
        timestamp,
    )


def told_file(file: FileRow) -> DataFile:
    """A file for clients."""
    return DataFile(
        partition=file.partition,
        fileGroup=file.file_group,
        slice=file.slice,
        path=file.path,
        kind=Kind(file.kind).name.lower(),
        size=file.size,
        rows=file.rows,
        minEventTime=file.min_event_time,
        maxEventTime=file.max_event_time,
        columns=file.columns,
        version=file.version or None,
        statistics=None if file.statistics is None else bytes(file.statistics),
        addedAt=file.added_at,
        removedAt=file.removed_at,
    )


def _position_at_moment(tx: Transaction, row: TableRow, moment: int) -> int:
    """How many of a table's instants were complete at a moment. Raises InvalidOperationException for a later one."""
    last = event_log.positions(tx).last
    if not 0 <= moment <= last:
        raise InvalidOperationException(f"there is no moment {moment}: the last event is {last}")
    unplaced = instants.unplaced(tx, row.id)
    numbers = event_log.numbers_of(tx, list(unplaced.values())) if unplaced else {}
    recent = [instant for instant, event in unplaced.items() if numbers.get(event, moment + 1) <= moment]
    return max(instants.position_at_moment(tx, row.id, moment), instants.last_position_of(tx, recent))


def _limit(given: int | None, most: int) -> int:
    """How much an answer may hold: what is asked for, at most so much. Raises InvalidOperationException for none."""
    if given is None:
        return most
    if given < 1:
        raise InvalidOperationException(f"the limit is {given}: ask for at least 1, or leave it out")
    return min(given, most)


def _known(row: TableRow, line: Timeline, position: int) -> int:
    if not 0 <= position <= line.position:
        raise InvalidOperationException(f"{row.name} has no position {position}: the last one is {line.position}")
    return position


def _page(token: str) -> tuple[int, tuple[str, str]]:
    """A position and a file group out of a page's token. Raises InvalidOperationException."""
    try:
        position, partition, group = json.loads(token)
    except ValueError:
        position = partition = group = None
    if not isinstance(position, int) or not isinstance(partition, str) or not isinstance(group, str):
        raise InvalidOperationException(f"{token!r} is no page of a snapshot: give an answer's nextPage")
    return position, (partition, group)


def _grouped(files: Sequence[FileRow], by: str) -> dict[int, list[FileRow]]:
    found: dict[int, list[FileRow]] = {}
    for each in files:
        found.setdefault(getattr(each, by), []).append(each)
    return found
