"""A request takes no more memory than it may, however small it is on the wire, and neither do many together."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.codec import binary
from lake.protocol.hive import FieldSchema, Partition, StorageDescriptor, Table
from tests.metastore.server.stand_in import StandIn, address, call, flat_memory
from tests.support.waiting import wait_until

MB = 1 << 20


def empty_columns(count: int) -> bytes:
    """A call of create_table with lists of so many columns without name or type, a byte each, a million in a list."""
    lists = b"".join(
        struct.pack(">bhbi", 15, 8, 12, size) + bytes(size)
        for size in [MB // 2] * (count // (MB // 2)) + [count % (MB // 2)]
    )
    return binary.message_header("create_table", binary.CALL, 1) + b"\x0c\x00\x01" + lists + b"\x00\x00"


def large(number: int, size: int) -> bytes:
    """A call that takes about three times its size."""
    return call("create_table", Table(tableName=f"t{number}", viewOriginalText="x" * size))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with StandIn(tmp_path_factory.mktemp("memory") / "data", max_request_memory=64 * MB) as server:
        yield server


def test_many_small_structs_are_refused_while_they_arrive(server: StandIn) -> None:
    message = empty_columns(19_000_000)
    with server.connect() as connection, flat_memory(server.worker, 40 * MB):
        connection.sendall(message)
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    assert b"send less at a time, or raise the server's max_request_memory" in answer
    assert [line["reason"] for line in server.lines("connection closed")] == ["memory"]


@pytest.mark.long
def test_ten_thousand_partitions_of_fifty_columns_are_added_by_default(tmp_path: Path) -> None:
    sd = StorageDescriptor(
        cols=[FieldSchema(name=f"column_{number}", type="string", comment="") for number in range(50)],
        location="file:/warehouse/db.db/t/dt=2024-01-01",
    )
    parts = [
        Partition(values=[str(number)], dbName="db", tableName="t", sd=sd, parameters={"numRows": "1"})
        for number in range(10_000)
    ]
    with StandIn(tmp_path / "data") as server, server.client() as client:
        assert client.add_partitions(parts) == len(parts)


def test_what_there_is_no_room_for_waits_its_turn(server: StandIn) -> None:
    """Eight of which each takes half of the room and half a second: two at a time, though there are four threads."""
    message = call("getMetaConf", "0.5" + " " * 10 * MB)
    answered = []

    def send() -> None:
        with server.connect() as connection:
            connection.settimeout(60)
            connection.sendall(message)
            answered.append(len(connection.makefile("rb").read(10 * MB)) == 10 * MB)

    began = time.monotonic()
    senders = [threading.Thread(target=send) for _ in range(8)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(60)
    assert answered == [True] * 8
    assert time.monotonic() - began >= 4 * 0.5


@pytest.mark.long
def test_half_sent_requests_do_not_block_each_other_for_ever(tmp_path: Path) -> None:
    with StandIn(tmp_path / "data", max_request_memory=32 * MB, receive_timeout_seconds=3) as server:
        message = large(1, 6 * MB)
        stuck = [server.connect() for _ in range(7)]
        senders = [threading.Thread(target=_send, args=(each, message[:-10])) for each in stuck]
        for sender in senders:
            sender.start()
        with server.client() as client:  # a small one needs no room
            assert client.getVersion() == "stand-in"
        with server.connect() as last:
            last.settimeout(60)
            last.sendall(message)
            answer = last.recv(4)
            assert answer[:2] == b"\x80\x01"
        for sender in senders:
            sender.join(60)
        peers = {address(each) for each in stuck}
        wait_until(lambda: len([line for line in server.lines("connection closed") if line["peer"] in peers]) == 7)
        reasons = {line["reason"] for line in server.lines("connection closed") if line["peer"] in peers}
        assert reasons <= {"receive_timeout", "no_room", "incomplete"}
        for each in stuck:
            each.close()


def _send(connection: socket.socket, message: bytes) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(message)


@pytest.mark.long
def test_a_whole_request_that_waits_too_long_is_told_why_and_the_connection_goes_on(tmp_path: Path) -> None:
    slow = call("getMetaConf", "4" + " " * 6 * MB)  # takes four seconds
    with (
        StandIn(tmp_path / "data", max_request_memory=32 * MB, receive_timeout_seconds=1) as server,
        server.connect() as first,
        server.client() as second,
    ):
        first.sendall(slow)
        with pytest.raises(TApplicationException, match="try again later, send less at a time, or raise"):
            second.create_table(Table(tableName="t", viewOriginalText="x" * 6 * MB))
        assert second.getVersion() == "stand-in"
        [line] = server.lines("call refused")
        assert (line["reason"], line["method"]) == ("no_room", "create_table")
