r"""SQL conditions for names that match one of several LIKE patterns. The escape character is `\`."""

import re
from collections.abc import Sequence

from sqlalchemy import Column, ColumnElement, any_, false, literal, or_
from sqlalchemy.types import ARRAY, String

_TOKENS = re.compile(r"\\.|.", re.DOTALL)


def plain(pattern: str) -> str | None:
    """The only text that a pattern matches; None if it has wildcards."""
    tokens = _TOKENS.findall(pattern)
    return None if "%" in tokens or "_" in tokens else "".join(token[-1] for token in tokens)


def matching(column: Column[str], patterns: Sequence[str]) -> ColumnElement[bool]:
    """The condition that a name matches one of the patterns. Patterns without wildcards can use an index."""
    names: list[str] = []
    wild: list[str] = []
    for pattern in patterns:
        name = plain(pattern)
        if name is None:
            wild.append(pattern)
        else:
            names.append(name)
    named = column == any_(literal(names, ARRAY(String))) if names else false()
    return or_(named, *(column.like(pattern, escape="\\") for pattern in wild))
