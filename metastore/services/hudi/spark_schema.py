"""Builds the properties in which Spark stores the columns of Hudi's tables, from their Avro schemas.

Hudi's writer in Spark checks new rows against the columns that the catalog has in these properties. The types are those
of Hudi's own conversion between Avro and Spark.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lake.protocol.formats.spark_schema import SCHEMA, split
from metastore.services.hudi.avro_schema import META_COLUMNS
from metastore.services.hudi.avro_types import AvroTypes, Field, decimal

_PRIMITIVES = {
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "bytes": "binary",
    "enum": "string",
    "fixed": "binary",
}
_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}
# Unions of these are the wider one.
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def spark_properties(schema: str, keys: Sequence[str], *, meta_columns: bool) -> dict[str, str]:
    """The properties for an Avro schema, which is given as JSON. The partition keys come last.

    `meta_columns`: whether Hudi's own columns come first. Raises ValueError if the schema isn't that of a record.
    """
    found = _SparkTypes().columns(schema)
    named = {each.name.lower(): _field(each.name, each.type, nullable=each.nullable) for each in found}
    own = [_field(name, "string", nullable=True) for name in META_COLUMNS if meta_columns and name not in named]
    partitioning = [named.get(key) or _field(key, "string", nullable=True) for key in keys]
    columns = [field for name, field in named.items() if name not in keys]
    text = json.dumps({"type": "struct", "fields": [*own, *columns, *partitioning]}, separators=(",", ":"))
    properties = split(text)
    if partitioning:
        properties[f"{SCHEMA}.numPartCols"] = str(len(partitioning))
        properties |= {f"{SCHEMA}.partCol.{number}": key["name"] for number, key in enumerate(partitioning)}
    return properties


class _SparkTypes(AvroTypes[Any]):
    """Spark's types, as its JSON has them."""

    def primitive(self, name: str) -> str | None:
        return _PRIMITIVES.get(name)

    def logical(self, name: str, schema: Mapping[str, Any]) -> str | None:
        if name == "decimal":
            return decimal(schema)
        return _LOGICAL.get(name)

    def union(self, names: frozenset[str]) -> str | None:
        return _WIDER.get(names)

    def record(self, fields: Sequence[Field[Any]]) -> dict[str, Any]:
        return _struct([_field(field.name, field.type, nullable=field.nullable) for field in fields])

    def array(self, items: Any, *, nullable: bool) -> dict[str, Any]:
        return {"type": "array", "elementType": items, "containsNull": nullable}

    def map(self, values: Any, *, nullable: bool) -> dict[str, Any]:
        return {"type": "map", "keyType": "string", "valueType": values, "valueContainsNull": nullable}


def _struct(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": fields}


def _field(name: str, kind: Any, *, nullable: bool) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": {}}
