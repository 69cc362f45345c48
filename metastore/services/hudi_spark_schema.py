"""The properties in which Spark keeps a table's columns, for Hudi's tables: from their Avro schemas.

Hudi's writer in Spark checks new rows against the columns that the catalog has in these properties. The types are those
of Hudi's own conversion between Avro and Spark.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from metastore.services.hudi_schema import MAX_DEPTH, MAX_TYPES, META_COLUMNS
from metastore.services.lake_columns import SPARK_SCHEMA

MAX_PROPERTY = 4_000
"""Characters of a property's value, as Spark writes them (spark.sql.sources.schemaStringLengthThreshold)."""

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
    """The properties for an Avro schema (JSON), the partition keys last, and Hudi's own columns first unless without.

    Raises ValueError for what is no schema of a record.
    """
    try:
        found = _Types().fields(json.loads(schema))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no schema of a record: {type(error).__name__} {error}") from None
    named = {field["name"].lower(): field for field in found}
    own = [_field(name, "string", nullable=True) for name in META_COLUMNS if meta_columns and name not in named]
    partitioning = [named.get(key) or _field(key, "string", nullable=True) for key in keys]
    columns = [field for name, field in named.items() if name not in keys]
    text = json.dumps({"type": "struct", "fields": [*own, *columns, *partitioning]}, separators=(",", ":"))
    parts = [text[start : start + MAX_PROPERTY] for start in range(0, len(text), MAX_PROPERTY)]
    properties = {f"{SPARK_SCHEMA}.numParts": str(len(parts))}
    properties |= {f"{SPARK_SCHEMA}.part.{number}": part for number, part in enumerate(parts)}
    if partitioning:
        properties[f"{SPARK_SCHEMA}.numPartCols"] = str(len(partitioning))
        properties |= {f"{SPARK_SCHEMA}.partCol.{number}": key["name"] for number, key in enumerate(partitioning)}
    return properties


class _Types:
    """Spark's types, as its JSON has them."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._count = 0

    def fields(self, record: Mapping[str, Any], depth: int = 0) -> list[dict[str, Any]]:
        if record["type"] != "record":
            raise ValueError(f"a table's schema is a record, not {str(record['type'])[:50]!r}")
        return [
            _field(str(field["name"]), self._type(field["type"], depth + 1), nullable=_nullable(field["type"]))
            for field in record["fields"]
        ]

    def _type(self, schema: Any, depth: int) -> Any:
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_TYPES:
            raise ValueError("a schema that is nested too deeply, or too large")
        if isinstance(schema, list):
            return self._union([each for each in schema if each != "null"], depth)
        if isinstance(schema, str):
            found = _PRIMITIVES.get(schema) or self._named.get(schema.rpartition(".")[2])
            if found is None:
                raise ValueError(f"a schema with a type {schema[:50]!r} that contains itself, or is not there")
            return found
        found = self._complex(schema, depth)
        if "name" in schema:
            self._named[str(schema["name"])] = found
        return found

    def _union(self, members: list[Any], depth: int) -> Any:
        if len(members) == 1:
            return self._type(members[0], depth + 1)
        if all(isinstance(each, str) for each in members) and (wider := _WIDER.get(frozenset(members))):
            return wider
        types = [self._type(each, depth + 1) for each in members]
        return _struct([_field(f"member{number}", each, nullable=True) for number, each in enumerate(types)])

    def _complex(self, schema: Mapping[str, Any], depth: int) -> Any:
        kind, logical = schema["type"], schema.get("logicalType")
        if logical == "decimal":
            return f"decimal({int(schema['precision'])},{int(schema.get('scale', 0))})"
        if logical in _LOGICAL:
            return _LOGICAL[logical]
        match kind:
            case "record":
                return _struct(self.fields(schema, depth))
            case "array":
                items = schema["items"]
                element = self._type(items, depth + 1)
                return {"type": "array", "elementType": element, "containsNull": _nullable(items)}
            case "map":
                values = schema["values"]
                value = self._type(values, depth + 1)
                return {
                    **{"type": "map", "keyType": "string"},
                    **{"valueType": value, "valueContainsNull": _nullable(values)},
                }
            case str() if kind in _PRIMITIVES:
                return _PRIMITIVES[kind]
            case _:
                return self._type(kind, depth + 1)


def _nullable(schema: Any) -> bool:
    return isinstance(schema, list) and "null" in schema


def _struct(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "struct", "fields": fields}


def _field(name: str, kind: Any, *, nullable: bool) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": {}}
