"""Thrift's JSON protocol (TJSONProtocol), written from plain values (`wire.plain`) without building any struct.

A field is `"id": {"type": value}`, a list `[type, length, item, …]`, a map `[key type, value type, length, {…}]`.
"""

import base64
from functools import cache
from json.encoder import encode_basestring as _quoted
from typing import Any

from thrift.Thrift import TType

from lake.protocol.struct import Struct

TAGS = {
    TType.BOOL: "tf",
    TType.BYTE: "i8",
    TType.I16: "i16",
    TType.I32: "i32",
    TType.I64: "i64",
    TType.DOUBLE: "dbl",
    TType.STRING: "str",
    TType.STRUCT: "rec",
    TType.MAP: "map",
    TType.LIST: "lst",
    TType.SET: "set",
}
"""How the protocol calls the types."""


_NUMBERS = (TType.BOOL, TType.BYTE, TType.I16, TType.I32, TType.I64, TType.DOUBLE)


def to_json(cls: type[Struct], plain: dict[str, Any]) -> str:
    """A struct of a class, given by the names of its fields, as a text of the JSON protocol.

    It is JSON unless there is a map in it whose keys are lists or structs: these stand where JSON wants a text.
    """
    return _struct(cls, plain)


@cache
def _fields(cls: type[Any]) -> list[tuple[str, str, int, Any]]:
    """Name, what stands before the value, wire type and its argument of each field."""
    return [(e[2], f'"{e[0]}":{{"{TAGS[e[1]]}":', e[1], e[3]) for e in cls.thrift_spec if e is not None]


def _struct(cls: type[Struct], plain: dict[str, Any]) -> str:
    parts = [
        f"{begin}{_value(kind, argument, plain[name])}}}"
        for name, begin, kind, argument in _fields(cls)  # type: ignore[arg-type]  # mypy: unhashable instances
        if name in plain
    ]
    return f"{{{','.join(parts)}}}"


def _value(kind: int, argument: Any, value: Any) -> str:
    if kind == TType.STRING:
        return _quoted(base64.b64encode(value.encode("latin-1")).decode() if argument == "BINARY" else value)
    if kind == TType.STRUCT:
        return _struct(argument[0], value)
    if kind in (TType.LIST, TType.SET):
        items = "".join(f",{_value(argument[0], argument[1], item)}" for item in value)
        return f'["{TAGS[argument[0]]}",{len(value)}{items}]'
    if kind == TType.MAP:
        key_kind, key_argument, item_kind, item_argument, *_ = argument
        pairs = value.items() if isinstance(value, dict) else value
        quote = '"' if key_kind in _NUMBERS else ""
        entries = ",".join(
            f"{quote}{_value(key_kind, key_argument, key)}{quote}:{_value(item_kind, item_argument, item)}"
            for key, item in pairs
        )
        return f'["{TAGS[key_kind]}","{TAGS[item_kind]}",{len(pairs)},{{{entries}}}]'
    return str(int(value)) if kind == TType.BOOL else str(value)
