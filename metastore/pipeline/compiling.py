"""Compiles a project's layers, those that others read first. An analyser says which types their columns have."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from metastore.formats.commit_mode import COMMIT_MODE, CommitMode
from metastore.formats.keyed_table import BUCKET, MERGE_ENGINE, PRIMARY_KEY, SEQUENCE_FIELD
from metastore.pipeline import queries
from metastore.pipeline.building import Built, Table
from metastore.pipeline.checks import FAILED, Checks, checked, rejected
from metastore.pipeline.definitions import READINESS, REFRESH_POLICY, RefreshPolicy
from metastore.pipeline.deltas import Deltas, Relations, Side, Step
from metastore.pipeline.errors import BadDefinition, BadQuery
from metastore.pipeline.graph import Graph, Node, appended, cdc_query
from metastore.pipeline.layers import Layer, how, keyed, layer_of, recomputed, refresh

_OURS = frozenset({MERGE_ENGINE, SEQUENCE_FIELD})
"""Properties that a layer's table can't have: its rows are those of the query."""

_DEFINING = frozenset({REFRESH_POLICY, READINESS})
"""Properties of definitions that are none of tables."""


class Analyser(Protocol):
    """What knows the types of columns."""

    def declare(self, relation: str, types: Mapping[str, str]) -> None:
        """Makes an empty relation of some columns, by their types."""

    def types(self, steps: Sequence[Step], relation: str) -> Mapping[str, str]:
        """The types of a step's columns, by Spark's names. Raises BadQuery for steps that can't be."""

    def types_of_query(self, query: exp.Query) -> Mapping[str, str]:
        """The types of a query's columns. Raises BadQuery."""


@dataclass(frozen=True)
class Compiled:
    """A layer with all that a refresh and its table need.

    `types`: of the table's columns. `kind` is `incremental`, `by group` or `full`, for the `reasons`. `definition` is
    a digest of what the rows depend on.
    """

    node: Node
    layer: Layer
    types: Mapping[str, str]
    kind: str
    reasons: Sequence[str]
    checks: Checks
    definition: str

    @property
    def name(self) -> str:
        return self.layer.name

    def steps(self) -> list[tuple[str, str]]:
        """The steps of an increment for which all sources have changed, in Spark's SQL."""
        relations = {
            name: Relations(*(f"`{side} {name}`" for side in ("before", "after", "old", "new")))
            for name in self.layer.sources
        }
        deltas = Deltas(relations, self.layer.sources, "step")
        if self.kind == "full":
            recomputed(self.layer, deltas, f"`{self.name}`")
        else:
            refresh(self.layer, deltas, f"`{self.name}`")
        return [(each.name, each.query.sql("spark")) for each in deltas.steps]

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        given = {key: value for key, value in self.node.properties.items() if key.lower() not in _DEFINING}
        if self.node.waits_for_sources:
            given[COMMIT_MODE] = CommitMode.MANUAL
        return {BUCKET: "1", **given, PRIMARY_KEY: ",".join(self.layer.key)}


def compiled(
    graph: Graph, sources: Mapping[str, tuple[Table, Mapping[str, str]]], analyser: Analyser
) -> list[Compiled]:
    """The layers of a project, in the order of the graph.

    `sources`: the tables from outside, with the types of their columns. Raises BadDefinition.
    """
    tables = {name: table for name, (table, _) in sources.items()}
    for name, (table, types) in sources.items():
        _declare(analyser, name, types, table.columns)
    found = []
    for node in graph.nodes:
        try:
            made = _compiled(node, tables, graph.project.database, analyser)
        except BadQuery as error:
            raise BadDefinition(node.place, str(error)) from None
        _declare(analyser, made.name, made.types, (*made.layer.outputs,))
        tables[made.name] = Table(made.name, (*made.layer.outputs,), made.layer.known_by, made.layer.non_null)
        found.append(made)
    return found


def analysed(name: str) -> str:
    """The relation by which a table is known when queries are analysed."""
    return f"_analysed_{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _declare(analyser: Analyser, name: str, types: Mapping[str, str], columns: Sequence[str]) -> None:
    """Makes a table known to the analyser, and what queries see of it by `*`."""
    analyser.declare(analysed(name), types)
    analyser.declare(f"{analysed(name)}_seen", {each: types[each] for each in columns})


def _compiled(node: Node, tables: Mapping[str, Table], database: str, analyser: Analyser) -> Compiled:
    _check_properties(node)
    for name in node.reads:
        if name not in tables:
            raise BadQuery(f"there is no table {name}")
    tree = node.query
    read = {name: tables[name] for name in node.reads}
    if node.appends:
        tree = appended(node.appends, read, database)
    elif node.flow is not None:
        [(name, source)] = read.items()
        tree = cdc_query(node.flow, source.columns, source.key, database)
        hidden = tuple(each for each in source.key or () if each not in source.columns)
        read = {name: dataclasses.replace(source, columns=(*source.columns, *hidden))}
    assert tree is not None
    built = keyed(queries.built(tree, read, database))
    types = _types(built, node, analyser)
    declared = tuple(each.strip().lower() for each in node.properties.get(PRIMARY_KEY, "").split(",") if each.strip())
    if node.is_quarantine:
        made, checks = rejected(built, node.expectations)
        types = {**types, FAILED: "string"}
    else:
        made, checks = checked(built, node.expectations)
    layer = layer_of(node.name, made, types, node.partitions, declared)
    kind, reasons = how(built.operator)
    if node.policy is RefreshPolicy.FULL:
        kind, reasons = "full", [f"{REFRESH_POLICY} is full", *reasons]
    elif node.policy is RefreshPolicy.INCREMENTAL_STRICT and kind == "full":
        raise BadQuery(f"{REFRESH_POLICY} is {node.policy}, and it can't be computed by increments: {reasons[0]}")
    columns = {name: types[column] for name, column in layer.outputs.items()}
    columns |= {name: "string" for name in layer.columns if name not in columns}
    if untyped := [name for name, kind in columns.items() if "void" in kind]:
        raise BadQuery(f"the column {untyped[0]} is NULL without a type: CAST it to one")
    # A flow's query is of our own making. It may order by a hidden key.
    suffix = "_seen" if node.flow is None else ""
    seen = queries.with_relations(tree, database, lambda name: analysed(name) + suffix)
    _check_like_spark(seen, columns, layer, analyser)
    conditions = [(each.condition, each.violation) for each in node.expectations]
    text = repr((tree.sql("spark"), columns, layer.key, conditions))
    return Compiled(node, layer, columns, kind, reasons, checks, hashlib.sha256(text.encode()).hexdigest()[:16])


def _types(built: Built, node: Node, analyser: Analyser) -> Mapping[str, str]:
    relations = {name: Relations(*[analysed(name)] * 4) for name in node.reads}
    deltas = Deltas(relations, [], "_types")
    step = deltas.rows(built.operator, Side.AFTER)
    return analyser.types(deltas.steps, step)


def _check_like_spark(query: exp.Query, columns: Mapping[str, str], layer: Layer, analyser: Analyser) -> None:
    """Raises BadQuery if Spark's analyser takes the query's text for something else than what was compiled."""
    expected = analyser.types_of_query(query)
    ours = {name: columns[name] for name in layer.outputs if name != FAILED}
    if dict(expected) != ours:
        wrong = sorted({*expected.items()} ^ {*ours.items()})
        named = ", ".join(f"{name} {kind}" for name, kind in wrong[:4])
        raise BadQuery(f"its increments would have other columns than Spark's answer has: {named}; use explicit casts")


def _check_properties(node: Node) -> None:
    for key in node.properties:
        if key.lower() in _OURS or key.lower().startswith("fields."):
            raise BadQuery(f"the property {key} isn't for layers: their rows are those of the query")
    readiness = node.properties.get(READINESS, "none").strip().lower()
    if readiness not in ("none", "sources"):
        raise BadQuery(f"{READINESS}={readiness[:50]}: expected none or sources")
    if node.waits_for_sources and not node.partitions:
        raise BadQuery("only partitions turn ready: PARTITIONED BY (…) gives the table some")
    if (
        node.waits_for_sources
        and node.properties.get(COMMIT_MODE, CommitMode.MANUAL).strip().lower() != CommitMode.MANUAL
    ):
        raise BadQuery(f"its partitions turn ready when those of its sources are: leave {COMMIT_MODE} out")
