"""Moving staged files of accepted batches into their partitions, so that a crash in the middle is made good.

Accepting a batch records what is to be moved. Whoever moves holds the records until it is done; if that process dies,
the next who looks takes over. Nobody makes a partition ready, or touches its directory, while something is on its way
there: `settle` is called by all who are about to.
"""

from collections.abc import Sequence

import structlog

from metastore.store import Database, publications
from metastore.store.database import Transaction
from metastore.store.publications import Publication
from metastore.warehouse import Warehouse, WarehouseError

log = structlog.get_logger(__name__)


class Publisher:
    """Carries out what accepted batches recorded."""

    def __init__(self, database: Database, warehouse: Warehouse) -> None:
        self._database = database
        self._warehouse = warehouse

    def carry_out(self, table_id: int) -> None:
        """Moves what is recorded for a table. Raises WarehouseError if something can't be, once the rest has been.

        What can't be moved stays recorded.
        """
        with self._database.write() as tx:
            failure = self._move(tx, publications.of_table(tx, table_id))
        if failure is not None:
            raise failure

    def settle_table(self, tx: Transaction, table_id: int) -> None:
        """The same in a transaction of the caller's. If that rolls back, what was moved is found so."""
        self._settle(tx, publications.of_table(tx, table_id))

    def settle(self, tx: Transaction, partition_ids: Sequence[int]) -> None:
        """The same for some partitions."""
        self._settle(tx, publications.of_partitions(tx, partition_ids))

    def settle_below(self, tx: Transaction, table_id: int, place: str) -> None:
        """The same for files that were staged below a place."""
        self._settle(tx, publications.below(tx, table_id, place))

    def settle_kept(self, tx: Transaction, table_id: int, partition_ids: Sequence[int] | None = None) -> None:
        """The same for a table, or some of its partitions, that is about to be dropped while its files stay.

        As its other files may be anywhere, so may these: what can't be moved is logged.
        """
        if partition_ids is None:
            failure = self._move(tx, publications.of_table(tx, table_id))
        else:
            failure = self._move(tx, publications.of_partitions(tx, partition_ids))
        if failure is not None:
            log.warning("staged files of what is dropped can't be moved", table_id=table_id, error=str(failure))

    def carry_out_left_over(self) -> None:
        """Moves what crashed servers left behind, unless somebody is at it. What fails is left for the next time."""
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
        """Moves what can be moved, and returns what kept the rest, if something did."""
        moved: list[int] = []
        failures: dict[str, WarehouseError] = {}
        for file in pending:
            target = directory(file.table_location, file.path, file.location)
            if target is None or target in failures:
                continue
            try:
                self._warehouse.move_file(file.source, f"{target}/{file.name}")
                moved.append(file.id)
            except WarehouseError as error:
                failures[target] = error
        publications.forget(tx, moved)
        return next(iter(failures.values()), None)


def directory(table_location: str | None, path: str | None, location: str | None) -> str | None:
    """Where a partition lies that is kept with a path below its table's location, or a location of its own."""
    if path is None or table_location is None:
        return location
    return f"{table_location}/{path}" if path else table_location
