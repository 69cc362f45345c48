r"""Name patterns, as clients list databases, tables and functions with them.

Hive documents `*` for any characters and `|` between alternatives. What it does beyond that follows from
how it asks its database: `*` becomes `.*`, and JDOQL's `matches` of the result becomes SQL's LIKE. So `.` is
any one character, `\.` a dot, and everything else stands for itself: `_`, `%` and the signs of regular
expressions have no meaning. That also makes `.*`, which old clients send for everything, match every name.
HiveServer2 counts on all of this: it turns JDBC's `_` into `.` and `%` into `*`.

Case doesn't matter: Hive lower-cases most patterns, and its names are lower-case; where Hive 4 forgot to
(get_databases), we don't. The whole pattern is trimmed, its alternatives are not: `a | b` names no table.
"""

import re

from metastore.wire.hive import MetaException

# A backslash before a dot or a backslash, any characters, one character, one that means itself.
_TOKENS = re.compile(r"\\[.\\]|\.\*|.", re.DOTALL)
_LIKE_SPECIAL = frozenset("\\_%")
# Java's String.trim: every character up to the space.
_BLANK = "".join(map(chr, range(0x21)))


MAX_LENGTH = 1 << 16
"""Of a pattern, in characters: room for a thousand names."""


def like_patterns(pattern: str | None) -> list[str] | None:
    r"""The LIKE patterns (escape character `\`) of which a name must match one; None if every name matches.

    The patterns are lower-case. The list is never empty: a pattern that matches nothing, such as `""` or `|`,
    is the empty LIKE pattern, which only the empty name would match. Raises MetaException if the pattern is longer
    than MAX_LENGTH.
    """
    if pattern is None:
        return None
    if len(pattern) > MAX_LENGTH:
        raise MetaException(f"a name pattern of {len(pattern)} characters is too long; {MAX_LENGTH} are allowed")
    # A database text can't contain NUL; such a name doesn't exist.
    alternatives = [text for text in pattern.strip(_BLANK).lower().split("|") if "\0" not in text]
    likes = [regex_to_like(text.replace("*", ".*")) for text in alternatives] or [""]
    return None if "%" in likes else likes


def matches(pattern: str | None, name: str) -> bool:
    """Whether a name matches a pattern; what a database answers for `like_patterns`."""
    likes = like_patterns(pattern)
    return likes is None or any(_like_matches(like, name.lower()) for like in likes)


def regex_to_like(regex: str) -> str:
    r"""The LIKE pattern (escape character `\`) that Hive asks its database for JDOQL's `matches(regex)`.

    Only `.*`, `.`, `\.` and `\\` mean what they mean in a regular expression (DataNucleus'
    RegularExpressionConverter); all other characters stand for themselves.
    """
    return "".join(map(_like_token, _TOKENS.findall(regex)))


def _like_token(token: str) -> str:
    if token == ".*":
        return "%"
    if token == ".":
        return "_"
    literal = token[-1]
    return f"\\{literal}" if literal in _LIKE_SPECIAL else literal


def _like_matches(like: str, text: str) -> bool:
    """What SQL says of `text LIKE like`, in time proportional to the product of the lengths."""
    tokens = re.findall(r"\\.|.", like, re.DOTALL)
    at = position = 0
    restart: tuple[int, int] | None = None  # behind the last `%`, and where its match ends so far
    while position < len(text):
        if at < len(tokens) and tokens[at] == "%":
            at += 1
            restart = (at, position)
        elif at < len(tokens) and tokens[at] in ("_", text[position], f"\\{text[position]}"):
            at += 1
            position += 1
        elif restart is not None:
            at, position = restart[0], restart[1] + 1
            restart = (at, position)
        else:
            return False
    return all(token == "%" for token in tokens[at:])
