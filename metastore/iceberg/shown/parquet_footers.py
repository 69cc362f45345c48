"""What the footers of Parquet files say: how many rows they have, their columns, and the figures of these.

Footers are decoded by Thrift's C accelerator. It passes over the fields that aren't declared here, and bounds how deep
structs may be nested.
"""

from collections.abc import Callable
from typing import Any

from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.Thrift import TException, TType
from thrift.transport.TTransport import TMemoryBuffer

from metastore.iceberg.errors import bad_request
from metastore.iceberg.shown.footers import BYTE_ARRAY, FIXED, INT32, INT64, MAX_FOOTER, Figures, Footer, Kind, read_end
from metastore.warehouse import Warehouse

MAX_FIGURES = 2 << 20
"""Of a footer whose columns' figures are looked at, in bytes: decoded they take many times as much."""

MAX_COLUMNS = 100
"""Columns of a file whose figures are kept: the first ones."""

_FIRST_READ = 64 << 10
_MAGIC = b"PAR1"
_TAIL = 8  # the footer's length and the magic
_LONGEST_BOUND = 72  # bytes: more than the characters that a bound of Iceberg's has


def parquet_footer(warehouse: Warehouse, location: str, size: int) -> Footer:
    """The footer of a Parquet file. Raises as `Footers.of`."""
    end = read_end(warehouse, location, size, min(size, _FIRST_READ))
    if end[-len(_MAGIC) :] != _MAGIC:
        raise bad_request(f"{location} is no Parquet file")
    length = int.from_bytes(end[-_TAIL : -len(_MAGIC)], "little") + _TAIL
    if length > min(size, MAX_FOOTER):
        raise bad_request(f"{location} has no footer that can be read")
    if length > len(end):
        end = read_end(warehouse, location, size, length)
    try:
        return _decoded(end[-length:-_TAIL])
    except (TException, EOFError, ValueError, IndexError, TypeError, OverflowError, AttributeError):
        raise bad_request(f"{location} has no footer that can be read") from None


# -- Parquet's structs, as far as they are looked at: parquet.thrift --------------------------------------------------


def _struct(title: str, /, **fields: tuple[int, int, Any]) -> Any:
    """A class for Thrift's accelerator. `fields`: number, type, and what a type is made of, by name."""
    spec: list[Any] = [None] * (max(number for number, _, _ in fields.values()) + 1)
    for each, (number, kind, args) in fields.items():
        spec[number] = (number, kind, each, args, None)
    return type(title, (), {"thrift_spec": tuple(spec), **dict.fromkeys(fields)})


def _of(cls: Any) -> list[Any]:
    return [cls, cls.thrift_spec]


_Nothing: Any = type("_Nothing", (), {"thrift_spec": ()})
_Unit = _struct("_Unit", millis=(1, TType.STRUCT, _of(_Nothing)), micros=(2, TType.STRUCT, _of(_Nothing)))
_Decimal = _struct("_Decimal", scale=(1, TType.I32, None), precision=(2, TType.I32, None))
_Timestamp = _struct("_Timestamp", utc=(1, TType.BOOL, None), unit=(2, TType.STRUCT, _of(_Unit)))
_Integer = _struct("_Integer", bits=(1, TType.BYTE, None), signed=(2, TType.BOOL, None))
_Logical = _struct(
    "_Logical",
    string=(1, TType.STRUCT, _of(_Nothing)),
    decimal=(5, TType.STRUCT, _of(_Decimal)),
    date=(6, TType.STRUCT, _of(_Nothing)),
    timestamp=(8, TType.STRUCT, _of(_Timestamp)),
    integer=(10, TType.STRUCT, _of(_Integer)),
)
_Element = _struct(
    "_Element",
    type=(1, TType.I32, None),
    length=(2, TType.I32, None),
    repetition=(3, TType.I32, None),
    name=(4, TType.STRING, "UTF8"),
    children=(5, TType.I32, None),
    converted=(6, TType.I32, None),
    scale=(7, TType.I32, None),
    id=(9, TType.I32, None),
    logical=(10, TType.STRUCT, _of(_Logical)),
)
_Statistics = _struct(
    "_Statistics",
    nulls=(3, TType.I64, None),
    highest=(5, TType.STRING, "BINARY"),
    lowest=(6, TType.STRING, "BINARY"),
)
_ColumnData = _struct(
    "_ColumnData",
    path=(3, TType.LIST, (TType.STRING, "UTF8", False)),
    values=(5, TType.I64, None),
    statistics=(12, TType.STRUCT, _of(_Statistics)),
)
_Chunk = _struct("_Chunk", data=(3, TType.STRUCT, _of(_ColumnData)))
_RowGroup = _struct("_RowGroup", columns=(1, TType.LIST, (TType.STRUCT, _of(_Chunk), False)), rows=(3, TType.I64, None))
_Order = _struct("_Order", by_type=(1, TType.STRUCT, _of(_Nothing)))
_Head = _struct("_Head", schema=(2, TType.LIST, (TType.STRUCT, _of(_Element), False)), rows=(3, TType.I64, None))
_Whole = _struct(
    "_Whole",
    schema=(2, TType.LIST, (TType.STRUCT, _of(_Element), False)),
    rows=(3, TType.I64, None),
    groups=(4, TType.LIST, (TType.STRUCT, _of(_RowGroup), False)),
    orders=(7, TType.LIST, (TType.STRUCT, _of(_Order), False)),
)

_GROUP_LIST, _REPEATED = -1, 2
_CONVERTED = {0: "string", 5: "decimal", 6: "date", 15: "integer", 16: "integer", 17: "integer", 18: "integer"}
_OTHER = "other"


def _decoded(content: bytes) -> Footer:
    found = (_Whole if len(content) <= MAX_FIGURES else _Head)()
    protocol = TCompactProtocolAccelerated(
        TMemoryBuffer(content), fallback=False, string_length_limit=len(content), container_length_limit=len(content)
    )
    protocol._fast_decode(found, protocol, _of(type(found)))
    if found.rows is None or found.rows < 0 or not found.schema:
        raise ValueError("no rows, or no schema")
    top, parts = _top_level(found.schema)
    has_ids = any(each.id is not None for each in found.schema[1:])
    columns = tuple(element.name for element, _ in top)
    figures = _figures(found, top) if isinstance(found, _Whole) else ()
    return Footer(int(found.rows), columns, has_ids, figures, parts)


def _top_level(schema: list[Any]) -> tuple[list[tuple[Any, int]], tuple[tuple[str, str], ...]]:
    """The columns of a file, and the place of each among the leaves; _GROUP_LIST for one that has parts.

    Also the names of all parts, each behind its column's name.
    """
    found: list[tuple[Any, int]] = []
    parts: set[tuple[str, str]] = set()
    open_groups = [schema[0].children or 0]  # how many elements are still to come, of each group
    leaves = 0
    for each in schema[1:]:
        while open_groups and not open_groups[-1]:
            open_groups.pop()
        if not open_groups:
            raise ValueError("elements beyond the root's")
        open_groups[-1] -= 1
        if len(open_groups) == 1:
            found.append((each, _GROUP_LIST if each.children else leaves))
        else:
            parts.add((found[-1][0].name, each.name))
        if each.children:
            open_groups.append(each.children)
        else:
            leaves += 1
    return found, tuple(sorted(parts))


def _figures(footer: Any, top: list[tuple[Any, int]]) -> tuple[Figures, ...]:
    """The figures of the columns that have no parts, as far as the file has them for all its rows."""
    groups = [each for each in footer.groups or () if each.rows]
    if sum(each.rows for each in groups) != footer.rows:
        return ()
    found = []
    for element, place in top[:MAX_COLUMNS]:
        kind = None if place == _GROUP_LIST else _kind(element)
        chunks = _chunks(groups, place, element.name)
        if kind is None or chunks is None:
            continue
        rows = [each.rows for each in groups]
        some: list[Any] = [each.statistics for each in chunks]
        nulls = [None if each is None else each.nulls for each in some]
        if any(count is not None and not 0 <= count <= most for count, most in zip(nulls, rows, strict=True)):
            continue
        counted = None if None in nulls else sum(filter(None, nulls))
        filled = [each for each, count, most in zip(some, nulls, rows, strict=True) if count != most]
        ordered = place < len(footer.orders or ()) and footer.orders[place].by_type is not None
        width = {INT32: 4, INT64: 8, FIXED: element.length or 0}.get(kind.physical)
        lowest, highest = _extremes(kind, width, filled) if ordered and filled else (None, None)
        found.append(Figures(element.name, element.id, kind, int(footer.rows), counted, lowest, highest))
    return tuple(found)


def _chunks(groups: list[Any], place: int, name: str) -> list[Any] | None:
    """A leaf's data in all row groups; None unless each has it, under its name and with a value for each row."""
    found: list[Any] = []
    for each in groups:
        chunk = each.columns[place].data if 0 <= place < len(each.columns or ()) else None
        if chunk is None or chunk.path != [name] or chunk.values != each.rows:
            return None
        found.append(chunk)
    return found


def _kind(element: Any) -> Kind | None:
    """How a leaf has its values; None for one with other types, or with several values in a row."""
    if element.repetition == _REPEATED or element.type not in (INT32, INT64, BYTE_ARRAY, FIXED):
        return None
    logical = element.logical
    if logical is None:
        if element.converted is None:
            return Kind(element.type)
        return Kind(element.type, _CONVERTED.get(element.converted, _OTHER), element.scale or 0)
    if logical.string is not None:
        return Kind(element.type, "string")
    if logical.decimal is not None:
        return Kind(element.type, "decimal", logical.decimal.scale or 0)
    if logical.date is not None:
        return Kind(element.type, "date")
    if logical.integer is not None:
        return Kind(element.type, "integer" if logical.integer.signed else _OTHER)
    if (stamp := logical.timestamp) is not None and stamp.unit is not None:
        unit = "millis" if stamp.unit.millis is not None else "micros" if stamp.unit.micros is not None else _OTHER
        return Kind(element.type, unit, 0, bool(stamp.utc))
    return Kind(element.type, _OTHER)


def _extremes(kind: Kind, width: int | None, statistics: list[Any]) -> tuple[bytes | None, bytes | None]:
    """The lowest and the highest value of all row groups; None unless each of them says both, in whole.

    `width`: the bytes of each value, if all have the same. Some writers cut off the values of statistics.
    """
    lows: list[bytes] = [each.lowest for each in statistics if each is not None and each.lowest is not None]
    highs: list[bytes] = [each.highest for each in statistics if each is not None and each.highest is not None]
    if not len(lows) == len(highs) == len(statistics):
        return None, None
    if width is not None and any(len(each) != width for each in [*lows, *highs]):
        return None, None
    order: Callable[[bytes], Any] = bytes
    if kind.physical in (INT32, INT64) or kind.logical == "decimal":
        is_big = kind.physical in (FIXED, BYTE_ARRAY)
        order = lambda each: int.from_bytes(each, "big" if is_big else "little", signed=True)  # noqa: E731
    low, high = min(lows, key=order), max(highs, key=order)
    if order(low) > order(high):
        return None, None
    return low[:_LONGEST_BOUND], high[:_LONGEST_BOUND]
