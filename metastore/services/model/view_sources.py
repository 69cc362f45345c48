"""The source tables of materialized views: as in Hive 4, a table can't be dropped while a view uses it."""

from collections.abc import Collection

from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import TableName
from metastore.store.table import tables
from metastore.store.transactions import materializations
from metastore.wire.hive import MetaException


def check_unused(tx: Transaction, catalog: str, going: Collection[TableName]) -> None:
    """Raises MetaException if a materialized view uses one of the tables to drop, and isn't dropped with them."""
    for each in materializations.views(tx, catalog):
        view = tables.find_by_id(tx, each)
        metadata = hive_objects.table_of(view).creationMetadata if view is not None else None
        if view is None or metadata is None or view.name in going:
            continue
        used = {given.normalized(source) for source in metadata.tablesUsed or ()}
        for table in sorted(going):
            if f"{table.database}.{table.table}" in used:
                raise MetaException(
                    f"Cannot drop table as it is used in the following materialized views"
                    f" [{view.name.database}.{view.name.table}]: {table.database}.{table.table}"
                )
