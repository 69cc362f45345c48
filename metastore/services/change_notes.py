"""The notes of what transactions changed, by which caches know what of theirs still holds. Triggers write them."""

from metastore.store import Database, cache_changes


class ChangeNotes:
    """Begins them, and forgets old ones."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self) -> None:
        """Has caches trust the notes from now on; does nothing if they do already. Needed once after a crash."""
        with self._database.write() as tx:
            cache_changes.begin(tx)

    def sweep(self) -> None:
        """Forgets notes that no cache can want any more."""
        with self._database.write() as tx:
            cache_changes.begin(tx)
            cache_changes.forget_old(tx)
