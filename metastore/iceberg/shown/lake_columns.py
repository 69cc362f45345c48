"""A lake table's columns as Iceberg's: its schema, how identity partitions are written, and names of older files.

A column's id is its field id. Columns that partition the table, and what nested types are made of, have none in the
metastore. They get ids here that never change: partition columns by their place, parts of nested types by their path.
"""

import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from lake.protocol.formats import spark_schema
from lake.protocol.formats.column_ids import ColumnIds, ColumnName
from lake.protocol.formats.hive_types import parts_of
from lake.protocol.formats.keyed_table import INSTANT, INSTANT_ID
from lake.protocol.formats.partition_names import DEFAULT_PARTITION, values_of
from lake.protocol.hive import InvalidObjectException, MetaException, Table
from metastore.iceberg.errors import RestError, bad_request
from metastore.iceberg.shown.bounds import Metrics, metrics
from metastore.iceberg.shown.footers import ORC, Footer

Json = dict[str, Any]

_FIRST_PARTITION_COLUMN = 900_000
_OF_NAMES = 800_000
_FIRST_NESTED, _NESTED = 1_000_000, 1_000_000_000
_FIRST_PARTITION_FIELD = 1_000
_MOST_NESTED = 100

_SIMPLE = {
    "boolean": "boolean",
    "tinyint": "int",
    "byte": "int",
    "smallint": "int",
    "short": "int",
    "int": "int",
    "integer": "int",
    "bigint": "long",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp": "timestamptz",  # an instant, as Spark reads it
    "timestamp_ntz": "timestamp",
}

_BITS = {
    **dict.fromkeys(("tinyint", "byte"), 8),
    **dict.fromkeys(("smallint", "short"), 16),
    **dict.fromkeys(("int", "integer"), 32),
    **dict.fromkeys(("bigint", "long"), 64),
}

_OF_PARTITIONS = ("boolean", "int", "long", "string", "date")
"""Types whose values have one text in the names of partitions, whoever wrote them."""

_NUMBER = re.compile(r"-?[0-9]{1,40}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

PartitionValue = bool | int | str | None
"""A date is the number of days since 1970."""


@dataclass(frozen=True)
class LakeColumns:
    """`schema`, `spec`: as in the metadata of a table. `mapping`: the property `schema.name-mapping.default`.

    `keys`: names and Iceberg's types of the columns that partition the table. `ambiguous`: names that several columns
    have or had, so that a file without field ids doesn't say which of them it has. `names`: of the data columns, as
    `mapping` has them. `types`: of the data columns that have no parts, by id. `ids`: of the columns by all of these
    names. `parts`: the names of what is in nested columns, by the column's id. `key_bits`: how
    wide whole numbers of `keys` are, 0 for other types.
    """

    schema: Json
    spec: Json
    mapping: str
    keys: tuple[tuple[str, str], ...]
    ambiguous: frozenset[str]
    last_column_id: int  # the highest of a file's columns: ClickHouse refuses files with a higher one
    names: frozenset[str]
    types: Mapping[int, str]
    ids: Mapping[str, int]
    parts: Mapping[int, frozenset[str]]
    key_bits: tuple[int, ...]

    def check_names(self, path: str, footer: Footer) -> None:
        """Raises RestError (400) for a file without field ids whose columns readers would not find, or mistake."""
        known = [each.lower() for each in footer.columns if each in self.names]
        if len(set(known)) < len(known):
            raise bad_request(f"{path} has the same column twice, in upper and lower case: write the file's rows again")
        if reason := self.mistaken(names_of(footer)):
            raise bad_request(f"{path} {reason}: write the file's rows again")

    def mistaken(self, names: Iterable[Sequence[str]]) -> str | None:
        """Why readers would not find, or mistake, a column of a file without field ids; None if they wouldn't.

        `names`: as `names_of` has them.
        """
        now = {each["id"] for each in self.schema["fields"]}
        for column, *inner in names:
            if not inner and column.lower() in self.ambiguous:
                return f"has no field ids, and several columns had the name {column}"
            known: Collection[str] = self.names
            if inner:
                known = self.parts.get(self.ids.get(column, 0), ())
            elif self.ids.get(column.lower()) not in now:  # nobody reads a column that was dropped
                continue
            name = (inner or [column])[0]
            if name not in known and name.lower() in {each.lower() for each in known}:
                what = f"the part {name} of the column {column}" if inner else f"the column {name}"
                return f"has {what}, which Iceberg's readers would not find by the table's name for it"
        return None

    def metrics(self, footer: Footer) -> Metrics:
        """Counts and bounds of the columns of a file, which has field ids or whose names were checked."""
        if footer.has_ids:
            return metrics(footer, self.types, lambda each: each.id)
        return metrics(footer, self.types, lambda each: self.ids.get(each.name))

    def partition_values(self, name: str) -> tuple[PartitionValue, ...]:
        """The values of a partition, by its name. Raises RestError for a value that isn't of its column's type."""
        if not self.keys:
            return ()
        try:
            texts = values_of(name, [key for key, _ in self.keys])
        except (InvalidObjectException, MetaException):
            raise bad_request(f"the partition {name[:200]!r} hasn't the table's partition columns") from None
        kinds = zip(texts, self.keys, self.key_bits, strict=True)
        return tuple(_value(text, kind, bits, name) for text, (_, kind), bits in kinds)


def names_of(footer: Footer) -> Iterator[tuple[str, ...]]:
    """The names of a file's columns, and those of their parts behind them."""
    yield from ((each,) for each in footer.columns)
    yield from footer.parts


def lake_columns(table: Table) -> LakeColumns:
    """The columns of a lake table. Raises RestError (400) for types that Iceberg can't show."""
    properties, columns = table.parameters or {}, _hive_columns(table)
    try:
        ids = ColumnIds.of(properties, [name for name, _ in columns])
    except ValueError as error:
        raise bad_request(str(error)) from None
    return _columns(table, ids, _data_columns(properties, columns, _keys(table)), ids.version)


def hive_columns(table: Table, format: str) -> LakeColumns:
    """The columns of a table that has no timeline: files have them by the names that they have now. As `lake_columns`.

    A column's id is made of its name.
    """
    columns = _hive_columns(table)
    data = _data_columns(table.parameters or {}, columns, _keys(table))
    if {name.lower() for name, _ in data} != {name.lower() for name, _ in columns}:  # changed by Hive, past Spark
        data = columns
    numbers: dict[str, int] = {}
    for name in sorted(each.lower() for each, _ in data):
        number = zlib.crc32(name.encode()) % _OF_NAMES
        while number + 1 in numbers.values():
            number = (number + 1) % _OF_NAMES
        numbers[name] = number + 1
    ids = ColumnIds(tuple(ColumnName(number, name, 0, None) for name, number in numbers.items()))
    version = zlib.crc32(json.dumps([data, table.sd and table.sd.inputFormat]).encode()) & 0x7FFFFFFF
    found = _columns(table, ids, data, version)
    if format == ORC:  # whose timestamps are no instants
        plain = json.loads(json.dumps(found.schema).replace('"timestamptz"', '"timestamp"'))
        return replace(found, schema=plain, types={})
    return found


def _hive_columns(table: Table) -> list[tuple[str, str]]:
    return [(each.name or "", each.type or "") for each in (table.sd.cols if table.sd else None) or ()]


def _keys(table: Table) -> set[str]:
    return {(each.name or "").lower() for each in table.partitionKeys or ()}


def _columns(table: Table, ids: ColumnIds, data: Sequence[tuple[str, Any]], version: int) -> LakeColumns:
    """`data`: names and types of the data columns. `version`: the schema's id."""
    keys = [((each.name or "").lower(), each.type or "") for each in table.partitionKeys or ()]
    now, taken = ids.now(), set[int]()
    holder = {each.name: each.id for each in ids.names} | now
    comments = {(each.name or "").lower(): each.comment for each in (table.sd.cols if table.sd else None) or ()}
    names: dict[int, list[str]] = {each.id: [] for each in ids.names}
    for name, number in holder.items():
        names[number].append(name)
    fields, mapped = [], []
    for name, kind in data:
        lower = name.lower()
        if lower not in now:
            raise bad_request(f"the column {name} has no id: alter the table's columns once")
        number = now[lower]
        numbers = _Nested(number, taken)
        field = {"id": number, "name": lower, "required": False, "type": numbers.type_of(kind, lower, "", 0)}
        fields.append(field | ({"doc": comments[lower]} if comments.get(lower) else {}))
        mapped.append(_mapping(field, [*names.pop(number), name, *_upper(name, now)]))
    mapped += [{"field-id": number, "names": some} for number, some in names.items() if some]  # of dropped columns
    mapped.append({"field-id": INSTANT_ID, "names": [INSTANT]})
    held: dict[str, set[int]] = {}
    for each in ids.names:
        held.setdefault(each.name, set()).add(each.id)
    ambiguous = frozenset(name for name, some in held.items() if len(some) > 1)
    partitioned = []
    for place, (name, kind) in enumerate(keys):
        own = _simple(kind)
        if own not in _OF_PARTITIONS:
            raise bad_request(f"Iceberg's readers can't be shown partitions by {name}, which is a {kind}")
        partitioned.append((name, own))
        fields.append({"id": _FIRST_PARTITION_COLUMN + place, "name": name, "required": False, "type": own})
    spec = {
        "spec-id": 0,
        "fields": [
            {
                "source-id": _FIRST_PARTITION_COLUMN + place,
                "field-id": _FIRST_PARTITION_FIELD + place,
                "name": name,
                "transform": "identity",
            }
            for place, (name, _) in enumerate(partitioned)
        ],
    }
    schema = {"type": "struct", "schema-id": version, "fields": fields}
    text = json.dumps(mapped, separators=(",", ":"))
    by_name = {name: each["field-id"] for each in mapped for name in each["names"]}
    types = {each["id"]: each["type"] for each in fields if isinstance(each["type"], str)}
    known = frozenset(by_name)
    parts = {each["field-id"]: frozenset(_names_in(each)) for each in mapped if "fields" in each}
    bits = tuple(_BITS.get(kind.lower().strip(), 0) for _, kind in keys)
    return LakeColumns(
        schema, spec, text, tuple(partitioned), ambiguous, INSTANT_ID, known, types, by_name, parts, bits
    )


def _names_in(mapping: Json) -> Iterator[str]:
    """The names of all that is in a column, by its name mapping."""
    for each in mapping.get("fields", ()):
        yield from each["names"]
        yield from _names_in(each)


def _upper(name: str, names: Mapping[str, int]) -> list[str]:
    """A column's name in upper case, as some engines write it."""
    return [] if name.upper() in names else [name.upper()]


def _data_columns(
    properties: Mapping[str, str], columns: Sequence[tuple[str, str]], keys: set[str]
) -> list[tuple[str, Any]]:
    """Names and types of the data columns: Spark's own schema says more than Hive's types do, where there is one."""
    own = spark_schema.joined(properties)
    if own is None:
        return [each for each in columns if each[0].lower() not in keys]
    return [(each["name"], each["type"]) for each in json.loads(own)["fields"] if each["name"].lower() not in keys]


class _Nested:
    """Ids of the parts of one column's type, by their paths."""

    def __init__(self, column: int, taken: set[int]) -> None:
        self._column = column
        self._taken = taken

    def _id(self, path: str) -> int:
        number = zlib.crc32(f"{self._column}{path}".encode()) % _NESTED
        while number + _FIRST_NESTED in self._taken:
            number = (number + 1) % _NESTED
        self._taken.add(number + _FIRST_NESTED)
        return number + _FIRST_NESTED

    def type_of(self, kind: Any, column: str, path: str, depth: int) -> Any:
        """A type of Hive's or Spark's as Iceberg's."""
        if depth > _MOST_NESTED:
            raise bad_request(f"the type of {column} is nested more than {_MOST_NESTED} times")
        if isinstance(kind, str):
            if (simple := _simple(kind)) is not None:
                return simple
            if kind.strip().endswith(">"):
                outer, parts = parts_of(kind)
                match outer, len(parts):
                    case "array", 1:
                        kind = {"type": "array", "elementType": parts[0]}
                    case "map", 2:
                        kind = {"type": "map", "keyType": parts[0], "valueType": parts[1]}
                    case "struct", _:
                        named = [part.partition(":") for part in parts]
                        kind = {"type": "struct", "fields": [{"name": n.strip(), "type": k} for n, _, k in named]}
        if isinstance(kind, dict):
            inner: Callable[[Any, str], Any] = lambda part, step: self.type_of(part, column, path + step, depth + 1)  # noqa: E731
            match kind.get("type"):
                case "array":
                    number = self._id(f"{path}.element")
                    element = inner(kind["elementType"], ".element")
                    return {"type": "list", "element-id": number, "element": element, "element-required": False}
                case "map":
                    numbers = {"key-id": self._id(f"{path}.key"), "value-id": self._id(f"{path}.value")}
                    types = {"key": inner(kind["keyType"], ".key"), "value": inner(kind["valueType"], ".value")}
                    return {"type": "map", **numbers, **types, "value-required": False}
                case "struct":
                    fields = [(each, f".{each['name'].lower()}") for each in kind["fields"]]
                    return {
                        "type": "struct",
                        "fields": [
                            {
                                "id": self._id(path + step),
                                "name": each["name"],
                                "required": False,
                                "type": inner(each["type"], step),
                            }
                            for each, step in fields
                        ],
                    }
        raise bad_request(f"Iceberg's readers can't be shown the column {column}, which is a {str(kind)[:100]}")


def _simple(kind: str) -> str | None:
    text = kind.lower().replace(" ", "")
    if text.startswith(("varchar(", "char(")):
        return "string"
    if text == "decimal":
        return "decimal(10,0)"
    if text.startswith("decimal("):
        precision, _, scale = text.removeprefix("decimal(").rstrip(")").partition(",")
        return f"decimal({int(precision)},{int(scale or 0)})"
    return _SIMPLE.get(text)


def _mapping(field: Json, names: Sequence[str]) -> Json:
    found = {"field-id": field["id"], "names": list(dict.fromkeys(names))}
    parts = _parts(field["type"])
    return found | ({"fields": parts} if parts else {})


def _parts(kind: Any) -> list[Json]:
    """The name mapping of what is in a nested type."""
    if not isinstance(kind, dict):
        return []
    match kind["type"]:
        case "struct":
            return [_mapping(each, [each["name"], each["name"].lower()]) for each in kind["fields"]]
        case "list":
            element = {"id": kind["element-id"], "type": kind["element"]}
            return [_mapping(element, ["element"])]
    return [_mapping({"id": kind[f"{part}-id"], "type": kind[part]}, [part]) for part in ("key", "value")]


def _value(text: str, kind: str, bits: int, name: str) -> PartitionValue:
    """A partition's value. `bits`: of whole numbers. Texts that Hive takes for NULL or another value are refused."""
    if text in (DEFAULT_PARTITION, ""):
        return None
    try:
        match kind:
            case "int" | "long":
                if _NUMBER.fullmatch(text) and -(1 << bits - 1) <= (number := int(text)) < 1 << bits - 1:
                    return number
                raise ValueError("another form, or out of range")
            case "date":
                if not _DATE.fullmatch(text):
                    raise ValueError("another form")
                return (date.fromisoformat(text) - date(1970, 1, 1)).days
            case "boolean":
                return {"true": True, "false": False}[text.lower()]
    except (ValueError, KeyError):
        raise RestError(
            400, "BadRequestException", f"the partition {name[:200]!r} has a value that is no {kind}: drop it"
        ) from None
    return text
