"""The typed client: Python's types, pages behind iterators, answers that get lost, and what is asked only once."""

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from thrift.transport.TTransport import TTransportException

from lake.client.lake_types import Column, Completion, DataFile, FileGroup, Moment
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import InstantConflict, SnapshotGone
from lake.tables.lake import LakeClient, LakeTable
from tests.metastore.services.timeline.lake import DAY
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.target import local_path
from tests.support.waiting import wait_until

NUMBERS = itertools.count(1)


class Calls:
    """The calls that were made, by name; `lost` are methods whose next answer gets lost."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.lost: list[str] = []


class Recording(ThriftClient):
    def __init__(self, server: MetastoreServer, calls: Calls) -> None:
        super().__init__(server.host, server.port)
        self._calls = calls

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        self._calls.names.append(name)
        answer = super().call(name, *args, **named)
        if name in self._calls.lost:
            self._calls.lost.remove(name)
            raise TTransportException(TTransportException.END_OF_FILE, "somebody pulled the plug")
        return answer


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def client(metastore_server: MetastoreServer, calls: Calls) -> Iterator[LakeClient]:
    with LakeClient(lambda: Recording(metastore_server, calls)) as opened:
        yield opened


@pytest.fixture
def new_table(client: LakeClient) -> Callable[[], LakeTable]:
    def make() -> LakeTable:
        database = f"lake_client_{next(NUMBERS)}"
        client.call(lambda opened: opened.create_database(builders.database(database)))
        client.call(lambda opened: opened.create_table(builders.table(database, "t", keys=("dt",))))
        return client.table(f"{database}.T")

    return make


@pytest.fixture
def table(new_table: Callable[[], LakeTable]) -> LakeTable:
    return new_table()


def file(table: LakeTable, at: str, name: str, day: int = 1, **fields: Any) -> DataFile:
    return DataFile(DAY(day), name, at, f"{DAY(day)}/{name}_{at}", size=100, rows=10, **fields)


def commit(table: LakeTable, *names: str, day: int = 1, **more: Any) -> str:
    """Completes an instant that adds files; its timestamp."""
    instant = table.begin().instant
    added = [file(table, instant.timestamp, name, day) for name in names]
    table.complete(instant, Completion(added=added, **more))
    return instant.timestamp


def test_what_goes_in_comes_out(table: LakeTable) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    with table.writing(metadata=b"plan") as writing:
        added = file(
            table, writing.instant.timestamp, "a", min_event_time=noon, max_event_time=noon + timedelta(milliseconds=7)
        )
        done = writing.complete(Completion(added=[added], metadata=b"done", event_times={"s": noon}))
    assert not done.repeated and done.instant.state == "completed" and done.instant.position == 1
    assert abs(done.instant.changed_at - datetime.now(UTC)) < timedelta(minutes=10)
    assert list(table.snapshot()) == [added._replace(added_at=1)]
    details = table.details(writing.instant.timestamp, "commit")
    assert (details.metadata, details.partitions) == ({"inflight": b"plan", "completed": b"done"}, [DAY(1)])
    assert table.partitions() == [DAY(1)] == table.partitions(ready=True)
    with pytest.raises(ValueError, match="no time zone"):
        table.snapshot(datetime(2026, 1, 1))


def test_a_table_is_read_as_of(table: LakeTable) -> None:
    before = datetime.now(UTC) - timedelta(days=1)
    first = commit(table, "a")
    second = commit(table, "b", day=2)
    moment = table.details(first, "commit").instant.moment
    assert moment is not None

    def names(as_of: Any = None, **options: Any) -> list[str]:
        return [each.file_group for each in table.snapshot(as_of, **options)]

    assert [names(as_of) for as_of in (before, 0, first, 1, Moment(moment), second, None)] == [
        *([], [], ["a"], ["a"], ["a"], ["a", "b"], ["a", "b"])
    ]
    assert names(filter="dt > '2026-01-01'") == ["b"] == names(partitions=[DAY(2)])
    assert [table.position_of(each) for each in (first, 2, None)] == [1, 2, 2]
    assert [table.timestamp_of(each) for each in (first, 2, Moment(moment))] == [first, second, first]
    with pytest.raises(NoSuchObjectException, match="had no instant"):
        table.timestamp_of(before)


@pytest.mark.parametrize("as_of", [1.5, date(2026, 1, 1), Moment(None)])  # type: ignore[arg-type]
def test_what_is_no_moment_is_not_the_latest(table: LakeTable, as_of: Any) -> None:
    """`Moment(None)`: the instant that a completion returns has no moment yet."""
    commit(table, "a")
    with pytest.raises(TypeError, match="is no timestamp of an instant"):
        table.snapshot(as_of)
    with pytest.raises(TypeError):
        table.position_of(as_of)


def test_changes_are_asked_for_forwards(table: LakeTable) -> None:
    commit(table, "a")
    assert list(table.changes(1)) == []
    for after, up_to in ((2, None), (1, 0)):
        with pytest.raises(ValueError, match=f"position {after} is not before"):
            list(table.changes(after, up_to))


def test_a_call_that_can_not_be_written_disturbs_no_other(table: LakeTable, calls: Calls) -> None:
    with pytest.raises(OverflowError):
        table.snapshot(1 << 70)
    del calls.names[:]
    assert table.position().position == 0
    assert calls.names == ["lake_timeline_position"]


def test_pages_are_put_together(table: LakeTable) -> None:
    stamps = [commit(table, f"a{number}", f"b{number}") for number in range(25)]
    snapshot = table.snapshot(page=7)
    commit(table, "later")
    assert [each.file_group for each in snapshot] == sorted(f"{kind}{number}" for number in range(25) for kind in "ab")
    assert [each.file_group for each in snapshot] == [each.file_group for each in table.snapshot(25)]
    assert [each.instant.timestamp for each in table.changes(0, 25, page=4)] == stamps
    saved = table.begin("savepoint", timestamp=stamps[19]).instant
    table.complete(saved, Completion())
    listed = [(each.timestamp, each.action) for each in table.instants(up_to=stamps[-1], page=1)]
    assert listed == sorted([*((each, "commit") for each in stamps), (stamps[19], "savepoint")])
    backwards = [each.timestamp for each in table.instants(up_to=stamps[-1], latest_first=True, page=1)]
    assert backwards == [each for each, _ in reversed(listed)]


def test_savepoints_have_names(table: LakeTable) -> None:
    first, second = commit(table, "a"), commit(table, "b")
    kept = table.savepoint(first, name="before the import")
    last = table.savepoint()
    assert (kept.name, kept.read_position, last.timestamp, last.name) == ("before the import", 1, second, None)
    named, by_timestamp = table.snapshot("before the import"), table.snapshot(first)
    assert named.position == by_timestamp.position == 1
    assert table.timestamp_of("before the import") == first
    with pytest.raises(InvalidOperationException, match=f"has a savepoint 'before the import' already, {first}"):
        table.savepoint(commit(table, "c"), name="before the import")
    with pytest.raises(InvalidOperationException, match="savepoint is completed already"):
        table.savepoint(first, name="another")
    begun = table.begin("savepoint", timestamp=commit(table, "d"), name="begun").instant
    with pytest.raises(InvalidOperationException, match="already, with the name 'begun'"):
        table.begin("savepoint", timestamp=begun.timestamp, name="another")
    with pytest.raises(InvalidOperationException, match=r"an instant of .* is called so"):
        own = table.begin("commit", timestamp="theirs").instant
        table.complete(own, Completion())
        table.savepoint(name="theirs")
    with pytest.raises(InvalidOperationException, match="is the name of the savepoint"):
        table.savepoint(name="ours")
        table.begin("commit", timestamp="ours")
    for name in ("", " a", "7", "a\nb", "a" * 256):
        with pytest.raises(InvalidOperationException, match="is no name of a savepoint"):
            table.savepoint(first, name=name)
    with pytest.raises(InvalidOperationException, match="only a savepoint has a name"):
        table.begin("commit", name="x")
    table.delete_savepoint("before the import")
    with pytest.raises(NoSuchObjectException, match="no completed instant or savepoint before the import"):
        _ = table.snapshot("before the import").position
    with pytest.raises(NoSuchObjectException, match="no savepoint 'before the import'"):
        table.delete_savepoint("before the import")
    assert table.savepoint(first, name="before the import").name


def test_an_answer_that_is_lost_is_asked_for_again(table: LakeTable, calls: Calls) -> None:
    with table.writing() as writing:
        calls.lost.append("lake_complete_instants")
        done = writing.complete(Completion(added=[file(table, writing.instant.timestamp, "a")]))
    assert done.repeated and done.instant.position == 1
    calls.lost.append("lake_delete_instant")
    begun = table.begin()
    table.abort(begun.instant)
    with pytest.raises(InvalidOperationException, match="undo it by a rollback"):
        table.abort(done.instant)
    assert [each.file_group for each in table.snapshot()] == ["a"]


def test_an_instant_whose_beginning_was_not_heard_of_is_given_up(table: LakeTable, calls: Calls) -> None:
    """It has sent its first heartbeat with the beginning, so the server will miss the next one."""
    calls.lost.append("lake_begin_instant")
    with table.writing() as writing:
        writing.complete(Completion())
    orphans = [each for each in table.instants() if each.state == "inflight"]
    assert len(orphans) == 1 and orphans[0].heartbeat_at is not None


def test_who_does_not_complete_gives_up(table: LakeTable) -> None:
    with pytest.raises(RuntimeError), table.writing() as writing:
        place = local_path(writing.directory)
        place.mkdir(parents=True)
        (place / "a").write_text("rows")
        raise RuntimeError("changed its mind")
    wait_until(lambda: not place.exists(), 30, "its directory to be deleted")
    assert list(table.instants()) == []


def test_heartbeats_are_sent_while_it_lasts(table: LakeTable) -> None:
    with table.writing(heartbeat_seconds=0.1) as writing:
        key = writing.instant.timestamp, "commit"
        first = table.details(*key).instant.heartbeat_at
        assert first is not None
        wait_until(lambda: (table.details(*key).instant.heartbeat_at or first) > first, 30, "another heartbeat")
        table.heartbeat(writing.instant)


def test_whose_heartbeats_stayed_away_is_told(table: LakeTable) -> None:
    with pytest.raises(FileNotFoundError) as failed, table.writing() as writing:
        table.abort(writing.instant)
        raise FileNotFoundError
    assert "had been aborted" in "".join(failed.value.__notes__)
    with pytest.raises(KeyError) as other, table.writing():
        raise KeyError
    assert not hasattr(other.value, "__notes__")
    with pytest.raises(ValueError, match="every 0"), table.writing(heartbeat_seconds=0):
        pass
    assert list(table.instants()) == []


def test_a_plan_is_resumed(table: LakeTable, calls: Calls) -> None:
    commit(table, "a")
    plan = table.begin("compaction", state="requested", plan=[FileGroup(DAY(1), "a")]).instant
    assert (plan.attempt, plan.running) == (0, None)
    calls.lost.append("lake_transition_instant")
    with pytest.raises(KeyError), table.resuming(plan, heartbeat_seconds=0.1) as writing:
        assert writing.instant.running == 1
        assert writing.path == f".instants/{plan.timestamp}.compaction/attempt-1"
        assert writing.directory == f"{table.location()}/{writing.path}"
        place = local_path(writing.directory)
        place.mkdir(parents=True)
        first = table.details(plan.timestamp, "compaction").instant.heartbeat_at
        assert first is not None
        wait_until(
            lambda: (table.details(plan.timestamp, "compaction").instant.heartbeat_at or first) > first, 30, "another"
        )
        with pytest.raises(InvalidOperationException, match="run by another process"), table.resuming(plan):
            pass
        raise KeyError
    wait_until(lambda: not place.exists(), 30, "the attempt's directory to be deleted")
    calls.lost.append("lake_complete_instants")
    with table.resuming(plan) as writing:
        path = f"{writing.path}/a"
        assert path.startswith(f".instants/{plan.timestamp}.compaction/attempt-2/")
        added = DataFile(DAY(1), "a", plan.timestamp, path, size=1)
        assert writing.complete(Completion(added=[added], new_action="commit")).repeated
    assert [each.path for each in table.snapshot()] == [path]
    (done,) = [each for each in table.instants() if each.timestamp == plan.timestamp]
    assert (done.state, done.attempt, done.running) == ("completed", 2, None)
    with pytest.raises(ValueError, match="every 0"), table.resuming(plan, heartbeat_seconds=0):
        pass


def test_who_was_taken_for_dead_changes_nothing_any_more(table: LakeTable) -> None:
    plan = table.begin("compaction", state="requested", plan=[FileGroup(DAY(1), "a")]).instant
    added = DataFile(DAY(1), "a", plan.timestamp, f"{DAY(1)}/a", size=1)
    with (
        pytest.raises(InvalidOperationException, match="another process runs the plan now"),
        table.resuming(plan) as slow,
    ):
        table.transition(table.details(plan.timestamp, "compaction").instant, "requested")
        quick = table.transition(plan, "inflight", runner="quick")
        with pytest.raises(InvalidOperationException, match="another process runs the plan now"):
            table.heartbeat(slow.instant)
        slow.complete(Completion(added=[added]))
    assert table.details(plan.timestamp, "compaction").instant.state == "inflight"
    assert table.transition(plan, "inflight", runner="quick") == quick
    assert table.complete(quick, Completion(added=[added])).instant.attempt == 2


def test_a_loser_is_told_who_won(client: LakeClient, new_table: Callable[[], LakeTable]) -> None:
    """Of several tables together none is changed."""
    one, two = new_table(), new_table()
    commit(one, "a")
    begun = [(each, each.begin().instant) for each in (one, two)]
    winner = commit(one, "a")
    together = [
        (each, instant, Completion(added=[file(each, instant.timestamp, "a")], strategy="partition"))
        for each, instant in begun
    ]
    with pytest.raises(InstantConflict) as lost:
        client.complete(together)
    assert [each.timestamp for each in lost.value.winners or ()] == [winner]
    assert list(two.snapshot()) == []


def test_undoing_and_cleaning(table: LakeTable) -> None:
    first, second = commit(table, "a"), commit(table, "a")
    table.roll_back(table.details(second, "commit").instant)
    assert [each.slice for each in table.snapshot()] == [first]
    last = commit(table, "a")
    planned = table.plan_clean(keep_commits=1)
    assert {each.slice for each in planned} == {first, second}
    table.clean(planned)
    assert table.plan_clean(keep_commits=1) == []
    assert table.position().oldest_readable == table.position_of(last)
    with pytest.raises(SnapshotGone):
        table.snapshot(2)


def test_what_can_not_change_is_asked_for_once(client: LakeClient, table: LakeTable, calls: Calls) -> None:
    stamp = commit(table, "a")
    schema, details = table.schema(), table.details(stamp, "commit")
    del calls.names[:]
    assert table.schema(schema.version) is schema
    assert table.details(stamp, "commit") is details
    assert calls.names == []
    again = client.table(table.name)
    assert again.details(stamp, "commit") is details
    assert again.schema(schema.version) is schema
    assert calls.names == ["lake_timeline_position"]
    del calls.names[:]
    assert table.schema() is schema
    assert calls.names == ["lake_timeline_position"]
    commit(table, "b", columns=[*schema.columns, Column("extra", "string")])
    wider = table.schema()
    assert [each.name for each in wider.columns] == [*(each.name for each in schema.columns), "extra"]
    assert table.snapshot().table_version == wider.version > schema.version
    assert table.schema(schema.version) is schema
    begun = table.begin().instant
    assert table.details(begun.timestamp, "commit").instant.state == "inflight"
    table.complete(begun, Completion())
    assert table.details(begun.timestamp, "commit").instant.state == "completed"
