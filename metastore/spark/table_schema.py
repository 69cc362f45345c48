"""A lake table's columns in Spark's types, and what it is stored as."""

import json
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from metastore.client.lake_types import Column, Schema
from metastore.errors import UserError

SCHEMA = "spark.sql.sources.schema"
"""The property in which Spark keeps the columns of its own tables; those with columns of partitions begin so, too."""

_PROVIDER = "spark.sql.sources.provider"


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
    kinds = (schema.properties.get(_PROVIDER, ""), schema.properties.get("table_type", ""))
    return any(kind.lower() == "hudi" for kind in kinds) or "hudi" in schema.input_format.lower()


def columns_of(spark: SparkSession, schema: Schema) -> LakeColumns:
    """The columns of a Parquet table. Raises NotParquet for another.

    A table that Spark made keeps Spark's own schema among its properties: in the case its creator wrote, and with types
    that Hive doesn't know.
    """
    kind = schema.properties.get(_PROVIDER) or schema.input_format
    if "parquet" not in kind.lower():
        raise NotParquet(f"the table is stored as {kind or 'nothing known'}: plain lake tables are Parquet")
    own = spark_schema(schema)
    fields = own.fields if own is not None else _parsed(spark, [*schema.columns, *schema.keys]).fields
    keys = [key.name.lower() for key in schema.keys]
    by_name = {each.name.lower(): _nullable(each) for each in fields}
    data = [_nullable(each) for each in fields if each.name.lower() not in keys]
    return LakeColumns(StructType(data), StructType([by_name[key] for key in keys]))


def spark_schema(schema: Schema) -> StructType | None:
    """What Spark keeps of its own table's columns; None for a table that it didn't make."""
    properties = schema.properties
    if parts := properties.get(f"{SCHEMA}.numParts"):
        text = "".join(properties[f"{SCHEMA}.part.{part}"] for part in range(int(parts)))
    else:
        text = properties.get(SCHEMA, "")
    return StructType.fromJson(json.loads(text)) if text else None


def widened(schema: Schema, fields: list[StructField]) -> tuple[list[Column], dict[str, str] | None]:
    """A table's columns with further ones at the end, and the properties in which Spark keeps the same, if it does."""
    columns = [*schema.columns, *(Column(each.name.lower(), each.dataType.simpleString()) for each in fields)]
    own = spark_schema(schema)
    if own is None:
        return columns, None
    keys = {key.name.lower() for key in schema.keys}
    data = [each for each in own if each.name.lower() not in keys]
    of_partitions = [each for each in own if each.name.lower() in keys]
    kept = {
        key: value
        for key, value in schema.properties.items()
        if key.startswith(SCHEMA) and key != SCHEMA and not key.startswith((f"{SCHEMA}.part.", f"{SCHEMA}.numParts"))
    }
    return columns, {**kept, SCHEMA: StructType([*data, *fields, *of_partitions]).json()}


def _parsed(spark: SparkSession, columns: list[Column]) -> StructType:
    """Columns of Hive's as Spark understands their types."""
    jvm: Any = spark._jvm
    parser = jvm.org.apache.spark.sql.catalyst.parser.CatalystSqlParser
    types = [json.loads(parser.parseDataType(each.type).json()) for each in columns]
    fields = [
        {"name": each.name, "type": kind, "nullable": True, "metadata": {}}
        for each, kind in zip(columns, types, strict=True)
    ]
    return StructType.fromJson({"type": "struct", "fields": fields})


def _nullable(field: StructField) -> StructField:
    return StructField(field.name, field.dataType, True, field.metadata)
