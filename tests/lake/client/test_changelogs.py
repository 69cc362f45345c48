"""Changelogs of keyed tables: changes that are written with the rows are those that comparing snapshots finds."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lake.client.lake_types import Completion, DataFile
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import SnapshotGone
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.keyed.changes import CHANGE_TYPE
from lake.tables.keyed.errors import UnfitRows
from lake.tables.lake import LakeTable
from tests.lake.client.conftest import NewTable
from tests.lake.client.test_keyed_tables import run
from tests.lake.tables.keyed.histories import COLUMNS, TABLES, compared, in_order, rows_of
from tests.support.long_runs import share_of
from tests.support.waiting import wait_until

FITTING = [("lookup", engine) for engine in TABLES] + [("input", "latest")]
KINDS = pytest.mark.parametrize("kind", ["copy-on-write", "merge-on-read"])


@KINDS
@pytest.mark.sampled(7)
@pytest.mark.parametrize(("producer", "engine"), FITTING)
def test_histories(new_table: NewTable, producer: str, engine: str, kind: str) -> None:
    run(new_table, engine, kind, 7, steps=10, producer=producer)


@pytest.mark.sampled(4)
@KINDS
@pytest.mark.parametrize("engine", ["latest", "sequence"])
def test_histories_of_rows_that_move(new_table: NewTable, engine: str, kind: str) -> None:
    run(new_table, engine, kind, 8, steps=12, key="id", producer="lookup")


@pytest.mark.long
@KINDS
@pytest.mark.parametrize(("producer", "engine"), FITTING)
def test_many_histories(new_table: NewTable, producer: str, engine: str, kind: str) -> None:
    for seed in range(share_of(60)):
        run(new_table, engine, kind, 2000 + seed, steps=5 + seed % 20, producer=producer)


@pytest.mark.long
@KINDS
@pytest.mark.parametrize("engine", ["latest", "sequence"])
def test_many_histories_of_rows_that_move(new_table: NewTable, engine: str, kind: str) -> None:
    for seed in range(share_of(60)):
        run(new_table, engine, kind, 3000 + seed, steps=5 + seed % 20, key="id", producer="lookup")


def row(id: int, value: int, part: str = "x") -> dict[str, Any]:
    return {"id": id, "v": value, "a": None, "b": None, "part": part}


def upsert(lake: LakeTable, *values: int) -> None:
    for value in values:
        lake.upsert(rows_of([row(1, value)]))


def marked(*rows: tuple[dict[str, Any], str]) -> pa.Table:
    kinds = pa.array([kind for _, kind in rows], pa.string())
    return rows_of([each for each, _ in rows]).append_column(CHANGE_TYPE, kinds)


def is_whole(lake: LakeTable, after: int = 0, up_to: int | None = None) -> bool:
    return lake.changes(after, up_to).changelog().is_whole


def clean(lake: LakeTable, keep: int = 1) -> None:
    lake.clean(lake.plan_clean(keep_commits=keep))


def changelogs_on_disk(lake: LakeTable) -> list[Path]:
    root = Path(lake.location().removeprefix("file:"))
    return sorted(root.rglob("*.changelog.parquet"))


# --- when they are used ---------------------------------------------------------------------------------------


@KINDS
def test_services_write_none_and_need_none(new_table: NewTable, kind: str) -> None:
    lake = new_table({"primary-key": "id,part", "table-type": kind, "changelog-producer": "lookup"}, COLUMNS)
    upsert(lake, 1, 2, 3)
    if kind == "merge-on-read":
        planned = plan_compaction(lake)
        assert planned.instant is not None
        run_compaction(lake, planned.instant.timestamp)
    upsert(lake, 4)
    assert len(changelogs_on_disk(lake)) == 4
    assert is_whole(lake)
    [pre, post] = sorted(lake.changes(1).to_arrow().to_pylist(), key=lambda each: each["v"])
    assert (pre["v"], pre[CHANGE_TYPE], post["v"], post[CHANGE_TYPE]) == (1, "update_preimage", 4, "update_postimage")
    assert pre["_commit_version"] == post["_commit_version"] == lake.position().position


def test_a_write_that_changes_no_row_needs_no_file(new_table: NewTable) -> None:
    lake = new_table({"primary-key": "id,part", "changelog-producer": "lookup"}, COLUMNS)
    upsert(lake, 1, 1)
    lake.delete(pa.table({"id": [5], "part": ["x"]}))
    assert len(changelogs_on_disk(lake)) == 1
    assert is_whole(lake)
    assert lake.changes(1).to_arrow().num_rows == 0


def test_what_changes_rows_without_one_is_found_by_comparing(new_table: NewTable) -> None:
    lake = new_table({"primary-key": "id,part", "changelog-producer": "lookup"}, COLUMNS)
    upsert(lake, 1, 2)
    lake.roll_back(next(lake.instants(latest_first=True)))
    upsert(lake, 3)
    assert [is_whole(lake, *ends) for ends in ((0, 2), (2, 3), (0, 4), (3, 4))] == [True, False, False, True]
    assert in_order(lake.changes(0).to_arrow()) == in_order(compared(lake, 0, 4))
    every = lake.changes(0).to_arrow(of_each_commit=True)
    assert in_order(every) == in_order(compared(lake, 0, 4, of_each_commit=True))
    assert every.num_rows == 7


def test_pages_of_many_commits(new_table: NewTable) -> None:
    lake = new_table({"primary-key": "id,part", "changelog-producer": "lookup"}, COLUMNS)
    upsert(lake, *range(5))
    found = lake.changes(1, page=2).changelog()
    assert found.is_whole
    assert [each.instant.position for each in found.changes] == [2, 3, 4, 5]
    assert [len(each.changelog) for each in found.changes] == [1] * 4


# --- how long they are kept -----------------------------------------------------------------------------------


def test_changes_are_read_whose_snapshots_are_gone(new_table: NewTable) -> None:
    properties = {"primary-key": "id,part", "changelog-producer": "lookup", "changelog.time-retained": "1 d"}
    lake = new_table(properties, COLUMNS)
    upsert(lake, 1, 2, 3)
    before = in_order(lake.changes(1).to_arrow(of_each_commit=True))
    clean(lake)
    with pytest.raises(SnapshotGone):
        lake.scan(as_of=1).to_arrow()
    assert in_order(lake.changes(1).to_arrow(of_each_commit=True)) == before
    assert len(before) == 4


def test_without_a_time_of_their_own_they_go_with_the_snapshots(new_table: NewTable) -> None:
    lake = new_table({"primary-key": "id,part", "changelog-producer": "lookup"}, COLUMNS)
    upsert(lake, 1, 2, 3)
    clean(lake)
    oldest = lake.position().oldest_readable
    assert oldest == 3
    with pytest.raises(SnapshotGone):
        lake.changes(oldest - 1).to_arrow()
    upsert(lake, 4)
    assert is_whole(lake, oldest)
    wait_until(lambda: len(changelogs_on_disk(lake)) == 1, seconds=30)


def test_a_clean_removes_those_that_are_old(new_table: NewTable) -> None:
    properties = {"changelog.time-retained": "1 ms", "snapshot.time-retained": "1 d"}
    lake = new_table({"primary-key": "id,part", "changelog-producer": "lookup", **properties}, COLUMNS)
    upsert(lake, 1, 2)
    before = in_order(lake.changes(0).to_arrow())
    planned = lake.plan_clean(keep_commits=1)
    assert {each.kind for each in planned} == {"changelog"}
    lake.clean(planned)
    assert not is_whole(lake)
    assert in_order(lake.changes(0).to_arrow()) == before
    wait_until(lambda: not changelogs_on_disk(lake), seconds=30)


def test_snapshots_are_kept_for_their_time(new_table: NewTable) -> None:
    lake = new_table({"primary-key": "id,part", "snapshot.time-retained": "1 h"}, COLUMNS)
    upsert(lake, 1, 2, 3)
    assert lake.plan_clean(keep_commits=1) == lake.plan_clean(keep_versions=1) == []
    old = [each for each in lake.snapshot(all_versions=True) if each.removed_at is not None]
    assert len(old) == 2
    with pytest.raises(InvalidOperationException, match=r"snapshot\.time-retained needs it"):
        lake.clean(old)
    assert lake.scan(as_of=1).to_arrow().num_rows == 1


def test_a_partition_that_is_dropped_takes_them_along(new_table: NewTable) -> None:
    """Nothing earlier can be read then, and no file of the dropped rows stays."""
    properties = {"primary-key": "id,part", "changelog-producer": "lookup", "changelog.time-retained": "1 d"}
    lake = new_table(properties, COLUMNS)
    lake.upsert(rows_of([row(1, 1, "x"), row(1, 1, "y")]))
    named = lake.reference
    lake.client.call(lambda opened: opened.drop_partition(named.database, named.table, ["x"], True))
    wait_until(lambda: not changelogs_on_disk(lake), seconds=30)
    with pytest.raises(SnapshotGone):
        lake.changes(0).to_arrow()
    lake.upsert(rows_of([row(2, 2, "y")]))
    assert is_whole(lake, 2)


# --- pre-images that come with the rows -----------------------------------------------------------------------


@pytest.fixture
def given(new_table: NewTable) -> LakeTable:
    lake = new_table({"primary-key": "id,part", "changelog-producer": "input"}, COLUMNS)
    lake.merge(marked((row(1, 1), "insert"), (row(2, 1), "insert")))
    return lake


def test_what_comes_is_recorded(given: LakeTable) -> None:
    changes = [
        (row(1, 1), "update_preimage"),
        (row(1, 2), "update_postimage"),
        (row(2, 1), "delete"),
        (row(3, 1), "insert"),
    ]
    given.merge(marked(*changes))
    found = given.changes(1).to_arrow()
    assert sorted((each["id"], each["v"], each[CHANGE_TYPE]) for each in found.to_pylist()) == sorted(
        (each["id"], each["v"], kind) for each, kind in changes
    )
    assert in_order(found) == in_order(compared(given, 1, 2))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(row(1, 2), "update_postimage")], "the key id=1 has no update_preimage"),
        ([(row(1, 1), "update_preimage")], "the key id=1 has no update_postimage"),
        (
            [(row(1, 1), "update_preimage"), (row(1, 3), "update_preimage"), (row(1, 2), "update_postimage")],
            "the key id=1 has several rows of the kind update_preimage with different values",
        ),
        (
            [(row(1, 1), "update_preimage"), (row(1, 2), "update_postimage"), (row(1, 2), "insert")],
            "the key id=1 is inserted and updated",
        ),
        ([(row(1, 1), "delete"), (row(1, 2), "insert")], "the key id=1 has several rows with different values"),
        ([({**row(1, 1), "id": None}, "insert")], "the column id belongs to the key and is null"),
    ],
)
def test_images_that_are_missing_or_differ_are_refused(
    given: LakeTable, rows: list[tuple[dict[str, Any], str]], message: str
) -> None:
    with pytest.raises(UnfitRows, match=message):
        given.merge(marked(*rows))
    assert given.position().position == 1


def test_rows_without_images_are_refused(given: LakeTable) -> None:
    with pytest.raises(UnfitRows, match="takes merges alone, not upsert"):
        given.upsert(rows_of([row(1, 2)]))
    with pytest.raises(UnfitRows, match="takes merges alone, not delete"):
        given.delete(pa.table({"id": [1], "part": ["x"]}))
    with pytest.raises(UnfitRows, match="the rows have no column v: changelog-producer=input records whole rows"):
        given.merge(marked((row(1, 1), "delete")).drop_columns(["v"]))


# --- what the server refuses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"path": "elsewhere/c.parquet"}, "files of a changelog lie in"),
        ({"path": "../c.parquet"}, "is no path of a file"),
        ({"kind": "base"}, "isn't of the kind changelog"),
        ({"size": -1}, "a number is negative"),
        ({"file_group": "other"}, "that this completion doesn't change"),
        ({"partition": "part=y"}, "that this completion doesn't change"),
    ],
)
def test_files_that_are_not_of_the_instant_are_refused(
    new_table: NewTable, wrong: dict[str, Any], message: str
) -> None:
    lake = new_table({"primary-key": "id,part", "changelog-producer": "lookup"}, COLUMNS)
    with lake.writing() as writing:
        at = writing.instant.timestamp
        base = DataFile("part=x", "bucket-00000", at, f"{writing.path}/a.parquet", 1)
        file = base._replace(path=f"{writing.path}/c.parquet", kind="changelog")._replace(**wrong)
        with pytest.raises(InvalidOperationException, match=message):
            writing.complete(Completion(added=[base], changelog=[file]))
    assert lake.position().position == 0


def test_a_table_without_key_has_none(new_table: NewTable) -> None:
    lake = new_table({}, COLUMNS)
    with (
        lake.writing() as writing,
        pytest.raises(InvalidOperationException, match="belongs to a commit or deltacommit of a keyed table"),
    ):
        writing.complete(Completion(changelog=[]))
