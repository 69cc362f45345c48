"""Expressions of Spark's that are kept in its process. Steps name them by numbers; nobody parses them again."""

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

_PREFIX = "__handle_"


def handle(value: Mapping[str, Any]) -> exp.Expr:
    """An expression of Spark's, as its extension describes it in a tree."""
    # A literal is written as it is, is no column, and may stand wherever a condition may.
    made = exp.Literal(this=f"{_PREFIX}{value['handle']}", is_string=False)
    made.meta["text"] = value["sql"]
    return made


def value_of(value: Mapping[str, Any] | str) -> exp.Expr:
    """A column, or an expression, of a tree."""
    if isinstance(value, str):
        return exp.column(value)
    return exp.column(value["column"]) if "column" in value else handle(value)


def is_handle(node: exp.Expr) -> bool:
    """Whether a node of a step's query is an expression of Spark's."""
    return isinstance(node, exp.Literal) and node.name.startswith(_PREFIX)


def readable(query: exp.Expr) -> exp.Expr:
    """A query with the texts of Spark's expressions, for people. A text isn't all that an expression is."""

    def replace(node: exp.Expr) -> exp.Expr:
        return exp.Var(this=node.meta["text"]) if is_handle(node) else node

    return query.copy().transform(replace)
