"""Prepares DataFrames for keyed tables: the table's columns in its types, and marks that say what rows do."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType, TimestampNTZType

from lake.client.lake_types import Schema
from lake.protocol.formats.keyed_table import DELETED, ChangelogProducer, KeyedTable
from lake.protocol.formats.spark_names import quoted
from lake.spark.store_assignment import assigned
from lake.spark.table_schema import columns_of
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed_tables import layout_of
from lake.tables.keyed_writes import KeyedOperation, check_columns, updated_columns
from lake.tables.lake import LakeTable


@dataclass(frozen=True)
class Prepared:
    """A batch that is ready to be written: the table's data columns, those that partition it, and the marks of a feed.

    `columns`: all data columns of the table. `updated`: those that the batch updates, which it then has alone beside
    those of the key; None where rows are whole.
    """

    rows: DataFrame
    schema: Schema
    table: KeyedTable
    columns: StructType
    updated: tuple[str, ...] | None = None


def prepare(rows: DataFrame, lake: LakeTable, schema: Schema, operation: KeyedOperation) -> Prepared:
    """The batch in the table's types. Raises UnfitRows for columns that don't fit, NotKeyed."""
    layout = layout_of(lake.name, schema, "")
    columns = columns_of(rows.sparkSession, schema, to_write=True)
    given = [name.lower() for name in rows.columns]
    check_columns(given, layout.table, layout.schema.names, operation)
    table = layout.table
    updated = updated_columns(layout, given) if operation == "update_columns" else None
    rows = rows.toDF(*given)  # whatever their case: the session may tell names apart by it
    data = [_lower(each) for each in columns.data]
    _check_key(table, data)
    written = [each for each in data if updated is None or each.name in (*table.key, *updated)]
    keys = [_lower(each) for each in columns.keys]
    says_place = not (table.is_table_wide and operation == "delete")  # else the row is wherever its key is
    further = [rows.schema[CHANGE_TYPE]] if operation == "merge" else []
    taken = [each for each in (*written, *(keys if says_place else ()), *further) if each.name in given]
    rows = assigned(
        rows.select(*(quoted(each.name) for each in taken)),
        lake.name,
        StructType([*written, *keys, *further]),
        # By way of the key's own type: `07` of a number is 7.
        parsed=[each.name for each in keys],
    )
    selected = [sf.col(quoted(each.name)) for each in (*written, *keys)]
    takes_images = operation == "merge" and table.changelog_producer is ChangelogProducer.INPUT
    if operation == "merge":
        if not takes_images:
            rows = rows.where(~sf.col(CHANGE_TYPE).eqNullSafe(str(ChangeType.UPDATE_PREIMAGE)))
        # A kind that isn't known, or missing, becomes null, which the writer of the bucket refuses.
        others = [str(each) for each in ChangeType if each is not ChangeType.DELETE]
        kinds = sf.when(sf.col(CHANGE_TYPE) == str(ChangeType.DELETE), True).when(
            sf.col(CHANGE_TYPE).isin(others), False
        )
        selected.append(kinds.alias(DELETED))
    else:
        selected.append(sf.lit(operation == "delete").alias(DELETED))
    if takes_images:
        selected.append(sf.col(CHANGE_TYPE).cast("string").alias(CHANGE_TYPE))
    whole = StructType([StructField(each.name, each.dataType) for each in data])
    return Prepared(rows.select(*selected), schema, table, whole, updated)


def _lower(field: StructField) -> StructField:
    return StructField(field.name.lower(), field.dataType, field.nullable, field.metadata)


def _check_key(table: KeyedTable, columns: list[StructField]) -> None:
    """Raises UnfitRows for a key that can't be hashed."""
    for each in columns:
        if each.name in table.key and isinstance(each.dataType, TimestampNTZType):
            raise UnfitRows(f"the key column {each.name} is a timestamp without a zone, which can't be hashed")
