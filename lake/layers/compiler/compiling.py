"""Compiles a project's layers, those that others read first. An analyser says which types their columns have."""

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from lake.layers.compiler import queries, typed
from lake.layers.compiler.algebra import Operator
from lake.layers.compiler.building import Table
from lake.layers.compiler.checks import FAILED, Checks, checked, condition_of, rejected
from lake.layers.compiler.deltas import Deltas, Relations, Side, Step
from lake.layers.compiler.graph import Graph, Node, appended, cdc_query
from lake.layers.compiler.layers import Layer, how, layer_of, recomputed, refresh
from lake.layers.compiler.written import Written, refused
from lake.layers.definitions.model import READINESS, REFRESH_POLICY, RefreshPolicy
from lake.layers.errors import BadDefinition, BadQuery
from lake.protocol.formats.commit_mode import COMMIT_MODE, CommitMode
from lake.protocol.formats.keyed_table import BUCKET, MERGE_ENGINE, PRIMARY_KEY, SEQUENCE_FIELD

_OURS = frozenset({MERGE_ENGINE, SEQUENCE_FIELD})
"""Properties that a layer's table can't have: its rows are those of the query."""

_DEFINING = frozenset({REFRESH_POLICY, READINESS})
"""Properties of definitions that are none of tables."""


_ROW_KEYS = 2
"""The form of the texts in `ROW_KEY`. Layers that were computed in another form are computed as a whole once."""


class Analyser(Protocol):
    """What knows the types of columns."""

    def declare(self, relation: str, types: Mapping[str, str]) -> None:
        """Makes an empty relation of some columns, by their types."""

    def types(self, steps: Sequence[Step], relation: str) -> Mapping[str, str]:
        """The types of a step's columns, by Spark's names. Raises BadQuery for steps that can't be."""

    def types_of_query(self, query: exp.Query) -> Mapping[str, str]:
        """The types of a query's columns. Raises BadQuery."""

    def means(self, text: str, query: exp.Query) -> bool:
        """Whether a query means the same as the text that it was made from. Raises BadQuery."""

    def why_changing(self, text: str) -> str | None:
        """Why a query gives another result each time, for instance a function that it calls; None if it doesn't."""


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
    graph: Graph,
    sources: Mapping[str, tuple[Table, Mapping[str, str]]],
    analyser: Analyser,
    compared: set[str] | None = None,
) -> list[Compiled]:
    """The layers of a project, in the order of the graph.

    `sources`: the tables from outside, with the types of their columns. `compared`: digests of the texts that were
    found to mean what is computed, which are passed over; further ones are added. Raises BadDefinition.
    """
    tables = {name: table for name, (table, _) in sources.items()}
    types_of = {name: types for name, (_, types) in sources.items()}
    for name, (table, types) in sources.items():
        _declare(analyser, name, types, table.columns)
    found = []
    for node in graph.nodes:
        try:
            made = _compiled(node, tables, graph.project.database, _Comparing(analyser, compared, types_of))
        except BadQuery as error:
            raise BadDefinition(node.place, str(error)) from None
        _declare(analyser, made.name, made.types, (*made.layer.outputs,))
        types_of[made.name] = made.types
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


def _compiled(node: Node, tables: Mapping[str, Table], database: str, comparing: "_Comparing") -> Compiled:
    _check_properties(node)
    analyser = comparing.analyser
    for name in node.reads:
        if name not in tables:
            raise BadQuery(f"there is no table {name}")
    read = {name: tables[name] for name in node.reads}
    if node.flow is not None:
        [(name, source)] = read.items()
        written = [cdc_query(node.flow, source.columns, source.key, database)]
        hidden = tuple(each for each in source.key or () if each not in source.columns)
        read = {name: dataclasses.replace(source, columns=(*source.columns, *hidden))}
    else:
        written = [*node.appends] if node.query is None else [node.query]
    tree = appended(written, read, database)

    def types_of(operator: Operator, wanted: Sequence[Operator]) -> Sequence[Mapping[str, str]]:
        return _types(operator, wanted, node, analyser)

    built = typed.built(tree, read, database, types_of)
    [types] = types_of(built.operator, [built.operator])
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

    def seen(name: str) -> str:
        return analysed(name) + suffix

    _check_like_spark(queries.with_relations(tree, database, seen), columns, layer, analyser)
    for each in written:
        comparing.check_query(each, read, database, seen)
    if not node.is_quarantine:
        comparing.check_conditions(node, {name: columns[name] for name in layer.outputs})
    conditions = [(each.condition, each.violation) for each in node.expectations]
    text = repr((_ROW_KEYS, tree.sql("spark"), columns, layer.key, conditions))
    return Compiled(node, layer, columns, kind, reasons, checks, hashlib.sha256(text.encode()).hexdigest()[:16])


class _Comparing:
    """Compares what users have written with what is computed, and says what a text of theirs would change to."""

    def __init__(self, analyser: Analyser, known: set[str] | None, types: Mapping[str, Mapping[str, str]]) -> None:
        """`known`: digests of what has been compared. `types`: of the tables' columns, by table."""
        self.analyser = analyser
        self._known = set[str]() if known is None else known
        self._types = types

    def check_query(
        self, written: Written, tables: Mapping[str, Table], database: str, relation: Callable[[str], str]
    ) -> None:
        """Raises BadQuery unless a query's text means what is computed, and the same each time."""
        text = written.over(database, relation)
        digest = _digest(text, sorted((name, *self._types[name].items()) for name in tables))
        if digest in self._known:
            return
        if why := self.analyser.why_changing(text):
            raise BadQuery(f"{why} has another value at each refresh: store the time, or the value, in a source")
        for before, after in written.rewritings(tables, database, relation):
            if not self.analyser.means(before, after):
                raise refused(after, self._differing(before, after))
        self._known.add(digest)

    def _differing(self, before: str, after: exp.Query) -> list[str]:
        """The columns that differ; none if all do, so that it isn't they that are to blame."""
        names = after.named_selects
        found = [name for name in names if not self.analyser.means(*_column_of(name, before, after))]
        return [] if len(found) == len(names) > 1 else found

    def check_conditions(self, node: Node, types: Mapping[str, str]) -> None:
        """Raises BadQuery unless the conditions that a layer's rows must meet mean what is computed."""
        rows = f"{analysed(node.name)}_rows"
        names = {name: name for name in types}
        pending = []
        for each in node.expectations:
            digest = _digest("expected", each.condition, sorted(types.items()))
            if digest not in self._known:
                pending.append((each, digest))
        if pending:
            self.analyser.declare(rows, types)
        for each, digest in pending:
            text = f"SELECT ({each.condition}\n) AS met FROM {rows}"
            query = exp.select(exp.alias_(condition_of(each, names), "met")).from_(rows)
            if why := self.analyser.why_changing(text):
                raise BadQuery(f"the expectation {each.name}: {why} has another value at each refresh")
            if not self.analyser.means(text, query):
                raise BadQuery(f"the expectation {each.name}: {refused(query, ['met'])}")
            self._known.add(digest)


def _column_of(name: str, text: str, query: exp.Query) -> tuple[str, exp.Query]:
    """One column of a query, as it was written and as it is computed."""
    column = exp.column(name, quoted=True)
    return f"SELECT {column.sql('spark')} FROM (\n{text}\n)", exp.select(column).from_(query.subquery("t"))


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _types(operator: Operator, wanted: Sequence[Operator], node: Node, analyser: Analyser) -> list[Mapping[str, str]]:
    """The types of the columns of some operators that are below one."""
    relations = {name: Relations(*[analysed(name)] * 4) for name in node.reads}
    deltas = Deltas(relations, [], "_types")
    deltas.rows(operator, Side.AFTER)
    steps = [deltas.rows(each, Side.AFTER) for each in wanted]
    found = [analyser.types(deltas.steps, steps[0])]
    return [*found, *(analyser.types([], each) for each in steps[1:])]


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
