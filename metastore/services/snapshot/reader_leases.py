"""Readers' leases: a snapshot that is being read keeps its files, until the lease expires by the database's clock."""

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import LeaseRequest, ReaderLease, TableReference
from metastore.services.model import client_texts
from metastore.services.snapshot.service import check_changes_readable, check_readable
from metastore.services.table.service import TableService
from metastore.services.timeline.lookup import check_is_of, lake_table, written_lake_table
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.snapshot import leases
from metastore.store.snapshot.leases import LeaseRow
from metastore.store.table.tables import TableRow
from metastore.store.timeline import instants

MAX_SECONDS = 86_400
"""How long a lease may be. Who reads for longer renews it."""

MAX_LEASES = 10_000
"""Leases of a table that hold at one time."""

MAX_NAME = 64
"""Characters of a lease's id."""


class ReaderLeases:
    """The calls by which readers keep cleans off what they read."""

    def __init__(self, database: Database, tables: TableService) -> None:
        self._database = database
        self._tables = tables

    def take(self, request: LeaseRequest, owner: str | None = None) -> ReaderLease:
        """Takes a lease, or renews it: the same call with the same id does. By default it is on the latest snapshot.

        `onwards`: it is on all later snapshots, too. `owner`: the user that it belongs to, if it is new.

        Raises NoSuchObjectException, InvalidOperationException, SnapshotGone if the snapshot can't be read any more.
        """
        name, seconds = _name(request.id), request.seconds or 0
        if not 0 < seconds <= MAX_SECONDS:
            raise InvalidOperationException(f"a lease is for 1 to {MAX_SECONDS} seconds, not for {seconds}: renew it")
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, request.table)
            leases.hold_off_cleans(tx, row.id)
            onwards = bool(request.onwards)
            position = self._position(tx, row, name, request.position, onwards=onwards)
            check_is_of(tx, row, request.table, position)
            holder = None if request.holder is None else client_texts.hint(request.holder)
            return _to_thrift(row, leases.put(tx, row.id, name, position, seconds, holder, owner, onwards=onwards))

    @staticmethod
    def _position(tx: Transaction, row: TableRow, name: str, wanted: int | None, *, onwards: bool) -> int:
        """The position that a lease may be on."""
        line = instants.timeline(tx, row.id)
        known = leases.find(tx, row.id, name)
        if known is None and leases.count(tx, row.id) >= MAX_LEASES:
            raise InvalidOperationException(
                f"{row.name} is being read under {MAX_LEASES} leases already: release some, or try again later"
            )
        if wanted is None:
            wanted = line.position if known is None else known.position
        if not 0 <= wanted <= line.position:
            raise InvalidOperationException(f"{row.name} has no position {wanted}: the last one is {line.position}")
        if onwards:
            check_changes_readable(tx, row, line, wanted)
        else:
            check_readable(tx, row, line, wanted)
        return wanted

    def release(self, table: TableReference | None, name: str | None) -> None:
        """Ends a lease; a missing one is fine. Raises NoSuchObjectException without the table."""
        with self._database.write() as tx:
            row = written_lake_table(self._tables, tx, table)
            leases.remove(tx, row.id, _name(name))

    def owner(self, table: TableReference | None, name: str | None) -> str | None:
        """The user that a lease belongs to; None without a lease, or if it was taken where there were no rights.

        Raises NoSuchObjectException, InvalidOperationException.
        """
        with self._database.read() as tx:
            found = leases.find(tx, lake_table(self._tables, tx, table).id, _name(name))
            return None if found is None else found.owner

    def listing(self, table: TableReference | None) -> list[ReaderLease]:
        """The leases of a table that hold. Raises NoSuchObjectException."""
        with self._database.read() as tx:
            row = lake_table(self._tables, tx, table)
            return [_to_thrift(row, each) for each in leases.listing(tx, row.id)]

    def sweep(self) -> None:
        """Forgets leases that have ended."""
        with self._database.write() as tx:
            leases.expire(tx)


def _name(given: str | None) -> str:
    if not given or len(given) > MAX_NAME:
        raise InvalidOperationException(f"a lease has an id of 1 to {MAX_NAME} characters")
    return given


def _to_thrift(row: TableRow, lease: LeaseRow) -> ReaderLease:
    table = TableReference(row.name.catalog, row.name.database, row.name.table, row.id)
    return ReaderLease(lease.name, table, lease.position, lease.expires_at, lease.holder, lease.onwards)
