"""Housekeeping: maintenance work that the leader among the servers does from time to time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from eventbus.log import epochs, group_positions, log
from eventbus.outlets import dead_letters
from metastore.services.files.deletable import Deletable
from metastore.services.maintenance.restore import after_restore, skip_ids
from metastore.services.timeline.sweeper import TimelineSweeper
from metastore.store import Database
from metastore.store.table import descriptors

EVENTS_AT_ONCE = 1_000
"""Old events that are removed in one transaction."""

LETTERS_AT_ONCE = 1_000
"""Old dead letters that are removed in one transaction."""

LOCATIONS_AT_ONCE = 1_000
"""Locations whose links are checked in one run."""

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EventRetention:
    """How long events and the state of their readers are kept.

    `age`: events are removed after this time, if all groups have read them. `count`: only the last `count` events are
    kept in any case. `group_silence`: a group without a reader for this time keeps no events; after twice this time it
    is deleted. `dead_letters`: dead letters are removed after this time.
    """

    age: timedelta
    count: int
    group_silence: timedelta
    dead_letters: timedelta


class Housekeeping:
    """Maintenance work that no client waits for. Several servers may run every part at once."""

    def __init__(
        self,
        database: Database,
        deletable: Deletable,
        timelines: TimelineSweeper,
        retention: EventRetention,
        sweeps: Sequence[Callable[[], object]],
    ) -> None:
        """`sweeps`: the maintenance functions of other services, which `run` calls first."""
        self._database = database
        self._deletable = deletable
        self._timelines = timelines
        self._retention = retention
        self._sweeps = sweeps
        self._last_location = ""

    def run(self) -> None:
        """Runs all parts, even if some fail. Raises an ExceptionGroup with the errors at the end."""
        failures = []
        for part in (
            self.notice_restore,  # first: the backup may have brought back deletions that must not be carried out
            *self._sweeps,
            self._timelines.sweep,
            self._look_after_links,
            self._sweep_descriptors,
            self.forget_groups,
            self._forget_dead_letters,
            self.trim_events,
        ):
            try:
                part()
            except Exception as error:
                failures.append(error)
        if failures:
            raise ExceptionGroup("; ".join(map(str, failures)), failures)

    def _look_after_links(self) -> None:
        """Checks where symbolic links lead now, for some locations in each run."""
        with self._database.write() as tx:
            self._last_location = self._deletable.look_after_links(tx, self._last_location, LOCATIONS_AT_ONCE)

    def _sweep_descriptors(self) -> None:
        with self._database.write() as tx:
            descriptors.sweep(tx)

    def notice_restore(self) -> None:
        """Begins a new epoch of the event log if the database was restored from a backup."""
        with self._database.write() as tx:
            epoch = epochs.notice(tx)
            if epoch is not None:
                after_restore(tx) if epoch.lossy else skip_ids(tx)
        if epoch is not None:
            logger.warning("the event log begins a new epoch", epoch=epoch.name, after=epoch.after, reason=epoch.reason)

    def forget_groups(self) -> None:
        """Deletes unused groups of subscribers."""
        with self._database.write() as tx:
            forgotten = group_positions.forget(tx, self._retention.group_silence * 2)
        if forgotten:
            logger.warning("unused groups of subscribers were deleted", groups=forgotten)

    def _forget_dead_letters(self) -> None:
        removed = LETTERS_AT_ONCE
        while removed == LETTERS_AT_ONCE:
            with self._database.write() as tx:
                removed = dead_letters.forget(tx, self._retention.dead_letters, LETTERS_AT_ONCE)

    def trim_events(self) -> None:
        """Removes old events, in short transactions."""
        removed = EVENTS_AT_ONCE
        while removed == EVENTS_AT_ONCE:
            with self._database.write() as tx:
                self._timelines.place_moments(tx)
                removed = log.trim(
                    tx,
                    older_than=self._retention.age,
                    keep=self._retention.count,
                    limit=EVENTS_AT_ONCE,
                    silence=self._retention.group_silence,
                )
