"""Watermarks, and committing partitions when event time or the clock has passed them."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import structlog

from lake.protocol.formats.commit_mode import CommitMode
from lake.protocol.lake import LateRows, SourceProgress, TableReference, Watermark
from metastore.services.commit_flag.partition_time import PartitionClock
from metastore.services.commit_flag.policy import CREATE_EMPTY, ReadinessProperties
from metastore.services.commit_flag.transitions import Commits, properties_of
from metastore.services.commit_flag.watermarks import furthest, is_idle, leader
from metastore.services.files.staged_files import Publisher
from metastore.services.partition.writes import PartitionService
from metastore.services.readiness.due import due_partitions, opening_times
from metastore.services.readiness.empty_partitions import EmptyPartitions
from metastore.services.table.service import TableService
from metastore.store import Database
from metastore.store.catalog.databases import RowLock
from metastore.store.commit_flag import readiness
from metastore.store.commit_flag.readiness import Readiness
from metastore.store.engine.clock import now_ms
from metastore.store.engine.database import Transaction
from metastore.store.partition import partitions
from metastore.store.partition.partitions import Selection
from metastore.store.table import tables
from metastore.store.table.tables import TableRow
from metastore.warehouse import WarehouseError

MAX_FAILURES = 10
"""After this number of storage failures, the rest of a table's partitions wait for the next run."""

PATIENCE = 1.0
"""Seconds that the leader task waits for a table's locks before it goes on to the next table."""

BY_CLOCK = "process-time"
"""The committer's name in the mode process-time."""

log = structlog.get_logger(__name__)


class Backlog(NamedTuple):
    """How far readiness lags behind, in the whole metastore.

    `watermark_age`: milliseconds since the oldest watermark among the tables with event-time commit that have
    uncommitted partitions, or that get empty ones; 0 if there is none. `overdue`: the number of partitions that are due
    and could not be made ready.
    """

    watermark_age: int
    overdue: int


class ReadinessService:
    """Decides when partitions are ready. Any number of servers may run it at once: each partition is committed once."""

    def __init__(
        self,
        database: Database,
        tables: TableService,
        partitions: PartitionService,
        publisher: Publisher,
        commits: Commits,
    ) -> None:
        self._database = database
        self._tables = tables
        self._empty = EmptyPartitions(database, partitions)
        self._publisher = publisher
        self._commits = commits
        self._quiet: dict[int, _Quiet] = {}
        self._outlooks: dict[int, _Outlook] = {}  # the last of each table that commit_due_everywhere looked at

    def watermark(self, table: TableReference) -> Watermark:
        """A table's watermark, its sources, and its uncommitted partitions. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            now = now_ms(tx)
            row = self._tables.row_of(tx, table)
            properties = properties_of(row)
            state = readiness.get(tx, row.id)
            progress = readiness.progress(tx, row.id)
            uncommitted = Selection(row.id, only_uncommitted=True)
            count, first = partitions.count(tx, uncommitted), partitions.names(tx, uncommitted, 1)
        return Watermark(
            watermark=state.watermark,
            commitMode=properties.mode,
            sources=[
                SourceProgress(one.chain, one.source, one.watermark, one.reported_at, is_idle(one, properties, now))
                for one in progress
            ],
            late=LateRows(state.rerouted, state.reopened, state.dropped),
            uncommitted=count,
            oldestUncommitted=first[0] if first else None,
            delay=properties.delay,
            interval=(properties.interval and properties.interval.milliseconds) or None,
            latePolicy=properties.late_rows,
            tableId=row.id,
        )

    def commit_due(self, table_id: int, *, patience: float | None = None) -> list[str]:
        """Commits the due partitions of a table. Returns their names.

        A partition whose files can't be completed is logged and skipped. `patience`: how long to wait for locks, in
        seconds, before DatabaseUnavailable is raised.
        """
        self._empty.add(table_id)
        outlook = self._look(table_id)
        return self._commit_all(table_id, outlook.due, patience) if outlook is not None else []

    def commit_due_everywhere(self) -> Backlog:
        """Commits the due partitions of all tables. Returns the backlog that remains.

        It first finishes moves of files that crashed servers left. A failure is logged, and tried again at the next
        call. For one thread at a time.
        """
        self._publisher.carry_out_pending()
        with self._database.read() as tx:
            found = readiness.candidates(tx, CREATE_EMPTY)
            now = now_ms(tx)
        known = {each.table_id for each in found}
        self._quiet = {table_id: quiet for table_id, quiet in self._quiet.items() if table_id in known}
        self._outlooks = {table_id: outlook for table_id, outlook in self._outlooks.items() if table_id in known}
        for each in found:
            quiet = self._quiet.get(each.table_id)
            if quiet is not None and quiet.holds(each, now):
                continue
            try:
                self._commit_unless_quiet(each.table_id)
            except Exception as error:  # one table's failure must not stop the others
                log.warning("partitions can't be made ready", table_id=each.table_id, error=str(error))
        return self._backlog(now)

    def _backlog(self, now: int) -> Backlog:
        watermarks = [
            outlook.quiet.watermark
            for outlook in self._outlooks.values()
            if outlook.quiet.properties.mode is CommitMode.EVENT_TIME and outlook.quiet.watermark is not None
        ]
        overdue = sum(len(outlook.due) for outlook in self._outlooks.values())
        return Backlog(max(now - min(watermarks, default=now), 0), overdue)

    def _commit_unless_quiet(self, table_id: int) -> None:
        more = self._empty.add(table_id)
        outlook = self._look(table_id)
        if outlook is None:
            self._outlooks.pop(table_id, None)
            return
        self._outlooks[table_id] = outlook
        if outlook.due or outlook.moved:
            turned = set(self._commit_all(table_id, outlook.due, PATIENCE))
            self._outlooks[table_id] = replace(outlook, due=[name for name in outlook.due if name not in turned])
        elif not more:
            self._quiet[table_id] = outlook.quiet

    def _look(self, table_id: int) -> "_Outlook | None":
        """Finds the due partitions of a table, without locks; None if there is no such table."""
        with self._database.read() as tx:
            row = tables.find_by_id(tx, table_id)
            if row is None:
                return None
            now = now_ms(tx)
            properties = properties_of(row)
            before = readiness.get(tx, table_id).watermark
            watermark = furthest(before, readiness.progress(tx, table_id), properties, now)
            due: list[str] = []
            until = math.inf
            if properties.mode is CommitMode.EVENT_TIME and watermark is not None:
                clock = _clock(properties)
                for each in readiness.open_partitions(tx, table_id):
                    deadline = _deadline(clock, tuple(each.values))
                    if each.commit_time is None and deadline is not None and watermark > deadline:
                        due.append(each.name)
            elif properties.mode is CommitMode.PROCESS_TIME:
                held = [p for p in partitions.rows(tx, Selection(row.id, only_uncommitted=True)) if not p.commit_time]
                deadlines = {p.name: opened + properties.delay for p, opened in opening_times(tx, row, held)}
                due = [name for name, deadline in deadlines.items() if now > deadline]
                until = min(deadlines.values(), default=math.inf)
            waiting = {*self._commits.unpublished(tx, row, due)} if due else set()
            due = [name for name in due if name not in waiting]
        return _Outlook(due, watermark != before, _Quiet(row.version, properties, watermark, until))

    def _commit_all(self, table_id: int, due: Sequence[str], patience: float | None) -> list[str]:
        """Commits partitions together; if the files of some can't be completed, one by one."""
        try:
            return self._commit(table_id, due, patience)
        except WarehouseError as error:
            log.warning("partitions can't be made ready", table_id=table_id, partitions=len(due), error=str(error))
        turned: list[str] = []
        failures = 0
        # In random order, so that not always the same ones are skipped.
        for name in random.sample(due, len(due)) if len(due) > 1 else ():
            try:
                turned += self._commit(table_id, [name], patience)
            except WarehouseError as error:
                log.warning("a partition can't be made ready", table_id=table_id, partition=name, error=str(error))
                failures += 1
                if failures == MAX_FAILURES:
                    break
        return sorted(turned)

    def _commit(self, table_id: int, names: Sequence[str], patience: float | None) -> list[str]:
        """Locks partitions, and commits those that are still due, all or none."""
        with self._database.write() as tx:
            if patience is not None:
                readiness.wait_at_most(tx, patience)
            row = tables.find_by_id(tx, table_id, RowLock.SHARED)
            if row is None:
                return []
            properties = properties_of(row)
            self._commits.hold_timeline(tx, row)
            state, by = self.advance(tx, row, properties)
            selection = Selection(row.id, only_uncommitted=True, names=names)
            held = [p for p in partitions.rows(tx, selection, lock=True) if p.commit_time is None]
            waiting = {*self._commits.unpublished(tx, row, [p.name for p in held])}
            held = [p for p in held if p.name not in waiting]
            return self._commits.commit(tx, row, due_partitions(tx, row, properties, held, state), by)

    def advance(self, tx: Transaction, row: TableRow, properties: ReadinessProperties) -> tuple[Readiness, str]:
        """Updates a table's watermark from its sources. Returns the locked state, and the name of the leading chain.

        A chain's watermark is that of its slowest source that isn't idle. The table's watermark is that of the furthest
        chain, and never decreases. Among equal chains, the one that was there first leads. In the mode process-time,
        the returned name is BY_CLOCK.
        """
        state = readiness.hold(tx, row.id)
        progress = readiness.progress(tx, row.id)
        now = now_ms(tx)
        watermark = furthest(state.watermark, progress, properties, now)
        if watermark != state.watermark:
            state = state._replace(watermark=watermark)
            readiness.put(tx, row.id, state)
        if properties.mode is CommitMode.PROCESS_TIME:
            return state, BY_CLOCK
        return state, leader(progress, properties, now)


@dataclass(frozen=True, slots=True)
class _Quiet:
    """A table's state when nothing was due, and until when, in milliseconds, nothing becomes due by the clock."""

    version: int
    properties: ReadinessProperties
    watermark: int | None
    until: float

    def holds(self, now_is: readiness.Candidate, now: int) -> bool:
        """Whether still nothing is due: neither the table nor its watermark has changed."""
        return (
            self.version == now_is.version
            and now <= self.until
            and self.watermark == furthest(now_is.watermark, now_is.progress, self.properties, now)
        )


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What to do for a table. `due`: partitions to commit. `moved`: the watermark has changed. Else it is quiet."""

    due: list[str]
    moved: bool
    quiet: _Quiet


@lru_cache(maxsize=1_000)
def _clock(properties: ReadinessProperties) -> PartitionClock:
    return PartitionClock(properties)


@lru_cache(maxsize=50_000)
def _deadline(clock: PartitionClock, values: tuple[str, ...]) -> int | None:
    """A partition's deadline, cached: open partitions are checked again and again until they are due."""
    return clock.deadline(values)
