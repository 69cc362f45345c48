"""Says at once which changes of tables are held, while a capture runs."""

import logging
from collections.abc import Collection

from thrift.Thrift import TException

from lake.capture import metrics
from lake.capture.alarms import alarm
from lake.capture.errors import CaptureError
from lake.capture.schema_changes.agreed import decided
from lake.capture.schema_changes.decisions import with_decisions
from lake.capture.schema_changes.history import changes_of
from lake.capture.schema_changes.model import Action
from lake.capture.schema_changes.policy import Policy
from lake.tables.lake import LakeTable

logger = logging.getLogger(__name__)


class Watch:
    """Looks at tables whose definitions the raw table has got."""

    def __init__(self, lake: LakeTable, policy: Policy) -> None:
        self._lake = lake
        self._policy = policy
        self._held: dict[str, set[str]] = {}

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
            metrics.HELD_CHANGES.labels(table).set(len(waiting))
