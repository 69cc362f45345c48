"""Reads snapshots: a table's files now or at an earlier position, the changes in between, and files to clean."""

import json
from collections.abc import Sequence

from eventbus.log import log as event_log
from eventbus.log.sequencer import Sequencer
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import (
    DataFile,
    InstantChanges,
    PlanCleanRequest,
    ReadChangesRequest,
    ReadChangesResponse,
    SnapshotGone,
    SnapshotRequest,
    SnapshotResponse,
)
from metastore.services.filters import partition_filter
from metastore.services.instant_rules import states as rules
from metastore.services.instant_rules.paths import base_of
from metastore.services.model.visibility import Scope, hides_uncommitted
from metastore.services.partition.reads import partition_keys
from metastore.services.snapshot.seen_changes import FilesByPosition, by_position, of_ready_partitions
from metastore.services.table.service import TableService
from metastore.services.timeline import changelogs, cleaning
from metastore.services.timeline.hive_sync import lake_partition
from metastore.services.timeline.lookup import check_is_of, lake_table
from metastore.services.timeline.staging import InstantFiles
from metastore.services.timeline.thrift_objects import to_thrift, with_moments
from metastore.store import Database
from metastore.store.engine.clock import now_ms
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import data_files
from metastore.store.snapshot.data_files import FileRow, Kind, PartitionSubset
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants, uncommitted_spans
from metastore.store.timeline.instants import Timeline

MAX_FILES = 100_000
"""The most files in one reply. A single file group with more files is returned all the same."""

MAX_TOKEN = 1 << 16
"""The greatest length of a page's token, in characters."""

MAX_INSTANTS = 1_000
"""The most instants in one reply of changes."""

_HOUR = 3_600_000  # milliseconds


class FileSnapshots:
    """The reading calls for files of lake tables."""

    def __init__(self, database: Database, tables: TableService, sequencer: Sequencer, files: InstantFiles) -> None:
        self._database = database
        self._tables = tables
        self._sequencer = sequencer
        self._files = files

    def read(self, scope: Scope, request: SnapshotRequest) -> SnapshotResponse:
        """The files of one snapshot, ordered by partition, file group, slice.

        Raises NoSuchObjectException, InvalidOperationException, SnapshotGone if some of its files have been cleaned,
        MetaException for an invalid filter.
        """
        limit = _limit(request.limit, MAX_FILES)
        if request.asOfMoment is not None:
            self._sequencer.catch_up()
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, request.table)
            line = instants.timeline(tx, row.id)
            if request.after is not None:
                position, after = _page(row, request.after)
                _known(row, line, position)
            else:
                position, after = self._position(tx, row, line, request), None
            hidden = uncommitted_spans.at(tx, row.id, position) if hides_uncommitted(scope, row.name) else ()
            wanted = self._wanted(tx, row, request.partitions, request.filter)._replace(hidden=hidden)
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
                next_page = json.dumps([row.id, position, found[-1].partition, found[-1].file_group])
        if pending:  # every file of a snapshot must be where its path says
            self._files.settle(row)
        location = base_of(row.location or "")
        return SnapshotResponse(
            position, [to_thrift_file(each) for each in found], next_page, location, row.version, row.id
        )

    @staticmethod
    def _whole_groups(
        tx: Transaction, row: TableRow, found: list[FileRow], position: int, request: SnapshotRequest
    ) -> list[FileRow]:
        """A page without its last, incomplete file group; if there is no other group, with all of that one."""
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
        """The files added and removed after one position up to another, by instant, in the order of completions.

        With `changelog`, those of changelogs, if nothing in the range changed rows without one; earlier snapshots may
        have been cleaned, then. Raises NoSuchObjectException, InvalidOperationException, SnapshotGone if files have
        been cleaned since the first position, MetaException for an invalid filter.
        """
        limit = _limit(request.limit, MAX_INSTANTS)
        self._sequencer.catch_up()
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, request.table)
            line = instants.timeline(tx, row.id)
            wanted = self._wanted(tx, row, request.partitions, request.filter)
            after = _known(row, line, request.after or 0)
            last = _known(row, line, request.upTo) if request.upTo is not None else line.position
            check_is_of(tx, row, request.table, after)
            check_is_of(tx, row, request.table, last)
            ready_only = hides_uncommitted(scope, row.name)
            if request.changelog and changelogs.cover(tx, row, after, last, ready_only=ready_only):
                return self._changelogs(tx, row, wanted, after, last, limit, ready_only=ready_only)
            check_changes_readable(tx, row, line, after)
            completed = instants.completed_after(tx, row.id, after, last, limit)
            if len(completed) == limit:
                last = completed[-1].position or last
            if ready_only:
                by_added, by_removed = self._seen_changes(tx, row, wanted, after, last)
            else:
                by_added, by_removed = by_position(*data_files.changes(tx, row.id, wanted, after, last))
            pending = self._files.pending(tx, row)
            changed_by = with_moments(tx, completed)
        if pending:
            self._files.settle(row)
        return ReadChangesResponse(
            [
                InstantChanges(
                    to_thrift(each),
                    [to_thrift_file(file) for file in by_added.get(each.position or 0, ())],
                    [to_thrift_file(file) for file in by_removed.get(each.position or 0, ())],
                )
                for each in changed_by
            ],
            max(after, last),
            base_of(row.location or ""),
            tableVersion=row.version,
            tableId=row.id,
        )

    @staticmethod
    def _changelogs(
        tx: Transaction,
        row: TableRow,
        wanted: PartitionSubset,
        after: int,
        last: int,
        limit: int,
        *,
        ready_only: bool,
    ) -> ReadChangesResponse:
        """The same as `changes`, with the files of changelogs."""
        completed = instants.completed_after(tx, row.id, after, last, limit)
        if len(completed) == limit:
            last = completed[-1].position or last
        found = changelogs.read(tx, row, after, last, wanted.names, ready_only=ready_only)
        return ReadChangesResponse(
            [
                InstantChanges(to_thrift(each), [], [], list(found.get(each.position or 0, ())))
                for each in with_moments(tx, completed)
            ],
            max(after, last),
            base_of(row.location or ""),
            changelog=True,
            tableVersion=row.version,
            tableId=row.id,
        )

    def plan_clean(self, request: PlanCleanRequest) -> list[DataFile]:
        """The files that a clean may delete: no snapshot to be kept needs them, and nothing that `cleaning` names.

        Also those of changelogs that aren't kept any more: every clean deletes them.

        Raises NoSuchObjectException, InvalidOperationException.
        """
        given = [each for each in (request.keepCommits, request.keepHours, request.keepVersions) if each is not None]
        if len(given) != 1 or given[0] < 1:
            raise InvalidOperationException("give exactly one of keepCommits, keepHours and keepVersions, at least 1")
        limit = _limit(request.limit, MAX_FILES)
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, request.table)
            found = cleanable(tx, row, request.keepCommits, request.keepHours, request.keepVersions, limit)
            expired = changelogs.expired(tx, row, limit - len(found))
        return [*(to_thrift_file(each) for each in found), *expired]

    @staticmethod
    def _seen_changes(
        tx: Transaction, row: TableRow, wanted: PartitionSubset, after: int, last: int
    ) -> tuple[FilesByPosition, FilesByPosition]:
        """The files that a reader of ready partitions sees come and go after one position up to another."""
        spans = uncommitted_spans.between(tx, row.id, after, last)
        if not spans:
            return by_position(*data_files.changes(tx, row.id, wanted, after, last))
        # The files that don't change matter, too, of partitions that turn ready or uncommitted meanwhile.
        turning = {each.partition for each in spans if each.opened_at > after or each.committed_at is not None}
        some = PartitionSubset([name for name in sorted(turning) if wanted.includes(name)], ())
        hidden = {each.partition for each in spans}
        files = data_files.between(tx, row.id, some, after, last)
        added, removed = data_files.changes(tx, row.id, wanted._replace(hidden=hidden), after, last)
        seen = {each.id: each for each in (*added, *removed, *files)}
        ordered = sorted(seen.values(), key=lambda each: (each.partition, each.file_group, each.slice, each.id))
        return of_ready_partitions(ordered, spans, after, last)

    def _wanted(
        self, tx: Transaction, row: TableRow, names: Sequence[str] | None, filter: str | None
    ) -> PartitionSubset:
        """The requested partitions."""
        if names is not None and filter is not None:
            raise InvalidOperationException("give either the names of partitions or a filter")
        if filter is not None:
            predicate = partition_filter.parse(filter, partition_keys(row))
            return PartitionSubset(data_files.partition_names(tx, row.id, predicate), ())
        if names is not None:
            return PartitionSubset([lake_partition(row, name).name for name in names], ())
        return PartitionSubset(None, ())

    @staticmethod
    def _position(tx: Transaction, row: TableRow, line: Timeline, request: SnapshotRequest) -> int:
        """The requested position. Raises NoSuchObjectException, InvalidOperationException."""
        given = (request.asOf, request.asOfPosition, request.asOfTime, request.asOfMoment)
        if sum(each is not None for each in given) > 1:
            raise InvalidOperationException("give at most one of asOf, asOfPosition, asOfTime and asOfMoment")
        if request.asOf is not None:
            done = instants.completed_at(tx, row.id, request.asOf)
            if done is not None:
                return done.position or 0
            saved = instants.saved_as(tx, row.id, request.asOf)
            if saved is None or saved.position is None:
                raise NoSuchObjectException(f"{row.name} has no completed instant or savepoint {request.asOf}")
            return saved.read_position
        if request.asOfPosition is not None:
            check_is_of(tx, row, request.table, request.asOfPosition)
            return _known(row, line, request.asOfPosition)
        if request.asOfTime is not None:
            return instants.position_at_time(tx, row.id, rules.timestamp_at(max(request.asOfTime, 0)))
        if request.asOfMoment is not None:
            return _position_at_moment(tx, row, request.asOfMoment)
        return line.position


def cleanable(
    tx: Transaction,
    row: TableRow,
    keep_commits: int | None,
    keep_hours: int | None,
    keep_versions: int | None,
    limit: int,
) -> list[FileRow]:
    """The files that a clean may delete now, at most `limit`; exactly one of the three says what to keep."""
    keeping = cleaning.kept(tx, row)
    if keep_versions is not None:
        return data_files.beyond_versions(tx, row.id, keep_versions, keeping, limit)
    if keep_commits is not None:
        horizon = instants.nth_latest(tx, row.id, keep_commits, rules.ADDING_NOTHING)
    else:
        # By the database's clock: a server with a wrong clock must not clean too much.
        since = now_ms(tx) - (keep_hours or 0) * _HOUR
        horizon = instants.position_at_time(tx, row.id, rules.timestamp_at(max(since, 0)))
    return data_files.removed_up_to(tx, row.id, horizon, keeping, limit)


def check_readable(tx: Transaction, row: TableRow, line: Timeline, position: int) -> None:
    """Raises SnapshotGone if files of the snapshot at a position have been cleaned."""
    if not cleaning.is_readable(tx, row, line, position):
        raise _gone(tx, row, line, f"files of {row.name}'s snapshot at position {position}")


def check_changes_readable(tx: Transaction, row: TableRow, line: Timeline, after: int) -> None:
    """Raises SnapshotGone if files that belonged to the table after a position have been cleaned.

    A savepoint protects the snapshot at its position, but not what came and went since.
    """
    if after < line.oldest_readable:
        raise _gone(tx, row, line, f"files of {row.name}'s changes after position {after}")


def _gone(tx: Transaction, row: TableRow, line: Timeline, what: str) -> SnapshotGone:
    oldest = instants.completed_after(tx, row.id, line.oldest_readable - 1, line.position, 1)
    timestamp = oldest[0].timestamp if oldest else None
    return SnapshotGone(
        f"{what} have been cleaned: the oldest that can be read is position {line.oldest_readable}, the instant"
        f" {timestamp}",
        line.oldest_readable,
        timestamp,
    )


def to_thrift_file(file: FileRow) -> DataFile:
    """A file in the form that clients receive."""
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
        firstAddedAt=file.first_added_at,
    )


def _position_at_moment(tx: Transaction, row: TableRow, moment: int) -> int:
    """The last position of a table at a moment. Raises InvalidOperationException for a moment in the future."""
    last = event_log.positions(tx).last
    if not 0 <= moment <= last:
        raise InvalidOperationException(f"there is no moment {moment}: the last event is {last}")
    unplaced = instants.unplaced(tx, row.id)
    numbers = event_log.numbers_of(tx, list(unplaced.values())) if unplaced else {}
    recent = [instant for instant, event in unplaced.items() if numbers.get(event, moment + 1) <= moment]
    return max(instants.position_at_moment(tx, row.id, moment), instants.last_position_of(tx, recent))


def _limit(given: int | None, most: int) -> int:
    """The requested limit, at most `most`. Raises InvalidOperationException if it is less than 1."""
    if given is None:
        return most
    if given < 1:
        raise InvalidOperationException(f"the limit is {given}: ask for at least 1, or leave it out")
    return min(given, most)


def _known(row: TableRow, line: Timeline, position: int) -> int:
    if not 0 <= position <= line.position:
        raise InvalidOperationException(f"{row.name} has no position {position}: the last one is {line.position}")
    return position


def _page(row: TableRow, token: str) -> tuple[int, tuple[str, str]]:
    """Parses a page's token into a position and a (partition, file group).

    Raises InvalidOperationException for another text, and for the token of a table that had this name before.
    """
    try:
        # No valid token is so long, and parsing JSON may take many times its length in memory. JSON can also contain
        # escaped surrogates, which Postgres can't store.
        found = json.loads(token) if len(token) <= MAX_TOKEN else []
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        found = []
    if not isinstance(found, list) or list(map(type, found)) != [int, int, str, str]:
        raise InvalidOperationException(
            f"{token[:100]!r} is no page of a snapshot: send the `nextPage` of a response unchanged"
        )
    table, position, partition, group = found
    if table != row.id:
        raise InvalidOperationException(f"{row.name} was dropped and made again since that page: begin anew")
    return position, (partition, group)
