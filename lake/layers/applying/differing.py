"""What changed definitions would change in layers' rows, shown before it is done. Nothing is written."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from lake.client.lake_types import Moment
from lake.layers.applying.restating import understood
from lake.layers.compiler.compiling import Compiled
from lake.layers.compiler.deltas import Deltas, Relations, Step, select_from
from lake.layers.compiler.differences import Shape, differences
from lake.layers.compiler.layers import ROW_KEY, all_rows, relations_after
from lake.layers.compiler.restating import Divided, divided, restated
from lake.layers.errors import first_line
from lake.layers.runner.definitions import Definitions
from lake.layers.runner.engine import Engine
from lake.layers.runner.layer_tables import check_owner, if_there
from lake.layers.runner.records import Record, state_of
from lake.layers.runner.results import RefreshFailed, named_counts
from lake.layers.runner.runner import Runner
from lake.layers.runner.source_relations import SourceRelations, count_rows, plain
from lake.protocol.formats.keyed_table import PRIMARY_KEY, column_names
from lake.tables.keyed.changes import CHANGE_TYPE, ChangeType
from lake.tables.keyed.errors import UnfitRows
from lake.tables.lake import LakeTable

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Sample:
    """A row that differs: as it is stored, None for one that comes, and as it would be, None for one that goes."""

    before: Row | None
    now: Row | None


@dataclass(frozen=True)
class LayerDifference:
    """How the rows of a layer differ from those of its definition now.

    `counts`: rows that would be inserted, updated and deleted; None if the table has another key, by which no row can
    be told to be another one: then `rows` has how many there are, and how many there would be. `uncompared`: columns
    that only one of the two has, or has with that type. `samples`: a few rows that differ. `read`: the positions as of
    which sources were read, `moved`: those of which the state is gone that the stored rows were computed from, so that
    they were read as they are now.
    """

    layer: str
    counts: Mapping[str, int] | None
    rows: tuple[int, int] | None = None
    uncompared: tuple[str, ...] = ()
    samples: tuple[Sample, ...] = ()
    read: Mapping[str, int] = field(default_factory=dict)
    moved: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The difference as the command's JSON has it."""
        return {
            "table": self.layer,
            "counts": self.counts,
            "rows": None if self.rows is None else {"before": self.rows[0], "now": self.rows[1]},
            "uncompared": list(self.uncompared),
            "samples": [{"before": each.before, "now": each.now} for each in self.samples],
            "read": dict(self.read),
            "read_as_now": list(self.moved),
        }


def differences_of(runner: Runner, layers: Collection[str] = (), samples: int = 5) -> list[LayerDifference]:
    """How the stored rows of layers differ from those of their definitions now, computed from the same state of the
    sources, those that others read first.

    `layers`: some of the project's, by name; by default those whose definitions have changed and those that read them.
    Of layers that are restated only the rows are computed that get another definition, where the others stay as stored.
    `samples`: how many rows are shown at most of those that are inserted, updated and deleted. Raises BadDefinition,
    NoSource, and RefreshFailed for a layer that can't be computed.
    """
    wanted = {runner.graph.node(name).name for name in layers}
    engine = runner.engine()
    try:
        return _Comparison(runner, engine, wanted, samples).differences()
    finally:
        engine.close()


class _Comparison:
    def __init__(self, runner: Runner, engine: Engine, wanted: Collection[str], samples: int) -> None:
        self._engine = engine
        self._samples = samples
        self._layers = understood(runner, engine)
        self._lakes = {name: runner.table(name) for name in runner.graph.sources}
        for each in self._layers:
            lake = runner.table(each.name)
            if (schema := if_there(lake, LakeTable.schema)) is not None:
                check_owner(schema, each, runner.graph.project.name)
                self._lakes[each.name] = lake
        moment = Moment(max((lake.position().moment or 0 for lake in self._lakes.values()), default=0))
        self._positions = {name: lake.position_of(moment) for name, lake in self._lakes.items()}
        self._sources = SourceRelations(engine, self._lakes, self._positions)
        self._states = {
            each.name: state_of(self._lakes[each.name]) for each in self._layers if each.name in self._lakes
        }
        changed = self._changed(runner, wanted)
        self._wanted = wanted or changed
        self._computed = {*self._wanted} | changed
        self._rows: dict[str, str] = {}

    def _record(self, layer: str) -> Record | None:
        return self._states[layer].record if layer in self._states else None

    def _changed(self, runner: Runner, wanted: Collection[str]) -> set[str]:
        """The layers whose definitions have changed, and those that read them. If some layers are wanted, only those of
        them that these read."""
        definitions = Definitions(self._engine)
        found = set()
        for each in self._layers:
            record = self._record(each.name)
            if record is None or definitions.changes(each, self._lakes[each.name], record):
                found.add(each.name)
        found |= {*runner.graph.below(found)}
        return {name for name in found if not wanted or not {*runner.graph.below([name])}.isdisjoint(wanted)}

    def differences(self) -> list[LayerDifference]:
        foreseen: tuple[type[Exception], ...] = (UnfitRows, *self._engine.errors)
        found = []
        for each in self._layers:
            if each.name in self._computed:
                try:
                    difference = self._compared(each)
                except foreseen as error:
                    raise RefreshFailed(f"{each.name} can't be computed: {first_line(error)}") from error
                if each.name in self._wanted:
                    found.append(difference)
        return found

    def _compared(self, made: Compiled) -> LayerDifference:
        read: dict[str, int] = {}
        moved: list[str] = []
        relations = {name: self._relation(made, name, read, moved) for name in sorted(made.layer.sources)}
        deltas = Deltas(relations, {}, f"_{plain(made.name)}")
        if not moved and (both := self._divided(made)) is not None:
            return self._compared_part(made, both, deltas, read)
        now, inserted = all_rows(made.layer, deltas)
        self._sources.run(deltas.steps)
        self._rows[made.name] = now
        if made.name not in self._lakes:
            counts = named_counts(self._engine.counted(inserted))
            found = self._sampled(made, inserted, made.layer.columns)
            return LayerDifference(made.name, counts, samples=found, read=read, moved=tuple(moved))
        lake = self._lakes[made.name]
        stored = self._sources.rows_at(made.name, self._positions[made.name])
        there = self._engine.columns(lake.schema())
        columns = [name for name in made.layer.columns if there.get(name) == made.types[name]]
        uncompared = tuple(sorted({*there, *made.types} - {*columns}))
        key = column_names(lake.schema().properties.get(PRIMARY_KEY, ""))
        if tuple(key) != made.layer.key or not {*key} <= {*columns}:
            self._sources.bind_names({stored})
            rows = count_rows(self._engine, stored), count_rows(self._engine, now)
            return LayerDifference(made.name, None, rows, uncompared, read=read, moved=tuple(moved))
        begun = len(deltas.steps)
        own = [exp.column(name, quoted=True) for name in columns]
        old, new = (deltas.add(name, select_from(own, of)) for name, of in (("had", stored), ("has", now)))
        shape = Shape(tuple(columns), made.layer.key, made.layer.texts & {*columns})
        step = differences(deltas, shape, old, new)
        self._sources.run(deltas.steps[begun:])
        counts = named_counts(self._engine.counted(step))
        found = self._sampled(made, step, columns)
        return LayerDifference(made.name, counts, None, uncompared, found, read, tuple(moved))

    def _divided(self, made: Compiled) -> Divided | None:
        """A layer as two, if its last part alone gets another definition, and other rows stay as stored; else None."""
        state, parts = self._states.get(made.name), made.node.restated
        if state is None or state.record is None or state.record.kept is None or parts is None:
            return None
        is_exact = state.is_ours and state.record.complete and self._rows.keys().isdisjoint(made.layer.sources)
        if not is_exact or state.record.kept.digest not in made.node.restates:
            return None
        return divided(made.layer, made.checks, parts)

    def _compared_part(self, made: Compiled, both: Divided, deltas: Deltas, read: Mapping[str, int]) -> LayerDifference:
        assert made.node.restated is not None
        stored = self._sources.rows_at(made.name, self._positions[made.name])
        step = restated(both, deltas, stored, made.node.restated)
        self._rows[made.name] = relations_after(made.layer, deltas, stored, step).after
        self._sources.run(deltas.steps)
        counts = named_counts(self._engine.counted(step))
        return LayerDifference(made.name, counts, samples=self._sampled(made, step, made.layer.columns), read=read)

    def _relation(self, made: Compiled, name: str, read: dict[str, int], moved: list[str]) -> Relations:
        """The rows of a table that a layer reads: as the stored rows were computed from, but for what is defined
        otherwise now."""
        if name in self._rows:
            rows = self._rows[name]
        else:
            lake, record = self._lakes[name], self._record(made.name)
            before = None if record is None or name not in record.sources else record.sources[name].position(lake)
            is_there = before is not None and lake.position().oldest_readable <= before <= self._positions[name]
            read[name] = before if before is not None and is_there else self._positions[name]
            if record is not None and not is_there:
                moved.append(name)
            rows = self._sources.rows_at(name, read[name])
        return Relations(rows, rows, rows, rows)

    def _sampled(self, made: Compiled, changes: str, columns: Sequence[str]) -> tuple[Sample, ...]:
        """Some of the rows of a relation of changes, of each kind."""
        pairs = self._some(made, changes, columns, ChangeType.UPDATE_PREIMAGE, ChangeType.UPDATE_POSTIMAGE)
        return (
            *(Sample(None, row) for row in self._some(made, changes, columns, ChangeType.INSERT)),
            *(Sample(*pair) for pair in zip(pairs[::2], pairs[1::2], strict=True)),
            *(Sample(row, None) for row in self._some(made, changes, columns, ChangeType.DELETE)),
        )

    def _some(self, made: Compiled, changes: str, columns: Sequence[str], *kinds: ChangeType) -> list[Row]:
        """The first rows of some kinds, in the order of the key; of an update, the row before and the row after it."""
        query = select_from([exp.column(name, quoted=True) for name in (*columns, CHANGE_TYPE)], changes)
        query = query.where(exp.column(CHANGE_TYPE).isin(*(str(each) for each in kinds)), copy=False)
        order = [exp.Ordered(this=exp.column(name, quoted=True)) for name in made.layer.key]
        order.append(exp.Ordered(this=exp.column(CHANGE_TYPE), desc=True))
        query = query.order_by(*order, copy=False).limit(self._samples * len(kinds), copy=False)
        name = f"_{plain(made.name)}_{kinds[0]}_samples"
        self._engine.run([Step(name, query, False)])
        return [{each: row[each] for each in columns if each != ROW_KEY} for row in self._engine.rows(name)]
