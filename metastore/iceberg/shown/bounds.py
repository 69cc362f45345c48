"""Bounds and counts of a file's columns, in Iceberg's single-value form, from what the file's footer says.

A bound is only given where the file has the values as the table's type has them, or in a type whose values are exactly
these. Everything else has no bound, which costs readers time and never a row: floating-point numbers, whose NaN no
bound covers; booleans; nested columns; timestamps of 96 bits or in nanoseconds; decimals of another scale.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from metastore.iceberg.shown.footers import BYTE_ARRAY, FIXED, INT32, INT64, Figures, Footer, Kind

LONGEST_TEXT = 16
"""Characters of a text's bounds, and bytes of a binary value's; longer ones are truncated."""

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_LAST_BEFORE_SURROGATES, _FIRST_AFTER = 0xD7FF, 0xE000
_LAST_CHARACTER = 0x10FFFF


class Metrics(NamedTuple):
    """Of a file's columns, by field id: counts of values and of nulls, and bounds. What isn't known is missing."""

    values: Mapping[int, int] = {}
    nulls: Mapping[int, int] = {}
    lower: Mapping[int, bytes] = {}
    upper: Mapping[int, bytes] = {}


NONE = Metrics()


def metrics(footer: Footer, types: Mapping[int, str], field_of: Callable[[Figures], int | None]) -> Metrics:
    """The metrics of a file. `types`: Iceberg's types of the columns that have no parts. `field_of`: of a column."""
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    lowest: dict[int, bytes] = {}
    highest: dict[int, bytes] = {}
    fields = [field_of(each) for each in footer.figures]
    for each, id in zip(footer.figures, fields, strict=True):
        if id is None or id not in types or fields.count(id) > 1:
            continue
        values[id] = each.rows
        if each.nulls is not None:
            nulls[id] = each.nulls
        if (lower := _lower(each, types[id])) is not None:
            lowest[id] = lower
        if (upper := _upper(each, types[id])) is not None:
            highest[id] = upper
    return Metrics(values, nulls, lowest, highest)


def _lower(figures: Figures, type: str) -> bytes | None:
    if figures.lowest is None:
        return None
    if type in ("string", "binary"):
        if not _holds_texts(figures.kind, type):
            return None
        return lower_text(figures.lowest) if type == "string" else figures.lowest[:LONGEST_TEXT]
    return _number(figures.lowest, figures.kind, type)


def _upper(figures: Figures, type: str) -> bytes | None:
    if figures.highest is None:
        return None
    if type in ("string", "binary"):
        if not _holds_texts(figures.kind, type):
            return None
        return upper_text(figures.highest) if type == "string" else upper_binary(figures.highest)
    return _number(figures.highest, figures.kind, type)


def _holds_texts(kind: Kind, type: str) -> bool:
    return kind.physical == BYTE_ARRAY and kind.logical in (("string", "") if type == "string" else ("",))


def lower_text(value: bytes) -> bytes | None:
    """The first characters of a text, which aren't greater than it; None for bytes that are none.

    `value`: the text in UTF-8; of a long one the first bytes, more than the characters that are taken.
    """
    text = _characters(value)
    return None if text is None else text[:LONGEST_TEXT].encode()


def upper_text(value: bytes) -> bytes | None:
    """A text of a few characters that isn't less than another one; None if there is none. `value`: as `lower_text`."""
    text = _characters(value)
    if text is None or len(text) <= LONGEST_TEXT:
        return None if text is None else text.encode()
    kept = text[:LONGEST_TEXT]
    for place in reversed(range(LONGEST_TEXT)):
        code = ord(kept[place])
        if code < _LAST_CHARACTER:
            following = _FIRST_AFTER if code == _LAST_BEFORE_SURROGATES else code + 1
            return (kept[:place] + chr(following)).encode()
    return None


def _characters(value: bytes) -> str | None:
    """A text, the last one of which may be cut, if it is longer than what is taken of it."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        if error.start + 4 > len(value) and error.reason == "unexpected end of data":
            text = value[: error.start].decode()
            return text if len(text) > LONGEST_TEXT else None
        return None


def upper_binary(value: bytes) -> bytes | None:
    """As `upper_text`, for bytes."""
    if len(value) <= LONGEST_TEXT:
        return value
    for place in reversed(range(LONGEST_TEXT)):
        if value[place] < 0xFF:
            return value[:place] + bytes([value[place] + 1])
    return None


def _number(value: bytes, kind: Kind, type: str) -> bytes | None:
    if kind.physical in (INT32, INT64):
        number = int.from_bytes(value, "little", signed=True)
    elif kind.physical == FIXED and kind.logical == "decimal":
        number = int.from_bytes(value, "big", signed=True)
    else:
        return None
    if (decimal := _DECIMAL.fullmatch(type)) is not None:
        fits = kind.logical == "decimal" and kind.scale == int(decimal[2]) and abs(number) < 10 ** int(decimal[1])
        return unscaled(number) if fits else None
    match type:
        case "int" if kind.physical == INT32 and kind.logical in ("", "integer"):
            return number.to_bytes(4, "little", signed=True)
        case "long" if kind.logical in ("", "integer") and kind.physical in (INT32, INT64):
            return number.to_bytes(8, "little", signed=True)
        case "date" if kind.logical == "date" and kind.physical == INT32:
            return number.to_bytes(4, "little", signed=True)
        case "timestamptz" | "timestamp" if kind.physical == INT64 and kind.utc == (type == "timestamptz"):
            micros = {"micros": number, "millis": number * 1_000}.get(kind.logical)
            if micros is not None and -(1 << 63) <= micros < 1 << 63:
                return micros.to_bytes(8, "little", signed=True)
    return None


def unscaled(number: int) -> bytes:
    """A decimal's digits: two's complement in as few bytes as it takes, the greatest first."""
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
