"""Keyed tables whose partitions turn ready and are reopened, as readers of ready partitions and of all see them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake.client.lake_types import StreamBatch
from lake.protocol.formats.partition_names import make_name
from lake.protocol.lake import CommitPartitionsRequest, ReopenPartitionsRequest
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed_tables import COMMIT_VERSION
from lake.tables.lake import LakeTable
from tests.lake.client.conftest import NewTable
from tests.lake.tables.keyed.histories import COLUMNS, NAMES, SCHEMA, TABLES, History, rows_of
from tests.lake.tables.keyed.model import Key, rows_by_key
from tests.support.long_runs import share_of
from tests.support.target import local_path

PARTS = ("x", "y=ä")


class ReadinessHistory(History):
    """`states` are those that a reader of ready partitions sees, `whole` those of all partitions."""

    def __init__(self, lake: LakeTable, seed: int) -> None:
        super().__init__(lake, seed)
        self.whole: dict[int, dict[Key, dict[str, Any]]] = {0: {}}
        self.ready: set[str] = set()

    def step(self) -> None:
        if self.random.random() < 0.3:
            self.turn(self.random.choice(PARTS))
        else:
            super().step()
        position = self.lake.position().position
        self.whole[position] = dict(self.model.rows)
        self.states[position] = {key: row for key, row in self.model.rows.items() if row["part"] in self.ready}

    def turn(self, part: str) -> None:
        name = make_name(["part"], [part])
        if name not in self.lake.partitions():
            return
        if part in self.ready:
            reopen(self.lake, name)
            self.ready.remove(part)
        else:
            commit(self.lake, name)
            self.ready.add(part)

    def check_whole(self) -> None:
        """Readers of uncommitted partitions see no change when one turns ready or is reopened."""
        for position, rows in self.whole.items():
            found = self.lake.scan(as_of=position, include_uncommitted=True).to_arrow().select(NAMES)
            assert rows_by_key(self.table, found) == rows
        turned = {each.position for each in self.lake.instants(actions=["readiness"])}
        changes = self.lake.changes(0, include_uncommitted=True).to_arrow(of_each_commit=True)
        assert turned.isdisjoint(changes.column(COMMIT_VERSION).to_pylist())


def commit(lake: LakeTable, *names: str) -> None:
    request = CommitPartitionsRequest(lake.reference, list(names))
    lake.client.call(lambda opened: opened.lake_commit_partitions(request))


def reopen(lake: LakeTable, *names: str) -> None:
    request = ReopenPartitionsRequest(lake.reference, list(names))
    lake.client.call(lambda opened: opened.lake_reopen_partitions(request))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", ["latest", "partial update"])
def test_histories(new_table: NewTable, engine: str, kind: str) -> None:
    run(new_table, engine, kind, 0, steps=14)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", TABLES)
def test_many_histories(new_table: NewTable, engine: str, kind: str) -> None:
    for seed in range(share_of(100)):
        run(new_table, engine, kind, 1000 + seed, steps=10 + seed % 20)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
def test_histories_with_changelogs(new_table: NewTable, kind: str) -> None:
    for seed in range(2):
        run(new_table, "latest", kind, 10 + seed, steps=14, producer="lookup")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("engine", TABLES)
def test_many_histories_with_changelogs(new_table: NewTable, engine: str, kind: str) -> None:
    for seed in range(share_of(50)):
        run(new_table, engine, kind, 2000 + seed, steps=10 + seed % 20, producer="lookup")


def run(new_table: NewTable, engine: str, kind: str, seed: int, steps: int, producer: str = "none") -> None:
    properties = {"primary-key": "id,part", "bucket": "2", "table-type": kind, "partition.commit.mode": "manual"}
    properties["changelog-producer"] = producer
    history = ReadinessHistory(new_table({**properties, **TABLES[engine]}, COLUMNS), seed)
    for _ in range(steps):
        history.step()
    history.check()
    history.check_whole()


def test_a_partition_that_turns_ready_brings_its_rows(new_table: NewTable) -> None:
    lake = new_table({"primary-key": "id,part", "partition.commit.mode": "manual"}, COLUMNS)
    row = {"id": 1, "v": 1, "a": 1, "b": "p", "part": "x"}
    lake.upsert(rows_of([row]))
    seen = lake.position().position
    assert lake.changes(0, seen).to_arrow().num_rows == 0
    commit(lake, "part=x")
    lake.upsert(rows_of([{**row, "v": 2}]))
    [insert] = lake.changes(seen).to_arrow().to_pylist()
    assert (insert[CHANGE_TYPE], insert["v"]) == ("insert", 2)
    before = lake.position().position
    reopen(lake, "part=x")
    [delete] = lake.changes(before).to_arrow().to_pylist()
    assert (delete[CHANGE_TYPE], delete["v"]) == ("delete", 2)
    assert lake.scan().to_arrow().num_rows == 0
    assert lake.scan(as_of=before).to_arrow().num_rows == 1


def test_a_row_that_turns_ready_later_is_no_change_of_the_commit_that_wrote_it(new_table: NewTable) -> None:
    """Not even if that commit changed rows of a ready partition, too."""
    lake = new_table({"primary-key": "id,part", "partition.commit.mode": "manual"}, COLUMNS)
    row = {"id": 1, "v": 1, "a": 1, "b": "p"}
    parts = ("x", "y")
    lake.upsert(rows_of([{**row, "part": part} for part in parts]))
    commit(lake, "part=y")
    before = lake.position().position
    lake.upsert(rows_of([{**row, "id": 2, "part": part} for part in parts]))
    written = lake.position().position
    commit(lake, "part=x")
    turned = lake.position().position
    assert versions(lake, before) == {(1, "x"): turned, (2, "x"): turned, (2, "y"): written}
    before = turned
    reopen(lake, "part=x")
    reopened = lake.position().position
    lake.delete(rows_of([{**row, "part": part} for part in parts]).select(["id", "part"]))
    assert versions(lake, before) == {(1, "x"): reopened, (2, "x"): reopened, (1, "y"): lake.position().position}


def versions(lake: LakeTable, after: int) -> dict[tuple[int, str], int]:
    """By row, the position at which it changed."""
    changes = lake.changes(after).to_arrow().to_pylist()
    assert {each[CHANGE_TYPE] for each in changes} <= {"insert", "delete"}
    return {(each["id"], each["part"]): each[COMMIT_VERSION] for each in changes}


def test_late_rows_that_are_dropped_leave_no_files(new_table: NewTable) -> None:
    table = new_table(
        {"primary-key": "id,part", "partition.commit.mode": "manual", "partition.late-rows": "drop"}, COLUMNS
    )

    def upsert(number: int, *parts: str) -> None:
        values = [{"id": number, "v": 1, "a": 1, "b": "", "part": part} for part in parts]
        table.upsert(pa.Table.from_pylist(values, SCHEMA), batch=StreamBatch("s", number))

    upsert(1, "x", "z")
    commit(table, "part=x")
    upsert(2, "x", "z")
    files = list(table.snapshot(include_uncommitted=True, all_versions=True))
    assert len(files) == 3
    there = {each.name for each in local_path(table.location()).rglob("*.parquet")}
    assert there == {Path(each.path).name for each in files}
