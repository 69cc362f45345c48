"""Random histories of one name: several clients live on while tables of other shapes come and go under it.

A client never reads a wrong row and never writes by the shape of an earlier table. The only error is TableReplaced, and
the same call by a new object succeeds.
"""

import itertools
import random
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from lake.protocol.lake import TableReference, TableReplaced
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.keyed_writes import Action, _Change
from lake.tables.lake import LakeClient, LakeTable, Writing
from tests.support import builders
from tests.support.long_runs import share_of
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
CLIENTS = 3
TYPES = {"bigint": pa.int64(), "string": pa.string(), "int": pa.int32(), "double": pa.float64()}
ENGINES = {"deduplicate": {}, "first-row": {"ignore-delete": "true"}}
STEPS = (
    "upsert",
    "upsert",
    "upsert",
    "scan",
    "scan",
    "lookup",
    "compact",
    "plan",
    "run",
    "begin",
    "complete",
    "replace",
)


class Shape(NamedTuple):
    """A table's definition."""

    key: str
    further: str
    buckets: int
    kind: str
    engine: str

    @classmethod
    def chosen(cls, dice: random.Random) -> "Shape":
        return cls(
            dice.choice(["id", "k"]),
            dice.choice(["v:int", "w:double", "x:string"]),
            dice.randint(1, 3),
            dice.choice(["merge-on-read", "merge-on-read", "copy-on-write"]),
            dice.choice([*ENGINES]),
        )

    @property
    def columns(self) -> list[str]:
        return ["id:bigint", "k:string", self.further]

    def rows(self, dice: random.Random) -> list[dict[str, Any]]:
        """Rows with different keys."""
        name, kind = self.further.split(":")
        value: Any = dice.randint(0, 99)
        value = {"int": value, "double": value / 2, "string": f"x{value}"}[kind]
        found = [{"id": dice.randint(0, 3), "k": dice.choice("abcd"), name: value} for _ in range(dice.randint(1, 3))]
        return [*{row[self.key]: row for row in found}.values()]

    def arrow(self, rows: list[dict[str, Any]]) -> pa.Table:
        fields = [(name, TYPES[kind]) for name, kind in (each.split(":") for each in self.columns)]
        return pa.Table.from_pylist(rows, schema=pa.schema(fields))


class Begun(NamedTuple):
    """A write that has begun. `completions`: how many the name had then."""

    stack: ExitStack
    writing: Writing
    action: Action
    rows: list[dict[str, Any]]
    table: int
    completions: int


class History:
    """A name, its table's shape and rows, and what clients hold on to."""

    def __init__(self, clients: list[LakeClient], seed: int) -> None:
        self.clients = clients
        self.dice = random.Random(seed)
        self.database = f"history{next(NUMBERS)}"
        self.clients[0].call(lambda opened: opened.create_database(builders.database(self.database)))
        self.completions = 0
        self.table = 0
        self.plans: list[tuple[TableReference, str, int]] = []
        self.begun: list[Begun] = []
        self.replace(0)
        self.held = [self.fresh(number) for number in range(len(clients))]
        self.held_shapes = [self.shape] * len(clients)

    def fresh(self, number: int) -> LakeTable:
        table = self.clients[number].table(f"{self.database}.t")
        assert table.id is not None  # from now on it is this table, whatever has its name
        return table

    def step(self, kind: str, number: int) -> None:
        """One step by one of the clients; by a new object if the table of the one that it holds is gone."""
        if kind == "replace":
            self.replace(number)
            return
        use: Callable[[int], None] = getattr(self, kind)
        try:
            use(number)
        except TableReplaced:
            assert self.held[number].id != self.fresh(number).id, "the table is the same"
            self.held[number], self.held_shapes[number] = self.fresh(number), self.shape
            use(number)

    def replace(self, number: int) -> None:
        self.shape = Shape.chosen(self.dice)
        properties = {
            "primary-key": self.shape.key,
            "bucket": str(self.shape.buckets),
            "table-type": self.shape.kind,
            "merge-engine": self.shape.engine,
            **ENGINES[self.shape.engine],
        }
        made = builders.table(
            self.database, "t", keys=(), sd=builders.parquet(*self.shape.columns), parameters=properties
        )

        def call(opened: Any) -> None:
            if self.table:
                opened.drop_table(self.database, "t", True)
            opened.create_table(made)

        self.clients[number].call(call)
        self.table += 1
        self.rows: dict[Any, dict[str, Any]] = {}

    def merge(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if self.shape.engine == "deduplicate" or row[self.shape.key] not in self.rows:
                self.rows[row[self.shape.key]] = row
        self.completions += 1

    def upsert(self, number: int) -> None:
        rows = self.held_shapes[number].rows(self.dice)
        self.held[number].upsert(self.held_shapes[number].arrow(rows))
        self.merge(rows)

    def scan(self, number: int) -> None:
        assert sorted(self.held[number].scan().to_arrow().to_pylist(), key=str) == sorted(self.rows.values(), key=str)

    def lookup(self, number: int) -> None:
        key = self.held_shapes[number].key
        wanted = self.dice.choice([0, 1, 2, 3] if key == "id" else [*"abcd"])
        found = self.held[number].lookup([{key: wanted}]).to_pylist()
        assert found == [self.rows[each] for each in [wanted] if each in self.rows]

    def compact(self, number: int) -> None:
        planned = plan_compaction(self.held[number]).instant
        if planned is not None:
            run_compaction(self.held[number], planned.timestamp)
            self.completions += 1

    def plan(self, number: int) -> None:
        planned = plan_compaction(self.held[number]).instant
        if planned is not None:
            self.plans.append((self.held[number].reference, planned.timestamp, self.table))

    def run(self, number: int) -> None:
        """Runs a plan as an executor does, which has it from a queue."""
        if not self.plans:
            return
        reference, timestamp, table = self.plans.pop(self.dice.randrange(len(self.plans)))
        try:
            run_compaction(self.clients[number].table(reference), timestamp)
        except TableReplaced:
            assert table != self.table
            return
        assert table == self.table
        self.completions += 1

    def begin(self, number: int) -> None:
        held, shape = self.held[number], self.held_shapes[number]
        rows = shape.rows(self.dice)
        action = _Change(held, shape.arrow(rows), "upsert", None, "arrow", None).action()
        stack = ExitStack()
        writing = stack.enter_context(held.writing(action.name))
        self.begun.append(Begun(stack, writing, action, rows, self.table, self.completions))

    def complete(self, number: int) -> None:
        """Completes a write that has begun, unless others have completed since: their order isn't what is tested."""
        if not self.begun:
            return
        begun = self.begun.pop(self.dice.randrange(len(self.begun)))
        with begun.stack:
            if begun.table == self.table and begun.completions != self.completions:
                return
            try:
                begun.writing.complete(begun.action.write(begun.writing))
            except TableReplaced:
                assert begun.table != self.table
                return
            assert begun.table == self.table
            self.merge(begun.rows)

    def end(self) -> None:
        """Everybody sees the rows of the table that is there."""
        for each in self.begun:
            each.stack.close()
        for number in range(len(self.clients)):
            self.step("scan", number)


def play(server: MetastoreServer, seed: int) -> None:
    dice = random.Random(seed)
    clients = [LakeClient(server.uri) for _ in range(CLIENTS)]
    try:
        history = History(clients, seed)
        for _ in range(dice.randint(10, 20)):
            history.step(dice.choice(STEPS), dice.randrange(CLIENTS))
        history.end()
    finally:
        for each in clients:
            each.close()


def test_histories(metastore_server: MetastoreServer) -> None:
    for seed in range(4):
        play(metastore_server, seed)


@pytest.mark.long
def test_many_histories(metastore_server: MetastoreServer) -> None:
    for seed in range(share_of(1_000)):
        play(metastore_server, 1_000 + seed)
