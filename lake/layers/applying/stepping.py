"""The steps in which a table is filled: each computes some partitions more of one query, and is kept.

A step is a definition that consists of parts: the same query for the rows that are there, and for those up to a value.
So it is computed as what is restated from a value on: these partitions alone, and an increment of those before.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from lake.layers.applying.restating import known_by
from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.graph import Graph, Node
from lake.layers.compiler.restating import copied, divided
from lake.layers.compiler.texts.restated import Part, Restated, can_be_restated_by, order, value_in_name
from lake.layers.errors import BadDefinition, BadQuery
from lake.layers.runner.definitions import definition_of
from lake.layers.runner.engine import Engine
from lake.layers.runner.records import latest_refresh
from lake.layers.runner.runner import Runner
from lake.protocol.formats.partition_names import DEFAULT_PARTITION, values_of
from lake.tables.lake import LakeTable


@dataclass(frozen=True)
class Steps:
    """Where the steps of a layer end: before values, in order, of a column of some type by Spark's name. The last step
    has all rows from the last value on, the first one those before `lowest`, too, and those whose column is NULL."""

    column: str
    type: str
    lowest: str
    ends: Sequence[str]

    def left(self, query: Part, lake: LakeTable | None) -> Iterator[Restated]:
        """What a table is to consist of, one after the other, until it has the query's rows. Nothing for a table that
        has them. `lake`: the table, None if it isn't there, which has come to any end by the same query."""
        since, ends = self.lowest, [*self.ends]
        if lake is not None and (standing := _standing(lake)) is not None:
            last = None if standing.parts is None else standing.parts.parts[-1].until
            if last is None:
                return
            since, ends = last, [each for each in ends if order(self.type, each) > order(self.type, last)]
        for end in [*ends, None]:
            both = [dataclasses.replace(query, until=since), dataclasses.replace(query, until=end)]
            yield Restated(self.column, self.type, both)
            since = end or since


def steps_of(runner: Runner, graph: Graph, made: Compiled, engine: Engine, size: int) -> Steps | None:
    """The steps in which a layer of a graph, as it is understood, is computed; None if it is in one piece.

    `size`: bytes of the layer's table, as it is, from which on partitions are a step. It has steps if it is partitioned
    by a column whose values have an order, its rows are known by that, too, and a table that it reads is partitioned by
    it: then a step reads its part of that alone.
    """
    node = made.node
    if node.query is None or node.is_quarantine or node.quarantine is not None or made.kind == "full":
        return None
    types = {name: made.defined.columns.get(name, "") for name in node.partitions}
    found = [name for name, kind in types.items() if can_be_restated_by(kind)]
    if not found:
        return None
    column = found[0]
    steps = _steps(column, types[column], _sizes(runner.table(made.name), column), size)
    if steps is None:
        return None
    parts = next(steps.left(Part.of(node.query), None))
    try:
        of_parts = dataclasses.replace(node.of_parts(parts, graph.project.database), is_fixed=True)
        others = runner.of(graph.with_nodes({node.name: of_parts})).understood_by(engine)
    except (BadQuery, BadDefinition):
        return None
    other = next(each for each in others if each.name == node.name)
    both = divided(other.layer, other.checks, parts)
    if other.kind == "full" or known_by(other) != known_by(made) or both is None:
        return None
    read = copied(both, column)
    is_partitioned = [table for table, its in read.items() if its is not None and its in _keys(runner.table(table))]
    return steps if is_partitioned else None


def step(node: Node, parts: Restated, database: str, lake: LakeTable | None) -> Node:
    """A layer as it is at a step, whose table has what was before it. Raises BadQuery."""
    standing = None if lake is None else _standing(lake)
    digests = frozenset() if standing is None else frozenset([standing.digest])
    return dataclasses.replace(node.of_parts(parts, database), restates=digests, is_fixed=True)


def last_step(node: Node, lake: LakeTable | None) -> Node:
    """A layer whose table has got the rows of its query by steps; the same for any other."""
    standing = None if lake is None else _standing(lake)
    if standing is None or standing.parts is None or standing.parts.parts[-1].until is not None:
        return node
    return dataclasses.replace(node, restates=frozenset([standing.digest]))


class _Standing(NamedTuple):
    """What a table consists of by its latest refresh, and the digest of that definition."""

    digest: str
    parts: Restated | None


def _standing(lake: LakeTable) -> _Standing | None:
    """None for a table that was never refreshed."""
    latest = latest_refresh(lake)
    if latest is None or latest[1].kept is None:
        return None
    found = definition_of(lake, latest[1])
    return _Standing(latest[1].kept.digest, None if found is None else found.parts)


def _keys(lake: LakeTable) -> list[str]:
    return [each.name.lower() for each in lake.schema().keys]


def _sizes(lake: LakeTable, column: str) -> Mapping[str, int]:
    """The bytes that a table has, by the values of a column that partitions it."""
    keys, found = _keys(lake), Counter[str]()
    position = lake.position().position
    if column in keys and position:
        for file in lake.snapshot(position, include_uncommitted=True):
            found[values_of(file.partition, keys)[keys.index(column)]] += file.size
    return found


def _steps(column: str, kind: str, sizes: Mapping[str, int], size: int) -> Steps | None:
    """Steps of some size at least. None for one step, and where the order of a value isn't known."""
    by_value = Counter[str]()
    try:
        for value, its in sizes.items():
            if value != DEFAULT_PARTITION:
                by_value[value_in_name(kind, value)] += its
    except BadQuery:
        return None
    ends, filled = [], sizes.get(DEFAULT_PARTITION, 0)
    values = sorted(by_value, key=partial(order, kind))
    for before, value in pairwise(values):
        filled += by_value[before]
        if filled >= size:
            ends.append(value)
            filled = 0
    return Steps(column, kind, values[0], ends) if ends else None
