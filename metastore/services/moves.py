"""Moving and deleting data after a rename or a drop, so that a crash in the middle is made good.

The change's transaction records what is to be done with the data. Whoever does it holds the record until it is done;
if that process dies, its lock goes with it, and the next housekeeping of any server takes over. Until then nobody
may touch the directories in question: `settle` is called by all who are about to.
"""

from collections.abc import Iterable, Sequence

import structlog

from metastore.store import Database, moves
from metastore.store.database import Transaction
from metastore.store.moves import Move
from metastore.warehouse import Warehouse, WarehouseError

log = structlog.get_logger(__name__)


class Mover:
    """Carries out recorded moves and deletions."""

    def __init__(self, database: Database, warehouse: Warehouse) -> None:
        self._database = database
        self._warehouse = warehouse

    def carry_out(self, recorded: Sequence[Move]) -> None:
        """Does what a committed change recorded, unless somebody did already.

        Raises WarehouseError if data can't be moved; it stays recorded.
        """
        if recorded:
            with self._database.write() as tx:
                self._do_all(tx, [move.id for move in recorded])

    def is_settled(self, tx: Transaction, places: Iterable[str | None]) -> bool:
        """Whether nothing is left to be done in, above or below some directories."""
        return not _overlapping(moves.pending(tx), places)

    def settle(self, places: Iterable[str | None]) -> None:
        """Sees to it that nothing is left to be done in, above or below some directories.

        Waits for those who are at it. Raises WarehouseError if data can't be moved.
        """
        wanted = list(places)
        with self._database.read() as tx:
            if self.is_settled(tx, wanted):
                return
        with self._database.write() as tx:
            self.settle_within(tx, wanted)

    def settle_within(self, tx: Transaction, places: Iterable[str | None]) -> bool:
        """As `settle`, in a transaction of the caller's; whether something was left to be done.

        If that rolls back, what was done stays done and is found so by the next who tries.
        """
        ids = _overlapping(moves.pending(tx), places)
        if ids:
            self._do_all(tx, ids)
        return bool(ids)

    def carry_out_left_over(self) -> int:
        """Does what crashed servers left undone; returns how much that was. What fails is left for the next time."""
        count = last = 0
        while True:
            with self._database.write() as tx:
                move = moves.claim_next(tx, last)
                if move is None:
                    return count
                last = move.id
                try:
                    self._do(move)
                except WarehouseError as error:
                    log.warning("data can't be moved", source=move.source, target=move.target, error=str(error))
                    continue
                moves.forget(tx, [move.id])
            count += 1

    def delete_empty_parents(self, location: str, base: str | None, *, depth: int) -> None:
        """Removes directories of a partition's outer keys that have become empty, as Hive's deleteParentRecursive."""
        parent = self._warehouse.parent(location)
        while depth > 0 and parent is not None and base is not None and self._warehouse.relative_to(parent, base):
            if not self._warehouse.delete_empty_directory(parent):
                return
            parent, depth = self._warehouse.parent(parent), depth - 1

    def _do_all(self, tx: Transaction, ids: Sequence[int]) -> None:
        claimed = moves.claim(tx, ids)
        for move in claimed:
            self._do(move)
        moves.forget(tx, [move.id for move in claimed])

    def _do(self, move: Move) -> None:
        if move.target is not None:
            if self._warehouse.exists(move.source):
                # Somebody may have made the target, or partitions' places in it, for what then came too late.
                self._warehouse.delete_empty_tree(move.target)
            self._warehouse.move_directory(move.source, move.target)
            return
        try:
            self._warehouse.delete_directory(move.source)
        except WarehouseError as error:  # as in Hive, what was dropped stays dropped
            log.warning("a directory can't be deleted", location=move.source, error=str(error))


def _overlapping(pending: Sequence[Move], places: Iterable[str | None]) -> list[int]:
    """The ids of what is recorded for directories that are, contain or lie in one of some places."""
    if not pending:
        return []
    wanted = {place for place in places if place}
    outer = _with_those_above(wanted)
    return [
        move.id
        for move in pending
        for end in filter(None, (move.source, move.target))
        if end in outer or not wanted.isdisjoint(_with_those_above([end]))
    ]


def _with_those_above(places: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for place in places:
        while place and place not in found:
            found.add(place)
            place = place.rpartition("/")[0]
    return found
