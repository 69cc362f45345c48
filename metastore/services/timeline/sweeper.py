"""Maintenance of timelines: end dead instants, archive and remove old ones, store moments."""

from eventbus.log import log as event_log
from metastore.services.timeline.lookup import end_expired
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.table import tables
from metastore.store.timeline import instants

ARCHIVED_AT_ONCE = 1_000
"""Archived instants that are removed in one transaction."""

GROUPS_AT_ONCE = 10_000
"""Records of changed file groups that are removed in one transaction."""


class TimelineSweeper:
    """The leader task for timelines. Several servers may run it at once."""

    def __init__(self, database: Database, *, heartbeat_seconds: float, keep_active: int, archived_days: float) -> None:
        """`heartbeat_seconds`: an instant that has sent a heartbeat ends after so long without another: it is aborted,
        or requested again if it has a plan.

        `keep_active`: the latest completed instants of a table that stay active; older ones are archived.
        `archived_days`: an archived instant is removed after so long, once its snapshot can't be read any more.
        """
        self._database = database
        self._heartbeat_seconds = heartbeat_seconds
        self._keep_active = keep_active
        self._archived_days = archived_days

    def sweep(self) -> None:
        """Ends instants without heartbeats, archives old instants, and removes old archived ones."""
        with self._database.write() as tx:
            found = instants.dead(tx, self._heartbeat_seconds)
            for table_id in sorted({each.table_id for each in found}):
                row = tables.find_by_id(tx, table_id)
                if row is not None:
                    end_expired(tx, row, [each for each in found if each.table_id == table_id])
        with self._database.read() as tx:
            many = instants.with_many(tx, self._keep_active)
        for table_id in many:
            with self._database.write() as tx:
                instants.archive(tx, table_id, self._keep_active)
            self._forget_changed_groups(table_id)
        removed = ARCHIVED_AT_ONCE
        while removed == ARCHIVED_AT_ONCE:
            with self._database.write() as tx:
                removed = instants.forget_archived(tx, self._archived_days, ARCHIVED_AT_ONCE)

    def _forget_changed_groups(self, table_id: int) -> None:
        """Removes what archived instants changed, as far as no open instant can conflict with them."""
        with self._database.write() as tx:
            line = instants.hold_timeline(tx, table_id)
            if line is None:
                return
            line = line._replace(forgotten=max(line.forgotten, instants.needless(tx, table_id)))
            instants.put_timeline(tx, table_id, line)
        removed = GROUPS_AT_ONCE
        while removed == GROUPS_AT_ONCE:
            with self._database.write() as tx:
                removed = instants.forget_changed_groups(tx, table_id, line.forgotten, GROUPS_AT_ONCE)

    def place_moments(self, tx: Transaction) -> None:
        """Stores the moments of completions, before their events are trimmed from the log."""
        while unplaced := instants.unplaced(tx):
            numbers = event_log.numbers_of(tx, list(unplaced.values()))
            moments = {instant: numbers[event] for instant, event in unplaced.items() if event in numbers}
            instants.place(tx, moments)
            if not moments:
                return
