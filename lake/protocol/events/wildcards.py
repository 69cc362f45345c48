"""Compiles wildcard patterns to regular expressions that can't backtrack without bound.

The text between two wildcards has a fixed length. Its first match can stay, since a later one only leaves less room for
the rest. So atomic groups (`(?>…)`) are enough, and matching takes at most the product of both lengths.
"""

import re


def expression(pattern: str, *, many: str = "*", one: str = "") -> re.Pattern[str]:
    """A regular expression for `fullmatch`.

    `many`: the wildcard for any characters. `one`: the wildcard for exactly one character; "" means that there is none.
    All other characters are literal.
    """
    first, *others = ("".join("." if each == one else re.escape(each) for each in part) for part in pattern.split(many))
    if not others:
        return re.compile(first, re.DOTALL)
    *middle, last = others
    found = "".join(f"(?>.*?{part})" for part in middle if part)
    return re.compile(f"{first}{found}.*{last}", re.DOTALL)
