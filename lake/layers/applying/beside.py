"""Computes other definitions of layers beside their tables, which are refreshed and read meanwhile, and cuts over.

Each layer that changes gets a table beside its own. These are computed one after the other, and brought up to date
like any layers. Then one refresh gives the layers' own tables what the others have. What is beside is kept if this
ends early, and the next attempt goes on with it.
"""

import dataclasses
import math
import time
from collections.abc import Collection, Sequence

from lake.layers.applying.planning import Computes, LayerPlan, asked_in, reverted_in
from lake.layers.applying.stepping import Steps, last_step, step, steps_of
from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.graph import Graph, Node
from lake.layers.compiler.texts.restated import Part
from lake.layers.runner.claims import announced
from lake.layers.runner.definitions import Definitions, definition_of
from lake.layers.runner.layer_tables import PROJECT, if_there
from lake.layers.runner.records import latest_refresh
from lake.layers.runner.results import LayersFailed, RefreshFailed, RefreshResult
from lake.layers.runner.runner import Runner
from lake.protocol.errors import UserError
from lake.tables.lake import LakeTable

SUFFIX = "__beside"
"""How the names of tables beside layers end."""

_MARK = "pipeline.beside"
"""A property of tables beside layers: of which table they are, by its id or `new`, and a digest of the definition."""

_SHORT_SECONDS = 30.0
"""What is beside is brought up to date until that takes no longer: then the cut-over has little to compute."""

_SHORTER = 0.8
"""Or until it takes more than this share of the time before: then sources change as fast as that is done."""

_MOST_ROUNDS = 5

STEP_BYTES = 4 << 30
"""What a layer's table has of the partitions that are computed at a time, unless somebody says otherwise."""


class CannotComputeBeside(UserError):
    """Changed definitions can't be computed beside their tables. Nothing was written."""


def apply_beside(
    runner: Runner, plan: Sequence[LayerPlan], *, step_bytes: int = STEP_BYTES, share: float = 1.0
) -> RefreshResult:
    """Refreshes a project by the definitions of a plan. All that its changes compute is computed beside the tables.

    `step_bytes`: what a layer's table has of the partitions that are computed at a time, where these can be computed by
    themselves. `share`: of the time in which it computes, above 0 and up to 1; else it waits, but not with the
    cut-over.

    Raises what `Runner.refresh` does, and CannotComputeBeside.
    """
    names = [each.layer for each in plan if each.computes is not Computes.NOTHING]
    if names:
        result = _Beside(runner, names, step_bytes, share).apply(plan)
    else:
        result = runner.refresh(reverted=reverted_in(plan))
    for each in runner.graph.nodes:
        _clear(runner, each)
    return result


class _Beside:
    def __init__(self, runner: Runner, names: Collection[str], step_bytes: int, share: float) -> None:
        self._runner = runner
        self._names = frozenset(names)
        self._step_bytes = step_bytes
        self._share = share
        self._steps: dict[str, Steps] = {}
        for name in names:
            if (node := runner.graph.node(name)).is_captured:
                raise CannotComputeBeside(
                    f"{name} is a captured table, which follows its source: apply this without --beside"
                )
            if node.restates:
                raise CannotComputeBeside("--from computes a part of the rows, and does so in one refresh")
            if f"{name}{SUFFIX}" in (*runner.graph.sources, *(each.name for each in runner.graph.nodes)):
                raise CannotComputeBeside(
                    f"{name}{SUFFIX} is a table of the project itself: apply this without --beside"
                )

    def apply(self, plan: Sequence[LayerPlan]) -> RefreshResult:
        runner, project = self._runner, self._runner.graph.project
        changed = [each.layer for each in plan if each.changes and each.layer in self._names]
        claims = {name: lake for name in changed if (lake := _found(runner.table(name))) is not None}
        with runner.claiming(claims):
            graph = self._graph()
            self._compute(graph)
            runner.pause("beside")
            runner.progress("cutting over")
            beside = {name: self._table(name) for name in self._names}
            # By now another table may have a layer's name.
            own = [lake for name in beside if (lake := _found(runner.find(name))) is not None]
            with announced(own, project.name, runner.heartbeat_seconds):
                result = runner.refresh(asked_in(plan), reverted=reverted_in(plan), beside=beside)
        runner.pause("cut over")
        for lake in beside.values():
            _drop(lake)
        return result

    def _table(self, name: str) -> LakeTable:
        """The table beside a layer's own, or any other table."""
        return self._runner.find(f"{name}{SUFFIX}" if name in self._names else name)

    def _graph(self) -> Graph:
        """The layers, those among them that are computed beside. What is there of other tables and definitions is
        dropped.

        All other layers are there as well: what a query means depends on what is known of the layers that it reads,
        their hidden columns and keys, and of a table from outside that isn't known.
        """
        engine = self._runner.engine()
        try:
            found = self._runner.understood_by(engine)
            definitions = Definitions(engine)
            nodes = tuple(self._node(each, definitions) if each.name in self._names else _fixed(each) for each in found)
            graph = Graph(self._runner.graph.project, nodes)
            for made in found:
                if made.name in self._names and _found(self._runner.table(made.name)) is not None:
                    steps = steps_of(self._runner, graph, made, engine, self._step_bytes)
                    if steps is not None:
                        self._steps[made.name] = steps
        finally:
            engine.close()
        return graph

    def _node(self, made: Compiled, definitions: Definitions) -> Node:
        own = _found(self._runner.table(made.name))
        of = "new" if own is None else f"{own.id}"
        mark = f"{of} {made.defined.digest}"
        lake = _found(self._table(made.name))
        if lake is not None and (kept := _mark(lake, self._runner)) != mark:
            if kept is None:
                raise CannotComputeBeside(f"there is a table {lake.name}, which isn't beside a layer of this project")
            if kept.partition(" ")[0] != of or not _goes_by(lake, made, definitions):
                _drop(lake)
        # Sinks get the rows of the layer's own table.
        return dataclasses.replace(
            made.node, properties={**made.node.properties, _MARK: mark}, sink=None, is_fixed=True
        )

    def _compute(self, graph: Graph) -> None:
        """Computes the tables beside the layers, and brings them up to date."""
        nodes = [each for each in graph.nodes if each.name in self._names]
        for number, node in enumerate(nodes, 1):
            said = f"computing {node.name} beside its table, {number} of {len(nodes)}"
            self._fill(graph, node, said)
            self._runner.progress(said)
            self._refresh(self._after_steps(graph, node), [node.name])
        took = math.inf
        for _ in range(_MOST_ROUNDS):
            before, took = took, self._refresh(graph, self._names)
            if took <= _SHORT_SECONDS or took > _SHORTER * before:
                break

    def _fill(self, graph: Graph, node: Node, said: str) -> None:
        """Computes the table beside a layer in steps, if it has some; each is kept."""
        steps = self._steps.get(node.name)
        if steps is None or node.query is None:
            return
        database = graph.project.database
        for parts in steps.left(Part.of(node.query), _found(self._table(node.name))):
            end = parts.parts[-1].until
            self._runner.progress(f"{said}, {steps.column} {f'up to {end}' if end is not None else 'to its end'}")
            made = step(node, parts, database, _found(self._table(node.name)))
            self._refresh(graph.with_nodes({node.name: made}), [node.name])
            self._runner.pause("step")

    def _after_steps(self, graph: Graph, node: Node) -> Graph:
        """The layers, one of which has the rows of its query if its table was filled in steps."""
        last = last_step(node, _found(self._table(node.name)))
        return graph if last is node else graph.with_nodes({node.name: last})

    def _refresh(self, graph: Graph, names: Collection[str]) -> float:
        """Refreshes tables beside layers, and rests for the share that is to be left to others. Returns the seconds
        that the refresh took."""
        runner, began = self._runner.redirected(graph, self._table), time.monotonic()
        runner.progress, runner.pause = self._runner.progress, self._runner.pause
        try:
            runner.refresh(only=names)
        except LayersFailed as error:
            raise RefreshFailed(f"{error}. Nothing is cut over") from error
        took = time.monotonic() - began
        time.sleep(took * (1 - self._share) / self._share)
        return took


def _fixed(made: Compiled) -> Node:
    """A layer as it is understood, whatever becomes of its table meanwhile."""
    return dataclasses.replace(made.node, is_fixed=True)


def _goes_by(lake: LakeTable, made: Compiled, definitions: Definitions) -> bool:
    """Whether the rows of a table beside a layer are what its definition says, though its digest is another one: for
    instance, since a source has got a column."""
    latest = latest_refresh(lake)
    before = None if latest is None else definition_of(lake, latest[1])
    if latest is None or before is None or definitions.changes(made, lake, latest[1]):
        return False
    properties = {name: value for name, value in before.properties.items() if name != _MARK}
    return (properties, [*before.partitions]) == (dict(made.defined.properties), [*made.defined.partitions])


def _found(lake: LakeTable) -> LakeTable | None:
    return None if if_there(lake, LakeTable.schema) is None else lake


def _mark(lake: LakeTable, runner: Runner) -> str | None:
    """Of which table and definition a table is that is beside a layer; None for one that isn't."""
    properties = lake.schema().properties
    return properties.get(_MARK) if properties.get(PROJECT) == runner.graph.project.name else None


def _clear(runner: Runner, node: Node) -> None:
    """Drops what is beside a layer if the layer's own table is by that definition."""
    lake = _found(runner.find(f"{node.name}{SUFFIX}"))
    mark = None if lake is None else _mark(lake, runner)
    if lake is None or mark is None:
        return
    latest = latest_refresh(runner.find(node.name))
    if latest is not None and latest[1].kept is not None and mark.endswith(f" {latest[1].kept.digest}"):
        _drop(lake)


def _drop(lake: LakeTable) -> None:
    """Drops a table with its files."""
    named = lake.named
    lake.position()  # raises TableReplaced: what has its name by now isn't dropped
    lake.client.call(lambda thrift: thrift.drop_table(named.database, named.table, True))
