"""Moving and deleting data after a rename or a drop, so that a crash in the middle is made good.

The change's transaction records what is to be done with the data. Whoever does it holds the record until it is done;
if that process dies, its lock goes with it, and the next housekeeping of any server takes over. Until then nobody
may touch the directories in question: `settle` is called by all who are about to.
"""

import threading
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from queue import SimpleQueue

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
        self._later: SimpleQueue[list[int]] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def record_deletions(self, tx: Transaction, places: Sequence[str], large: Collection[str]) -> list[Move]:
        """Records that directories are to be deleted once the transaction has committed.

        `large`: those of them that take long. They are moved out of the way, and deleted when nobody waits for it.
        """
        aside = {place: self._warehouse.beside(place) if place in large else None for place in places}
        recorded = moves.add_deletions(tx, [place for place, target in aside.items() if target is None])
        for place, target in aside.items():
            if target is not None:
                recorded += [moves.add(tx, place, target), *moves.add_deletions(tx, [target])]
        return recorded

    def carry_out(self, recorded: Sequence[Move]) -> None:
        """Does what a committed change recorded, unless somebody did already; what can wait, in the background.

        Raises WarehouseError if data can't be moved; it stays recorded.
        """
        if not recorded:
            return
        with self._database.write() as tx:
            claimed = moves.claim(tx, [move.id for move in recorded])
            later = [move for move in claimed if move.target is None and self._warehouse.is_aside(move.source)]
            now = [move for move in claimed if move not in later]
            self._do(now)
            moves.forget(tx, [move.id for move in now])
        if later:
            self._carry_out_later([move.id for move in later])

    def _carry_out_later(self, ids: list[int]) -> None:
        with self._starting:
            if self._thread is None:
                # It doesn't keep the process from ending: housekeeping does what it leaves.
                self._thread = threading.Thread(target=self._work, name="mover", daemon=True)
                self._thread.start()
        self._later.put(ids)

    def _work(self) -> None:
        while True:
            ids = self._later.get()
            try:
                with self._database.write() as tx:
                    self._do_all(tx, ids)
            except Exception as error:
                log.warning("left to housekeeping", records=ids, error=str(error))

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
                    self._do([move])
                except WarehouseError as error:
                    log.warning("data can't be moved", source=move.source, target=move.target, error=str(error))
                    continue
                moves.forget(tx, [move.id])
            count += 1

    def delete_empty_parents(self, locations: Iterable[str], base: str | None, *, depth: int) -> None:
        """Removes directories of partitions' outer keys that have become empty, as Hive's deleteParentRecursive."""
        if base is None:
            return
        gone = set(locations)
        for _ in range(depth):
            parents = {parent for each in gone if (parent := self._warehouse.parent(each)) is not None}
            gone = {
                parent
                for parent in parents
                if self._warehouse.relative_to(parent, base) and self._warehouse.delete_empty_directory(parent)
            }

    def _do_all(self, tx: Transaction, ids: Sequence[int]) -> None:
        claimed = moves.claim(tx, ids)
        self._do(claimed)
        moves.forget(tx, [move.id for move in claimed])

    def _do(self, claimed: Sequence[Move]) -> None:
        for deletions, some in groupby(claimed, lambda move: move.target is None):
            if deletions:
                self._delete([move.source for move in some])
            else:
                for move in some:
                    self._move(move)

    def _move(self, move: Move) -> None:
        assert move.target is not None
        if self._warehouse.is_aside(move.target):
            self._move_aside(move.source, move.target)
            return
        if self._warehouse.exists(move.source):
            # Somebody may have made the target, or partitions' places in it, for what then came too late.
            self._warehouse.delete_empty_tree(move.target)
        self._warehouse.move_directory(move.source, move.target)

    def _move_aside(self, source: str, target: str) -> None:
        try:
            self._warehouse.move_directory(source, target)
        except WarehouseError:  # it is a mount point, a link, a file: what can't be moved can perhaps be deleted
            self._delete([source])

    def _delete(self, places: Sequence[str]) -> None:
        for error in self._warehouse.delete_directories(places):  # as in Hive, what was dropped stays dropped
            log.warning("a directory can't be deleted", error=str(error))


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
