"""What becomes of a timeline when Hive's calls drop, empty or rename partitions of its table."""

from collections.abc import Sequence

from metastore.clock import now_ms
from metastore.services import instant_rules as rules
from metastore.services.events import Completion, Events
from metastore.store import data_files, instants, tables
from metastore.store.database import Transaction
from metastore.store.instants import Touch
from metastore.store.tables import TableRow
from metastore.wire.hive import InvalidOperationException


def hold_timeline(tx: Transaction, row: TableRow) -> bool:
    """Keeps completions away until the transaction ends; whether the table has a timeline.

    To be called before partitions are held: that is the order in which completions take hold.
    """
    if not instants.has_timeline(tx, row.id):
        return False
    instants.hold_timeline(tx, row.id)
    return True


def drop_files(tx: Transaction, row: TableRow, names: Sequence[str] | None, events: Events, *, deleted: bool) -> None:
    """Takes the files of partitions, None for all, out of the snapshot, by an instant of the server's own.

    `deleted`: they go from the storage, too, and no earlier snapshot can be read any more. The caller holds the
    timeline: there is one.
    """
    line = instants.hold_timeline(tx, row.id)
    sums = data_files.sums(tx, row.id, names)
    wanted = [each.name for each in sums]
    files = data_files.live_in_partitions(tx, row.id, wanted)
    if not files and not (deleted and wanted):
        return
    now, position = now_ms(), line.position + 1
    timestamp = rules.next_timestamp(line.last_timestamp, now)
    completion_time = rules.next_timestamp(timestamp, now)
    instant = instants.add(tx, row.id, timestamp, rules.REPLACECOMMIT, rules.INFLIGHT, now, line.position)
    data_files.close(tx, [each.id for each in files], position)
    data_files.count_changes(
        tx, row.id, position, {each.name: ((), -each.files, -each.size, -each.rows) for each in sums}
    )
    touched = sorted({each.partition for each in files})
    instants.put_touches(tx, row.id, position, [Touch(each, None) for each in touched])
    instants.complete(
        tx,
        instant.id,
        action=rules.REPLACECOMMIT,
        state=rules.COMPLETED,
        now=now,
        completion_time=completion_time,
        position=position,
        digest=b"",
    )
    oldest = line.oldest_readable
    if deleted:
        data_files.forget_partitions(tx, row.id, wanted)
        oldest = position
    instants.put_timeline(
        tx, row.id, line._replace(last_timestamp=completion_time, position=position, oldest_readable=oldest)
    )
    event = events.instant(
        tx,
        row.name,
        Completion(
            timestamp=timestamp,
            action=rules.REPLACECOMMIT,
            begun_as=rules.REPLACECOMMIT,
            completion_time=completion_time,
            position=position,
            partitions=touched,
            files_added=0,
            files_removed=len(files),
        ),
    )
    instants.put_event(tx, [instant.id], event)
    tables.touch(tx, row.id)


def refuse_rename(tx: Transaction, row: TableRow, names: Sequence[str], done: str) -> None:
    """Raises InvalidOperationException if partitions have files by a timeline, whose paths and history say where."""
    if instants.has_timeline(tx, row.id) and any(each.files for each in data_files.sums(tx, row.id, names)):
        raise InvalidOperationException(
            f"{row.name} has a timeline: a partition that it has files in can't be {done}. Commit its files to"
            " another partition instead"
        )
