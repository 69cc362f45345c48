r"""Patterns of names, for calls that list databases, tables and functions.

Hive documents `*` for any characters and `|` between alternatives. The other rules follow from its implementation: `*`
becomes `.*`, and JDOQL's `matches` of the result becomes SQL's LIKE. So `.` is any one character and `\.` is a dot. All
other characters are literal, also `_`, `%` and those of regular expressions. `.*`, which old clients send, matches
every name. HiveServer2 relies on this: it converts JDBC's `_` to `.` and `%` to `*`.

Patterns are case-insensitive. (Hive 4 forgets this in get_databases.) The whole pattern is stripped, its alternatives
are not: `a | b` matches no table.
"""

import re
from collections.abc import Callable

from lake.protocol.events import wildcards
from lake.protocol.hive import MetaException
from metastore.store.engine import name_patterns

# An escaped dot or backslash; any characters; one character.
_TOKENS = re.compile(r"\\[.\\]|\.\*|.", re.DOTALL)
_LIKE_TOKENS = re.compile(r"\\.|.", re.DOTALL)
_LIKE_SPECIAL = frozenset("\\_%")
# Java's String.trim: every character up to the space.
_BLANK = "".join(map(chr, range(0x21)))


MAX_LENGTH = 1 << 16
"""Characters of a pattern: enough for a thousand names."""
MAX_ALTERNATIVES = 1_000
"""Alternatives of a pattern."""
MAX_WILD_ALTERNATIVES = MAX_ALTERNATIVES // 10
"""Alternatives with wildcards. Each is tried on every name, while plain names use an index."""
MAX_LIKE_LENGTH = 1_024
"""Characters of one LIKE pattern."""
MAX_WILDCARDS = 32
"""`%` wildcards of one LIKE pattern."""


def like_patterns(pattern: str | None) -> list[str] | None:
    r"""The LIKE patterns (escape character `\`) of a pattern's alternatives; None if every name matches.

    They are lower-case. The list is never empty: a pattern that matches nothing, such as `""` or `|`, becomes the empty
    LIKE pattern. Raises MetaException if the pattern exceeds a limit.
    """
    if pattern is None:
        return None
    if len(pattern) > MAX_LENGTH:
        raise MetaException(f"a name pattern of {len(pattern)} characters is too long; {MAX_LENGTH} are allowed")
    # A database text can't contain NUL; such a name doesn't exist.
    parts = dict.fromkeys(pattern.strip(_BLANK).lower().split("|"))
    alternatives = [text for text in parts if "\0" not in text]
    if len(alternatives) > MAX_ALTERNATIVES:
        raise MetaException(
            f"a name pattern of {len(alternatives)} alternatives is too long; {MAX_ALTERNATIVES} are allowed"
        )
    likes = [regex_to_like(re.sub(r"\*+", ".*", text)) for text in alternatives] or [""]
    if (wild := sum(name_patterns.plain(like) is None for like in likes)) > MAX_WILD_ALTERNATIVES:
        raise MetaException(
            f"a name pattern of {wild} alternatives with * or . is too costly; {MAX_WILD_ALTERNATIVES} are allowed"
        )
    for like in likes:
        check_like(like)
    return None if "%" in likes else likes


def check_like(like: str) -> None:
    """Raises MetaException for a LIKE pattern that exceeds MAX_LIKE_LENGTH or MAX_WILDCARDS."""
    if len(like) > MAX_LIKE_LENGTH:
        raise MetaException(f"a pattern of {len(like)} characters is too long; {MAX_LIKE_LENGTH} are allowed")
    if (many := _LIKE_TOKENS.findall(like).count("%")) > MAX_WILDCARDS:
        raise MetaException(f"a pattern with {many} wildcards is too costly; {MAX_WILDCARDS} are allowed")


def literal(like: str) -> str | None:
    """The only text that a LIKE pattern matches; None if it has wildcards."""
    return re.sub(r"\\(.)", r"\1", like) if re.fullmatch(r"(?:\\.|[^%_\\])*", like, re.DOTALL) else None


def only_name(pattern: str | None) -> str | None:
    """The only name that a pattern matches, in lower case; None if it may match several, or none.

    Raises MetaException if the pattern exceeds a limit.
    """
    likes = like_patterns(pattern)
    return literal(likes[0]) if likes is not None and len(likes) == 1 else None


def matcher(pattern: str | None) -> Callable[[str], bool]:
    """A function that says whether a name matches a pattern, with the same result as LIKE in the database."""
    likes = like_patterns(pattern)
    if likes is None:
        return lambda name: True
    expressions = list(map(_expression, likes))
    return lambda name: any(each.fullmatch(name.lower()) is not None for each in expressions)


def _expression(like: str) -> re.Pattern[str]:
    """A regular expression that matches the same as a LIKE pattern with the escape character `\\`."""
    # Wildcards become characters that can't occur in a database's text, so that escaped ones stay literal.
    plain = "".join({"%": _MANY, "_": _ONE}.get(token, token[-1]) for token in _LIKE_TOKENS.findall(like))
    return wildcards.expression(plain, many=_MANY, one=_ONE)


_MANY, _ONE = "\ud800", "\ud801"


def regex_to_like(regex: str) -> str:
    r"""The LIKE pattern (escape character `\`) into which Hive converts JDOQL's `matches(regex)`.

    Only `.*`, `.`, `\.` and `\\` have their meaning in regular expressions (DataNucleus'
    RegularExpressionConverter). All other characters are literal.
    """
    return "".join(map(_like_token, _TOKENS.findall(regex)))


def _like_token(token: str) -> str:
    if token == ".*":
        return "%"
    if token == ".":
        return "_"
    literal = token[-1]
    return f"\\{literal}" if literal in _LIKE_SPECIAL else literal
