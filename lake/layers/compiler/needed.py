"""Leaves out of a query's tree the columns that nothing needs, so that no step reads or keeps them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

Tree = dict[str, Any]
Keys = Mapping[str, Collection[str]]
"""By table, the columns that tell its rows apart: they are always needed."""


def needed(tree: Mapping[str, Any], wanted: Collection[str], keys: Keys) -> Tree:
    """A tree with what leads to some of its columns, and to the keys of rows."""
    return _Needed(keys).of(tree, frozenset(wanted))


def columns_of(values: Iterable[Any]) -> set[str]:
    """The columns that values of a tree are made of."""
    found: set[str] = set()
    for each in values:
        if isinstance(each, str):
            found.add(each)
        elif "column" in each:
            found.add(each["column"])
        else:
            found.update(each["columns"])
    return found


class _Needed:
    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def of(self, tree: Mapping[str, Any], wanted: frozenset[str]) -> Tree:
        made = dict(tree)
        match tree["op"]:
            case "source":
                key = self._keys[tree["table"]]
                kept = {mine: name for mine, name in tree["columns"].items() if mine in wanted or name in key}
                made["columns"] = kept or dict([*tree["columns"].items()][:1])
            case "project":
                made["columns"] = _some(tree["columns"], wanted)
                made["selected"] = [column for column, _ in tree["columns"]]
                made["input"] = self.of(tree["input"], _from(value for _, value in made["columns"]))
            case "filter":
                made["input"] = self.of(tree["input"], wanted | columns_of(tree["conditions"]))
            case "join":
                both = wanted | columns_of(tree["conditions"])
                made["left"], made["right"] = self.of(tree["left"], both), self.of(tree["right"], both)
            case "union":
                made |= self._union(tree, wanted)
            case "distinct":
                made["input"] = self.of(tree["input"], frozenset(tree["columns"]))
            case "aggregate":
                made |= self._aggregate(tree, wanted)
            case "window":
                own = columns_of([*tree["partition"], *(value for _, value in tree["functions"])])
                made["input"] = self.of(tree["input"], wanted | own)
            case "explode":
                made["input"] = self.of(tree["input"], wanted | columns_of([tree["generator"]]))
        return made

    def _union(self, tree: Mapping[str, Any], wanted: frozenset[str]) -> Tree:
        places = [number for number, column in enumerate(tree["columns"]) if column in wanted] or [0]
        branches = []
        for each in tree["branches"]:
            values = [each["values"][place] for place in places]
            branches.append({"input": self.of(each["input"], frozenset(values)), "values": values})
        return {"columns": [tree["columns"][place] for place in places], "branches": branches}

    def _aggregate(self, tree: Mapping[str, Any], wanted: frozenset[str]) -> Tree:
        results = _some(tree["results"], wanted)
        asked = columns_of(value for _, value in results)
        aggregates = [each for each in tree["aggregates"] if each[0] in asked]
        computed = {column for column, _ in tree["computed"]}
        values = [value for _, value in (*tree["computed"], *aggregates)]
        inputs = columns_of([*(each for each in tree["groups"] if each not in computed), *values])
        return {"results": results, "aggregates": aggregates, "input": self.of(tree["input"], frozenset(inputs))}


def _some(items: list[Any], wanted: frozenset[str]) -> list[Any]:
    """Those of some pairs of column and value whose column is wanted; one at least."""
    return [each for each in items if each[0] in wanted] or items[:1]


def _from(values: Iterable[Any]) -> frozenset[str]:
    return frozenset(columns_of(values))
