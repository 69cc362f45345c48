"""Micro-batches of streams and partitions that have turned ready: their rows never come into one unnoticed.

A writer routes its rows before it completes its instant, by `partition.late-rows`. What turned ready since is found in
the transaction of the completion, which changes nothing then: the writer routes the rows again.
"""

from collections.abc import Sequence
from typing import NamedTuple

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import CompleteInstantRequest, LateRows
from metastore.services.commit_flag.policy import LatePolicy
from metastore.services.commit_flag.transitions import Commits, properties_of
from metastore.services.readiness.late_rows import follows
from metastore.services.timeline.hive_sync import lake_partition
from metastore.store.commit_flag import readiness
from metastore.store.engine.database import Transaction
from metastore.store.partition import partitions
from metastore.store.partition.partitions import PartitionRow, Selection
from metastore.store.table.tables import TableRow


class Late(NamedTuple):
    """`turned`: partitions that are ready, so that the completion must not add to them. `held`: those to reopen."""

    turned: list[str]
    held: Sequence[PartitionRow]


def look(tx: Transaction, row: TableRow, request: CompleteInstantRequest) -> Late:
    """What of the partitions that a completion adds to is ready. They are locked. The caller holds completions.

    Raises InvalidOperationException for a reopening that the table doesn't provide for.
    """
    if not request.keepsReady and not request.reopen:
        return Late([], [])
    properties = properties_of(row)
    reopened = {lake_partition(row, name).name for name in request.reopen or ()}
    if reopened and properties.late_rows is not LatePolicy.REOPEN:
        raise InvalidOperationException(
            f"partitions are opened again for late rows only where partition.late-rows is {LatePolicy.REOPEN},"
            f" not {properties.late_rows}"
        )
    if not follows(row, properties):
        return Late([], [])
    names = {lake_partition(row, each.partition).name for each in request.added or ()} | reopened
    readiness.hold(tx, row.id)
    ready = [each for each in partitions.rows(tx, Selection(row.id, names=sorted(names)), lock=True) if each.ready]
    turned = [each.name for each in ready if each.name not in reopened]
    return Late(turned, [] if turned else [each for each in ready if each.name in reopened])


def reopen(tx: Transaction, row: TableRow, commits: Commits, late: Late) -> list[str | None]:
    """Makes partitions uncommitted for late rows, at a position of its own; returns where they lie."""
    return commits.reopen_first(tx, row, late.held) if late.held else []


def count(tx: Transaction, row: TableRow, late: LateRows | None) -> None:
    """Adds to the counts of a table's late rows. Negative numbers are ignored."""
    if late is None:
        return
    state = readiness.hold(tx, row.id)
    readiness.put(
        tx,
        row.id,
        state._replace(
            rerouted=state.rerouted + max(late.rerouted or 0, 0),
            reopened=state.reopened + max(late.reopened or 0, 0),
            dropped=state.dropped + max(late.dropped or 0, 0),
        ),
    )
