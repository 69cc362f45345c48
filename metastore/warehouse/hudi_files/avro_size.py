"""What bytes of Avro would take in memory as Python's values, found without making them."""

from collections.abc import Callable
from typing import Any

from fastavro.schema import parse_schema

# Of Python's values, in bytes, with what refers to them.
_RECORD = 200
_FIELD = 60
_ARRAY = 64
_MAP = 72
_ENTRY = 120
_TEXT = 60
_NUMBER = 40
_ITEM = 8

_FIXED = {"float": 4, "double": 8, "boolean": 1}

Walk = Callable[[], None]


class TooMuch(ValueError):
    """The values take more than they may."""


class AvroSize:
    """A walk over Avro's bytes that adds up what their values take.

    A nested record of no more than a byte becomes a dictionary for each level, so the bytes alone say little.
    """

    def __init__(self, content: bytes, most: int) -> None:
        """`most`: how many bytes of memory the values may take."""
        self._content = content
        self._at = 0
        self._left = most
        self._named: dict[str, Walk] = {}

    def of_file(self, schema: Any) -> None:
        """Walks over the first record of an object container file with this schema, uncompressed.

        Raises TooMuch, and ValueError or LookupError for bytes that end too early or are no such file.
        """
        self._at = 4  # behind the magic bytes
        self._walk({"type": "map", "values": "bytes"})()
        self._skip(16)
        self._number()
        self._number()
        self._walk(parse_schema(schema))()

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise TooMuch

    def _skip(self, size: int) -> None:
        if size < 0 or self._at + size > len(self._content):
            raise ValueError("a value goes beyond the end")
        self._at += size

    def _number(self) -> int:
        content, at, shift, found = self._content, self._at, 0, 0
        while content[at] & 0x80:
            found |= (content[at] & 0x7F) << shift
            shift += 7
            at += 1
            if shift > 63:
                raise ValueError("a number of more than 64 bits")
        found |= content[at] << shift
        self._at = at + 1
        return (found >> 1) ^ -(found & 1)

    def _walk(self, schema: Any) -> Walk:
        """A function that walks over one value of a parsed schema."""
        if isinstance(schema, list):
            return self._union([self._walk(each) for each in schema])
        if isinstance(schema, str):
            return self._named[schema] if schema in self._named else self._primitive(schema)
        match schema["type"]:
            case "record":
                fields = [self._walk(field["type"]) for field in schema["fields"]]
                self._named[schema["name"]] = walk = self._record(fields)
                return walk
            case "enum" | "fixed" as kind:
                self._named[schema["name"]] = walk = self._bytes(schema["size"] if kind == "fixed" else None)
                return walk
            case "array":
                return self._blocks(_ARRAY, _ITEM, self._walk(schema["items"]), keys=False)
            case "map":
                return self._blocks(_MAP, _ENTRY, self._walk(schema["values"]), keys=True)
            case kind:
                return self._walk(kind)

    def _primitive(self, name: str) -> Walk:
        if name == "null":
            return lambda: None
        if name in ("bytes", "string"):
            return self._text
        if name in _FIXED:
            return self._bytes(_FIXED[name])
        return self._bytes(None)

    def _text(self) -> None:
        size = self._number()
        self._skip(size)
        self._take(_TEXT + size)

    def _bytes(self, size: int | None) -> Walk:
        """Of so many bytes, or a number of as many as it takes."""

        def walk() -> None:
            if size is None:
                self._number()
            else:
                self._skip(size)
            self._take(_NUMBER + (size or 0))

        return walk

    def _record(self, fields: list[Walk]) -> Walk:
        own = _RECORD + _FIELD * len(fields)

        def walk() -> None:
            self._take(own)
            for field in fields:
                field()

        return walk

    def _union(self, branches: list[Walk]) -> Walk:
        def walk() -> None:
            number = self._number()
            if number < 0:
                raise ValueError("a union's branch below 0")
            branches[number]()

        return walk

    def _blocks(self, own: int, each: int, item: Walk, *, keys: bool) -> Walk:
        def walk() -> None:
            self._take(own)
            while count := self._number():
                if count < 0:
                    count = -count
                    self._number()
                for _ in range(count):
                    self._take(each)
                    if keys:
                        self._text()
                    item()

        return walk


def size_of_json(content: bytes) -> int:
    """What a JSON text would take in memory as Python's values, at most, roughly."""
    dicts, lists, fields = content.count(b"{"), content.count(b"["), content.count(b":")
    return 2 * len(content) + _RECORD * dicts + _ARRAY * (lists + content.count(b",")) + _FIELD * fields
