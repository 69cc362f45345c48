"""One refresh: brings a project's layers up to date with their sources, all of them at one moment.

It reads all tables as of one moment. A layer's changes are computed from those of the tables that it reads,
layers of the same refresh among them, and all layers complete together. Nothing is kept but what is in the instants.
"""

import dataclasses
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from lake.client.lake_types import Completion, Instant, Moment
from lake.layers.compiler.checks import Checks
from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.deltas import Deltas, Relations
from lake.layers.compiler.fixed_values import fixed_values
from lake.layers.compiler.graph import Graph
from lake.layers.compiler.layers import (
    all_rows,
    as_inserted,
    differences_of,
    recomputed,
    refresh,
    relations_after,
)
from lake.layers.compiler.restating import Divided, divided, observed, restated
from lake.layers.definitions.model import RefreshPolicy
from lake.layers.errors import RefreshLost, first_line
from lake.layers.runner.commits import LayerCommit, NotWritten, complete_together
from lake.layers.runner.costs import INCREMENT, WHOLE, Gain, Taken, Ways, not_worth, reading_seconds
from lake.layers.runner.definitions import Definitions
from lake.layers.runner.engine import Changed, Engine, SourceChange
from lake.layers.runner.holding import held_partitions, touched_partitions
from lake.layers.runner.layer_tables import is_rewritable, layout_of, make_table
from lake.layers.runner.readiness import Readiness
from lake.layers.runner.records import LayerState, Record, kept_next, last_read, state_of
from lake.layers.runner.results import (
    BESIDE,
    FAILED,
    RESTATED,
    SKIPPED,
    LayerResult,
    LayersFailed,
    RefreshFailed,
    RefreshResult,
    named_counts,
)
from lake.layers.runner.sinks import deliver_all
from lake.layers.runner.source_relations import SourceRelations, plain
from lake.tables.keyed.errors import UnfitRows
from lake.tables.keyed_writes import Action
from lake.tables.lake import LakeTable, Writing


class Context(Protocol):
    """What a refresh needs of its runner, and tells it. What the attributes mean is said at `Runner`."""

    graph: Graph
    heartbeat_seconds: float
    choose: bool
    is_warm: bool
    pause: Callable[[str], None]
    progress: Callable[[str], None]

    def table(self, name: str) -> LakeTable:
        """The lake table of that name."""


class _Changes(NamedTuple):
    """The relations of a layer's sources, and how many rows changed of those that did. `unread`: sources of which that
    is told by their files, about."""

    relations: Mapping[str, Relations]
    rows: Mapping[str, Changed]
    unread: Sequence[str] = ()


@dataclass(frozen=True)
class _Plan:
    """How a layer is refreshed: by which steps, the last of which has its changes, and why as a `whole`.

    `ways`: what both ways would take, if there was a choice. `work` of the steps; 0 where nobody wants to know.
    `divided`: the layer as two, if a part of it is restated.
    """

    deltas: Deltas
    step: str | None
    whole: bool
    why: str | None
    ways: Ways | None
    work: int
    divided: Divided | None = None


class Refresh:
    """One attempt at a refresh."""

    def __init__(
        self,
        runner: Context,
        engine: Engine,
        layers: Sequence[Compiled],
        definitions: Definitions,
        full: Collection[str],
        replay: Mapping[str, Moment],
        beside: Mapping[str, LakeTable],
        reverts: Mapping[str, str],
    ) -> None:
        self._runner = runner
        self._engine = engine
        self._full = full
        self._replay = replay
        self._reverts = reverts
        self._project = runner.graph.project.name
        self._layers = layers
        self._definitions = definitions
        self._rewritten = {  # layers that get other columns, another key or other buckets
            each.name
            for each in self._layers
            if make_table(engine, runner.table(each.name), each, self._project, may_rewrite=is_rewritable(each, full))
        }
        read = {name for each in self._layers for name in each.layer.sources}
        tables = {name: runner.table(name) for name in sorted({each.name for each in self._layers} | read)}
        self._own = {each.name: tables[each.name] for each in self._layers}
        """The tables that layers are. Another one may be read in their place."""
        self._beside = beside
        self._lakes = {**tables, **beside}
        self._readiness = Readiness(self._layers, tables)
        self._held: dict[str, Mapping[str, str]] = {}
        self._reopened: dict[str, Sequence[str]] = {}
        moments = [lake.position().moment or 0 for lake in (*self._lakes.values(), *self._own.values())]
        self._moment = Moment(max(moments))
        self._positions = {name: lake.position_of(self._moment) for name, lake in self._lakes.items()}
        self._written = {name: lake.position_of(self._moment) for name, lake in self._own.items()}
        """The positions of layers' own tables."""
        own = {_own(name): self._own[name] for name in beside}
        at = {**self._positions, **{_own(name): self._written[name] for name in beside}}
        self._sources = SourceRelations(engine, {**self._lakes, **own}, at)
        self._states: dict[str, LayerState] = {}
        self._bases = {name: state_of(lake) for name, lake in beside.items()}
        self._unread: Set[SourceChange] = frozenset()
        self._changed: dict[str, Changed] = {}  # layers that this refresh changes, and how many rows of them
        self._relations: dict[str, Relations] = {}
        self._commits: dict[str, LayerCommit] = {}

    def run(self) -> RefreshResult:
        """Computes all layers and completes them. Raises LayersFailed for those that can't be, once all others are."""
        results = {each.layer: each for each in self._all_layers()}
        if self._beside:
            self._check_all_computed(results)
        self._runner.pause("computed")
        instants = self._completed(results)
        done = [each for each in self._layers if results[each.name].how not in (FAILED, SKIPPED)]
        waiting = [each.name for each in done if each.node.waits_for_sources]
        turned = {name: self._readiness.settle(name, self._held[name]) for name in waiting}
        delivered = deliver_all(self._engine, self._layers, self._own)
        moment = self._moment
        for name, each in list(instants.items())[:1]:  # all completed at one moment
            moment = Moment(self._own[name].details(each.timestamp, each.action).instant.moment or moment.number)
        result = RefreshResult(self._moment, tuple(results.values()), instants, turned, delivered, moment)
        if len(done) < len(self._layers):
            raise LayersFailed(result)
        return result

    def _check_all_computed(self, results: Mapping[str, LayerResult]) -> None:
        """Raises RefreshFailed if a layer couldn't be computed."""
        for each in results.values():
            if each.how == FAILED:
                raise RefreshFailed(f"{each.layer} can't be computed, and so nothing is cut over: {each.why}")

    def _completed(self, results: dict[str, LayerResult]) -> Mapping[str, Instant]:
        """Completes the layers, by name, but for those whose rows can't be written, and those that read these."""
        while commits := [self._commits[each.name] for each in self._layers if each.name in self._commits]:
            runner, client = self._runner, self._own[commits[0].layer].client
            runner.progress(f"writing {len(commits)} tables")
            try:
                return complete_together(client, commits, runner.heartbeat_seconds, runner.pause, self._engine.errors)
            except NotWritten as error:
                assert isinstance(error.__cause__, Exception)
                results[error.layer] = self._failed(error.layer, error.__cause__)
                if self._beside:
                    self._check_all_computed(results)
                for name in runner.graph.below([error.layer]):
                    self._commits.pop(name, None)
                    results[name] = LayerResult(name, SKIPPED, f"{error.layer} failed")
        return {}

    def _all_layers(self) -> list[LayerResult]:
        """Computes layers, several at a time where the engine can; each after those that it reads."""
        computed: dict[str, Future[LayerResult]] = {}
        foreseen: tuple[type[Exception], ...] = (UnfitRows, *self._engine.errors)
        numbers = itertools.count(1)

        def compute_and_say(made: Compiled) -> LayerResult:
            result = compute(made)
            self._runner.progress(f"{next(numbers)} of {len(self._layers)} tables: {made.name}, {result.how}")
            return result

        def compute(made: Compiled) -> LayerResult:
            # Those that it reads have begun before it, so that threads never wait for what no thread is left to do.
            read = [computed[name].result() for name in sorted(made.layer.sources) if name in computed]
            if undone := [each.layer for each in read if each.how in (FAILED, SKIPPED)]:
                return LayerResult(made.name, SKIPPED, f"{undone[0]} {FAILED}")
            try:
                return self._layer(made)
            except foreseen as error:
                return self._failed(made.name, error)

        if self._runner.choose:
            self._unread = self._not_worth_reading()
        with ThreadPoolExecutor(self._engine.threads, "layers") as pool:
            for each in self._layers:
                computed[each.name] = pool.submit(compute_and_say, each)
            try:
                return [each.result() for each in computed.values()]
            finally:
                pool.shutdown(cancel_futures=True)

    def _failed(self, layer: str, error: Exception) -> LayerResult:
        """What is said of a layer that can't be computed, whose commit is given up."""
        self._commits.pop(layer, None)
        self._changed.pop(layer, None)
        why = first_line(error)
        if isinstance(error, UnfitRows):
            why = f"{why}. Leave such rows out in its query by WHERE, or give them a value by coalesce"
        return LayerResult(layer, FAILED, why)

    def _not_worth_reading(self) -> Set[SourceChange]:
        """What changed in sources and takes longer to find out than increments would save: layers are computed whole.

        Layers that others read are taken to stay as they are, since nobody knows yet what becomes of them.
        """
        gains = []
        for made in self._layers:
            state = self._base(made)
            before = self._positions_read(made, state)
            is_rewritten = made.name in self._rewritten and made.name not in self._beside
            if is_rewritten or made.kind == "full" or self._why_full(made, state, before) is not None:
                continue
            outside = {name: self._sources.change(name, position or 0) for name, position in before.items()}
            outside = {name: each for name, each in outside.items() if name not in self._own}
            written = {name: told for name, each in outside.items() if (told := self._sources.written(each))}
            if not written:
                continue
            gain = math.inf
            if not self._must_increment(made):
                relations = {name: self._relation(name, position) for name, position in before.items()}
                changed = _Changes(relations, {name: told.rows for name, told in written.items()})
                increment = self._planned(made, changed, whole=False)
                whole = self._planned(made, changed, whole=True)
                ways = self._ways(state, increment, whole)
                gain = ways.whole - ways.increment
            gains.append(Gain(frozenset(outside[name] for name in written), gain))
        named = {change for each in gains for change in each.needs}
        costs = {change: reading_seconds(told.bytes) for change in named if (told := self._sources.written(change))}
        return not_worth(gains, costs)

    def _state(self, made: Compiled) -> LayerState:
        """How a layer stood when this refresh first looked."""
        if made.name not in self._states:
            self._states[made.name] = state_of(self._own[made.name])
        return self._states[made.name]

    def _base(self, made: Compiled) -> LayerState:
        """How the table stands whose rows a layer's increment starts from: its own, or the one beside it."""
        return self._bases.get(made.name) or self._state(made)

    def _must_increment(self, made: Compiled) -> bool:
        """Whether there is no choice between two ways."""
        is_strict = made.node.policy is RefreshPolicy.INCREMENTAL_STRICT
        return is_strict or made.name in self._replay or self._is_restated(made, self._base(made))

    def _layer(self, made: Compiled) -> LayerResult:
        state, is_beside = self._base(made), made.name in self._beside
        self._check_nothing_newer(made, self._state(made), self._written)
        if is_beside:
            self._check_nothing_newer(made, state, self._positions)
        if made.name in self._rewritten and not is_beside:
            return self._rewrite(made, state)
        stored = self._sources.rows_at(made.name, self._positions[made.name])
        before = self._positions_read(made, state)
        why = self._why_full(made, state, before)
        moved = [name for name in sorted(made.layer.sources) if self._has_moved(name, before.get(name))]
        is_restated = self._is_restated(made, state)
        if why is None and not moved and made.name not in self._replay and not is_restated:
            self._relations[made.name] = Relations(stored, stored, stored, stored)
            deltas = Deltas({}, [], f"_{plain(made.name)}")
            if is_beside:
                expected = {} if state.record is None else state.record.expected
                complete = state.record is not None and state.record.complete
                return self._cut_over(
                    made, deltas, LayerResult(made.name, BESIDE, expected=expected), complete=complete
                )
            self._hold(made, deltas, None)
            return LayerResult(made.name, "unchanged")
        relations = {name: self._relation(name, None if why else before[name]) for name in sorted(made.layer.sources)}
        changed = _Changes(relations, {}) if why else self._changed_rows(made, relations, moved, before)
        plan = self._plan(made, state, why, changed)
        began = time.monotonic()
        step, deltas = plan.step, plan.deltas
        last = None if state.record is None else state.record.expected
        seen: list[tuple[Checks, str]] = []
        if plan.divided is not None:
            seen = observed(plan.divided, deltas, last)
        elif step is not None and (rows := made.checks.observe(deltas, last, whole=plan.whole)) is not None:
            seen = [(made.checks, rows)]
        if is_beside or made.checks.holds or any(made.name in each.layer.sources for each in self._layers):
            self._relations[made.name] = relations_after(made.layer, deltas, stored, step)
        self._sources.run(deltas.steps)
        counts = {} if step is None else named_counts(self._engine.counted(step))
        missed = Counter[str]()
        for checks, rows in seen:
            counts_of = self._missed(checks, rows)
            missed.update({column: counts_of.get(column, 0) for column in checks.columns})
        made.checks.raise_for(made.name, missed)
        expected = made.checks.named(missed) if seen else {}
        how = "full" if plan.whole else "replay" if made.name in self._replay else made.kind
        how = RESTATED if plan.divided is not None else how
        seconds = round(time.monotonic() - began, 3)
        result = LayerResult(made.name, how, plan.why, counts, expected, plan.ways, seconds)
        complete = self._is_complete(made, state, how)
        if counts:
            new = counts.get("inserted", 0) + counts.get("updated", 0)
            self._changed[made.name] = Changed(counts.get("updated", 0) + counts.get("deleted", 0), new)
        if is_beside:
            return self._cut_over(made, deltas, result, complete=complete)
        self._hold(made, deltas, step if counts else None)
        self._commit(made, state, result, step if counts else None, self._taken(plan, state, seconds), complete)
        return result

    def _cut_over(self, made: Compiled, deltas: Deltas, found: LayerResult, *, complete: bool) -> LayerResult:
        """Gives a layer's own table the rows that the table beside it has, with what `found` has added to them."""
        began, first, rows = time.monotonic(), len(deltas.steps), self._relations[made.name].after
        is_rewritten, lake, position = made.name in self._rewritten, self._own[made.name], self._written[made.name]
        if is_rewritten:
            step = as_inserted(made.layer, deltas, rows)
        else:
            step = differences_of(made.layer, deltas, self._sources.rows_at(_own(made.name), position), rows)
        self._sources.run(deltas.steps[first:])
        counts = named_counts(self._engine.counted(step))
        seconds = round(found.seconds + time.monotonic() - began, 3)
        result = LayerResult(made.name, BESIDE, None, counts, found.expected, None, seconds)
        state = self._state(made)
        action = self._engine.rewriting(rows, lake, position, layout_of(made)) if is_rewritten else None
        taken = {} if state.record is None else state.record.taken
        self._hold(made, deltas, step if counts else None)
        self._commit(made, state, result, step if counts else None, taken, complete, action)
        return result

    def _rewrite(self, made: Compiled, state: LayerState) -> LayerResult:
        """Computes all rows of a layer whose table is replaced, with its columns."""
        relations = {name: self._relation(name, None) for name in sorted(made.layer.sources)}
        began = time.monotonic()
        deltas = Deltas(relations, {}, f"_{plain(made.name)}")
        rows, step = all_rows(made.layer, deltas)
        last = None if state.record is None else state.record.expected
        seen = made.checks.observe(deltas, last, whole=True)
        self._relations[made.name] = Relations(rows, rows, rows, rows)
        self._sources.run(deltas.steps)
        counts = named_counts(self._engine.counted(step))
        missed = {} if seen is None else self._missed(made.checks, seen)
        made.checks.raise_for(made.name, missed)
        seconds = round(time.monotonic() - began, 3)
        expected = made.checks.named(missed) if seen is not None else {}
        result = LayerResult(made.name, "full", "other columns, key or buckets", counts, expected, None, seconds)
        lake = self._own[made.name]
        action = self._engine.rewriting(rows, lake, self._written[made.name], layout_of(made))
        self._commit(made, state, result, None, {}, True, action)
        count = sum(counts.values())
        self._changed[made.name] = Changed(count, count)  # who reads it is computed as a whole
        return result

    def _plan(self, made: Compiled, state: LayerState, why: str | None, changed: _Changes) -> _Plan:
        """How a layer is refreshed. `why` it must be computed as a whole; None if its increment does."""
        if why is None and (both := self._divided(made, state, changed)) is not None:
            return self._restated(made, both, changed)
        if why is not None or (made.kind == "full" and changed.rows):
            whole = self._planned(made, changed, whole=True)
            return dataclasses.replace(whole, why=why or made.reasons[0])
        increment = self._planned(made, changed, whole=False)
        if not changed.unread and (self._must_increment(made) or not increment.work):
            return increment
        whole = self._planned(made, changed, whole=True)
        ways = self._ways(state, increment, whole)
        if ways.cheaper == WHOLE:
            return dataclasses.replace(whole, why=f"estimated: {ways}", ways=ways)
        if changed.unread:  # then the increment is of rows that nobody knows
            why = f"reading what changed in {', '.join(changed.unread)} would take longer than it saves"
            return dataclasses.replace(whole, why=why, ways=ways)
        return dataclasses.replace(increment, ways=ways)

    def _is_restated(self, made: Compiled, state: LayerState) -> bool:
        """Whether this refresh gives a part of a layer's rows another definition, and leaves others as they are."""
        kept = None if state.record is None else state.record.kept
        return kept is not None and kept.digest in made.node.restates and made.name not in self._replay

    def _divided(self, made: Compiled, state: LayerState, changed: _Changes) -> Divided | None:
        """A layer whose last part alone is computed as a whole; None for others."""
        if not self._is_restated(made, state) or made.node.restated is None or (made.kind == "full" and changed.rows):
            return None
        return divided(made.layer, made.checks, made.node.restated)

    def _restated(self, made: Compiled, both: Divided, changed: _Changes) -> _Plan:
        """How the last part of a layer is computed, and the others are brought up to date."""
        assert made.node.restated is not None
        deltas = self._deltas(made, changed)
        step = restated(both, deltas, self._sources.rows_at(made.name, self._positions[made.name]), made.node.restated)
        since = f"{made.node.restated.column} >= {made.node.restated.since}"
        return _Plan(deltas, step, False, f"another definition where {since}", None, 0, both)

    def _is_exact(self, made: Compiled) -> bool:
        """Whether the table's rows are the query's answer over what was read last. A replay reads what they have in
        them already."""
        record = self._base(made).record
        return made.name not in self._replay and record is not None and record.complete

    def _deltas(self, made: Compiled, changed: _Changes) -> Deltas:
        keys = sum(max(each) for each in changed.rows.values())
        grown = [name for name, each in changed.rows.items() if not each.old]

        def prunes(relation: str, columns: Sequence[str]) -> bool:
            return self._sources.prunes(relation, columns, keys)

        is_exact, prefix = self._is_exact(made), f"_{plain(made.name)}"
        return Deltas(changed.relations, changed.rows, prefix, grown=grown, prunes=prunes, is_exact=is_exact)

    def _planned(self, made: Compiled, changed: _Changes, *, whole: bool) -> _Plan:
        """One of the two ways to refresh a layer."""
        stored = self._sources.rows_at(made.name, self._positions[made.name])
        deltas = self._deltas(made, changed)
        if whole:
            step: str | None = recomputed(made.layer, deltas, stored)
        else:
            step = refresh(made.layer, deltas, stored, merge=deltas.is_exact)
        work = 0
        if self._runner.choose and step is not None:
            work = self._sources.sizes(sum(sum(each) for each in changed.rows.values())).work(deltas.steps)
        return _Plan(deltas, step, whole, None, None, work)

    def _ways(self, state: LayerState, increment: _Plan, whole: _Plan) -> Ways:
        """What the two ways are estimated to take."""
        taken = {} if state.record is None else state.record.taken
        return Ways.of({INCREMENT: increment.work, WHOLE: whole.work}, taken, state.number + 1)

    def _taken(self, plan: _Plan, state: LayerState, seconds: float) -> Mapping[str, Taken]:
        """What refreshes of a layer have taken, with this one."""
        known = {} if state.record is None else state.record.taken
        if not plan.work:
            return known
        now = Taken.measured(plan.work, seconds, state.number + 1, first=not self._runner.is_warm)
        return {**known, WHOLE if plan.whole else INCREMENT: now}

    def _missed(self, checks: Checks, step: str) -> Mapping[str, int]:
        """How many of the computed rows don't meet an expectation, by its column; none where it isn't there."""
        found = self._engine.observed(step)
        further = checks.uncounted(found)
        return {**found, **(self._engine.aggregated(step, further) if further else {})}

    def _hold(self, made: Compiled, deltas: Deltas, changes: str | None) -> None:
        """Finds out which partitions an expectation keeps back: of those that change, or weren't ready, or that the
        latest refresh was to reopen, which may have been killed. All of them if the definition is another one for all
        rows."""
        if not made.node.waits_for_sources:
            return
        self._held[made.name] = {}
        if made.checks.holds:
            readiness, state = self._own[made.name].readiness(), self._state(made)
            before = state.record
            is_same = before is not None and (self._is_defined_as(made, before) or self._is_restated(made, state))
            left = () if before is None else before.held
            among = {name for name, ready in readiness.items() if not (is_same and ready) or name in left}
            if changes is not None:
                among |= touched_partitions(self._engine, made, deltas, changes)
            rows = self._relations[made.name].after
            self._sources.bind_names({rows})
            held = held_partitions(self._engine, made, deltas, rows, among)
            self._held[made.name] = held
            self._reopened[made.name] = sorted(name for name in held if readiness.get(name))

    def _check_nothing_newer(self, made: Compiled, state: LayerState, read: Mapping[str, int]) -> None:
        """Raises RefreshLost if a layer's table was refreshed after the position that is read of it."""
        if state.instant is not None and (state.instant.position or 0) > read[made.name]:
            raise RefreshLost(f"another runner has refreshed {made.name} meanwhile")

    def _positions_read(self, made: Compiled, state: LayerState) -> dict[str, int | None]:
        """By source, the position up to which a layer has read it; None if that can't be said."""
        read = {} if state.record is None else state.record.sources
        found = {
            name: None if name not in read else read[name].position(self._lakes[name]) for name in made.layer.sources
        }
        if made.name not in self._replay:
            # What the part alone reads that is restated has no rows of before in the others.
            fresh = found.keys() - read.keys() if self._is_restated(made, state) else ()
            return {**found, **{name: self._positions[name] for name in fresh}}
        since = self._replay[made.name]
        return {
            name: None if position is None else min(position, self._lakes[name].position_of(since))
            for name, position in found.items()
        }

    def _why_full(self, made: Compiled, state: LayerState, before: Mapping[str, int | None]) -> str | None:
        """Why a layer must be computed as a whole; None if its increment does."""
        is_beside = made.name in self._beside
        if made.name in self._full and not is_beside:
            return "asked for"
        if (rewritten := self._rewritten & made.layer.sources) and not is_beside:
            return f"{min(rewritten)} has got other columns, another key or other buckets"
        if state.record is None:
            return "first refresh"
        is_other = made.name not in self._replay and not self._is_defined_as(made, state.record)
        if is_other and not self._is_restated(made, state):
            return "the definition has changed"
        if not state.is_ours:
            return "somebody else has changed the table"
        if made.name in self._replay and (below := self._changed.keys() & made.layer.sources):
            if not self._is_defined_as(made, state.record):
                raise RefreshFailed(
                    f"{made.name} can't be replayed while {min(below)}, which it reads, changes in the same refresh:"
                    f" compute all of it by --full-refresh {made.name}"
                )
            return f"{min(below)} changes, too"
        for name, position in sorted(before.items()):
            if position is None or position > self._positions[name]:
                return f"{name} has been made anew"
            if position < self._lakes[name].position().oldest_readable:
                return f"{name} has lost files of the state that was read last"
            if name in self._changed and self._sources.has_changes(name, position):
                return f"{name} was changed by others, too"
        return None

    def _is_defined_as(self, made: Compiled, record: Record) -> bool:
        """Whether a layer's rows are defined as when it was refreshed the last time."""
        return not self._definitions.changes(made, self._lakes[made.name], record)

    def _has_moved(self, name: str, position: int | None) -> bool:
        return name in self._changed or position is None or position < self._positions[name]

    def _changed_rows(
        self,
        made: Compiled,
        relations: Mapping[str, Relations],
        moved: Sequence[str],
        before: Mapping[str, int | None],
    ) -> _Changes:
        """The tables of which a layer has to look at what has changed, and how many of their rows have."""
        found, unread = {}, []
        for name in moved:
            position = before[name] or 0
            if name in self._changed:
                found[name] = self._changed[name]
                continue
            told = self._sources.written_among(name, position, fixed_values(made.layer.operator, name))
            if told is None:
                continue
            if self._sources.change(name, position) in self._unread:
                found[name] = told.rows
                unread.append(name)
            elif made.kind == "full":
                found[name] = told.rows
            elif any(rows := self._sources.changed_rows(name, position)):
                found[name] = rows
        return _Changes(relations, found, unread)

    def _relation(self, name: str, position: int | None) -> Relations:
        """A table's relations, from the position that was read of it last; None where only its rows now are needed."""
        if name in self._changed:
            return self._relations[name]
        at = self._positions[name]
        if position is None:
            rows = self._sources.rows_at(name, at)
            return Relations(rows, rows, rows, rows)
        return self._sources.between(SourceChange(name, position, at))

    def _commit(
        self,
        made: Compiled,
        state: LayerState,
        result: LayerResult,
        changes: str | None,
        taken: Mapping[str, Taken],
        complete: bool,
        action: Action | None = None,
    ) -> None:
        """Adds what is to be written into a layer: `changes`, or an `action`. `complete`: as of its record."""
        lake, position = self._own[made.name], self._written[made.name]
        from_layers = [name for name in made.layer.sources if name in self._changed or name in self._beside]
        read = {
            name: last_read(self._lakes[name], self._positions[name])
            for name in made.layer.sources
            if name not in from_layers
        }
        if action is not None:
            pass
        elif changes is None:
            keyed = lake.schema().keyed_table()
            name = "deltacommit" if keyed is not None and keyed.is_merge_on_read else "commit"
            action = Action(lake, name, _no_rows, position)
        else:
            action = self._engine.action(changes, lake, position)
        record = Record(
            self._project,
            state.number + 1,
            made.definition,
            read,
            result.how,
            result.changed,
            result.expected,
            taken,
            result.estimated,
            complete,
            kept_next(state, made.defined),
            self._reverted(made, state),
            self._reopened.get(made.name, ()),
        )
        self._commits[made.name] = LayerCommit(made.name, action, record, from_layers)

    def _reverted(self, made: Compiled, state: LayerState) -> str | None:
        """When a layer was reverted to the definition that it has; None if it wasn't, or gets another one."""
        if made.name in self._reverts:
            return self._reverts[made.name]
        return state.reverted if state.record is not None and self._is_defined_as(made, state.record) else None

    def _is_complete(self, made: Compiled, state: LayerState, how: str) -> bool:
        """Whether each row of a layer is its query's answer, after a refresh."""
        if how == "full" or state.record is None:
            return True
        return state.record.complete and (self._is_defined_as(made, state.record) or self._is_restated(made, state))


def _own(layer: str) -> str:
    """How relations of a layer's own table are called where another one is read in its place."""
    return f"{layer}/own"


def _no_rows(_: Writing) -> Completion:
    return Completion(conditional=True)
