"""Hive's notification log: read by Hive's own classes, and compared with the one that Hive's own server keeps."""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddNotNullConstraintRequest,
    AddPrimaryKeyRequest,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    DropConstraintRequest,
    FireEventRequest,
    FireEventRequestData,
    InsertEventRequestData,
    LongColumnStatsData,
    NotificationEvent,
    NotificationEventRequest,
    NotificationEventsCountRequest,
    Order,
    SkewedInfo,
    SQLNotNullConstraint,
    SQLPrimaryKey,
)
from lake.protocol.struct import Struct
from tests.hive_client.conftest import HiveClient
from tests.metastore.services.subscriptions.hive_story import Reader, insert, notifications_after, tell
from tests.support import builders, reference
from tests.support.expect import common
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("notifications") / "data") as running:
        yield running


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as connected:
        yield connected


@pytest.fixture
def db(client: ThriftClient, request: pytest.FixtureRequest) -> str:
    name: str = request.node.name.split("[")[0][:100]
    client.create_database(builders.database(name))
    return name


@pytest.fixture
def java(jvm: Any, server: MetastoreServer) -> Iterator[HiveClient]:
    connected = HiveClient(jvm, server.host, server.port)
    yield connected
    connected.close()


def last(client: ThriftClient) -> int:
    found: int = client.get_current_notificationEventId().eventId
    return found


def types(events: list[NotificationEvent]) -> list[str | None]:
    return [each.eventType for each in events]


# --- what a client may ask ------------------------------------------------------------------------------------


def test_numbers_have_no_gaps_whatever_the_limit(client: ThriftClient, db: str) -> None:
    begin = last(client)
    client.create_table(builders.table(db, "t", keys=("ds",)))
    client.add_partitions([builders.partition(db, "t", str(number)) for number in range(5)])
    client.alter_partitions(db, "t", client.get_partitions(db, "t", -1))
    everything = notifications_after(client, begin)
    assert types(everything) == ["CREATE_TABLE", "ADD_PARTITION", *["ALTER_PARTITION"] * 5]
    assert [each.eventId for each in everything] == list(range(begin + 1, begin + 8)) and last(client) == begin + 7
    for limit in (1, 2, 3):
        found: list[NotificationEvent] = []
        while page := client.get_next_notification(NotificationEventRequest(begin + len(found), limit)).events:
            assert len(page) <= limit
            found += page
        assert found == everything
    for unlimited in (None, -1):
        assert client.get_next_notification(NotificationEventRequest(begin, unlimited)).events == everything
    assert notifications_after(client, begin + 7) == notifications_after(client, begin + 1000) == []


def test_an_answer_is_never_too_large(client: ThriftClient, db: str) -> None:
    client.create_table(builders.table(db, "t", keys=("ds",), parameters={"long": "x" * 1_000_000}))
    client.add_partitions([builders.partition(db, "t", str(number)) for number in range(40)])
    begin = last(client)
    client.alter_partitions(db, "t", client.get_partitions(db, "t", -1))
    found, pages = 0, 0
    while page := notifications_after(client, begin + found):
        assert sum(len(each.message or "") for each in page) <= 16 << 20
        found, pages = found + len(page), pages + 1
    assert found == 40 and pages == 3


def test_filters(client: ThriftClient, db: str) -> None:
    begin = last(client)
    for name in ("t", "u"):
        client.create_table(builders.table(db, name, keys=("ds",)))
        client.add_partition(builders.partition(db, name, "1"))
    client.drop_table(db, "u", True)
    client.create_database(builders.database(db + "2"))

    def asked(**wanted: Any) -> list[tuple[int, str | None]]:
        request = NotificationEventRequest(begin, **wanted)
        return [(each.eventId - begin, each.eventType) for each in client.get_next_notification(request).events]

    assert asked(eventTypeSkipList=["ADD_PARTITION", "DROP_TABLE", "INSERT"]) == [
        (1, "CREATE_TABLE"),
        (3, "CREATE_TABLE"),
        (6, "CREATE_DATABASE"),
    ]
    assert asked(dbName=db.upper(), tableNames=["U"]) == [(3, "CREATE_TABLE"), (4, "ADD_PARTITION"), (5, "DROP_TABLE")]
    assert asked(dbName=db, maxEvents=2) == [(1, "CREATE_TABLE"), (2, "ADD_PARTITION")]
    assert asked(catName="nosuch") == []
    assert len(asked(catName="hive")) == 6


def test_counts(client: ThriftClient, db: str) -> None:
    begin = last(client)
    client.create_table(builders.table(db, "t", keys=("ds",)))
    client.add_partitions([builders.partition(db, "t", str(number)) for number in range(3)])
    client.alter_partitions(db, "t", client.get_partitions(db, "t", -1))

    def counted(after: int, **wanted: Any) -> int:
        request = NotificationEventsCountRequest(begin + after, wanted.pop("name", db), **wanted)
        found: int = client.get_notification_events_count(request).eventsCount
        return found

    assert [counted(after) for after in range(7)] == [5, 4, 3, 2, 1, 0, 0]
    assert [counted(1, toEventId=begin + upto) for upto in (0, 1, 2, 4, 9)] == [0, 0, 1, 3, 4]
    assert (counted(0, limit=2), counted(0, limit=9), counted(0, name="nosuch"), counted(0, name="*")) == (2, 5, 0, 5)
    assert (counted(0, catName="nosuch"), counted(0, tableNames=["t"]), counted(0, tableNames=["u"])) == (0, 5, 0)


def test_what_hive_is_not_notified_of(client: ThriftClient, db: str) -> None:
    client.create_table(builders.table(db, "t"))
    begin = last(client)
    client.update_table_column_statistics(_statistics(db))
    client.delete_table_column_statistics(db, "t", "id", "hive")
    assert notifications_after(client, begin) == []


def _statistics(db: str) -> Struct:
    data = ColumnStatisticsData(longStats=LongColumnStatsData(numNulls=0, numDVs=1, lowValue=1, highValue=1))
    return ColumnStatistics(ColumnStatisticsDesc(True, db, "t"), [ColumnStatisticsObj("id", "bigint", data)])


def test_a_dropped_database_is_whole(client: ThriftClient) -> None:
    """Hive 4's classes read the database out of the message, and with them Impala."""
    begin = last(client)
    client.create_database(builders.database("dropped", description="whole"))
    client.drop_database("dropped", True, True)
    created, dropped = (json.loads(each.message) for each in notifications_after(client, begin))
    assert "whole" in dropped["dbJson"] and json.loads(dropped["dbJson"]) == json.loads(created["dbJson"])


def test_inserts_as_hive_4_reports_them(client: ThriftClient, db: str) -> None:
    client.create_table(builders.table(db, "t", keys=("ds",)))
    client.add_partitions([builders.partition(db, "t", value) for value in "ab"])
    begin = last(client)
    data = [InsertEventRequestData(replace=False, filesAdded=[f"file:/{v}"], partitionVal=[v]) for v in "ab"]
    request = FireEventRequest(True, FireEventRequestData(insertDatas=data), db, "t")
    assert client.fire_listener_event(request).eventIds == [begin + 1, begin + 2]
    found = [json.loads(each.message) for each in notifications_after(client, begin)]
    assert [(m["files"], m["partKeyVals"], m["replace"]) for m in found] == [
        (["file:/a"], {"ds": "a"}, "false"),
        (["file:/b"], {"ds": "b"}, "false"),
    ]
    assert all("ptnObjJson" in message for message in found)


# --- Hive's own classes ---------------------------------------------------------------------------------------


@pytest.mark.hive
def test_hives_own_classes_read_every_message(client: ThriftClient, java: HiveClient) -> None:
    begin, reader = last(client), Reader(java)
    tell(client, java, "read")
    events = notifications_after(client, begin)
    assert {each.messageFormat for each in events} == {"json-0.2"}
    seen: dict[str, list[Any]] = {}
    for event in events:
        message = reader.message(event)
        assert message.checkValid() is not None
        assert message.getDB() == event.dbName == "read" and message.getTimestamp() == event.eventTime
        seen.setdefault(event.eventType, []).append(message)

    [table] = [reader.get(each, "getTableObj") for each in seen["CREATE_TABLE"] if each.getTable() == "plain"]
    assert [column.name for column in table.sd.cols] == ["id", "name"] and table.tableType == "MANAGED_TABLE"
    single, bulk, appended, exchanged = seen["ADD_PARTITION"]
    assert [each.values for each in reader.objects(bulk, "getPartitionObjs")] == [["b", "0"], ["b", "1"], ["b", "2"]]
    assert reader.get(single, "getPartitions") == [{"ds": "a", "hr": "1"}]
    assert reader.get(single, "getTableObj").parameters["a"] == "b"
    [added] = reader.objects(appended, "getPartitionObjs")
    assert added.values == ["c d/é", "1"] and added.sd.location.endswith("/t/ds=c d%2Fé/hr=1")
    assert [column.name for column in added.sd.cols] == ["id", "name"]
    assert exchanged.getTable() == "other"
    changed = seen["ALTER_PARTITION"][0]
    assert reader.get(changed, "getKeyValues") == {"ds": "a", "hr": "1"}
    assert "x" not in reader.get(changed, "getPtnObjBefore").parameters
    assert reader.get(changed, "getPtnObjAfter").parameters["x"] == "1"
    renamed = seen["ALTER_PARTITION"][3]
    before, after = reader.get(renamed, "getPtnObjBefore"), reader.get(renamed, "getPtnObjAfter")
    assert (before.values, after.values) == (["a", "1"], ["z", "9"])
    assert before.sd.location != after.sd.location
    assert [reader.get(each, "getPartitions") for each in seen["DROP_PARTITION"]] == [
        [{"ds": "b", "hr": "0"}],
        [{"ds": "z", "hr": "9"}],
        [{"ds": "b", "hr": "1"}, {"ds": "b", "hr": "2"}, {"ds": "c d/é", "hr": "1"}],
    ]
    first, second = seen["INSERT"]
    assert reader.get(first, "getPartitionKeyValues") == {"ds": "b", "hr": "1"}
    assert reader.objects(first, "getFiles") == ["file:/f1#c1", "file:/f2#c2"]
    assert reader.get(second, "getPartitionKeyValues") == {}
    altered, moved = seen["ALTER_TABLE"]
    assert "changed" not in reader.get(altered, "getTableObjBefore").parameters
    assert reader.get(altered, "getTableObjAfter").parameters["changed"] == "1"
    assert reader.get(moved, "getTableObjBefore").tableName == "other"
    assert reader.get(moved, "getTableObjAfter").tableName == "renamed"
    assert reader.get(seen["CREATE_FUNCTION"][0], "getFunctionObj").className == "org.example.F"
    assert [each.getFunctionName() for each in seen["DROP_FUNCTION"]] == ["f1", "f2"]
    assert [each.getTable() for each in seen["DROP_TABLE"]] == ["plain", "renamed", "t"]


@pytest.mark.hive
def test_hives_own_client(java: HiveClient, client: ThriftClient, db: str) -> None:
    begin = java.getCurrentNotificationEventId().eventId
    client.create_table(builders.table(db, "t"))
    insert(java, db, "t", None, ["file:/f"], ["c"])
    assert types(java.getNextNotification(begin, 0, None).events) == ["CREATE_TABLE", "INSERT"]


@pytest.mark.hive
def test_what_hive_2_has_no_class_for(client: ThriftClient, java: HiveClient, db: str) -> None:
    client.create_table(builders.table(db, "t"))
    begin, reader = last(client), Reader(java)
    client.alter_database(db, client.get_database(db).replace(parameters={"new": "1"}))
    client.add_primary_key(AddPrimaryKeyRequest([SQLPrimaryKey(db, "t", "id", 1, "pk", False, False, False)]))
    client.add_not_null_constraint(AddNotNullConstraintRequest([SQLNotNullConstraint("hive", db, "t", "name", "nn")]))
    client.drop_constraint(DropConstraintRequest(db, "t", "nn"))
    altered, key, not_null, dropped = events = notifications_after(client, begin)
    assert types(events) == ["ALTER_DATABASE", "ADD_PRIMARYKEY", "ADD_NOTNULLCONSTRAINT", "DROP_CONSTRAINT"]
    message = json.loads(altered.message)
    assert reader.thrift("Database", message["dbObjBeforeJson"]).parameters == {}
    assert reader.thrift("Database", message["dbObjAfterJson"]).parameters == {"new": "1"}
    [column] = json.loads(key.message)["primaryKeyListJson"]
    assert reader.thrift("SQLPrimaryKey", column).column_name == "id"
    assert len(json.loads(not_null.message)["notNullConstraintListJson"]) == 1
    assert json.loads(dropped.message)["constraintName"] == "nn"
    assert {each.tableName for each in (key, not_null, dropped)} == {"t"}


@pytest.mark.hive
def test_odd_values_come_through(client: ThriftClient, java: HiveClient, db: str) -> None:
    odd = 'a "b" \\ \t ü 漢 \U0001f600 \x7f </x>'
    skewed = SkewedInfo(["id"], [["1"], ["2"]], {("1",): "file:/one", ("2",): "file:/two"})
    sd = builders.storage("id:bigint#" + odd, skewedInfo=skewed, sortCols=[Order("id", 1)], bucketCols=["id"])
    begin, reader = last(client), Reader(java)
    client.create_table(builders.table(db, "t", sd=sd, parameters={odd: odd}))
    [event] = notifications_after(client, begin)
    found = reader.get(reader.message(event), "getTableObj")
    kept = client.get_table(db, "t")
    assert found.parameters[odd] == odd and found.sd.cols[0].comment == odd
    assert found.sd == kept.sd and found.sd.skewedInfo.skewedColValueLocationMaps == skewed.skewedColValueLocationMaps


# --- Hive's own server ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[reference.HiveReference]:
    """Hive's server with its notification log."""
    with reference.notifying(tmp_path_factory.mktemp("hive")) as running:
        yield running


@pytest.mark.interop
def test_the_same_calls_make_the_same_notifications(
    hives: reference.HiveReference, server: MetastoreServer, jvm: Any
) -> None:
    logs = []
    for each in (hives, server):
        java = HiveClient(jvm, each.host, each.port)
        with ThriftClient(each.host, each.port) as client:
            warehouse = client.get_database("default").locationUri
            begin = last(client)
            tell(client, java, "compared")
            events = notifications_after(client, begin)
            assert [event.eventId for event in events] == list(range(begin + 1, begin + 1 + len(events)))
            logs.append(_comparable(events, Reader(java), warehouse))
        java.close()
    theirs, ours = logs
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    differences = [
        (name, *each)
        for (name, own), (_, hive) in zip(ours, theirs, strict=True)
        for each in _differences({field: own.get(field) for field in hive}, hive)
    ]
    assert differences == []


def _differences(own: Any, hive: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(own, dict) and isinstance(hive, dict):
        for key in sorted({*own, *hive}):
            yield from _differences(own.get(key), hive.get(key), f"{path}/{key}")
    elif isinstance(own, list) and isinstance(hive, list) and len(own) == len(hive):
        for number, pair in enumerate(zip(own, hive, strict=True)):
            yield from _differences(*pair, f"{path}/{number}")
    elif own != hive:
        yield path, own, hive


def _comparable(
    events: list[NotificationEvent], reader: Reader, warehouse: str
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Kind and place of each, and its message without what differs between any two servers.

    Hive tells of each dropped partition by itself, even if one call has dropped several; of the tables of a dropped
    database in the order in which its database finds them.
    """
    found: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for event in events:
        message = _plain(reader.whole(event), warehouse)
        for field in ("timestamp", "server", "servicePrincipal"):
            assert field in message
            del message[field]
        found.append(((event.eventType, event.dbName, event.tableName, event.messageFormat), message))
    joined = []
    for (kind, *where), group in groupby(found, key=lambda each: each[0]):
        messages = [message for _, message in group]
        if kind == "DROP_PARTITION":
            messages = [messages[0] | {"partitions": [p for m in messages for p in m["partitions"]]}]
        joined += [((kind, *where), message) for message in messages]
    runs = groupby(joined, key=lambda each: each[0][0])
    return [each for kind, run in runs for each in (sorted(run, key=_table) if kind == "DROP_TABLE" else run)]


def _table(found: tuple[tuple[Any, ...], dict[str, Any]]) -> str:
    (_, _, table, _), _ = found
    return str(table)


def _plain(value: Any, warehouse: str) -> Any:
    """A value with places and times made the same, and without what is empty: Hive tells of a new object as the
    client sent it, we as it is kept.
    """
    if isinstance(value, Struct):
        value = common(value)
        plain = {name: _plain(getattr(value, name), warehouse) for name in value.field_names()}
        plain |= dict.fromkeys(("createTime", "lastAccessTime", "privileges", "catName"))
        return {name: part for name, part in plain.items() if part}
    if isinstance(value, dict):
        return {
            key: _plain(part, warehouse) for key, part in value.items() if key not in ("transient_lastDdlTime", "files")
        }
    if isinstance(value, list):
        return [_plain(part, warehouse) for part in value]
    return value.replace(warehouse.rstrip("/"), "warehouse") if isinstance(value, str) else value
