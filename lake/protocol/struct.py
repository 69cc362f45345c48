"""The base of every generated Thrift struct."""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Self

from thrift.Thrift import TException

# What Apache Thrift's accelerator reads. Index: field id. Entry: (id, wire type, name, type argument, default).
Spec = tuple[tuple[int, int, str, Any, None] | None, ...]


def fields(*entries: tuple[int, str, int, Any] | None) -> Spec:
    """Builds a `thrift_spec` from (id, name, wire type, type argument) entries; None fills unused ids."""
    return tuple(entry and (entry[0], entry[2], entry[1], entry[3], None) for entry in entries)


def link(spec: Spec) -> None:
    """Completes a spec once all classes have theirs: a struct's type argument is `[class, its spec]`."""
    for entry in spec:
        if entry is not None:
            _link(entry[3])


def _link(argument: Any) -> None:
    if isinstance(argument, list):
        argument[1] = argument[0].thrift_spec
    elif isinstance(argument, tuple):
        for part in argument:
            _link(part)


class Struct:
    """A Thrift struct: one attribute per field, None where the field is not set.

    `unknown` holds the encoded fields (binary protocol) that a sender put into the struct and the IDL doesn't
    know; it is unset on a struct without any. An empty value marks one that merely contains such a struct.
    """

    __slots__ = ()  # generated classes name their fields and "unknown"; an exception's layout allows none here
    thrift_spec: ClassVar[Spec] = ()
    required: ClassVar[tuple[str, ...]] = ()
    unknown: bytes

    def __repr__(self) -> str:
        shown = ((name, getattr(self, name)) for name in self.field_names())
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v in shown if v is not None)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        values = _values_of(type(self))  # type: ignore[arg-type]  # mypy: unhashable instances
        return values(self) == values(other) and getattr(self, "unknown", b"") == getattr(other, "unknown", b"")

    __hash__ = None  # type: ignore[assignment]  # structs are mutable

    @classmethod
    @cache
    def field_names(cls) -> tuple[str, ...]:
        """The names of the declared fields, by rising field id."""
        return tuple(entry[2] for entry in cls.thrift_spec if entry is not None)

    def replace(self, **changes: Any) -> Self:
        """A shallow copy with some attributes changed; unknown fields are kept."""
        cls = type(self)
        copy = cls(*_values_of(cls)(self))  # type: ignore[arg-type]  # mypy: unhashable instances
        for name, value in changes.items():
            if name not in _places(cls):  # type: ignore[arg-type]
                raise TypeError(f"{cls.__name__} has no field {name}")
            setattr(copy, name, value)
        if hasattr(self, "unknown"):
            copy.unknown = self.unknown  # type: ignore[misc]
        return copy

    def varying(self, name: str) -> Callable[[Any], Self]:
        """What makes many copies as `replace` does, as the struct is now, each with another value of one field."""
        cls = type(self)
        values = _values_of(cls)(self)  # type: ignore[arg-type]
        place = _places(cls)[name]  # type: ignore[arg-type]
        before, after = values[:place], values[place + 1 :]
        unknown = getattr(self, "unknown", None)

        def copy(value: Any) -> Any:  # mypy takes no Self here
            made = cls(*before, value, *after)  # type: ignore[call-arg]
            if unknown is not None:
                made.unknown = unknown  # type: ignore[misc]
            return made

        return copy


@cache
def _values_of(cls: type[Struct]) -> Callable[[Struct], tuple[Any, ...]]:
    """What reads all fields of a struct in the order in which its class takes them."""
    names = cls.field_names()
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


@cache
def _places(cls: type[Struct]) -> dict[str, int]:
    """Where each field's value is among those."""
    return {name: place for place, name in enumerate(cls.field_names())}


class ExceptionStruct(Struct, TException):  # type: ignore[misc]
    """A declared exception of a Thrift method."""

    def __str__(self) -> str:
        return str(getattr(self, "message", None) or type(self).__name__)

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)
