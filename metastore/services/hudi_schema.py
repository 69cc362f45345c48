"""Avro schemas of Hudi's tables as columns of Hive's: the types that Hudi's own sync to Hive gives them."""

import json
from collections.abc import Mapping
from typing import Any

MAX_TYPES = 20_000
"""Types in a schema."""

MAX_CHARACTERS = 4 << 20
"""Of all types' names together: a named type that is used again is written out again."""

MAX_DEPTH = 50

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""What Hudi writes with each row, unless told not to; all of them strings."""

_PRIMITIVES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_TIMESTAMPS = frozenset({"timestamp-millis", "timestamp-micros"})


def hive_columns(schema: str, *, timestamps: bool = False) -> list[tuple[str, str]]:
    """The names and types of the columns of a record schema, given as Avro's JSON.

    A timestamp is a `bigint` as in Hudi's sync, or with `timestamps` (its `support_timestamp`) a `timestamp`. Raises
    ValueError for what is no schema of a record, or one that contains itself.
    """
    try:
        parsed = json.loads(schema)
        return _Types(timestamps).fields(parsed)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"no schema of a record: {type(error).__name__} {error}") from None


class _Types:
    def __init__(self, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._named: dict[str, str] = {}
        self._count = 0
        self._characters = 0

    def fields(self, record: Mapping[str, Any], depth: int = 0) -> list[tuple[str, str]]:
        if record["type"] != "record":
            raise ValueError(f"a table's schema is a record, not {str(record['type'])[:50]!r}")
        return [(str(field["name"]), self._type(field["type"], depth + 1)) for field in record["fields"]]

    def _type(self, schema: Any, depth: int) -> str:
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_TYPES:
            raise ValueError("a schema that is nested too deeply, or too large")
        found = self._name(schema, depth)
        self._characters += len(found)
        if self._characters > MAX_CHARACTERS:
            raise ValueError("a schema that is too large")
        return found

    def _name(self, schema: Any, depth: int) -> str:
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

    def _union(self, members: list[Any], depth: int) -> str:
        """A column that may be null is of its other type; one of several types becomes a struct of them."""
        if len(members) == 1:
            return self._type(members[0], depth + 1)
        types = [self._type(each, depth + 1) for each in members]
        return "struct<" + ",".join(f"member{number}:{each}" for number, each in enumerate(types)) + ">"

    def _complex(self, schema: Mapping[str, Any], depth: int) -> str:
        kind, logical = schema["type"], schema.get("logicalType")
        if logical == "decimal":
            return f"decimal({int(schema['precision'])},{int(schema.get('scale', 0))})"
        if logical == "date" and kind == "int":
            return "date"
        if logical in _TIMESTAMPS and self._timestamps:
            return "timestamp"
        match kind:
            case "record":
                return "struct<" + ",".join(f"{name}:{each}" for name, each in self.fields(schema, depth)) + ">"
            case "array":
                return f"array<{self._type(schema['items'], depth + 1)}>"
            case "map":
                return f"map<string,{self._type(schema['values'], depth + 1)}>"
            case "enum":
                return "string"
            case "fixed":
                return "binary"
            case _:
                return self._type(kind, depth + 1)
