"""Tables that a query reads as streams: `STREAM(t)` and `STREAM t`, as Spark's definitions of flows have them.

Here they are tables like others: what has come since the last refresh is found in the same way for both.
"""

from collections.abc import Sequence

from sqlglot import TokenType
from sqlglot.tokenizer_core import Token

_BEFORE_A_TABLE = frozenset({TokenType.FROM, TokenType.JOIN})
_IN_A_NAME = frozenset({TokenType.VAR, TokenType.IDENTIFIER, TokenType.DOT})


def as_tables(tokens: Sequence[Token]) -> list[Token]:
    """A query's tokens, without those that say that a table is read as a stream."""
    found: list[Token] = []
    place = 0
    while place < len(tokens):
        length = _name_of_a_stream(tokens, place)
        if length and found and found[-1].token_type in _BEFORE_A_TABLE:
            in_brackets = tokens[place + 1].token_type is TokenType.L_PAREN
            first = place + 1 + in_brackets
            found += tokens[first : first + length]
            place = first + length + in_brackets
        else:
            found.append(tokens[place])
            place += 1
    return found


def _name_of_a_stream(tokens: Sequence[Token], place: int) -> int:
    """How many tokens the name has that follows STREAM; 0 where that doesn't stand, or isn't what it looks like."""
    if tokens[place].text.upper() != "STREAM" or tokens[place].token_type is not TokenType.VAR:
        return 0
    in_brackets = place + 1 < len(tokens) and tokens[place + 1].token_type is TokenType.L_PAREN
    first = end = place + 1 + in_brackets
    while end < len(tokens) and tokens[end].token_type in _IN_A_NAME and (end == first or _goes_on(tokens, end)):
        end += 1
    if in_brackets and (end == len(tokens) or tokens[end].token_type is not TokenType.R_PAREN):
        return 0
    return end - first


def _goes_on(tokens: Sequence[Token], place: int) -> bool:
    """Whether a token belongs to the name before it: a dot, or what follows one."""
    return TokenType.DOT in (tokens[place].token_type, tokens[place - 1].token_type)
