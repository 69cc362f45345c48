"""The steps that all completions share, of writers and of the server itself: change the snapshot, then finalize."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from metastore.postgres.prepared import put_off
from metastore.services.events.recorder import Completion, Events
from metastore.services.instant_rules import states as rules
from metastore.store.engine.clock import now_ms
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import data_files
from metastore.store.snapshot.data_files import FileRow, Kind, NewFile, PartitionSums
from metastore.store.table import former_positions
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants
from metastore.store.timeline.instants import ChangedGroup, InstantRow, Timeline


@dataclass(slots=True)
class Changes:
    """A completion's changes to a table's files. A file group is given as in `ChangedGroup`, a file by its row's id.

    `added`: files that join the snapshot. `removed`: files that leave it, by id. `again`: removed files that join it
    once more. `changed_groups`: for the check of conflicts. `values`: the affected partitions' values, by name.
    """

    added: list[NewFile] = field(default_factory=list)
    removed: dict[int, FileRow] = field(default_factory=dict)
    again: list[FileRow] = field(default_factory=list)
    changed_groups: list[ChangedGroup] = field(default_factory=list)
    values: dict[str, list[str]] = field(default_factory=dict)

    def counts(self) -> Mapping[str, tuple[Sequence[str], int, int, int]]:
        """The differences to partitions' sums, by name: (values, files, bytes, rows of base files)."""
        sums: dict[str, list[int]] = {}
        for sign, files in ((1, self.added), (1, self.again), (-1, list(self.removed.values()))):
            for each in files:
                count = sums.setdefault(each.partition, [0, 0, 0])
                count[0] += sign
                count[1] += sign * each.size
                count[2] += sign * (each.rows or 0) if each.kind == Kind.BASE else 0
        return {name: (self.values[name], *count) for name, count in sums.items()}  # type: ignore[misc]


def next_position(tx: Transaction, row: TableRow, line: Timeline) -> int:
    """The position of a table's next completion. The caller has locked the table's completions.

    The first one comes after those of the tables that had the name before.
    """
    return (line.position or former_positions.last(tx, row.name, row.id)) + 1


class Finalized(NamedTuple):
    """A completed instant, and the table's new version."""

    instant: InstantRow
    version: int


def change_snapshot(tx: Transaction, row: TableRow, position: int, changes: Changes) -> Sequence[PartitionSums]:
    """Changes the snapshot from a position on, and stores the changed file groups for the check of conflicts.

    Returns the new sums of the affected partitions. It is one message, but for files that a rollback brings back.
    """
    data_files.add_again(tx, [each.id for each in changes.again], position)
    changed = [
        *data_files.to_close(changes.removed.keys(), position),
        *data_files.to_add(row.id, position, changes.added),
        *instants.to_put_changed_groups(row.id, position, changes.changed_groups),
    ]
    return data_files.count_changes(tx, row.id, position, changes.counts(), after=changed)


def common_time(tx: Transaction, table_ids: Sequence[int]) -> int:
    """Locks the timelines of several tables, and returns the common time of their completions, in milliseconds.

    With a common time, a read as of a time sees all of the completions or none. Until the transaction ends no instant
    of these tables begins.
    """
    for each in table_ids:
        instants.hold_timeline(tx, each)
    return now_ms(tx)


def finalize(
    tx: Transaction,
    row: TableRow,
    events: Events,
    instant: InstantRow,
    changes: Changes,
    *,
    action: str,
    position: int,
    oldest_readable: int,
    digest: bytes = b"",
    now: int | None = None,
) -> Finalized:
    """Marks an instant as completed, once its changes are made. The caller has locked the table's completions.

    `now`: from `common_time`, if several instants complete together.

    What it stores goes with the transaction's next message, see `put_off`. A store.Conflict there says that an instant
    with that timestamp and action exists already.

    Call it last, because it locks the timeline: until the transaction ends no instant of the table begins. So an
    instant has seen this completion if, and only if, its timestamp is later than the completion time.
    """
    held = instants.hold_timeline_to_complete(tx, row.id)
    assert held is not None, "an instant without a timeline"
    line, now = held.line, held.now if now is None else now
    completion_time = rules.next_timestamp(line.last_timestamp, now)
    line = line._replace(last_timestamp=completion_time, position=position, oldest_readable=oldest_readable)
    event = events.to_record_instant(
        tx,
        row,
        Completion(
            timestamp=instant.timestamp,
            action=action,
            begun_as=instant.begun_as,
            completion_time=completion_time,
            position=position,
            partitions=sorted({each.partition for each in changes.changed_groups}),
            files_added=len(changes.added) + len(changes.again),
            files_removed=len(changes.removed),
        ),
    )
    completed = instant._replace(
        action=action,
        state=rules.COMPLETED,
        changed_at=now,
        completion_time=completion_time,
        position=position,
        digest=digest,
        conflict=None,
    )
    put_off(tx, [event, instants.to_put_timeline(row.id, line), instants.to_complete(completed)])
    return Finalized(completed, held.version)


def complete_own(
    tx: Transaction,
    row: TableRow,
    events: Events,
    changes: Changes,
    *,
    action: str,
    position: int,
    oldest_readable: int | None = None,
) -> None:
    """Adds an instant of the server itself, and finalizes it at once. The caller has locked the table's completions.

    `oldest_readable`: by default it stays as it is.
    """
    held = instants.hold_timeline_to_begin(tx, row.id)
    assert held is not None, "the caller has seen to it that there is one"
    line, now = held.line, held.now
    timestamp = rules.next_timestamp(line.last_timestamp, now)
    line = line._replace(last_timestamp=timestamp)
    instant = instants.add(
        tx, held.next_id, row.id, timestamp, action, rules.INFLIGHT, now, line.position, attempt=1, line=line
    )
    oldest = line.oldest_readable if oldest_readable is None else oldest_readable
    finalize(tx, row, events, instant, changes, action=action, position=position, oldest_readable=oldest)
