"""Structs as plain values for JSON, by the names of their fields, and back.

Fields that aren't set are left out. Bytes become text (latin-1: one character per byte). A map becomes an object, or,
if its keys aren't texts, a list of pairs. Fields that the IDL doesn't know are not in it.
"""

import json
from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from thrift.Thrift import TType

from lake.protocol.codec.shared_list import SharedList
from lake.protocol.struct import Struct

S = TypeVar("S", bound=Struct)

_LISTS = (TType.LIST, TType.SET)


class PlainList(list[Any]):
    """A plain list that many values share, which must not be changed: its JSON is made once."""

    __slots__ = ("_json",)

    _json: str

    @property
    def json(self) -> str:
        """As `json.dumps` writes it without spaces."""
        try:
            return self._json
        except AttributeError:
            self._json = compact_json(self)
            return self._json


@dataclass(frozen=True, slots=True)
class PlainJson:
    """A plain value of which only the JSON was made."""

    json: str


def compact_json(plain: Any) -> str:
    """The JSON of a plain value, without spaces."""
    return json.dumps(plain, separators=(",", ":"))


def to_plain(value: Struct, *, without: Container[str] = ()) -> dict[str, Any]:
    """A struct as a dict that `json.dumps` takes; `without` some of its fields."""
    plain: dict[str, Any] = {}
    for name, kind, argument, simple in _fields(type(value)):  # type: ignore[arg-type]  # mypy: unhashable instances
        own = getattr(value, name)
        if own is not None and name not in without:
            plain[name] = own if simple else _plain(kind, argument, own)
    return plain


def from_plain(cls: type[S], plain: dict[str, Any]) -> S:
    """The inverse of `to_plain`. Names that the struct doesn't have are passed over."""
    value = cls()
    for name, kind, argument, simple in _fields(cls):  # type: ignore[arg-type]  # mypy: as unhashable as its instances
        if name in plain:
            setattr(value, name, plain[name] if simple else _struct(kind, argument, plain[name]))
    return value


@cache
def _fields(cls: type[Any]) -> list[tuple[str, int, Any, bool]]:
    """Name, type, type's argument, and whether a value is JSON's as it is."""
    return [(e[2], e[1], e[3], _is_simple(e[1], e[3])) for e in cls.thrift_spec if e is not None]


def _is_simple(kind: int, argument: Any) -> bool:
    if kind == TType.STRUCT or kind == TType.SET:
        return False
    if kind == TType.LIST:
        return _is_simple(argument[0], argument[1])
    if kind == TType.MAP:
        return argument[0] == TType.STRING and argument[1] == "UTF8" and _is_simple(argument[2], argument[3])
    return not (kind == TType.STRING and argument == "BINARY")


def _plain(kind: int, argument: Any, value: Any) -> Any:
    if kind == TType.STRUCT:
        return to_plain(value)
    if kind in _LISTS:
        return value.of(_plain_structs) if type(value) is SharedList else _plain_list(argument, value)
    if kind == TType.MAP:
        pairs = [[_plain(argument[0], argument[1], k), _plain(argument[2], argument[3], v)] for k, v in value.items()]
        return dict(pairs) if argument[0] == TType.STRING else pairs
    if kind == TType.STRING and argument == "BINARY":
        return value.decode("latin-1")
    return value


def _plain_list(argument: Any, value: Any) -> list[Any]:
    return [_plain(argument[0], argument[1], item) for item in value]


def _plain_structs(value: SharedList) -> PlainList:
    return PlainList(map(to_plain, value))


def _struct(kind: int, argument: Any, plain: Any) -> Any:
    if kind == TType.STRUCT:
        return from_plain(argument[0], plain)
    if kind in _LISTS:
        items = [_struct(argument[0], argument[1], item) for item in plain]
        return set(items) if kind == TType.SET else tuple(items) if argument[2] else items
    if kind == TType.MAP:
        pairs = plain.items() if isinstance(plain, dict) else plain
        return {_struct(argument[0], argument[1], k): _struct(argument[2], argument[3], v) for k, v in pairs}
    if kind == TType.STRING and argument == "BINARY":
        return plain.encode("latin-1")
    return plain
