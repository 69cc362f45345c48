"""Finds and locks tables and instants for the calls of timelines; aborts instants, and gives plans back."""

from collections.abc import Sequence

import structlog

from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import TableReference
from metastore.services.instant_rules import states as rules
from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.services.table.service import TableService
from metastore.services.timeline import staging
from metastore.services.timeline.thrift_objects import describe_instant
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.clock import now_ms
from metastore.store.engine.database import Transaction
from metastore.store.table import former_positions
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants
from metastore.store.timeline.instants import InstantRow, Timeline

log = structlog.get_logger(__name__)


def lake_table(tables: TableService, tx: Transaction, table: TableReference | None) -> TableRow:
    """A table's row, for readers.

    Raises NoSuchObjectException, TableReplaced for the id of another table, InvalidOperationException for a view.
    """
    return _with_location(tables.row_of(tx, table))


def written_lake_table(tables: TableService, tx: Transaction, table: TableReference | None) -> TableRow:
    """A table's row, for writers that don't lock it. Raises what `lake_table` does.

    Raises InvalidOperationException for a decorated name (`table@includeuncommit`), too: that is for readers.
    """
    named = table or TableReference()
    given.table_name(named.database, named.table, named.catalog)
    return lake_table(tables, tx, table)


def held_lake_table(
    tables: TableService, tx: Transaction, table: TableReference | None, lock: RowLock = RowLock.SHARED
) -> TableRow:
    """A table's row, locked until the transaction ends. Raises what `written_lake_table` does."""
    return _with_location(tables.row_of(tx, table, lock))


def _with_location(row: TableRow) -> TableRow:
    if row.location is None or row.type == hive_objects.VIEW:
        raise InvalidOperationException(f"{row.name} is a view: it has no timeline")
    return row


def check_is_of(tx: Transaction, row: TableRow, table: TableReference | None, position: int) -> None:
    """Raises InvalidOperationException for a position that a table had which lost its name to this one.

    That can't be if the request has the table's id. Position 0 is that of every empty table.
    """
    if table is not None and table.id is not None:
        return
    if 0 < position <= former_positions.last(tx, given.base(row.name), row.id):
        raise InvalidOperationException(
            f"position {position} is of a table that had the name {row.name} before: it was dropped or renamed. Read"
            " the table again"
        )


def last_to_save(tx: Transaction, row: TableRow) -> str:
    """The timestamp of the last completed instant but for savepoints. Raises InvalidOperationException without one."""
    last = instants.last_completed(tx, row.id, but=rules.SAVEPOINT)
    if last is None:
        raise InvalidOperationException(f"{row.name} has no completed instant: there is nothing to keep")
    return last.timestamp


def saved_position(tx: Transaction, row: TableRow, line: Timeline, timestamp: str) -> int:
    """The position that a savepoint with this timestamp protects.

    A savepoint has the timestamp of the instant that it protects, as in Hudi. Raises InvalidOperationException if no
    completed instant has it, or if its snapshot has been cleaned.
    """
    saved = instants.completed_at(tx, row.id, timestamp)
    if saved is None or saved.undone_by is not None:
        raise InvalidOperationException(
            f"a savepoint needs the timestamp of a completed instant; {row.name} has none with {timestamp}"
        )
    position = saved.position or 0
    if position < line.oldest_readable:
        raise InvalidOperationException(f"files of the snapshot at {timestamp} have been cleaned already")
    return position


def held_instant(tx: Transaction, row: TableRow, timestamp: str | None, action: str | None) -> InstantRow:
    """An instant, locked until the transaction ends. Raises NoSuchObjectException, InvalidOperationException."""
    found = instants.find(tx, row.id, timestamp or "", rules.check_action(action), lock=True)
    if found is None:
        raise no_instant(row, timestamp, action)
    return found


def check_attempt(instant: InstantRow, attempt: int | None) -> None:
    """Raises InvalidOperationException for a process that ran an instant's plan, if another one has taken it up since.

    `attempt`: the one of the calling process. Who gives none isn't checked.
    """
    if attempt and attempt != instant.attempt:
        raise InvalidOperationException(
            f"{describe_instant(instant)}, by attempt {instant.attempt}: another process runs the plan now. This was"
            f" attempt {attempt}, and its files are deleted"
        )


def no_instant(row: TableRow, timestamp: str | None, action: str | None) -> NoSuchObjectException:
    """The exception for a missing instant."""
    return NoSuchObjectException(
        f"{row.name} has no instant {timestamp} {action}; it may have been aborted because its heartbeats stopped"
    )


def abort(tx: Transaction, row: TableRow, some: Sequence[InstantRow]) -> None:
    """Removes instants that aren't completed, and schedules the deletion of their files."""
    for each in some:
        staging.schedule_deletion_of_directory(tx, row, each)
    if some:
        instants.remove(tx, [each.id for each in some])


def give_back(tx: Transaction, row: TableRow, instant: InstantRow) -> InstantRow:
    """Makes an inflight instant requested again, so that another process can take it up. Returns it.

    Its heartbeats are forgotten, and the deletion of the files of this attempt at its plan is scheduled. The caller has
    locked the instant.
    """
    staging.schedule_deletion_of_attempts(tx, row, instant, [instant.attempt])
    back = instant._replace(state=rules.REQUESTED, changed_at=now_ms(tx), heartbeat_at=None, runner=None)
    instants.change_state(tx, back)
    return back


def end_expired(tx: Transaction, row: TableRow, dead: Sequence[InstantRow]) -> None:
    """Ends instants whose heartbeats have stopped, and logs it: plans that were run are requested again, all others are
    aborted. The caller has locked the instants."""
    aborted = []
    for each in dead:
        if each.planned and each.state == rules.INFLIGHT:
            give_back(tx, row, each)
            what = "an instant is requested again, its heartbeats stopped"
        else:
            aborted.append(each)
            what = "an instant is aborted, its heartbeats stopped"
        log.info(what, table=str(row.name), instant=describe_instant(each))
    abort(tx, row, aborted)
