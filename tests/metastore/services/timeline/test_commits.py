"""What a completion does to the snapshot, to Hive's view, to readiness and the log, all at once or not at all."""

import itertools

import pytest

from lake.protocol.clock import now_ms
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException, Partition
from lake.protocol.lake import (
    Column,
    DataFile,
    FileGroup,
    InstantConflict,
    SnapshotGone,
    SnapshotRequest,
    TableReference,
)
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.support import builders

BY_EVENT_TIME = {
    "partition.commit.mode": "event-time",
    "sink.partition-commit.delay": "1 d",
    "partition.time-extractor.timestamp-pattern": "$dt",
    "partition.time-interval": "1 d",
}


def test_partitions_come_with_their_first_file(table: LakeTable) -> None:
    begun = table.begin()
    at = begun.timestamp or ""
    table.complete(begun, file(DAY(1), "a", at, size=7, rows=3), file(DAY(1), "b", at), file(DAY(2), "c", at))
    assert table.hive_partitions() == {
        DAY(1): {"numFiles": "2", "totalSize": "107", "numRows": "13"},
        DAY(2): {"numFiles": "1", "totalSize": "100", "numRows": "10"},
    }
    assert (table.directory / DAY(1)).is_dir()
    table.commit("d", partition=DAY(2))
    assert table.hive_partitions()[DAY(2)] == {"numFiles": "2", "totalSize": "200", "numRows": "20"}


def test_partitions_that_are_there_keep_what_they_are(table: LakeTable) -> None:
    sd = builders.storage("id:bigint", location=str(table.directory / "elsewhere"))
    given = Partition(
        dbName=table.db, tableName="t", values=["2026-01-01"], sd=sd, parameters={"a": "b", "commit": "false"}
    )
    table.metastore.partitions.add(table.db, "t", [given], {})
    table.commit("g")
    found = table.metastore.partition_reads.get_by_name(Scope.UNCOMMITTED, table.db, "t", DAY(1))
    assert found.parameters is not None and found.sd is not None
    assert (found.parameters["a"], found.parameters["commit"], found.parameters["numFiles"]) == ("b", "false", "1")
    assert (found.sd.location or "").endswith("elsewhere")


def test_a_table_without_keys(metastore: Metastore, db: str) -> None:
    flat = LakeTable(metastore, db, keys=())
    flat.commit("g", partition="")
    assert [each.partition for each in flat.snapshot().files or ()] == [""]
    assert flat.hive.parameters is not None
    assert flat.hive.parameters["numRows"] == "10"
    begun = flat.begin()
    with pytest.raises(InvalidOperationException, match="has no partition keys"):
        flat.complete(begun, file(DAY(1), "g", begun.timestamp or ""))


def test_a_base_file_supersedes_the_slices_before_it(table: LakeTable) -> None:
    first, second = table.commit("a", "b"), table.commit("a")
    assert first.instant is not None and second.instant is not None
    assert table.paths() == [
        f"{DAY(1)}/a_{second.instant.timestamp}.parquet",
        f"{DAY(1)}/b_{first.instant.timestamp}.parquet",
    ]
    assert table.hive_partitions()[DAY(1)]["numFiles"] == "2"


def test_log_files_and_compaction(table: LakeTable) -> None:
    base = table.commit("a").instant
    assert base is not None
    slice = base.timestamp or ""
    table.complete(table.begin("deltacommit"), file(DAY(1), "a", slice, kind="log", version=1))
    planned = table.begin("compaction", state="requested", plan=[table.group("a")])
    later = planned.timestamp or ""
    assert table.metastore.timeline_queries.details(table.reference, later, "compaction").plan == [table.group("a")]
    # While it is planned, writers put their log files into the slice that it opened.
    table.complete(table.begin("deltacommit"), file(DAY(1), "a", later, kind="log", version=1))
    table.metastore.timeline.transition(table.reference, later, "compaction", "inflight", None)
    table.complete(table.begin("deltacommit"), file(DAY(1), "a", later, kind="log", version=2))
    assert len(table.paths()) == 4
    table.complete(planned.replace(state="inflight"), file(DAY(1), "a", later), newAction="commit")
    assert table.paths() == [f"{DAY(1)}/a_{later}.parquet", f"{DAY(1)}/a_{later}.1.log", f"{DAY(1)}/a_{later}.2.log"]
    assert table.paths(readOptimized=True) == [f"{DAY(1)}/a_{later}.parquet"]


def test_log_files_grow(table: LakeTable) -> None:
    slice = table.commit("a").instant.timestamp or ""  # type: ignore[union-attr]
    log = file(DAY(1), "a", slice, kind="log", size=10)
    at_ten = table.complete(table.begin("deltacommit"), log).instant
    table.complete(table.begin("deltacommit"), log.replace(size=25))
    assert at_ten is not None
    assert [each.size for each in table.snapshot().files or ()] == [100, 25]
    assert [each.size for each in table.snapshot(asOf=at_ten.timestamp).files or ()] == [100, 10]
    with pytest.raises(InvalidOperationException, match="only log files grow"):
        table.complete(table.begin("deltacommit"), log.replace(size=24))


def test_columns_of_a_file_group_come_apart(table: LakeTable) -> None:
    """Two base files of one group, each for some columns; a new one supersedes only those that hold no others."""
    one = table.begin()
    table.complete(one, file(DAY(1), "a", one.timestamp or "", columns=["id"]))
    two = table.begin()
    table.complete(two, file(DAY(1), "a", two.timestamp or "", columns=["name"]))
    assert len(table.paths()) == 2
    three = table.begin()
    table.complete(three, file(DAY(1), "a", three.timestamp or "", columns=["ID"]))
    assert [each.columns for each in table.snapshot().files or ()] == [["name"], ["id"]]
    table.commit("a")
    assert len(table.paths()) == 1


def test_replacing_file_groups_files_and_partitions(table: LakeTable) -> None:
    table.commit("a", "b", "c")
    table.commit("d", partition=DAY(2))
    clustering = table.begin("clustering")
    at = clustering.timestamp or ""
    table.complete(
        clustering,
        file(DAY(1), "ab", at),
        removedGroups=[table.group("a"), table.group("b")],
        newAction="replacecommit",
    )
    assert {each.fileGroup for each in table.snapshot().files or ()} == {"ab", "c", "d"}
    path = next(each for each in table.paths() if "/c_" in each)
    table.complete(table.begin(), removedPaths=[path])
    overwrite = table.begin("replacecommit")
    table.complete(overwrite, file(DAY(1), "new", overwrite.timestamp or ""), replacedPartitions=[DAY(1), DAY(3)])
    assert {each.fileGroup for each in table.snapshot().files or ()} == {"new", "d"}
    assert table.hive_partitions()[DAY(1)]["numFiles"] == "1"
    assert DAY(3) not in table.hive_partitions()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"added": [file(DAY(1), "a", "2", path="../x")]}, "no path"),
        ({"added": [file(DAY(1), "a", "2", path="/etc/passwd")]}, "no path"),
        ({"added": [file(DAY(1), "a", "2", path="a//b")]}, "no path"),
        ({"added": [file(DAY(1), "a", "2", path="a/./b")]}, "no path"),
        ({"added": [file(DAY(1), "a", "2", path="a\0b")]}, "no path"),
        ({"added": [file(DAY(1), "a", "2", path="")]}, "no path"),
        ({"added": [file(DAY(1), "a", "2", path="x" * 4001)]}, "no path"),
        ({"added": [file(DAY(1), "", "2")]}, "no name of a file group"),
        ({"added": [file(DAY(1), "a" * 257, "2")]}, "no name of a file group"),
        ({"added": [file(DAY(1), "a", "")]}, "no name of a slice"),
        ({"added": [file(DAY(1), "a", "2", kind="index")]}, "no kind"),
        ({"added": [file(DAY(1), "a", "2", size=-1)]}, "needs a size"),
        ({"added": [file(DAY(1), "a", "2", rows=-1)]}, "needs a size"),
        ({"added": [file(DAY(1), "a", "2"), file(DAY(1), "b", "2", path=f"{DAY(1)}/a_2.parquet")]}, "added twice"),
        ({"added": [file(DAY(1), "known", "0")]}, "belongs to a later slice"),
        ({"added": [file(DAY(1), "a", "2", path="known.parquet")]}, "in the snapshot already"),
        ({"removedPaths": ["nothing"]}, "isn't in the latest snapshot"),
        ({"removedGroups": [FileGroup(DAY(1), "nothing")]}, "has no file group 'nothing'"),
        ({"newAction": "clean"}, "can't be completed as"),
        ({"strategy": "hope"}, "no strategy"),
        ({"readPosition": 9}, "no position 9"),
        ({"cleanedPaths": ["known.parquet"]}, "only a clean"),
        ({"rolledBack": []}, "only a rollback"),
        ({"eventTimes": {"a\n": 1}}, "no valid name of a chain or source"),
        ({"columns": [Column("id", "bigint")]}, "only add columns"),
    ],
)
def test_what_is_refused_changes_nothing(table: LakeTable, change: dict[str, object], message: str) -> None:
    begun = table.begin()
    table.complete(begun, file(DAY(1), "known", begun.timestamp or "", path="known.parquet"))
    failing = table.begin()
    before = table.kept()
    request = table.request(failing).replace(**change)
    with pytest.raises(InvalidOperationException, match=message):
        table.metastore.instant_completion.complete([request])
    assert table.kept() == before
    table.complete(failing)


@pytest.mark.parametrize(
    "name",
    [
        *("dt", "hr=1", "dt=1/hr=2", "DT=1/"),
        *("file:/w/other/dt=1", "/dt=1", "../dt=1", "dt=1/..", "dt=1/data", "dt=1/dt=2"),  # paths are no names
    ],
)
def test_names_that_are_no_partitions(table: LakeTable, name: str) -> None:
    begun = table.begin()
    with pytest.raises(NoSuchObjectException):
        table.complete(begun, file(name, "g", "1", path="a"))


def test_columns_come_with_a_commit(table: LakeTable) -> None:
    more = [Column("id", "bigint"), Column("Name", "string"), Column("price", "double", "in cents")]
    table.complete(table.begin(), columns=more)
    assert table.hive.sd is not None
    assert [(each.name, each.comment) for each in table.hive.sd.cols or ()] == [
        ("id", None),
        ("name", None),
        ("price", "in cents"),
    ]
    changed = table.hive.replace(parameters={**(table.hive.parameters or {}), "timeline.schema-changes": "any"})
    table.metastore.tables.alter(table.db, table.name, changed, {})
    table.complete(table.begin(), columns=[Column("price", "string")])
    assert table.hive.sd is not None
    assert [each.name for each in table.hive.sd.cols or ()] == ["price"]
    with pytest.raises(Exception, match="Duplicate column"):
        table.complete(table.begin(), columns=[Column("a", "int"), Column("dt", "int")])


def test_event_time_makes_partitions_ready(metastore: Metastore, db: str) -> None:
    table = LakeTable(metastore, db, parameters=BY_EVENT_TIME)
    day_two, day_three = 1_767_312_000_000, 1_767_398_400_000
    begun = table.begin()
    at = begun.timestamp or ""
    table.complete(begun, file(DAY(1), "a", at), file(DAY(2), "b", at), eventTimes={"s": day_two - 1})
    assert {name: each["commit"] for name, each in table.hive_partitions().items()} == {
        DAY(1): "false",
        DAY(2): "false",
    }
    assert table.paths() == []
    assert len(table.paths(scope=Scope.UNCOMMITTED)) == 2
    table.complete(table.begin(), eventTimes={"s": day_two + 1})
    assert [each.partition for each in table.snapshot().files or ()] == [DAY(1)]
    table.complete(table.begin(), eventTimes={"s": day_three + 1})
    assert len(table.paths()) == 2


def test_the_log_tells_of_it_in_order(table: LakeTable) -> None:
    done = table.commit("a").instant
    assert done is not None
    last = table.metastore.event_reads.positions(None, None).last or 0
    page, _ = table.metastore.event_reads.read(max(0, last - 5), None, [f"{table.db}.*"], None)
    answer = [(each.type, each.payload) for each in page.events if each.type in ("ADD_PARTITIONS", "COMPLETE_INSTANT")]
    assert [type for type, _ in answer] == ["ADD_PARTITIONS", "COMPLETE_INSTANT"]
    payload = answer[1][1]
    assert (payload["timestamp"], payload["action"], payload["position"]) == (done.timestamp, "commit", 1)
    assert (payload["partitions"], payload["filesAdded"], payload["filesRemoved"]) == ([DAY(1)], 1, 0)
    assert payload["tableId"] == table.hive.id
    assert table.instants()[0].moment == next(each.number for each in page.events if each.type == "COMPLETE_INSTANT")


def test_several_tables_complete_together(metastore: Metastore, db: str) -> None:
    one, two = LakeTable(metastore, db, "one"), LakeTable(metastore, db, "two")
    a, b = one.begin(), two.begin()
    requests = [
        two.request(b, file(DAY(1), "g", b.timestamp or "")),
        one.request(a, file(DAY(1), "g", a.timestamp or "")),
    ]
    answers = metastore.instant_completion.complete(requests)
    assert [each.table for each in answers] == [two.reference, one.reference]
    moments = {one.instants()[0].moment, two.instants()[0].moment}
    assert len(moments) == 1
    (moment,) = moments
    assert moment is not None
    for each in (one, two):
        assert len(each.paths(asOfMoment=moment)) == 1
        assert each.paths(asOfMoment=moment - 1) == []
    assert [each.repeated for each in metastore.instant_completion.complete(requests)] == [True, True]


def test_several_tables_are_read_together_as_of_any_time(
    metastore: Metastore, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = LakeTable(metastore, db, "one"), LakeTable(metastore, db, "two")
    requests = [each.request(each.begin()) for each in (one, two)]
    ticking = itertools.count(now_ms() + 1000, 1000)
    monkeypatch.setattr("metastore.services.instant_rules.finalize.now_ms", lambda _tx: next(ticking))
    metastore.instant_completion.complete(requests)
    assert one.instants()[0].completionTime == two.instants()[0].completionTime


def test_several_tables_or_none(metastore: Metastore, db: str) -> None:
    one, two = LakeTable(metastore, db, "one"), LakeTable(metastore, db, "two")
    a, b = one.begin(), two.begin()
    good = one.request(a, file(DAY(1), "g", a.timestamp or ""))
    bad = two.request(b, file(DAY(1), "g", b.timestamp or "", path="../x"))
    before = one.kept(), two.kept()
    for requests in ([good, bad], [bad, good], [good, good], [], [good, two.request(b.replace(timestamp="x"))]):
        with pytest.raises((InvalidOperationException, NoSuchObjectException)):
            metastore.instant_completion.complete(requests)
    assert (one.kept(), two.kept()) == before
    one.complete(a, file(DAY(1), "g", a.timestamp or ""))
    with pytest.raises(InvalidOperationException, match="some of the instants are completed already"):
        metastore.instant_completion.complete([good, two.request(b)])


def test_what_clients_see_of_a_file(table: LakeTable) -> None:
    begun = table.begin()
    at = begun.timestamp or ""
    given = DataFile(
        partition="dt=2026-01-01", fileGroup="g", slice=at, path="a/b.parquet", size=1, rows=2, minEventTime=3,
        maxEventTime=4, columns=["id"], statistics=b"\x00\xff",
    )  # fmt: skip
    table.complete(begun, given)
    assert table.snapshot().files == [given.replace(kind="base", addedAt=1)]
    with pytest.raises(NoSuchObjectException):
        table.metastore.file_snapshots.read(
            Scope.READY, SnapshotRequest(table=TableReference(database=table.db, table="nothing"))
        )


def test_a_table_that_nobody_committed_to(table: LakeTable) -> None:
    assert (table.snapshot().position, table.snapshot().files) == (0, [])
    assert table.metastore.timeline_queries.position(table.reference).lastCompleted is None
    assert table.changes(0).changes == []
    assert table.clean_plan(keepCommits=1) == []


def test_what_hive_drops_leaves_the_snapshot(table: LakeTable) -> None:
    for day in (1, 2, 3):
        table.commit("a", partition=DAY(day))
    table.metastore.partitions.drop(table.db, "t", name=DAY(1), delete_data=False)
    assert {each.partition for each in table.snapshot().files or ()} == {DAY(2), DAY(3)}
    assert len(table.paths(asOfPosition=3)) == 3
    assert table.instants()[-1].action == "replacecommit"
    table.metastore.partitions.drop_named(table.db, "t", [DAY(2)], delete_data=True, if_exists=False)
    assert {each.partition for each in table.snapshot().files or ()} == {DAY(3)}
    with pytest.raises(SnapshotGone):
        table.snapshot(asOfPosition=3)
    table.metastore.tables.truncate(table.db, "t", [DAY(3)])
    assert table.paths() == []
    assert table.hive_partitions() == {DAY(3): {"numFiles": "0", "totalSize": "0", "numRows": "0"}}
    assert table.metastore.timeline_queries.position(table.reference).position == 6
    table.commit("a", partition=DAY(1))
    assert table.hive_partitions()[DAY(1)]["numFiles"] == "1"


def test_what_a_writer_read_before_a_drop_is_a_conflict(table: LakeTable) -> None:
    table.commit("a")
    begun = table.begin()
    table.metastore.partitions.drop(table.db, "t", name=DAY(1), delete_data=True)
    with pytest.raises(InstantConflict):
        table.complete(begun, file(DAY(1), "a", begun.timestamp or ""))


def test_an_emptied_table_without_keys(metastore: Metastore, db: str) -> None:
    flat = LakeTable(metastore, db, keys=())
    flat.commit("a", partition="")
    metastore.tables.truncate(db, "t", None)
    assert flat.paths() == []


def test_partitions_with_a_timeline_keep_their_names(table: LakeTable) -> None:
    table.commit("a")
    value = table.metastore.partition_reads.get_by_name(Scope.READY, table.db, "t", DAY(1))
    with pytest.raises(InvalidOperationException, match="can't be renamed"):
        table.metastore.partitions.rename(table.db, "t", ["2026-01-01"], value.replace(values=["2026-01-09"]), {})


def test_a_renamed_table_takes_its_timeline_along(table: LakeTable) -> None:
    table.commit("a")
    before = table.snapshot().files
    table.metastore.tables.alter(table.db, "t", table.hive.replace(tableName="u"), {})
    table.name, table.reference = "u", table.reference.replace(table="u")
    assert table.snapshot().files == before
