"""The values of MariaDB: as the same text from a query and from the log, as JSON with exact numbers, and their types.

Numbers are JSON's own, digit by digit, but for those of which a lake keeps the text. These and everything else are JSON
strings: times in ISO form (TIMESTAMP in UTC, with `+00`), binary values in hex after `\\x`, bits as 0 and 1, sets with
commas between.

Row images of the log are decoded here, since python-mysql-replication makes of them Python objects that don't have all
values: no zero dates, no order of sets, no digits of FLOAT.
"""

import codecs
import socket
import struct
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np
from pymysql.charset import charset_by_name

from lake.capture.errors import CaptureError

Text = str | None
"""A value as text; None for NULL."""

_INTEGERS: Final = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_WIDER: Final = {
    "tinyint": "smallint",
    "smallint": "int",
    "mediumint": "int",
    "int": "bigint",
    "bigint": "decimal(20,0)",
}
_NUMBERS: Final = frozenset({*_INTEGERS, "decimal", "float", "double", "year"})
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json"})
_BINARY: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_GEOMETRY: Final = frozenset(
    {
        *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
        "geometrycollection",
    }
)
FIXED: Final[dict[str, tuple[int, Callable[[bytes], str]]]] = {
    "uuid": (16, lambda value: str(UUID(bytes=value))),
    "inet6": (16, lambda value: socket.inet_ntop(socket.AF_INET6, value)),
    "inet4": (4, lambda value: socket.inet_ntop(socket.AF_INET, value)),
}
"""Types that the log has as BINARY: their bytes, and the text of these."""

_UNORDERED: Final = frozenset({"enum", "set", "bit", "float", "double", "geometry"})
"""Kinds whose values a query doesn't compare as it sorts them, or not exactly."""

MAX_PRECISION = 38
"""Digits of a lake's decimal."""


class Column(NamedTuple):
    """A column. `kind`: what it is, in MariaDB's words, `text` and `binary` for all of these; `limits`: precision and
    scale, digits of seconds, or bits."""

    name: str
    kind: str
    limits: tuple[int, ...] = ()
    unsigned: bool = False
    in_key: bool = False

    @property
    def source_type(self) -> str:
        """The type as `schema` rows say it."""
        limits = f"({','.join(map(str, self.limits))})" if self.limits else ""
        return f"{self.kind}{limits}{' unsigned' if self.unsigned else ''}"

    @property
    def lake_type(self) -> str:
        """The type of Spark's that holds every value; `string` where there is none."""
        if self.kind in _INTEGERS:
            return _WIDER[self.kind] if self.unsigned else "int" if self.kind == "mediumint" else self.kind
        if self.kind == "decimal":
            return f"decimal({self.limits[0]},{self.limits[1]})" if self.limits[0] <= MAX_PRECISION else "string"
        return _LAKE_TYPES.get(self.kind, "string")

    @property
    def orders_chunks(self) -> bool:
        """Whether a query can go through a table by this column."""
        return self.kind not in _UNORDERED


_LAKE_TYPES: Final = {
    "float": "float",
    "double": "double",
    "year": "int",
    "date": "date",
    "datetime": "timestamp_ntz",
    "timestamp": "timestamp",
    "binary": "binary",
    "geometry": "binary",
}


def column_of(name: str, data_type: str, column_type: str, precision: Any, scale: Any, digits: Any) -> Column:
    """A column from what information_schema.COLUMNS says. Raises CaptureError for a type that isn't captured."""
    kind = data_type.lower()
    unsigned = kind in _INTEGERS and "unsigned" in column_type.lower()
    if kind in _INTEGERS:
        return Column(name, kind, unsigned=unsigned)
    if kind == "decimal":
        return Column(name, kind, (int(precision), int(scale)))
    if kind in ("datetime", "timestamp", "time"):
        return Column(name, kind, (int(digits or 0),))
    if kind == "bit":
        return Column(name, kind, (int(precision),))
    if kind in _TEXTS:
        return Column(name, "text")
    if kind in _BINARY:
        return Column(name, "binary")
    if kind in _GEOMETRY:
        return Column(name, "geometry")
    if kind in ("float", "double", "date", "year", "enum", "set") or kind in FIXED:
        return Column(name, kind)
    raise CaptureError(f"the column {name} has the type {kind}, which isn't captured")


# --- as JSON --------------------------------------------------------------------------------------------------


class RowEncoder:
    """Writes rows of some columns as JSON objects."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._fields: list[tuple[str, Callable[[str], str]]] = [
            (
                f"{encode_basestring(each.name)}:",
                _itself if each.kind in _NUMBERS and each.lake_type != "string" else encode_basestring,
            )
            for each in columns
        ]

    def encode(self, values: Sequence[Text]) -> str:
        parts = [
            name + ("null" if value is None else encode(value))
            for (name, encode), value in zip(self._fields, values, strict=True)
        ]
        return "{" + ",".join(parts) + "}"


def _itself(text: str) -> str:
    return text


# --- from a query ---------------------------------------------------------------------------------------------


def selected(column: Column, quoted: str) -> str:
    """The expression by which a query reads a column without losing anything."""
    if column.kind in FIXED:
        return f"CAST({quoted} AS BINARY({FIXED[column.kind][0]}))"
    return f"CAST({quoted} AS DOUBLE)" if column.kind == "float" else quoted


def from_query(column: Column) -> Callable[[Any], str]:
    """What makes the text of a column's values, of what a query gives: texts, and bytes of binary values."""
    if column.kind in _INTEGERS or column.kind == "year":
        return lambda value: str(int(value))  # without the zeros of ZEROFILL
    if column.kind == "decimal":
        return _plain_decimal
    if column.kind == "float":
        return lambda value: _float(float(value))
    if column.kind == "double":
        return lambda value: repr(float(value))
    if column.kind in ("binary", "geometry"):
        return _hex
    if column.kind in FIXED:
        return FIXED[column.kind][1]
    if column.kind == "bit":
        return lambda value: _bits(int.from_bytes(value), column.limits[0])
    if column.kind == "timestamp":
        return lambda value: f"{value}+00"
    return str


def as_parameter(column: Column, text: str) -> str | bytes:
    """A value as a query compares with it."""
    if column.kind == "binary":
        return bytes.fromhex(text[2:])
    return text.removesuffix("+00") if column.kind == "timestamp" else text


def _plain_decimal(value: str) -> str:
    sign, digits = ("-", value[1:]) if value.startswith("-") else ("", value)
    whole, point, rest = digits.partition(".")
    return f"{sign}{whole.lstrip('0') or '0'}{point}{rest}"


def _float(value: float) -> str:
    return str(np.float32(value))


def _hex(value: bytes) -> str:
    return f"\\x{value.hex()}"


def _bits(value: int, bits: int) -> str:
    return f"{value:0{bits}b}"


# --- from the log ---------------------------------------------------------------------------------------------

Read = Callable[[bytes, int], tuple[str, int]]
"""Reads a value at a place in a row image: its text, and the place behind it."""

_TINY, _SHORT, _LONG, _FLOAT, _DOUBLE, _LONGLONG, _INT24, _DATE, _YEAR = 1, 2, 3, 4, 5, 8, 9, 10, 13
_VARCHAR, _BIT, _TIMESTAMP2, _DATETIME2, _TIME2, _DECIMAL, _ENUM, _SET = 15, 16, 17, 18, 19, 246, 247, 248
_BLOB, _STRING, _GEOMETRY_TYPE = 252, 254, 255
_OF_LOG: Final = {_TINY: "tinyint", _SHORT: "smallint", _INT24: "mediumint", _LONG: "int", _LONGLONG: "bigint"}


READABLE: Final = frozenset(
    {
        *(_DECIMAL, _FLOAT, _DOUBLE, _YEAR, _DATE, _DATETIME2, _TIMESTAMP2, _TIME2, _BIT, _ENUM, _SET),
        *(_GEOMETRY_TYPE, _VARCHAR, _STRING, _BLOB, *_OF_LOG),
    }
)
"""Types of the log of which rows can be read."""

UNREADABLE: Final = {7: "TIMESTAMP", 11: "TIME", 12: "DATETIME", 140: "COMPRESSED", 141: "COMPRESSED"}
"""Others, in MariaDB's words: the first three are of a table that was made before MariaDB 10.1."""

_ENDLESS: Final = ("2038-01-19 03:14:07.999999+00", "2106-02-07 06:28:15.999999+00")


def is_history(row_end: Text) -> bool:
    """Whether a row of a system-versioned table isn't the current one, by its `row_end`."""
    return row_end not in _ENDLESS


def column_of_log(described: Any, fixed: str | None = None) -> tuple[Column, Read]:
    """A column, and what reads it, from its description in the log (a Column of python-mysql-replication).

    `fixed`: which of `FIXED` it is; the log doesn't say. Raises CaptureError for a type that isn't captured.
    """
    kind, name, in_key = described.type, described.name, bool(described.is_primary)
    made = Column(name, "", in_key=in_key)
    if kind in _OF_LOG:
        what = _OF_LOG[kind]
        size, unsigned = _INTEGERS[what], bool(described.unsigned)
        return made._replace(kind=what, unsigned=unsigned), _reading_integer(size, signed=not unsigned)
    if kind == _DECIMAL:
        return (
            made._replace(kind="decimal", limits=(described.precision, described.decimals)),
            _reading_decimal(described.precision, described.decimals),
        )
    if kind == _FLOAT:
        return made._replace(kind="float"), lambda data, at: (_float(*struct.unpack_from("<f", data, at)), at + 4)
    if kind == _DOUBLE:
        return made._replace(kind="double"), lambda data, at: (repr(struct.unpack_from("<d", data, at)[0]), at + 8)
    if kind == _YEAR:
        return made._replace(kind="year"), lambda data, at: (str(data[at] and data[at] + 1900), at + 1)
    if kind == _DATE:
        return made._replace(kind="date"), _read_date
    if kind in (_DATETIME2, _TIMESTAMP2, _TIME2):
        read, what = {
            _DATETIME2: (_reading_datetime, "datetime"),
            _TIMESTAMP2: (_reading_timestamp, "timestamp"),
            _TIME2: (_reading_time, "time"),
        }[kind]
        return made._replace(kind=what, limits=(described.fsp,)), read(described.fsp)
    if kind == _BIT:
        size = described.bytes
        return (
            made._replace(kind="bit", limits=(described.bits,)),
            lambda data, at: (_bits(int.from_bytes(data[at : at + size]), described.bits), at + size),
        )
    if kind in (_ENUM, _SET):
        labels, size = described.enum_values or described.set_values or [], described.size
        read_labels = _reading_enum if kind == _ENUM else _reading_set
        return made._replace(kind="enum" if kind == _ENUM else "set"), read_labels(labels, size)
    if kind == _GEOMETRY_TYPE:
        return made._replace(kind="geometry"), _reading_bytes(described.length_size, _hex)
    if kind in (_VARCHAR, _STRING, _BLOB):
        length = described.length_size if kind == _BLOB else 2 if described.max_length > 255 else 1
        if described.character_set_name == "binary":
            pad = described.max_length if kind == _STRING else 0  # the log leaves out zeros at the end of BINARY
            text = FIXED[fixed][1] if fixed and pad == FIXED[fixed][0] else _hex
            return (
                made._replace(kind="binary" if text is _hex else fixed or ""),
                _reading_bytes(length, lambda value: text(value.ljust(pad, b"\0"))),
            )
        return made._replace(kind="text"), _reading_bytes(length, decoding(name, described.character_set_name))
    raise CaptureError(f"the column {name} has the type {kind} of the log, which isn't captured")


def read_row(reads: Sequence[Read], data: bytes, at: int) -> tuple[list[Text], int]:
    """A row image, all of whose columns are there, and the place behind it."""
    nulls = int.from_bytes(data[at : at + (len(reads) + 7) // 8], "little")
    at += (len(reads) + 7) // 8
    values: list[Text] = []
    for number, read in enumerate(reads):
        if nulls >> number & 1:
            values.append(None)
            continue
        text, at = read(data, at)
        values.append(text)
    return values, at


def _reading_integer(size: int, *, signed: bool) -> Read:
    def read(data: bytes, at: int) -> tuple[str, int]:
        return str(int.from_bytes(data[at : at + size], "little", signed=signed)), at + size

    return read


def _reading_bytes(length: int, text: Callable[[bytes], str]) -> Read:
    def read(data: bytes, at: int) -> tuple[str, int]:
        size = int.from_bytes(data[at : at + length], "little")
        begin = at + length
        return text(data[begin : begin + size]), begin + size

    return read


_WIDE_SETS: Final = {"utf16": "utf-16-be", "ucs2": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}


def decoding(name: str, character_set: str | None) -> Callable[[bytes], str]:
    """What decodes a column's texts in the log. Raises CaptureError for a character set that isn't captured."""
    found = charset_by_name(character_set or "utf8mb4")
    encoding = found.encoding if found is not None else _WIDE_SETS.get(character_set or "", character_set or "")
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise CaptureError(f"the column {name} has the character set {character_set}, which isn't captured") from None
    if encoding == "cp1252":
        return _from_latin1
    return lambda value: value.decode(encoding)


def _from_latin1(value: bytes) -> str:
    """MariaDB's latin1 is cp1252, and the five bytes that has no character for are control characters."""
    try:
        return value.decode("cp1252")
    except UnicodeDecodeError:
        return "".join(_character(each) for each in value)


def _character(byte: int) -> str:
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


_BYTES_OF_DIGITS: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def _reading_decimal(precision: int, scale: int) -> Read:
    """The format of `decimal2bin`: groups of nine digits in four bytes, of which the first and last may be shorter."""
    whole_groups, whole_rest = divmod(precision - scale, 9)
    part_groups, part_rest = divmod(scale, 9)
    sizes = [(_BYTES_OF_DIGITS[whole_rest], whole_rest), *[(4, 9)] * whole_groups]
    after = [*[(4, 9)] * part_groups, (_BYTES_OF_DIGITS[part_rest], part_rest)]
    total = sum(size for size, _ in (*sizes, *after))

    def read(data: bytes, at: int) -> tuple[str, int]:
        stored = bytearray(data[at : at + total])
        negative = not stored[0] & 0x80
        stored[0] ^= 0x80
        if negative:
            stored = bytearray(each ^ 0xFF for each in stored)
        digits, place = [], 0
        for size, count in (*sizes, *after):
            if count:
                digits.append(f"{int.from_bytes(stored[place : place + size]):0{count}d}")
            place += size
        text = "".join(digits)
        whole = text[: precision - scale].lstrip("0") or "0"
        return f"{'-' if negative else ''}{whole}{'.' if scale else ''}{text[precision - scale :]}", at + total

    return read


def _read_date(data: bytes, at: int) -> tuple[str, int]:
    value = int.from_bytes(data[at : at + 3], "little")
    return f"{value >> 9:04d}-{value >> 5 & 15:02d}-{value & 31:02d}", at + 3


def _fraction(data: bytes, at: int, digits: int) -> tuple[str, int]:
    """The digits after the second, with a point before them, and the place behind them."""
    if not digits:
        return "", at
    size = (digits + 1) // 2
    value = int.from_bytes(data[at : at + size])
    return f".{value:0{2 * size}d}"[: digits + 1], at + size


def _reading_datetime(digits: int) -> Read:
    def read(data: bytes, at: int) -> tuple[str, int]:
        value = int.from_bytes(data[at : at + 5]) - (1 << 39)
        months, days = divmod(value >> 17, 32)
        year, month = divmod(months, 13)
        text = f"{year:04d}-{month:02d}-{days:02d} {value >> 12 & 31:02d}:{value >> 6 & 63:02d}:{value & 63:02d}"
        fraction, behind = _fraction(data, at + 5, digits)
        return text + fraction, behind

    return read


def _reading_timestamp(digits: int) -> Read:
    def read(data: bytes, at: int) -> tuple[str, int]:
        seconds = int.from_bytes(data[at : at + 4])
        fraction, behind = _fraction(data, at + 4, digits)
        if not seconds and not fraction.strip(".0"):
            return f"0000-00-00 00:00:00{fraction}+00", behind
        text = str(np.datetime64(seconds, "s")).replace("T", " ")
        return f"{text}{fraction}+00", behind

    return read


def _reading_time(digits: int) -> Read:
    size = (digits + 1) // 2

    def read(data: bytes, at: int) -> tuple[str, int]:
        bits = 8 * (3 + size)
        value = int.from_bytes(data[at : at + 3 + size]) - (1 << bits - 1)
        sign, value = ("-", -value) if value < 0 else ("", value)
        seconds, rest = divmod(value, 1 << 8 * size)
        fraction = f".{rest:0{2 * size}d}"[: digits + 1] if digits else ""
        text = f"{seconds >> 12 & 1023:02d}:{seconds >> 6 & 63:02d}:{seconds & 63:02d}"
        return f"{sign}{text}{fraction}", at + 3 + size

    return read


def _reading_enum(labels: Sequence[str], size: int) -> Read:
    def read(data: bytes, at: int) -> tuple[str, int]:
        return labels[int.from_bytes(data[at : at + size], "little")], at + size

    return read


def _reading_set(labels: Sequence[str], size: int) -> Read:
    def read(data: bytes, at: int) -> tuple[str, int]:
        value = int.from_bytes(data[at : at + size], "little")
        return ",".join(each for number, each in enumerate(labels) if value >> number & 1), at + size

    return read
