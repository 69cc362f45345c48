"""Values as Debezium's JSON has them, in the JSON of a raw table. The rules are those of the connectors' documentation.

Numbers that aren't integers are kept as `Number`, digit by digit as they came.
"""

import base64
import binascii
import datetime as dt
import json
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Any, Final

from lake.capture.errors import CaptureError

MAX_PRECISION: Final = 38
"""Digits of a lake's decimal."""

UNAVAILABLE: Final = "__debezium_unavailable_value"
"""What stands for a large value that an update left alone, unless a connector's options say otherwise."""

_EPOCH = dt.datetime(1970, 1, 1)
_FIRST_SECOND = (dt.datetime.min - _EPOCH) // dt.timedelta(seconds=1)
_LAST_SECOND = (dt.datetime.max - _EPOCH) // dt.timedelta(seconds=1)
_DAY_SECONDS = 86_400
_MAX_SCALE = 100_000  # more than any source has; a message shouldn't choose how many zeros are written

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
_BITS = "io.debezium.data.Bits"
_ZONED_TIMESTAMP = "io.debezium.time.ZonedTimestamp"
_DATES = frozenset({"io.debezium.time.Date", "org.apache.kafka.connect.data.Date"})
_TIMESTAMPS = {  # to units in a second
    "io.debezium.time.Timestamp": 1_000,
    "io.debezium.time.MicroTimestamp": 1_000_000,
    "io.debezium.time.NanoTimestamp": 1_000_000_000,
    "org.apache.kafka.connect.data.Timestamp": 1_000,
}
_TIMES = {
    "io.debezium.time.Time": 1_000,
    "io.debezium.time.MicroTime": 1_000_000,
    "io.debezium.time.NanoTime": 1_000_000_000,
    "org.apache.kafka.connect.data.Time": 1_000,
}
_PLAIN = {
    "boolean": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
}
_LARGE = frozenset({"string", "bytes", "array", "map", "struct"})
_FIXED_NAMES = frozenset({_ZONED_TIMESTAMP, "io.debezium.time.ZonedTime", "io.debezium.data.Uuid"})


class Placeholder:
    """What stands for a large value that an update left alone: a connector's `unavailable.value.placeholder`."""

    def __init__(self, text: str = UNAVAILABLE) -> None:
        sent = text.encode()
        # Which of them it is in a column of bytes depends on the connector's binary.handling.mode.
        self._texts = frozenset(
            (text, base64.b64encode(sent).decode(), base64.urlsafe_b64encode(sent).decode(), sent.hex())
        )
        self._numbers = [each - 256 if each > 127 else each for each in sent]  # Java's bytes, in arrays of integers

    def stands_in(self, value: Any) -> bool:
        """Whether a value is the placeholder, in the form that its type gives it."""
        if isinstance(value, list):
            return value == self._numbers or (len(value) == 1 and self._is_text(value[0]))
        if isinstance(value, dict):
            return any(self._is_text(each) for pair in value.items() for each in pair)
        return self._is_text(value)

    def _is_text(self, value: Any) -> bool:
        return isinstance(value, str) and value in self._texts


class Number(str):
    """The digits of a JSON number that isn't an integer."""


Field = Mapping[str, Any]
"""A field of a Kafka Connect schema: `type`, and perhaps `name` (what the type means) and `parameters`."""

Encoder = Callable[[Any], str]
"""Writes a value that isn't null as JSON. Raises ValueError, TypeError, KeyError or OverflowError for another type."""


def parse(text: str | bytes) -> Any:
    """Reads a JSON text, its numbers without loss. Raises ValueError."""
    try:
        return json.loads(text, parse_float=Number)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def lake_type(field: Field) -> str:
    """The type of Spark's that holds the values of a field; `string` where there is none."""
    name, parameters = field.get("name"), field.get("parameters") or {}
    if name == _DECIMAL:
        precision, scale = int(parameters.get("connect.decimal.precision", 0)), int(parameters.get("scale", 0))
        fits = 0 < precision <= MAX_PRECISION and 0 <= scale <= precision
        return f"decimal({precision},{scale})" if fits else "string"
    if name in _DATES:
        return "date"
    if name in _TIMESTAMPS:
        return "timestamp_ntz"
    if name == _ZONED_TIMESTAMP:
        return "timestamp"
    if name in _TIMES or name == _BITS:
        return "string"
    return _PLAIN.get(str(field.get("type")), "string")


def may_be_unavailable(field: Field) -> bool:
    """Whether an update may leave a value out."""
    name = field.get("name")
    return field.get("type") in _LARGE and name not in _FIXED_NAMES


def encoder(field: Field) -> Encoder:
    """What writes the values of a field."""
    name, parameters = field.get("name"), field.get("parameters") or {}
    if name == _DECIMAL:
        scale = int(parameters.get("scale", 0))
        write = encode_basestring if lake_type(field) == "string" else str
        return lambda value: write(value if isinstance(value, Number) else _decimal(value, scale))
    if name == _VARIABLE_DECIMAL:
        return lambda value: encode_basestring(_decimal(value["value"], int(value["scale"])))
    if name in _DATES:
        return lambda value: encode_basestring(_date(_integer(value)))
    if isinstance(name, str) and name in _TIMESTAMPS:
        units = _TIMESTAMPS[name]
        return lambda value: encode_basestring(_timestamp(_integer(value), units))
    if isinstance(name, str) and name in _TIMES:
        units = _TIMES[name]
        return lambda value: encode_basestring(_time(_integer(value), units))
    if name == _ZONED_TIMESTAMP:
        return lambda value: encode_basestring(_zoned(value))
    if name == _BITS:
        length = int(parameters.get("length", 0))
        return lambda value: encode_basestring(_bits(value, length))
    if field.get("type") == "bytes":
        return lambda value: encode_basestring("\\x" + _bytes(value).hex())
    return as_it_came


def as_text(value: Any) -> str:
    """A value whose type nobody knows: as it came, but numbers as strings with their digits. Spark would read them with
    the digits of a double."""
    return encode_basestring(value) if isinstance(value, Number) else as_it_came(value)


def as_it_came(value: Any) -> str:
    """Numbers, booleans and strings as they are; arrays and objects as strings with their JSON."""
    if isinstance(value, (dict, list)):
        return encode_basestring(_json(value))
    return _json(value)


def _json(value: Any) -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, list):
        return f"[{','.join(map(_json, value))}]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{encode_basestring(name)}:{_json(each)}" for name, each in value.items()) + "}"
    if isinstance(value, float):  # json.loads takes NaN and Infinity, which JSON hasn't
        return encode_basestring({"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)])
    return json.dumps(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("an integer is expected")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError("base64 is expected")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"base64 is expected: {error}") from None


def _decimal(value: Any, scale: int) -> str:
    """An unscaled integer, big-endian in two's complement, as the digits of a number."""
    if abs(scale) > _MAX_SCALE:
        raise ValueError(f"a scale of {scale} is out of bounds")
    unscaled = int.from_bytes(_bytes(value), "big", signed=True)
    if scale <= 0:
        return str(unscaled * 10**-scale)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _fraction(part: int, units: int) -> str:
    """The digits behind the point, with the point, if there are any."""
    return f".{part:0{len(str(units)) - 1}}".rstrip("0") if part else ""


def _date(days: int) -> str:
    seconds = days * _DAY_SECONDS
    return _timestamp(seconds, 1).partition(" ")[0] if _FIRST_SECOND <= seconds <= _LAST_SECOND else str(days)


def _timestamp(count: int, units: int) -> str:
    """A time since 1970 as Postgres writes it; what no calendar has, as the number that came."""
    seconds, part = divmod(count, units)
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        return str(count)
    return (_EPOCH + dt.timedelta(seconds=seconds)).isoformat(" ") + _fraction(part, units)


def _time(count: int, units: int) -> str:
    """A time of day, or a duration as MySQL's TIME has it: with a sign, and with more than 24 hours."""
    seconds, part = divmod(abs(count), units)
    sign = "-" if count < 0 else ""
    return f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{_fraction(part, units)}"


def _zoned(value: Any) -> str:
    """A time with its zone, in UTC. Years that Python doesn't have stay as they came."""
    if not isinstance(value, str):
        raise ValueError("a time with its zone is expected")
    # Python has microseconds; digits beyond them are kept.
    head, point, tail = value.partition(".")
    digits = tail[: len(tail) - len(tail.lstrip("0123456789"))] if point else ""
    try:
        moment = dt.datetime.fromisoformat(head + tail[len(digits) :]).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return value
    fraction = digits.rstrip("0")
    return moment.replace(tzinfo=None).isoformat(" ") + (f".{fraction}" if fraction else "") + "+00"


def _bits(value: Any, length: int) -> str:
    """Bits from the first to the last, as Postgres writes them, of bytes that begin with the last ones."""
    found = _bytes(value)
    text = f"{int.from_bytes(found, 'little'):b}"
    return text.rjust(min(length, 8 * len(found)) if length else 8 * len(found), "0")


def encoded(name: str, value: Any, encode: Encoder) -> str:
    """A value as JSON. Raises CaptureError for one that its schema doesn't describe."""
    try:
        return encode(value)
    except RecursionError:
        raise CaptureError(f"the column {name} has a value that is nested too deep") from None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise CaptureError(f"the column {name} has a value that isn't as its schema says: {error}") from None
