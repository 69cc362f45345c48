r"""Conditions on tables, for `tables.names`: by name, type, owner, last access and parameters.

Operators are = <> < <= > >= LIKE ILIKE; the pattern of the last two has `\` as its escape character.
"""

from collections.abc import Sequence
from datetime import date

from sqlalchemy import Column, ColumnElement, and_, cast, func, or_
from sqlalchemy.types import String

from metastore.store.schema.table import tables

Condition = ColumnElement[bool]
Constant = str | int | date


def _compare(column: Column[str] | Column[int] | ColumnElement[str], operator: str, value: Constant) -> Condition:
    if operator == "LIKE":
        return cast(column, String).like(str(value), escape="\\")
    if operator == "ILIKE":
        return cast(column, String).ilike(str(value), escape="\\")
    operators = {"=": "__eq__", "<>": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
    result: Condition = getattr(column, operators[operator])(value)
    return result


def name(operator: str, value: str) -> Condition:
    """On the table's name."""
    return _compare(tables.c.name, operator, value)


def kind(operator: str, value: str) -> Condition:
    """On the table's type, such as EXTERNAL_TABLE."""
    return _compare(tables.c.type, operator, value)


def owner(operator: str, value: str) -> Condition:
    """On the owner's name."""
    return _compare(tables.c.owner, operator, value)


def last_access(operator: str, value: int) -> Condition:
    """On the time of last access, in seconds since 1970."""
    return _compare(tables.c.last_access_time, operator, value)


def parameter(key: str, operator: str, value: str) -> Condition:
    """On a parameter's value; a table without the parameter never matches."""
    return _compare(tables.c.parameters[key].astext, operator, value)


def all_of(parts: Sequence[Condition]) -> Condition:
    return and_(*parts)


def any_of(parts: Sequence[Condition]) -> Condition:
    return or_(*parts)


def opposite(part: Condition) -> Condition:
    return ~func.coalesce(part, False)
