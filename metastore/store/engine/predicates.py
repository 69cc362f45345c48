"""Conditions on partition values: the syntax tree, and its translation to SQL.

A condition is unknown, like SQL's NULL, if a value can't be converted, for example if a number is compared with a text
that is no number. Then neither the condition nor its negation selects the partition. Hive's MetaStoreDirectSql
compares in the same way, but there such a value can fail the whole statement.
"""

import datetime
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

from sqlalchemy import (
    Column,
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
    select,
    true,
)


class KeyType(Enum):
    """How values are compared. It may differ from the declared type of a key. Values that don't parse are unknown."""

    STRING = "string"
    """As text, by the bytes in UTF-8."""
    INTEGRAL = "integral"
    """As whole numbers; `007` is 7."""
    NUMBER = "number"
    """As decimal numbers, possibly with a fraction or an exponent."""
    DATE = "date"
    """As dates, `2024-02-29` or `2024-2-29`; a time of day after it is ignored."""
    TIMESTAMP = "timestamp"
    """As local times, `2024-02-29 12:00:00.5`, with microseconds."""


class Op(Enum):
    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


Value = str | int | Decimal | datetime.date | datetime.datetime
"""A constant. str, int, Decimal, date and datetime belong to the key types in this order."""


@dataclass(frozen=True, slots=True)
class Everything:
    """True for every partition."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares the value of a key with a constant. `key`: its position, from 0."""

    key: int
    type: KeyType
    op: Op
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    """The value of a key equals one of several constants. `key`: its position, from 0."""

    key: int
    type: KeyType
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Like:
    r"""The value of a key, as text, matches a LIKE pattern with the escape character `\`. `key`: its position, from 0.

    It is case-sensitive. A backslash at the end of the pattern is literal.
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

# Each cast is guarded by one of these regular expressions, so that it can't fail. Hive's integers have up to 19 digits.
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


FEW_CONVERSIONS = 8
"""Up to so many comparisons, each converts the value itself: that is easier to plan for Postgres."""

# Returns the converted value of a key, for comparisons.
_Operands = Callable[[int, KeyType], ColumnElement[Any]]


def to_sql(predicate: Predicate, values: Column[list[str]]) -> ColumnElement[bool]:
    """The SQL condition on a column with partitions' values, of type text[] with collation "C".

    Converting a value to a number or date is much slower than comparing it. With many comparisons, each value is
    therefore converted once.
    """
    conversions = [pair for pair in _compared(predicate) if pair[1] is not KeyType.STRING]
    if len(conversions) <= FEW_CONVERSIONS:
        return _condition(predicate, values, lambda key, type_: _operand(values, key, type_))
    # OFFSET keeps Postgres from inlining the subquery.
    once = (
        select(*(_operand(values, *pair).label(f"{pair[1].name}_{pair[0]}") for pair in dict.fromkeys(conversions)))
        .correlate(values.table)
        .offset(0)
        .subquery()
    )

    def known(key: int, type_: KeyType) -> ColumnElement[Any]:
        return _text(values, key) if type_ is KeyType.STRING else once.c[f"{type_.name}_{key}"]

    condition = _condition(predicate, values, known)
    return select(condition).select_from(once).correlate(values.table).scalar_subquery()


def _compared(predicate: Predicate) -> Iterator[tuple[int, KeyType]]:
    """The key and type of each comparison."""
    match predicate:
        case Comparison(key, type_) | In(key, type_):
            yield key, type_
        case And(parts) | Or(parts):
            for part in parts:
                yield from _compared(part)
        case Not(part):
            yield from _compared(part)


def _condition(predicate: Predicate, values: Column[list[str]], operand: _Operands) -> ColumnElement[bool]:
    match predicate:
        case Everything():
            return true()
        case Comparison(key, type_, op, value):
            return _OPERATORS[op](operand(key, type_), value)
        case In(key, type_, constants):
            return operand(key, type_) == any_(literal(list(constants)))
        case Like(key, pattern):
            return _text(values, key).like(_complete(pattern), escape="\\")
        case And(parts):
            return and_(true(), *(_condition(part, values, operand) for part in parts))
        case Or(parts):
            return or_(False, *(_condition(part, values, operand) for part in parts))
        case Not(part):
            return not_(_condition(part, values, operand))


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
    """A LIKE pattern whose single backslash at the end is escaped, since Postgres rejects it otherwise."""
    trailing = len(pattern) - len(pattern.rstrip("\\"))
    return pattern + "\\" if trailing % 2 else pattern
