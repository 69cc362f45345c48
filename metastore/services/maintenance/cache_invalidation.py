"""The table of changes by which caches invalidate their entries. Triggers of the database write it."""

from metastore.store import Database
from metastore.store.cache import cache_changes


class ChangeNotes:
    """Starts recording changes, and removes old ones."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self) -> None:
        """Makes the recorded changes valid for caches from now on. Needed once after a crash; otherwise a no-op."""
        with self._database.write() as tx:
            cache_changes.begin(tx)

    def sweep(self) -> None:
        """Removes changes that no cache needs any more."""
        with self._database.write() as tx:
            cache_changes.begin(tx)
            cache_changes.forget_old(tx)
