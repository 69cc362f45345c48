"""Following events over the metastore's own port."""

import json
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.events.filters import BadFilter
from lake.protocol.hive import (
    AddPrimaryKeyRequest,
    AlterDataConnectorRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CreateDataConnectorRequest,
    DataConnector,
    DropConstraintRequest,
    DropDataConnectorRequest,
    InvalidOperationException,
    LongColumnStatsData,
    SQLPrimaryKey,
)
from lake.protocol.lake import CommitPartitionsRequest, EventsGone, ReadEventsRequest, TableReference
from lake.subscriptions import EventType, SourceUnavailable, Subscription, subscribe, thrift_calls, thrift_group
from tests.support import builders
from tests.support.called import complaint, output
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("subscriptions") / "data") as server:
        yield server


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        client.set_ugi("ann", [])
        yield client


@pytest.fixture
def db(client: ThriftClient, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("[", "_").replace("]", "")[:100]
    client.create_database(builders.database(name))
    return name


def test_a_subscriber_sees_what_is_committed_in_order(server: MetastoreServer, client: ThriftClient, db: str) -> None:
    with subscribe(server.uri, tables=f"{db}.*") as events:
        assert events.poll() == []
        client.create_table(builders.table(db, "t", keys=("dt",)))
        client.add_partitions([builders.partition(db, "t", str(day)) for day in range(5)])
        client.create_table(builders.table(db, "other"))
        client.drop_table(db, "t", True)
        client.drop_database(db, True, True)
        found = events.poll()
    assert [(event.type, event.table) for event in found] == [
        (EventType.CREATE_TABLE, "t"),
        (EventType.ADD_PARTITIONS, "t"),
        (EventType.CREATE_TABLE, "other"),
        (EventType.DROP_TABLE, "t"),
        (EventType.DROP_TABLE, "other"),
        (EventType.DROP_DATABASE, None),
    ]
    assert [event.number for event in found] == sorted({event.number for event in found})
    assert {event.origin.user for event in found} == {"ann"}
    assert [each["name"] for each in found[1].payload["partitions"]] == [f"dt={day}" for day in range(5)]
    assert abs(found[0].time / 1000 - time.time()) < 60


def test_events_say_which_table_they_are_about(server: MetastoreServer, client: ThriftClient, db: str) -> None:
    """Two tables had one name: each event says of which of them it is, by the table's id."""
    ids = []
    events = subscribe(server.uri, tables=f"{db}.t")
    assert events.poll() == []
    for _ in range(2):
        client.create_table(builders.table(db, "t", keys=("dt",)))
        ids.append(client.get_table(db, "t").id)
        client.add_partitions([builders.partition(db, "t", "1")])
        client.alter_table(db, "t", client.get_table(db, "t"))
        key = SQLPrimaryKey(table_db=db, table_name="t", column_name="id", key_seq=1, pk_name="pk")
        client.add_primary_key(AddPrimaryKeyRequest([key]))
        client.drop_constraint(DropConstraintRequest(db, "t", "pk"))
        described = ColumnStatisticsDesc(isTblLevel=True, dbName=db, tableName="t")
        data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1))
        client.update_table_column_statistics(
            ColumnStatistics(described, [ColumnStatisticsObj("id", "bigint", data)], engine="hive")
        )
        client.delete_table_column_statistics(db, "t", "id", "hive")
        client.drop_table(db, "t", True)
    found = events.poll()
    events.close()
    assert len({each.type for each in found}) == 8
    half = len(found) // 2
    assert [each.type for each in found[:half]] == [each.type for each in found[half:]]
    for table, its in ((ids[0], found[:half]), (ids[1], found[half:])):
        assert {each.type: _table_id(each.payload) for each in its} == {each.type: table for each in its}


def _table_id(payload: Mapping[str, Any]) -> object:
    table = payload.get("after") or payload.get("before") or payload.get("table") or {}
    return table.get("id", payload.get("tableId"))


def test_one_that_waits_is_told_at_once(server: MetastoreServer, client: ThriftClient, db: str) -> None:
    with subscribe(server.uri, tables=f"{db}.t", types=["CREATE_TABLE"]) as events:
        events.poll()
        created: list[float] = []

        def create() -> None:
            time.sleep(0.5)  # in which the poll begins to wait: nothing shows that from outside
            client.create_table(builders.table(db, "not_this_one"))
            client.create_table(builders.table(db, "t"))
            created.append(time.monotonic())

        thread = threading.Thread(target=create)
        thread.start()
        [event] = events.poll(20)
        answer = time.monotonic()
        thread.join()
    assert (event.type, event.table) == (EventType.CREATE_TABLE, "t")
    assert answer - created[0] < 5  # long before the poll's end


def test_waiting_takes_no_thread(server: MetastoreServer, client: ThriftClient, db: str) -> None:
    """Many more subscribers wait than there are threads, and all of them get the event."""
    last = client.lake_event_positions(None).last
    waiting = [ThriftClient(server.host, server.port) for _ in range(200)]
    answer = []

    def wait(one: ThriftClient) -> None:
        request = ReadEventsRequest(after=last, tables=[f"{db}.t"], maxWait=30_000)
        answer.append(one.lake_read_events(request).events)

    threads = [threading.Thread(target=wait, args=(one,)) for one in waiting]
    for thread in threads:
        thread.start()
    time.sleep(1)  # in which nobody may be answered
    assert client.getName()
    assert answer == []
    client.create_table(builders.table(db, "t"))
    for thread in threads:
        thread.join(30)
    assert [len(events) for events in answer] == [1] * len(waiting)
    for one in waiting:
        one.close()


def test_a_wait_ends_without_events(client: ThriftClient) -> None:
    last = client.lake_event_positions(None).last
    began = time.monotonic()
    answer = client.lake_read_events(ReadEventsRequest(after=last, tables=["nothing.here"], maxWait=700))
    assert time.monotonic() - began >= 0.7
    assert (answer.events, answer.position) == ([], last)


def test_a_client_that_goes_while_it_waits_is_forgotten(server: MetastoreServer, client: ThriftClient) -> None:
    last = client.lake_event_positions(None).last
    before = client.getCounters()["connections"]
    gone = ThriftClient(server.host, server.port, timeout=0.5)
    with pytest.raises((TTransportException, OSError)):
        gone.lake_read_events(ReadEventsRequest(after=last, maxWait=60_000, tables=["no.one"]))
    gone.close()
    wait_until(lambda: client.getCounters()["connections"] <= before, 10, "the connection is gone")


def test_a_filter_of_many_events_goes_on(client: ThriftClient, db: str) -> None:
    """The position passes what a filter leaves out."""
    last = client.lake_event_positions(None).last
    for number in range(7):
        client.create_table(builders.table(db, f"t{number}"))
    seen, position = [], last
    for _ in range(10):
        answer = client.lake_read_events(ReadEventsRequest(after=position, limit=2, tables=[f"{db}.t*", f"*.{db}.u"]))
        seen += [event.table for event in answer.events]
        position = answer.position
    assert seen == [f"t{number}" for number in range(7)]
    assert position == answer.last


@pytest.mark.parametrize("number", [-1, 10**12])
def test_a_position_that_is_none(client: ThriftClient, number: int) -> None:
    with pytest.raises(InvalidOperationException, match=f"there is no event {number}"):
        client.lake_read_events(ReadEventsRequest(after=number))


def test_bad_filters(server: MetastoreServer, client: ThriftClient) -> None:
    with pytest.raises(BadFilter, match=r"expected database\.table"):
        subscribe(server.uri, tables="orders")
    with pytest.raises(BadFilter, match="no type of events"):
        subscribe(server.uri, types=["NONSENSE"])
    with pytest.raises(InvalidOperationException, match=r"expected database\.table"):
        client.lake_read_events(ReadEventsRequest(after=0, tables=["a.b.c.d"]))


def test_a_group_goes_on_where_it_was(server: MetastoreServer, client: ThriftClient, db: str) -> None:
    def group() -> Subscription:
        return subscribe(server.uri, tables=f"{db}.*", group=f"group-{db}")

    with group() as events:
        events.poll()
        client.create_table(builders.table(db, "first"))
        client.create_table(builders.table(db, "second"))
        events.acknowledge(next(events))
    with group() as events:
        assert next(events).table == "second"  # it was not acknowledged
        events.acknowledge()
    client.create_table(builders.table(db, "third"))
    with group() as events:
        assert [event.table for event in events.poll()] == ["third"]
    with subscribe(server.uri, start=datetime.now(UTC)) as events, pytest.raises(ValueError, match="group"):
        events.acknowledge(1)


def test_readiness_is_told(server: MetastoreServer, client: ThriftClient, db: str) -> None:
    """What a scheduler waits for: the partitions that turned ready, whoever made them so."""
    table = builders.table(db, "t", keys=("dt",), parameters={"partition.commit.mode": "manual"})
    client.create_table(table)
    client.add_partitions([builders.partition(db, "t", day) for day in "123"])
    with subscribe(server.uri, types=[EventType.COMMIT_PARTITIONS], tables=f"{db}.t") as events:
        assert events.poll() == []
        client.lake_commit_partitions(CommitPartitionsRequest(TableReference(None, db, "t"), ["dt=1", "dt=3"]))
        [event] = events.poll()
    assert [each["name"] for each in event.payload["partitions"]] == ["dt=1", "dt=3"]
    assert event.payload["partitions"][0]["after"]["parameters"]["commit"] == "true"


def test_data_connectors_are_told_without_their_passwords(server: MetastoreServer, client: ThriftClient) -> None:
    notified = client.get_current_notificationEventId().eventId
    with subscribe(server.uri, types=[f"{verb}_DATA_CONNECTOR" for verb in ("CREATE", "ALTER", "DROP")]) as events:
        events.poll()
        new = DataConnector(
            name="Source", type="mysql", url="jdbc:mysql://x", parameters={"hive.sql.dbcp.password": "secret", "k": "v"}
        )
        client.create_dataconnector_req(CreateDataConnectorRequest(new))
        client.alter_dataconnector_req(AlterDataConnectorRequest("source", new.replace(url="jdbc:mysql://y")))
        client.drop_dataconnector_req(DropDataConnectorRequest("source", False, False))
        found = events.poll()
    assert [sorted(event.payload) for event in found] == [
        *(["after", "version"], ["after", "before", "version"], ["before", "version"])
    ]
    for event in found:
        assert (event.catalog, event.database, event.table) == (None, None, None)
        answer = event.payload.get("after") or event.payload["before"]
        assert (answer["name"], answer["parameters"]) == ("source", {"hive.sql.dbcp.password": "***", "k": "v"})
    assert found[1].payload["after"]["url"] == "jdbc:mysql://y"
    assert client.get_current_notificationEventId().eventId == notified


@pytest.mark.long
def test_a_subscriber_outlives_the_server(tmp_path: Path) -> None:
    with MetastoreServer(tmp_path / "data") as server:
        with ThriftClient(server.host, server.port) as client:
            client.create_database(builders.database("d"))
        with subscribe(server.uri, tables="d.*", start="earliest") as events:
            assert [event.type for event in events.poll()] == [EventType.CREATE_DATABASE]
            server.kill()
            server.start()
            with ThriftClient(server.host, server.port) as client:
                client.create_table(builders.table("d", "t"))
            assert next(events).type == EventType.CREATE_TABLE


def test_the_command(server: MetastoreServer, client: ThriftClient, db: str) -> None:
    before = client.lake_event_positions(None).last
    client.create_table(builders.table(db, "t", keys=("dt",)))
    client.add_partitions([builders.partition(db, "t", str(day)) for day in range(5)])
    shown = output("events", "tail", "--uri", server.uri, "--since", str(before), "--no-follow")
    first, second = shown.splitlines()
    assert first.split()[-4:] == ["CREATE_TABLE", f"{db}.t", "by", "ann"]
    assert second.endswith(f"ADD_PARTITIONS       {db}.t  dt=0, dt=1, dt=2 and 2 more  by ann")
    lines = output("events", "tail", "--uri", server.uri, "--since", str(before), "--count", "1", "--json").splitlines()
    assert len(lines) == 1 and '"table": "t"' in lines[0]


def test_the_command_for_groups(server: MetastoreServer, client: ThriftClient, db: str) -> None:
    with subscribe(server.uri, tables=f"{db}.*", group=db) as events:
        events.poll()
        client.create_table(builders.table(db, "t"))
        shown = json.loads(output("events", "groups", "--uri", server.uri, "--json"))
        assert [(each["behind"], each["members"]) for each in shown if each["group"] == db] == [(1, 1)]
        assert db[:20] in output("events", "groups", "--uri", server.uri)


def test_a_group_is_deleted_by_hand(server: MetastoreServer, client: ThriftClient, db: str) -> None:
    with subscribe(server.uri, tables=f"{db}.*", group=db) as events:
        events.poll()
        said = complaint("events", "groups", "delete", db, "--uri", server.uri)
        assert said == f"Error: 1 members read for {db}: stop them first"
    assert output("events", "groups", "delete", db, "--uri", server.uri) == f"deleted {db}\n"
    assert db not in [each.name for each in client.lake_event_groups()]
    assert complaint("events", "groups", "delete", db, "--uri", server.uri) == f"Error: there is no group {db}"


@pytest.mark.long
def test_nobody_is_kept_waiting_while_the_metastore_is_away(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by one that is gone nor by one that hangs; and once it is back everything goes on."""
    monkeypatch.setattr(thrift_calls, "ANSWER_SECONDS", 1.0)
    monkeypatch.setattr(thrift_group, "PATIENCE_SECONDS", 1.0)
    server = MetastoreServer(tmp_path / "data", "--workers", "1", "--database-url", postgres_url).start()
    with (
        server,
        subscribe(server.uri, start="earliest") as alone,
        subscribe(server.uri, start="earliest", group="g") as member,
    ):
        with ThriftClient(server.host, server.port) as client:
            client.create_database(builders.database("d"))
        assert len(alone.poll(5)) == len(member.poll(5)) == 1
        with server.hanging():
            began = time.monotonic()
            for events in (alone, member):
                with pytest.raises(SourceUnavailable, match="doesn't answer"):
                    events.poll()
            with pytest.raises(SourceUnavailable):
                member.acknowledge()
            assert time.monotonic() - began < 15
        server.kill()
        began = time.monotonic()
        for events in (alone, member):
            for wait in (0.0, 0.5):
                with pytest.raises(SourceUnavailable):
                    events.poll(wait)
        assert time.monotonic() - began < 15
        server.start()
        member.acknowledge()
        assert alone.poll() == member.poll() == []


def test_what_is_no_bookmark(server: MetastoreServer, db: str) -> None:
    with pytest.raises(ValueError, match="'soon' is no valid start"):
        subscribe(server.uri, start="soon")
    for history in ("x", "a/b/c/d", "/" * 300):
        with (
            subscribe(server.uri, start=f"1@{history}") as events,
            pytest.raises(InvalidOperationException, match="is no history of a log"),
        ):
            events.poll()
    with subscribe(server.uri) as events:
        events.poll()
        number, _, history = (events.bookmark or "").partition("@")
    other = history.replace(history[:8], "0" * 8)
    with subscribe(server.uri, start=f"{number}@{other}") as events, pytest.raises(EventsGone) as gone:
        events.poll()  # of another log
    assert gone.value.restored
