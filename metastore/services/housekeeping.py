"""What has to be done now and then, by any one of the servers on a database."""

from eventbus import log
from metastore.clock import now_ms
from metastore.services.change_notes import ChangeNotes
from metastore.services.compactions import CompactionService
from metastore.services.engine_reports import EngineReports
from metastore.services.locks import LockService
from metastore.services.moves import Mover
from metastore.services.scheduled_queries import ScheduledQueryService
from metastore.services.timeline import TimelineService
from metastore.services.transactions import TransactionService
from metastore.store import Database, descriptors

EVENTS_AT_ONCE = 1_000
"""Old events that are removed in one transaction."""

_DAY = 86_400_000  # milliseconds


class Housekeeping:
    """Work that no client waits for. Every part may run on several servers at once."""

    def __init__(
        self,
        database: Database,
        mover: Mover,
        transactions: TransactionService,
        locks: LockService,
        compactions: CompactionService,
        scheduled_queries: ScheduledQueryService,
        engine_reports: EngineReports,
        timeline: TimelineService,
        change_notes: ChangeNotes,
        *,
        event_days: float,
        event_count: int,
    ) -> None:
        """Events are kept for `event_days`, and until all groups of subscribers have read them, but no more than
        `event_count`.
        """
        self._database = database
        self._mover = mover
        self._transactions = transactions
        self._locks = locks
        self._compactions = compactions
        self._scheduled_queries = scheduled_queries
        self._engine_reports = engine_reports
        self._timeline = timeline
        self._change_notes = change_notes
        self._event_days = event_days
        self._event_count = event_count

    def run(self) -> None:
        """Finishes moves that crashed servers left, aborts transactions that went silent, and forgets what is over:
        locks, transactions, compactions, executions, reports, old events.

        A part that fails keeps none of the others; what they raised is in the ExceptionGroup at the end.
        """
        failures = []
        for part in (
            self._mover.carry_out_left_over,
            self._transactions.sweep,
            self._locks.sweep,
            self._compactions.sweep,
            self._scheduled_queries.sweep,
            self._engine_reports.sweep,
            self._timeline.sweep,
            self._change_notes.sweep,
            self._sweep_descriptors,
            self.trim_events,
        ):
            try:
                part()
            except Exception as error:
                failures.append(error)
        if failures:
            raise ExceptionGroup("; ".join(map(str, failures)), failures)

    def _sweep_descriptors(self) -> None:
        with self._database.write() as tx:
            descriptors.sweep(tx)

    def trim_events(self) -> None:
        """Removes old events, in transactions so short that nobody waits for them."""
        older_than = now_ms() - int(self._event_days * _DAY)
        removed = EVENTS_AT_ONCE
        while removed == EVENTS_AT_ONCE:
            with self._database.write() as tx:
                self._timeline.place_moments(tx)
                removed = log.trim(tx, older_than=older_than, keep=self._event_count, limit=EVENTS_AT_ONCE)
