"""The tables that a refresh reads, as relations: their states, and what changed between two of them."""

import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any, NamedTuple

from sqlglot import exp

from lake.client.lake_types import Schema
from lake.layers.compiler.deltas import Relations, Restriction, Step, select_from
from lake.layers.compiler.fixed_values import Fixed
from lake.layers.runner.costs import Sizes
from lake.layers.runner.engine import Changed, Engine, SourceChange
from lake.layers.runner.pruning import MOST_VALUES, Within, prunable, within
from lake.layers.runner.records import SERVICES
from lake.protocol.formats.partition_names import values_of
from lake.tables.lake import LakeTable


class Written(NamedTuple):
    """What the files of a change tell of it, without their rows.

    `rows`: how many rows changed, as few as the files' counts allow; an estimate, for a file doesn't say which of its
    rows are new. `bytes`: how much is read to find them. `partitions`: those that may have changed.
    """

    rows: Changed
    bytes: int
    partitions: Set[str]


class Size(NamedTuple):
    """How large a table's snapshot is."""

    bytes: int
    file_groups: int


class SourceRelations:
    """Relations of tables. They are read when a step names them: most steps don't need a state before.

    May be used by several threads for layers that don't read each other.
    """

    def __init__(self, engine: Engine, lakes: Mapping[str, LakeTable], positions: Mapping[str, int]) -> None:
        """`positions`: of each table as of the moment that is read."""
        self._engine = engine
        self._lakes = lakes
        self._positions = positions
        self._states: dict[str, tuple[str, int]] = {}
        self._sides: dict[str, tuple[SourceChange, Relations]] = {}
        self._bound: set[str] = set()
        self._found: dict[SourceChange, Changed] = {}
        self._written: dict[SourceChange, Written | None] = {}
        self._made: dict[str, Step] = {}
        self._sizes: dict[tuple[str, int], Size] = {}
        self._schemas: dict[str, Schema] = {}
        self._reading = threading.RLock()
        """So that two layers don't read the same relation at a time, each for itself."""
        self._filled: dict[str, bool] = {}
        self._values: dict[tuple[str, tuple[tuple[str, str], ...]], Sequence[Mapping[str, Any]]] = {}

    def rows_at(self, table: str, position: int) -> str:
        """The relation of a table's rows at a position."""
        name = f"_at_{position}_{plain(table)}"
        self._states[name] = (table, position)
        return name

    def between(self, change: SourceChange) -> Relations:
        """A table's relations from one position to another."""
        begin = f"_from_{change.after}_to_{change.up_to}_{plain(change.table)}"
        before, after = self.rows_at(change.table, change.after), self.rows_at(change.table, change.up_to)
        found = Relations(before, after, f"{begin}_old", f"{begin}_new")
        self._sides[found.old] = self._sides[found.new] = (change, found)
        return found

    def change(self, table: str, after: int) -> SourceChange:
        """What has become of a table since a position."""
        return SourceChange(table, after, self._positions[table])

    def written(self, change: SourceChange) -> Written | None:
        """What the files of a change tell; None if nobody has written rows. Reads no row."""
        with self._reading:
            if change not in self._written:
                self._written[change] = _told(self._lakes[change.table], change)
            return self._written[change]

    def changed_rows(self, table: str, after: int) -> Changed:
        """How many rows of a table have changed since a position; by a compaction, none have. Reads them."""
        change = self.change(table, after)
        with self._reading:
            if change not in self._found:
                some = after != change.up_to
                lake = self._lakes[table]
                self._found[change] = self._engine.changed_rows(lake, after, change.up_to) if some else Changed(0, 0)
            return self._found[change]

    def has_changes(self, table: str, after: int) -> bool:
        """Whether rows of a table have changed since a position."""
        return any(self.changed_rows(table, after))

    def written_among(self, table: str, after: int, references: Sequence[Fixed]) -> Written | None:
        """What files tell of a table's change; None if no row has changed that one of the references to it reads."""
        written = self.written(self.change(table, after))
        if written is None:
            return None
        schema = self._lakes[table].schema()
        texts = {each.name.lower() for each in schema.keys if each.type.lower() == "string"}
        asked = [{name: each[name] for name in each if name in texts} for each in references]
        if not all(asked):
            return written
        keys = [each.name for each in schema.keys]
        for partition in written.partitions:
            values = {key.lower(): value for key, value in zip(keys, values_of(partition, keys), strict=True)}
            if any(all(values[name] in allowed for name, allowed in each.items()) for each in asked):
                return written
        return None

    def run(self, steps: Sequence[Step]) -> None:
        """Reads the relations that steps name, and makes the results of the steps relations."""
        for each in steps:
            if each.only_if is None or self._has_rows(each.only_if):
                self._run(self._restricted(each))
            elif each.otherwise is not None:
                self._run(each._replace(query=each.otherwise, whole=None))
            self._made[each.name] = each

    def _has_rows(self, step: str) -> bool:
        if step not in self._filled:
            self._filled[step] = count_rows(self._engine, step) > 0
        return self._filled[step]

    def _run(self, step: Step) -> None:
        self.bind_names({table.name for table in step.query.find_all(exp.Table)})
        self._engine.run([step])

    def _restricted(self, step: Step) -> Step:
        """The same step over the part of a table that can have the rows which it asks for."""
        asked = step.restriction
        if asked is None:
            return step
        over, state = self._over(asked.relation), self._state(asked.relation)
        if state not in self._states or (part := self._part(step.name, state, asked)) is None:
            return step
        relation = f"{step.name}_part"
        table, position = self._states[state]
        self._engine.bind_state(relation, self._lakes[table], position, part)
        if over is not None:
            less = Step(f"{step.name}_over", _replaced(over.query, state, relation), False)
            self._run(less)
            relation = less.name
        return step._replace(query=_replaced(step.query, asked.relation, relation))

    def _over(self, relation: str) -> Step | None:
        """The step that made a relation out of a table's state, with other rows for some; None for others."""
        step = self._made.get(relation)
        return None if step is None or step.over is None else step

    def _state(self, relation: str) -> str:
        """The relation that has the columns and most rows of another one, or that itself."""
        over = self._over(relation)
        return relation if over is None or over.over is None else over.over

    def _part(self, name: str, state: str, asked: Restriction) -> Within | None:
        """Where a table's rows are that a step asks for; None if that can't be said, or is everywhere."""
        schema = self._schema(state)
        own = dict(asked.columns)
        # Of many rows the partitions may be few.
        for columns in dict.fromkeys((prunable(schema, [*own]), prunable(schema, _partitioning(schema, own)))):
            if columns:
                found = self._listed(name, asked.values, [(each, own[each]) for each in columns])
                if len(found) <= MOST_VALUES:
                    return within(schema, columns, found)
        return None

    def prunes(self, relation: str, columns: Sequence[str], rows: int) -> bool:
        """Whether less is read of a table's state if values of some columns are known, those of so many rows.

        The rows may be of few partitions, but each is taken to be of another bucket.
        """
        state = self._state(relation)
        if state not in self._states:
            return True  # who made it reads less, perhaps
        groups = self._size(*self._states[state]).file_groups
        schema = self._schema(state)
        known = {*prunable(schema, columns)}
        return groups > 1 and bool(known & {*_partitioning(schema, columns)} or (known and rows < groups))

    # --- sizes ------------------------------------------------------------------------------------------------

    def sizes(self, changed_rows: int) -> Sizes:
        """The sizes of relations, for a layer whose sources have so many changed rows."""

        def share(asked: Restriction) -> float:
            state = self._state(asked.relation)
            if state not in self._states or not prunable(self._schema(state), [own for own, _ in asked.columns]):
                return 1.0
            files = self._size(*self._states[state]).file_groups
            return 1.0 if changed_rows > MOST_VALUES else min(1.0, changed_rows / max(files, 1))

        return Sizes(self._bytes, self._made.get, share)

    def _bytes(self, relation: str) -> int | None:
        return self._size(*self._states[relation]).bytes if relation in self._states else None

    def _size(self, table: str, position: int) -> "Size":
        if (table, position) not in self._sizes:
            files = [*self._lakes[table].snapshot(position, include_uncommitted=True)] if position else []
            groups = {(each.partition, each.file_group) for each in files}
            self._sizes[table, position] = Size(sum(each.size for each in files), len(groups))
        return self._sizes[table, position]

    def _schema(self, state: str) -> Schema:
        """A table's schema in one of its states."""
        if state not in self._schemas:
            table, position = self._states[state]
            lake = self._lakes[table]
            version = lake.snapshot(position, partitions=[], page=1).table_version
            self._schemas[state] = lake.schema(version)
        return self._schemas[state]

    def _listed(self, name: str, step: str, columns: Sequence[tuple[str, str]]) -> Sequence[Mapping[str, Any]]:
        """The values that a step lists, one more than are of use at most. Both states of a table ask for the same.

        `columns`: pairs of the name under which a value is returned, and the step's column.
        """
        key = step, tuple(columns)
        if key not in self._values:
            values = [exp.alias_(exp.column(column), own, quoted=True) for own, column in columns]
            listed = Step(f"{name}_values", select_from(values, step).distinct().limit(MOST_VALUES + 1), False)
            self._run(listed)
            self._values[key] = self._engine.rows(listed.name)
        return self._values[key]

    def bind_names(self, named: Set[str]) -> None:
        """Reads relations by their names. Others than those of tables are passed over."""
        with self._reading:
            for name in sorted(named - self._bound):
                if name in self._states:
                    table, position = self._states[name]
                    self._engine.bind_state(name, self._lakes[table], position)
                    self._bound.add(name)
                elif name in self._sides and name not in self._bound:
                    change, relations = self._sides[name]
                    lake = self._lakes[change.table]
                    self._engine.bind_changes(relations.old, relations.new, lake, change.after, change.up_to)
                    self._bound |= {relations.old, relations.new}


def _told(lake: LakeTable, change: SourceChange) -> Written | None:
    """What the files of a change tell of its rows."""
    if change.after == change.up_to:
        return None
    found = lake.changes(change.after, change.up_to, include_uncommitted=True).changelog()
    writing = [each for each in found.changes if each.instant.begun_as not in SERVICES]
    added = [file for each in writing for file in (*each.added, *each.changelog)]
    removed = [file for each in writing for file in each.removed]
    if not added and not removed:
        return None
    more: Counter[tuple[str, str]] = Counter()
    for files, sign in ((added, 1), (removed, -1)):
        for file in files:
            more[file.partition, file.file_group] += sign * (file.rows or 1)
    came, went = sum(each for each in more.values() if each > 0), -sum(each for each in more.values() if each < 0)
    files = [*added, *removed]
    return Written(
        Changed(went, came) if came or went else Changed(1, 1),
        sum(file.size for file in files),
        {file.partition for file in files},
    )


def _partitioning(schema: Schema, columns: Collection[str]) -> list[str]:
    """Those of some columns that partition a table."""
    return [each for each in columns if each in {key.name.lower() for key in schema.keys}]


def _replaced(query: exp.Query, old: str, new: str) -> exp.Query:
    """A query that reads one relation in the place of another."""
    found = query.copy()
    for each in found.find_all(exp.Table):
        if each.name == old:
            each.set("this", exp.to_identifier(new))
    return found


def count_rows(engine: Engine, relation: str) -> int:
    """How many rows a relation has."""
    count = exp.Alias(this=exp.Count(this=exp.Star()), alias="rows")
    return engine.aggregated(relation, [count])["rows"]


def plain(name: str) -> str:
    """A table's name as a part of a relation's: another one for each table."""
    return "".join(each if each.isalnum() else f"_{ord(each):x}_" for each in name)
