"""Events in Redis Streams, and following them there."""

import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from sqlalchemy import NullPool, create_engine

from eventbus.log import log as event_log
from eventbus.outlets.base import Diverged, LogState
from eventbus.outlets.redis_streams import StreamOutlet
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.events import assignment
from lake.protocol.events.history import Epoch, History
from lake.protocol.events.in_redis import GROUPS, SEEN, Membership, ShardLost, Token
from lake.protocol.events.shards import SHARDS
from lake.protocol.events.streams import ALL, STATE
from lake.protocol.events.types import Origin
from lake.protocol.lake import EventsGone
from lake.subscriptions import Event, EventType, SourceUnavailable, Subscription, subscribe
from metastore.server.embedded_postgres import running_url
from tests.eventbus.changes import log_of, make
from tests.support import builders
from tests.support.redis import RedisServer
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, streams: RedisServer) -> Iterator[MetastoreServer]:
    data = tmp_path_factory.mktemp("streams") / "data"
    with MetastoreServer(data, "--workers", "1", "--redis-url", streams.url) as server:
        yield server


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        client.set_ugi("ann", [])
        yield client


@pytest.fixture
def db(client: ThriftClient, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name[:100]
    client.create_database(builders.database(name))
    return name


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members of groups are taken for dead sooner."""
    monkeypatch.setattr(assignment, "LEASE_SECONDS", 1.0)


def numbers(streams: RedisServer, stream: str = ALL) -> list[int]:
    """What is in a stream, in its order."""
    with streams.client() as client:
        entries: Any = client.xrange(stream)
    return [int(entry["number"]) for _, entry in entries]


def state(streams: RedisServer) -> dict[str, str]:
    with streams.client() as client:
        found: Any = client.hgetall(STATE)
    return found


def settled(streams: RedisServer, client: ThriftClient) -> list[int]:
    """The numbers of the log, once all of them are in Redis."""
    committed = [each.number for each in log_of(client)]
    wait_until(lambda: state(streams).get("position") == str(committed[-1]))
    return committed


def take(subscription: Subscription, count: int, seconds: float = 20) -> list[Event]:
    found: list[Event] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        found += subscription.poll(0.2)
    return found


def test_entries(streams: RedisServer, client: ThriftClient, db: str) -> None:
    client.create_table(builders.table(db, "t", keys=("dt",)))
    client.add_partitions([builders.partition(db, "t", str(day)) for day in range(3)])
    committed = settled(streams, client)
    assert numbers(streams) == committed
    with streams.client() as redis_client:
        [(id, entry)] = redis_client.xrevrange(ALL, count=1)
    event = log_of(client)[-1]
    assert len(entry.pop("mark")) == 36
    assert id == f"{event.number}-0"
    assert entry == {
        **{"number": str(event.number), "type": "ADD_PARTITIONS", "time": str(event.time), "user": "ann"},
        **{"connection": event.connection, "catalog": "hive", "database": db, "table": "t", "payload": event.payload},
    }


def test_the_same_events_as_over_thrift(
    server: MetastoreServer, streams: RedisServer, client: ThriftClient, db: str
) -> None:
    begin = settled(streams, client)[-1]
    make(client, f"{db}_2", 4)
    settled(streams, client)
    wanted: Any = {"tables": [f"{db}*.t*", f"{db}_2.*"], "types": ["CREATE_TABLE", "CREATE_DATABASE"], "start": begin}
    with subscribe(streams.url, **wanted) as here, subscribe(server.uri, **wanted) as there:
        found = here.poll()
        assert found == there.poll()
        assert [event.type for event in found] == [EventType.CREATE_DATABASE] + 3 * [EventType.CREATE_TABLE]
        assert here.position == there.position


def test_where_to_begin(streams: RedisServer, client: ThriftClient, db: str) -> None:
    committed = settled(streams, client)
    time.sleep(0.01)  # events have milliseconds: the moment must be after the last one's
    moment = datetime.now(UTC)
    with subscribe(streams.url) as latest:
        assert latest.poll() == []
        client.create_table(builders.table(db, "t"))
        assert [event.table for event in latest.poll(10)] == ["t"]
    with subscribe(streams.url, start=moment) as since:
        assert [event.table for event in since.poll()] == ["t"]
    with subscribe(streams.url, start="earliest") as earliest:
        assert [event.number for event in take(earliest, len(committed) + 1)] == [*committed, committed[-1] + 1]


def test_members_share_the_work_by_table(streams: RedisServer, client: ThriftClient, db: str, patient: None) -> None:
    """Both get some, none gets what the other has, and each table's events stay with one, in order."""
    found: dict[str, list[Event]] = {"one": [], "two": []}
    stop = threading.Event()
    ready = threading.Barrier(3)

    def work(name: str) -> None:
        with subscribe(streams.url, tables=f"{db}.*", group=f"share-{db}") as events:
            for _ in range(3):
                events.poll(0.2)
            ready.wait(30)
            while not stop.is_set():
                for event in events.poll(0.2):
                    found[name].append(event)
                    events.acknowledge(event)

    threads = [threading.Thread(target=work, args=(name,)) for name in found]
    for thread in threads:
        thread.start()
    ready.wait(30)
    for name in range(16):
        client.create_table(builders.table(db, f"t{name}"))
    for name in range(16):
        client.drop_table(db, f"t{name}", True)
    wait_until(lambda: sum(map(len, found.values())) >= 32)
    stop.set()
    for thread in threads:
        thread.join()
    assert min(map(len, found.values())) > 0
    assert len({event.number for events in found.values() for event in events}) == 32
    assert {e.table for e in found["one"]}.isdisjoint(e.table for e in found["two"])
    for events in found.values():
        # In order by table: what came in for one while another was read is only found the next time.
        in_order = sorted(events, key=lambda event: (event.table, event.number))
        assert sorted(events, key=lambda event: event.table) == in_order


def test_what_a_dead_member_had_comes_to_another(
    streams: RedisServer, client: ThriftClient, db: str, patient: None
) -> None:
    def member() -> Subscription:
        return subscribe(streams.url, tables=f"{db}.*", group=f"dead-{db}")

    settled(streams, client)
    dead = member()
    dead.poll()
    for name in range(6):
        client.create_table(builders.table(db, f"t{name}"))
    first = sorted(event.number for event in take(dead, 6))
    dead.acknowledge(first[1])
    dead._closed.set()  # type: ignore[attr-defined]  # from now on it gives no sign of life
    with member() as heir:
        assert sorted(event.number for event in take(heir, 4)) == first[2:]
        heir.acknowledge()
    with member() as later:
        assert later.poll(0.5) == []
        client.create_table(builders.table(db, "another"))
        assert [event.table for event in take(later, 1)] == ["another"]


def test_what_a_member_lost_does_not_count(
    streams: RedisServer, client: ThriftClient, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that stood still neither takes an event away from who has its tables now, nor hands it out again."""
    monkeypatch.setattr(assignment, "LEASE_SECONDS", 0.5)
    group = f"still-{db}"
    settled(streams, client)
    still = subscribe(streams.url, tables=f"{db}.*", group=group)
    still.poll()
    still._closed.set()  # type: ignore[attr-defined]  # from now on it gives no sign of life by itself
    client.create_table(builders.table(db, "t"))
    [event] = take(still, 1)
    with subscribe(streams.url, tables=f"{db}.*", group=group) as heir:
        assert take(heir, 1) == [event]
        still.acknowledge(event)
        assert still.poll() == []
    with subscribe(streams.url, tables=f"{db}.*", group=group) as later:
        assert take(later, 1) == [event]
        later.acknowledge()
    still.close()


def test_members_are_told_what_they_have(streams: RedisServer) -> None:
    """Under generations that rise with each hand-over, in shares that are even, give or take one."""
    with streams.client() as client:
        one, two, three = (Membership(client, "shares", name) for name in ("one", "two", "three"))
        everything = one.take(())
        assert everything == [Token(shard, 1) for shard in range(SHARDS)]
        assert two.take(()) == []  # until the other lets go
        assert len(one.take(everything)) == SHARDS  # of what it works on it does not
        assert len(one.take(everything[:2])) == SHARDS // 2
        taken = two.take(())
        assert [each.generation for each in taken] == [3] * (SHARDS - SHARDS // 2)
        assert two.stay() == taken
        for member in (three, one, two, three):
            member.take(())
        assert sorted(len(each.stay()) for each in (one, two, three)) == [5, 5, 6]
        with pytest.raises(ShardLost):
            one.call(taken[0], "PING")
        assert two.call(two.stay()[0], "ECHO", "here") == "here"
        two.leave()
        assert two.stay() == []
        with pytest.raises(ShardLost):
            two.call(taken[0], "PING")


@pytest.mark.long
def test_a_stream_for_each_database(tmp_path: Path) -> None:
    options = ("--workers", "1", "--event-streams", "database", "--redis-url")
    with (
        RedisServer(tmp_path / "redis") as streams,
        MetastoreServer(tmp_path / "data", *options, streams.url) as server,
        ThriftClient(server.host, server.port) as client,
    ):
        make(client, "a", 3)
        settled(streams, client)
        with (
            subscribe(streams.url, group="g", start="earliest") as group,
            subscribe(streams.url, start="earliest", tables="b.*") as alone,
        ):
            assert sorted(event.number for event in take(group, 3)) == [1, 2, 3]
            assert alone.poll() == []
            make(client, "b", 3)
            client.drop_table("a", "t0", True)
            settled(streams, client)
            assert numbers(streams, f"{ALL}:hive.a") == [1, 2, 3, 7]
            assert numbers(streams, f"{ALL}:hive.b") == [4, 5, 6]
            assert sorted(event.number for event in take(group, 4)) == [4, 5, 6, 7]
            assert [event.number for event in take(alone, 3)] == [4, 5, 6]
            group.acknowledge()
        with subscribe(streams.url, group="g") as group:
            client.drop_database("b", True, True)
            settled(streams, client)
            found = [(event.database, event.type) for event in take(group, 3)]
            assert found[-1] == ("b", EventType.DROP_DATABASE)
            assert len(found) == 3


@pytest.mark.long
def test_redis_down_and_back(tmp_path: Path) -> None:
    """Killed, it comes back with what it has; empty, it gets everything anew; followers miss nothing."""
    streams = RedisServer(tmp_path / "redis")  # which isn't there yet
    server = MetastoreServer(tmp_path / "data", "--workers", "1", "--redis-url", streams.url).start()
    with server, ThriftClient(server.host, server.port) as client:
        make(client, "a", 5)
        with streams:
            assert numbers_when_settled(streams, client) == list(range(1, 6))
            with (
                subscribe(streams.url, start="earliest") as alone,
                subscribe(streams.url, start="earliest", group="g") as group,
            ):
                assert len(take(alone, 5)) == 5
                assert len(take(group, 5)) == 5
                group.acknowledge()
                streams.kill()
                make(client, "b", 5)
                streams.start()
                assert numbers_when_settled(streams, client) == list(range(1, 11))
                assert [event.number for event in take(alone, 5)] == list(range(6, 11))
                assert sorted(event.number for event in take(group, 5))[-5:] == list(range(6, 11))
                group.acknowledge()
                streams.lose()
                make(client, "c", 5)
                streams.start()
                assert numbers_when_settled(streams, client) == list(range(1, 16))
                assert state(streams)["complete_from"] == "1"
                assert [event.number for event in take(alone, 5)] == list(range(11, 16))
                # Redis forgot the group: it begins anew, rather than to miss one.
                assert sorted(event.number for event in take(group, 15)) == list(range(1, 16))


def numbers_when_settled(streams: RedisServer, client: ThriftClient) -> list[int]:
    settled(streams, client)
    return numbers(streams)


@pytest.mark.long
def test_retention(tmp_path: Path) -> None:
    """What the log has removed leaves the stream; who had not read it gets an error, and goes on where it says."""
    with RedisServer(tmp_path / "redis") as streams:
        options = ("--workers", "1", "--redis-url", streams.url)
        with (
            MetastoreServer(tmp_path / "data", *options) as server,
            ThriftClient(server.host, server.port) as client,
        ):
            make(client, "a", 10)
            settled(streams, client)
            with subscribe(streams.url, start=2) as late, subscribe(streams.url, start=2, group="g") as group:
                assert late.poll() and group.poll()  # and acknowledges nothing
                _trim(tmp_path / "data", keep=4)
                client.drop_table("a", "t0", True)
                wait_until(lambda: state(streams).get("complete_from") == "7")
                settled(streams, client)
                assert numbers(streams) == [7, 8, 9, 10, 11]
                assert [event.number for event in late.poll()] == [11]
            with (
                subscribe(streams.url, start=3) as gone,
                pytest.raises(EventsGone, match="complete from 7 on") as error,
            ):
                gone.poll()
            with subscribe(streams.url, group="g") as group:
                for _ in range(2):
                    with pytest.raises(EventsGone):
                        group.poll()
                group.acknowledge(error.value.oldest - 1)
                assert sorted(event.number for event in take(group, 5)) == [7, 8, 9, 10, 11]
            streams.lose()
            streams.start()
            settled(streams, client)
            assert (numbers(streams), state(streams)["complete_from"]) == ([7, 8, 9, 10, 11], "7")


def _trim(data: Path, keep: int) -> None:
    url = running_url(data)
    assert url is not None
    with create_engine(url, poolclass=NullPool).begin() as tx:
        event_log.trim(tx, older_than=event_log.FOREVER, keep=keep, limit=100)


def test_streams_of_another_metastore(streams: RedisServer, client: ThriftClient, db: str) -> None:
    """A server with an empty log does not take its numbers for duplicates."""
    assert settled(streams, client)
    outlet = StreamOutlet(streams.url)
    with pytest.raises(Exception, match="they belong to another"):
        outlet.resume(0, log_state("another log", last=10**9))
    other = StreamOutlet(streams.url, by_database=True)
    with pytest.raises(Exception, match="event_streams"):
        other.resume(0, log_state(state(streams)["log"], last=10**9))


def log_state(identity: str, last: int) -> LogState:
    return LogState(last, 0, History(identity, [Epoch(0, "first", 0, False, "", None)]), lambda numbers: {})


def test_two_publishers_leave_no_gap(tmp_path: Path) -> None:
    """One that has lost its turn can't add anything after the other."""
    with RedisServer(tmp_path / "redis") as streams:
        one, two = StreamOutlet(streams.url), StreamOutlet(streams.url)
        assert one.resume(0, log_state("log", 9)) == two.resume(0, log_state("log", 9)) == 0
        one.deliver([_event(1), _event(2)])
        with pytest.raises(Exception, match="are at 2 instead of 0"):
            two.deliver([_event(1), _event(2), _event(3)])
        assert two.resume(0, log_state("log", 9)) == 2
        two.deliver([_event(3)])
        with pytest.raises(Exception, match="are at 3 instead of 2"):
            one.deliver([_event(3)])
        assert numbers(streams) == [1, 2, 3]
        with streams.client() as client, pytest.raises(redis.ResponseError, match="equal or smaller"):
            client.xadd(ALL, {"number": "2"}, id="2-0")


def test_groups_that_nobody_uses_are_forgotten(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as streams:
        outlet = StreamOutlet(streams.url, silence=timedelta(days=60))
        outlet.resume(0, log_state("log", 9))
        outlet.deliver([_event(1), _event(2), _event(3)])
        for group in ("used", "left"):
            with subscribe(streams.url, start="earliest", group=group) as events:
                assert len(take(events, 3)) == 3
        with streams.client() as client:
            client.hset(SEEN, "left", str(int(time.time()) - 61 * 86_400))
            client.hset(SEEN, "used", str(int(time.time()) - 59 * 86_400))
            outlet.forget(1)
            groups: Any = client.xinfo_groups(ALL)
            assert {each["name"].partition("#")[0] for each in groups} == {"used"}
            assert client.hkeys(GROUPS) == ["used"]
        outlet.close()


def _event(
    number: int, payload: Mapping[str, Any] | None = None, *, database: str = "d", mark: str | None = None
) -> Event:
    origin = Origin()
    return Event(
        number, EventType.CREATE_TABLE, 0, origin, "hive", database, "t", payload or {}, mark=mark or f"m{number}"
    )


def test_nobody_is_kept_waiting_while_redis_is_away(tmp_path: Path) -> None:
    """Neither by one that is gone nor by one that hangs; and once it is back everything goes on."""
    streams = RedisServer(tmp_path / "redis")
    with streams:
        outlet = StreamOutlet(streams.url)
        outlet.resume(0, log_state("log", 9))
        outlet.deliver([_event(1)])
        for group in (None, "g"):
            with subscribe(streams.url, start="earliest", group=group) as events:
                assert len(take(events, 1)) == 1
                streams.kill()
                began = time.monotonic()
                for wait in (0.0, 0.5):
                    with pytest.raises(SourceUnavailable, match="Redis doesn't answer"):
                        events.poll(wait)
                assert time.monotonic() - began < 10
                streams.start()
                assert events.poll() == []
                if group is not None:
                    events.acknowledge()


def test_a_redis_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lake.protocol.events.streams.TIMEOUT_SECONDS", 1.0)
    monkeypatch.setattr("lake.subscriptions.redis.PATIENCE_SECONDS", 1.0)
    with RedisServer(tmp_path / "redis") as streams:
        outlet = StreamOutlet(streams.url)
        outlet.resume(0, log_state("log", 9))
        outlet.deliver([_event(1)])
        with subscribe(streams.url, start="earliest", group="g") as events:
            assert len(take(events, 1)) == 1
            with streams.hanging():
                began = time.monotonic()
                with pytest.raises(SourceUnavailable):
                    events.poll(0)
                with pytest.raises(SourceUnavailable):
                    events.acknowledge()
                assert time.monotonic() - began < 10
            events.acknowledge()
            assert events.poll() == []


@pytest.mark.parametrize("allowed", [True, False])
def test_an_event_that_redis_does_not_take(tmp_path: Path, allowed: bool) -> None:
    """It goes without its payload, whether Redis' limit may be asked for or not; what comes after it follows."""
    with RedisServer(tmp_path / "redis") as streams:
        url = streams.url
        with streams.client() as admin:
            admin.config_set("proto-max-bulk-len", 1 << 20)
            if not allowed:
                admin.acl_setuser("outlet", enabled=True, passwords=["+x"], keys=["*"], commands=["+@all", "-config"])
                url = url.replace("redis://", "redis://outlet:x@")
        outlet = StreamOutlet(url)
        outlet.resume(0, log_state("log", 9))
        large = _event(2, {"version": 1, "text": "x" * (2 << 20)})
        wait_until(lambda: _delivered(outlet, [_event(1), large, _event(3)]))
        with subscribe(streams.url, start="earliest") as events:
            found = take(events, 3)
        assert [event.number for event in found] == [1, 2, 3]
        assert [event.payload for event in found] == [{}, {"version": 1, "truncated": True}, {}]


def _delivered(outlet: StreamOutlet, events: list[Event]) -> bool:
    """Whether an attempt succeeds."""
    try:
        outlet.deliver(events)
    except redis.RedisError:
        return False
    return True


def test_streams_of_databases_go_back_with_the_log(tmp_path: Path) -> None:
    """Nobody declared it: first the log has to begin an epoch. What it does not have is gone, and pending no more."""
    marks = {number: f"m{number}" for number in range(1, 7)}
    first = Epoch(0, "first", 0, False, "", None)
    with RedisServer(tmp_path / "redis") as streams:
        outlet = StreamOutlet(streams.url, by_database=True)
        outlet.resume(0, LogState(6, 0, History("log", [first]), lambda wanted: marks))
        outlet.deliver([_event(number, database="ab"[number % 2]) for number in range(1, 7)])
        with subscribe(streams.url, start="earliest", group="g") as group:
            assert sorted(event.number for event in take(group, 6)) == [1, 2, 3, 4, 5, 6]
            group.acknowledge(3)

            def now(*epochs: Epoch) -> LogState:
                return LogState(
                    5, 0, History("log", epochs), lambda wanted: {1: "m1", 2: "m2", 3: "x3", 4: "x4", 5: "x5"}
                )

            with pytest.raises(Diverged) as found:
                outlet.resume(6, now(first))
            assert found.value.after == 2
            assert outlet.resume(2, now(first, Epoch(1, "second", 2, True, "", None))) == 2
            assert outlet.resume(2, now(first, Epoch(1, "second", 2, True, "", None))) == 2  # it may die and come back
            outlet.deliver([_event(number, database="a", mark=f"x{number}") for number in (3, 4, 5)])
            assert (numbers(streams, f"{ALL}:hive.a"), numbers(streams, f"{ALL}:hive.b")) == ([2, 3, 4, 5], [1])
            with pytest.raises(EventsGone) as gone:
                group.poll()
            assert gone.value.restored
            group.acknowledge(gone.value.oldest - 1)
            assert sorted(event.number for event in take(group, 3)) == [3, 4, 5]
            group.acknowledge()
            assert group.poll() == []
