"""The values of Postgres: as JSON with exact numbers, and the types that they have in a lake.

Numbers and booleans are JSON's own, digit by digit as Postgres writes them. Everything else is a JSON string with the
text of Postgres (`bytea` in hex, times in ISO form and UTC), as are NaN and Infinity, which JSON's numbers don't have,
and numbers of which a lake keeps the text: Spark reads a number into a string with the digits of a double.
"""

from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Final

from lake.capture.postgres.pgoutput import UNCHANGED, Column, Value

SESSION_SETTINGS: Final = {
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, YMD",
    "extra_float_digits": "1",
    "IntervalStyle": "iso_8601",
    "row_security": "off",  # a policy that hides rows makes queries fail
    "TimeZone": "UTC",
    "xmlbinary": "base64",
}
"""Of every session with a source: snapshot and log must have the same rows, with values written in the same way."""

_BOOL = 16
_INT8, _INT2, _INT4, _OID_TYPE = 20, 21, 23, 26
_FLOAT4, _FLOAT8, _NUMERIC = 700, 701, 1700
_DATE, _TIMESTAMP, _TIMESTAMPTZ, _BYTEA = 1082, 1114, 1184, 17
_NUMBERS = frozenset({_INT2, _INT4, _INT8, _OID_TYPE, _FLOAT4, _FLOAT8, _NUMERIC})

_VARCHAR = 1043
TEXTS = frozenset({25, _VARCHAR})
"""Types that hold the same texts."""

_TYPES = {
    _BOOL: "boolean",
    _INT2: "smallint",
    _INT4: "int",
    _INT8: "bigint",
    _OID_TYPE: "bigint",
    _FLOAT4: "float",
    _FLOAT8: "double",
    _DATE: "date",
    _TIMESTAMP: "timestamp_ntz",
    _TIMESTAMPTZ: "timestamp",
    _BYTEA: "binary",
}

MAX_PRECISION = 38
"""Digits of a lake's decimal."""

_FIXED_LENGTH = frozenset({_BOOL, *_NUMBERS, _DATE, _TIMESTAMP, _TIMESTAMPTZ, 18, 1083, 1186, 1266, 2950} - {_NUMERIC})
"""Types whose values are never stored apart from their row, so that an update always has them."""


def lake_type(column: Column) -> str:
    """The type of Spark's that holds every finite value of a column; `string` where there is none."""
    if column.type_oid == _NUMERIC:
        precision, scale = numeric_limits(column.modifier)
        return (
            f"decimal({precision},{scale})" if 0 < precision <= MAX_PRECISION and 0 <= scale <= precision else "string"
        )
    return _TYPES.get(column.type_oid, "string")


def numeric_limits(modifier: int) -> tuple[int, int]:
    """Precision and scale in the modifier of a numeric column; (0, 0) for one without limits."""
    if modifier < 4:
        return 0, 0
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    return precision, (scale ^ 1024) - 1024  # eleven bits with a sign, since Postgres 15


def may_be_unchanged(column: Column) -> bool:
    """Whether an update may leave a column's value out of the log, because it is stored apart from its row (TOAST)."""
    return column.type_oid not in _FIXED_LENGTH


def values_of(column: Column, source_type: str) -> str:
    """Names what a column's values are: the same for types between which a table's rows keep their texts."""
    return "text" if column.type_oid in TEXTS else source_type


def _number(text: str) -> str:
    # NaN, Infinity and -Infinity are the only texts with a letter but for exponents.
    return f'"{text}"' if text[-1] in "Ny" else text


def _bool(text: str) -> str:
    return "true" if text == "t" else "false"


def _itself(text: str) -> str:
    return text


def _encoder(column: Column) -> Callable[[str], str]:
    if column.type_oid in (_INT2, _INT4, _INT8, _OID_TYPE):
        return _itself
    if column.type_oid in _NUMBERS and lake_type(column) != "string":
        return _number
    encode: Callable[[str], str] = _bool if column.type_oid == _BOOL else encode_basestring
    return encode


class RowEncoder:
    """Writes rows of some columns as JSON objects."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._fields = [(f"{encode_basestring(each.name)}:", _encoder(each)) for each in columns]
        self._key = [
            (place, *field)
            for place, (each, field) in enumerate(zip(columns, self._fields, strict=True))
            if each.in_key
        ]

    def encode(self, values: Sequence[Value]) -> str:
        """A row; values that are UNCHANGED are left out."""
        parts = []
        for (name, encode), value in zip(self._fields, values, strict=True):
            if value is None:
                parts.append(name + "null")
            elif value is not UNCHANGED:
                parts.append(name + encode(value))
        return "{" + ",".join(parts) + "}"

    def encode_key(self, values: Sequence[Value]) -> str:
        """The key of a row alone."""
        parts = []
        for place, name, encode in self._key:
            value = values[place]
            parts.append(name + (encode(value) if isinstance(value, str) else "null"))
        return "{" + ",".join(parts) + "}"
