"""Completes instants: one transaction changes the timeline, the snapshot, Hive's view and the event log.

Concurrency is optimistic: writers don't wait for one another while they write. When one completes, its changes are
compared with all completions since the position that it has read. If both changed the same, the later one is rejected,
and nothing of it ever becomes visible.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import structlog

from lake.protocol.codec import binary
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import (
    CompletedInstant,
    CompleteInstantRequest,
    Instant,
    InstantConflict,
    InstantKey,
    TableReference,
)
from lake.protocol.struct import ExceptionStruct
from metastore.services.commit_flag.transitions import Commits, properties_of
from metastore.services.events.recorder import Events
from metastore.services.instant_rules import states as rules
from metastore.services.instant_rules.conflicts import (
    Strategy,
    moved_between,
    overlap,
    relevant_changes,
    strategy_of_service,
)
from metastore.services.instant_rules.finalize import Changes, change_snapshot, common_time, finalize, next_position
from metastore.services.instant_rules.keyed_tables import (
    check_completion,
    check_layout,
    end_earlier_snapshots,
    is_keyed,
    is_table_wide,
)
from metastore.services.instant_rules.schema_evolution import change_columns
from metastore.services.readiness.progress import progress_of
from metastore.services.readiness.service import ReadinessService
from metastore.services.table.service import TableService
from metastore.services.timeline import changelogs, late_batches, staging, stream_batches
from metastore.services.timeline.cleaning import clean
from metastore.services.timeline.hive_sync import HiveView, lake_partition
from metastore.services.timeline.late_batches import Late
from metastore.services.timeline.lookup import (
    abort,
    check_attempt,
    check_is_of,
    held_instant,
    held_lake_table,
    no_instant,
    saved_position,
)
from metastore.services.timeline.planner import Planner, undone
from metastore.services.timeline.publishing import Publishing
from metastore.services.timeline.staging import InstantFiles
from metastore.services.timeline.thrift_objects import describe_instant, to_thrift, with_moments
from metastore.store import Conflict, Database, DatabaseUnavailable
from metastore.store.catalog.databases import RowLock
from metastore.store.commit_flag import readiness
from metastore.store.engine.clock import now_ms
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import data_files
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants
from metastore.store.timeline.instants import ChangedGroup, InstantRow, RejectedCommitRow, Timeline
from metastore.warehouse import WarehouseError

MAX_TOGETHER = 1_000
"""Instants that complete in one transaction."""

MAX_NAMED = 1_000
"""The most overlaps that an InstantConflict lists."""

MAX_WINNERS = 10
"""The most instants that an InstantConflict names."""

MAX_REJECTED_COMMITS = 1_000
"""Rejected commits that are stored per table."""

log = structlog.get_logger(__name__)


class DecodedCompletion(NamedTuple):
    """A completion whose metadata has been decoded.

    `request`: the same request with the files that the metadata names. `directories`: by partition name, directories
    relative to the table, for partitions that don't lie in the directory of their name.
    """

    request: CompleteInstantRequest
    directories: Mapping[str, str]


Decode = Callable[[Transaction, TableRow, InstantRow, CompleteInstantRequest], DecodedCompletion]
"""Decodes a request's metadata. Called in the completing transaction, while the table's timeline is locked."""


class InstantCompletion:
    """Completes instants."""

    def __init__(
        self,
        database: Database,
        tables: TableService,
        hive_view: HiveView,
        readiness: ReadinessService,
        events: Events,
        files: InstantFiles,
        publishing: Publishing,
        commits: Commits,
    ) -> None:
        self._database = database
        self._tables = tables
        self._hive_view = hive_view
        self._readiness = readiness
        self._events = events
        self._files = files
        self._publishing = publishing
        self._commits = commits

    def complete(
        self, requests: Sequence[CompleteInstantRequest], *, decode: Decode | None = None
    ) -> list[CompletedInstant]:
        """Completes instants atomically, at most one per table. Returns them in the order of the requests.

        `decode`: fills in requests from their metadata. A repeated call with the same requests succeeds, so that a
        client may call again after a lost response. Raises NoSuchObjectException, InvalidOperationException,
        InstantConflict if another writer completed a conflicting instant first, WarehouseError.
        """
        if not 0 < len(requests) <= MAX_TOGETHER:
            raise InvalidOperationException(f"give 1 to {MAX_TOGETHER} instants to complete, not {len(requests)}")
        try:
            with self._database.write() as tx:
                done = self._complete_all(tx, requests, decode)
        except Conflict:
            raise InvalidOperationException("an instant with that timestamp and action is completed already") from None
        except _CommitConflict as conflict:
            self._record_conflict(conflict)
            raise InstantConflict(str(conflict), conflict.winners, conflict.overlap, conflict.paths) from None
        self._finish(done)
        # Moments are left out: they aren't known before the sequencer has run.
        return [each.answer for each in done]

    def _complete_all(
        self, tx: Transaction, requests: Sequence[CompleteInstantRequest], decode: Decode | None
    ) -> list["_Result"]:
        locked, aborted = self._lock_all(tx, requests, decode)
        if aborted:
            return aborted
        repeated = [each for each in locked if each.instant.state == rules.COMPLETED]
        if repeated:
            done = [self._repeat(tx, each) for each in repeated]
            if len(done) < len(requests):
                raise InvalidOperationException("some of the instants are completed already, others are not")
            return done
        if any(stream_batches.is_repeated(tx, each.row, each.request) for each in locked):
            return [self._abort_batch(tx, each) for each in locked]
        late = [late_batches.look(tx, each.row, each.request) for each in locked]
        if any(each.turned for each in late):
            return [self._refuse_late(each, found) for each, found in zip(locked, late, strict=True)]
        reopened = [
            late_batches.reopen(tx, each.row, self._commits, found) for each, found in zip(locked, late, strict=True)
        ]
        locked = [self._after_reopening(tx, each, found) for each, found in zip(locked, late, strict=True)]
        changed = [self._change(tx, each, decode) for each in locked]
        now = common_time(tx, [each.locked.row.id for each in changed]) if len(changed) > 1 else None
        done = [self._finalize(tx, each, now) for each in changed]
        if len(done) > 1:
            # All of them share one moment, so that no reader sees some without the others.
            instants.put_last_event(tx, [each.instant_id for each in done])
        for each, places in zip(locked, reopened, strict=True):
            if places:
                self._commits.prepare_reopening(tx, each.row, places)
        return done

    @staticmethod
    def _refuse_late(locked: "_Locked", late: Late) -> "_Result":
        """The result of a completion that would add to ready partitions, or of one together with it."""
        answer = CompletedInstant(
            locked.request.table, to_thrift(locked.instant), False, locked.row.version, alreadyReady=late.turned
        )
        return _Result(answer, locked.row.id, locked.instant.id, staged=False, may_be_due=False)

    @staticmethod
    def _after_reopening(tx: Transaction, locked: "_Locked", late: Late) -> "_Locked":
        """The same with the position after that of a reopening. Conflicts are those with what others did before it."""
        if not late.held:
            return locked
        return replace(locked, position=next_position(tx, locked.row, instants.timeline(tx, locked.row.id)))

    def _lock_all(
        self, tx: Transaction, requests: Sequence[CompleteInstantRequest], decode: Decode | None
    ) -> tuple[list["_Locked"], list["_Result"]]:
        """Locks the requests' tables, timelines and instants. Returns them in the order of the requests.

        If an earlier call has aborted all of the instants, because their batches are part of the tables already, it
        returns the results of that instead.
        """
        locked: dict[int, _Locked] = {}
        aborted: dict[int, _Result] = {}
        # Locks are taken in the order of names, as everywhere else, against deadlocks.
        for index, request in sorted(enumerate(requests), key=lambda each: _named(each[1].table)):
            changes_table = request.columns is not None or request.relocate or request.published or decode is not None
            lock = RowLock.EXCLUSIVE if changes_table else RowLock.SHARED
            row = held_lake_table(self._tables, tx, request.table, lock)
            if row.id in (each.row.id for each in locked.values()):
                raise InvalidOperationException(
                    f"two of the instants belong to {row.name}: complete one instant of a table at a time"
                )
            action = rules.check_action(request.action)
            held = instants.hold_to_complete(tx, row.id, request.timestamp or "", action, staging.staged_place(row))
            if held is None:
                if not stream_batches.is_repeated(tx, row, request):
                    raise no_instant(row, request.timestamp, request.action)
                aborted[index] = self._aborted_before(tx, row, request)
                continue
            position = next_position(tx, row, held.line)
            locked[index] = _Locked(request, row, held.line, position, held.instant, held.pending)
        if locked and aborted:
            raise InvalidOperationException("some of the instants have been aborted already, others have not")
        numbers = range(len(requests))
        return [locked[each] for each in numbers if locked], [aborted[each] for each in numbers if aborted]

    @staticmethod
    def _repeat(tx: Transaction, locked: "_Locked") -> "_Result":
        """The result of an earlier call that succeeded. Raises InvalidOperationException if that was another one."""
        instant, row = locked.instant, locked.row
        if instant.digest != _digest(locked.request):
            raise InvalidOperationException(f"{describe_instant(instant)} already, with another content")
        answer = CompletedInstant(locked.request.table, to_thrift(with_moments(tx, [instant])[0]), True, row.version)
        return _Result(answer, row.id, instant.id, staged=True, may_be_due=False)

    @staticmethod
    def _aborted_before(tx: Transaction, row: TableRow, request: CompleteInstantRequest) -> "_Result":
        """The result of an earlier call that aborted an instant, of which nothing is known any more."""
        now = now_ms(tx)
        instant = Instant(request.timestamp, request.action, rules.INFLIGHT, requestedAt=now, changedAt=now)
        answer = CompletedInstant(request.table, instant, True, row.version, True)
        return _Result(answer, row.id, 0, staged=True, may_be_due=False)

    @staticmethod
    def _abort_batch(tx: Transaction, locked: "_Locked") -> "_Result":
        """Aborts an instant whose batch another instant has completed.

        Raises InvalidOperationException if its batch is new: then another one's of the same request is not.
        """
        instant, row, request = locked.instant, locked.row, locked.request
        if not stream_batches.is_repeated(tx, row, request):
            raise InvalidOperationException(
                f"the batch of {row.name} is new, that of another table has completed already: tables that are written"
                " together have the same stream and batches"
            )
        check_attempt(instant, request.attempt)
        abort(tx, row, [instant])
        answer = CompletedInstant(request.table, to_thrift(instant), True, row.version, True)
        return _Result(answer, row.id, instant.id, staged=True, may_be_due=False)

    def _change(self, tx: Transaction, locked: "_Locked", decode: Decode | None) -> "_Changed":
        """Makes all changes of a completion but the last, `_finalize`. Until then other instants may begin."""
        request, row, line, instant = locked.request, locked.row, locked.line, locked.instant
        check_attempt(instant, request.attempt)
        brings_files = bool(request.added or request.changelog or request.published)
        check_layout(row, request.layout, brings_files=brings_files)
        if instant.state != rules.INFLIGHT:
            raise InvalidOperationException(f"cannot complete: {describe_instant(instant)}, expected {rules.INFLIGHT}")
        digest = _digest(request)
        directories: Mapping[str, str] = {}
        if decode is not None:
            request, directories = decode(tx, row, instant, request)
        brought: list[int] = []
        if locked.pending:
            # Files of earlier completions must be in place before they can be removed or replaced.
            brought = self._files.bring(tx, row, request.rolledBack or ())
        keyed = is_keyed(row)
        if keyed:
            check_completion(row, request)
        published = self._publishing.checked(tx, row, line, instant, request)
        relocated = self._files.relocated(row, instant, request)
        joined = self._files.joined(tx, row, instant, request)
        action = rules.completed_action(instant.action, request.newAction)
        if instant.begun_as == rules.SAVEPOINT:
            saved_position(tx, row, line, instant.timestamp)  # a clean may have completed since it began
        if request.rolledBack is not None:
            changes = self._undo(tx, row, instant, joined.request, line)
            changelogs.checked(row, instant, request, changes)
        else:
            compacts = instant.begun_as in rules.COMPLETES_AS
            planner = Planner(tx, row, joined.request, compacts=compacts, keyed=keyed)
            read = _read_position(tx, row, instant, request, line.position)
            changes = planner.named(read)
            changelogs.checked(row, instant, request, changes)
            logs_commute = keyed and not request.conditional and not planner.grows
            logs_commute = logs_commute and changelogs.logs_commute(row, request)
            mine = [*changes.changed_groups, *planner.conditions()]
            self._check_conflicts(tx, locked, request, mine, read, logs_commute=logs_commute)
            planner.resolve(changes)
            planner.check_left_behind(changes, relocated)
        request = joined.request
        if request.cleanedPaths is not None:
            line = clean(tx, row, instant, request.cleanedPaths, line)
        if request.metadata is not None:
            instants.put_metadata(tx, instant.id, rules.COMPLETED, request.metadata)
        if instant.conflict is not None:  # only a rejected completion left some
            data_files.cancel_deletions_of(tx, instant.id)
        # A process may have written to the directory of its attempt after that was deleted.
        staging.schedule_deletion_of_attempts(tx, row, instant, range(1, instant.attempt))
        places = _Places({**directories, **joined.directories}, relocated)
        oldest = line.oldest_readable
        if self._apply(tx, locked, request, changes, places, keyed=keyed):
            oldest = locked.position
            end_earlier_snapshots(tx, row, oldest)
        if published is not None:
            self._publishing.record(tx, row, published)
            self._hive_view.update(tx, row, published.sums, {}, {}, published.places)
        self._files.forget(tx, row, brought)
        self._files.record(tx, row, instant, joined)
        staged = bool(joined.joining) or locked.pending
        return _Changed(locked, request, digest, oldest, action, changes, staged)

    def _finalize(self, tx: Transaction, changed: "_Changed", now: int | None) -> "_Result":
        row, instant, request = changed.locked.row, changed.locked.instant, changed.request
        stream_batches.record(tx, row, request, changed.locked.position)
        late_batches.count(tx, row, request.late)
        changelogs.record(tx, row, request, changed.locked.position)
        finalized = finalize(
            tx,
            row,
            self._events,
            instant,
            changed.changes,
            action=changed.action,
            position=changed.locked.position,
            oldest_readable=changed.oldest_readable,
            digest=changed.digest,
            now=now,
        )
        answer = CompletedInstant(request.table, to_thrift(finalized.instant), False, finalized.version)
        may_be_due = bool(request.eventTimes or request.published or request.keepsReady)
        return _Result(answer, row.id, instant.id, staged=changed.staged, may_be_due=may_be_due)

    def _apply(
        self,
        tx: Transaction,
        locked: "_Locked",
        request: CompleteInstantRequest,
        changes: Changes,
        places: "_Places",
        *,
        keyed: bool,
    ) -> bool:
        """Changes the snapshot, the table's columns, its watermark, and Hive's view. Returns whether the table's new
        definition doesn't read files of earlier snapshots.

        Of a keyed table Hive sees what was published: here its new partitions are added, without files.
        """
        row, relocated, is_redefined = locked.row, places.relocated, False
        sums = change_snapshot(tx, row, locked.position, changes)
        if request.columns is not None:
            last = locked.line.position
            properties = request.schemaProperties or {}
            row, is_redefined = change_columns(tx, row, request.columns, properties, last, self._events)
        if request.eventTimes:
            times = properties_of(row)
            readiness.hold(tx, row.id)
            readiness.put_progress(tx, row.id, progress_of(tx, row, request.chain, request.eventTimes, times))
            self._readiness.advance(tx, row, times)
        if keyed:
            self._hive_view.add(tx, row, sums, changes.values)
            return is_redefined
        if request.rolledBack is not None:
            relocated = staging.back(sums, changes, locked.instant)
        self._hive_view.update(tx, row, sums, changes.values, places.directories, relocated)
        return is_redefined

    @staticmethod
    def _check_conflicts(
        tx: Transaction,
        locked: "_Locked",
        request: CompleteInstantRequest,
        mine: Sequence[ChangedGroup],
        read: int,
        *,
        logs_commute: bool,
    ) -> None:
        """Raises _CommitConflict if a completion since position `read` has changed some of `mine`, too.

        `logs_commute`: as of `overlap`.
        """
        row, last = locked.row, locked.line.position
        strategy = Strategy.parse(request.strategy) if request.strategy else Strategy.of_table(row.parameters)
        is_service = locked.instant.begun_as in rules.COMPLETES_AS
        if is_service:
            strategy = strategy_of_service(strategy)
        if not mine or read >= last:
            return
        moves = is_table_wide(row)
        everywhere = moves or strategy is Strategy.TABLE
        touched = None if everywhere else {each.partition for each in mine}
        both: dict[str, None] = {}
        winning: list[int] = []
        for position, theirs in instants.find_changed_groups(tx, row.id, read, last, touched).items():
            compared = theirs if is_service else relevant_changes(mine, theirs)
            found = overlap(strategy, mine, compared, logs_commute=logs_commute)
            if moves:
                found += moved_between(mine, theirs)
            if found:
                winning.append(position)
                both.update(dict.fromkeys(found))
        if winning:
            winners = instants.by_positions(tx, row.id, winning[:MAX_WINNERS])
            paths = [each.path or "" for each in request.added or ()]
            raise _CommitConflict(row, locked.instant, winners, list(both), paths)

    @staticmethod
    def _undo(
        tx: Transaction, row: TableRow, instant: InstantRow, request: CompleteInstantRequest, line: Timeline
    ) -> Changes:
        """The changes that undo the instants `request.rolledBack`, which must be the last ones that changed files."""
        if instant.begun_as not in rules.UNDOING:
            raise InvalidOperationException(f"only a rollback or a restore undoes others, not a {instant.begun_as}")
        if request.added or request.removedGroups or request.removedPaths or request.replacedPartitions:
            raise InvalidOperationException("a rollback or restore changes only files of the instants that it undoes")
        found = [held_instant(tx, row, *_key(each)) for each in request.rolledBack or ()]
        aborted = [each for each in found if each.position is None and each.id != instant.id]
        completed = [each for each in found if each.position is not None]
        for each in completed:
            rules.check_removable(each.action, describe_instant(each))
        changes = Changes()
        if completed:
            back_to = min(each.position or 0 for each in completed) - 1
            undone_ids = {each.id for each in completed}
            for later in instants.completed_after(tx, row.id, back_to, line.position, line.position):
                if later.id not in undone_ids and later.undone_by is None and later.action not in rules.ADDING_NOTHING:
                    raise InvalidOperationException(f"{describe_instant(later)} since then: undo it, too")
            if back_to < line.oldest_readable and back_to not in instants.saved_positions(tx, row.id):
                raise InvalidOperationException(f"files of the snapshot at position {back_to} have been cleaned")
            after, before = data_files.changed_since(tx, row.id, back_to)
            names = {each.partition for each in (*after, *before)}
            changes = undone(before, after, {name: lake_partition(row, name) for name in names})
            instants.undo(tx, sorted(undone_ids), instant.timestamp)
        abort(tx, row, aborted)
        return changes

    def _record_conflict(self, conflict: "_CommitConflict") -> None:
        """Stores why a completion was rejected, and which files to delete when the instant is aborted."""
        with self._database.write() as tx:
            found = instants.find(tx, conflict.row.id, conflict.instant.timestamp, conflict.instant.begun_as, lock=True)
            if found is None or found.position is not None:
                return
            instants.record_conflict(tx, found.id, str(conflict))
            winners = [each.position or 0 for each in conflict.winners]
            rejected = RejectedCommitRow(
                found.timestamp, found.begun_as, found.requested_at, now_ms(tx), winners, reason=str(conflict)
            )
            instants.add_rejected_commit(tx, conflict.row.id, rejected, MAX_REJECTED_COMMITS)
            data_files.cancel_deletions_of(tx, found.id)
            data_files.schedule_deletion(tx, conflict.row.id, conflict.paths, found.id)

    def _finish(self, done: Sequence["_Result"]) -> None:
        """Moves staged files and commits due partitions. Failures don't undo the completions; a leader task retries."""
        for each in done:
            try:
                if each.staged:
                    self._files.publish(each.table_id)
            except (WarehouseError, DatabaseUnavailable) as error:
                log.warning("files of an instant can't be moved yet", table_id=each.table_id, error=str(error))
            try:
                if each.may_be_due:
                    self._readiness.commit_due(each.table_id)
            except (WarehouseError, DatabaseUnavailable, ExceptionStruct) as error:
                log.warning("partitions can't be made ready yet", table_id=each.table_id, error=str(error))


@dataclass(frozen=True, slots=True)
class _Locked:
    """A request, and the rows that are locked for it.

    `position`: of the completion. `pending`: earlier completions' files are still to be moved.
    """

    request: CompleteInstantRequest
    row: TableRow
    line: Timeline
    position: int
    instant: InstantRow
    pending: bool


@dataclass(frozen=True, slots=True)
class _Places:
    """Directories of partitions by name, relative to the table.

    `directories`: for new partitions that don't lie in the directory of their name. `relocated`: for replaced ones.
    """

    directories: Mapping[str, str]
    relocated: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Changed:
    """A completion whose changes are made, and which is to be finalized.

    `request`: decoded, with the final paths of staged files. `digest`: of the original request. `staged`: files are to
    be moved once it is committed.
    """

    locked: _Locked
    request: CompleteInstantRequest
    digest: bytes
    oldest_readable: int
    action: str
    changes: Changes
    staged: bool


@dataclass(frozen=True, slots=True)
class _Result:
    """A completed instant. `staged`: files of it, or of the earlier call's, may be still to be moved.

    `may_be_due`: partitions may be due to turn ready by it.
    """

    answer: CompletedInstant
    table_id: int
    instant_id: int
    staged: bool
    may_be_due: bool


class _CommitConflict(Exception):
    """Another writer completed a conflicting instant first."""

    def __init__(
        self, row: TableRow, instant: InstantRow, winners: Sequence[InstantRow], overlap: list[str], paths: list[str]
    ) -> None:
        by = ", ".join(f"{each.timestamp} {each.action}" for each in winners)
        what = "; ".join(overlap[:MAX_WINNERS]) + (" and more" if len(overlap) > MAX_WINNERS else "")
        super().__init__(
            f"{row.name}: {by} completed since {instant.timestamp} {instant.action} read the table, and changed the"
            f" same: {what}. Abort the instant, read the table again and begin a new instant"
        )
        self.row = row
        self.instant = instant
        self.winners = [to_thrift(each) for each in winners]
        self.overlap = overlap[:MAX_NAMED]
        self.paths = paths


def _read_position(
    tx: Transaction, row: TableRow, instant: InstantRow, request: CompleteInstantRequest, last: int
) -> int:
    """The position that a writer has read, at its instant's begin or later. Raises InvalidOperationException."""
    if request.readPosition is None:
        return instant.read_position
    if not 0 <= request.readPosition <= last:
        raise InvalidOperationException(f"{row.name} has no position {request.readPosition}: the last one is {last}")
    check_is_of(tx, row, request.table, request.readPosition)
    return max(instant.read_position, request.readPosition)


def _named(table: TableReference | None) -> tuple[str, ...]:
    named = table or TableReference()
    return (named.catalog or "", (named.database or "").lower(), (named.table or "").lower())


def _key(key: InstantKey) -> tuple[str | None, str | None]:
    return key.timestamp, key.action


def _digest(request: CompleteInstantRequest) -> bytes:
    """A hash of the request's content, by which a repeated call is recognised."""
    content = request.replace(
        table=None,
        eventTimes=dict(sorted((request.eventTimes or {}).items())),
        layout=None if request.layout is None else dict(sorted(request.layout.items())),
        schemaProperties=dict(sorted((request.schemaProperties or {}).items())),
    )
    return hashlib.sha256(binary.encode(content)).digest()
