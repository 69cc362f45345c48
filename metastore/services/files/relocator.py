"""Moves and deletes directories after a rename or a drop, even if a server crashes in between.

The transaction of the change records the moves. Whoever carries out a move locks its record until it is done. If that
process dies, the lock is released, and the next housekeeping of any server continues. Until then nobody may use the
directories: call `settle` before.
"""

import threading
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from queue import SimpleQueue

import structlog

from metastore.services.files.deletable import Deletable
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.files import moves
from metastore.store.files.moves import Move
from metastore.warehouse import Warehouse, WarehouseError

log = structlog.get_logger(__name__)


class Mover:
    """Records, and carries out, moves and deletions of directories."""

    def __init__(self, database: Database, warehouse: Warehouse, deletable: Deletable) -> None:
        self._database = database
        self._warehouse = warehouse
        self._deletable = deletable
        self._later: SimpleQueue[list[int]] = SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None

    def record_deletions(self, tx: Transaction, places: Sequence[str], large: Collection[str]) -> list[Move]:
        """Records deletions of directories, for `carry_out` after the commit.

        `large`: the directories whose deletion takes long. They are renamed at once, and deleted in the background.
        """
        aside = {place: self._warehouse.beside(place) if place in large else None for place in places}
        recorded = moves.add_deletions(tx, [place for place, target in aside.items() if target is None])
        for place, target in aside.items():
            if target is not None:
                recorded += [moves.add(tx, place, target), *moves.add_deletions(tx, [target])]
        return recorded

    def carry_out(self, recorded: Sequence[Move]) -> None:
        """Carries out moves and deletions of a committed change. Large deletions continue in the background.

        A failed move stays recorded, and housekeeping tries again. It is no error of the call, whose change is
        committed.
        """
        if not recorded:
            return
        with self._database.write() as tx:
            claimed = moves.claim(tx, [move.id for move in recorded])
            later = [move for move in claimed if move.target is None and self._warehouse.is_aside(move.source)]
            now = [move for move in claimed if move not in later]
            try:
                self._do(tx, now)
            except WarehouseError as error:
                log.warning("data can't be moved yet", records=[move.id for move in now], error=str(error))
                moves.put_off(tx, [move.id for move in now], str(error))
            else:
                moves.forget(tx, [move.id for move in now])
        if later:
            self._carry_out_later([move.id for move in later])

    def _carry_out_later(self, ids: list[int]) -> None:
        with self._starting:
            if self._thread is None:
                # A daemon thread, which doesn't delay the process' end: housekeeping does the rest.
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
                log.warning("deletions failed, housekeeping tries again", records=ids, error=str(error))

    def is_settled(self, tx: Transaction, places: Iterable[str | None]) -> bool:
        """Whether no move is pending in, above or below some directories."""
        return not _overlapping(moves.pending(tx), places)

    def settle(self, places: Iterable[str | None]) -> None:
        """Carries out all pending moves in, above or below some directories, or waits for those that run.

        Raises WarehouseError if a directory can't be moved.
        """
        wanted = list(places)
        with self._database.read() as tx:
            if self.is_settled(tx, wanted):
                return
        with self._database.write() as tx:
            self.settle_within(tx, wanted)

    def settle_within(self, tx: Transaction, places: Iterable[str | None]) -> bool:
        """Like `settle`, in the caller's transaction. Returns whether a move was pending.

        If the transaction rolls back, the directories stay moved; the next attempt notices it.
        """
        ids = _overlapping(moves.pending(tx), places)
        if ids:
            self._do_all(tx, ids)
        return bool(ids)

    def carry_out_pending(self) -> int:
        """Carries out all pending moves that nobody works on. Returns their number.

        Failed moves are tried again after growing pauses."""
        count = last = 0
        while True:
            with self._database.write() as tx:
                move = moves.claim_next(tx, last)
                if move is None:
                    return count
                last = move.id
                try:
                    self._do(tx, [move])
                except WarehouseError as error:
                    log.warning("data can't be moved", source=move.source, target=move.target, error=str(error))
                    moves.put_off(tx, [move.id], str(error))
                    continue
                moves.forget(tx, [move.id])
            count += 1

    def delete_empty_parents(self, locations: Iterable[str], base: str | None, *, depth: int) -> None:
        """Deletes parent directories of partitions that have become empty, as Hive's deleteParentRecursive does."""
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
        self._do(tx, claimed)
        moves.forget(tx, [move.id for move in claimed])

    def _do(self, tx: Transaction, claimed: Sequence[Move]) -> None:
        for deletions, some in groupby(self._allowed(tx, claimed), lambda move: move.target is None):
            if deletions:
                self._delete([move.source for move in some])
            else:
                for move in some:
                    self._move(move)

    def _allowed(self, tx: Transaction, claimed: Sequence[Move]) -> list[Move]:
        """The claimed records that may be carried out. Deletions that weren't checked when recorded are checked now."""
        unchecked = [move.source for move in claimed if not move.checked and _is_deletion(move)]
        allowed = set(self._deletable.recorded_among(tx, unchecked)) if unchecked else set()
        return [move for move in claimed if move.checked or not _is_deletion(move) or move.source in allowed]

    def _move(self, move: Move) -> None:
        assert move.target is not None
        if self._warehouse.is_aside(move.target):
            self._move_aside(move.source, move.target)
            return
        if self._warehouse.exists(move.source):
            # The target may exist, with empty directories, if a writer started before the move.
            self._warehouse.delete_empty_tree(move.target)
        self._warehouse.move_directory(move.source, move.target)

    def _move_aside(self, source: str, target: str) -> None:
        try:
            self._warehouse.move_directory(source, target)
        except WarehouseError:  # a mount point, a link or a file can't be moved, but perhaps deleted
            self._delete([source])

    def _delete(self, places: Sequence[str]) -> None:
        for error in self._warehouse.delete_directories(places):  # as in Hive, a failed deletion doesn't undo a drop
            log.warning("a directory can't be deleted", error=str(error))


def keep_after_restore(tx: Transaction) -> list[str]:
    """Forgets deletions that a backup brought back, and returns what would have been deleted.

    These deletions were carried out after the backup. Tables that the backup doesn't know may use the directories
    since. Moves stay: without them a renamed table would lack its data.
    """
    kept = [move for move in moves.pending(tx) if _is_deletion(move) and not Warehouse.is_aside(move.source)]
    moves.forget(tx, [move.id for move in kept])
    return [move.source for move in kept]


def _is_deletion(move: Move) -> bool:
    return move.target is None or Warehouse.is_aside(move.target)


def _overlapping(pending: Sequence[Move], places: Iterable[str | None]) -> list[int]:
    """The ids of the pending moves of directories that are, contain or lie in one of some places."""
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
