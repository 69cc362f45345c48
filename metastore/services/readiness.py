"""Watermarks, and making partitions ready as event time, or the clock, passes them."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import structlog

from metastore.clock import now_ms
from metastore.services.commit_flag import OPENED
from metastore.services.commits import Commits, properties_of
from metastore.services.empty_partitions import EmptyPartitions
from metastore.services.partition_rows import decoded
from metastore.services.partition_time import PartitionClock
from metastore.services.partitions import PartitionService
from metastore.services.publishing import Publisher
from metastore.services.readiness_properties import CREATE_EMPTY, CommitMode, ReadinessProperties
from metastore.services.tables import TableService
from metastore.services.watermarks import furthest, is_idle, leader
from metastore.store import Database, partitions, readiness, tables
from metastore.store.database import Transaction
from metastore.store.databases import Hold
from metastore.store.partitions import PartitionRow, Selection
from metastore.store.readiness import Readiness
from metastore.store.tables import TableRow
from metastore.warehouse import WarehouseError
from metastore.wire.lake import LateRows, SourceProgress, TableReference, Watermark

MAX_FAILURES = 10
"""After so many partitions whose files can't be completed, the storage is given time."""

PATIENCE = 1.0
"""Seconds that the housekeeping waits for others before it goes on to the next table."""

BY_CLOCK = "process-time"
"""Who commits a partition in that mode."""

log = structlog.get_logger(__name__)


class ReadinessService:
    """Decides when partitions are ready. Any number of servers may run it at once: each partition turns once."""

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

    def watermark(self, table: TableReference) -> Watermark:
        """How far a table has come. Raises NoSuchObjectException."""
        now = now_ms()
        with self._database.read() as tx:
            row = self._tables.row(tx, table.database, table.table, table.catalog)
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
        )

    def commit_due(self, table_id: int, *, patience: float | None = None) -> list[str]:
        """Makes those partitions of a table ready whose time has come; returns their names.

        Those whose files can't be completed are logged, and keep none of the others. `patience`: how many seconds to
        wait for those who hold the table or its partitions, before DatabaseUnavailable.
        """
        self._empty.add(table_id)
        outlook = self._look(table_id)
        return self._commit_all(table_id, outlook.due, patience) if outlook is not None else []

    def commit_due_everywhere(self) -> None:
        """The same for every table, after what crashed servers left is done. A failure is logged and tried again."""
        self._publisher.carry_out_left_over()
        with self._database.read() as tx:
            found = readiness.candidates(tx, CREATE_EMPTY)
        now = now_ms()
        known = {each.table_id for each in found}
        self._quiet = {table_id: quiet for table_id, quiet in self._quiet.items() if table_id in known}
        for each in found:
            quiet = self._quiet.get(each.table_id)
            if quiet is not None and quiet.holds(each, now):
                continue
            try:
                self._commit_unless_quiet(each.table_id)
            except Exception as error:  # whatever it is, the other tables must not suffer
                log.warning("partitions can't be made ready", table_id=each.table_id, error=str(error))

    def _commit_unless_quiet(self, table_id: int) -> None:
        more = self._empty.add(table_id)
        outlook = self._look(table_id)
        if outlook is None:
            return
        if outlook.due or outlook.moved:
            self._commit_all(table_id, outlook.due, PATIENCE)
        elif not more:
            self._quiet[table_id] = outlook.quiet

    def _look(self, table_id: int) -> "_Outlook | None":
        """Which partitions of a table are due, without holding anything up; None if there is no such table."""
        now = now_ms()
        with self._database.read() as tx:
            row = tables.find_by_id(tx, table_id)
            if row is None:
                return None
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
                deadlines = {p.name: opened + properties.delay for p, opened in _opened(tx, row, held)}
                due = [name for name, deadline in deadlines.items() if now > deadline]
                until = min(deadlines.values(), default=math.inf)
        return _Outlook(due, watermark != before, _Quiet(row.version, properties, watermark, until))

    def _commit_all(self, table_id: int, due: Sequence[str], patience: float | None) -> list[str]:
        """Commits all of these partitions at once; one by one if the files of some can't be completed."""
        try:
            return self._commit(table_id, due, patience)
        except WarehouseError as error:
            log.warning("partitions can't be made ready", table_id=table_id, partitions=len(due), error=str(error))
        turned: list[str] = []
        failures = 0
        # In any order: not always the same ones shall be left out.
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
        """Commits those of some partitions that are still due now that nobody else can change them, all or none."""
        with self._database.write() as tx:
            if patience is not None:
                readiness.wait_at_most(tx, patience)
            row = tables.find_by_id(tx, table_id, Hold.SHARED)
            if row is None:
                return []
            properties = properties_of(row)
            state, by = self.advance(tx, row, properties)
            selection = Selection(row.id, only_uncommitted=True, names=names)
            held = [p for p in partitions.rows(tx, selection, lock=True) if p.commit_time is None]
            return self._commits.commit(tx, row, _due(tx, row, properties, held, state), by)

    def advance(self, tx: Transaction, row: TableRow, properties: ReadinessProperties) -> tuple[Readiness, str]:
        """A table's watermark after what its sources have reported, held, and who has brought it there.

        Each chain is as far as its slowest source that isn't idle; the table is as far as the furthest chain, and never
        goes back. Of chains that are equally far, it is the one that has been so for longest.
        """
        state = readiness.hold(tx, row.id)
        progress = readiness.progress(tx, row.id)
        watermark = furthest(state.watermark, progress, properties, now_ms())
        if watermark != state.watermark:
            state = state._replace(watermark=watermark)
            readiness.put(tx, row.id, state)
        if properties.mode is CommitMode.PROCESS_TIME:
            return state, BY_CLOCK
        return state, leader(progress, properties, now_ms())


@dataclass(frozen=True, slots=True)
class _Quiet:
    """When nothing was to be done for a table, and how long that holds."""

    version: int
    properties: ReadinessProperties
    watermark: int | None
    until: float

    def holds(self, now_is: readiness.Candidate, now: int) -> bool:
        """Whether still nothing is to be done: nothing of the table has changed, nor how far it has come."""
        return (
            self.version == now_is.version
            and now <= self.until
            and self.watermark == furthest(now_is.watermark, now_is.progress, self.properties, now)
        )


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What is to be done for a table: partitions that are due, or a watermark that has `moved`; else it is quiet."""

    due: list[str]
    moved: bool
    quiet: _Quiet


def _due(
    tx: Transaction, row: TableRow, properties: ReadinessProperties, held: Sequence[PartitionRow], state: Readiness
) -> list[PartitionRow]:
    """Those of some partitions whose time has come."""
    if properties.mode is CommitMode.PROCESS_TIME:
        now = now_ms()
        return [partition for partition, opened in _opened(tx, row, held) if now > opened + properties.delay]
    if properties.mode is not CommitMode.EVENT_TIME or state.watermark is None:
        return []
    clock = PartitionClock(properties)
    return [partition for partition in held if clock.is_due(partition.values, state.watermark)]


def _opened(tx: Transaction, row: TableRow, held: Sequence[PartitionRow]) -> list[tuple[PartitionRow, int]]:
    """Uncommitted partitions with the time since which they are, in milliseconds since 1970.

    That is of the server's making; their time of creation isn't, after clients altered them.
    """
    opened = [(value.parameters or {}).get(OPENED) or "0" for value in decoded(tx, row, held)]
    return [(partition, int(text)) for partition, text in zip(held, opened, strict=True)]


@lru_cache(maxsize=1_000)
def _clock(properties: ReadinessProperties) -> PartitionClock:
    return PartitionClock(properties)


@lru_cache(maxsize=50_000)
def _deadline(clock: PartitionClock, values: tuple[str, ...]) -> int | None:
    """What the clock says, remembered: the same partitions are looked at again and again until they are due."""
    return clock.deadline(values)
