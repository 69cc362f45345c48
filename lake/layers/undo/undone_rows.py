"""Undoes instants of a keyed table: the rows that they changed become again what they were before."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from lake.client.lake_types import Completion, Instant
from lake.layers.compiler.deltas import Deltas, Restriction, as_text, joined, renamed, select_from
from lake.layers.compiler.differences import Shape, differences, same_key
from lake.layers.compiler.typed import has_map
from lake.layers.runner.engine import Engine, SourceChange
from lake.layers.runner.records import undoing_metadata, writes_rows
from lake.layers.runner.source_relations import SourceRelations, plain
from lake.protocol.formats.keyed_table import KeyedTable, MergeEngine
from lake.protocol.formats.partition_names import make_name
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed_writes import Action
from lake.tables.lake import LakeTable, Writing

MAX_PARTITIONS = 10_000
"""Partitions of a table with sequences in which one rollback can undo rows: they are written anew as a whole."""


class UndoneRows:
    """What is undone of a keyed table: the instants after a position up to another.

    `counts`: rows by their `_change_type`. `changed_since` counts those among them that later instants changed, too.
    """

    def __init__(self, engine: Engine, lake: LakeTable, after: int, up_to: int, now: int) -> None:
        """The table is read at `now`."""
        schema = lake.schema()
        keyed = schema.keyed_table()
        assert keyed is not None
        types = engine.columns(schema)
        key = keyed.key if keyed.is_table_wide else (*keyed.key, *keyed.partition_columns)
        texts = frozenset(name for name, kind in types.items() if has_map(kind))
        self.lake = lake
        self.instants: Sequence[Instant] = [
            each.instant for each in lake.changes(after, up_to, include_uncommitted=True) if writes_rows(each)
        ]
        self._engine = engine
        self._keyed: KeyedTable = keyed
        self._shape = Shape(tuple(types), key, texts)
        self._now = now
        self._sources = SourceRelations(engine, {lake.name: lake}, {lake.name: now})
        self._deltas = Deltas({}, [], f"_undo_{plain(lake.name)}")
        self._run = 0
        self._undo(SourceChange(lake.name, after, up_to))
        self.counts: Mapping[str, int] = engine.counted(self._changes)
        self.changed_since = 0 if self._count_since is None else engine.values(self._count_since)["n"]

    def _undo(self, change: SourceChange) -> None:
        """Makes the steps."""
        add, key = self._deltas.add, self._shape.key
        was = self._sources.between(change)
        stored = self._sources.rows_at(change.table, self._now)
        touched = add("touched", exp.union(select_from(key, was.old), select_from(key, was.new)), keep=True)
        self._stored = stored
        same = Restriction(stored, touched, tuple((name, name) for name in key))
        old = add("stored", self._matching(stored, touched, self._shape.columns), restriction=same)
        new = add("wanted", self._matching(was.old, touched, self._shape.columns), keep=True)
        self._wanted, self._touched = new, touched
        self._changes = differences(self._deltas, self._shape, old, new)
        self._since = self._count_since = None
        if self._sources.has_changes(change.table, change.up_to):
            later = self._sources.between(SourceChange(change.table, change.up_to, self._now))
            keys = add("changed_later", exp.union(select_from(key, later.old), select_from(key, later.new)))
            self._since = add("since", self._matching(self._changes, keys, (*key, CHANGE_TYPE)), keep=True)
            count = exp.alias_(exp.Count(this=exp.Star()), "n")
            wrong = exp.column(CHANGE_TYPE).neq("update_preimage")
            self._count_since = add("count_since", select_from([count], self._since).where(wrong))
        self._run_new()

    def _matching(self, rows: str, keys: str, columns: Sequence[str], kind: str = "SEMI") -> exp.Select:
        """The rows whose keys are, or with ANTI are not, those of a relation."""
        own = [exp.column(name, table="l", quoted=True) for name in columns]
        return joined(own, rows, keys, self._shape.key, same_key(self._shape.key), kind=kind)

    def keys_changed_since(self, most: int) -> list[dict[str, Any]]:
        """The keys of the first rows that later instants have changed, too."""
        if self._since is None:
            return []
        keys = [exp.column(name, quoted=True) for name in self._shape.key]
        wrong = exp.column(CHANGE_TYPE).neq("update_preimage")
        query = select_from(keys, self._since).where(wrong).order_by(*(each.copy() for each in keys))
        return self._rows(query, most)

    def action(self) -> Action | None:
        """The instant that gives the rows back what they were; None if they are so already."""
        if not self.counts:
            return None
        return self._replacing() if self._needs_replacing else self._merging()

    @property
    def _needs_replacing(self) -> bool:
        """Whether what is written has to win over what is stored, which a merge wouldn't let it do."""
        return bool(self._keyed.sequence) or self._keyed.engine is not MergeEngine.DEDUPLICATE

    def _merging(self) -> Action:
        action = self._engine.action(self._changes, self.lake, self._now)
        return action._replace(write=lambda writing: self._named(action.write(writing)))

    def _replacing(self) -> Action:
        """Writes the partitions that have rows to undo anew, as they shall be."""
        columns = self._keyed.partition_columns
        whole = self._keyed.is_table_wide or not columns
        kept = self._matching(self._stored, self._touched, self._shape.columns, kind="ANTI")
        names: list[str] = []
        if not whole:
            names = self._touched_partitions()
            query = select_from([exp.column(name, quoted=True) for name in columns], self._touched).distinct()
            places = self._deltas.add("partitions", query)
            join = exp.Join(this=renamed(places, "p", columns), kind="SEMI", on=_same(columns))
            kept = kept.join(join, copy=False)
        rows = self._deltas.add(
            "replaced", exp.union(kept, select_from(self._shape.columns, self._wanted), distinct=False)
        )
        self._run_new()
        action = self._engine.replacing(rows, self.lake, self._now, whole=whole)

        def write(writing: Writing) -> Completion:
            made = self._named(action.write(writing))
            return dataclasses.replace(made, replaced_partitions=sorted({*made.replaced_partitions, *names}))

        return action._replace(write=write)

    def _touched_partitions(self) -> list[str]:
        """The names of the partitions that have rows to undo. Raises ValueError for too many."""
        columns = self._keyed.partition_columns
        query = select_from([as_text(name) for name in columns], self._touched).distinct()
        found = self._rows(query, MAX_PARTITIONS + 1)
        if len(found) > MAX_PARTITIONS:
            raise ValueError(f"{self.lake.name}: rows of more than {MAX_PARTITIONS:,} partitions would be undone")
        return [make_name(columns, [each[name] for name in columns]) for each in found]

    def _named(self, completion: Completion) -> Completion:
        return dataclasses.replace(completion, metadata=undoing_metadata(self.instants))

    def _rows(self, query: exp.Query, most: int) -> list[dict[str, Any]]:
        name = self._deltas.add("found", query.limit(most))
        self._run_new()
        return self._engine.rows(name)

    def _run_new(self) -> None:
        """Runs the steps that were added since the last run."""
        fresh = self._deltas.steps[self._run :]
        self._sources.run(fresh)
        self._run += len(fresh)


def _same(columns: Sequence[str]) -> exp.Expr:
    return exp.and_(
        *(exp.column(name, table="l", quoted=True).eq(exp.column(name, table="p", quoted=True)) for name in columns)
    )
