"""Imports objects of another metastore.

What is there is the only record of how far an import has come. So it may be repeated, and goes on where one was
killed: an object that is there as it is brought stays. One that differs stays, too, and is told of, unless it is to be
replaced.

Hive's own calls can't do that: they set times and owners, count files, make directories, and merge statistics.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from lake.protocol.hive import MetaException, Partition
from lake.protocol.lake import ImportRequest, ImportResponse
from metastore.services.events.recorder import Events
from metastore.services.files.deletable import Deletable
from metastore.services.files.relocator import Mover
from metastore.services.migration.belongings import Belongings
from metastore.services.migration.namespaces import Namespaces
from metastore.services.migration.outcome import Outcome
from metastore.services.migration.places import NewPlaces
from metastore.services.migration.tables import Tables
from metastore.store import Conflict, Database
from metastore.store.engine.database import Transaction
from metastore.warehouse import Warehouse

T = TypeVar("T")


class ImportService:
    """Keeps objects as they are in another metastore. Each call is one transaction, with the events of its changes."""

    def __init__(
        self, database: Database, warehouse: Warehouse, mover: Mover, events: Events, deletable: Deletable
    ) -> None:
        places = NewPlaces(warehouse, mover, deletable)
        self._database = database
        self._namespaces = Namespaces(events, places)
        self._tables = Tables(events, places)
        self._belongings = Belongings(events)

    def bring(self, request: ImportRequest) -> ImportResponse:
        """Adds what isn't there, all or nothing.

        Raises NoSuchObjectException for a catalog, database, table or partition that has to be there and isn't,
        MetaException, InvalidOperationException for what can't be kept.
        """
        outcome = Outcome(replace=bool(request.overwrite))
        try:
            with self._database.write() as tx:
                self._bring(tx, request, outcome)
        except Conflict:
            raise MetaException("somebody else has made one of the objects meanwhile: import again") from None
        return outcome.to_thrift()

    def _bring(self, tx: Transaction, request: ImportRequest, outcome: Outcome) -> None:
        _each(tx, request.catalogs, self._namespaces.catalog, outcome)
        _each(tx, request.databases, self._namespaces.database, outcome)
        _each(tx, request.functions, self._namespaces.function, outcome)
        _each(tx, request.tables, self._tables.table, outcome)
        if request.partitions:
            self._tables.partitions(tx, _with_columns(request, request.partitions), outcome)
        if request.statistics:
            self._belongings.statistics(tx, request.statistics, outcome)
        if request.constraints is not None:
            self._belongings.constraints(tx, request.constraints, outcome)
        _each(tx, request.roles, self._belongings.role, outcome)
        _each(tx, request.members, self._belongings.member, outcome)
        _each(tx, request.grants, self._belongings.grant, outcome)


def _with_columns(request: ImportRequest, partitions: Sequence[Partition]) -> Sequence[Partition]:
    """The partitions with the columns that they have in common; they share them. Raises MetaException."""
    if request.columnsOf is None:
        return partitions
    lists = request.columns or []
    if len(request.columnsOf) != len(partitions):
        raise MetaException("columnsOf has one number for each partition")
    for each, place in zip(partitions, request.columnsOf, strict=True):
        if place == -1:
            continue
        if each.sd is None or each.sd.cols is not None or not 0 <= place < len(lists):
            raise MetaException("columnsOf has the places of lists in columns, for partitions without their own")
        each.sd.cols = lists[place]
    return partitions


def _each(
    tx: Transaction, brought: Iterable[T] | None, keep: Callable[[Transaction, T, Outcome], None], outcome: Outcome
) -> None:
    for one in brought or ():
        keep(tx, one, outcome)
