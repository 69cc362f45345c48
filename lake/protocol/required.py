"""Fields that a struct must have.

Thrift's Java classes check them after decoding a struct, at any depth. Python's accelerator doesn't.
"""

from functools import cache
from typing import Any, NamedTuple

from thrift.Thrift import TType

from lake.protocol.struct import Struct


class Missing(NamedTuple):
    """A required field that was not sent."""

    field: str
    struct: str

    def __str__(self) -> str:
        return f"Required field '{self.field}' is unset! Struct:{self.struct}"


class _Plan(NamedTuple):
    required: tuple[str, ...]
    parts: tuple[str, ...]  # fields that may hold structs with required fields


def missing_field(value: Struct) -> Missing | None:
    """The first required field that a struct, or one it contains, doesn't have."""
    required, parts = _plan(type(value))  # type: ignore[arg-type]  # mypy: as unhashable as its instances
    for name in required:
        if getattr(value, name) is None:
            return Missing(name, type(value).__name__)
    for name in parts:
        part = getattr(value, name)
        if part is not None and (missing := _missing_in(part)) is not None:
            return missing
    return None


def _missing_in(part: Any) -> Missing | None:
    if isinstance(part, Struct):
        return missing_field(part)
    items = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for item in items:
        if (missing := _missing_in(item)) is not None:
            return missing
    return None


@cache
def _plan(cls: type[Any]) -> _Plan:
    parts = [
        entry[2]
        for entry in cls.thrift_spec
        if entry is not None and any(_requires(inner, {cls}) for inner in _classes(entry[1], entry[3]))
    ]
    return _Plan(cls.required, tuple(parts))


def _requires(cls: type[Struct], seen: set[type[Struct]]) -> bool:
    """Whether a struct of this class, or one within, has required fields."""
    if cls.required:
        return True
    if cls in seen:
        return False
    seen.add(cls)
    fields = (entry for entry in cls.thrift_spec if entry is not None)
    return any(_requires(inner, seen) for entry in fields for inner in _classes(entry[1], entry[3]))


def _classes(ttype: int, argument: Any) -> list[type[Struct]]:
    """The struct classes that a field of this type holds."""
    if ttype == TType.STRUCT:
        return [argument[0]]
    if ttype in (TType.LIST, TType.SET):
        return _classes(argument[0], argument[1])
    if ttype == TType.MAP:
        return _classes(argument[0], argument[1]) + _classes(argument[2], argument[3])
    return []
