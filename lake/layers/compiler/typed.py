"""Types whose values are equal only if they are the same value, so that a join by them says which rows belong together.

The BIGINT 1 is equal to the texts '1' and '01'; the INT 1 and the BIGINT 1 are one value.
"""

import re

from sqlglot import exp

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MOST_DIGITS = 38
_JSON = "map('timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\", 'ignoreNullFields', 'false')"
_WIDER = frozenset([("float", "double"), ("date", "timestamp")])
"""Types of which each value has one of its own in the other."""


def are_alike(one: str, other: str) -> bool:
    """Whether values of two types, by Spark's names, are equal only if they are the same value."""
    if one == other or (one, other) in _WIDER or (other, one) in _WIDER:
        return True
    digits = [_digits(each) for each in (one, other)]
    if None in digits:
        return False
    (whole, fraction), (others_whole, others_fraction) = ((found or (0, 0)) for found in digits)
    return max(whole, others_whole) + max(fraction, others_fraction) <= _MOST_DIGITS


def as_json(value: exp.Expr) -> exp.Expr:
    """The JSON of an array, a struct or a map. In a cast to STRING, NULL is the same as the text 'null'.

    Of the same map there may be several, by the order of its entries.
    """
    return exp.maybe_parse(f"to_json({value.sql('spark')}, {_JSON})", dialect="spark")


def has_map(kind: str) -> bool:
    """Whether values of a type have maps in them, which Spark doesn't compare."""
    return "map<" in kind.lower()


def _digits(kind: str) -> tuple[int, int] | None:
    """The digits that numbers of a type have before and after their point; None for other types."""
    if kind in _DIGITS:
        return _DIGITS[kind], 0
    found = _DECIMAL.fullmatch(kind)
    return None if found is None else (int(found[1]) - int(found[2]), int(found[2]))
