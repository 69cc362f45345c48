"""Keeps a timeline in step when Hive's calls drop, truncate or rename partitions of its table."""

from collections.abc import Sequence

from lake.protocol.hive import InvalidOperationException
from metastore.services.events.recorder import Events
from metastore.services.instant_rules import states as rules
from metastore.services.instant_rules.finalize import Changes, change_snapshot, complete_own, next_position
from metastore.services.instant_rules.keyed_tables import is_keyed
from metastore.services.instant_rules.paths import DIRECTORY
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import changelogs, data_files
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants
from metastore.store.timeline.instants import ChangedGroup


def hold_completions(tx: Transaction, row: TableRow) -> bool:
    """Locks out completions until the transaction ends. Returns whether the table has a timeline.

    Call it before partitions are locked: completions take their locks in this order, too.
    """
    if not instants.has_timeline(tx, row.id):
        return False
    instants.hold_completions(tx, row.id)
    return True


def drop_files(tx: Transaction, row: TableRow, names: Sequence[str] | None, events: Events, *, deleted: bool) -> None:
    """Removes the files of partitions, None for all, from the snapshot, by an instant of the server itself.

    `deleted`: the files are deleted from the storage, too; then no earlier snapshot can be read. The caller has called
    `hold_completions`.
    """
    wanted = [each.name for each in data_files.sums(tx, row.id, names)]
    files = data_files.live_in_partitions(tx, row.id, wanted)
    if not files and not (deleted and wanted):
        return
    touched = {each.partition for each in files}
    changes = Changes(
        removed={each.id: each for each in files},
        changed_groups=[ChangedGroup(each, None) for each in sorted(touched)],
        values={each: [] for each in touched},
    )
    position = next_position(tx, row, instants.timeline(tx, row.id))
    change_snapshot(tx, row, position, changes)
    if is_keyed(row):  # Hive sees that they are empty: nothing older is to be published
        data_files.put_published(tx, row.id, wanted, position)
    if deleted:
        # The caller deletes the partitions' directories. Replaced files lie elsewhere.
        data_files.schedule_deletion(tx, row.id, data_files.paths_if_any_below(tx, row.id, wanted, DIRECTORY))
        data_files.forget_partitions(tx, row.id, wanted)
        data_files.schedule_deletion(tx, row.id, changelogs.forget(tx, row.id, position))
    oldest = position if deleted else None
    complete_own(tx, row, events, changes, action=rules.REPLACECOMMIT, position=position, oldest_readable=oldest)


def refuse_rename(tx: Transaction, row: TableRow, names: Sequence[str], done: str) -> None:
    """Raises InvalidOperationException if partitions have files in a timeline, since these are known by their paths."""
    if instants.has_timeline(tx, row.id) and any(each.files for each in data_files.sums(tx, row.id, names)):
        raise InvalidOperationException(
            f"{row.name} has a timeline: a partition with files in it can't be {done}. Commit the files to another"
            " partition instead"
        )
