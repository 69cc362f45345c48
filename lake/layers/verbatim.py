"""Parses Spark's SQL so that functions and literals are computed as they were written.

sqlglot takes functions for their likes in other dialects, and may write them in another way: `log10(x)` becomes
`LOG(10, x)`, and `percentile_cont` an approximation. A call that it would write in another way stays a name with
arguments here, of which nothing else is known.
"""

from collections.abc import Callable
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

_SPARK = sqlglot.Dialect.get_or_raise("spark")

_KNOWN = (exp.Cast, exp.Struct)
"""Calls that may be written in another way. Determinism is judged by casts. The fields of a struct are named after
columns, and increments have other names for these."""

_WITH_UNITS = frozenset(["date_add", "dateadd", "date_diff", "datediff", "timestampadd", "timestampdiff"])
"""Functions of three arguments of which the first is a unit of time, without quotation marks."""


def tokens(text: str) -> list[Token]:
    """A text's tokens. Raises SqlglotError."""
    return _SPARK.tokenize(text)


def trees(found: list[Token], text: str) -> list[exp.Expr | None]:
    """The syntax trees of tokens of a text, one for each statement. Raises SqlglotError."""
    return _Parser(dialect=_SPARK).parse(found, text)


class _Parser(SparkParser):
    """Spark's parser, which keeps calls and texts that sqlglot would write in another way."""

    def reset(self) -> None:
        super().reset()
        self._read: dict[tuple[object, ...], tuple[exp.Expr | None, int]] = {}
        """Calls that were read, by where they begin: each is read twice, and so would be those within it."""

    def _parse_function_call(
        self,
        functions: dict[str, Callable[..., Any]] | None = None,
        anonymous: bool = False,
        optional_parens: bool = True,
        any_token: bool = False,
    ) -> exp.Expr | None:
        first = self._index
        place = (first, functions is None, anonymous, optional_parens, any_token)
        if place in self._read:
            found, end = self._read[place]
            self._advance(end - first)
            return None if found is None else found.copy()
        found = super()._parse_function_call(functions, anonymous, optional_parens, any_token)
        end = self._index
        if isinstance(found, exp.Struct):
            _name_fields(found)
        if found is not None and functions is None and not anonymous and _may_differ(found):
            self._retreat(first)
            written = self._as_written(end)
            if written is None:
                self._retreat(first)
                self._advance(end - first)
            else:
                found = _chosen(found, written)
        self._read[place] = found, end
        return None if found is None else found.copy()

    def _as_written(self, end: int) -> exp.Expr | None:
        """The call that comes next as a name with arguments; None if it isn't of that form, or ends elsewhere."""
        try:
            written = super()._parse_function_call(None, True)
        except ParseError:
            return None
        return written if self._index == end else None

    def _parse_primary(self) -> exp.Expr | None:
        first = self._curr
        found = super()._parse_primary()
        if first and first.token_type is TokenType.STRING and isinstance(found, exp.Concat):
            # Spark's lines read 'a''b' in two ways.
            return exp.Var(this=self._find_sql(first, self._prev))
        return found


def _may_differ(found: exp.Expr) -> bool:
    """Whether what was read for a call may be written in another way."""
    return not isinstance(_function(found), (exp.Anonymous, *_KNOWN))


def _chosen(found: exp.Expr, written: exp.Expr) -> exp.Expr:
    """What sqlglot made of a call, if it writes the same; else the call as it was written."""
    one, other = (each.sql("spark", comments=False, unsupported_level=ErrorLevel.IGNORE) for each in (found, written))
    if one == other:
        return found
    call = _function(written)
    if not isinstance(call, exp.Anonymous) or not isinstance(call.this, str):
        return found
    if call.name.lower() in _WITH_UNITS and len(call.expressions) == 3:
        call.expressions[0].replace(exp.Var(this=call.expressions[0].name))
    if isinstance(_function(found), exp.AggFunc):
        aggregate = exp.AnonymousAggFunc(this=call.this, expressions=call.expressions)
        if call is written:
            return aggregate
        call.replace(aggregate)
    return written


def _name_fields(struct: exp.Struct) -> None:
    """Gives the fields of a struct the names that Spark gives them, in upper and lower case as they were written."""
    for number, field in enumerate(struct.expressions, 1):
        if isinstance(field, exp.PropertyEQ) and isinstance(field.this, exp.Identifier):
            value = field.expression
            of_a_field = isinstance(value, exp.Dot) and field.this.name == f"col{number}"
            name = exp.to_identifier(value.name) if of_a_field else field.this.copy()
            name.meta["case_sensitive"] = True
            field.set("this", name)


def _function(call: exp.Expr) -> exp.Expr:
    """The function of a call that may have FILTER, WITHIN GROUP and a window around it."""
    while isinstance(call, exp.Window | exp.WithinGroup | exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        call = call.this
    return call
