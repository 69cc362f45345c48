"""What transactions leave of a table, or a partition, when that is dropped or renamed (Hive's cleanupRecords)."""

from collections.abc import Sequence

from sqlalchemy import Connection

from metastore.store import bulk
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

_OF_PARTITIONS = tuple(
    each.name for each in (transaction_components, completed_components, compactions, compaction_metrics)
)
_OF_TABLES = (table_write_ids.name, transaction_write_ids.name, materialization_rebuilds.name, *_OF_PARTITIONS)
_OF_TABLE = "catalog = %(catalog)s AND database_name = %(database)s AND table_name = %(table)s"

_FORGET_TABLES = [
    f"DELETE FROM {each} WHERE catalog = %(catalog)s AND database_name = %(database)s AND table_name = ANY(%(tables)s)"
    for each in _OF_TABLES
]
_FORGET_PARTITIONS = [
    f"DELETE FROM {each} WHERE {_OF_TABLE} AND partition_name = ANY(%(partitions)s)" for each in _OF_PARTITIONS
]
_RENAME_TABLE = [
    f"UPDATE {each} SET catalog = %(new_catalog)s, database_name = %(new_database)s, table_name = %(new_table)s"
    f" WHERE {_OF_TABLE}"
    for each in (*_OF_TABLES, write_sets.name)
]
_RENAME_PARTITION = [
    f"UPDATE {each} SET partition_name = %(new)s WHERE {_OF_TABLE} AND partition_name = %(old)s"
    for each in (*_OF_PARTITIONS, write_sets.name)
]


def forget_tables(tx: Connection, database: DatabaseName, names: Sequence[str]) -> None:
    """Tables are gone: others of their names begin anew."""
    bulk.execute_all(tx, _FORGET_TABLES, {**database._asdict(), "tables": list(names)})


def forget_partitions(tx: Connection, name: TableName, partitions: Sequence[str]) -> None:
    """Partitions are gone."""
    bulk.execute_all(tx, _FORGET_PARTITIONS, {**name._asdict(), "partitions": list(partitions)})


def rename_table(tx: Connection, old: TableName, new: TableName) -> None:
    """A table has another name; its write ids go on. What was noted under that name was of no table."""
    forget_tables(tx, new.of_database, [new.table])
    values = {f"new_{field}": value for field, value in new._asdict().items()}
    bulk.execute_all(tx, _RENAME_TABLE, {**old._asdict(), **values})


def rename_partition(tx: Connection, name: TableName, old: str, new: str) -> None:
    """A partition has another name. What was noted under that name was of no partition."""
    forget_partitions(tx, name, [new])
    bulk.execute_all(tx, _RENAME_PARTITION, {**name._asdict(), "old": old, "new": new})
