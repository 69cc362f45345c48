"""What the table management service asks about tables, and what it decided of them."""

from lake.protocol.formats.keyed_table import TOMBSTONES
from lake.protocol.hive import InvalidOperationException, MetaException
from lake.protocol.lake import (
    EngineFigures,
    PendingPlan,
    RecordDecisionsRequest,
    ServiceDecision,
    ServiceFacts,
    ServiceFactsRequest,
    ServiceJob,
    TableReference,
)
from metastore.services.files.deletable import Deletable
from metastore.services.instant_rules.keyed_tables import definition_of, is_keyed
from metastore.services.instant_rules.paths import base_of
from metastore.services.model import hive_objects
from metastore.services.snapshot.service import cleanable
from metastore.services.table.service import TableService
from metastore.services.table_services import limits
from metastore.services.table_services.limits import ORPHANS
from metastore.services.table_services.thrift_objects import to_reference, to_thrift_job
from metastore.services.timeline import changelogs
from metastore.services.timeline.lookup import lake_table, written_lake_table
from metastore.store import Database
from metastore.store.access import request_keys
from metastore.store.catalog import databases
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.clock import now_ms
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import DatabaseName
from metastore.store.table.tables import TableRow
from metastore.store.table_services import decisions, facts, jobs, reported
from metastore.store.table_services.decisions import DecisionRow
from metastore.store.table_services.reported import Reported
from metastore.store.timeline import instants
from metastore.warehouse import WarehouseError

MAX_FILES = 100_000
"""Files that a clean would delete and that are counted."""

MAX_PLANS = 1_000
"""Plans of a table that are named at once."""

MAX_JOBS = 30
"""The latest jobs of a table that are part of its facts."""

MAX_DECISIONS = 10
"""Decisions about a table that are stored in one call."""

MAX_SIZE = 1 << 50
"""The greatest size of a file that can be asked for, in bytes."""

MAX_KEPT = 1 << 30
"""The greatest number of commits, hours or versions that a clean can be asked to keep."""

KEPT = 50
"""The latest decisions of a table and service that are stored."""

LATEST_TIME = 1 << 50
"""The latest time, in milliseconds since 1970, at which a table can be looked at again."""


SUMMED_DAYS = 7
"""The days whose figures are summed up."""

KEPT_DAYS = 30
"""The days for which figures are kept."""

_REPORTED = ("scans", "files", "deleteFiles", "bytes", "planningMs", "commits", "attempts")


class TableLooks:
    """Facts about tables, decisions, and tables that are due. Each call is one transaction."""

    def __init__(self, database: Database, tables: TableService, deletable: Deletable) -> None:
        self._database = database
        self._tables = tables
        self._deletable = deletable

    def facts(self, request: ServiceFactsRequest) -> ServiceFacts:
        """All that decisions about a table are made from.

        Raises NoSuchObjectException, InvalidOperationException, MetaException.
        """
        sizes = (request.smallFileBytes, request.targetFileBytes)
        small_below, target = (_checked_size(each) for each in sizes)
        keeps = _checked_keeps(request)
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, request.table)
            logs = facts.logs(tx, row.id, TOMBSTONES)
            small = facts.small(tx, row.id, small_below, target)
            unordered = (0, 0) if request.order is None else facts.unordered(tx, row.id, request.order)
            files, size = facts.base_files(tx, row.id)
            superseded_at = facts.first_superseded_at(tx, row.id)
            cleans = superseded_at is not None and any(each is not None for each in keeps)
            clean = cleanable(tx, row, *keeps, MAX_FILES) if cleans else []
            expired = changelogs.expired(tx, row, MAX_FILES) if any(each is not None for each in keeps) else []
            keyed = definition_of(row)
            unpublished = (0, 0)
            if keyed is not None:
                unpublished = facts.unpublished(tx, row.id, TOMBSTONES, together=keyed.is_table_wide)
            standing = decisions.standing(tx, row.id)
            engines = reported.sums(tx, row.id, SUMMED_DAYS)
            first_log = logs.first_added_at
            return ServiceFacts(
                table=to_reference(row.id, row.name),
                now=now_ms(tx),
                position=instants.timeline(tx, row.id).position,
                parameters=row.parameters,
                databaseParameters=_database_parameters(tx, row),
                inputFormat=_input_format(row),
                location=row.location,
                keyed=is_keyed(row),
                unpublishedPartitions=unpublished[0],
                unpublishedCommits=unpublished[1],
                paused=standing.paused,
                resumedAt=standing.resumed_at,
                logFiles=logs.files,
                logBytes=logs.size,
                logGroups=logs.groups,
                mergedBytes=logs.merged_size,
                oldestLogAt=None if first_log is None else facts.completed_at(tx, row.id, first_log),
                deltaCommits=facts.delta_commits(tx, row.id),
                smallFiles=small.files,
                smallBytes=small.size,
                smallBecome=small.become,
                unorderedFiles=unordered[0],
                unorderedBytes=unordered[1],
                baseFiles=files,
                baseBytes=size,
                cleanFiles=len(clean) + len(expired),
                cleanBytes=sum(each.size for each in clean) + sum(each.size or 0 for each in expired),
                oldestSupersededAt=None if superseded_at is None else facts.completed_at(tx, row.id, superseded_at),
                orphansRemovedAt=jobs.last_success(tx, row.id, ORPHANS),
                shared=self._is_shared(tx, row) if request.shared else None,
                engines=None if engines is None else EngineFigures(*engines),
                plans=[PendingPlan(*each) for each in facts.plans(tx, row.id, MAX_PLANS)],
                jobs=[to_thrift_job(each) for each in jobs.latest(tx, row.id, MAX_JOBS)],
            )

    def report(self, table: TableReference, figures: EngineFigures) -> None:
        """Adds what an engine reports to the figures of today.

        Raises NoSuchObjectException, TableReplaced, InvalidOperationException for counts that can't be.
        """
        counts = Reported(*(getattr(figures, each) for each in _REPORTED))
        if not all(0 <= each <= MAX_SIZE for each in counts):
            raise InvalidOperationException(f"a count lies between 0 and {MAX_SIZE}: {counts}")
        with self._database.write() as tx:
            row = self._tables.row_of(tx, table, RowLock.SHARED)
            request_keys.claim(tx)
            reported.add(tx, row.id, counts)

    def sweep(self) -> None:
        """Forgets old figures."""
        with self._database.write() as tx:
            reported.forget(tx, KEPT_DAYS)

    def _is_shared(self, tx: Transaction, row: TableRow) -> bool:
        """Whether a file in the table's directory may be another's. Raises MetaException if the storage fails."""
        if row.location is None:
            return False
        try:
            return self._deletable.overlapping(tx, base_of(row.location), besides=row.id) is not None
        except WarehouseError as error:
            raise MetaException(str(error)) from None

    def record(self, request: RecordDecisionsRequest) -> list[ServiceJob]:
        """Stores decisions about a table and enqueues jobs, in one transaction. Returns the table's pending jobs.

        Raises NoSuchObjectException, InvalidOperationException.
        """
        found = [_decision(each, request.position or 0) for each in request.decisions or ()]
        if len(found) > MAX_DECISIONS or len(request.jobs or ()) > MAX_PLANS:
            raise InvalidOperationException(f"give at most {MAX_DECISIONS} decisions and {MAX_PLANS} jobs at a time")
        wanted = [limits.new_job(each) for each in request.jobs or ()]
        again = request.lookAgainAt
        if again is not None:
            limits.check_within("lookAgainAt", again, 0, LATEST_TIME)
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, request.table)
            for decision in found:
                decisions.add(tx, row.id, decision, KEPT)
            if decisions.standing(tx, row.id).paused is None:
                for job in wanted:
                    jobs.enqueue(tx, row.id, job)
            decisions.put_look(tx, row.id, limits.check_within("position", request.position, 0, 1 << 60), again)
            return [to_thrift_job(each) for each in jobs.waiting(tx, row.id, MAX_PLANS)]

    def decisions(self, table: TableReference | None, limit: int | None) -> list[ServiceDecision]:
        """The latest decisions about a table, the latest first. Raises NoSuchObjectException."""
        most = limits.check_within("limit", KEPT if limit is None else limit, 1, 1_000)
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, table)
            return [
                ServiceDecision(
                    tableService=each.service,
                    action=each.action,
                    reason=each.reason,
                    figures=each.figures,
                    gain=each.gain,
                    cost=each.cost,
                    decidedAt=each.decided_at,
                    position=each.position,
                )
                for each in decisions.latest(tx, row.id, most)
            ]

    def due(self, limit: int | None) -> list[TableReference]:
        """Tables to look at, since time may have changed a decision or a commit was missed."""
        most = limits.check_within("limit", 1_000 if limit is None else limit, 1, 10_000)
        with self._database.read() as tx:
            return [to_reference(*each) for each in decisions.due(tx, most)]

    def pause(self, table: TableReference | None, reason: str | None) -> None:
        """Pauses a table, with a reason; without one it goes on, and what was set aside is tried again.

        Raises NoSuchObjectException.
        """
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, table)
            decisions.put_paused(tx, row.id, reason[: limits.MAX_REASON] if reason else None)


def _checked_size(size: int | None) -> int:
    return limits.check_within("size of files", 1 if size is None else size, 1, MAX_SIZE)


def _checked_keeps(request: ServiceFactsRequest) -> tuple[int | None, int | None, int | None]:
    keeps = (request.keepCommits, request.keepHours, request.keepVersions)
    given = [each for each in keeps if each is not None]
    if len(given) > 1:
        raise InvalidOperationException("give at most one of keepCommits, keepHours and keepVersions")
    for each in given:
        limits.check_within("what a clean keeps", each, 1, MAX_KEPT)
    return keeps


def _decision(given: ServiceDecision, position: int) -> DecisionRow:
    return DecisionRow(
        service=limits.check_action(given.tableService),
        action=None if given.action is None else limits.check_action(given.action),
        reason=(given.reason or "")[: limits.MAX_REASON],
        figures=limits.check_text("figures", given.figures, limits.MAX_FIGURES),
        gain=limits.check_number("gain", given.gain),
        cost=limits.check_number("cost", given.cost),
        decided_at=None,
        position=position,
    )


def _database_parameters(tx: Transaction, row: TableRow) -> dict[str, str]:
    found = databases.find(tx, DatabaseName(row.name.catalog, row.name.database))
    return {} if found is None else hive_objects.database_of(found).parameters or {}


def _input_format(row: TableRow) -> str:
    storage = hive_objects.table_of(row).sd
    return (storage and storage.inputFormat) or ""
