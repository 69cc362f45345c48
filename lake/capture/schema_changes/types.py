"""Which types of Spark's have all values of which others."""

import math
import re

from lake.capture.schema_changes.model import Kind

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = dict(zip(_INTEGERS, (3, 5, 10, 20), strict=True))
"""Digits before the point of a decimal that has all values, by Spark's and Parquet's rules."""

_FLOATS = ("float", "double")
_TIMES = ("date", "timestamp_ntz", "timestamp")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


_LIMITED = re.compile(
    r"(?P<text>character varying|varchar|text)?(?P<time>(?:date)?time(?:stamp)?)?"
    r"(?:\((?P<limit>\d+)\))?(?P<zone> with.*)?"
)
"""Types of sources whose values stay as they are when the limit of characters, or of digits of seconds, grows."""


def kind_of(old: str, new: str, old_source: str = "", new_source: str = "") -> Kind:
    """What a change of the type is: WIDEN, NARROW or TYPE. Where both are one type, values may be others: TYPE.

    `old_source` and `new_source`: as the source writes them.
    """
    before, after = _limit(old_source), _limit(new_source)
    if old == new and before is not None and after is not None and before[0] == after[0]:
        return Kind.WIDEN if after[1] >= before[1] else Kind.NARROW
    if old != new and _holds(new, old):
        return Kind.WIDEN
    if old != new and (_holds(old, new) or _family(old) == _family(new) is not None):
        return Kind.NARROW
    return Kind.TYPE


def _limit(source: str) -> tuple[tuple[str, ...], float] | None:
    """What kind of values a type of `_LIMITED` has, and its limit; None for other types."""
    found = _LIMITED.fullmatch(source)
    if found is None or (found["text"] is None) == (found["time"] is None):
        return None
    usual = math.inf if found["time"] is None else 6
    return (found["time"] or "text", found["zone"] or ""), usual if found["limit"] is None else int(found["limit"])


def is_exact_number(type: str) -> bool:
    """Whether a type has whole numbers, or decimals."""
    return _digits(type) is not None


def _holds(type: str, other: str) -> bool:
    """Whether a type has all values of another one, which is read as it."""
    before, after = _digits(other), _digits(type)
    if before is not None and after is not None and not (type in _INTEGERS and other not in _INTEGERS):
        if type in _INTEGERS:
            return _INTEGERS.index(type) >= _INTEGERS.index(other)
        return after[0] >= before[0] and after[1] >= before[1]
    if type == "double":
        return other in ("float", "tinyint", "smallint", "int")
    return (other, type) == ("date", "timestamp_ntz")


def _digits(type: str) -> tuple[int, int] | None:
    """Digits before and behind the point; None for a type that has no exact numbers."""
    if type in _DIGITS:
        return _DIGITS[type], 0
    found = _DECIMAL.fullmatch(type)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else None


def _family(type: str) -> str | None:
    if _digits(type) is not None:
        return "number"
    return "float" if type in _FLOATS else "time" if type in _TIMES else None
