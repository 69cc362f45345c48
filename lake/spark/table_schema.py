"""A lake table's columns in Spark's types, and what it is stored as."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column as Expression
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, MapType, StructField, StructType

from lake.client.lake_types import Column, Schema
from lake.protocol.errors import UserError
from lake.protocol.formats.column_ids import COLUMN_IDS
from lake.protocol.formats.spark_names import quoted
from lake.protocol.formats.spark_schema import PROVIDER, SCHEMA, beside_columns, joined

_FIELD_ID = "parquet.field.id"
"""What of a column's metadata Spark's Parquet writer takes for its field id."""

_COMMENT = "comment"
"""What of a column's metadata changes no value; by the rest Spark pads CHAR, or fills in defaults."""


class NotParquet(UserError):
    """The table's files are of another format than what is read and written here."""


@dataclass(frozen=True)
class LakeColumns:
    """A table's columns and its partition keys; all may be null."""

    data: StructType
    keys: StructType

    @property
    def key_names(self) -> list[str]:
        return [key.name.lower() for key in self.keys]


def is_hudi(schema: Schema) -> bool:
    """Whether Hudi must read and write the table's files."""
    kinds = (schema.properties.get(PROVIDER, ""), schema.properties.get("table_type", ""))
    return any(kind.lower() == "hudi" for kind in kinds) or "hudi" in schema.input_format.lower()


def columns_of(spark: SparkSession, schema: Schema, *, to_write: bool = False) -> LakeColumns:
    """The columns of a Parquet table. Raises NotParquet for another.

    Rows of keyed tables are what is stored, however they are read: CHAR isn't padded, and defaults aren't filled in.
    `to_write`: with the marks of CHAR and VARCHAR, by which Spark checks and pads what is written.

    A table that Spark made keeps Spark's own schema among its properties: in the case its creator wrote, and with types
    that Hive doesn't know.
    """
    check_parquet(schema.properties, schema.input_format)
    own = spark_schema(schema.properties)
    fields = own.fields if own is not None else _parsed(spark, [*schema.columns, *schema.keys]).fields
    keys = [key.name.lower() for key in schema.keys]
    as_stored = schema.keyed_table() is not None and not to_write
    by_name = {each.name.lower(): _nullable(each, as_stored) for each in fields}
    data = [each for name, each in by_name.items() if name not in keys]
    return LakeColumns(StructType(data), StructType([by_name[key] for key in keys]))


def check_parquet(properties: Mapping[str, str], input_format: str) -> None:
    """Raises NotParquet for a table of other files."""
    kind = properties.get(PROVIDER) or input_format
    if "parquet" not in kind.lower():
        raise NotParquet(f"it is stored as {kind or 'nothing known'}, not as Parquet")


def spark_schema(properties: Mapping[str, str]) -> StructType | None:
    """What Spark keeps of its own table's columns; None for a table that it didn't make."""
    text = joined(properties)
    return None if text is None else StructType.fromJson(json.loads(text))


def widened(schema: Schema, fields: list[StructField]) -> tuple[list[Column], dict[str, str] | None]:
    """A table's columns with further ones at the end, and the properties in which Spark keeps the same, if it does."""
    columns = [*schema.columns, *(Column(each.name.lower(), each.dataType.simpleString()) for each in fields)]
    own = spark_schema(schema.properties)
    if own is None:
        return columns, None
    keys = {key.name.lower() for key in schema.keys}
    data = [each for each in own if each.name.lower() not in keys]
    of_partitions = [each for each in own if each.name.lower() in keys]
    return columns, {**beside_columns(schema.properties), SCHEMA: StructType([*data, *fields, *of_partitions]).json()}


def rewritten(schema: Schema, fields: Sequence[StructField]) -> Schema:
    """A table's schema once a completion that replaces all its files gives it other data columns."""
    columns = [Column(each.name.lower(), each.dataType.simpleString()) for each in fields]
    ids = schema.column_ids().changed([each.name for each in columns], {}, 0)
    properties = {**schema.properties, COLUMN_IDS: ids.to_text()}
    own = spark_schema(schema.properties)
    if own is not None:
        keys = {key.name.lower() for key in schema.keys}
        of_partitions = [each for each in own if each.name.lower() in keys]
        whole = StructType([*fields, *of_partitions]).json()
        others = {key: value for key, value in properties.items() if not key.startswith(SCHEMA)}
        properties = {**others, **beside_columns(schema.properties), SCHEMA: whole}
    return schema._replace(columns=columns, properties=properties)


def stored_columns(schema: Schema, data: StructType) -> list[Expression]:
    """The data columns of rows, which Spark's Parquet writer gives their ids. New ones of the table come last.

    None has an id if one is nested, whose parts have none: see `files.write_rows`.
    """
    if any(isinstance(each.dataType, ArrayType | MapType | StructType) for each in data):
        return [sf.col(quoted(each.name)).alias(each.name) for each in data]
    known = schema.column_ids()
    ids = known.changed([*dict.fromkeys([*known.now(), *(each.name.lower() for each in data)])], {}, 0).now()
    return [sf.col(quoted(each.name)).alias(each.name, metadata={_FIELD_ID: ids[each.name.lower()]}) for each in data]


def _parsed(spark: SparkSession, columns: list[Column]) -> StructType:
    """Columns of Hive's as Spark understands their types: CHAR and VARCHAR are strings, with Spark's mark of them."""
    jvm: Any = spark._jvm
    types = jvm.org.apache.spark.sql.types
    found = types.StructType()
    for each in columns:
        found = found.add(each.name, types.DataType.fromDDL(each.type), True)
    found = jvm.org.apache.spark.sql.catalyst.util.CharVarcharUtils.replaceCharVarcharWithStringInSchema(found)
    return StructType.fromJson(json.loads(found.json()))


def _nullable(field: StructField, as_stored: bool) -> StructField:
    """The column, which may be null; `as_stored`: without the marks by which Spark would read other values."""
    metadata = {key: value for key, value in field.metadata.items() if not as_stored or key == _COMMENT}
    return StructField(field.name, field.dataType, True, metadata)
