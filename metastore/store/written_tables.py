"""What transactions leave of a table, or a partition, when that is dropped or renamed (Hive's cleanupRecords)."""

from collections.abc import Sequence

from sqlalchemy import Connection, delete, func, update

from metastore.store.names import DatabaseName, TableName
from metastore.store.schema import (
    compaction_metrics,
    compactions,
    completed_components,
    materialization_rebuilds,
    table_write_ids,
    transaction_components,
    transaction_write_ids,
    write_sets,
)
from metastore.store.transactions import of_table

_OF_TABLES = (table_write_ids, transaction_write_ids, materialization_rebuilds)
_OF_PARTITIONS = (transaction_components, completed_components, compactions, compaction_metrics)


def forget_tables(tx: Connection, database: DatabaseName, names: Sequence[str]) -> None:
    """Tables are gone: others of their names begin anew."""
    for each in (*_OF_TABLES, *_OF_PARTITIONS):
        tx.execute(
            delete(each).where(
                each.c.catalog == database.catalog,
                each.c.database_name == database.database,
                each.c.table_name == func.any(list(names)),
            )
        )


def forget_partitions(tx: Connection, name: TableName, partitions: Sequence[str]) -> None:
    """Partitions are gone."""
    for each in _OF_PARTITIONS:
        tx.execute(delete(each).where(of_table(each, name), each.c.partition_name == func.any(list(partitions))))


def rename_table(tx: Connection, old: TableName, new: TableName) -> None:
    """A table has another name; its write ids go on. What was noted under that name was of no table."""
    forget_tables(tx, new.of_database, [new.table])
    values = {"catalog": new.catalog, "database_name": new.database, "table_name": new.table}
    for each in (*_OF_TABLES, *_OF_PARTITIONS, write_sets):
        tx.execute(update(each).where(of_table(each, old)).values(**values))


def rename_partition(tx: Connection, name: TableName, old: str, new: str) -> None:
    """A partition has another name. What was noted under that name was of no partition."""
    forget_partitions(tx, name, [new])
    for each in (*_OF_PARTITIONS, write_sets):
        tx.execute(update(each).where(of_table(each, name), each.c.partition_name == old).values(partition_name=new))
