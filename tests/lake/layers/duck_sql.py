"""Steps in DuckDB's SQL: Spark's expressions by their texts, where DuckDB takes these for the same."""

from collections.abc import Mapping
from typing import Any

import sqlglot
from sqlglot import exp

from lake.layers.compiler.deltas import Whole, relation
from lake.layers.compiler.handles import is_handle


def duck_text(query: exp.Expr) -> str:
    """A step's query."""

    def replace(node: exp.Expr) -> exp.Expr:
        return _expression(node.meta["text"]) if is_handle(node) else node

    return query.copy().transform(replace).sql("duckdb")


def _expression(text: str) -> exp.Expr:
    return exp.paren(sqlglot.parse_one(text, read="spark").transform(_strict))


def _strict(node: exp.Expr) -> exp.Expr:
    """sqlglot takes casts of numbers with a suffix for ones that don't fail. DuckDB has no sums as wide as Spark's."""
    if isinstance(node, exp.TryCast):
        return exp.cast(node.this, node.to)
    return node


def duck_type(kind: str) -> str:
    """DuckDB's name of one of Spark's types."""
    return exp.DataType.build(kind, dialect="spark").sql("duckdb")


class ComputedOnSparkAlone(Exception):
    """A part of a query is computed as a whole, which this double can't."""


class Wholes:
    """Queries that are computed as a whole: as they were written, if nothing is around what Spark takes so."""

    def __init__(self) -> None:
        self._found: list[tuple[str, Mapping[str, Any]]] = []

    def remembered(self, request: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        """An answer whose plans have numbers of this double's own."""
        trees: list[Any] = [answer["tree"]]
        while trees:
            tree = trees.pop()
            if isinstance(tree, dict):
                trees += tree.values()
                if tree.get("op") == "whole":
                    tree["plan"] = len(self._found)
                    self._found.append((request["queries"][0] if tree is answer["tree"] else "", request))
            elif isinstance(tree, list):
                trees += tree
        return answer

    def text(self, whole: Whole) -> str:
        """The query of a step that is computed as a whole."""
        query, request = self._found[whole.plan]
        if not query:
            raise ComputedOnSparkAlone("only whole queries are computed as a whole here")

        def replace(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Table):
                named = f"{node.db or request['database']}.{node.name}".lower()
                if named in whole.relations:
                    return relation(whole.relations[named], node.alias_or_name)
            return node

        tree = sqlglot.parse_one(query, read="spark").transform(replace)
        columns = ", ".join(whole.columns)
        return f"SELECT * FROM ({tree.sql('duckdb')}) AS o({columns})"
