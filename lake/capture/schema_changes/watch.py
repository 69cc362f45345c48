"""Says at once which changes of tables are held, while a capture runs, and again when they wait for long."""

import logging
import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from thrift.Thrift import TException

from lake.capture import metrics
from lake.capture.alarms import alarm
from lake.capture.errors import CaptureError
from lake.capture.raw_table import PARTITION
from lake.capture.schema_changes.agreed import decided
from lake.capture.schema_changes.decisions import with_decisions
from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Action, SchemaChange
from lake.capture.schema_changes.policy import Policy
from lake.protocol.formats.partition_names import make_name
from lake.tables.lake import LakeTable

logger = logging.getLogger(__name__)

_REMIND_SECONDS = 600.0


@dataclass(frozen=True)
class Bounds:
    """How long a change may be held, and how much may be captured of its table meanwhile, until it is warned of."""

    hours: float = 72.0
    bytes: int = 10 << 30


class Watch:
    """Looks at tables whose definitions the raw table has got."""

    def __init__(self, lake: LakeTable, policy: Policy, bounds: Bounds | None = None) -> None:
        self._lake = lake
        self._policy = policy
        self._bounds = bounds or Bounds()
        self._held: dict[str, set[str]] = {}
        self._first: dict[str, SchemaChange] = {}
        self._reminded = time.monotonic() - _REMIND_SECONDS

    def look(self, tables: Collection[str]) -> None:
        """Counts the held changes of some tables anew, and warns of those that weren't held before.

        A raw table that can't be read is logged, since nothing depends on this.
        """
        for table in sorted(tables):
            try:
                policy = with_decisions(self._policy, self._lake)
                found = decided(changes_of(self._lake, table), policy)
            except (CaptureError, TException, OSError) as error:
                logger.warning("the changes of %s can't be listed: %s", table, error)
                continue
            waiting = [each for each in found if each.decision.action is Action.HOLD]
            known = self._held.get(table, set())
            for change, decision in waiting:
                if str(change.at) not in known:
                    alarm(
                        "schema change is held",
                        table=table,
                        at=str(change.at),
                        kind=change.difference.kind.value,
                        change=change.difference.said,
                        why=decision.why,
                    )
            self._held[table] = {str(each.change.at) for each in waiting}
            self._first.pop(table, None)
            if waiting:
                self._first[table] = min((each.change for each in waiting), key=lambda each: each.at)
            metrics.HELD_CHANGES.labels(table).set(len(waiting))
            since = self._first[table].since.timestamp() if waiting else 0
            metrics.HELD_SINCE.labels(table).set(since)

    def remind(self) -> None:
        """Warns of changes that are held beyond the bounds; every ten minutes at most."""
        if not self._first or time.monotonic() - self._reminded < _REMIND_SECONDS:
            return
        self._reminded = time.monotonic()
        self.look([*self._first])  # somebody may have decided
        for table, change in sorted(self._first.items()):
            hours = (datetime.now(UTC) - change.since).total_seconds() / 3600
            try:
                size = bytes_since(self._lake, table, change.since)
            except (TException, OSError) as error:
                logger.warning("what was captured of %s can't be listed: %s", table, error)
                continue
            if hours > self._bounds.hours or size > self._bounds.bytes:
                alarm("held schema change waits", table=table, at=str(change.at), hours=round(hours, 1), bytes=size)


def bytes_since(lake: LakeTable, table: str, since: datetime) -> int:
    """The bytes of the files that were written of a table since a time."""
    begun = f"{since.astimezone(UTC):%Y%m%d%H%M%S}{since.microsecond // 1000:03}"
    snapshot = lake.snapshot(partitions=[make_name((PARTITION,), (table,))], include_uncommitted=True)
    return sum(each.size for each in snapshot if each.slice >= begun)
