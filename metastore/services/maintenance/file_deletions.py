"""Deletes files of lake tables that no snapshot needs. Transactions only schedule deletions; the leader does them."""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

import structlog

from metastore.services.files.deletable import ADVICE, Deletable
from metastore.services.instant_rules.paths import DIRECTORY, base_of
from metastore.services.timeline.staging import InstantFiles
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import data_files
from metastore.store.snapshot.data_files import PendingDeletion
from metastore.store.table import tables
from metastore.store.table.tables import TableRow
from metastore.warehouse import Warehouse, WarehouseError

AT_ONCE = 1_000
"""Files that are deleted in one transaction, which locks their records."""

SECONDS = 1.0
"""Pause between two runs."""

log = structlog.get_logger(__name__)


class FileDeletions:
    """Deletes files of cleans, rejected completions and aborted instants."""

    def __init__(self, database: Database, warehouse: Warehouse, files: InstantFiles, deletable: Deletable) -> None:
        self._database = database
        self._warehouse = warehouse
        self._files = files
        self._deletable = deletable

    def run(self) -> None:
        """Makes all pending deletions that are due. Failed ones are retried after growing pauses."""
        found = AT_ONCE
        while found == AT_ONCE:
            with self._database.write() as tx:
                some = data_files.find_pending_deletions(tx, AT_ONCE)
                found = len(some)
                failed: dict[int, str] = {}
                for table_id, files in groupby(sorted(some, key=attrgetter("table_id")), attrgetter("table_id")):
                    failed.update(self._delete(tx, table_id, list(files)))
                data_files.postpone_deletions(tx, failed)
                data_files.remove_pending_deletions(tx, [each.id for each in some if each.id not in failed])

    def _delete(self, tx: Transaction, table_id: int, files: Sequence[PendingDeletion]) -> dict[int, str]:
        """Deletes files of a table. Returns the errors by the ids of the pending deletions."""
        row = tables.find_by_id(tx, table_id)
        if row is None or row.location is None:
            return {}
        known = data_files.known_paths(tx, row.id, [each.path for each in files])
        unknown = self._exclusive(tx, row, [each for each in files if each.path not in known])
        failed = self._delete_directories(tx, row, [each for each in unknown if each.path.endswith("/")])
        single = self._own(tx, row, [each for each in unknown if not each.path.endswith("/")])
        try:
            kept = self._warehouse.delete_files([each.path for each in single], base_of(row.location))
        except WarehouseError as error:  # none could be deleted
            kept = dict.fromkeys((each.path for each in single), error)
        failed.update({each.id: str(kept[each.path]) for each in single if each.path in kept})
        if failed:
            log.warning(
                "files of a table can't be deleted, they are tried again later",
                table=str(row.name),
                files=len(failed),
                error=next(iter(failed.values())),
            )
        return failed

    def _exclusive(self, tx: Transaction, row: TableRow, files: Sequence[PendingDeletion]) -> list[PendingDeletion]:
        """What no other table or partition lies at or around. The rest stays for good, with a warning in the log."""
        base = base_of(row.location or "")
        own = self._deletable.own(tx, base, [each.path for each in files], of=row.id)
        if len(own) < len({each.path for each in files}):
            log.warning(
                "files are kept",
                table=str(row.name),
                files=len({each.path for each in files} - own),
                location=base,
                reason="another table or partition lies there",
            )
        return [each for each in files if each.path in own]

    def _delete_directories(self, tx: Transaction, row: TableRow, some: Sequence[PendingDeletion]) -> dict[int, str]:
        """Deletes directories of instants, which belong to the server wherever the table lies. Returns errors by id."""
        failed = {}
        for each in some:
            try:
                if not self._files.delete(tx, row, each.path):
                    failed[each.id] = "files are still to be moved out of it, or it is a location of Hive's again"
            except WarehouseError as error:
                failed[each.id] = str(error)
        return failed

    def _own(self, tx: Transaction, row: TableRow, files: Sequence[PendingDeletion]) -> list[PendingDeletion]:
        """The files that the server may delete. Outside of the warehouse, these are only those of instants.

        All others stay for good, with a warning in the log.
        """
        base = base_of(row.location or "")
        if not files or self._deletable.is_own(tx, base):
            return list(files)
        own = [each for each in files if each.path.startswith(f"{DIRECTORY}/")]
        if len(own) < len(files):
            log.warning(
                "files are kept",
                table=str(row.name),
                files=len(files) - len(own),
                location=base,
                reason="outside of the warehouse",
                advice=ADVICE,
            )
        return own
