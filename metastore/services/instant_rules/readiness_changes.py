"""Records on a timeline which partitions turn ready or uncommitted: who reads an earlier position sees its readiness.

A change of readiness has a position of its own, so that it can be read like every other change: to readers of ready
partitions it brings the partition's rows, or takes them away.
"""

from collections.abc import Collection

from metastore.services.events.recorder import Events
from metastore.services.instant_rules import states as rules
from metastore.services.instant_rules.finalize import Changes, complete_own, next_position
from metastore.services.instant_rules.keyed_tables import publishes_at_readiness
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import data_files
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants, uncommitted_spans
from metastore.store.timeline.instants import ChangedGroup


class ReadinessChanges:
    """Records changes of readiness by instants of the server itself. Tables without a timeline have none."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def hold(self, tx: Transaction, row: TableRow) -> None:
        """Locks out completions until the transaction ends. Call it before partitions are locked, as these do."""
        if instants.has_timeline(tx, row.id):
            instants.hold_completions(tx, row.id)

    def unpublished(self, tx: Transaction, row: TableRow, names: Collection[str]) -> list[str]:
        """Those of some partitions whose latest rows Hive must get before they turn ready, and hasn't got."""
        if not publishes_at_readiness(row):
            return []
        with_files = {each.name for each in data_files.sums(tx, row.id, names) if each.files}
        return sorted(
            name
            for name, each in data_files.positions(tx, row.id, names).items()
            if (name in with_files if each.published_at is None else each.published_at < each.changed_at)
        )

    def turned(self, tx: Transaction, row: TableRow, names: Collection[str], *, ready: bool) -> None:
        """Some partitions have turned ready, or uncommitted. The caller has called `hold`."""
        if not names or not instants.has_timeline(tx, row.id):
            return
        with_files = [each.name for each in data_files.sums(tx, row.id, names) if each.files]
        position = self._new_position(tx, row, with_files) if with_files else instants.timeline(tx, row.id).position
        record = uncommitted_spans.end if ready else uncommitted_spans.begin
        record(tx, row.id, names, position)

    def _new_position(self, tx: Transaction, row: TableRow, names: Collection[str]) -> int:
        position = next_position(tx, row, instants.timeline(tx, row.id))
        changes = Changes(changed_groups=[ChangedGroup(each, None) for each in sorted(names)])
        complete_own(tx, row, self._events, changes, action=rules.READINESS, position=position)
        return position


def added(tx: Transaction, row: TableRow, uncommitted: Collection[str]) -> None:
    """Partitions are new that are uncommitted. The caller has locked the table's row."""
    if uncommitted and instants.has_timeline(tx, row.id):
        uncommitted_spans.begin(tx, row.id, uncommitted, instants.timeline(tx, row.id).position)


def dropped(tx: Transaction, row: TableRow, names: Collection[str]) -> None:
    """Partitions are gone, and their files, at the timeline's present position. The caller holds its completions."""
    uncommitted_spans.end(tx, row.id, names, instants.timeline(tx, row.id).position)


def renamed(tx: Transaction, row: TableRow, old: str, new: str, *, ready: bool) -> None:
    """A partition has another name; it has no files, see `hive_drops.refuse_rename`."""
    if not instants.has_timeline(tx, row.id):
        return
    position = instants.timeline(tx, row.id).position
    uncommitted_spans.end(tx, row.id, [old], position)
    if not ready:
        uncommitted_spans.begin(tx, row.id, [new], position)
