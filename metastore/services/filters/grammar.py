"""Parses the text of Hive's filters, for partitions and for tables, into a tree of conditions.

The language is that of Hive 4 (PartitionFilter.g4), which includes that of 2.3 (Filter.g), with what
both miss: `NOT` before any condition, `IN` without parentheses round its key, any number of structs
after a multi-column `IN`, letters of any script in names, and `date` or `timestamp` as names.

Where Hive reads what it understands and ignores the rest (`a = 1 b = 2` selects by `a` alone, and `a =
1.5` as `a = 1`), this parser raises an error. As in Hive, a backslash escapes the quote after it, and stays in the
string.
"""

import datetime
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from lake.protocol.hive import MetaException

MAX_LENGTH = 1 << 19
"""Of a filter, in characters: room for tens of thousands of values."""
MAX_DEPTH = 50
"""How often AND, OR and NOT may alternate on the way to a condition. Parentheses alone don't count."""

MAX_LIKES = 100
"""In a filter: each is tried on every partition or table that is left."""

Literal = str | int | Decimal | datetime.date | datetime.datetime
"""What a key is compared with. No text of a filter has a Decimal."""
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What an operator becomes when its sides are exchanged; others stay as they are."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Compares a key, on the left, with a constant. `operator`: one of = <> < <= > >= LIKE."""

    key: str
    operator: str
    value: Literal


@dataclass(frozen=True, slots=True)
class AllOf:
    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    parts: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Negation:
    part: "Expression"


Expression = Condition | AllOf | AnyOf | Negation


def parse(text: str | None) -> Expression | None:
    """What a filter asks for; None, for none or an empty one, is everything.

    No part of an AllOf is one itself, likewise AnyOf and Negation, so the tree is at most MAX_DEPTH deep.

    Raises MetaException ("Error parsing partition filter; ...", for table filters too, as Hive does) if
    the text isn't a filter, is longer than MAX_LENGTH or nested deeper than MAX_DEPTH.
    """
    if not text:
        return None
    if not text.strip():
        raise _error("it is blank")
    if len(text) > MAX_LENGTH:
        raise _error(f"it is longer than {MAX_LENGTH} characters")
    return (_read_again if len(text) <= _WORTH_KEEPING else _read)(text)


def _read(text: str) -> Expression:
    if (unusable := _UNUSABLE.search(text)) is not None:
        raise _error(f"character U+{ord(unusable[0]):04X} at position {unusable.start() + 1}")
    try:
        tree: Any = _PARSER.parse(text)
    except UnexpectedToken as error:
        if error.token.type == "$END":
            raise _error("unexpected end") from None
        raise _unexpected(str(error.token), error.pos_in_stream) from None
    except UnexpectedCharacters as error:
        raise _unexpected(text[error.pos_in_stream :], error.pos_in_stream) from None
    except UnexpectedInput:
        raise _error("unexpected input") from None
    return _flatten(tree, MAX_DEPTH)


# Jobs ask the same again and again, and reading takes milliseconds.
_read_again = functools.lru_cache(maxsize=1_000)(_read)
_WORTH_KEEPING = 1_000
"""Characters: the longest filter whose tree is kept for the next time."""


def leaves(node: Expression) -> Iterator[Condition]:
    """The conditions that an expression is made of."""
    match node:
        case Condition():
            yield node
        case Negation(part):
            yield from leaves(part)
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from leaves(part)


def parse_date(text: str) -> datetime.date | None:
    """A day written as 2024-02-29, None if it is none."""
    if _DATE.fullmatch(text) is None:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None


def parse_day(text: str) -> datetime.date | None:
    """A day as Hive reads one from a string: it may lack zeros, and bear a time of day, which doesn't count."""
    if (match := _DAY.fullmatch(text)) is None:
        return None
    year, month, day = match.groups()
    return parse_date(f"{year}-{month:0>2}-{day:0>2}")


def parse_timestamp(text: str) -> datetime.datetime | None:
    """A moment written as 2024-02-29 12:00:00, with or without a fraction, of which microseconds count."""
    if _TIMESTAMP.fullmatch(text) is None:
        return None
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DAY = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})(?:[ T].*)?", re.DOTALL)
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?")
# What a database text can't hold.
_UNUSABLE = re.compile("[\0\ud800-\udfff]")
_INTEGERS = range(-(2**63), 2**63)


def _error(reason: str) -> MetaException:
    return MetaException(f"Error parsing partition filter; {reason}")


def _unexpected(text: str, position: int | None) -> MetaException:
    return _error(f"unexpected {_shorten(text)} at position {(position or 0) + 1}")


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 30 else f"{text[:30]}...")


def _flatten(node: Expression, depth: int) -> Expression:
    if isinstance(node, Condition):
        return node
    if depth == 0:
        raise _error(f"it is nested more than {MAX_DEPTH} levels deep")
    if isinstance(node, Negation):
        return Negation(_flatten(node.part, depth - 1))
    return type(node)(tuple(_flatten(part, depth - 1) for part in _operands(node)))


def _operands(node: AllOf | AnyOf) -> Iterator[Expression]:
    """The parts of a node and of the nodes of its kind below it, in order and without recursion."""
    pending: list[Expression] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, type(node)):
            pending.extend(reversed(part.parts))
        else:
            yield part


_GRAMMAR = r"""
?start: any_of
?any_of: all_of (_OR all_of)*
?all_of: term (_AND term)*
?term: NOT term                                                  -> negation
    | "(" any_of ")"
    | key OPERATOR literal                                       -> comparison
    | literal OPERATOR key                                       -> mirrored
    | key [NOT] _BETWEEN literal _AND literal                    -> between
    | key [NOT] _IN "(" literals ")"                             -> one_of
    | "(" key ")" [NOT] _IN "(" literals ")"                     -> one_of
    | "(" _STRUCT "(" keys ")" ")" [NOT] _IN "(" structs ")"     -> struct_of
keys: key ("," key)*
literals: literal ("," literal)*
structs: _struct ("," _struct)*
_struct: _CONST? _STRUCT "(" literals ")"
key: NAME | QUOTED_NAME | DATE | TIMESTAMP
literal: STRING                                                  -> string
    | [MINUS] INTEGER                                            -> integer
    | DATE STRING                                                -> date
    | DATE_VALUE                                                 -> date
    | TIMESTAMP STRING                                           -> timestamp
    | TIMESTAMP_VALUE                                            -> timestamp

OPERATOR: /<=>|==|=|<>|!=|<=|<|>=|>|like(?!\w)/i
MINUS: "-"
STRING: /'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"/s
TIMESTAMP_VALUE.4: /[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?!\w)/
DATE_VALUE.3: /[0-9]{4}-[0-9]{2}-[0-9]{2}(?!\w)/
INTEGER.2: /[0-9]+(?!\w)/
_AND.2: /and(?!\w)/i
_OR.2: /or(?!\w)/i
NOT.2: /not(?!\w)/i
_BETWEEN.2: /between(?!\w)/i
_IN.2: /in(?!\w)/i
_STRUCT.2: /struct(?!\w)/i
_CONST.2: /const(?!\w)/i
DATE.2: /date(?!\w)/i
TIMESTAMP.2: /timestamp(?!\w)/i
NAME: /\w+/
QUOTED_NAME: /`(?:[^`]|``)*`/
%ignore /[ \t\r\n]+/
"""


class _Reader(Transformer[Token, Expression]):
    """Makes the tree while the parser reads; that keeps a stack of its own, so no text makes us recurse."""

    def any_of(self, parts: list[Expression]) -> Expression:
        return _any_of(parts)

    def all_of(self, parts: list[Expression]) -> Expression:
        return _all_of(parts)

    def negation(self, children: list[Any]) -> Expression:
        return _negate(children[1])

    def comparison(self, children: list[Any]) -> Expression:
        key, operator, value = children
        return Condition(key, _operator(operator), value)

    def mirrored(self, children: list[Any]) -> Expression:
        value, operator, key = children
        operator = _operator(operator)
        if operator == "LIKE":
            raise MetaException(f"Value should be on the RHS for LIKE operator : Key <{key}>")
        return Condition(key, MIRRORED.get(operator, operator), value)

    def between(self, children: list[Any]) -> Expression:
        key, negated, low, high = children
        inside = AllOf((Condition(key, ">=", low), Condition(key, "<=", high)))
        return _negate(inside) if negated else inside

    def one_of(self, children: list[Any]) -> Expression:
        key, negated, values = children
        some = _any_of([_equal(key, value) for value in values])
        return _negate(some) if negated else some

    def struct_of(self, children: list[Any]) -> Expression:
        keys, negated, structs = children
        for values in structs:
            if len(values) != len(keys):
                raise _error(f"Struct key {keys} and value {values} sizes do not match.")
        some = _any_of([_all_of(list(map(_equal, keys, values))) for values in structs])
        return _negate(some) if negated else some

    keys = literals = structs = list

    def key(self, children: list[Token]) -> str:
        name = str(children[0])
        return name[1:-1].replace("``", "`") if name.startswith("`") else name

    def string(self, children: list[Token]) -> Literal:
        return str(children[0][1:-1])

    def integer(self, children: list[Any]) -> Literal:
        minus, digits = children
        # Counted before they are converted: Python refuses very long ones.
        if len(digits.lstrip("0")) > 19 or (value := int(f"{minus or ''}{digits}")) not in _INTEGERS:
            raise _error(f"{_shorten(digits)} is no 64-bit integer")
        return value

    def date(self, children: list[Token]) -> Literal:
        text = children[-1].strip("'\"")
        if (value := parse_date(text)) is None:
            raise _error(f"{_shorten(text)} is no date")
        return value

    def timestamp(self, children: list[Token]) -> Literal:
        text = children[-1].strip("'\"")
        if (value := parse_timestamp(text)) is None:
            raise _error(f"{_shorten(text)} is no timestamp")
        return value


def _equal(key: str, value: Literal) -> Condition:
    return Condition(key, "=", value)


def _all_of(parts: list[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _any_of(parts: list[Expression]) -> Expression:
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


def _negate(part: Expression) -> Expression:
    return part.part if isinstance(part, Negation) else Negation(part)


def _operator(token: str) -> str:
    if token == "<=>":
        raise _error("Unsupported comparison operator: <=>")
    return {"==": "=", "!=": "<>"}.get(token, token.upper())


_PARSER = Lark(_GRAMMAR, parser="lalr", transformer=_Reader())
