"""Instants: how they begin, go on and are aborted, whatever is asked twice or wrongly."""

import itertools
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest

from lake.protocol.clock import now_ms
from lake.protocol.hive import InvalidObjectException, InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import BeginInstantRequest, FileGroup, InstantConflict, SnapshotGone, TableReference
from metastore.services.instant_rules.states import ACTIONS, READINESS, is_servers, next_timestamp, timestamp_at
from metastore.services.wiring import Metastore
from metastore.store.timeline import instants
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.support import builders

HOUR = 3_600_000


def test_an_instant_from_request_to_completion(table: LakeTable) -> None:
    begun = table.begin(state="requested", metadata=b"plan")
    assert (begun.state, begun.action, begun.position, begun.readPosition) == ("requested", "commit", None, 0)
    assert re.fullmatch(r"\d{17}", begun.timestamp or "")
    inflight = table.metastore.timeline.transition(table.reference, begun.timestamp, "commit", "inflight", b"work")
    assert inflight.state == "inflight"
    done = table.complete(inflight, file(DAY(1), "g", begun.timestamp or ""), metadata=b"done")
    assert done.repeated is False
    assert done.instant is not None
    assert (done.instant.state, done.instant.position) == ("completed", 1)
    assert (done.instant.completionTime or "") > (begun.timestamp or "")
    details = table.metastore.timeline_queries.details(table.reference, begun.timestamp, "commit")
    assert details.metadata == {"requested": b"plan", "inflight": b"work", "completed": b"done"}
    assert details.partitions == [DAY(1)]
    assert details.instant is not None and details.instant.moment is not None


def test_timestamps_rise_whatever_the_clock_does(table: LakeTable) -> None:
    ahead = now_ms() + 20 * HOUR
    future = table.begin(timestamp=timestamp_at(ahead))
    assert future.timestamp == timestamp_at(ahead)
    assert table.begin().timestamp == timestamp_at(ahead + 1)
    assert table.complete(future).instant.completionTime == timestamp_at(ahead + 2)  # type: ignore[union-attr]
    assert table.begin(timestamp="early").timestamp == "early"
    assert table.begin().timestamp == timestamp_at(ahead + 3)


@pytest.mark.parametrize("digits", [14, 17])
@pytest.mark.parametrize("action", ["commit", "compaction", "clean", "rollback"])
def test_no_timestamp_ends_a_timeline(table: LakeTable, action: str, digits: int) -> None:
    """Every later one would have to come after it."""
    table.begin(timestamp="free")
    for timestamp in ("99991231235959999", timestamp_at(now_ms() + 26 * HOUR)):
        with pytest.raises(InvalidOperationException, match="is in the future: it may be at most a day ahead"):
            table.begin(action, timestamp[:digits])
    assert [each.timestamp for each in table.instants()] == ["free"]
    assert table.begin().timestamp < timestamp_at(now_ms() + HOUR)


def test_a_servers_clock_does_not_move_a_timeline(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database's does."""
    ahead = time.time_ns() + 8 * 24 * HOUR * 1_000_000
    monkeypatch.setattr(time, "time_ns", lambda: ahead)
    begun = table.begin()
    done = table.complete(begun).instant
    assert done is not None and done.completionTime is not None
    assert max(begun.timestamp or "", done.completionTime) < timestamp_at(now_ms() - 7 * 24 * HOUR)


def test_many_begin_at_once(pair: tuple[Metastore, Metastore], table: LakeTable) -> None:
    tables = itertools.cycle([table.on(pair[0]), table.on(pair[1])])
    with ThreadPoolExecutor(8) as threads:
        begun = list(threads.map(lambda one: one.begin().timestamp, itertools.islice(tables, 80)))
    assert len(set(begun)) == 80


def test_next_timestamp() -> None:
    assert timestamp_at(0) == "19700101000000000"
    assert next_timestamp("", 1_767_225_599_999) == "20251231235959999"
    assert next_timestamp("20251231235959999", 0) == "20260101000000000"
    with pytest.raises(InvalidOperationException, match="no timestamp comes after"):
        next_timestamp("99991231235959999", 0)
    assert is_servers(datetime.now().strftime("%Y%m%d%H%M%S") + "000")
    assert not is_servers("20261301000000000")


def test_the_same_again_is_a_success(table: LakeTable) -> None:
    begun = table.begin("compaction", "20260101000000000", state="requested", metadata=b"a")
    assert table.begin("compaction", "20260101000000000", state="requested", metadata=b"a") == begun
    with pytest.raises(InvalidOperationException, match="with other metadata"):
        table.begin("compaction", "20260101000000000", state="requested", metadata=b"b")
    move = table.metastore.timeline.transition
    first = move(table.reference, begun.timestamp, "compaction", "inflight", None)
    assert move(table.reference, begun.timestamp, "compaction", "inflight", None) == first
    with pytest.raises(InvalidOperationException, match="is inflight already"):
        table.begin("compaction", "20260101000000000", state="requested", metadata=b"a")


def test_a_table_service_may_be_given_back(table: LakeTable) -> None:
    move = table.metastore.timeline.transition
    for action, back in (("compaction", True), ("clustering", True), ("commit", False), ("clean", False)):
        begun = table.begin(action)
        if back:
            assert move(table.reference, begun.timestamp, action, "requested", None).state == "requested"
        else:
            with pytest.raises(InvalidOperationException, match="can't become requested"):
                move(table.reference, begun.timestamp, action, "requested", None)


@pytest.mark.parametrize("action", [each for each in ACTIONS if each != READINESS])
def test_completion_may_change_the_action_of_table_services_only(table: LakeTable, action: str) -> None:
    if action == "savepoint":
        table.commit("g")
    timestamp = table.instants()[0].timestamp if action == "savepoint" else None
    begun = table.begin(action, timestamp)
    becomes = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}.get(action)
    with pytest.raises(InvalidOperationException, match="can't be completed as"):
        table.complete(begun, newAction="indexing" if action != "indexing" else "commit")
    done = table.complete(begun, newAction=becomes)
    assert done.instant is not None
    assert done.instant.action == (becomes or action)
    assert done.instant.begunAs == (action if becomes else None)
    again = table.complete(begun, newAction=becomes)
    assert (again.repeated, again.instant.position) == (True, done.instant.position)  # type: ignore[union-attr]


def test_who_lost_the_reply_asks_again(table: LakeTable) -> None:
    begun = table.begin()
    added = file(DAY(1), "g", begun.timestamp or "")
    table.complete(begun, added, eventTimes={"b": 1, "a": 2})
    before = table.kept()
    again = table.complete(begun, added, eventTimes={"a": 2, "b": 1})
    assert again.repeated is True
    with pytest.raises(InvalidOperationException, match="with another content"):
        table.complete(begun, file(DAY(1), "h", begun.timestamp or ""))
    assert table.kept() == before


def test_only_what_is_inflight_completes(table: LakeTable) -> None:
    begun = table.begin(state="requested")
    with pytest.raises(InvalidOperationException, match="expected inflight"):
        table.complete(begun)
    with pytest.raises(InvalidOperationException, match="lake_complete_instants"):
        table.metastore.timeline.transition(table.reference, begun.timestamp, "commit", "completed", None)
    with pytest.raises(NoSuchObjectException, match="has no instant"):
        table.metastore.timeline.transition(table.reference, "nowhen", "commit", "inflight", None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"action": "dance"}, "no action"),
        ({"state": "completed"}, "begins as requested or inflight"),
        ({"state": "asleep"}, "no state"),
        ({"timestamp": "a b"}, "no valid timestamp"),
        ({"timestamp": "x" * 65}, "no valid timestamp"),
        ({"timestamp": ""}, "no valid timestamp"),
        ({"readPosition": 1}, "no position 1"),
        ({"readPosition": -1}, "no position -1"),
        ({"plan": [FileGroup("dt=1", "")]}, "needs a name"),
        ({"action": "savepoint", "timestamp": "20260101000000000"}, "savepoint needs the timestamp"),
        ({"action": "savepoint"}, "no completed instant: there is nothing to keep"),
    ],
)
def test_what_can_not_begin(table: LakeTable, fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidOperationException, match=message):
        table.metastore.timeline.begin(BeginInstantRequest(table=table.reference, **{"action": "commit", **fields}))
    assert table.instants() == []


def test_tables_without_timelines(metastore: Metastore, db: str) -> None:
    metastore.tables.create(builders.view(db, "v"), {})
    with pytest.raises(InvalidOperationException, match="is a view"):
        metastore.timeline.begin(BeginInstantRequest(table=TableReference(database=db, table="v"), action="commit"))
    with pytest.raises(NoSuchObjectException):
        metastore.timeline.begin(BeginInstantRequest(table=TableReference(database=db, table="x"), action="commit"))


def test_listing(table: LakeTable) -> None:
    first, second = table.commit("a").instant, table.commit("b").instant
    assert first is not None and second is not None
    table.begin("clustering", state="requested")
    assert table.keys() == [("commit", "completed"), ("commit", "completed"), ("clustering", "requested")]
    assert table.keys(states=["requested"]) == [("clustering", "requested")]
    assert table.keys(actions=["commit"], limit=1) == [("commit", "completed")]
    assert [each.timestamp for each in table.instants(after=first.timestamp, upTo=second.timestamp)] == [
        second.timestamp
    ]
    assert table.keys(latestFirst=True, limit=1) == [("clustering", "requested")]
    moments = [each.moment for each in table.instants(states=["completed"])]
    assert None not in moments and moments == sorted(moments)  # type: ignore[type-var]


def test_only_who_sent_a_heartbeat_dies_of_silence(table: LakeTable) -> None:
    silent, quiet = table.begin(), table.begin()
    table.metastore.timeline.heartbeat(table.reference, silent.timestamp, "commit")
    with table.metastore.database.write() as tx:
        row = table.metastore.tables.row(tx, table.db, table.name)
        assert instants.dead(tx, 3600, row.id) == []
        assert [each.timestamp for each in instants.dead(tx, -1, row.id)] == [silent.timestamp]
    impatient = table.metastore.timeline_sweeper
    table.metastore.timeline_sweeper.sweep()
    assert len(table.instants()) == 2
    patience, impatient._heartbeat_seconds = impatient._heartbeat_seconds, -1.0
    try:
        impatient.sweep()
    finally:
        impatient._heartbeat_seconds = patience
    assert [each.timestamp for each in table.instants()] == [quiet.timestamp]
    with pytest.raises(NoSuchObjectException, match="aborted because its heartbeats stopped"):
        table.complete(silent, file(DAY(1), "g", silent.timestamp or ""))


def test_giving_up(table: LakeTable) -> None:
    begun = table.begin()
    table.metastore.timeline.delete(table.reference, begun.timestamp, "commit")
    table.metastore.timeline.delete(table.reference, begun.timestamp, "commit")
    assert table.instants() == []
    done = table.commit("g").instant
    assert done is not None
    with pytest.raises(InvalidOperationException, match="rollback or a restore"):
        table.metastore.timeline.delete(table.reference, done.timestamp, "commit")
    table.complete(table.begin("savepoint", done.timestamp))
    table.metastore.timeline.delete(table.reference, done.timestamp, "savepoint")
    assert table.keys() == [("commit", "completed")]
    table.complete(table.begin("savepoint", done.timestamp))


def test_old_instants_are_archived_and_stay_readable(table: LakeTable) -> None:
    first = table.commit("a").instant
    assert first is not None
    table.complete(table.begin("savepoint", first.timestamp))
    for number in range(25):
        table.commit(f"g{number}")
    table.metastore.timeline_sweeper.sweep()
    active = table.instants()
    assert len(active) == 21  # 20 and the savepoint
    assert active[0].action == "savepoint"
    assert len(table.instants(includeArchived=True)) == 27
    assert table.metastore.timeline_queries.details(table.reference, first.timestamp, "commit").partitions == [DAY(1)]
    assert table.paths(asOf=first.timestamp) == [f"{DAY(1)}/a_{first.timestamp}.parquet"]


def test_archived_instants_are_forgotten_when_nobody_can_read_them(table: LakeTable) -> None:
    for _ in range(26):
        table.commit("a")
    kept = len(table.instants(includeArchived=True))
    sweep_as_if_later(table)
    assert len(table.instants(includeArchived=True)) == kept  # their snapshots can be read
    table.clean(table.clean_plan(keepCommits=23))
    assert table.metastore.timeline_queries.position(table.reference).oldestReadable == 4
    table.metastore.timeline_sweeper.sweep()
    assert len(table.instants(includeArchived=True)) == kept + 1  # not yet
    sweep_as_if_later(table)
    left = [each.position for each in table.instants(includeArchived=True)]
    assert left == list(range(4, 28))
    assert table.snapshot(asOfPosition=4).files
    with pytest.raises(SnapshotGone):
        table.snapshot(asOfPosition=3)


def test_a_table_says_how_long_its_archive_is_kept(metastore: Metastore, db: str) -> None:
    own = LakeTable(metastore, db, "own", parameters={"timeline.archived-days": "100"})
    other = LakeTable(metastore, db, "other")
    for table in (own, other):
        for _ in range(26):
            table.commit("a")
        table.clean(table.clean_plan(keepCommits=23))
        table.metastore.timeline_sweeper.sweep()
    sweep_as_if_later(own)
    assert len(own.instants(includeArchived=True)) == 27
    assert len(other.instants(includeArchived=True)) == 24
    with pytest.raises(InvalidObjectException, match="expected a whole number of days"):
        LakeTable(metastore, db, "third", parameters={"timeline.archived-days": "soon"})


def sweep_as_if_later(table: LakeTable) -> None:
    with table.metastore.database.write() as tx:
        tx.exec_driver_sql("UPDATE instants SET changed_at = changed_at - 91 * 86400000::bigint WHERE archived")
    table.metastore.timeline_sweeper.sweep()


def test_what_archived_instants_changed_is_forgotten(table: LakeTable) -> None:
    table.commit("a")
    late = table.begin()
    for number in range(25):
        table.commit("a" if number == 2 else f"g{number}")
    archived = 26 - 20

    def kept() -> list[int]:
        with table.metastore.database.read() as tx:
            row = table.metastore.tables.row(tx, table.db, table.name)
            return list(instants.find_changed_groups(tx, row.id, 0, 100))

    table.metastore.timeline_sweeper.sweep()
    assert kept()[0] == 2  # whoever began late has read the first position only
    with pytest.raises(InstantConflict, match="file group a"):
        table.complete(late, file(DAY(1), "a", late.timestamp or ""))
    table.metastore.timeline.delete(table.reference, late.timestamp, "commit")
    table.commit("b")
    table.metastore.timeline_sweeper.sweep()
    assert kept()[0] == archived + 2
    with pytest.raises(InvalidOperationException, match=f"read the table again, at position {archived + 1} or later"):
        table.begin(readPosition=archived)
    assert table.begin(readPosition=archived + 1).readPosition == archived + 1
    first = table.instants(includeArchived=True)[0]
    assert table.metastore.timeline_queries.details(table.reference, first.timestamp, "commit").partitions == [DAY(1)]


def test_a_dropped_table_takes_its_timeline_along(table: LakeTable) -> None:
    table.commit("g")
    table.begin()
    table.metastore.tables.drop(table.db, table.name, delete_data=True)
    LakeTable(table.metastore, table.db)
    assert table.instants(includeArchived=True) == []
    assert table.paths() == []
