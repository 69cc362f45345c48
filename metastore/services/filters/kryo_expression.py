r"""Decodes conditions on partitions, as Hive's planner serialises them, into a tree of conditions.

Hive's engine selects partitions to read or drop by an expression of its planner, serialised with the library Kryo.
Hive's metastore turns a simple expression into a filter, and evaluates any other for every partition's name. This
module converts an expression into the tree that a filter's text would give. Some conditions can't be stated as text:

- The type of a condition's value says how the key is compared, whatever the key was declared as: text, int, Decimal
  (any number), date or datetime. So `CAST(ds AS DATE) >= DATE '2020-01-01'` compares text as days, `ds = 5` as numbers.
- LIKE is SQL's, in which a backslash escapes anything.
- A key that is null is the default partition. `=`, `<` and so on compare that as text, as they do in filters.

Other expressions, mainly functions, can't be evaluated here. Then the tree selects at least what the expression does.
"""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

from lake.protocol.formats.partition_names import DEFAULT_PARTITION
from metastore.services.filters import hive_plan
from metastore.services.filters.grammar import (
    MIRRORED,
    AllOf,
    AnyOf,
    Condition,
    Expression,
    Literal,
    Negation,
    parse_day,
    parse_timestamp,
)
from metastore.services.filters.hive_plan import BRIDGE, COLUMN, CONSTANT, FUNCTION, GENERIC
from metastore.services.filters.kryo import Instance, Unreadable

MAX_PARTS = 100_000
"""The most parts of an expression. A few bytes may refer to one object many times, so their length bounds nothing."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A decoded expression.

    `at_most`: a condition for all that the expression may select; None is everything. `unclear`: the part that can't
    be evaluated here; None if `at_most` is exact.
    """

    at_most: Expression | None
    unclear: str | None = None


def parse(data: bytes) -> Planned:
    """Decodes an expression that Hive's SerializationUtilities wrote.

    Bytes that can't be decoded select everything, and `unclear` is set.
    """
    try:
        return _Reader().read(hive_plan.read_expression(data))
    except Unreadable as error:
        return Planned(None, f"the expression can't be read: {error}")


class _Unclear(Exception):
    """Why a condition can't be decided."""


class _Reader:
    """Reads one expression."""

    def __init__(self) -> None:
        self._parts = 0

    def read(self, node: Any) -> Planned:
        """The condition that a boolean expression states."""
        try:
            self._count(1)
            match _function(node):
                case "And":
                    return _both([self.read(child) for child in _parameters(node)])
                case "Or":
                    return _either([self.read(child) for child in _parameters(node)])
                case "Not":
                    (child,) = _parameters(node, 1)
                    return _negated(self.read(child))
                case name:
                    return Planned(self._condition(name, node))
        except _Unclear as error:
            return Planned(None, str(error))

    def _condition(self, name: str | None, node: Any) -> Expression:
        """An expression that is not put together from others."""
        match name:
            case None:
                return _boolean(node)
            case "Null" | "NotNull":
                (child,) = _parameters(node, 1)
                return Condition(_key(child).name, "=" if name == "Null" else "<>", DEFAULT_PARTITION)
            case "In":
                tested, *values = _parameters(node)
                return AnyOf(tuple(self._equal(tested, value) for value in values))
            case "Between":
                negated, tested, low, high = _parameters(node, 4)
                inside = AllOf((_compared(tested, ">=", low), _compared(tested, "<=", high)))
                return inside if _constant(negated) is False else Negation(inside)
            case "UDFLike":
                return _like(*_parameters(node, 2))
            case "EqualNS":
                one, other = _parameters(node, 2)
                same = _compared(one, "=", other)
                if isinstance(same, Condition):
                    # Never null: where the key is, its negation holds.
                    return AllOf((Condition(same.key, "<>", DEFAULT_PARTITION), same))
            case _ if name in _OPERATORS:
                one, other = _parameters(node, 2)
                return _compared(one, _OPERATORS[name], other)
        raise _Unclear(f"function {name}")

    def _equal(self, tested: Any, value: Any) -> Expression:
        """Equality with one of the values of IN; both may be structs."""
        self._count(1)
        if _function(tested) != "Struct":
            return _compared(tested, "=", value)
        keys = _parameters(tested)
        self._count(len(keys))
        if _function(value) == "Struct":
            return AllOf(tuple(map(_compared, keys, ["="] * len(keys), _parameters(value, len(keys)))))
        values = _constant(value)
        if not isinstance(values, list) or len(values) != len(keys):
            raise _Unclear("a struct is compared with something else")
        return AllOf(tuple(_related(_key(key), "=", _plain(one)) for key, one in zip(keys, values, strict=True)))

    def _count(self, parts: int) -> None:
        self._parts += parts
        if self._parts > MAX_PARTS:
            raise _Unclear(f"the expression has more than {MAX_PARTS} parts")


def _both(parts: Sequence[Planned]) -> Planned:
    known = tuple(part.at_most for part in parts if part.at_most is not None)
    return Planned(AllOf(known) if known else None, _why(parts))


def _either(parts: Sequence[Planned]) -> Planned:
    known = tuple(part.at_most for part in parts if part.at_most is not None)
    return Planned(AnyOf(known) if len(known) == len(parts) else None, _why(parts))


def _negated(part: Planned) -> Planned:
    if part.at_most is None or part.unclear is not None:
        return Planned(None, part.unclear)
    return Planned(Negation(part.at_most))


def _why(parts: Sequence[Planned]) -> str | None:
    return next((part.unclear for part in parts if part.unclear is not None), None)


# --- functions, keys and constants ---------------------------------------------------------------------------

_OPERATORS = {
    "Equal": "=",
    "NotEqual": "<>",
    "LessThan": "<",
    "EqualOrLessThan": "<=",
    "GreaterThan": ">",
    "EqualOrGreaterThan": ">=",
}


def _function(node: Any) -> str | None:
    """The name of a node's function, its class's without what many begin with; None if it is none."""
    if not isinstance(node, Instance) or node.class_name != FUNCTION:
        return None
    function = node.fields["genericUDF"]
    if not isinstance(function, Instance):
        raise _Unclear("a function that isn't said")
    if function.class_name == BRIDGE:
        return str(function.fields["udfClassName"]).rpartition(".")[2]
    return function.class_name.removeprefix(GENERIC).removeprefix("GenericUDF").removeprefix("OP")


def _parameters(node: Instance, count: int | None = None) -> list[Any]:
    children = node.fields["children"]
    if not isinstance(children, list) or not children or (count is not None and len(children) != count):
        raise _Unclear(f"function {_function(node)} with other parameters than it has")
    return children


class _Kind(Enum):
    TEXT = "text"
    PADDED = "padded"
    INTEGER = "integer"
    NUMBER = "number"
    DAY = "day"
    MOMENT = "moment"
    BOOLEAN = "boolean"


_KINDS = {
    "string": _Kind.TEXT,
    "varchar": _Kind.TEXT,
    "char": _Kind.PADDED,
    "tinyint": _Kind.INTEGER,
    "smallint": _Kind.INTEGER,
    "int": _Kind.INTEGER,
    "bigint": _Kind.INTEGER,
    "float": _Kind.NUMBER,
    "double": _Kind.NUMBER,
    "decimal": _Kind.NUMBER,
    "date": _Kind.DAY,
    "timestamp": _Kind.MOMENT,
    "boolean": _Kind.BOOLEAN,
}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}  # that a value may have
_CONSTANT_CASTS = {
    "ToDate": _Kind.DAY,
    "Date": _Kind.DAY,
    "Timestamp": _Kind.MOMENT,
    "UDFToDouble": _Kind.NUMBER,
}
_INTEGER_CASTS = {"UDFToShort": "smallint", "UDFToInteger": "int", "UDFToLong": "bigint"}


class _Key(NamedTuple):
    """A partition key, perhaps cast. `declared`: its type; `kind`: what it is after the cast."""

    name: str
    declared: str
    kind: _Kind


def _key(node: Any) -> _Key:
    if isinstance(node, Instance) and node.class_name == COLUMN:
        name, type_ = node.fields["column"], _fields(node.fields["typeInfo"]).get("typeName")
        declared = str(type_).partition("(")[0]
        if not isinstance(name, str) or declared not in _KINDS:
            raise _Unclear(f"column {name} of type {type_}")
        return _Key(name, declared, _KINDS[declared])
    function = _function(node)
    if function is None:
        raise _Unclear("a condition without a partition key")
    child, *more = _parameters(node)
    key = _key(child)
    if not more and (kind := _cast(key, function, _fields(node.fields["typeInfo"]))) is not None:
        return key._replace(kind=kind)
    raise _Unclear(f"function {function}")


def _fields(value: Any) -> Any:
    return value.fields if isinstance(value, Instance) else {}


def _cast(key: _Key, function: str, type_: Any) -> _Kind | None:
    """What a cast makes of a key; None for other functions, and if it may change the value."""
    if function == "UDFToDouble" and key.kind in (_Kind.TEXT, _Kind.INTEGER, _Kind.NUMBER):
        return _Kind.NUMBER
    if function in ("ToDate", "Date") and key.kind in (_Kind.TEXT, _Kind.DAY):
        return _Kind.DAY
    if function in ("ToString", "UDFToString") and key.kind == _Kind.TEXT:
        return _Kind.TEXT
    if key.kind == _Kind.INTEGER:
        if _DIGITS.get(_INTEGER_CASTS.get(function, ""), 0) >= _DIGITS[key.declared]:
            return _Kind.INTEGER
        if function == "ToDecimal" and type_.get("precision", 0) - type_.get("scale", 0) >= _DIGITS[key.declared]:
            return _Kind.NUMBER
    return None


class _Padded(str):
    """Text of type char."""


def _constant(node: Any) -> Any:
    """The value of a constant, perhaps cast, as Python has it."""
    if isinstance(node, Instance) and node.class_name == CONSTANT:
        return _plain(node.fields["value"])
    function = _function(node)
    if function in _CONSTANT_CASTS:
        (child,) = _parameters(node, 1)
        if (cast := _comparable(_CONSTANT_CASTS[function], _constant(child))) is not None:
            return cast
    raise _Unclear("a condition without a constant" if function is None else f"function {function}")


def _plain(value: Any) -> Any:
    """A value of Java's or Hive's as Python has it."""
    if value is None:
        raise _Unclear("null")
    if isinstance(value, float):
        return Decimal(repr(value))
    if not isinstance(value, Instance):
        return value
    fields = value.fields
    match value.class_name.rpartition(".")[2]:
        case "HiveVarchar" if isinstance(fields["value"], str):
            return fields["value"]
        case "HiveChar" if isinstance(fields["value"], str):
            return _Padded(fields["value"])
        case "HiveDecimal" if 0 <= fields["fastScale"] <= 38:
            digits = fields["fast2"] * 10**32 + fields["fast1"] * 10**16 + fields["fast0"]
            return Decimal(f"{fields['fastSignum'] * digits}e{-fields['fastScale']}")
        case "Date":
            return _day_of_midnight(fields["time"]) if "time" in fields else _local_date(fields["localDate"])
        case "Timestamp" if "localDateTime" in fields:
            return _local_time(fields["localDateTime"])
        case "Timestamp":
            raise _Unclear("a timestamp in a time zone that isn't said")
    raise _Unclear(f"a value of class {value.class_name}")


# Midnights are at 11:00 of the day before in UTC, as far east as people live (UTC+13), and at 10:00 in Hawaii.
_MIDNIGHTS_UNTIL = datetime.time(10, 30)


def _day_of_midnight(milliseconds: int) -> datetime.date:
    """The day of which somewhere this is the midnight.

    Until Hive 3, a date is the moment at which it begins where the client is; Hive takes client and server to
    be in the same time zone.
    """
    try:
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=milliseconds)
        return moment.date() + datetime.timedelta(days=moment.time() > _MIDNIGHTS_UNTIL)
    except OverflowError:
        raise _Unclear("a date that is none") from None


def _local_date(value: Any) -> datetime.date:
    if isinstance(value, datetime.date):
        return value
    fields = _fields(value)
    try:
        return datetime.date(fields["year"], fields["month"], fields["day"])
    except (KeyError, ValueError, OverflowError):
        raise _Unclear("a date that is none") from None


def _local_time(value: Any) -> datetime.datetime:
    if isinstance(value, datetime.datetime):
        return value
    fields = _fields(value)
    time = _fields(fields.get("time"))
    try:
        at = datetime.time(time["hour"], time["minute"], time["second"], time["nano"] // 1000)
    except (KeyError, ValueError, OverflowError):
        raise _Unclear("a timestamp that is none") from None
    return datetime.datetime.combine(_local_date(fields.get("date")), at)


# --- conditions -----------------------------------------------------------------------------------------------


def _boolean(node: Any) -> Expression:
    """A key or a constant that is a condition by itself."""
    if not isinstance(node, Instance) or node.class_name != CONSTANT:
        return _related(_key(node), "=", True)
    value = _constant(node)
    if not isinstance(value, bool):
        raise _Unclear("a condition that is none")
    return AllOf(()) if value else AnyOf(())


def _compared(one: Any, operator: str, other: Any) -> Expression:
    if isinstance(one, Instance) and one.class_name == CONSTANT:
        one, operator, other = other, MIRRORED.get(operator, operator), one
    return _related(_key(one), operator, _constant(other))


def _like(tested: Any, pattern: Any) -> Expression:
    key, text = _key(tested), _constant(pattern)
    if key.kind != _Kind.TEXT or not isinstance(text, str) or "\0" in text:
        raise _Unclear(f"LIKE on key {key.name} of type {key.declared}")
    # To Hive, a backslash before anything else is just that.
    escaped = re.sub(r"\\(?![%_])", r"\\\\", text)
    return AllOf((Condition(key.name, "<>", DEFAULT_PARTITION), Condition(key.name, "LIKE", escaped)))


def _related(key: _Key, operator: str, value: Any) -> Expression:
    """A key compared with a constant, as Hive compares two of their types."""
    comparable = _comparable(key.kind, value)
    if comparable is None or (key.kind == _Kind.BOOLEAN and operator not in ("=", "<>")):
        raise _Unclear(f"key {key.name} of type {key.declared} compared with {str(value)[:50]!r}")
    if key.kind != _Kind.PADDED:
        return Condition(key.name, operator, comparable)
    if operator != "=":
        raise _Unclear(f"key {key.name} of type {key.declared}")
    # Of such partitions some are named with the blanks at the end, some without.
    return AnyOf((Condition(key.name, "=", str(value)), Condition(key.name, "=", str(value).rstrip(" "))))


def _comparable(kind: _Kind, value: Any) -> Literal | None:
    """A constant as keys of a kind are compared with it; None if they aren't."""
    if isinstance(value, bool):
        return str(value).lower() if kind == _Kind.BOOLEAN else None
    if isinstance(value, str) and "\0" in value:
        return None
    if isinstance(value, _Padded) or kind == _Kind.PADDED:
        return str(value) if isinstance(value, _Padded) and kind == _Kind.PADDED else None
    match kind:
        case _Kind.TEXT:
            if isinstance(value, datetime.datetime):
                return None
            return value if isinstance(value, str | datetime.date) else _number(value)
        case _Kind.INTEGER:
            return value if isinstance(value, int) else _number(value)
        case _Kind.NUMBER:
            return _number(value)
        case _Kind.DAY:
            return _day(value)
        case _Kind.MOMENT:
            return _moment(value)
    return None


_A_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})")


def _number(value: Any) -> Decimal | None:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        number = Decimal(value)
        return number if number.is_finite() else None
    return Decimal(value) if isinstance(value, str) and _A_NUMBER.fullmatch(value) else None


def _day(value: Any) -> datetime.date | None:
    if isinstance(value, str):
        return parse_day(value)
    return value if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime) else None


def _moment(value: Any) -> datetime.datetime | None:
    if isinstance(value, str) and (moment := parse_timestamp(value)) is not None:
        return moment
    if isinstance(value, datetime.datetime):
        return value
    day = _day(value)
    return None if day is None else datetime.datetime(day.year, day.month, day.day)
