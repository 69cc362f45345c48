"""The writing calls of timelines, except for completions: begin, transition, heartbeat, delete.

Completions: `commit`. Reading calls: `queries`. Aborting and archiving: `sweeper`.
"""

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import BeginInstantRequest, Instant, TableReference
from metastore.services.instant_rules import states as rules
from metastore.services.instant_rules.keyed_tables import check_layout
from metastore.services.instant_rules.paths import base_of, directory_of
from metastore.services.instant_rules.table_properties import check_timeline_properties
from metastore.services.table.service import TableService
from metastore.services.timeline.hive_sync import lake_partition
from metastore.services.timeline.lookup import (
    abort,
    check_attempt,
    check_is_of,
    end_expired,
    give_back,
    held_instant,
    held_lake_table,
    last_to_save,
    saved_position,
    written_lake_table,
)
from metastore.services.timeline.staging import InstantFiles
from metastore.services.timeline.thrift_objects import describe_instant, to_thrift
from metastore.store import Database
from metastore.store.engine.clock import now_ms
from metastore.store.engine.database import Transaction
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants
from metastore.store.timeline.instants import InstantRow, Timeline, TimelineToBegin

MAX_PLAN = 100_000
"""File groups that the plan of a table service may name."""


class TimelineService:
    """Begins and changes instants of lake tables. Every call is one transaction."""

    def __init__(
        self, database: Database, tables: TableService, files: InstantFiles, *, heartbeat_seconds: float
    ) -> None:
        """`heartbeat_seconds`: an instant that has sent a heartbeat ends after so long without another: it is aborted,
        or requested again if it has a plan."""
        self._database = database
        self._tables = tables
        self._files = files
        self._heartbeat_seconds = heartbeat_seconds

    def begin(self, request: BeginInstantRequest) -> Instant:
        """Adds an instant to a table's timeline. A repeated call with a timestamp of the writer's own succeeds.

        Raises NoSuchObjectException, InvalidOperationException.
        """
        action = rules.check_begun_action(request.action)
        state = rules.check_state(request.state or rules.REQUESTED)
        if state == rules.COMPLETED:
            raise InvalidOperationException("an instant begins as requested or inflight; complete it afterwards")
        plan = request.plan or []
        if len(plan) > MAX_PLAN:
            raise InvalidOperationException(f"a plan names at most {MAX_PLAN} file groups, not {len(plan)}")
        own = None if request.timestamp is None else rules.check_timestamp(request.timestamp)
        name = None if request.name is None else rules.check_name(request.name, action)
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, request.table)
            if action not in rules.UNDOING:
                check_timeline_properties(row.parameters)
            check_layout(row, request.layout)
            groups = [(lake_partition(row, each.partition).name, _group(each.fileGroup)) for each in plan]
            # The table's row isn't locked, since a completion may lock it for long.
            held = instants.hold_timeline_to_begin(tx, row.id, self._heartbeat_seconds)
            if held is None:
                row, held = self._started(tx, request.table)
            line, now = held.line, held.now
            if held.silent:
                end_expired(tx, row, instants.dead(tx, self._heartbeat_seconds, row.id))
            if own is None and action == rules.SAVEPOINT:
                own = last_to_save(tx, row)
            if own is not None and (known := instants.find(tx, row.id, own, action)) is not None:
                self._check_again(tx, known, state, request.metadata or b"")
                if known.name != name:
                    raise InvalidOperationException(f"{describe_instant(known)} already, with the name {known.name!r}")
                return _in_directory(row, known)
            if own is not None:
                rules.check_not_ahead(own, now)
                _check_names(tx, row, own, name)
                self._files.clear(tx, row, own, action)
            timestamp = own or rules.next_timestamp(line.last_timestamp, now)
            read = self._read_position(tx, row, line, action, timestamp, request)
            attempt, planned = int(state == rules.INFLIGHT), bool(groups) and action in rules.PLANNED
            given = rules.is_servers(timestamp) and timestamp > line.last_timestamp
            found = instants.add(
                tx,
                held.next_id,
                row.id,
                timestamp,
                action,
                state,
                now,
                read,
                attempt=attempt,
                planned=planned,
                name=name,
                line=line._replace(last_timestamp=timestamp) if given else None,
            )
            if request.metadata is not None:
                instants.put_metadata(tx, found.id, state, request.metadata)
            instants.put_plan(tx, found.id, groups)
            if request.heartbeat:
                instants.beat(tx, found.id)
            return _in_directory(row, found)

    def transition(
        self,
        table: TableReference | None,
        timestamp: str | None,
        action: str | None,
        to: str | None,
        content: bytes | None,
        *,
        runner: str | None = None,
        attempt: int | None = None,
        heartbeat: bool = False,
    ) -> Instant:
        """Moves an instant into the state `to`. A repeated call with the same metadata succeeds.

        A plan is taken up by one process only: a repeated call to make it inflight succeeds with the same `runner`
        only. Going back to requested, its heartbeats are forgotten and the files of the attempt are deleted. `attempt`:
        the caller's, as of `check_attempt`. `heartbeat`: the process that takes it up will send heartbeats.

        Raises NoSuchObjectException, InvalidOperationException if the states don't allow it, or if another process runs
        the plan.
        """
        state = rules.check_state(to)
        if runner is not None and not 0 < len(runner) <= rules.MAX_RUNNER:
            raise InvalidOperationException(f"a runner has 1 to {rules.MAX_RUNNER} characters, not {len(runner)}")
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, table)
            found = held_instant(tx, row, timestamp, action)
            check_attempt(found, attempt)
            if found.state == state and state != rules.COMPLETED:
                if found.planned and state == rules.INFLIGHT and (runner is None or runner != found.runner):
                    raise InvalidOperationException(f"{describe_instant(found)}: it is run by another process")
                self._check_again(tx, found, state, content)
                if heartbeat and state == rules.INFLIGHT:
                    instants.beat(tx, found.id)
                return _in_directory(row, found) if state == rules.INFLIGHT else to_thrift(found)
            if not rules.may_become(found.action, found.state, state):
                advice = ": complete it by lake_complete_instants" if state == rules.COMPLETED else ""
                raise InvalidOperationException(f"{describe_instant(found)} can't become {state}{advice}")
            if state == rules.REQUESTED:
                changed = give_back(tx, row, found)
            else:
                changed = found._replace(state=state, changed_at=now_ms(tx), attempt=found.attempt + 1, runner=runner)
                instants.change_state(tx, changed)
                if heartbeat:
                    instants.beat(tx, found.id)
            if content is not None:
                instants.put_metadata(tx, found.id, state, content)
            return _in_directory(row, changed) if state == rules.INFLIGHT else to_thrift(changed)

    def heartbeat(
        self, table: TableReference | None, timestamp: str | None, action: str | None, attempt: int | None = None
    ) -> None:
        """Records a heartbeat. If they stop after the first one, the instant is aborted, or a plan requested again.

        `attempt`: the caller's, as of `check_attempt`. Raises NoSuchObjectException, InvalidOperationException for a
        completed instant, and for one that was given back.
        """
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, table)
            found = held_instant(tx, row, timestamp, action)
            check_attempt(found, attempt)
            if found.state == rules.COMPLETED:
                raise InvalidOperationException(f"{describe_instant(found)}: it needs no heartbeats")
            if found.state == rules.REQUESTED and found.attempt:
                raise InvalidOperationException(f"{describe_instant(found)} again: nobody runs it")
            instants.beat(tx, found.id)

    def delete(self, table: TableReference | None, timestamp: str | None, action: str | None) -> None:
        """Aborts an instant that isn't completed, or removes a completed one that changed no file.

        Aborting also deletes the files of its rejected completion. Without such an instant nothing happens. Raises
        NoSuchObjectException without the table, and InvalidOperationException for an instant that only a rollback can
        undo.
        """
        rules.check_action(action)
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, table)
            found = instants.find(tx, row.id, timestamp or "", action or "", lock=True)
            if found is None:
                return
            if found.state == rules.COMPLETED:
                rules.check_removable(found.action, describe_instant(found))
            if found.state == rules.COMPLETED and found.action not in rules.DELETABLE:
                raise InvalidOperationException(f"{describe_instant(found)}: undo it by a rollback or a restore")
            if found.state == rules.COMPLETED:
                instants.remove(tx, [found.id])  # its position is not given again
            else:
                abort(tx, row, [found])

    @staticmethod
    def _check_again(tx: Transaction, known: InstantRow, state: str, content: bytes | None) -> None:
        """Checks a repeated call. Raises InvalidOperationException if the first call was another one."""
        if known.state != state:
            raise InvalidOperationException(f"{describe_instant(known)} already")
        if content and instants.metadata_of(tx, known.id).get(state, b"") != content:
            raise InvalidOperationException(f"{describe_instant(known)} already, with other metadata")

    def _started(self, tx: Transaction, table: TableReference | None) -> tuple[TableRow, TimelineToBegin]:
        """Creates a table's timeline. Returns the table's row and the timeline, both locked."""
        row = held_lake_table(self._tables, tx, table)
        instants.start_timeline(tx, row.id)
        held = instants.hold_timeline_to_begin(tx, row.id, self._heartbeat_seconds)
        assert held is not None, "nobody drops a locked table"
        return row, held

    @staticmethod
    def _read_position(
        tx: Transaction, row: TableRow, line: Timeline, action: str, timestamp: str, request: BeginInstantRequest
    ) -> int:
        """The position that the writer has read; for a savepoint, the position that it protects."""
        if action == rules.SAVEPOINT:
            return saved_position(tx, row, line, timestamp)
        if request.readPosition is None:
            return line.position
        if not 0 <= request.readPosition <= line.position:
            raise InvalidOperationException(
                f"{row.name} has no position {request.readPosition}: the last one is {line.position}"
            )
        check_is_of(tx, row, request.table, request.readPosition)
        if request.readPosition < line.forgotten:
            raise InvalidOperationException(
                f"the changes of {row.name} since position {request.readPosition} are no longer kept: read the table"
                f" again, at position {line.forgotten} or later"
            )
        return request.readPosition


def _check_names(tx: Transaction, row: TableRow, timestamp: str, name: str | None) -> None:
    """Checks that a text says which snapshot is meant: no timestamp is a savepoint's name, and no two have one name.

    `timestamp`, `name`: of a new instant. Raises InvalidOperationException.
    """
    if (taken := instants.saved_as(tx, row.id, timestamp)) is not None:
        raise InvalidOperationException(f"{timestamp!r} is the name of the savepoint {taken.timestamp} of {row.name}")
    if name is None:
        return
    if (taken := instants.saved_as(tx, row.id, name)) is not None:
        raise InvalidOperationException(
            f"{row.name} has a savepoint {name!r} already, {taken.timestamp}: delete it first"
        )
    if name == timestamp or instants.completed_at(tx, row.id, name) is not None:
        raise InvalidOperationException(f"{name!r} is no name of a savepoint: an instant of {row.name} is called so")


def _in_directory(row: TableRow, instant: InstantRow) -> Instant:
    """An instant for the process that runs it, with the directory for its files."""
    return to_thrift(instant).replace(directory=f"{base_of(row.location or '')}/{directory_of(instant)}")


def _group(name: str | None) -> str:
    if not name:
        raise InvalidOperationException("a file group needs a name")
    return name
