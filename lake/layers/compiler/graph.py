"""Puts a project's definitions in order: which layer reads which tables, and what must be computed before what."""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from lake.layers.compiler.texts.restated import Restated
from lake.layers.compiler.texts.written import Written, views_in
from lake.layers.definitions.model import (
    READINESS,
    AppendFlow,
    AutoCdcFlow,
    Expectation,
    Project,
    RefreshPolicy,
    Sink,
    StreamingTable,
    View,
    Violation,
)
from lake.layers.errors import BadDefinition, BadQuery, Place

START_AT, END_AT = "__start_at", "__end_at"
"""The columns of a version's range in tables with all versions, as Spark's AUTO CDC names them."""


@dataclass(frozen=True)
class Node:
    """A layer before its query is compiled. `reads`: the tables that it reads, `database.table`, in lower case.

    `flow` is set for a streaming table that applies a log; its query needs the columns of its source, and is made by
    `cdc_query`. `appends` are the queries of one that others fill, whose columns are matched by name.
    `is_quarantine`: its rows are those that the expectations keep out of the table that the query is of. `sink`: its
    rows go there, too. `is_captured`: it belongs to a captured table, whose columns follow those of the source.
    `restated`: the parts that it consists of, whose queries are among `appends`. `restates`: digests of the definitions
    from which it, and its quarantine, differ in the last of them alone. `is_fixed`: it is what somebody applies,
    whatever parts its table has by now.
    """

    name: str
    place: Place
    query: Written | None
    flow: AutoCdcFlow | None
    reads: frozenset[str]
    policy: RefreshPolicy
    comment: str | None
    properties: Mapping[str, str]
    partitions: tuple[str, ...]
    expectations: tuple[Expectation, ...]
    is_quarantine: bool = False
    appends: tuple[Written, ...] = ()
    sink: Sink | None = None
    is_captured: bool = False
    restated: Restated | None = None
    restates: frozenset[str] = frozenset()
    is_fixed: bool = False

    @property
    def waits_for_sources(self) -> bool:
        """Whether its partitions turn ready when those of its sources are."""
        holds = any(each.violation is Violation.HOLD for each in self.expectations)
        asked = self.properties.get(READINESS, "none").strip().lower() == "sources"
        return (holds or asked) and not self.is_quarantine

    @property
    def is_of_record(self) -> bool:
        """Whether it consists of parts only since its table does."""
        return self.restated is not None and not self.is_fixed and not self.is_quarantine

    @property
    def hint(self) -> str:
        """What is said beside an error of a layer that consists of parts by now; nothing of others."""
        if self.restated is None or self.restates:
            return ""
        return (
            f". {self.name} has this query from {self.restated.column} = {self.restated.since} on, and had another one"
            f" before, to which that may be due: metastore pipeline apply --whole {self.name} gives all rows this one"
        )

    def of_parts(self, parts: Restated, database: str) -> "Node":
        """The layer as it consists of parts. Raises BadQuery."""
        queries = parts.queries()
        reads = frozenset(name for query in queries for name in query.reads(database))
        return dataclasses.replace(self, query=None, appends=tuple(queries), reads=reads, restated=parts)

    @property
    def quarantine(self) -> "Node | None":
        """The table of the rows that this one leaves out for an expectation that says so; None without such."""
        if not any(each.violation is Violation.QUARANTINE for each in self.expectations):
            return None
        comment = f"rows of {self.name} that don't meet its expectations"
        return dataclasses.replace(self, name=f"{self.name}_quarantine", comment=comment, is_quarantine=True)


@dataclass(frozen=True)
class Graph:
    """The layers of a project, those that others read first, and the tables from outside that they read."""

    project: Project
    nodes: tuple[Node, ...]

    @property
    def sources(self) -> list[str]:
        """The tables that the project reads and doesn't make, by name."""
        own = {each.name for each in self.nodes}
        return sorted({read for each in self.nodes for read in each.reads} - own)

    def node(self, name: str) -> Node:
        """The layer of a name, with or without database. Raises BadDefinition."""
        full = self.full_name(name)
        for each in self.nodes:
            if each.name == full:
                return each
        raise BadDefinition(self.project.directory, f"the project has no table {name}")

    def full_name(self, name: str) -> str:
        """The name of a table with its database, in lower case."""
        return _full(name, self.project.database)

    def with_nodes(self, nodes: Mapping[str, Node]) -> "Graph":
        """The graph with other layers in place of those of their names, and of their quarantines. Raises BadDefinition
        for cycles."""
        found = {each.name: each for each in self.nodes}
        for name, node in nodes.items():
            if (old := found[name].quarantine) is not None:
                del found[old.name]
            found[name] = node
            if (fresh := node.quarantine) is not None:
                if fresh.name in found:
                    raise BadDefinition(node.place, f"{fresh.name} is the name of its quarantine, and of another table")
                found[fresh.name] = fresh
        return Graph(self.project, tuple(_in_order(found)))

    def below(self, tables: Collection[str]) -> list[str]:
        """The layers that read tables, directly or through others, those that others read first."""
        found: list[str] = []
        for each in self.nodes:
            if not each.reads.isdisjoint({*tables, *found}):
                found.append(each.name)
        return found


def graph_of(project: Project) -> Graph:
    """The layers of a project. Raises BadDefinition for names that are there twice, cycles, and bad queries."""
    defined = project.definitions
    if defined.captured:
        raise BadDefinition(
            defined.captured[0].place, "what captured tables are defined by is known by their raw table"
        )
    views = {each.name.lower(): each for each in defined.views if each.is_temporary}
    tables: list[View | StreamingTable] = [each for each in defined.views if not each.is_temporary]
    tables += defined.streaming_tables
    _check_names([*tables, *views.values()], project.database)
    trees = {name: _parsed(view) for name, view in views.items()}
    _check_views(trees, views)
    nodes = {}
    for each in tables:
        node = _view(each, trees, project) if isinstance(each, View) else _streaming(each, trees, project)
        nodes[node.name] = node
    for made in [found for node in nodes.values() if (found := node.quarantine) is not None]:
        if made.name in nodes:
            raise BadDefinition(made.place, f"{made.name} is the name of its quarantine, and of another table")
        nodes[made.name] = made
    _check_flows(defined.flows, project)
    return Graph(project, tuple(_in_order(nodes)))


def cdc_query(flow: AutoCdcFlow, columns: tuple[str, ...], key: tuple[str, ...] | None, database: str) -> Written:
    """The query of a flow, whose source has some columns and a key: what its changes come to.

    Of changes of one key with the same sequence, that wins whose key in the source is greater; without such a key, that
    whose other columns are. Raises BadDefinition.
    """
    wanted = [*flow.keys, *(flow.columns or ()), *flow.except_columns]
    if unknown := [each for each in wanted if each not in columns]:
        raise BadDefinition(flow.place, f"{flow.source} has no column {unknown[0]}")
    kept = [each for each in flow.columns or columns if each not in flow.except_columns]
    if missing := [each for each in flow.keys if each not in kept]:
        raise BadDefinition(flow.place, f"the key's column {missing[0]} must be kept")
    quoted = {each: f"`{each}`" for each in columns}
    keys = ", ".join(quoted[each] for each in flow.keys)
    ties = [f"`{each}`" for each in (key or columns) if each not in flow.keys]  # a key's columns may be hidden
    is_delete = f"NOT coalesce({flow.deletes}, false)" if flow.deletes else "true"
    selected = ", ".join(quoted[each] for each in kept)
    source = _full(flow.source, database)
    if flow.scd_type == 1:
        order = ", ".join(f"{each} DESC" for each in [f"({flow.sequence_by})", *ties])
        text = (
            f"SELECT {selected} FROM (SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY {order}) AS _number,"
            f" {is_delete} AS _kept FROM {source}) AS changes WHERE _number = 1 AND _kept"
        )
    else:
        order = ", ".join([f"({flow.sequence_by})", *ties])
        text = (
            f"SELECT {selected}, {START_AT}, {END_AT} FROM (SELECT *, {flow.sequence_by} AS {START_AT},"
            f" lead({flow.sequence_by}) OVER (PARTITION BY {keys} ORDER BY {order}) AS {END_AT}, {is_delete} AS _kept"
            f" FROM {source}) AS changes WHERE _kept"
        )
    try:
        return Written.parsed(text)
    except BadQuery as error:
        raise BadDefinition(flow.place, str(error)) from None


def _full(name: str, database: str) -> str:
    parts = name.lower().split(".")
    if len(parts) == 3 and parts[0] == "spark_catalog":
        parts = parts[1:]
    return ".".join(parts) if len(parts) > 1 else f"{database}.{parts[0]}"


def _check_names(found: list[View | StreamingTable], database: str) -> None:
    seen: dict[str, Place] = {}
    by_place = sorted(found, key=lambda each: (str(each.place.file), each.place.line))
    for each in by_place:
        if each.name.count(".") > 2:
            raise BadDefinition(each.place, f"{each.name} is no name of a table")
        name = _full(each.name, database)
        if name in seen:
            raise BadDefinition(each.place, f"{each.name} is defined twice, at {seen[name]}, too")
        seen[name] = each.place


def _parsed(view: View) -> Written:
    try:
        return Written.parsed(view.query)
    except BadQuery as error:
        raise BadDefinition(view.place, str(error)) from None


def _check_views(trees: Mapping[str, Written], views: Mapping[str, View]) -> None:
    """Raises BadDefinition for temporary views that read each other in a circle."""
    order = TopologicalSorter({name: views_in(tree, trees) for name, tree in trees.items()})
    try:
        order.prepare()
    except CycleError as error:
        names = error.args[1]
        raise BadDefinition(views[names[0]].place, f"temporary views read each other: {' -> '.join(names)}") from None


def _view(view: View, views: Mapping[str, Written], project: Project) -> Node:
    try:
        query = _parsed(view).with_views(views)
        reads = query.reads(project.database)
    except BadQuery as error:
        raise BadDefinition(view.place, str(error)) from None
    return Node(
        _full(view.name, project.database),
        view.place,
        query,
        None,
        frozenset(reads),
        view.policy,
        view.comment,
        view.properties,
        view.partitions,
        view.expectations,
        is_captured=view.is_captured,
    )


def _streaming(table: StreamingTable, views: Mapping[str, Written], project: Project) -> Node:
    name = _full(table.name, project.database)
    flows = [each for each in project.definitions.flows if _full(each.target, project.database) == name]
    if not flows:
        raise BadDefinition(table.place, f"{table.name} has no flows: CREATE FLOW … gives it one")
    logs = [each for each in flows if isinstance(each, AutoCdcFlow)]
    if logs and table.sink is not None:
        raise BadDefinition(logs[0].place, f"{table.name} is a sink: it takes flows that append")
    if logs and len(flows) > 1:
        raise BadDefinition(
            table.place, f"{table.name} has {len(flows)} flows: one that applies a log must be the only"
        )
    appends = [each for each in flows if isinstance(each, AppendFlow)]
    written = [_flows_query(each, views) for each in sorted(appends, key=lambda each: each.name)]
    reads = {each for query in written for each in query.reads(project.database)}
    reads |= {_full(each.source, project.database) for each in logs}
    return Node(
        name,
        table.place,
        None,
        logs[0] if logs else None,
        frozenset(reads),
        RefreshPolicy.AUTOMATIC,
        table.comment,
        table.properties,
        table.partitions,
        table.expectations,
        appends=tuple(written),
        sink=table.sink,
        is_captured=table.is_captured,
    )


def _flows_query(flow: AppendFlow, views: Mapping[str, Written]) -> Written:
    try:
        query = Written.parsed(flow.query).with_views(views)
        query.reads("")
    except BadQuery as error:
        raise BadDefinition(flow.place, str(error)) from None
    return query


def _check_flows(flows: list[AutoCdcFlow | AppendFlow], project: Project) -> None:
    names = {_full(each.name, project.database) for each in project.definitions.streaming_tables}
    for each in flows:
        if _full(each.target, project.database) not in names:
            raise BadDefinition(
                each.place, f"there is no streaming table or sink {each.target}: CREATE STREAMING TABLE makes a table"
            )


def _in_order(nodes: Mapping[str, Node]) -> list[Node]:
    order = TopologicalSorter({name: sorted(node.reads & nodes.keys()) for name, node in sorted(nodes.items())})
    try:
        return [nodes[name] for name in order.static_order()]
    except CycleError as error:
        names = error.args[1]
        raise BadDefinition(nodes[names[0]].place, f"tables read each other: {' -> '.join(names)}") from None
