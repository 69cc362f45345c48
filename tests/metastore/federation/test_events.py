"""The event bus of a lake metastore, through a front."""

import threading
import time
from collections.abc import Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    InvalidOperationException,
    MetaException,
    SQLForeignKey,
    SQLPrimaryKey,
)
from lake.protocol.lake import ReadEventsRequest
from lake.subscriptions import Event, Subscription, subscribe
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.server import MetastoreServer

CONNECTIONS = 2


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("events_lake") / "data") as server:
        yield server


@pytest.fixture(scope="module")
def front(lake: MetastoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FrontServer]:
    uris = f'uris = "{lake.uri}"'
    backends = {
        "lake": f'{uris}\nprimary = true\ndeny = ["hidden_*"]\nconnections = {CONNECTIONS}',
        "again": f'{uris}\nprefix = "again_"\nnumber = 1',
    }
    with FrontServer(tmp_path_factory.mktemp("events_front"), backends) as server:
        yield server


@pytest.fixture
def client(lake: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(lake.host, lake.port) as connection:
        yield connection


def taken(events: Subscription, count: int) -> list[Event]:
    found: list[Event] = []
    until = time.monotonic() + 20
    while len(found) < count and time.monotonic() < until:
        found += events.poll(1.0)
    return found


def test_a_subscriber_sees_what_the_metastore_tells(
    lake: MetastoreServer, front: FrontServer, client: ThriftClient
) -> None:
    with subscribe(lake.uri, tables="ev1.*") as there, subscribe(front.uri, tables="ev1.*") as here:
        assert there.poll() == here.poll() == []
        client.create_database(builders.database("ev1"))
        client.create_table(builders.table("ev1", "t", keys=("a",)))
        client.add_partition(builders.partition("ev1", "t", "1"))
        assert taken(here, 3) == taken(there, 3)


def test_events_of_hidden_databases_are_left_out(front: FrontServer, client: ThriftClient) -> None:
    with subscribe(front.uri) as events:
        assert events.poll() == []
        for name in ("hidden_1", "ev2"):
            client.create_database(builders.database(name))
            client.create_table(builders.table(name, "t"))
        assert {each.database for each in taken(events, 2)} == {"ev2"}


def test_what_comes_from_a_hidden_database_is_new(front: FrontServer, client: ThriftClient) -> None:
    """And what goes to one is dropped: its events say no more of that."""
    for name in ("hidden_5", "ev5"):
        client.create_database(builders.database(name))
    client.create_table(builders.table("hidden_5", "t"))
    with subscribe(front.uri) as events:
        assert events.poll() == []
        for old, new in (("hidden_5.t", "ev5.t"), ("ev5.t", "ev5.u"), ("ev5.u", "hidden_5.u")):
            (database, table), (to, renamed) = old.split("."), new.split(".")
            found = client.get_table(database, table)
            client.alter_table(database, table, found.replace(dbName=to, tableName=renamed))
        client.create_table(builders.table("ev5", "t"))
        client.create_table(builders.table("ev5", "u"))
        for each in ("hidden_5", "ev5"):
            client.add_primary_key(
                AddPrimaryKeyRequest([SQLPrimaryKey(each, "u", "id", 1, f"pk_{each}", False, False, False)])
            )
            client.add_foreign_key(
                AddForeignKeyRequest([SQLForeignKey(each, "u", "id", "ev5", "t", "id", 1, fk_name=f"to_{each}")])
            )
        seen = taken(events, 7)
    assert [(each.type, each.table, sorted(each.payload)) for each in seen[:3]] == [
        ("CREATE_TABLE", "t", ["after", "version"]),
        ("ALTER_TABLE", "u", ["after", "before", "version"]),
        ("DROP_TABLE", "u", ["before", "version"]),
    ]
    assert [each.type for each in seen[3:]] == ["CREATE_TABLE"] * 2 + ["ADD_CONSTRAINTS"] * 2
    assert {each.database for each in seen} == {"ev5"}
    # The location of a table may still have the name: locations never change.
    assert "hidden_5" not in str([each.payload for each in seen[3:]])


def test_a_group_has_members_at_both(lake: MetastoreServer, front: FrontServer, client: ThriftClient) -> None:
    client.create_database(builders.database("ev3"))
    wanted = {f"t{number}" for number in range(40)}
    seen: dict[str, list[str]] = {"here": [], "there": []}
    begun = threading.Barrier(3, timeout=30)

    def member(name: str, uri: str) -> None:
        with subscribe(uri, tables="ev3.t*", group="both") as events:
            events.poll()
            begun.wait()
            until = time.monotonic() + 30
            while sum(map(len, seen.values())) < len(wanted) and time.monotonic() < until:
                for each in events.poll(0.5):
                    seen[name].append(each.table or "")
                    events.acknowledge(each)

    threads = [threading.Thread(target=member, args=each) for each in (("here", front.uri), ("there", lake.uri))]
    for each in threads:
        each.start()
    begun.wait()
    time.sleep(3)  # until both have their share of the shards
    for name in sorted(wanted):
        client.create_table(builders.table("ev3", name))
    for each in threads:
        each.join()
    assert sorted(seen["here"] + seen["there"]) == sorted(wanted), "each once"
    assert seen["here"], "the member at the front had its share"
    assert seen["there"]


def test_those_that_wait_keep_no_connection(front: FrontServer, client: ThriftClient) -> None:
    client.create_database(builders.database("ev4"))
    found: list[list[Event]] = []

    def wait() -> None:
        with subscribe(front.uri, tables="ev4.t") as events:
            events.poll()
            begun.wait()
            found.append(taken(events, 1))

    count = 4 * CONNECTIONS
    begun = threading.Barrier(count + 1, timeout=30)
    threads = [threading.Thread(target=wait) for _ in range(count)]
    for each in threads:
        each.start()
    begun.wait()
    with ThriftClient(front.host, front.port) as connection:
        for _ in range(20):
            assert connection.get_database("ev4").name == "ev4"
    client.create_table(builders.table("ev4", "t"))
    for each in threads:
        each.join()
    assert [len(each) for each in found] == [1] * count


def test_a_wait_ends(front: FrontServer) -> None:
    with ThriftClient(front.host, front.port) as connection:
        last = connection.lake_event_positions(None, None).last
        begun = time.monotonic()
        answer = connection.lake_read_events(ReadEventsRequest(last, tables=["nowhere.*"], maxWait=1500))
        assert answer.events == []
        assert time.monotonic() - begun >= 1.4


def test_errors_are_those_of_the_metastore(front: FrontServer) -> None:
    with ThriftClient(front.host, front.port) as connection:
        with pytest.raises(InvalidOperationException, match="there is no event 1000000"):
            connection.lake_read_events(ReadEventsRequest(1_000_000))
        with pytest.raises(InvalidOperationException):
            connection.lake_read_events(ReadEventsRequest(1, history="of no log"))


def test_those_of_other_backends_are_refused(front: FrontServer) -> None:
    with ThriftClient(front.host, front.port) as connection:
        connection.setMetaConf("federation.backend", "again")
        with pytest.raises(MetaException, match="a front passes on the events of its primary backend"):
            connection.lake_read_events(ReadEventsRequest(0))
        with pytest.raises(MetaException, match="a front passes on the events of its primary backend"):
            connection.lake_event_groups()
