"""Steps in DuckDB's SQL: Spark's expressions by their texts, where DuckDB takes these for the same."""

from collections.abc import Iterator, Mapping
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
    """Queries that are computed as a whole: as they were written, if nothing is around what Spark takes so, or if these
    are the EXCEPT and INTERSECT of a query alone."""

    def __init__(self) -> None:
        self._found: list[tuple[str, Mapping[str, Any]]] = []

    def remembered(self, request: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        """An answer whose plans have numbers of this double's own."""
        queries = request["queries"]
        for one, query in zip(_united(answer["tree"], len(queries)), queries, strict=True):
            wholes = [*_wholes(one)]
            texts = [query] if wholes == [one] else _written(query) if wholes else []
            for place, each in enumerate(wholes):
                each["plan"] = len(self._found)
                self._found.append((texts[place] if len(texts) == len(wholes) else "", request))
        return answer

    def text(self, whole: Whole) -> str:
        """The query of a step that is computed as a whole."""
        query, request = self._found[whole.plan]
        if not query:
            raise ComputedOnSparkAlone("only whole queries, EXCEPT and INTERSECT are computed as a whole here")

        def replace(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Table):
                named = f"{node.db or request['database']}.{node.name}".lower()
                if named in whole.relations:
                    return relation(whole.relations[named], node.alias_or_name)
            return node

        tree = sqlglot.parse_one(query, read="spark").transform(replace)
        columns = ", ".join(whole.columns)
        return f"SELECT * FROM ({tree.sql('duckdb')}) AS o({columns})"


def _united(tree: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """The trees of so many queries in that of their UNION ALL, which Spark has as a chain of unions of two."""
    found = [tree]
    while len(found) < count:
        while found[0]["op"] == "project":
            found[0] = found[0]["input"]
        found[:1] = [each["input"] for each in found[0]["branches"]]
    return found


def _wholes(tree: Any) -> Iterator[dict[str, Any]]:
    """The parts of a tree that are computed as a whole, in the order of the query."""
    if isinstance(tree, dict) and tree.get("op") == "whole":
        yield tree
    elif isinstance(tree, dict | list):
        for each in tree.values() if isinstance(tree, dict) else tree:
            yield from _wholes(each)


def _written(query: str) -> list[str]:
    """The texts of the EXCEPT and INTERSECT in a query that aren't within others, in its order."""
    pruned = sqlglot.parse_one(query, read="spark").dfs(prune=lambda node: isinstance(node, exp.Except | exp.Intersect))
    return [each.sql("spark") for each in pruned if isinstance(each, exp.Except | exp.Intersect)]
