"""Tumbling windows of event time, Spark's `window(at, '1 hour')`, as expressions whose increments are known.

A window becomes its start: the time, cut off to a multiple of its length since 1970. The end follows from it. Like
Spark's, a query with a window leaves out rows without a time.
"""

import itertools
import re

from sqlglot import TokenType, exp
from sqlglot.tokenizer_core import Token

from lake.layers.errors import BadQuery

_PART = re.compile(r"\s*([0-9]{1,9})\s*([a-z]+)", re.IGNORECASE)
_MICROSECONDS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_NAME = "window"


def as_functions(found: list[Token]) -> list[Token]:
    """A query's tokens, in which `window(` is a function's name also where sqlglot expects a clause."""
    for each, after in itertools.pairwise(found):
        if each.token_type is TokenType.WINDOW and after.token_type is TokenType.L_PAREN:
            each.token_type = TokenType.VAR
    return found


def rewrite(tree: exp.Query) -> bool:
    """Puts expressions in the place of windows. Returns whether there were any.

    Raises BadQuery for windows that aren't tumbling ones.
    """
    found = False
    for select in list(tree.find_all(exp.Select)):
        calls = [each for each in select.find_all(exp.Anonymous) if _is_window(each) and each.parent_select is select]
        if calls:
            _rewrite(select, calls)
            found = True
    return found


def _is_window(call: exp.Anonymous) -> bool:
    name = call.name.lower()
    if name in ("session_window", "window_time"):
        raise BadQuery(f"{name}() isn't supported: windows are window(time, length)")
    return name == _NAME


def _rewrite(select: exp.Select, calls: list[exp.Anonymous]) -> None:
    texts = {each.sql("spark").lower() for each in calls}
    if len(texts) > 1:
        raise BadQuery("a SELECT has one window of time: compute the other in a subquery")
    time, length = _arguments(calls[0])
    start = _start(time, length)
    end = _plus(start, length)
    whole = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier("start"), expression=start.copy()),
            exp.PropertyEQ(this=exp.to_identifier("end"), expression=end.copy()),
        ]
    )
    parts = {"start": start, "end": end}
    for column in [each for each in select.find_all(exp.Column) if each.parent_select is select]:
        if column.table.lower() == _NAME and not column.db and column.name.lower() in parts:
            column.replace(_named(column, parts[column.name.lower()]))
        elif column.name.lower() == _NAME and not column.table:
            column.replace(_named(column, whole))
    for call in calls:
        field = call.parent
        if isinstance(field, exp.Dot) and field.this is call and field.expression.name.lower() in parts:
            field.replace(_named(field, parts[field.expression.name.lower()]))
        else:
            call.replace(start.copy() if _groups(call) else _named(call, whole))
    select.where(exp.not_(exp.Is(this=time.copy(), expression=exp.Null())), copy=False)


def _groups(call: exp.Expr) -> bool:
    """Whether rows are grouped by a window."""
    return call.find_ancestor(exp.Group, exp.Select).__class__ is exp.Group


def _named(place: exp.Expr, value: exp.Expr) -> exp.Expr:
    """An expression under the name that Spark gives to what stood there."""
    if not isinstance(place.parent, exp.Select) or place.arg_key != "expressions":
        return value.copy()
    name = place.expression.name if isinstance(place, exp.Dot) else place.name
    return exp.alias_(value.copy(), name)


def _arguments(call: exp.Anonymous) -> tuple[exp.Expr, int]:
    """A window's time, and its length in microseconds."""
    given = call.expressions
    if (len(given) == 3 and given[1].sql() != given[2].sql()) or not 2 <= len(given) <= 3:
        raise BadQuery("windows that overlap aren't supported: give window(time, length)")
    length = given[1]
    if not isinstance(length, exp.Literal) or not length.is_string:
        raise BadQuery("the length of a window is a text such as '1 hour'")
    return given[0], _length(length.name)


def _length(text: str) -> int:
    rest, total = text.strip().lower().removeprefix("interval "), 0
    while rest:
        part = _PART.match(rest)
        unit = part[2].lower().removesuffix("s") if part else ""
        if part is None or unit not in _MICROSECONDS:
            raise BadQuery(f"a window of {text[:50]!r}: expected a length such as '10 minutes', '1 hour' or '1 day'")
        total += int(part[1]) * _MICROSECONDS[unit]
        rest = rest[part.end() :].strip()
    if not total:
        raise BadQuery("a window has a length of more than nothing")
    return total


def _start(time: exp.Expr, length: int) -> exp.Expr:
    size = exp.Literal.number(length)
    micros = exp.UnixMicros(this=time.copy())
    # The remainder of a time before 1970 is negative.
    within = exp.Mod(
        this=exp.paren(exp.Add(this=exp.Mod(this=micros.copy(), expression=size.copy()), expression=size.copy())),
        expression=size.copy(),
    )
    return exp.UnixToTime(this=exp.Sub(this=micros, expression=within), scale=exp.UnixToTime.MICROS)


def _plus(start: exp.Expr, length: int) -> exp.Expr:
    micros = exp.Add(this=exp.UnixMicros(this=start.copy()), expression=exp.Literal.number(length))
    return exp.UnixToTime(this=micros, scale=exp.UnixToTime.MICROS)
