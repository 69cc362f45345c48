"""The source tables of materialized views: as in Hive 4, a table can't be dropped while a view uses it.

A view that the caller can't see is no hindrance: it stays, and its source is missing.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from lake.protocol.hive import CreationMetadata, MetaException
from metastore.services.model import hive_objects
from metastore.services.model import names as given
from metastore.store import Database
from metastore.store.engine.database import Transaction
from metastore.store.engine.names import TableName
from metastore.store.table import tables
from metastore.store.transactions import materializations

Shown = Callable[[Sequence[TableName]], list[bool]]
"""Says for each of several tables and views whether the caller sees it."""


def sources(metadata: CreationMetadata | None, catalog: str) -> set[TableName]:
    """The tables that a view's metadata names, all in the view's catalog. A text that is no such name names none."""
    if metadata is None:
        return set()
    used = [each.rpartition(".")[::2] for each in metadata.tablesUsed or ()]
    used += [
        (each.table.dbName or "", each.table.tableName or "")
        for each in metadata.sourceTables or ()
        if each.table is not None
    ]
    return {
        TableName(catalog, given.normalized(database), given.plain_table(table))
        for database, table in used
        if database and table
    }


def hidden_users(store: Database, catalog: str, going: Collection[TableName], shown: Shown) -> frozenset[TableName]:
    """The materialized views that use one of the tables to drop, and that the caller doesn't see.

    It has a transaction of its own, which has ended before `shown` is called.
    """
    with store.read() as tx:
        users = sorted({view for view, _ in _users(tx, catalog, going)})
    return frozenset(each for each, sees in zip(users, shown(users), strict=True) if not sees)


def check_unused(
    tx: Transaction, catalog: str, going: Collection[TableName], hidden: Collection[TableName] = ()
) -> None:
    """Raises MetaException if a materialized view uses one of the tables to drop, and isn't dropped with them.

    `hidden`: the views that don't count.
    """
    for view, table in _users(tx, catalog, going):
        if view not in hidden:
            raise MetaException(
                f"Cannot drop table as it is used in the following materialized views"
                f" [{view.database}.{view.table}]: {table.database}.{table.table}"
            )


def _users(tx: Transaction, catalog: str, going: Collection[TableName]) -> Iterator[tuple[TableName, TableName]]:
    """The materialized views that use one of some tables, without those among the tables themselves."""
    wanted = set(going)
    for each in materializations.views(tx, catalog):
        view = tables.find_by_id(tx, each)
        if view is not None and view.name not in wanted:
            for table in sorted(wanted & sources(hive_objects.table_of(view).creationMetadata, catalog)):
                yield view.name, table
