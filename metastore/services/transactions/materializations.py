"""Materialized views: their freshness, locks for rebuilds, and the changes of their sources."""

from lake.protocol.clock import now_ms
from lake.protocol.hive import (
    CreationMetadata,
    InvalidOperationException,
    LockResponse,
    LockState,
    Materialization,
    SourceTable,
    Table,
    UpdateTransactionalStatsRequest,
)
from metastore.services.model import hive_objects, view_sources
from metastore.services.model import names as given
from metastore.services.model.names import DEFAULT_CATALOG
from metastore.services.transactions.valid_txns import parse, parse_materialization
from metastore.services.transactions.write_ids import full_name, valid_write_ids
from metastore.store import Database
from metastore.store.catalog.databases import RowLock
from metastore.store.engine.database import Transaction
from metastore.store.table import tables
from metastore.store.table.tables import TableRow
from metastore.store.transactions import compactions, materializations, transactions


class MaterializationService:
    """Hive's calls for materialized views, beyond those for tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def for_rewriting(self) -> list[Table]:
        """The default catalog's materialized views that may stand in for their query, by database and name."""
        with self._database.read() as tx:
            rows = [tables.find_by_id(tx, each) for each in materializations.views(tx, DEFAULT_CATALOG)]
            found = [hive_objects.table_of(row) for row in rows if row is not None]
        return [view for view in found if view.rewriteEnabled]

    def update_metadata(
        self, catalog: str | None, database: str | None, table: str | None, metadata: CreationMetadata
    ) -> None:
        """A view was built from other sources, or another state of them. Raises InvalidOperationException."""
        name = given.table_name(database, table, catalog)
        with self._database.write() as tx:
            row = tables.find(tx, name, RowLock.EXCLUSIVE)
            if row is None:
                raise InvalidOperationException(f"{given.plain(database)}.{table} table not found")
            now = now_ms()
            _keep(tx, row, metadata.replace(materializationTime=metadata.materializationTime or now))

    def count_changes(self, request: UpdateTransactionalStatsRequest) -> None:
        """So many rows of a table were inserted, updated and deleted: added up for each view that is built from it."""
        with self._database.write() as tx:
            source = tables.find_by_id(tx, request.tableId or 0)
            if source is None:
                return
            for each in materializations.views(tx, source.name.catalog):
                row = tables.find_by_id(tx, each, RowLock.EXCLUSIVE)
                metadata = hive_objects.table_of(row).creationMetadata if row is not None else None
                if row is None or metadata is None:
                    continue
                if source.name in view_sources.sources(metadata, source.name.catalog):
                    _keep(tx, row, _counted(metadata, source, request))

    def changes(self, metadata: CreationMetadata, valid_transactions: str) -> Materialization | None:
        """Whether rows of a view's sources were updated or deleted since it was built, or compacted.

        None where it can't be said: other sources than transactional tables, or a transaction that was open then and
        has ended since. Raises MetaException for snapshots that are none.
        """
        built = parse_materialization(metadata.validTxnList or "")
        if not metadata.tablesUsed or built is None:
            return None
        now = parse(valid_transactions)
        changed = compacted = False
        with self._database.read() as tx:
            for used in sorted(metadata.tablesUsed):
                name, then = full_name(used), built.get(used)
                if then is None or valid_write_ids(tx, name, now).oldest_open != then.oldest_open:
                    return None
                changed = changed or transactions.changed_after(
                    tx, name, write_id=then.highest, also=then.invalid, highest=now.highest, invalid=now.invalid
                )
                compacted = compacted or compactions.compacted_after(tx, name, then.highest, then.invalid)
        return Materialization(sourceTablesUpdateDeleteModified=changed, sourceTablesCompacted=compacted)

    # --- rebuilding -------------------------------------------------------------------------------------------

    def begin_rebuild(self, database: str | None, table: str | None, transaction_id: int) -> LockResponse:
        """A transaction is going to rebuild a view: ACQUIRED, or NOT_ACQUIRED while another does."""
        name = given.base(given.decorated_name(database, table))
        with self._database.write() as tx:
            begun = materializations.begin_rebuild(tx, name, transaction_id)
        return LockResponse(transaction_id, LockState.ACQUIRED if begun else LockState.NOT_ACQUIRED)

    def heartbeat_rebuild(self, database: str | None, table: str | None, transaction_id: int) -> bool:
        """A transaction is still rebuilding a view; whether it has begun to."""
        name = given.base(given.decorated_name(database, table))
        with self._database.write() as tx:
            return materializations.heartbeat(tx, name, transaction_id)


def _keep(tx: Transaction, row: TableRow, metadata: CreationMetadata) -> None:
    value = hive_objects.table_of(row)
    value.creationMetadata = metadata
    tables.change(tx, row.id, row.database_id, hive_objects.table_values(value, row.descriptor_id))


def _counted(metadata: CreationMetadata, source: TableRow, counts: UpdateTransactionalStatsRequest) -> CreationMetadata:
    kept = list(metadata.sourceTables or ())
    place = next((at for at, each in enumerate(kept) if each.table is not None and _is(each.table, source)), None)
    if place is None:
        place = len(kept)
        # What a reader needs to know which it is; Table's own required fields are none.
        named = Table(catName=source.name.catalog, dbName=source.name.database, tableName=source.name.table)
        kept.append(SourceTable(table=named, insertedCount=0, updatedCount=0, deletedCount=0))
    old = kept[place]
    kept[place] = old.replace(
        insertedCount=(old.insertedCount or 0) + (counts.insertCount or 0),
        updatedCount=(old.updatedCount or 0) + (counts.updatedCount or 0),
        deletedCount=(old.deletedCount or 0) + (counts.deletedCount or 0),
    )
    return metadata.replace(sourceTables=kept)


def _is(table: Table, row: TableRow) -> bool:
    return ((table.dbName or "").lower(), (table.tableName or "").lower()) == (row.name.database, row.name.table)
