r"""Partition filters: converts a filter's text to a condition on the values of a table's partitions.

The key's type decides how a constant is compared with it, as in Hive's MetaStoreDirectSql and ExpressionTree.
Keys of type string, char and varchar are compared as text, integral ones as numbers, date and timestamp
as such; a constant of another kind is refused, and so are keys of other types.
`__HIVE_DEFAULT_PARTITION__` is compared as text whatever the key's type is.

LIKE has two dialects. Hive 4 asks its database for LIKE: `%`, `_`, and `\` before them. Hive 2.3 asks it
for JDOQL's matches, and Spark writes accordingly: `.*` for any characters, `.` for one. A pattern with
`.*` is read in the second way, any other in the first. Spark escapes nothing, so in the second a backslash is
just that; to Hive, `x\.*`, which Spark makes of "begins with `x\`", matches `x.*` alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import partial

from lake.protocol.formats.partition_names import DEFAULT_PARTITION, unescape
from lake.protocol.hive import FieldSchema, MetaException
from metastore.services.filters import grammar, hive_plan, kryo_expression
from metastore.services.filters.grammar import MAX_LIKES, AllOf, AnyOf, Condition, Expression, Negation
from metastore.services.model.patterns import check_like, regex_to_like
from metastore.store.engine.predicates import (
    And,
    Comparison,
    Everything,
    In,
    KeyType,
    Like,
    Not,
    Op,
    Or,
    Predicate,
    Value,
)

MAX_CONDITIONS = 5_000
"""Of a filter. Equalities of one key that are alternatives (`k = 1 or k = 2`, `k in (1, 2)`) count as one."""

_TYPES = {
    "string": KeyType.STRING,
    "char": KeyType.STRING,
    "varchar": KeyType.STRING,
    "tinyint": KeyType.INTEGRAL,
    "smallint": KeyType.INTEGRAL,
    "int": KeyType.INTEGRAL,
    "bigint": KeyType.INTEGRAL,
    "date": KeyType.DATE,
    "timestamp": KeyType.TIMESTAMP,
}
# How the conditions of an engine's planner compare, by the type of their constant.
_TYPES_OF_CONSTANTS: dict[type, KeyType] = {
    str: KeyType.STRING,
    int: KeyType.INTEGRAL,
    Decimal: KeyType.NUMBER,
    date: KeyType.DATE,
    datetime: KeyType.TIMESTAMP,
}


def parse(text: str | None, partition_keys: Sequence[FieldSchema]) -> Predicate:
    """The predicate that a filter's text states; an empty or blank one selects everything.

    Raises MetaException if the text is no filter (see filter_syntax), names a key the table doesn't
    have, compares a key with a constant that doesn't go with it, or has more than MAX_CONDITIONS
    conditions, or MAX_LIKES of them with LIKE, or a pattern beyond the bounds of `patterns`.
    """
    expression = grammar.parse(text)
    if expression is None:
        return Everything()
    return _checked(_predicate(expression, partial(_comparison, partition_keys)))


@dataclass(frozen=True, slots=True)
class Estimate:
    """The partitions that an expression may select.

    `at_most`: it selects no others. `unclear`: the part that can't be evaluated here; None if it selects all of these.
    """

    at_most: Predicate
    unclear: str | None = None


def parse_expression_bytes(data: bytes, partition_keys: Sequence[FieldSchema]) -> Estimate:
    """What a partition expression selects: the one of Hive's planner, or a filter's text in UTF-8.

    Hive serialises the expressions by which it prunes and drops partitions; see kryo_expression.

    Hive 4 sends text to drop partitions when it repairs a table (MSCK): `dt='2024-01-01' AND
    hr='5'`, whatever the keys' types, values escaped as in a partition's name. They mean exactly that
    partition. So here equality with a string compares text, unescaped, with keys of every type.
    Everything else is as in `parse`.

    Raises MetaException as `parse` does for text, if the expression names a key the table doesn't have, or has more
    than MAX_CONDITIONS conditions or too costly patterns, and if the bytes are neither or say nothing.
    """
    if hive_plan.is_expression(data):
        planned = kryo_expression.parse(data)
        if planned.at_most is None:
            return Estimate(Everything(), planned.unclear)
        return Estimate(_checked(_predicate(planned.at_most, partial(_typed, partition_keys))), planned.unclear)
    try:
        expression = grammar.parse(data.decode())
    except UnicodeDecodeError:
        expression = None
    if expression is None:
        raise MetaException("Failed to deserialize expression - ExprNodeDesc not present")
    return Estimate(_checked(_predicate(expression, partial(_name_comparison, partition_keys))))


def _predicate(expression: Expression, leaf: Callable[[Condition], Predicate]) -> Predicate:
    match expression:
        case Condition():
            return leaf(expression)
        case AllOf(parts):
            return And(tuple(_predicate(part, leaf) for part in parts))
        case AnyOf(parts):
            return _either(_predicate(part, leaf) for part in parts)
        case Negation(part):
            return Not(_predicate(part, leaf))


def _either(parts: Iterable[Predicate]) -> Predicate:
    """The parts as alternatives, equalities of one key as one: many clients write IN as `k = 1 or k = 2`."""
    alternatives: list[Predicate] = []
    equal: dict[tuple[int, KeyType], dict[Value, None]] = {}
    for part in parts:
        if isinstance(part, Comparison) and part.op is Op.EQ:
            equal.setdefault((part.key, part.type), {})[part.value] = None
        else:
            alternatives.append(part)
    for (key, type_), values in equal.items():
        one_of = In(key, type_, tuple(values))
        alternatives.append(one_of if len(values) > 1 else Comparison(key, type_, Op.EQ, one_of.values[0]))
    return alternatives[0] if len(alternatives) == 1 else Or(tuple(alternatives))


def _checked(predicate: Predicate) -> Predicate:
    conditions = list(_conditions(predicate))
    if len(conditions) > MAX_CONDITIONS:
        raise MetaException(
            f"Error parsing partition filter; {len(conditions)} conditions are more than {MAX_CONDITIONS}"
        )
    likes = [each.pattern for each in conditions if isinstance(each, Like)]
    if len(likes) > MAX_LIKES:
        raise MetaException(f"Error parsing partition filter; {len(likes)} times LIKE are more than {MAX_LIKES}")
    for like in likes:
        check_like(like)
    return predicate


def _conditions(predicate: Predicate) -> Iterator[Predicate]:
    match predicate:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _conditions(part)
        case Not(part):
            yield from _conditions(part)
        case _:
            yield predicate


def _comparison(partition_keys: Sequence[FieldSchema], condition: Condition) -> Predicate:
    position, field = _find(partition_keys, condition.key)
    type_ = _TYPES.get((field.type or "").partition("(")[0].strip().lower())
    if type_ is None:
        raise _unsupported(f"key <{field.name}> is of type {field.type}")
    if condition.operator == "LIKE":
        if type_ is KeyType.STRING and isinstance(condition.value, str):
            return Like(position, _like_pattern(condition.value))
        raise _unsupported(f"LIKE compares key <{field.name}> of type {field.type} with {_shown(condition.value)}")
    op = Op(condition.operator)
    if condition.value == DEFAULT_PARTITION:
        return Comparison(position, KeyType.STRING, op, DEFAULT_PARTITION)
    value = _constant(type_, condition.value)
    if value is None:
        raise _unsupported(f"key <{field.name}> of type {field.type} is compared with {_shown(condition.value)}")
    return Comparison(position, type_, op, value)


def _name_comparison(partition_keys: Sequence[FieldSchema], condition: Condition) -> Predicate:
    if condition.operator not in ("=", "<>") or not isinstance(condition.value, str):
        return _comparison(partition_keys, condition)
    position, _ = _find(partition_keys, condition.key)
    return Comparison(position, KeyType.STRING, Op(condition.operator), unescape(condition.value))


def _typed(partition_keys: Sequence[FieldSchema], condition: Condition) -> Predicate:
    position, _ = _find(partition_keys, condition.key)
    if condition.operator == "LIKE":
        return Like(position, str(condition.value))
    type_ = _TYPES_OF_CONSTANTS[type(condition.value)]
    return Comparison(position, type_, Op(condition.operator), condition.value)


def _find(partition_keys: Sequence[FieldSchema], key: str) -> tuple[int, FieldSchema]:
    for position, field in enumerate(partition_keys):
        if (field.name or "").lower() == key.lower():
            return position, field
    raise MetaException(f"Specified key <{key}> is not a partitioning key for the table")


def _constant(type_: KeyType, value: Value) -> Value | None:
    """A constant as keys of a type are compared with it; None if they aren't."""
    match type_, value:
        case (KeyType.STRING, str()) | (KeyType.INTEGRAL, int()) | (KeyType.TIMESTAMP, datetime()):
            return value
        case KeyType.STRING, datetime():
            return value.isoformat(" ")
        case KeyType.STRING, date():
            return value.isoformat()
        case KeyType.DATE, str():
            return grammar.parse_day(value)
        case KeyType.DATE, date() if not isinstance(value, datetime):
            return value
        case KeyType.TIMESTAMP, str():
            return grammar.parse_timestamp(value) or _midnight(grammar.parse_date(value))
        case KeyType.TIMESTAMP, date():
            return _midnight(value)
        case _:
            return None


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime(day.year, day.month, day.day)


def _like_pattern(pattern: str) -> str:
    return regex_to_like(pattern.replace("\\", r"\\")) if ".*" in pattern else pattern


def _shown(value: Value) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def _unsupported(what: str) -> MetaException:
    """Hive's message, as far as it goes, and what is wrong with this filter."""
    return MetaException(f"Filtering is supported only on partition keys of type string, or integral types: {what}")
