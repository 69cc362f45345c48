"""Structs of Thrift's JSON protocol in the binary one, and back: nothing is lost, whatever the fields.

Both protocols say of each value what type it has, so no class is needed. What is binary in a struct is Base64 in JSON,
and can't be told from a text there: it stays Base64.
"""

import json
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from thrift.Thrift import TType

from lake.protocol.codec.json_protocol import TAGS

_KINDS = {tag: kind for kind, tag in TAGS.items()}
_PACKED = {
    TType.BOOL: struct.Struct(">?"),
    TType.BYTE: struct.Struct(">b"),
    TType.I16: struct.Struct(">h"),
    TType.I32: struct.Struct(">i"),
    TType.I64: struct.Struct(">q"),
    TType.DOUBLE: struct.Struct(">d"),
}
_HEAD = struct.Struct(">bh")
_SIZE = struct.Struct(">i")
_LIST = struct.Struct(">bi")
_MAP = struct.Struct(">bbi")
_STOP = b"\0"
_DEEPEST = 64


def to_binary(text: str) -> bytes:
    """A struct in the JSON protocol, in the binary protocol. Raises ValueError for a text that is none."""
    try:
        return b"".join(_struct(json.loads(text), 0))
    except (AttributeError, KeyError, TypeError, IndexError, OverflowError, RecursionError, struct.error) as error:
        raise ValueError(f"it is no struct in Thrift's JSON protocol: {error!r}") from None


def from_binary(data: bytes) -> str:
    """A struct in the binary protocol, in the JSON protocol. Raises ValueError for bytes that are none."""
    try:
        value, end = _read(TType.STRUCT, data, 0, 0)
    except (IndexError, KeyError, struct.error) as error:
        raise ValueError(f"it is no struct in Thrift's binary protocol: {error!r}") from None
    if end != len(data):
        raise ValueError("there are bytes after the struct")
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _struct(value: dict[str, Any], depth: int) -> Iterator[bytes]:
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    for number, field in value.items():
        [(tag, held)] = field.items()
        kind = _KINDS[tag]
        yield _HEAD.pack(kind, int(number))
        yield from _value(kind, held, depth)
    yield _STOP


def _value(kind: int, value: Any, depth: int) -> Iterator[bytes]:
    if kind == TType.STRING:
        encoded = value.encode()
        yield _SIZE.pack(len(encoded)) + encoded
    elif kind == TType.STRUCT:
        yield from _struct(value, depth + 1)
    elif kind == TType.MAP:
        of_keys, of_values, size, entries = value
        if len(entries) != size:
            raise ValueError("a map has another size than it says")
        yield _MAP.pack(_KINDS[of_keys], _KINDS[of_values], size)
        for key, item in entries.items():
            yield from _value(_KINDS[of_keys], key, depth + 1)
            yield from _value(_KINDS[of_values], item, depth + 1)
    elif kind in (TType.LIST, TType.SET):
        if len(value) - 2 != value[1]:
            raise ValueError("a list has another length than it says")
        yield _LIST.pack(_KINDS[value[0]], value[1])
        for item in value[2:]:
            yield from _value(_KINDS[value[0]], item, depth + 1)
    else:  # numbers are texts as keys of maps
        yield _PACKED[kind].pack(float(value) if kind == TType.DOUBLE else int(value))


def _read(kind: int, data: bytes, at: int, depth: int) -> tuple[Any, int]:
    """A value as `json.dumps` takes it, and where it ends."""
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    if kind == TType.STRING:
        [size] = _SIZE.unpack_from(data, at)
        begin, end = at + 4, at + 4 + size
        if size < 0 or end > len(data):
            raise ValueError("a text is cut off")
        return data[begin:end].decode(), end
    if kind == TType.STRUCT:
        return _read_struct(data, at, depth)
    if kind == TType.MAP:
        return _read_map(data, at, depth)
    if kind in (TType.LIST, TType.SET):
        of_items, size = _LIST.unpack_from(data, at)
        items, at = _read_items([of_items] * max(size, 0), data, at + _LIST.size, depth)
        return [TAGS[of_items], size, *items], at
    packed = _PACKED[kind]
    [number] = packed.unpack_from(data, at)
    if kind == TType.BOOL:
        number = int(number)
    elif kind == TType.DOUBLE and (number != number or abs(number) == float("inf")):
        number = "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"
    return number, at + packed.size


def _read_struct(data: bytes, at: int, depth: int) -> tuple[dict[str, Any], int]:
    fields: dict[str, Any] = {}
    while (kind := data[at]) != TType.STOP:
        number = _HEAD.unpack_from(data, at)[1]
        value, at = _read(kind, data, at + _HEAD.size, depth + 1)
        fields[str(number)] = {TAGS[kind]: value}
    return fields, at + 1


def _read_map(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    of_keys, of_values, size = _MAP.unpack_from(data, at)
    if size > 0 and of_keys in (TType.STRUCT, TType.MAP, TType.LIST, TType.SET):
        raise ValueError("a map's keys are neither texts nor numbers, which JSON can't say")
    items, at = _read_items([of_keys, of_values] * max(size, 0), data, at + _MAP.size, depth)
    pairs = list(pairwise(items))[::2]
    return [TAGS.get(of_keys, "str"), TAGS.get(of_values, "str"), size, {str(key): value for key, value in pairs}], at


def _read_items(kinds: list[int], data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    items = []
    for kind in kinds:
        item, at = _read(kind, data, at, depth + 1)
        items.append(item)
    return items, at
