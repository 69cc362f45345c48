"""Takes back the latest change of layers' definitions, with rows that are current with the sources.

Records of refreshes keep whole definitions. So the one before the latest change is known, whatever the project's files
say. Its layers, and all that read them, are rolled back to what they were before the change, where that state can still
be read by the columns and keys that the tables have, and go on from there by increments. Else they are computed as a
whole. The instants that do so say that, so that no refresh takes the files' definitions again unasked: those of the
rollbacks, and those of refreshes, until one goes by another definition.
"""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lake.client.lake_types import Instant, Moment
from lake.layers.applying.planning import Computes, LayerPlan, Other, plan_of
from lake.layers.compiler.compiling import ROW_KEYS
from lake.layers.compiler.defined import Change, Comparer, Defined, changes_between, text_difference
from lake.layers.compiler.graph import Graph, Node
from lake.layers.compiler.texts.written import Written
from lake.layers.definitions.model import REFRESH_POLICY, Expectation, RefreshPolicy, Violation
from lake.layers.errors import BadQuery
from lake.layers.runner.definitions import Definitions, definition_of, in_force, left_behind
from lake.layers.runner.engine import Engine
from lake.layers.runner.records import latest_refresh, record_before, reverting_instant, standing_refreshes
from lake.layers.runner.results import RefreshResult
from lake.layers.runner.runner import Runner
from lake.layers.undo.restore import RestoredLayer, later_instants, rolling_back
from lake.protocol.errors import UserError
from lake.protocol.formats.keyed_table import PRIMARY_KEY
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import InstantConflict, SnapshotGone
from lake.tables.keyed_writes import committed
from lake.tables.lake import LakeTable

logger = logging.getLogger(__name__)


_OF_FILES = frozenset(
    {Change.UNKNOWN, Change.QUERY, Change.EXPECTATIONS, Change.SETTINGS, Other.NEW, Other.PROPERTIES, Other.RESTATED}
)
"""Changes of definitions that come from a project's files, and not from other layers or sources."""


class CannotRevert(UserError):
    """A layer's definition before its latest change isn't known, or can't be computed. Nothing was written."""


@dataclass(frozen=True)
class RevertedLayer:
    """A layer whose definition goes back to `before`. `since`: the first refresh by `now`, by which the table stands,
    None if the layer was reverted already. `difference`: from that one, as in a plan."""

    layer: str
    before: Defined
    since: Instant | None
    now: Defined
    difference: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """What comes back, as the command's JSON has it."""
        return {
            "table": self.layer,
            "changed_at": None if self.since is None else self.since.changed_at,
            "queries": list(self.before.queries),
            "views": dict(self.before.views),
            "expectations": [dict(each) for each in self.before.conditions],
            "difference": list(self.difference),
        }


@dataclass(frozen=True)
class Revert:
    """What it takes to revert layers.

    `graph`: the project with their definitions of before. `restored`: the tables that are rolled back first; none if
    all is computed, for the reason `why_whole`. `plans`: what becomes of all layers without that. `unapplied`: those
    among the reverted layers of which the files have yet another definition, which nobody has applied.
    """

    layers: Sequence[RevertedLayer]
    graph: Graph
    restored: Sequence[RestoredLayer]
    why_whole: str | None
    plans: Sequence[LayerPlan]
    unapplied: Collection[str] = ()

    @property
    def applies(self) -> Sequence[LayerPlan]:
        """Other layers of which the files have a definition that nobody has applied: the refresh does, too. Captured
        ones follow their sources, and aren't named."""
        reverted = {each.layer for each in self.layers}
        reverted |= {one.name for name in reverted if (one := self.graph.node(name).quarantine) is not None}
        reverted |= {node.name for node in self.graph.nodes if node.is_captured}
        return [
            each
            for each in self.plans
            if each.layer not in reverted and each.computes is not Computes.NOTHING and _OF_FILES & {*each.changes}
        ]

    def as_json(self) -> dict[str, Any]:
        """The plan as the command's JSON has it."""
        return {
            "tables": [each.as_json() for each in self.layers],
            "rolled_back": {each.layer: len(each.instants) for each in self.restored},
            "why_whole": self.why_whole,
            "applies": {each.layer: [change.value for change in each.changes] for each in self.applies},
            "unapplied": sorted(self.unapplied),
        }


def plan_revert(runner: Runner, layers: Collection[str] = ()) -> Revert:
    """What it takes to take back the latest change of layers' definitions.

    `layers`: some of the project's, by name; by default those whose definitions changed last, at one moment. Layers
    that were reverted before stay so. Raises CannotRevert, BadDefinition, NoSource.
    """
    own = {each.name: each for each in runner.given.nodes if not each.is_quarantine}
    wanted = {runner.given.node(name).name for name in layers}
    if unfit := sorted(wanted - own.keys()):
        raise CannotRevert(f"{unfit[0]} is a quarantine: name the table to which it belongs")
    engine = runner.engine()
    try:
        chosen = _chosen(runner, own, wanted, engine)
        nodes = {each.layer: _node_before(own[each.layer], each.before, runner.given) for each in chosen}
        for name, node in nodes.items():
            if (left := left_behind(node.reads, runner.given, runner.table)) is not None:
                raise CannotRevert(
                    f"{name} read {left} before, which the project doesn't make any more, so that nobody refreshes it:"
                    " define that table again in the project's files, and revert then"
                )
        graph = runner.given.with_nodes(nodes)
        changed = [each for each in chosen if each.since is not None]
        restored, why_whole = _restored(runner, graph, changed, engine)
    finally:
        engine.close()
    plans = plan_of(runner.of(graph))
    unapplied = [each.layer for each in chosen if each.since is not None and not _is_of(own[each.layer], each.now)]
    found = Revert(chosen, graph, restored, why_whole, plans, unapplied)
    if restated := [each.layer for each in found.applies if Other.RESTATED in each.changes]:
        raise CannotRevert(
            f"the project's files have another definition of {restated[0]}, which nobody has applied, and which would"
            " be for all rows, also those of earlier days: apply it, or put back what it was, and revert then"
        )
    return found


def apply_revert(runner: Runner, revert: Revert, now: datetime | None = None) -> RefreshResult:
    """Reverts layers, and refreshes the project by their definitions of before. The runner keeps to these.

    Killed at any point, it has changed nothing, or no refresh takes the definitions that went unasked; repeated, it
    goes on. Raises CannotRevert, DefinedElsewhere for a layer to which somebody applies another definition, and what
    `Runner.refresh` raises.
    """
    if refused := [each.refused for each in revert.plans if each.refused is not None]:
        raise CannotRevert(refused[0])
    time = f"{now or datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    claims = {each.layer: runner.table(each.layer) for each in revert.layers if each.since is not None}
    # Before anything is written: who is refused has changed nothing.
    with runner.claiming(claims):
        return _reverted(runner, revert, time, claims)


def _reverted(runner: Runner, revert: Revert, time: str, changed: Mapping[str, LakeTable]) -> RefreshResult:
    """Reverts layers at a time, of which those that have `changed` are claimed."""
    _check_changed_by_nobody(runner, changed)
    if revert.restored:
        actions = [
            rolling_back(runner.table(each.layer), each.instants, time if each.layer in changed else None)
            for each in revert.restored
        ]
        try:
            committed(actions, runner.heartbeat_seconds)
        except (InvalidOperationException, InstantConflict) as error:  # others have written, or cleaned, meanwhile
            logger.info("layers can't be rolled back, and are computed as a whole: %s", error)
    runner.pause("rolled back")
    runner.given = revert.graph
    asked = [each.layer for each in revert.plans if each.asks]
    return runner.refresh(asked, reverts={each.layer: time for each in revert.layers})


def _check_changed_by_nobody(runner: Runner, layers: Mapping[str, LakeTable]) -> None:
    """Raises DefinedElsewhere if layers stand by other definitions than the plan has shown."""
    engine = runner.engine()
    try:
        definitions = Definitions(engine)
        for name, lake in layers.items():
            runner.applied.note(name, lake, latest_refresh(lake), other_than=definitions)
    finally:
        engine.close()


def write_back(graph: Graph, revert: Revert) -> Mapping[str, str | None]:
    """Writes the queries of before into the files of a project, whose `graph` was read from them. Returns by layer why
    its file wasn't changed, None where it was. What else is defined otherwise is left to people."""
    found: dict[str, str | None] = {}
    for each in revert.layers:
        now, before = graph.node(each.layer), revert.graph.node(each.layer)
        if before.restated is not None:  # a file has the last part of it
            before = replace(before, query=before.restated.latest.parsed())
        file = graph.project.directory / now.place.file
        found[each.layer] = reason = _why_not_written(now, before, file, is_unapplied=each.layer in revert.unapplied)
        if reason is None and now.query is not None and before.query is not None:
            text = file.read_text(encoding="utf-8")
            file.write_text(text.replace(now.query.text, before.query.text), encoding="utf-8")
    return found


def _why_not_written(now: Node, before: Node, file: Path, *, is_unapplied: bool) -> str | None:
    """Why the query of a layer can't be put in the place of another one, which is in a file; None if it can."""
    if now.query is None or before.query is None:
        return "it has flows"
    if file.suffix != ".sql":
        return f"{now.place.file} isn't SQL"
    if is_unapplied:
        return f"{now.place.file} has yet another definition, which nobody has applied"
    if now.expectations != before.expectations:
        return "its expectations were others, too"
    views = [{name: view.text for name, view in each.views.items()} for each in (now.query, before.query)]
    if views[0] != views[1]:
        return "temporary views that it reads were others, too"
    count = file.read_text(encoding="utf-8").count(now.query.text)
    return None if count == 1 else f"its query is {count} times in {now.place.file}"


def _chosen(
    runner: Runner, own: Mapping[str, Node], wanted: Collection[str], engine: Engine
) -> Sequence[RevertedLayer]:
    """The layers that are reverted, with those that are reverted already."""
    standing, found, moment = [], [], 0
    for name, node in own.items():
        lake = runner.table(name)
        try:
            if (since := reverting_instant(lake)) is not None:
                now = _standing(lake)
                standing.append(RevertedLayer(name, now, None, now))
                moment = max(moment, since.moment or 0)
            elif name in wanted or not (wanted or node.is_captured):
                found.append(_latest_change(lake, engine))
        except (NoSuchObjectException, _NothingBefore) as error:
            if name in wanted:
                reason = "there is no such table yet" if isinstance(error, NoSuchObjectException) else str(error)
                raise CannotRevert(f"{name}: {reason}") from None
    if not wanted:
        latest = max((each.since.moment or 0 for each in found if each.since is not None), default=0)
        is_later = latest > moment  # else it is older than what was taken back last
        found = [each for each in found if is_later and each.since is not None and (each.since.moment or 0) == latest]
    if not standing and not found:
        raise CannotRevert("no definition has changed that could be taken back")
    return [*standing, *found]


class _NothingBefore(Exception):
    """There was no other definition before a layer's, or it isn't known."""


def _standing(lake: LakeTable) -> Defined:
    """The definition by which a layer's table stands. Raises _NothingBefore, NoSuchObjectException."""
    latest = latest_refresh(lake)
    found = None if latest is None else definition_of(lake, latest[1])
    if found is None:
        raise _NothingBefore("what it was computed by isn't known")
    return found


def _latest_change(lake: LakeTable, comparer: Comparer) -> RevertedLayer:
    """The definition before the latest change that somebody made. Raises _NothingBefore, NoSuchObjectException."""
    now, since, digest = _standing(lake), None, ""
    for instant, record in standing_refreshes(lake):
        if since is None and record.kept is not None:
            digest = record.kept.digest
        if record.kept is None or record.kept.digest != digest:
            before = definition_of(lake, record)
            if before is None:
                raise _NothingBefore("what it was computed by before isn't known")
            if _says(before) != _says(now) and (changes := changes_between(before, now, comparer)):
                if Change.SETTINGS in changes:
                    raise _NothingBefore("it changed with the project's settings for Spark: put them back in its file")
                return RevertedLayer(lake.name, before, since, now, tuple(text_difference(now, before)))
        since = instant
    raise _NothingBefore("it has had no other definition")


def _is_of(node: Node, defined: Defined) -> bool:
    """Whether a layer's file says what a definition says, but for comments and blanks."""
    if (parts := defined.parts) is not None:  # a file has the last one
        defined = replace(defined, queries=[parts.latest.query], views=parts.latest.views)
    texts = defined.normal()
    own = node.appends if node.query is None else (node.query,)
    said = [each.normal for each in own], {name: view.normal for each in own for name, view in each.views.items()}
    conditions = [{"name": e.name, "condition": e.condition, "violation": e.violation.value} for e in node.expectations]
    return texts is not None and texts[:2] == said and [dict(each) for each in defined.conditions] == conditions


def _says(defined: Defined) -> tuple[object, ...]:
    """What a project's files say, and sources don't."""
    return defined.texts(), [dict(each) for each in defined.conditions]


def _node_before(node: Node, before: Defined, graph: Graph) -> Node:
    """A layer as it was defined. Raises CannotRevert."""
    if node.flow is not None or node.is_captured:
        raise CannotRevert(f"{node.name} applies a log: take its change back where it is defined, and apply that")
    if before.database != graph.project.database:
        raise CannotRevert(
            f"{node.name}: names without a database meant those in {before.database} before:"
            f" take the change back in its file, and apply that"
        )
    try:
        if (parts := before.parts) is not None:
            own = parts.latest.parsed()
            found = replace(node, query=own, policy=_policy(before)).of_parts(parts, before.database)
            return replace(found, is_fixed=True, **_of_table(before))
        views = {name: Written.parsed(text) for name, text in before.views.items()}
        queries = [Written.parsed(text).with_views(views) for text in before.queries]
        reads = frozenset(name for query in queries for name in query.reads(before.database))
    except BadQuery as error:
        raise CannotRevert(f"{node.name}: the definition of before isn't understood any more: {error}") from None
    is_query = node.query is not None and len(queries) == 1
    return replace(
        node,
        query=queries[0] if is_query else None,
        appends=() if is_query else tuple(queries),
        reads=reads,
        policy=_policy(before) if is_query else node.policy,
        is_fixed=True,
        **_of_table(before),
    )


def _of_table(before: Defined) -> dict[str, Any]:
    """What a definition said of the table beside its query."""
    conditions = before.conditions
    return {
        "properties": before.properties,
        "partitions": tuple(before.partitions),
        "expectations": tuple(
            Expectation(each["name"], each["condition"], Violation(each["violation"])) for each in conditions
        ),
    }


def _policy(before: Defined) -> RefreshPolicy:
    return RefreshPolicy(before.properties.get(REFRESH_POLICY, RefreshPolicy.AUTOMATIC).strip().lower())


def _restored(
    runner: Runner, graph: Graph, changed: Sequence[RevertedLayer], engine: Engine
) -> tuple[Sequence[RestoredLayer], str | None]:
    """The tables to roll back, so that they are what they were before the change; or why they can't be."""
    if not changed:
        return (), "nothing has changed since"
    moment = Moment(min(each.since.moment or 0 for each in changed if each.since is not None) - 1)
    names = {each.layer for each in changed}
    now = in_force(runner.given, runner.table)
    names |= {*now.below(names), *graph.below(names)}
    found = []
    for node in _nodes(now, graph, names):
        lake = runner.table(node.name)
        try:
            position = lake.position_of(moment)
        except NoSuchObjectException:
            continue
        except SnapshotGone:
            return (), f"{node.name} has lost the files of that state"
        if reason := _why_not(lake, position, node, engine):
            return (), f"{node.name} {reason}"
        if later := later_instants(lake, position):
            found.append(RestoredLayer(node.name, later))
    return found, None


def _nodes(now: Graph, before: Graph, names: Collection[str]) -> Iterator[Node]:
    """The nodes of some names, and of their quarantines, in either of two graphs."""
    found = {each.name: each for each in (*before.nodes, *now.nodes)}
    quarantines = {fresh.name for name in names if (fresh := found[name].quarantine) is not None}
    return (each for name, each in sorted(found.items()) if name in {*names, *quarantines})


def _why_not(lake: LakeTable, position: int, node: Node, engine: Engine) -> str | None:
    """Why a layer's state at a position can't be read as the table is now; None if it can."""
    if node.waits_for_sources:
        return "has partitions that are ready"
    if node.sink is not None:  # it has got rows that no increment of the earlier state would give it again
        return "has a sink"
    if position == 0:
        return "wasn't there then"
    record = record_before(lake, position + 1)
    before = None if record is None else definition_of(lake, record)
    if before is None:
        return "was computed by a definition then that isn't known"
    schema = lake.schema()
    then = dict(before.columns), ",".join(before.key), before.row_keys
    now = dict(engine.columns(schema)), schema.properties.get(PRIMARY_KEY, ""), schema.properties.get(ROW_KEYS)
    return None if then == now else "had other columns, or another key"
