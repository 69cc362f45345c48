"""Column families of keyed tables: what an update of columns writes, who it conflicts with, and what it refuses."""

import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from lake.protocol.hive import InvalidOperationException, MetaException
from lake.protocol.lake import InstantConflict
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed.errors import UnfitRows
from lake.tables.lake import LakeClient, LakeTable
from lake.tables.publishing import publish
from tests.lake.client.conftest import NewTable
from tests.lake.tables.keyed.histories import COLUMNS, SCHEMA
from tests.support.server import MetastoreServer

FAMILIES = {"primary-key": "id,part", "column-families": "left:a; right:b"}


def rows(*records: Mapping[str, Any]) -> pa.Table:
    """Records of the partition `x`."""
    named = [{"part": "x", **each} for each in records]
    return pa.Table.from_pylist(named, schema=pa.schema([SCHEMA.field(name) for name in named[0]]))


def values(lake: LakeTable, *names: str) -> list[tuple[Any, ...]]:
    found = lake.scan(columns=["id", *names]).to_arrow().to_pylist()
    return sorted(tuple(each.values()) for each in found)


@pytest.fixture
def table(new_table: NewTable) -> LakeTable:
    lake = new_table(FAMILIES, COLUMNS)
    lake.upsert(rows({"id": 1, "v": 1, "a": 1, "b": "p"}, {"id": 2, "v": 2, "a": 2, "b": "q"}))
    return lake


def test_an_update_writes_the_files_of_its_families_alone(table: LakeTable) -> None:
    before = {each.path for each in table.snapshot()}
    assert len(before) == 3  # the main file and two families
    done = table.update_columns(rows({"id": 2, "a": 7}, {"id": 3, "a": 9}))
    [written] = done.files
    assert written.columns == ["a"]
    after = {each.path for each in table.snapshot()}
    assert len(before & after) == 2
    assert after - before == {written.path}
    assert values(table, "v", "a", "b") == [(1, 1, 1, "p"), (2, 2, 7, "q")]  # the key 3 isn't there
    assert values(table, "b") == [(1, "p"), (2, "q")]
    changes = table.changes(1).to_arrow().select(["id", "a", CHANGE_TYPE, "_commit_version"]).to_pylist()
    assert [tuple(each.values()) for each in changes] == [(2, 2, "update_preimage", 2), (2, 7, "update_postimage", 2)]
    assert sum(each.rows or 0 for each in table.snapshot()) == 2


def test_an_update_that_changes_nothing_writes_nothing(table: LakeTable) -> None:
    assert table.update_columns(rows({"id": 2, "a": 2, "b": "q"})).files == []
    assert table.update_columns(rows({"id": 7, "a": 2})).files == []
    assert table.update_columns(rows({"id": 1, "a": 2}).slice(0, 0)).instant is None


def test_other_writes_go_on(table: LakeTable) -> None:
    table.update_columns(rows({"id": 1, "a": 5, "b": "r"}))
    table.upsert(rows({"id": 3, "v": 3, "a": 3, "b": "s"}))
    table.delete(rows({"id": 2}))
    table.update_columns(rows({"id": 3, "b": None}))
    table.clean(table.plan_clean(keep_commits=1))
    assert values(table, "v", "a", "b") == [(1, 1, 5, "r"), (3, 3, 3, None)]
    assert table.lookup([{"id": 1, "part": "x"}]).to_pylist() == [{"id": 1, "v": 1, "a": 5, "b": "r", "part": "x"}]


def test_what_is_refused(table: LakeTable, new_table: NewTable) -> None:
    for given, message in (
        (rows({"id": 1, "v": 2}), "the column v is in none of column-families"),
        (rows({"id": 1}), "no column to update"),
        (rows({"id": 1, "a": 2}, {"id": 1, "a": 3}), "the key id=1 has several rows"),
        (pa.table({"id": [1], "a": [2]}), "the rows have no column part"),
    ):
        with pytest.raises(UnfitRows, match=message):
            table.update_columns(given)
    with pytest.raises(ValueError, match="an update of columns has no event times"):
        table.update_columns(rows({"id": 1, "a": 2}), event_time="a")
    with pytest.raises(UnfitRows, match="update_columns needs column-families"):
        new_table({"primary-key": "id,part"}, COLUMNS).update_columns(rows({"id": 1, "a": 2}))
    with pytest.raises(ValueError, match="has column families: Hive's readers"):
        publish(table)
    assert table.position().position == 1


def test_families_of_a_table_with_rows_stay(table: LakeTable, lake: LakeClient) -> None:
    database, name = table.name.split(".")
    stored = lake.call(lambda opened: opened.get_table(database, name))
    for families in ("left:a", "left:b; right:a", ""):
        changed = stored.replace(parameters={**stored.parameters, "column-families": families})
        with pytest.raises(InvalidOperationException, match="column-families can't be changed"):
            lake.call(lambda opened, to=changed: opened.alter_table(database, name, to))
    without = [each for each in stored.sd.cols if each.name != "a"]
    dropped = stored.replace(sd=stored.sd.replace(cols=without))
    with pytest.raises((InvalidOperationException, MetaException), match="the table has no column a"):
        lake.call(lambda opened: opened.alter_table(database, name, dropped))


def test_updates_of_one_bucket_conflict_and_are_made_again(table: LakeTable, metastore_server: MetastoreServer) -> None:
    read = table.position().position
    table.update_columns(rows({"id": 1, "b": "z"}))
    with pytest.raises(InstantConflict):  # the caller's own condition isn't tried again
        table.update_columns(rows({"id": 1, "a": 8}), based_on=read)

    def write(number: int) -> None:
        with LakeClient(metastore_server.uri) as client:
            mine = client.table(table.name)
            for turn in range(5):
                if number == 0:
                    mine.upsert(rows({"id": 10 + turn, "v": turn, "a": 0, "b": None}))
                else:
                    mine.update_columns(rows({"id": number, "a": turn, "b": str(turn)}))

    with ThreadPoolExecutor() as pool:
        for each in [pool.submit(write, number) for number in range(3)]:
            each.result(timeout=120)
    assert values(table, "v", "a", "b") == [
        (1, 1, 4, "4"),
        (2, 2, 4, "4"),
        *((10 + turn, turn, 0, None) for turn in range(5)),
    ]


def test_updates_of_different_families_commute_by_columns(new_table: NewTable) -> None:
    """`timeline.conflict-strategy=column`: what was read before the other family's update is no conflict."""
    lake = new_table({**FAMILIES, "timeline.conflict-strategy": "column"}, COLUMNS)
    lake.upsert(rows({"id": 1, "v": 1, "a": 1, "b": "p"}))
    lake.update_columns(rows({"id": 1, "b": "z"}), based_on=1)
    lake.update_columns(rows({"id": 1, "a": 8}), based_on=1)
    assert values(lake, "a", "b") == [(1, 8, "z")]
    for change in (lambda: lake.update_columns(rows({"id": 1, "a": 9}), based_on=1), lambda: _upsert(lake)):
        with pytest.raises(InstantConflict):
            change()
    kinds = lake.changes(2).to_arrow().select(["a", "b", CHANGE_TYPE]).to_pylist()
    assert [tuple(each.values()) for each in kinds] == [(1, "z", "update_preimage"), (8, "z", "update_postimage")]


def _upsert(lake: LakeTable) -> None:
    lake.upsert(rows({"id": 1, "v": 1, "a": 1, "b": "p"}), based_on=1)


def test_what_families_were_built_on_is_not_rolled_back_alone(table: LakeTable) -> None:
    table.upsert(rows({"id": 3, "v": 3, "a": 3, "b": "s"}))
    table.update_columns(rows({"id": 3, "a": 4}))
    upsert = next(each for each in table.instants() if each.position == 2)
    with pytest.raises(InvalidOperationException):
        table.roll_back(upsert)
    update = next(each for each in table.instants() if each.position == 3)
    table.roll_back(update)
    assert values(table, "a") == [(1, 1), (2, 2), (3, 3)]
    table.roll_back(upsert)
    assert values(table, "a") == [(1, 1), (2, 2)]


_WRITER = """
import sys
import pyarrow as pa
from lake.tables.lake import LakeClient
with LakeClient(sys.argv[1]) as client:
    lake = client.table(sys.argv[2])
    for turn in range(10_000):
        rows = {"id": range(50), "part": ["x"] * 50, "a": pa.array([turn] * 50, pa.int32()), "b": [str(turn)] * 50}
        lake.update_columns(pa.table(rows), heartbeat_seconds=1)
        print(turn, flush=True)
"""


def test_a_writer_that_is_killed_leaves_whole_updates(new_table: NewTable, metastore_server: MetastoreServer) -> None:
    lake = new_table(FAMILIES, COLUMNS)
    lake.upsert(rows(*({"id": id, "v": 0, "a": -1, "b": "-1"} for id in range(50))))
    for number in range(2):
        command = [sys.executable, "-c", _WRITER, metastore_server.uri, lake.name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            done = int(writer.stdout.readline())
            time.sleep(0.05 * number)  # somewhere within an update
            writer.kill()
            done = max([done, *(int(line) for line in writer.stdout if line.endswith("\n"))])
        found = values(lake, "a", "b")
        assert len(found) == 50
        assert {(str(a), b) for _, a, b in found} <= {(str(done), str(done)), (str(done + 1), str(done + 1))}
        assert len({a for _, a, _ in found}) == 1
