"""What a clean must keep, whoever planned it and whenever: looked at in the transaction that deletes.

A file is kept that belongs to the latest snapshot, to one at the position of a savepoint or of a reader's lease, to a
later one if the lease says so, to one that the table's `snapshot.time-retained` keeps, to one since the position that
the writer of an open instant has read, to the input of a plan that isn't completed, or to a partition that isn't ready
yet. Each clean also removes the changelogs that aren't kept any more.
"""

from collections.abc import Sequence

from lake.protocol.formats.keyed_table import SNAPSHOT_TIME
from lake.protocol.hive import InvalidOperationException
from metastore.services.instant_rules import states as rules
from metastore.services.instant_rules.keyed_tables import definition_of
from metastore.services.timeline import changelogs
from metastore.store.engine.database import Transaction
from metastore.store.partition import partitions
from metastore.store.partition.partitions import Selection
from metastore.store.snapshot import data_files, leases
from metastore.store.snapshot.data_files import Kept
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants
from metastore.store.timeline.instants import InstantRow, Timeline


def kept(tx: Transaction, row: TableRow) -> Kept:
    """What cleans of a table keep now, beside the latest snapshot."""
    positions = {*instants.saved_positions(tx, row.id), *leases.positions(tx, row.id)}
    table = definition_of(row)
    millis = None if table is None else table.snapshot_millis
    retained = None if millis is None else changelogs.position_before(tx, row, millis)
    firsts = (retained, leases.first_onwards(tx, row.id), instants.first_being_read(tx, row.id))
    from_on = [each for each in firsts if each is not None]
    uncommitted = partitions.names(tx, Selection(row.id, only_uncommitted=True))
    return Kept(sorted(positions), uncommitted, min(from_on, default=None))


def is_readable(tx: Transaction, row: TableRow, line: Timeline, position: int) -> bool:
    """Whether no file of the snapshot at a position has been cleaned."""
    if position >= line.oldest_readable or position in instants.saved_positions(tx, row.id):
        return True
    return position in leases.positions(tx, row.id)


def clean(tx: Transaction, row: TableRow, instant: InstantRow, paths: Sequence[str], line: Timeline) -> Timeline:
    """Removes superseded files from the timeline and schedules their deletion. Returns the new timeline row.

    Raises InvalidOperationException for files that are kept, and unless the instant is a clean.
    """
    if instant.begun_as != rules.CLEAN:
        raise InvalidOperationException(f"only a clean deletes files, not a {instant.begun_as}")
    leases.hold_off_leases(tx, row.id)
    found = data_files.unneeded_paths(tx, row.id, paths, kept(tx, row))
    ids = {each.id for each in found}
    # A log file that grew has several rows: all of them must be unneeded.
    if needed := {path for id, path in data_files.ids_of_paths(tx, row.id, set(paths)).items() if id not in ids}:
        raise InvalidOperationException(
            f"the file {min(needed)!r} belongs to the latest snapshot or to a savepoint, or a reader's lease, a pending"
            f" plan, a writer at work, an uncommitted partition or {SNAPSHOT_TIME} needs it: plan the clean again"
        )
    data_files.purge(tx, row.id, [each.id for each in found])
    oldest = max((each.removed_at or 0 for each in found), default=0)
    line = line._replace(oldest_readable=max(line.oldest_readable, oldest))
    changelogs.forget(tx, row, changelogs.last_expired(tx, row, line))
    return line
