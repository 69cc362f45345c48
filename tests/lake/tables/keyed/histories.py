"""Random histories of keyed tables on a running server, and their model."""

import copy
import itertools
import random
from collections.abc import Mapping
from typing import Any, Literal

import pyarrow as pa
import pytest

from lake.client.lake_types import Changelog, Instant
from lake.protocol.formats.keyed_table import DELETED, ChangelogProducer, KeyedTable
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.lake import ChangeFeed, LakeClient, LakeTable
from lake.tables.publishing import publish
from tests.lake.tables.keyed.model import Key, Model, Record, key_of, rows_by_key
from tests.support import builders

Operation = Literal["upsert", "merge", "delete"]

_NUMBERS = itertools.count(1)

_KEPT = frozenset({"rollback", "publish", "readiness"})
"""The actions of instants that no history rolls back."""

COLUMNS = {"id": "bigint", "v": "int", "a": "int", "b": "string", "part": "string"}
NAMES = list(COLUMNS)
SCHEMA = pa.schema(
    [("id", pa.int64()), ("v", pa.int32()), ("a", pa.int32()), ("b", pa.string()), ("part", pa.string())]
)
TABLES: Mapping[str, Mapping[str, str]] = {
    "latest": {},
    "sequence": {"sequence.field": "v"},
    "first row": {"merge-engine": "first-row", "ignore-delete": "true"},
    "partial update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "sequence group": {
        "merge-engine": "partial-update",
        "ignore-delete": "true",
        "fields.v.sequence-group": "a",
    },
    "aggregation": {
        "merge-engine": "aggregation",
        "ignore-delete": "true",
        "fields.v.aggregate-function": "max",
        "fields.a.aggregate-function": "sum",
    },
}


class History:
    """Random changes of one table, and its rows after each completion. `models`: the model before each of them."""

    def __init__(self, lake: LakeTable, seed: int) -> None:
        self.lake = lake
        self.random = random.Random(seed)
        table = lake.schema().keyed_table()
        assert table is not None
        self.table: KeyedTable = table
        self.model = Model(table, NAMES)
        self.states: dict[int, dict[Key, dict[str, Any]]] = {0: {}}
        self.models: dict[int, Model] = {0: self.model}
        self.plans: list[Instant] = []

    def step(self) -> None:
        before = copy.deepcopy(self.model)
        choice = self.random.random()
        if self.table.families and self.random.random() < 0.3:
            self.update_columns()
        elif choice < 0.5:
            self.write()
        elif choice < 0.65:
            self.delete()
        elif choice < 0.78:
            planned = plan_compaction(self.lake, min_log_files=self.random.randint(1, 2))
            if planned.instant is not None:
                self.plans.append(planned.instant)
        elif choice < 0.88:
            if self.plans:
                self.run_plan(self.plans.pop(self.random.randrange(len(self.plans))))
        elif choice < 0.94:
            self.roll_back()
        elif not self.table.families:
            self.publish()
        position = self.lake.position().position
        if position not in self.models:
            self.models[position] = before
        self.states[position] = dict(self.model.rows)

    def write(self) -> None:
        batch = [self.record(key) for key in self.some_keys()]
        if self.table.changelog_producer is ChangelogProducer.INPUT:
            self.write_with_images(batch)
            return
        upserts = self.random.random() < 0.5
        instant = _next(self.lake)
        if upserts:
            self.model.apply([{**each, DELETED: False} for each in batch], instant)
            self.put("upsert", rows_of(batch))
        else:
            self.model.apply(batch, instant)
            kinds = [
                self.random.choice(["delete"] if each[DELETED] else ["insert", "update_postimage"]) for each in batch
            ]
            before = [self.record(key) for key in self.some_keys()]  # pre-images, which are skipped
            rows = rows_of([*batch, *before])
            marks = pa.array([*kinds, *["update_preimage"] * len(before)], pa.string())
            self.put("merge", rows.append_column(CHANGE_TYPE, marks))

    def put(self, operation: Operation, rows: pa.Table) -> None:
        """Writes rows. A history with another writer or another reader overrides this, or what follows."""
        getattr(self.lake, operation)(rows)

    def run_plan(self, plan: Instant) -> None:
        run_compaction(self.lake, plan.timestamp)

    def publish(self) -> None:
        publish(self.lake)

    def rows_at(self, position: int) -> pa.Table:
        return self.lake.scan(as_of=position).to_arrow()

    def changes(self, first: int, last: int, *, of_each_commit: bool = False) -> pa.Table:
        return self.lake.changes(first, last).to_arrow(of_each_commit=of_each_commit)

    def write_with_images(self, batch: list[Record]) -> None:
        """Merges a batch whose rows come with what was there. Deletes of keys without a row are left out."""
        there = {key: self.model.rows.get(key) for key in (key_of(self.table, each) for each in batch)}
        rows, kinds = [], []
        for each in batch:
            old = there[key_of(self.table, each)]
            rows += [old] if old is not None else []
            kinds += [] if old is None else ["delete" if each[DELETED] else "update_preimage"]
            if not each[DELETED]:
                rows.append(dict(each))
                kinds.append("insert" if old is None else "update_postimage")
        self.model.apply(batch, _next(self.lake))
        if rows:
            self.put("merge", rows_of(rows).append_column(CHANGE_TYPE, pa.array(kinds, pa.string())))

    def delete(self) -> None:
        if self.table.changelog_producer is ChangelogProducer.INPUT:
            self.write_with_images([{**self.record(key), DELETED: True} for key in self.some_keys()])
            return
        if self.table.engine != "deduplicate" and not (self.table.remove_on_delete or self.table.ignore_delete):
            return
        named = ["id"] if self.table.is_table_wide else ["id", "part"]
        keys = [dict(zip(named, key, strict=False)) for key in self.some_keys()]
        self.model.apply([{**dict.fromkeys(NAMES), **key, DELETED: True} for key in keys], _next(self.lake))
        self.put("delete", pa.Table.from_pylist(keys, schema=pa.schema([SCHEMA.field(name) for name in named])))

    def update_columns(self) -> None:
        """Sets some columns of one family or of several, of rows that are there and of others."""
        family_columns = self.table.family_columns
        names = self.random.sample(family_columns, self.random.randint(1, len(family_columns)))
        batch = [{name: self.record(key)[name] for name in ("id", "part", *names)} for key in self.some_keys()]
        for each in batch:
            if (row := self.model.rows.get(key_of(self.table, each))) is not None:
                self.model.rows[key_of(self.table, each)] = {**row, **each}
        self.lake.update_columns(
            pa.Table.from_pylist(batch, schema=pa.schema([SCHEMA.field(name) for name in ("id", "part", *names)]))
        )

    def roll_back(self) -> None:
        """Undoes the last completion that changed files and wasn't undone."""
        completed = self.lake.instants(states=["completed"], include_archived=True)
        changed = [each for each in completed if each.action not in _KEPT and each.undone_by is None]
        if not changed:
            return
        last = max(changed, key=lambda each: each.position or 0)
        if last.begun_as != "compaction":
            self.model = copy.deepcopy(self.models[last.position or 0])
        self.lake.roll_back(last)

    def merge(self, lake: LakeTable) -> tuple[int | None, list[Record]]:
        """Merges a random batch. Returns the position of its completion, None if it changed nothing, and the batch."""
        batch = [self.record(key) for key in self.some_keys()]
        marks = pa.array(["delete" if each[DELETED] else "insert" for each in batch], pa.string())
        done = lake.merge(rows_of(batch).append_column(CHANGE_TYPE, marks))
        return None if done.instant is None else done.instant.position, batch

    def some_keys(self) -> list[tuple[int, str]]:
        count, parts = self.random.randint(1, 5), ("x", "y=ä")
        if self.table.is_table_wide:
            return [(id, self.random.choice(parts)) for id in self.random.sample(range(8), count)]
        return self.random.sample([(id, part) for id in range(6) for part in parts], count)

    def record(self, key: tuple[int, str]) -> Record:
        number = self.random.randint
        values = {"v": number(0, 4) if self.table.sequence else self.random.choice([None, 0, 1, 2])}
        others = {"a": self.random.choice([None, 0, 1, 2]), "b": self.random.choice([None, "", "p"])}
        return {"id": key[0], "part": key[1], **values, **others, DELETED: number(0, 4) == 0}

    def check(self) -> None:
        """At every position the rows are the model's, and changes turn the rows of one into those of another."""
        positions = sorted(self.states)
        for position in positions[1:]:
            found = rows_by_key(self.table, self.rows_at(position).select(NAMES))
            assert found == self.states[position], f"at {position}: {found} instead of {self.states[position]}"
        first, last = sorted(self.random.choice(positions) for _ in range(2))
        net, of_commits = (self.changes(first, last, of_each_commit=each) for each in (False, True))
        assert self._changed(first, last, net) == self.states[last]
        self._check_each_commit(first, last, of_commits)
        for feed, of_each_commit in ((net, False), (of_commits, True)):
            assert in_order(feed) == in_order(compared(self.lake, first, last, of_each_commit=of_each_commit))
        wanted = [{"id": id, "part": part} for id, part in self.some_keys()]
        found = rows_by_key(self.table, self.lake.lookup(wanted).select(NAMES))
        asked = {key_of(self.table, key) for key in wanted}
        assert found == {key: row for key, row in self.states[positions[-1]].items() if key in asked}

    def _changed(self, first: int, last: int, changes: pa.Table) -> dict[Key, dict[str, Any]]:
        state = dict(self.states[first])
        for each in _deletes_first(changes):
            kind, version = each.pop(CHANGE_TYPE), each.pop("_commit_version")
            each.pop("_commit_timestamp")
            assert first < version <= last
            key, row = key_of(self.table, each), {name: each[name] for name in NAMES}
            assert (self.states[version].get(key) == row) == (kind in ("insert", "update_postimage"))
            match kind:
                case "insert":
                    assert key not in state
                    state[key] = row
                case "update_preimage":
                    assert self.states[first][key] == row
                case "update_postimage":
                    assert state[key] != row
                    state[key] = row
                case "delete":
                    assert state.pop(key) == row
        return state

    def _check_each_commit(self, first: int, last: int, changes: pa.Table) -> None:
        """The changes of each commit are those between the states before and after it."""
        state = dict(self.states[first])
        by_version: dict[int, list[dict[str, Any]]] = {}
        for each in _deletes_first(changes):
            by_version.setdefault(each["_commit_version"], []).append(each)
        for version in sorted(by_version):
            assert first < version <= last
            before = dict(state)
            for each in by_version[version]:
                key, row = key_of(self.table, each), {name: each[name] for name in NAMES}
                match each[CHANGE_TYPE]:
                    case "delete":
                        assert state.pop(key) == row
                    case "update_preimage":
                        assert before[key] == row
                    case kind:
                        assert (key in state) == (kind == "update_postimage")
                        assert before.get(key) != row
                        state[key] = row
            assert state == self.states[version]
        assert state == self.states[last]


def compared(lake: LakeTable, first: int, last: int, *, of_each_commit: bool = False) -> pa.Table:
    """The changes as comparing snapshots finds them, without changelogs."""

    def files_alone(feed: ChangeFeed) -> Changelog:
        return Changelog(list(feed), False, "", 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChangeFeed, "changelog", files_alone)
        return lake.changes(first, last).to_arrow(of_each_commit=of_each_commit)


def in_order(changes: pa.Table) -> list[str]:
    """The changes, to be compared with others: they have no order."""
    return sorted(map(repr, changes.to_pylist()))


def _deletes_first(changes: pa.Table) -> list[dict[str, Any]]:
    """The changes; a row that moves to another partition is deleted in the old one and inserted in the new one."""
    return sorted(changes.to_pylist(), key=lambda each: str(each[CHANGE_TYPE]) != "delete")


def rows_of(records: list[Record]) -> pa.Table:
    return pa.Table.from_pylist([dict(each) for each in records], schema=SCHEMA)


def _next(lake: LakeTable) -> str:
    """A name for the instant that comes next; the model doesn't need the real one."""
    return str(lake.position().position + 1)


def make_table(
    client: LakeClient, properties: Mapping[str, str], columns: Mapping[str, str], partitioned: bool = True
) -> LakeTable:
    """Makes a keyed table in a database of its own. `columns`: names and types; the last one partitions it."""
    database = f"keyed{next(_NUMBERS)}"
    specs = [f"{name}:{kind}" for name, kind in columns.items()]
    keys = (specs.pop(),) if partitioned else ()
    made = builders.table(database, "t", keys=keys, sd=builders.parquet(*specs), parameters=dict(properties))
    client.call(lambda opened: opened.create_database(builders.database(database)))
    client.call(lambda opened: opened.create_table(made))
    return client.table(f"{database}.t")


def written_at(lake: LakeTable, batches: Mapping[int, list[Record]]) -> History:
    """The history of batches that were merged, by the positions of their completions."""
    history = History(lake, 0)
    for position in sorted(batches):
        history.model.apply(batches[position], str(position))
        history.states[position] = dict(history.model.rows)
    for instant in lake.instants(states=["completed"]):  # compactions change no row
        before = max(position for position in history.states if position <= (instant.position or 0))
        history.states[instant.position or 0] = history.states[before]
    return history
