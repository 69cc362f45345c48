"""Updates the transactions' records of a table or partition that is dropped or renamed (Hive's cleanupRecords)."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

from metastore.postgres.prepared import Prepared, put_off
from metastore.store.engine.names import DatabaseName, TableName
from metastore.store.schema.transactions import (
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
_OF_TABLE = "catalog = :catalog AND database_name = :database AND table_name = :table"

_FORGET_TABLES = [
    Prepared(
        text(f"DELETE FROM {each} WHERE catalog = :catalog AND database_name = :database AND table_name = ANY(:tables)")
    )
    for each in _OF_TABLES
]
_FORGET_PARTITIONS = [
    Prepared(text(f"DELETE FROM {each} WHERE {_OF_TABLE} AND partition_name = ANY(:partitions)"))
    for each in _OF_PARTITIONS
]
_RENAME_TABLE = [
    Prepared(
        text(
            f"UPDATE {each} SET catalog = :new_catalog, database_name = :new_database, table_name = :new_table"
            f" WHERE {_OF_TABLE}"
        )
    )
    for each in (*_OF_TABLES, write_sets.name)
]
_RENAME_PARTITION = [
    Prepared(text(f"UPDATE {each} SET partition_name = :new WHERE {_OF_TABLE} AND partition_name = :old"))
    for each in (*_OF_PARTITIONS, write_sets.name)
]


def forget_tables(tx: Connection, database: DatabaseName, names: Sequence[str]) -> None:
    """Tables are gone: others of their names begin anew."""
    put_off(tx, _FORGET_TABLES, {**database._asdict(), "tables": list(names)})


def forget_partitions(tx: Connection, name: TableName, partitions: Sequence[str]) -> None:
    """Partitions are gone."""
    put_off(tx, _FORGET_PARTITIONS, {**name._asdict(), "partitions": list(partitions)})


def rename_table(tx: Connection, old: TableName, new: TableName) -> None:
    """A table has another name; its write ids go on. What was noted under that name was of no table."""
    forget_tables(tx, new.of_database, [new.table])
    values = {f"new_{field}": value for field, value in new._asdict().items()}
    put_off(tx, _RENAME_TABLE, {**old._asdict(), **values})


def rename_partition(tx: Connection, name: TableName, old: str, new: str) -> None:
    """A partition has another name. What was noted under that name was of no partition."""
    forget_partitions(tx, name, [new])
    put_off(tx, _RENAME_PARTITION, {**name._asdict(), "old": old, "new": new})
