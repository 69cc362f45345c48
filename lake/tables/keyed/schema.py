"""The columns of a table in Arrow's types, read from Spark's own schema or from Hive's types."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lake.protocol.errors import UserError
from lake.protocol.formats import spark_schema
from lake.protocol.formats.hive_types import parts_of
from lake.tables.keyed.wide_types import wide

_ZONED = pa.timestamp("us", tz="UTC")

_HIVE = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": _ZONED,  # as Spark reads it
    "timestamp_ntz": pa.timestamp("us"),
}

_SPARK = {**_HIVE, "byte": pa.int8(), "short": pa.int16(), "long": pa.int64()}

_LENGTHS = "__CHAR_VARCHAR_TYPE_STRING"
"""What of a column's metadata is its type with CHAR and VARCHAR, which Spark's schema has as strings."""

_DECIMAL = re.compile(r"decimal(?:\((\d+)(?:,(\d+))?\))?")
_TEXT = re.compile(r"(?:var)?char\(\d+\)")


class UnknownType(UserError):
    """A column has a type that files of keyed tables don't have."""


def arrow_schema(columns: Sequence[tuple[str, str]], properties: Mapping[str, str], keys: Sequence[str]) -> pa.Schema:
    """The data columns of a table in Arrow's types, with names in lower case, and with offsets of 64 bits.

    `columns`: names and Hive's types. `properties`: the table's; the schema that Spark keeps there says more than
    Hive's types do. `keys`: the columns that partition the table, which are left out. Raises UnknownType.
    """
    own = spark_schema.joined(properties)
    partitioned = {name.lower() for name in keys}
    if own is not None:
        fields = [(each["name"].lower(), _of_spark(each["type"])) for each in json.loads(own)["fields"]]
    else:
        fields = [(name.lower(), of_hive(kind)) for name, kind in columns]
    return pa.schema([pa.field(name, wide(kind)) for name, kind in fields if name not in partitioned])


def lengths_of(columns: Sequence[tuple[str, str]], properties: Mapping[str, str]) -> dict[str, str]:
    """Hive's types of the columns that have CHAR or VARCHAR in them, by the columns' names in lower case.

    The arguments are those of `arrow_schema`.
    """
    own = spark_schema.joined(properties)
    if own is not None:
        columns = [(each["name"], each.get("metadata", {}).get(_LENGTHS, "")) for each in json.loads(own)["fields"]]
    return {name.lower(): kind for name, kind in columns if "char(" in kind.lower().replace(" ", "")}


def of_hive(text: str) -> pa.DataType:
    """Hive's type, such as `array<struct<a:int>>`, in Arrow's. Raises UnknownType."""
    kind = text.strip()
    lower = kind.lower().replace(" ", "")
    if (simple := _simple(lower, _HIVE)) is not None:
        return simple
    if kind.endswith(">"):
        outer, parts = parts_of(kind)
        match outer, len(parts):
            case "array", 1:
                return pa.list_(of_hive(parts[0]))
            case "map", 2:
                return pa.map_(of_hive(parts[0]), of_hive(parts[1]))
            case "struct", _:
                named = [part.partition(":") for part in parts]
                return pa.struct([pa.field(name.strip(), of_hive(of)) for name, _, of in named])
    raise UnknownType(f"columns of the type {text} can't be read or written here")


def _of_spark(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        if (simple := _simple(kind.lower().replace(" ", ""), _SPARK)) is not None:
            return simple
    elif kind.get("type") == "array":
        return pa.list_(_of_spark(kind["elementType"]))
    elif kind.get("type") == "map":
        return pa.map_(_of_spark(kind["keyType"]), _of_spark(kind["valueType"]))
    elif kind.get("type") == "struct":
        return pa.struct([pa.field(each["name"], _of_spark(each["type"])) for each in kind["fields"]])
    raise UnknownType(f"columns of Spark's type {kind} can't be read or written here")


def _simple(kind: str, types: Mapping[str, pa.DataType]) -> pa.DataType | None:
    if kind in types:
        return types[kind]
    if _TEXT.fullmatch(kind):
        return pa.string()
    if found := _DECIMAL.fullmatch(kind):
        return pa.decimal128(int(found[1] or 10), int(found[2] or 0))
    return None
