"""Iceberg's types as Hive's columns, as HiveCatalog writes them."""

import re
from typing import Any

from lake.protocol.hive import FieldSchema
from metastore.iceberg.errors import bad_request

_MOST_NESTED = 100

_TYPES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "string",
    "string": "string",
    "uuid": "string",
    "binary": "binary",
    "timestamp": "timestamp",
    "timestamptz": "timestamp with local time zone",
    "timestamp_ns": "timestamp",
    "timestamptz_ns": "timestamp with local time zone",
    "unknown": "void",
    "variant": "binary",  # Hive has no such type; its engines read Iceberg's own schema
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_AS_BINARY = re.compile(r"fixed\[\d+\]|(geometry|geography)(\(.*\))?")


def columns(schema: dict[str, Any]) -> list[FieldSchema]:
    """A schema's fields as Hive's columns. Raises RestError (400) for a type that isn't Iceberg's."""
    return [
        FieldSchema(name=str(each["name"]), type=_type(each["type"], 0), comment=each.get("doc") or "")
        for each in schema["fields"]
    ]


def _type(type: Any, depth: int) -> str:
    if depth > _MOST_NESTED:
        raise bad_request(f"a type is nested more than {_MOST_NESTED} times")
    if isinstance(type, dict):
        match type.get("type"):
            case "struct":
                fields = (f"{each['name']}:{_type(each['type'], depth + 1)}" for each in type["fields"])
                return f"struct<{','.join(fields)}>"
            case "list":
                return f"array<{_type(type['element'], depth + 1)}>"
            case "map":
                return f"map<{_type(type['key'], depth + 1)},{_type(type['value'], depth + 1)}>"
    if isinstance(type, str):
        if type in _TYPES:
            return _TYPES[type]
        if (found := _DECIMAL.fullmatch(type)) is not None:
            return f"decimal({found[1]},{found[2]})"
        if _AS_BINARY.fullmatch(type):
            return "binary"
    raise bad_request(f"unknown type {str(type)[:100]!r}")
