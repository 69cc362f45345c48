"""Columns of keyed tables that are renamed, dropped, added again, moved or widened, against a plain model."""

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.client.lake_types import Completion
from lake.protocol.hive import InvalidOperationException
from lake.tables import publishing
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed.files import link_files
from lake.tables.lake import LakeTable
from lake.tables.publishing import publish
from tests.lake.client.conftest import NewTable
from tests.lake.client.test_publishing import directories
from tests.support import builders
from tests.support.long_runs import share_of
from tests.support.target import local_path

ARROW = {"bigint": pa.int64(), "int": pa.int32(), "string": pa.string()}
Row = dict[int, Any]
"""Values by the ids of columns."""


def alter(lake: LakeTable, *specs: str) -> None:
    """Gives a table these columns, as Hive does."""
    table = lake.describe()
    assert table.sd is not None
    changed = table.replace(sd=table.sd.replace(cols=builders.columns(*specs)))
    with lake.client.connect() as client:
        client.setMetaConf("hive.metastore.disallow.incompatible.col.type.changes", "false")
        client.alter_table(table.dbName, table.tableName, changed)


class Columns:
    """A random history of a keyed table and its columns. `states`: the rows by key, after each completion."""

    def __init__(self, lake: LakeTable, seed: int) -> None:
        self.lake = lake
        self.random = random.Random(seed)
        self.names = {1: "id", 2: "a", 3: "b"}  # in the table's order, by id
        self.types = {1: "bigint", 2: "int", 3: "string"}
        self.rows: dict[int, Row] = {}
        self.states: dict[int, dict[int, Row]] = {0: {}}

    def step(self) -> None:
        choose = self.random.choice
        choose([self.write, self.write, self.delete, self.compact, self.add, self.drop, self.rename, self.move])()
        self.states[self.lake.position().position] = dict(self.rows)

    def write(self) -> None:
        batch = {key: {1: key, **{id: self.value(id) for id in self.names if id != 1}} for key in self.keys()}
        schema = pa.schema([(name, ARROW[self.types[id]]) for id, name in self.names.items()])
        rows = [{self.names[id]: value for id, value in row.items()} for row in batch.values()]
        self.lake.upsert(pa.Table.from_pylist(rows, schema=schema))
        self.rows.update(batch)

    def delete(self) -> None:
        keys = self.keys()
        self.lake.delete(pa.table({"id": pa.array(keys, pa.int64())}))
        self.rows = {key: row for key, row in self.rows.items() if key not in keys}

    def compact(self) -> None:
        if (planned := plan_compaction(self.lake, min_log_files=1)).instant is not None:
            run_compaction(self.lake, planned.instant.timestamp)

    def add(self) -> None:
        """Adds a column somewhere, by a name that another one may have had."""
        id, name = max(self.types) + 1, self.free_name()
        self.types[id] = self.random.choice(["int", "string"])
        items = list(self.names.items())
        items.insert(self.random.randint(0, len(items)), (id, name))
        self.alter(dict(items))

    def drop(self) -> None:
        if len(self.names) > 1:
            gone = self.random.choice([id for id in self.names if id != 1])
            self.alter({id: name for id, name in self.names.items() if id != gone})

    def rename(self) -> None:
        if len(self.names) > 1:
            renamed = self.random.choice([id for id in self.names if id != 1])
            if self.types[renamed] == "int" and self.random.random() < 0.3:
                self.types[renamed] = "bigint"
            self.alter({**self.names, renamed: self.free_name()})

    def move(self) -> None:
        items = list(self.names.items())
        self.random.shuffle(items)
        self.alter(dict(items))

    def alter(self, names: dict[int, str]) -> None:
        self.names = names
        alter(self.lake, *(f"{name}:{self.types[id]}" for id, name in names.items()))

    def keys(self) -> list[int]:
        return self.random.sample(range(8), self.random.randint(1, 4))

    def value(self, id: int) -> Any:
        number = self.random.randint(0, 9)
        return f"{id}:{number}" if self.types[id] == "string" else 100 * id + number

    def free_name(self) -> str:
        return self.random.choice([name for name in "abcdef" if name not in self.names.values()])

    def expected(self, position: int) -> list[dict[str, Any]]:
        """The rows at a position, with today's columns."""
        rows = sorted(self.states[position].items())
        return [{name: row.get(id) for id, name in self.names.items()} for _, row in rows]

    def read(self, position: int) -> list[dict[str, Any]]:
        return in_order(self.lake.scan(as_of=position).to_arrow())

    def check(self) -> None:
        for position in [*self.states][1:]:
            assert self.read(position) == self.expected(position), f"at {position}"
        last = max(self.states)
        found = self.lake.lookup([{"id": key} for key in range(8)])
        assert in_order(found) == self.expected(last)
        for _ in range(3):
            start = self.random.choice([*self.states])
            rows = {row["id"]: row for row in self.expected(start)}
            for change in in_order(self.lake.changes(start, last).to_arrow()):
                kind, row = change.pop(CHANGE_TYPE), {name: change[name] for name in self.names.values()}
                if kind in ("delete", "update_preimage"):
                    assert rows[row["id"]] == row
                    rows.pop(row["id"])
            for change in in_order(self.lake.changes(start, last).to_arrow()):
                if change[CHANGE_TYPE] in ("insert", "update_postimage"):
                    rows[change["id"]] = {name: change[name] for name in self.names.values()}
            assert [rows[key] for key in sorted(rows)] == self.expected(last), f"changes from {start} to {last}"


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=lambda row: row["id"])


def properties(kind: str, **further: str) -> dict[str, str]:
    return {"primary-key": "id", "bucket": "2", "table-type": kind, **further}


def run(new_table: NewTable, kind: str, producer: str, seed: int, steps: int) -> None:
    made = new_table(
        properties(kind, **{"changelog-producer": producer}), {"id": "bigint", "a": "int", "b": "string"}, False
    )
    history = Columns(made, seed)
    for _ in range(steps):
        history.step()
    history.check()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("producer", ["none", "lookup"])
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
def test_histories_of_columns(new_table: NewTable, kind: str, producer: str) -> None:
    for seed in range(2):
        run(new_table, kind, producer, seed, steps=16)


@pytest.mark.long
@pytest.mark.parametrize("producer", ["none", "lookup"])
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
def test_many_histories_of_columns(new_table: NewTable, kind: str, producer: str) -> None:
    for seed in range(share_of(50)):
        run(new_table, kind, producer, 1000 + seed, steps=10 + seed % 20)


ONE = pa.table({"id": pa.array([1], pa.int64()), "a": pa.array([5], pa.int32())})


@pytest.fixture
def numbers(new_table: NewTable) -> LakeTable:
    lake = new_table(properties("copy-on-write", bucket="1"), {"id": "bigint", "a": "int"}, False)
    lake.upsert(ONE)
    return lake


def test_columns_beside_families(new_table: NewTable) -> None:
    further = {"column-families": "left:a", "changelog-producer": "lookup"}
    lake = new_table(properties("copy-on-write", **further), {"id": "bigint", "a": "int", "b": "int"}, False)
    lake.upsert(ONE.append_column("b", ONE.column("a")))
    alter(lake, "id:bigint", "a:int", "x:int")
    alter(lake, "id:bigint", "a:int", "x:int", "b:int")
    lake.update_columns(ONE.set_column(1, "a", pa.array([6], pa.int32())))
    assert in_order(lake.scan().to_arrow()) == [{"id": 1, "a": 6, "x": 5, "b": None}]
    assert in_order(lake.scan(as_of=1, columns=["id", "b", "x"]).to_arrow()) == [{"id": 1, "b": None, "x": 5}]
    kinds = {change[CHANGE_TYPE]: change["a"] for change in lake.changes(1).to_arrow().to_pylist()}
    assert kinds == {"update_preimage": 5, "update_postimage": 6}


def test_files_have_ids(numbers: LakeTable) -> None:
    alter(numbers, "id:bigint", "x:int")
    numbers.upsert(ONE.rename_columns(["id", "x"]))
    alter(numbers, "c:int", "id:bigint", "x:int")
    numbers.upsert(ONE.slice(0, 1).append_column("c", ONE.column("a")).rename_columns(["id", "x", "c"]))
    snapshot = numbers.snapshot()
    for file in snapshot:
        schema = pq.read_schema(local_path(f"{snapshot.location}/{file.path}"))
        ids = {each.name: int((each.metadata or {}).get(b"PARQUET:field_id", b"-1")) for each in schema}
        assert ids == {"c": 3, "id": 1, "x": 2, "_metastore_instant": 2_000_000_001}


@pytest.mark.parametrize("specs", [("id:bigint", "x:int"), ("id:bigint", "a:int", "c:int"), ("id:bigint",)])
def test_a_writer_that_knows_earlier_columns_is_refused(numbers: LakeTable, specs: tuple[str, ...]) -> None:
    """It would rewrite rows of others without their columns."""
    layout = numbers.schema().keyed_table()
    assert layout is not None
    with numbers.writing() as writing:
        alter(numbers, *specs)
        for known in (layout.layout(), *([] if "c:int" in specs else [None])):
            file = next(iter(numbers.snapshot()))._replace(path=f"{writing.path}/new.parquet")
            with pytest.raises(InvalidOperationException, match="have been added, renamed or dropped since the writer"):
                writing.complete(Completion(added=[file], layout=known))
    assert [row["id"] for row in in_order(numbers.scan().to_arrow())] == [1]


def test_columns_of_published_files(numbers: LakeTable) -> None:
    """Hive finds columns by their names."""
    alter(numbers, "id:bigint", "x:int")
    published = publish(numbers)
    assert published.files == 1 and published.linked == 0
    [file] = directories(numbers)[""].glob("*.parquet")
    assert pq.read_table(file, columns=["id", "x"]).to_pylist() == [{"id": 1, "x": 5}]
    with pytest.raises(InvalidOperationException, match=r"x can't be renamed to a: .* the published files, which Hive"):
        alter(numbers, "id:bigint", "a:int")
    alter(numbers, "id:bigint")
    with pytest.raises(InvalidOperationException, match=r"x can't be added again"):
        alter(numbers, "id:bigint", "x:int")


def test_a_publish_that_knows_earlier_columns_is_refused(numbers: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(pairs: Sequence[tuple[str, str]]) -> int:
        alter(numbers, "id:bigint", "x:int")
        return link_files(pairs)

    monkeypatch.setattr(publishing, "link_files", link)
    with pytest.raises(InvalidOperationException, match="have been added, renamed or dropped since"):
        publish(numbers)
    monkeypatch.undo()
    publish(numbers)
    [file] = directories(numbers)[""].glob("*.parquet")
    assert pq.read_table(file, columns=["x"]).to_pylist() == [{"x": 5}]


def test_named_columns_stay(new_table: NewTable) -> None:
    """Columns that the table's properties name can't be renamed or dropped."""
    lake = new_table(properties("copy-on-write", **{"sequence.field": "a"}), {"id": "bigint", "a": "int"}, False)
    for specs, name in ((("x:bigint", "a:int"), "id"), (("id:bigint", "x:int"), "a"), (("id:bigint",), "a")):
        with pytest.raises(InvalidOperationException, match=f"the table has no column {name}"):
            alter(lake, *specs)
