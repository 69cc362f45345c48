"""Clients and servers of different versions: what each says, ignores, and refuses."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

import lake
import metastore
from eventbus.log import log
from lake.protocol.codec import binary
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.events.types import EventType, NewEvent, Origin
from lake.protocol.hive import NotificationEventRequest
from lake.protocol.lake import (
    EventPositions,
    EventRecord,
    ReadEventsResponse,
    SnapshotRequest,
    TableReference,
    TimelinePosition,
)
from lake.protocol.services import METHODS
from lake.subscriptions import subscribe
from lake.tables.lake import LakeClient
from tests.support import builders
from tests.support.command import complaint
from tests.support.server import MetastoreServer
from tests.support.thrift_peer import ThriftPeer

ADDED = bytes([TType.I64]) + (900).to_bytes(2) + (7).to_bytes(8) + bytes([TType.STRUCT]) + (901).to_bytes(2) + b"\0"
"""Two fields that no struct has: a number and an empty struct."""


def newer(value: Any) -> Any:
    """A struct as a later version has it: with fields that this version doesn't know."""
    value.unknown = ADDED
    return value


def refused(server: MetastoreServer, name: str, arguments: bytes) -> TApplicationException:
    """What a server refuses a call with."""
    transport = TBufferedTransport(TSocket(server.host, server.port))
    transport.open()
    transport.write(binary.message_header(name, binary.CALL, 1) + arguments)
    transport.flush()
    protocol = TBinaryProtocol(transport)
    assert protocol.readMessageBegin()[:2] == (name, binary.EXCEPTION)
    error = TApplicationException()
    error.read(protocol)
    transport.close()
    return error


# Methods that the other one doesn't have.


def test_a_server_says_its_version_to_who_calls_a_method_that_it_lacks(metastore_server: MetastoreServer) -> None:
    error = refused(metastore_server, "lake_make_coffee", b"\0")
    assert error.type == TApplicationException.UNKNOWN_METHOD
    assert error.message == f"Invalid method name: 'lake_make_coffee'; this server has version {metastore.__version__}"
    assert refused(metastore_server, "make_coffee", b"\0").message == "Invalid method name: 'make_coffee'"  # as Hive


def test_a_client_says_its_version_where_the_server_lacks_a_method() -> None:
    with ThriftPeer({}) as older, LakeClient(older.uri) as client, pytest.raises(TApplicationException) as caught:
        client.table("d.t").position()
    assert caught.value.type == TApplicationException.UNKNOWN_METHOD
    assert str(caught.value).startswith(
        f"Invalid method name: 'lake_timeline_position'. This client has version {lake.__version__}. It works with"
    )
    assert "upgrade the server first" in str(caught.value)


def test_a_command_says_so_in_a_line() -> None:
    with ThriftPeer({}) as older:
        said = complaint("watermark", "show", "d.t", "--uri", older.uri)
    assert f"lake_get_watermark'. This client has version {lake.__version__}" in said


# Fields that the other one doesn't know.


def test_a_client_ignores_fields_of_a_newer_server() -> None:
    position = TimelinePosition(position=3, oldestReadable=1, tableId=5)
    with ThriftPeer({"lake_timeline_position": lambda: newer(position)}) as server, LakeClient(server.uri) as client:
        assert client.table("d.t").position().position == 3


def test_a_server_refuses_fields_of_a_newer_client(metastore_server: MetastoreServer) -> None:
    """They may ask for less than what it would return without them."""
    table = TableReference(database="default", table="t")
    for request in (newer(SnapshotRequest(table)), SnapshotRequest(newer(table))):
        if request.table is table:
            request.unknown = b""  # marks that what is in it has some
        arguments = binary.encode_result("request", request, METHODS["lake_get_snapshot"].args)
        error = refused(metastore_server, "lake_get_snapshot", arguments)
        assert error.type == TApplicationException.PROTOCOL_ERROR
        assert "lake_get_snapshot have a field that this server's version" in str(error)
        assert f"{metastore.__version__}, doesn't know: the client is newer. Upgrade the server first" in str(error)


# Values that the other one doesn't know.


def test_a_subscriber_gets_events_of_a_newer_server() -> None:
    record = EventRecord(number=1, type="SPLIT_TABLE", time=2, database="d", table="t", payload="{}")
    answers = {
        "lake_event_positions": lambda: EventPositions(oldest=1, last=1),
        "lake_read_events": lambda: newer(ReadEventsResponse(events=[newer(record)], position=1, last=1)),
    }
    with ThriftPeer(answers) as server, subscribe(server.uri, start="earliest") as events:
        [event] = events.poll(10)
    assert (event.type, event.type.value, event.table) == ("SPLIT_TABLE", "SPLIT_TABLE", "t")
    assert event.type not in list(EventType)


@pytest.fixture
def server(upgraded_url: str, tmp_path: Path) -> Iterator[MetastoreServer]:
    with MetastoreServer.on_database(upgraded_url, tmp_path) as started:
        yield started


@pytest.mark.long
def test_a_server_passes_events_of_a_newer_one_on(server: MetastoreServer, upgraded_url: str) -> None:
    """While both serve one database."""
    added = NewEvent(EventType("SPLIT_TABLE"), 1_000, Origin(), "hive", "d", "t", 1, {"version": 1, "parts": 2})
    engine = create_engine(upgraded_url, poolclass=NullPool)
    with engine.begin() as tx:
        log.append(tx, [added])
    with subscribe(server.uri, start="earliest") as events:
        [event] = events.poll(10)
    assert (event.type, event.payload["parts"]) == ("SPLIT_TABLE", 2)
    with ThriftClient(server.host, server.port) as hive:
        hive.create_database(builders.database("d"))
        found = hive.get_next_notification(NotificationEventRequest(lastEvent=0)).events
    assert [(each.eventId, each.eventType) for each in found] == [(1, "SPLIT_TABLE"), (2, "CREATE_DATABASE")]
