"""Converts Avro schemas of Hudi's tables to Hive's columns, with the types of Hudi's own sync to Hive."""

from collections.abc import Mapping, Sequence
from typing import Any

from metastore.services.hudi.avro_types import AvroTypes, Field, decimal

MAX_CHARACTERS = 4 << 20
"""Of all types' names together: a named type that is used again is written out again."""

META_COLUMNS = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
"""The columns that Hudi adds to each row by default; all are strings."""

_PRIMITIVES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "enum": "string",
    "fixed": "binary",
}
_TIMESTAMPS = frozenset({"timestamp-millis", "timestamp-micros"})


def hive_columns(schema: str, *, timestamps: bool = False) -> list[tuple[str, str]]:
    """The names and types of the columns of a record schema, given as Avro's JSON.

    A timestamp is a `bigint` as in Hudi's sync, or with `timestamps` (its `support_timestamp`) a `timestamp`. Raises
    ValueError for what is no schema of a record, or one that contains itself.
    """
    return [(field.name, field.type) for field in _HiveTypes(timestamps).columns(schema)]


class _HiveTypes(AvroTypes[str]):
    def __init__(self, timestamps: bool) -> None:
        super().__init__()
        self._timestamps = timestamps
        self._characters = 0

    def made(self, found: str) -> str:
        self._characters += len(found)
        if self._characters > MAX_CHARACTERS:
            raise ValueError("a schema that is too large")
        return found

    def primitive(self, name: str) -> str | None:
        return _PRIMITIVES.get(name)

    def logical(self, name: str, schema: Mapping[str, Any]) -> str | None:
        if name == "decimal":
            return decimal(schema)
        if name == "date" and schema["type"] == "int":
            return "date"
        return "timestamp" if name in _TIMESTAMPS and self._timestamps else None

    def record(self, fields: Sequence[Field[str]]) -> str:
        return "struct<" + ",".join(f"{field.name}:{field.type}" for field in fields) + ">"

    def array(self, items: str, *, nullable: bool) -> str:
        return f"array<{items}>"

    def map(self, values: str, *, nullable: bool) -> str:
        return f"map<string,{values}>"
