"""What becomes of a timeline when Hive's calls drop, empty or rename partitions of its table."""

from collections.abc import Sequence

from metastore.clock import now_ms
from metastore.services import instant_rules as rules
from metastore.services.events import Events
from metastore.services.instant_directories import DIRECTORY
from metastore.services.instant_sealing import Changes, change_snapshot, seal
from metastore.store import data_files, instants
from metastore.store.database import Transaction
from metastore.store.instants import Touch
from metastore.store.tables import TableRow
from metastore.wire.hive import InvalidOperationException


def hold_completions(tx: Transaction, row: TableRow) -> bool:
    """Keeps completions away until the transaction ends; whether the table has a timeline.

    To be called before partitions are held: that is the order in which completions take hold.
    """
    if not instants.has_timeline(tx, row.id):
        return False
    instants.hold_completions(tx, row.id)
    return True


def drop_files(tx: Transaction, row: TableRow, names: Sequence[str] | None, events: Events, *, deleted: bool) -> None:
    """Takes the files of partitions, None for all, out of the snapshot, by an instant of the server's own.

    `deleted`: they go from the storage, too, and no earlier snapshot can be read any more. The caller keeps completions
    away.
    """
    wanted = [each.name for each in data_files.sums(tx, row.id, names)]
    files = data_files.live_in_partitions(tx, row.id, wanted)
    if not files and not (deleted and wanted):
        return
    touched = {each.partition for each in files}
    changes = Changes(
        removed={each.id: each for each in files},
        touches=[Touch(each, None) for each in sorted(touched)],
        values={each: [] for each in touched},
    )
    position = instants.timeline(tx, row.id).position + 1
    change_snapshot(tx, row, position, changes)
    if deleted:
        # The directories that go hold what is there now; what was replaced lies elsewhere.
        data_files.leave_over(tx, row.id, data_files.paths_if_any_below(tx, row.id, wanted, DIRECTORY))
        data_files.forget_partitions(tx, row.id, wanted)
    line = instants.hold_timeline(tx, row.id)
    assert line is not None, "the caller has seen to it that there is one"
    now = now_ms()
    timestamp = rules.next_timestamp(line.last_timestamp, now)
    instants.put_timeline(tx, row.id, line._replace(last_timestamp=timestamp))
    instant = instants.add(tx, row.id, timestamp, rules.REPLACECOMMIT, rules.INFLIGHT, now, line.position)
    sealed = seal(
        tx,
        row,
        events,
        instant,
        changes,
        action=rules.REPLACECOMMIT,
        position=position,
        oldest_readable=position if deleted else line.oldest_readable,
    )
    instants.put_event(tx, [instant.id], sealed.event)


def refuse_rename(tx: Transaction, row: TableRow, names: Sequence[str], done: str) -> None:
    """Raises InvalidOperationException if partitions have files by a timeline, whose paths and history say where."""
    if instants.has_timeline(tx, row.id) and any(each.files for each in data_files.sums(tx, row.id, names)):
        raise InvalidOperationException(
            f"{row.name} has a timeline: a partition that it has files in can't be {done}. Commit its files to"
            " another partition instead"
        )
