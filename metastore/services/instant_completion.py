"""Completing instants: one transaction changes the timeline, the snapshot, Hive's view and the log of events.

Writers don't wait for one another while they write. When one completes, what others completed since it read is looked
at; if both changed the same, it has lost, and nothing of it is ever visible.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from metastore.clock import now_ms
from metastore.services import instant_files
from metastore.services import instant_rules as rules
from metastore.services.commits import properties_of
from metastore.services.events import Events
from metastore.services.instant_changes import Planner, undone
from metastore.services.instant_conflicts import Strategy, overlap
from metastore.services.instant_files import InstantFiles
from metastore.services.instant_sealing import Changes, change_snapshot, common_time, seal
from metastore.services.lake_columns import change_columns
from metastore.services.lake_partitions import HiveView, lake_partition
from metastore.services.publishing import Publisher
from metastore.services.readiness import ReadinessService
from metastore.services.source_reports import progress_of
from metastore.services.tables import TableService
from metastore.services.timeline import (
    TimelineService,
    give_up,
    held_instant,
    held_lake_table,
    placed,
    saved_position,
    spoken,
    told,
)
from metastore.store import Conflict, Database, DatabaseUnavailable, data_files, instants, readiness
from metastore.store.database import Transaction
from metastore.store.databases import Hold
from metastore.store.instants import InstantRow, RefusalRow, Timeline
from metastore.store.tables import TableRow
from metastore.warehouse import WarehouseError
from metastore.wire import binary
from metastore.wire.hive import InvalidOperationException
from metastore.wire.lake import (
    CompletedInstant,
    CompleteInstantRequest,
    InstantConflict,
    InstantKey,
    TableReference,
)
from metastore.wire.struct import ExceptionStruct

MAX_TOGETHER = 100
"""Instants that complete in one transaction."""

MAX_NAMED = 1_000
"""Overlaps that a refusal lists."""

MAX_WINNERS = 10
"""Instants that a refusal names."""

MAX_REFUSALS = 1_000
"""Refused completions of a table that are kept."""

log = structlog.get_logger(__name__)


class Meaning(NamedTuple):
    """What a completion's metadata means: a request that names files, and where partitions lie, relative to the table,
    that aren't in the directory of their name.
    """

    request: CompleteInstantRequest
    directories: Mapping[str, str]


Read = Callable[[Transaction, TableRow, InstantRow, CompleteInstantRequest], Meaning]
"""Reads metadata, in the transaction that completes the instant and while its timeline is held."""


class InstantCompletion:
    """Completes instants."""

    def __init__(
        self,
        database: Database,
        tables: TableService,
        timeline: TimelineService,
        hive_view: HiveView,
        readiness: ReadinessService,
        events: Events,
        publisher: Publisher,
        files: InstantFiles,
    ) -> None:
        self._database = database
        self._publisher = publisher
        self._files = files
        self._tables = tables
        self._timeline = timeline
        self._hive_view = hive_view
        self._readiness = readiness
        self._events = events

    def complete(
        self, requests: Sequence[CompleteInstantRequest], *, meaning: Read | None = None
    ) -> list[CompletedInstant]:
        """Completes instants of one table each, all or none, in the order of the requests.

        With `meaning`, what is completed is what that makes of a request. Who doesn't know whether an earlier call had
        succeeded calls again with the same. Raises NoSuchObjectException, InvalidOperationException, InstantConflict
        if another writer was quicker, WarehouseError.
        """
        if not 0 < len(requests) <= MAX_TOGETHER:
            raise InvalidOperationException(f"give 1 to {MAX_TOGETHER} instants to complete, not {len(requests)}")
        try:
            with self._database.write() as tx:
                done = self._complete_all(tx, requests, meaning)
        except Conflict:
            raise InvalidOperationException("an instant with that timestamp and action is completed already") from None
        except _Lost as lost:
            self._keep_loss(lost)
            raise InstantConflict(str(lost), lost.winners, lost.overlap, lost.paths) from None
        self._finish(done)
        # The moments are known once the sequencer has run: that is for readers.
        return [each.answer for each in done]

    def _complete_all(
        self, tx: Transaction, requests: Sequence[CompleteInstantRequest], meaning: Read | None
    ) -> list["_Done"]:
        held: dict[int, _Held] = {}
        # In the order of names, as everybody who holds several tables.
        for request in sorted(requests, key=lambda each: _named(each.table)):
            changes_table = request.columns is not None or request.relocate or meaning is not None
            hold = Hold.EXCLUSIVE if changes_table else Hold.SHARED
            row = held_lake_table(self._tables, tx, request.table, hold)
            if row.id in (each.row.id for each in held.values()):
                raise InvalidOperationException(
                    f"two of the instants are {row.name}'s: complete one of a table at a time"
                )
            line = instants.hold_completions(tx, row.id)
            held[id(request)] = _Held(row, line, held_instant(tx, row, request.timestamp, request.action))
        repeated = [each for each in requests if held[id(each)].instant.state == rules.COMPLETED]
        if repeated:
            done = [self._again(tx, each, *held[id(each)]) for each in repeated]
            if len(done) < len(requests):
                raise InvalidOperationException("some of the instants are completed already, others are not")
            return done
        changed = [self._change(tx, each, *held[id(each)], meaning) for each in requests]
        now = common_time(tx, [each.row.id for each in changed]) if len(changed) > 1 else None
        done = [self._seal(tx, each, now) for each in changed]
        # One moment for all of them, so that no reader sees some without the others.
        instants.put_event(tx, [each.instant_id for each in done], max(each.event or 0 for each in done))
        return done

    @staticmethod
    def _again(
        tx: Transaction, request: CompleteInstantRequest, row: TableRow, _line: Timeline, instant: InstantRow
    ) -> "_Done":
        """What is answered to who doesn't know that an earlier call succeeded."""
        if instant.digest != _digest(request):
            raise InvalidOperationException(f"{spoken(instant)} already, with another content")
        answer = CompletedInstant(request.table, told(placed(tx, [instant])[0]), True, row.version)
        return _Done(answer, row.id, instant.id, None, has_event_times=False)

    def _change(
        self,
        tx: Transaction,
        request: CompleteInstantRequest,
        row: TableRow,
        line: Timeline,
        instant: InstantRow,
        meaning: Read | None,
    ) -> "_Changed":
        """All of a completion but its end; meanwhile others begin."""
        if instant.state != rules.INFLIGHT:
            raise InvalidOperationException(f"{spoken(instant)}: it must be inflight to be completed")
        digest = _digest(request)
        directories: Mapping[str, str] = {}
        if meaning is not None:
            request, directories = meaning(tx, row, instant, request)
        if self._files.pending(tx, row):
            # What is removed, or lies elsewhere from now on, must have arrived where it was to be.
            self._files.settle(row)
        relocated = self._files.relocated(row, instant, request)
        joined = self._files.joined(tx, row, instant, request)
        asked, request = request, joined.request
        action = rules.completed_action(instant.action, request.newAction)
        if instant.begun_as == rules.SAVEPOINT:
            saved_position(tx, row, line, instant.timestamp)  # a clean may have come in between
        if request.rolledBack is not None:
            changes = self._undo(tx, row, instant, request, line)
        else:
            planner = Planner(tx, row, request, compacts=instant.begun_as in rules.COMPLETES_AS)
            read = _read_position(row, instant, request, line.position)
            changes = planner.named(read)
            self._check_conflicts(tx, row, instant, asked, changes, read, line.position)
            planner.resolve(changes)
        if request.cleanedPaths is not None:
            line = self._clean(tx, row, instant, request.cleanedPaths, line)
        if request.metadata is not None:
            instants.put_metadata(tx, instant.id, rules.COMPLETED, request.metadata)
        data_files.forget_leftovers_of(tx, instant.id)
        directories = {**directories, **joined.directories}
        self._apply(tx, row, instant, request, changes, line.position + 1, directories, relocated)
        self._files.record(tx, row, instant, joined)
        return _Changed(request, digest, row, line, instant, action, changes)

    def _seal(self, tx: Transaction, changed: "_Changed", now: int | None) -> "_Done":
        request, digest, row, line, instant, action, changes = changed
        sealed = seal(
            tx,
            row,
            self._events,
            instant,
            changes,
            action=action,
            position=line.position + 1,
            oldest_readable=line.oldest_readable,
            digest=digest,
            now=now,
        )
        answer = CompletedInstant(request.table, told(sealed.instant), False, sealed.version)
        return _Done(answer, row.id, instant.id, sealed.event, has_event_times=bool(request.eventTimes))

    def _apply(
        self,
        tx: Transaction,
        row: TableRow,
        instant: InstantRow,
        request: CompleteInstantRequest,
        changes: Changes,
        position: int,
        directories: Mapping[str, str],
        relocated: Mapping[str, str],
    ) -> None:
        """Changes the snapshot, the table's columns, its watermark, and what Hive's readers see."""
        sums = change_snapshot(tx, row, position, changes)
        if request.columns is not None:
            row = change_columns(tx, row, request.columns, request.schemaProperties or {}, self._events)
        if request.eventTimes:
            properties = properties_of(row)
            readiness.hold(tx, row.id)
            readiness.put_progress(tx, row.id, progress_of(tx, row, request.chain, request.eventTimes, properties))
            self._readiness.advance(tx, row, properties)
        if request.rolledBack is not None:
            relocated = instant_files.back(sums, changes, instant)
        self._hive_view.update(tx, row, sums, changes.values, directories, relocated)

    @staticmethod
    def _check_conflicts(
        tx: Transaction,
        row: TableRow,
        instant: InstantRow,
        request: CompleteInstantRequest,
        changes: Changes,
        read: int,
        last: int,
    ) -> None:
        """Raises _Lost if something that was completed since the writer read is in its way."""
        strategy = Strategy.parse(request.strategy) if request.strategy else Strategy.of_table(row.parameters)
        if not changes.touches or read >= last:
            return
        touched = None if strategy is Strategy.TABLE else {each.partition for each in changes.touches}
        both: dict[str, None] = {}
        winning: list[int] = []
        for position, theirs in instants.touches(tx, row.id, read, last, touched).items():
            found = overlap(strategy, changes.touches, theirs)
            if found:
                winning.append(position)
                both.update(dict.fromkeys(found))
        if winning:
            winners = instants.by_positions(tx, row.id, winning[:MAX_WINNERS])
            raise _Lost(row, instant, winners, list(both), [each.path or "" for each in request.added or ()])

    @staticmethod
    def _undo(
        tx: Transaction, row: TableRow, instant: InstantRow, request: CompleteInstantRequest, line: Timeline
    ) -> Changes:
        """What brings the snapshot back to before some instants, which must be the last ones that changed it."""
        if instant.begun_as not in rules.UNDOING:
            raise InvalidOperationException(f"only a rollback or a restore undoes others, not a {instant.begun_as}")
        if request.added or request.removedGroups or request.removedPaths or request.replacedPartitions:
            raise InvalidOperationException("a rollback or restore changes no files but those of what it undoes")
        found = [held_instant(tx, row, *_key(each)) for each in request.rolledBack or ()]
        given_up = [each for each in found if each.position is None and each.id != instant.id]
        completed = [each for each in found if each.position is not None]
        changes = Changes()
        if completed:
            back_to = min(each.position or 0 for each in completed) - 1
            undone_ids = {each.id for each in completed}
            for later in instants.completed_after(tx, row.id, back_to, line.position, line.position):
                if later.id not in undone_ids and later.undone_by is None and later.action not in rules.DELETABLE:
                    raise InvalidOperationException(f"{spoken(later)} since then: undo it, too")
            if back_to < line.oldest_readable and back_to not in instants.saved_positions(tx, row.id):
                raise InvalidOperationException(f"files of the snapshot at position {back_to} have been cleaned")
            after, before = data_files.changed_since(tx, row.id, back_to)
            names = {each.partition for each in (*after, *before)}
            changes = undone(before, after, {name: lake_partition(row, name) for name in names})
            instants.undo(tx, sorted(undone_ids), instant.timestamp)
        give_up(tx, row, given_up)
        return changes

    @staticmethod
    def _clean(tx: Transaction, row: TableRow, instant: InstantRow, paths: Sequence[str], line: Timeline) -> Timeline:
        """Forgets files that nobody needs, and has them deleted. Raises InvalidOperationException for others."""
        if instant.begun_as != rules.CLEAN:
            raise InvalidOperationException(f"only a clean removes files for good, not a {instant.begun_as}")
        found = data_files.unneeded_paths(tx, row.id, paths, instants.saved_positions(tx, row.id))
        needed = data_files.known_paths(tx, row.id, set(paths)) - {each.path for each in found}
        if needed:
            raise InvalidOperationException(
                f"the file {min(needed)!r} belongs to the latest snapshot or to a savepoint"
            )
        data_files.purge(tx, row.id, [each.id for each in found])
        oldest = max((each.removed_at or 0 for each in found), default=0)
        return line._replace(oldest_readable=max(line.oldest_readable, oldest))

    def _keep_loss(self, lost: "_Lost") -> None:
        """Keeps why an instant was refused, and which files go with it when it is given up."""
        with self._database.write() as tx:
            found = instants.find(tx, lost.row.id, lost.instant.timestamp, lost.instant.begun_as, lock=True)
            if found is None or found.position is not None:
                return
            instants.note_conflict(tx, found.id, str(lost))
            winners = [each.position or 0 for each in lost.winners]
            refusal = RefusalRow(
                found.timestamp, found.begun_as, found.requested_at, now_ms(), winners, reason=str(lost)
            )
            instants.add_refusal(tx, lost.row.id, refusal, MAX_REFUSALS)
            data_files.forget_leftovers_of(tx, found.id)
            data_files.leave_over(tx, lost.row.id, lost.paths, found.id)

    def _finish(self, done: Sequence["_Done"]) -> None:
        """What follows from completions; they are done whatever becomes of it, and housekeeping tries again."""
        for each in done:
            try:
                self._publisher.carry_out(each.table_id)
            except (WarehouseError, DatabaseUnavailable) as error:
                log.warning("files of an instant can't be moved yet", table_id=each.table_id, error=str(error))
            try:
                if each.has_event_times:
                    self._readiness.commit_due(each.table_id)
            except (WarehouseError, DatabaseUnavailable, ExceptionStruct) as error:
                log.warning("partitions can't be made ready yet", table_id=each.table_id, error=str(error))
        try:
            self._timeline.delete_leftovers()
        except DatabaseUnavailable as error:
            log.warning("files can't be deleted yet", error=str(error))


class _Held(NamedTuple):
    row: TableRow
    line: Timeline
    instant: InstantRow


class _Changed(NamedTuple):
    """A completion that has yet to be sealed."""

    request: CompleteInstantRequest
    digest: bytes
    row: TableRow
    line: Timeline
    instant: InstantRow
    action: str
    changes: Changes


@dataclass(frozen=True, slots=True)
class _Done:
    """A completion; without an `event` if an earlier call had done it."""

    answer: CompletedInstant
    table_id: int
    instant_id: int
    event: int | None
    has_event_times: bool


class _Lost(Exception):
    """Another writer was quicker."""

    def __init__(
        self, row: TableRow, instant: InstantRow, winners: Sequence[InstantRow], overlap: list[str], paths: list[str]
    ) -> None:
        by = ", ".join(f"{each.timestamp} {each.action}" for each in winners)
        what = "; ".join(overlap[:MAX_WINNERS]) + (" and more" if len(overlap) > MAX_WINNERS else "")
        super().__init__(
            f"{row.name}: {by} completed since {instant.timestamp} {instant.action} read the table, and changed the"
            f" same: {what}. Give the instant up, read again and begin anew"
        )
        self.row = row
        self.instant = instant
        self.winners = [told(each) for each in winners]
        self.overlap = overlap[:MAX_NAMED]
        self.paths = paths


def _read_position(row: TableRow, instant: InstantRow, request: CompleteInstantRequest, last: int) -> int:
    """How far a writer has read: when it began, or since. Raises InvalidOperationException."""
    if request.readPosition is None:
        return instant.read_position
    if not 0 <= request.readPosition <= last:
        raise InvalidOperationException(f"{row.name} has no position {request.readPosition}: the last one is {last}")
    return max(instant.read_position, request.readPosition)


def _named(table: TableReference | None) -> tuple[str, ...]:
    named = table or TableReference()
    return (named.catalog or "", (named.database or "").lower(), (named.table or "").lower())


def _key(key: InstantKey) -> tuple[str | None, str | None]:
    return key.timestamp, key.action


def _digest(request: CompleteInstantRequest) -> bytes:
    """By which the same completion is known again."""
    content = request.replace(
        table=None,
        eventTimes=dict(sorted((request.eventTimes or {}).items())),
        schemaProperties=dict(sorted((request.schemaProperties or {}).items())),
    )
    return hashlib.sha256(binary.encode(content)).digest()
