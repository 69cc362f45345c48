"""Conditions on partition values, as data, and as SQL.

A condition that can't be decided for a partition, such as a number compared with a value that is none,
is unknown, as SQL's NULL is: the partition is not selected, nor is it by the condition's negation. This
is how Hive's MetaStoreDirectSql compares, except that there a value of the wrong kind can fail the
statement; here none can.
"""

import datetime
import operator
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Date,
    DateTime,
    Numeric,
    and_,
    any_,
    case,
    cast,
    func,
    literal,
    not_,
    or_,
    true,
)


class KeyType(Enum):
    """How values are compared; not necessarily the type a key was declared with."""

    STRING = "string"
    """As text, by the bytes of UTF-8."""
    INTEGRAL = "integral"
    """As whole numbers, `007` being 7; text that is none is unknown."""
    NUMBER = "number"
    """As numbers, with a fraction or an exponent perhaps; text that is none is unknown."""
    DATE = "date"
    """As days, `2024-02-29` or `2024-2-29`, a time of day behind it not counting; text that is none is unknown."""
    TIMESTAMP = "timestamp"
    """As moments without a zone, `2024-02-29 12:00:00.5`, in microseconds; text that is none is unknown."""


class Op(Enum):
    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


Value = str | int | Decimal | datetime.date | datetime.datetime
"""str, int, Decimal, date and datetime go with the key types in their order."""


@dataclass(frozen=True, slots=True)
class Everything:
    """True for every partition."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The value of a key (its position from 0) compared with a constant."""

    key: int
    type: KeyType
    op: Op
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    """The value of a key (its position from 0) equals one of some constants."""

    key: int
    type: KeyType
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Like:
    r"""The value of a key (its position from 0), as text, matches a LIKE pattern, its escape character `\`.

    Case matters. A backslash at the very end of the pattern stands for itself.
    """

    key: int
    pattern: str


@dataclass(frozen=True, slots=True)
class And:
    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    parts: "tuple[Predicate, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    part: "Predicate"


Predicate = Everything | Comparison | In | Like | And | Or | Not

_OPERATORS: dict[Op, Callable[[Any, Any], ColumnElement[bool]]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}

# Every cast is guarded by one of these, so none can fail. Hive's integers have up to 19 digits.
_INTEGER = "^[+-]?[0-9]{1,38}$"
_NUMBER = r"^[+-]?([0-9]{1,38}(\.[0-9]{0,38})?|\.[0-9]{1,38})([eE][+-]?[0-9]{1,3})?$"
_DAYS = (
    "(?!0000)[0-9]{4}"
    "-((0?[1-9]|1[0-2])-(0?[1-9]|1[0-9]|2[0-8])|(0?[13-9]|1[0-2])-(29|30)|(0?[13578]|1[02])-31)"
    "|(?!0000)([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-0?2-29"
)
_DATE = f"^({_DAYS})([ T].*)?$"
_TIMESTAMP = rf"^({_DAYS})([ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?)?$"
_DAY = "^[^ T]+"
_MICROSECONDS_LENGTH = len("2024-02-29 12:00:00.123456")


def to_sql(predicate: Predicate, values: ColumnElement[list[str]]) -> ColumnElement[bool]:
    """The condition on a column that holds partitions' values, text[] with collation "C"."""
    match predicate:
        case Everything():
            return true()
        case Comparison(key, type_, op, value):
            return _OPERATORS[op](_operand(values, key, type_), value)
        case In(key, type_, constants):
            return _operand(values, key, type_) == any_(literal(list(constants)))
        case Like(key, pattern):
            return _text(values, key).like(_complete(pattern), escape="\\")
        case And(parts):
            return and_(true(), *(to_sql(part, values) for part in parts))
        case Or(parts):
            return or_(False, *(to_sql(part, values) for part in parts))
        case Not(part):
            return not_(to_sql(part, values))


def _text(values: ColumnElement[list[str]], key: int) -> ColumnElement[str]:
    text: ColumnElement[str] = values[key + 1]  # arrays in SQL begin with 1
    return text


def _operand(values: ColumnElement[list[str]], key: int, type_: KeyType) -> ColumnElement[Any]:
    text = _text(values, key)
    match type_:
        case KeyType.STRING:
            return text
        case KeyType.INTEGRAL:
            return case((text.regexp_match(_INTEGER), cast(text, Numeric)))
        case KeyType.NUMBER:
            return case((text.regexp_match(_NUMBER), cast(text, Numeric)))
        case KeyType.DATE:
            return case((text.regexp_match(_DATE), cast(func.substring(text, _DAY), Date)))
        case KeyType.TIMESTAMP:
            moment = cast(func.substr(text, 1, _MICROSECONDS_LENGTH), DateTime)
            return case((text.regexp_match(_TIMESTAMP), moment))


def _complete(pattern: str) -> str:
    """A LIKE pattern without the lone backslash at the end that Postgres refuses."""
    trailing = len(pattern) - len(pattern.rstrip("\\"))
    return pattern + "\\" if trailing % 2 else pattern
