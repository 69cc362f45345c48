"""What every completion does to the snapshot and, last, to the timeline: a writer's as well as the server's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from metastore.clock import now_ms
from metastore.services import instant_rules as rules
from metastore.services.events import Completion, Events
from metastore.store import data_files, instants, tables
from metastore.store.data_files import FileRow, Kind, NewFile, PartitionSums
from metastore.store.database import Transaction
from metastore.store.instants import InstantRow, Touch
from metastore.store.tables import TableRow


@dataclass(slots=True)
class Changes:
    """What a completion does to a table's files: `added` ones join the snapshot, `removed` ones leave it, those that
    had been removed join `again`. `values` are those of the partitions concerned, by name.
    """

    added: list[NewFile] = field(default_factory=list)
    removed: dict[int, FileRow] = field(default_factory=dict)
    again: list[FileRow] = field(default_factory=list)
    touches: list[Touch] = field(default_factory=list)
    values: dict[str, list[str]] = field(default_factory=dict)

    def counts(self) -> Mapping[str, tuple[Sequence[str], int, int, int]]:
        """What is to be added to the sums of partitions, by name: (values, files, bytes, rows of base files)."""
        sums: dict[str, list[int]] = {}
        for sign, files in ((1, self.added), (1, self.again), (-1, list(self.removed.values()))):
            for each in files:
                count = sums.setdefault(each.partition, [0, 0, 0])
                count[0] += sign
                count[1] += sign * each.size
                count[2] += sign * (each.rows or 0) if each.kind == Kind.BASE else 0
        return {name: (self.values[name], *count) for name, count in sums.items()}  # type: ignore[misc]


class Sealed(NamedTuple):
    """A completed instant, the event that tells of it, and the table's new version."""

    instant: InstantRow
    event: int
    version: int


def change_snapshot(tx: Transaction, row: TableRow, position: int, changes: Changes) -> Sequence[PartitionSums]:
    """Changes which files make up the snapshot from a position on, and keeps what was touched for others to find
    conflicts by; the new sums of the partitions concerned.
    """
    data_files.close(tx, changes.removed.keys(), position)
    data_files.add(tx, row.id, position, changes.added)
    data_files.add_again(tx, [each.id for each in changes.again], position)
    instants.put_touches(tx, row.id, position, changes.touches)
    return data_files.count_changes(tx, row.id, position, changes.counts())


def common_time(tx: Transaction, table_ids: Sequence[int]) -> int:
    """The time at which instants of several tables are completed together, in milliseconds: who reads the tables as of
    a time reads all or none. From here on nobody begins an instant of these tables until the transaction ends.
    """
    for each in table_ids:
        instants.hold_timeline(tx, each)
    return now_ms()


def seal(
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
) -> Sealed:
    """Completes an instant whose changes have been made. The caller keeps other completions away.

    `now` is what `common_time` said, for one of several.

    It comes last, since from here on nobody begins an instant of the table until the transaction ends: who begins has
    read this completion if, and only if, its timestamp is later than the completion time. Raises store.Conflict if
    there is an instant with that timestamp and action already.
    """
    now = now_ms() if now is None else now
    line = instants.hold_timeline(tx, row.id)
    assert line is not None, "an instant without a timeline"
    completion_time = rules.next_timestamp(line.last_timestamp, now)
    line = line._replace(last_timestamp=completion_time, position=position, oldest_readable=oldest_readable)
    instants.put_timeline(tx, row.id, line)
    completed = instant._replace(
        action=action,
        state=rules.COMPLETED,
        changed_at=now,
        completion_time=completion_time,
        position=position,
        digest=digest,
        conflict=None,
    )
    instants.complete(tx, completed)
    event = events.instant(
        tx,
        row.name,
        Completion(
            timestamp=instant.timestamp,
            action=action,
            begun_as=instant.begun_as,
            completion_time=completion_time,
            position=position,
            partitions=sorted({each.partition for each in changes.touches}),
            files_added=len(changes.added) + len(changes.again),
            files_removed=len(changes.removed),
        ),
    )
    return Sealed(completed, event, tables.touch(tx, row.id))
