"""Moves staged files of instants into their partitions, even if a server crashes in between.

The completing transaction records the moves. Whoever carries them out locks the records until it is done. If that
process dies, the next caller continues. While moves into a partition are pending, nobody may make it ready or change
its directory: call `settle` before.
"""

from collections.abc import Sequence

import structlog

from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.files import publications
from metastore.store.files.publications import Publication
from metastore.warehouse import FileGone, Warehouse, WarehouseError

log = structlog.get_logger(__name__)

_GONE = "put it back there, or roll back the instant that added it"


class Publisher:
    """Carries out the recorded moves of staged files."""

    def __init__(self, database: Database, warehouse: Warehouse) -> None:
        self._database = database
        self._warehouse = warehouse

    def carry_out(self, table_id: int) -> None:
        """Moves all pending files of a table. Raises WarehouseError at the end if some can't be moved; these stay."""
        with self._database.write() as tx:
            failure = self._move(tx, publications.of_table(tx, table_id))
        if failure is not None:
            raise failure

    def settle_table(self, tx: Transaction, table_id: int) -> None:
        """Like `carry_out`, in the caller's transaction. If that rolls back, the next call notices moved files."""
        self._settle(tx, publications.of_table(tx, table_id))

    def settle(self, tx: Transaction, partition_ids: Sequence[int]) -> None:
        """Moves the pending files of some partitions, in the caller's transaction. Raises WarehouseError."""
        self._settle(tx, publications.of_partitions(tx, partition_ids))

    def settle_below(self, tx: Transaction, table_id: int, place: str) -> None:
        """Moves the pending files that were staged below a directory. Raises WarehouseError."""
        self._settle(tx, publications.below(tx, table_id, place))

    def bring_below(self, tx: Transaction, table_id: int, place: str, undone: Sequence[str] = ()) -> list[int]:
        """Moves the pending files that were staged below a directory, but keeps the records unlocked.

        Returns the records' ids for `forget_below`. It is for a transaction that locks partitions only later: the order
        of locks is partitions first, then records. `undone`: what the sources begin with of which the transaction
        undoes the completion; they may be gone. Raises WarehouseError.
        """
        savepoint = tx.begin_nested()
        try:
            moved, failures = self._moved(publications.below(tx, table_id, place))
        finally:
            savepoint.rollback()  # unlocks the records
        for file, failure in failures:
            if not isinstance(failure, FileGone) or not file.source.startswith(tuple(undone)):
                raise failure
            log.warning("a staged file is gone, and its instant is undone", table_id=table_id, file=file.source)
            moved.append(file.id)
        return moved

    @staticmethod
    def forget_below(tx: Transaction, table_id: int, place: str, moved: Sequence[int]) -> None:
        """Removes the records of the files that `bring_below` moved. The caller has locked the partitions."""
        if moved:
            publications.below(tx, table_id, place)  # locks the records in the common order
            publications.forget(tx, moved)

    def settle_kept(self, tx: Transaction, table_id: int, partition_ids: Sequence[int] | None = None) -> None:
        """Moves the pending files of a table, or of some partitions, that are dropped while their files stay.

        Files that can't be moved are only logged.
        """
        if partition_ids is None:
            failure = self._move(tx, publications.of_table(tx, table_id))
        else:
            failure = self._move(tx, publications.of_partitions(tx, partition_ids))
        if failure is not None:
            log.warning("staged files of a dropped table can't be moved", table_id=table_id, error=str(failure))

    def carry_out_pending(self) -> None:
        """Moves all pending files that nobody works on. Failures are logged, and stay for the next call."""
        with self._database.read() as tx:
            ids = publications.tables_with_any(tx)
        for table_id in ids:
            with self._database.write() as tx:
                failure = self._move(tx, publications.of_table(tx, table_id, skip_held=True))
            if failure is not None:
                log.warning("staged files can't be moved", table_id=table_id, error=str(failure))

    def _settle(self, tx: Transaction, pending: Sequence[Publication]) -> None:
        failure = self._move(tx, pending)
        if failure is not None:
            raise failure

    def _move(self, tx: Transaction, pending: Sequence[Publication]) -> WarehouseError | None:
        """Moves files and removes their records. Returns the first error, if there is one."""
        moved, failures = self._moved(pending)
        publications.forget(tx, moved)
        return failures[0][1] if failures else None

    def _moved(self, pending: Sequence[Publication]) -> tuple[list[int], list[tuple[Publication, WarehouseError]]]:
        """Moves files. Returns the ids of the moved ones, and the others with their errors."""
        targets = {file.id: directory(file.table_location, file.path, file.location) for file in pending}
        movable = [file for file in pending if targets[file.id] is not None]
        errors = self._warehouse.move_files([(file.source, f"{targets[file.id]}/{file.name}") for file in movable])
        failures = [
            (file, FileGone(f"{error}: {_GONE}") if isinstance(error, FileGone) else error)
            for file, error in zip(movable, errors, strict=True)
            if error is not None
        ]
        failed = {file.id for file, _ in failures}
        return [file.id for file in movable if file.id not in failed], failures


def directory(table_location: str | None, path: str | None, location: str | None) -> str | None:
    """A partition's directory, from its stored path relative to the table, or its own location."""
    if path is None or table_location is None:
        return location
    return f"{table_location}/{path}" if path else table_location
