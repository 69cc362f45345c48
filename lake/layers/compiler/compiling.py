"""Compiles a project's layers, those that others read first. An analyser says which types their columns have."""

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from lake.layers.compiler.algebra import Operator, UnionAll, walk
from lake.layers.compiler.building import Builder, Built, Table, numbered
from lake.layers.compiler.checks import FAILED, Checks, checked, rejected
from lake.layers.compiler.defined import Analyser, Defined, settings_of
from lake.layers.compiler.deltas import Deltas, Relations, Step
from lake.layers.compiler.graph import Graph, Node, cdc_query
from lake.layers.compiler.handles import readable, value_of
from lake.layers.compiler.layers import Layer, how, keyed, layer_of, recomputed, refresh
from lake.layers.compiler.stored_keys import NoTables, RowKeys, StoredKeys
from lake.layers.compiler.texts.written import Written
from lake.layers.definitions.model import READINESS, REFRESH_POLICY, Project, RefreshPolicy
from lake.layers.errors import BadDefinition, BadQuery
from lake.protocol.formats.commit_mode import COMMIT_MODE, CommitMode
from lake.protocol.formats.keyed_table import BUCKET, MERGE_ENGINE, PRIMARY_KEY, SEQUENCE_FIELD, column_names
from lake.protocol.formats.spark_names import quoted

_OURS = frozenset({MERGE_ENGINE, SEQUENCE_FIELD})
"""Properties that a layer's table can't have: its rows are those of the query."""

_DEFINING = frozenset({REFRESH_POLICY, READINESS})
"""Properties of definitions that are none of tables."""


ROW_KEYS = "pipeline.row-keys"
"""A property of layers' tables: what the texts in `ROW_KEY` are made of."""

_ROW_KEYS = 3
"""The form of the texts in `ROW_KEY`. Layers that were computed in another form are computed as a whole once."""


_UNSTORED = re.compile(
    r"(?:^|[<:,])(void|timestamp_ntz|interval|time|variant|geometry|geography|string collate)(?![:\w])"
)
"""Types that keyed tables don't have, anywhere in a type by Spark's name. A field of a struct may be called so."""

_UNNAMED = re.compile(r"(?:struct<|,)(?!\w*[A-Za-z_]\w*:)([^<>,:]*):", re.ASCII)
"""A field of a struct whose name can't stand in a type without quotes, such as those that `arrays_zip` numbers."""


@dataclass(frozen=True)
class Compiled:
    """A layer with all that a refresh and its table need.

    `types`: of the table's columns. `kind` is `incremental`, `by group` or `full`, for the `reasons`. `definition` is
    a digest of what the rows depend on, `defined` the same in words. `row_keys` is None for tables without `ROW_KEY`.
    """

    node: Node
    layer: Layer
    types: Mapping[str, str]
    kind: str
    reasons: Sequence[str]
    checks: Checks
    definition: str
    defined: Defined
    row_keys: RowKeys | None = None

    @property
    def name(self) -> str:
        return self.layer.name

    def steps(self) -> list[tuple[str, str]]:
        """The steps of an increment for which all sources have changed, in SQL for people."""
        relations = {
            name: Relations(*(f"`{side} {name}`" for side in ("before", "after", "old", "new")))
            for name in self.layer.sources
        }
        deltas = Deltas(relations, self.layer.sources, "step")
        if self.kind == "full":
            recomputed(self.layer, deltas, f"`{self.name}`")
        else:
            refresh(self.layer, deltas, f"`{self.name}`", merge=True)
        return [(each.name, _shown(each)) for each in deltas.steps]

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        given = {key: value for key, value in self.node.properties.items() if key.lower() not in _DEFINING}
        if self.node.waits_for_sources:
            given[COMMIT_MODE] = CommitMode.MANUAL
        if self.row_keys is not None:
            given[ROW_KEYS] = self.row_keys
        return {BUCKET: "1", **given, PRIMARY_KEY: ",".join(self.layer.key)}


def _shown(step: Step) -> str:
    """A step as people are shown it."""
    if step.whole is None:
        return readable(step.query).sql("spark")
    read = ", ".join(f"{table} as {relation}" for table, relation in step.whole.relations.items()) or "no table"
    return f"computed as a whole from {read}"


def compiled(
    graph: Graph,
    sources: Mapping[str, tuple[Table, Mapping[str, str]]],
    analyser: Analyser,
    stored: StoredKeys | None = None,
) -> list[Compiled]:
    """The layers of a project, in the order of the graph.

    `sources`: the tables from outside, with the types of their columns. `stored`: what knows the layers' tables. Raises
    BadDefinition.
    """
    known = dict(sources)
    found = []
    for node in graph.nodes:
        try:
            made = _compiled(node, known, graph.project, analyser, stored or NoTables())
        except BadQuery as error:
            raise BadDefinition(node.place, f"{error}{node.hint}") from None
        table = Table(made.name, (*made.layer.outputs,), made.layer.known_by, made.layer.non_null)
        known[made.name] = table, made.types
        found.append(made)
    return found


def _compiled(
    node: Node,
    known: Mapping[str, tuple[Table, Mapping[str, str]]],
    project: Project,
    analyser: Analyser,
    stored: StoredKeys,
) -> Compiled:
    database = project.database
    _check_properties(node)
    for name in node.reads:
        if name not in known:
            raise BadQuery(f"there is no table {name}")
    read = {name: known[name] for name in sorted(node.reads)}
    if node.flow is not None:
        # Its query is of our own making, and may order by columns of the key that `*` doesn't name.
        [(name, (source, kinds))] = read.items()
        written = [cdc_query(node.flow, source.columns, source.key, database)]
        hidden = tuple(each for each in source.key or () if each not in source.columns)
        read = {name: (dataclasses.replace(source, columns=(*source.columns, *hidden)), kinds)}
    else:
        written = [*node.appends] if node.query is None else [node.query]
    request = _request(written, read, database, node)
    answer = analyser.read(request)
    types: dict[str, str] = {**answer["types"]}
    tables = {name: table for name, (table, _) in read.items()}
    conditions = [value_of(each) for each in answer["conditions"]]
    built, layer, checks, row_keys = _as_stored(node, Builder(tables, types).built(answer), types, conditions, stored)
    if node.restated is not None and row_keys is RowKeys.FOUND and not _shares_keys(built.operator):
        raise BadQuery(
            "the rows of its parts aren't known by the same columns, as is so of UNION ALL and FULL JOIN without groups"
        )
    if layer.row_key is not None and node.restated is None and _shares_keys(built.operator):
        # Texts of keys in tables of earlier releases say of which branch a row is.
        other = Builder(tables, types, shares_keys=False).built(answer)
        built, layer, checks, row_keys = _as_stored(node, other, types, conditions, stored)
    kind, reasons = how(built.operator, layer.mergeable)
    if node.policy is RefreshPolicy.FULL:
        kind, reasons = "full", [f"{REFRESH_POLICY} is full", *reasons]
    elif node.policy is RefreshPolicy.INCREMENTAL_STRICT and kind == "full":
        raise BadQuery(f"{REFRESH_POLICY} is {node.policy}, and it can't be computed by increments: {reasons[0]}")
    columns = {name: types[column] for name, column in layer.outputs.items()}
    columns |= {name: "string" for name in layer.columns if name not in columns}
    _check_types(columns)
    digest = _digest(request, written, columns, (*layer.key, row_keys), node)
    defined = Defined(
        request["queries"],
        {name: request["views"][name] for name in sorted(request["views"])},
        database,
        request["tables"],
        [
            {**one, "violation": each.violation.value}
            for one, each in zip(request["conditions"], node.expectations, strict=True)
        ],
        columns,
        [*layer.key],
        None if row_keys is None else row_keys.value,
        _ROW_KEYS,
        settings_of(project.configuration),
        [*node.partitions],
        {name: node.properties[name] for name in sorted(node.properties)},
        node.is_quarantine,
        None if node.restated is None else node.restated.as_json(),
        {name: table.key and [*table.key] for name, table in tables.items()} if row_keys is RowKeys.FOUND else None,
    )
    return Compiled(node, layer, columns, kind, reasons, checks, digest, defined, row_keys)


def _shares_keys(operator: Operator) -> bool:
    return any(isinstance(each, UnionAll) and each.shares_key for each in walk(operator))


def _as_stored(
    node: Node, built: Built, types: dict[str, str], conditions: Sequence[exp.Expr], stored: StoredKeys
) -> tuple[Built, Layer, Checks, RowKeys | None]:
    """A query with a key, its layer and checks, and what its row keys are made of: as in the table that is there."""
    there = stored.of(node.name)
    made = keyed(built, types)
    layer, checks = _layer(node, made, types, conditions, () if there is None else there.columns)
    if layer.row_key is None:
        return made, layer, checks, None
    if made is not built:
        return made, layer, checks, RowKeys.NUMBERED
    if there is not None and there.is_hidden and there.row_keys is not RowKeys.FOUND:
        other = numbered(built, types)
        other_layer, other_checks = _layer(node, other, types, conditions, there.columns)
        if there.row_keys is RowKeys.NUMBERED or stored.are_numbered(other_layer):
            return other, other_layer, other_checks, RowKeys.NUMBERED
    return made, layer, checks, RowKeys.FOUND


def _layer(
    node: Node, built: Built, types: dict[str, str], conditions: Sequence[exp.Expr], stored: tuple[str, ...]
) -> tuple[Layer, Checks]:
    """The layer of a query, and its checks."""
    declared = column_names(node.properties.get(PRIMARY_KEY, ""))
    if node.is_quarantine:
        made, checks = rejected(built, node.expectations, conditions)
        types[FAILED] = "string"
    else:
        made, checks = checked(built, node.expectations, conditions)
    layer = layer_of(node.name, made, types, node.partitions, declared, stored)
    # Expectations are of all rows that are computed.
    return dataclasses.replace(layer, mergeable=None) if node.expectations else layer, checks


def _request(
    written: Sequence[Written], read: Mapping[str, tuple[Table, Mapping[str, str]]], database: str, node: Node
) -> dict[str, Any]:
    """What is asked of the analyser for a layer."""
    return {
        "queries": [each.text for each in written],
        "views": {name: view.text for each in written for name, view in each.views.items()},
        "database": database,
        "tables": {
            name: {
                "columns": ", ".join(f"{quoted(column)} {kind}" for column, kind in types.items()),
                "hidden": sorted(types.keys() - {*table.columns}),
            }
            for name, (table, types) in read.items()
        },
        "conditions": [{"name": each.name, "condition": each.condition} for each in node.expectations],
    }


def _digest(
    request: Mapping[str, Any],
    written: Sequence[Written],
    columns: Mapping[str, str],
    key: tuple[str | None, ...],
    node: Node,
) -> str:
    """A digest of what a layer's rows depend on. Blanks and comments of texts don't matter.

    `key`: the columns of the key, and what row keys are made of.
    """
    views = sorted((name, view.normal) for each in written for name, view in each.views.items())
    conditions = [(each.condition, each.violation) for each in node.expectations]
    text = repr((_ROW_KEYS, [each.normal for each in written], views, request["database"], columns, key, conditions))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _check_types(columns: Mapping[str, str]) -> None:
    """Raises BadQuery for a column of a type that no keyed table has."""
    for name, kind in columns.items():
        if (unnamed := _UNNAMED.search(kind)) is not None:
            said = f"the column {name} is {kind[:100]}: give its field {unnamed[1][:50]} a name of letters"
            raise BadQuery(f"{said}, by CAST or named_struct")
        if (found := _UNSTORED.search(kind)) is None:
            continue
        if found[1] == "void":
            raise BadQuery(f"the column {name} is NULL without a type: CAST it to one")
        raise BadQuery(f"the column {name} is {kind[:100]}, and tables of layers have no {found[1]}: CAST it")


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
