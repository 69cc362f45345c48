"""Reads what Kryo, a serialiser of Java objects, wrote: as plain data, without any Java.

Kryo's format says little about itself. An object is its class, a mark that it is new or else the number of an
object that came before, and the values of its fields, one after the other in the order of their names and without
them. So a reader must know every class that occurs, and nothing can be stepped over. Hive uses versions 3 and 5 of
Kryo, much as they come, with references.

Nothing is created that the bytes name: objects become `Instance`s, and their classes mere names.
"""

import ctypes
import datetime
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

MAX_BYTES = 1 << 20
MAX_DEPTH = 100
"""Of objects within objects; a list is one."""
MAX_CLASS_NAME = 256

ANY = "?"
"""The type of a field whose value may be of several classes: it is written with its class."""
LIST_OF_STRINGS = "? of java.lang.String"
"""Likewise, its value being a list of strings, which are written without their class."""
ENUM = "enum"
"""In place of a class's fields: it is an enumeration."""

Fields = tuple[tuple[str, str], ...]
"""The names and types of a class's fields, in the order of the names.

A type is one of Java's primitive ones, ANY, LIST_OF_STRINGS, or a final class, which is not written.
"""


class Unreadable(Exception):
    """The bytes are not what Kryo writes, name a class that isn't known, or exceed a limit."""


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """An object of a class whose fields are known."""

    class_name: str
    fields: Mapping[str, Any]


class Format(NamedTuple):
    """What reader and writer have to agree upon.

    `version`: of Kryo, 3 or 5. `classes`: the fields of every class that may occur. `numbers`: classes that were
    registered, by their number; those that Kryo registers itself are known.
    """

    version: int
    classes: Mapping[str, Fields | str]
    numbers: Mapping[int, str]


def read(data: bytes, format: Format, root: str | None = None) -> Any:
    """The object that the bytes hold. `root`: its class, if that is not written.

    Objects are Instances, lists and arrays are lists, strings, numbers and booleans what they are in Python.
    A float is the shortest decimal number that stands for it. Raises Unreadable.
    """
    if len(data) > MAX_BYTES:
        raise Unreadable(f"{len(data)} bytes are more than {MAX_BYTES}")
    reader = _Reader(data, format)
    value = reader.any() if root is None else reader.object(root, nullable=False)
    if reader.at != len(data):
        raise Unreadable(f"{len(data) - reader.at} bytes are left")
    return value


_REGISTERED = {
    0: "int", 1: "java.lang.String", 2: "float", 3: "boolean", 4: "byte", 5: "char", 6: "short", 7: "long", 8: "double",
}  # fmt: skip
_WRAPPERS = {
    "java.lang.Integer": "int",
    "java.lang.Float": "float",
    "java.lang.Boolean": "boolean",
    "java.lang.Byte": "byte",
    "java.lang.Character": "char",
    "java.lang.Short": "short",
    "java.lang.Long": "long",
    "java.lang.Double": "double",
}
_PRIMITIVES = frozenset(_WRAPPERS.values())
_NULL, _NEW = 0, 1  # marks of a class and of an object; a larger one is a number, two more than it
_UNFINISHED = object()


class _Reader:
    def __init__(self, data: bytes, format: Format) -> None:
        self.at = 0
        self._data = data
        self._classes = format.classes
        self._version = format.version
        self._order = ">" if format.version < 5 else "<"
        self._numbers = _REGISTERED | dict(format.numbers)
        self._names: dict[int, str] = {}
        self._objects: list[Any] = []
        self._depth = 0
        self._primitives: dict[str, Callable[[], Any]] = {
            "int": lambda: self._signed(32),
            "long": lambda: self._signed(64),
            "short": lambda: self._fixed("h"),
            "byte": lambda: self._fixed("b"),
            "char": lambda: chr(self._fixed("H")),
            "boolean": lambda: self._fixed("b") != 0,
            "float": lambda: _shortest(self._fixed("f")),
            "double": lambda: self._fixed("d"),
        }
        self._known: dict[str, Callable[[], Any]] = {
            "java.lang.String": self._string,
            "java.util.ArrayList": self._list,
            "java.util.LinkedList": self._list,
            "java.util.Arrays$ArrayList": self._fixed_list,
            "[B": self._byte_array,
            "java.sql.Date": lambda: Instance("java.sql.Date", {"time": self._fixed("q")}),
            "java.sql.Timestamp": lambda: Instance(
                "java.sql.Timestamp", {"time": self._fixed("q"), "nanos": self._fixed("i")}
            ),
        }
        if format.version >= 5:
            self._known |= {"java.time.LocalDate": self._date, "java.time.LocalDateTime": self._moment}

    # --- objects ----------------------------------------------------------------------------------------------

    def any(self, *, of_strings: bool = False) -> Any:
        """An object and its class before it."""
        name = self._class()
        return None if name is None else self.object(name, nullable=False, of_strings=of_strings)

    def object(self, name: str, *, nullable: bool, of_strings: bool = False) -> Any:
        """An object of a class. Where it is `nullable`, it may be missing."""
        primitive = _WRAPPERS.get(name, name)
        if primitive in _PRIMITIVES or (self._version >= 5 and self._classes.get(name) == ENUM):
            if nullable and self._unsigned() == _NULL:
                return None
            return self._primitives[primitive]() if primitive in _PRIMITIVES else self._unsigned()
        mark = self._unsigned()
        if mark == _NULL:
            if not nullable:
                raise Unreadable("an object is missing")
            return None
        if mark != _NEW:
            return self._earlier(mark - 2)
        number = len(self._objects)
        self._objects.append(_UNFINISHED)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Unreadable(f"objects are nested more than {MAX_DEPTH} deep")
        self._objects[number] = value = self._list(of_strings=True) if of_strings else self._contents(name)
        self._depth -= 1
        return value

    def _earlier(self, number: int) -> Any:
        if number >= len(self._objects) or self._objects[number] is _UNFINISHED:
            raise Unreadable(f"there is no object {number} yet")
        return self._objects[number]

    def _contents(self, name: str) -> Any:
        if (known := self._known.get(name)) is not None:
            return known()
        if name.startswith("[L"):
            return [self.any() for _ in range(self._length(self._unsigned() - 1))]
        fields = self._classes.get(name)
        if fields is None:
            raise Unreadable(f"class {name} is not known")
        if isinstance(fields, str):
            return self._unsigned()
        return Instance(name, {field: self._field(type_) for field, type_ in fields})

    def _field(self, type_: str) -> Any:
        if type_ in _PRIMITIVES:
            return self._primitives[type_]()
        if type_ in (ANY, LIST_OF_STRINGS):
            return self.any(of_strings=type_ == LIST_OF_STRINGS)
        return self.object(type_, nullable=True)

    def _class(self) -> str | None:
        mark = self._unsigned()
        if mark == _NULL:
            return None
        if mark != _NEW:
            if (registered := self._numbers.get(mark - 2)) is None:
                raise Unreadable(f"class number {mark - 2} is not known")
            return registered
        number = self._unsigned()
        if (name := self._names.get(number)) is None:
            name = self._string()
            if name is None or len(name) > MAX_CLASS_NAME:
                raise Unreadable("a class has no name")
            self._names[number] = name
        return name

    # --- lists ------------------------------------------------------------------------------------------------

    def _list(self, *, of_strings: bool = False) -> list[Any]:
        element = "java.lang.String" if of_strings else None
        if self._version < 5:
            length, nullable = self._length(self._unsigned()), True
        else:
            flag, length = self._flagged()
            length = self._length(length - 1)
            if not length:
                return []
            nullable = flag
            if element is None and flag:  # all elements are of one class
                if (element := self._class()) is None:
                    return [None] * length
                nullable = self._fixed("b") != 0
        if element is None:
            return [self.any() for _ in range(length)]
        return [self.object(element, nullable=nullable) for _ in range(length)]

    def _fixed_list(self) -> list[Any]:
        """What Arrays.asList made, as Hive writes it."""
        length = self._length(self._unsigned())
        self._class()
        return [self.any() for _ in range(length)]

    def _byte_array(self) -> bytes:
        return self._take(self._length(self._unsigned() - 1))

    def _length(self, length: int) -> int:
        if not 0 <= length <= len(self._data) - self.at:
            raise Unreadable(f"{length} elements don't fit")
        return length

    # --- values -----------------------------------------------------------------------------------------------

    def _take(self, length: int) -> bytes:
        if length > len(self._data) - self.at:
            raise Unreadable("it ends too early")
        self.at += length
        return self._data[self.at - length : self.at]

    def _byte(self) -> int:
        return self._take(1)[0]

    def _fixed(self, layout: str) -> Any:
        layout = self._order + layout
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def _unsigned(self, bits: int = 32) -> int:
        """A number in groups of seven bits, the lowest first; of 64 bits, the last group has eight."""
        value = shift = 0
        while True:
            byte = self._byte()
            if shift == 56:
                return value | byte << shift
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & (1 << bits) - 1
            shift += 7
            if shift >= bits:
                raise Unreadable("a number is too long")

    def _signed(self, bits: int) -> int:
        value = self._unsigned(bits)
        return value >> 1 ^ -(value & 1)

    def _flagged(self) -> tuple[bool, int]:
        """A number that shares its first byte with a flag."""
        first = self._byte()
        value = first & 0x3F
        if first & 0x40:
            value |= self._unsigned() << 6
        return first & 0x80 != 0, value

    def _string(self) -> str | None:
        if self._at_ascii():
            start = self.at
            while self._byte() < 0x80:
                pass
            text = self._data[start : self.at]
            return (text[:-1] + bytes([text[-1] & 0x7F])).decode("ascii")
        _, units = self._flagged()
        if units == 0:
            return None
        return self._utf(self._length(units - 1))

    def _at_ascii(self) -> bool:
        """Whether a string begins without its length: its last character is the one with the high bit."""
        return self.at < len(self._data) and self._data[self.at] < 0x80

    def _utf(self, units: int) -> str:
        """Text of so many units of UTF-16, each in one to three bytes."""
        start = self.at
        for _ in range(units):
            first = self._byte()
            self._take(0 if first < 0x80 else 2 if first >= 0xE0 else 1)
        try:
            halves = self._data[start : self.at].decode("utf-8", "surrogatepass")
            return halves.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise Unreadable("a string is none") from None

    def _date(self) -> datetime.date:
        year = self._unsigned()
        return _checked(datetime.date, year, self._byte(), self._byte())

    def _moment(self) -> datetime.datetime:
        """A day and a time of day, whose last part other than zero is inverted unless it is the nanoseconds."""
        day = self._date()
        parts: list[int] = []
        while len(parts) < 3:
            part = self._fixed("b")
            if part < 0:
                parts.append(~part)
                break
            parts.append(part)
        else:
            parts.append(self._unsigned() // 1000)
        return _checked(datetime.datetime, day.year, day.month, day.day, *parts)


def _checked(make: Callable[..., T], *parts: int) -> T:
    try:
        return make(*parts)
    except (ValueError, OverflowError):
        raise Unreadable(f"{parts} is no date") from None


def _shortest(value: float) -> float:
    """The number of double precision that is written as a single one is: with the fewest digits that tell it."""
    for digits in range(1, 9):
        candidate = float(f"{value:.{digits}g}")
        if _single(candidate) == value:
            return candidate
    return float(f"{value:.9g}")


def _single(value: float) -> float:
    return ctypes.c_float(value).value
