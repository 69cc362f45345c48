"""Snapshots: the latest, at any moment, page by page; and what changed in between."""

import time

import pytest

from lake.protocol.hive import InvalidOperationException, MetaException, NoSuchObjectException
from lake.protocol.lake import SnapshotGone
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.metastore.services.timeline.test_commits import BY_EVENT_TIME


def test_as_of_every_way(table: LakeTable) -> None:
    first = table.commit("a").instant
    middle = table.paths()
    second = table.commit("a", "b").instant
    assert first is not None and second is not None
    times = [each.changedAt for each in table.instants()]
    moments = [each.moment or 0 for each in table.instants()]
    assert table.paths(asOf=first.timestamp) == middle
    assert table.paths(asOfPosition=1) == middle
    assert table.paths(asOfMoment=moments[0]) == table.paths(asOfMoment=moments[1] - 1) == middle
    assert table.paths(asOfPosition=0) == table.paths(asOfTime=times[0] - 1_000) == []
    assert table.paths(asOf=second.timestamp) == table.paths(asOfTime=times[1] + 1_000) == table.paths()
    assert len(table.paths(allVersions=True)) == 3
    with pytest.raises(InvalidOperationException, match="at most one"):
        table.snapshot(asOf="x", asOfPosition=1)
    with pytest.raises(NoSuchObjectException, match="no completed instant or savepoint x"):
        table.snapshot(asOf="x")
    for position in (-1, 3):
        with pytest.raises(InvalidOperationException, match="no position"):
            table.snapshot(asOfPosition=position)
    with pytest.raises(InvalidOperationException, match="no moment"):
        table.snapshot(asOfMoment=1 << 60)


def test_of_some_partitions(metastore: Metastore, db: str) -> None:
    table = LakeTable(metastore, db, keys=("dt", "hr:int"))
    begun = table.begin()
    names = [f"dt={day}/hr={hour}" for day in ("2026-01-01", "2026-01-02") for hour in (9, 10)]
    table.complete(begun, *(file(each, "g", begun.timestamp or "") for each in names))

    def seen(**fields: object) -> list[str | None]:
        return [each.partition for each in table.snapshot(**fields).files or ()]

    assert sorted(map(str, seen())) == sorted(names)
    assert seen(partitions=[names[0], names[3]]) == [names[0], names[3]]
    assert seen(partitions=[]) == []
    assert seen(filter="hr > 9 and dt = '2026-01-02'") == [names[3]]
    metastore.partitions.drop(db, "t", name=names[0], delete_data=False)
    assert names[0] not in seen()
    assert names[0] in seen(asOfPosition=1, filter="hr = 9")
    with pytest.raises(InvalidOperationException, match="either the names of partitions or a filter"):
        seen(partitions=[], filter="hr = 9")
    with pytest.raises(MetaException):
        seen(filter="nothing = 1")


def test_uncommitted_partitions_are_hidden(metastore: Metastore, db: str) -> None:
    table = LakeTable(metastore, db, parameters=BY_EVENT_TIME)
    table.commit("a")
    assert table.paths() == []
    assert len(table.paths(scope=Scope.UNCOMMITTED)) == 1
    for fields in ({"partitions": [DAY(1)]}, {"filter": "dt > '2026'"}, {"allVersions": True}, {"asOfPosition": 1}):
        assert table.paths(**fields) == []
    assert [each.added for each in table.changes(0).changes or ()] == [[]]
    metastore.partition_states.commit(table.reference, [DAY(1)], None, None)
    assert (len(table.paths()), table.paths(asOfPosition=1)) == (1, [])  # it was uncommitted there


def test_pages_tear_no_file_group(table: LakeTable) -> None:
    slice = table.commit("a", "b", "c").instant.timestamp or ""  # type: ignore[union-attr]
    logs = [file(DAY(1), "b", slice, kind="log", version=each) for each in range(1, 6)]
    table.complete(table.begin("deltacommit"), *logs)
    table.commit("a", partition=DAY(2))
    everything = table.paths()
    for limit in range(1, 11):
        pages, token, position = [], None, None
        while True:
            page = table.snapshot(limit=limit, after=token)
            pages.append([each.path for each in page.files or ()])
            position = position or page.position
            assert page.position == position
            if token is None:
                table.commit("z", partition=DAY(3))  # what is read stays the same
            token = page.nextPage
            if token is None:
                break
        assert [path for page in pages for path in page] == everything
        groups = [{path.rsplit("_", 1)[0] for path in page if path} for page in pages]
        assert all(one.isdisjoint(two) for at, one in enumerate(groups) for two in groups[at + 1 :])
        table.complete(table.begin(), replacedPartitions=[DAY(3)])
    for token in ("", "x", "[1]", '["a", "b", "c"]'):
        with pytest.raises(InvalidOperationException, match="no page"):
            table.snapshot(after=token)


@pytest.mark.parametrize("limit", [0, -1])
def test_pages_of_nothing(table: LakeTable, limit: int) -> None:
    table.commit("a")
    for ask in (table.snapshot, lambda limit: table.changes(0, limit=limit)):
        with pytest.raises(InvalidOperationException, match=f"limit is {limit}: ask for at least 1"):
            ask(limit=limit)
    with pytest.raises(InvalidOperationException, match="ask for at least 1"):
        table.clean_plan(keepCommits=1, limit=limit)


def test_changes_add_up_to_the_snapshot(table: LakeTable) -> None:
    table.commit("a", "b")
    table.commit("a")
    table.complete(table.begin("clustering"), removedGroups=[table.group("a"), table.group("b")])
    table.commit("c")
    for start in range(5):
        for end in range(start, 5):
            files = set(table.paths(asOfPosition=start))
            answer = table.changes(start, end)
            assert answer.position == end
            assert [each.instant.position for each in answer.changes or () if each.instant] == list(
                range(start + 1, end + 1)
            )
            for each in answer.changes or ():
                files -= {file.path or "" for file in each.removed or ()}
                files |= {file.path or "" for file in each.added or ()}
            assert files == set(table.paths(asOfPosition=end))
    one_by_one = table.changes(0, limit=1)
    assert (one_by_one.position, len(one_by_one.changes or ())) == (1, 1)
    with pytest.raises(InvalidOperationException, match="no position 9"):
        table.changes(9)


def test_cleaning(table: LakeTable) -> None:
    for _ in range(5):
        table.commit("a")
    older = table.paths(asOfPosition=1), table.paths(asOfPosition=2)
    second = table.instants()[1]
    for each in {path for paths in older for path in paths}:
        (table.directory / each).parent.mkdir(parents=True, exist_ok=True)
        (table.directory / each).write_bytes(b"rows")
    table.complete(table.begin("savepoint", second.timestamp))
    plan = table.clean_plan(keepCommits=4)  # of 6 completions
    assert plan == older[0]
    done = table.clean(plan)
    assert (table.directory / older[0][0]).exists()  # nobody who commits waits for deletions
    table.delete_files()
    assert not (table.directory / older[0][0]).exists()
    assert (table.directory / older[1][0]).exists()
    assert table.clean_plan(keepCommits=4) == []
    with pytest.raises(SnapshotGone, match="oldest that can be read is position 2") as caught:
        table.snapshot(asOfPosition=1)
    assert (caught.value.oldestReadable, caught.value.oldestInstant) == (2, second.timestamp)
    with pytest.raises(SnapshotGone):
        table.changes(1)
    assert done.instant is not None and done.instant.position == 7
    # What the savepoint protects stays, also when all else goes.
    table.clean(table.clean_plan(keepCommits=1))
    assert table.paths(asOfPosition=2) == older[1]
    # Its snapshot, but not what files came and went since.
    for up_to in (None, 5):
        with pytest.raises(SnapshotGone, match=r"changes after position 2 .*oldest that can be read is position 5"):
            table.changes(2, up_to)
    assert [each.instant.position for each in table.changes(5).changes or () if each.instant] == [6, 7, 8]
    for gone in (3, 4):
        with pytest.raises(SnapshotGone):
            table.snapshot(asOfPosition=gone)
    assert len(table.paths(asOfPosition=5)) == 1
    with pytest.raises(InvalidOperationException, match="to a savepoint"):
        table.clean(older[1])
    with pytest.raises(InvalidOperationException, match="belongs to the latest snapshot"):
        table.clean(table.paths())
    table.metastore.timeline.delete(table.reference, second.timestamp, "savepoint")
    table.clean(table.clean_plan(keepCommits=1))
    with pytest.raises(SnapshotGone):
        table.snapshot(asOfPosition=2)


def test_cleaning_by_versions(table: LakeTable) -> None:
    table.commit("a", "b")
    for _ in range(3):
        table.commit("a")
    slices = [each.slice for each in table.snapshot(allVersions=True).files or () if each.fileGroup == "a"]
    assert len(slices) == 4
    assert table.clean_plan(keepVersions=4) == []
    assert table.clean_plan(keepVersions=2) == [f"{DAY(1)}/a_{each}.parquet" for each in slices[:2]]
    table.complete(table.begin("clustering"), removedGroups=[table.group("a")])
    assert table.clean_plan(keepVersions=1) == [f"{DAY(1)}/a_{each}.parquet" for each in slices]
    assert table.clean_plan(keepVersions=2) == [f"{DAY(1)}/a_{each}.parquet" for each in slices[:3]]
    assert table.clean_plan(keepHours=1) == []


def test_a_wrong_clock_cleans_nothing(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the server that is asked: the database's says what is old."""
    table.commit("a")
    table.complete(table.begin("clustering"), removedGroups=[table.group("a")])
    right, right_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: right() + 100 * 86_400)
    monkeypatch.setattr(time, "time_ns", lambda: right_ns() + 100 * 86_400 * 10**9)
    assert table.clean_plan(keepHours=1) == []


def test_a_log_file_that_grew_is_not_cleaned(table: LakeTable) -> None:
    slice = table.commit("a").instant.timestamp or ""  # type: ignore[union-attr]
    log = file(DAY(1), "a", slice, kind="log", size=1)
    for size in (1, 2, 3):
        table.complete(table.begin("deltacommit"), log.replace(size=size))
    assert table.clean_plan(keepCommits=1) == []


@pytest.mark.parametrize("fields", [{}, {"keepCommits": 0}, {"keepCommits": 1, "keepHours": 1}, {"keepHours": -1}])
def test_plans_that_say_nothing(table: LakeTable, fields: dict[str, int]) -> None:
    with pytest.raises(InvalidOperationException, match="give exactly one of"):
        table.clean_plan(**fields)
