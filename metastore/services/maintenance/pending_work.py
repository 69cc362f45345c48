"""Counts work on files that committed changes have recorded and that isn't carried out yet."""

from typing import NamedTuple

from metastore.store import Database
from metastore.store.files import moves, publications
from metastore.store.snapshot import data_files


class PendingCounts(NamedTuple):
    """The number of pending tasks of each kind.

    `files`: files to be deleted. `undeletable`: those of them whose deletion has failed repeatedly. `moves`:
    directories to be moved or deleted. `publications`: staged files of completed instants that are not in
    their partitions yet.
    """

    files: int
    undeletable: int
    moves: int
    publications: int


class PendingWork:
    """Counts for monitoring."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def counts(self) -> PendingCounts:
        """What is pending now. Raises store.DatabaseUnavailable."""
        with self._database.read() as tx:
            return PendingCounts(*data_files.count_pending_deletions(tx), moves.count(tx), publications.count(tx))
