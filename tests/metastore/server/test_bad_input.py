"""What no well-behaved client sends, against real worker processes: it ends the one connection, with one line in
the log, and nobody else notices."""

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TFramedTransport

from lake.client.reconnecting import ReconnectingClient
from lake.protocol.codec import binary, compact
from lake.protocol.hive import AlreadyExistsException, FieldSchema, StorageDescriptor, Table
from lake.protocol.services import METHODS
from tests.lake.protocol.wire_values import filled
from tests.metastore.server.stand_in import StandIn, address, call, flat_memory, is_closed, read_reply
from tests.support.waiting import wait_until

MB = 1 << 20
HEADER = binary.message_header("get_table", binary.CALL, 1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with StandIn(tmp_path_factory.mktemp("bad_input") / "data") as server:
        yield server


@pytest.fixture(autouse=True)
def undisturbed(server: StandIn) -> Iterator[None]:
    """Another client, connected before, that works on afterwards; and the process is still the same."""
    worker = server.worker
    with server.client() as client:
        assert client.getVersion() == "stand-in"
        yield
        assert client.getVersion() == "stand-in"
        assert worker.is_running()
    assert server.lines("unexpected error in the event loop") == []
    assert server.lines("a request's thread failed") == []


@pytest.mark.parametrize(
    ("data", "reason", "detail"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "http", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500, "tls", "TLS"),
        (b"\x01\x00\x00\x00\x06GSSAPI\x01\x00\x00\x00\x00", "sasl", "Kerberos"),
        (b"\xde\xad\xbe\xef" * 100, "not_thrift", r"\xde\xad\xbe\xef"),
        (b"\x00" * 100, "message_size", "frame of 0 bytes"),
        (b"\x80\x01\x00\x02" + HEADER[4:], "malformed", "not a Thrift call"),
        (HEADER + b"\x0b\x00\x01\x7f\xff\xff\xff", "string_size", "2147483647"),
        (HEADER + b"\x0b\x00\x01\xff\xff\xff\xff", "string_size", "-1"),
        (b"\x80\x01\x00\x01\x7f\xff\xff\xff", "malformed", "2147483647"),
        (HEADER + b"\x0f\x00\x01\x0b\x7f\xff\xff\xff", "container_size", "2147483647"),
        (HEADER + b"\x0c\x00\x01" * 100_000, "depth", "64"),
        (b"\x7f\xff\xff\xff\x80\x01\x00\x01", "not_thrift", "not Thrift"),
        (b"\x07\xff\xff\xff\x80\x01\x00\x01", "message_size", "frame of 134217727 bytes"),
        (compact.message_header("get_table", 1, 1) + b"\x18\xff\xff\xff\xff\x07", "string_size", "2147483647"),
    ],
    ids=[
        "HTTP", "TLS", "SASL", "garbage", "zeros", "a reply", "2 GiB string", "negative string", "2 GiB name",
        "2 Gi items", "deep nesting", "2 GiB frame", "128 MiB frame", "2 GiB compact string",
    ],
)  # fmt: skip
def test_connection_ends_with_one_line_that_says_why(server: StandIn, data: bytes, reason: str, detail: str) -> None:
    with server.connect() as connection, flat_memory(server.worker, 5 * MB):
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        line = server.end_of(connection)
    assert line["reason"] == reason
    assert detail in line["detail"]


def test_bytes_after_a_good_call_end_the_connection_after_its_reply(server: StandIn) -> None:
    with server.connect() as connection:
        connection.sendall(call("getMetaConf", "0.2", sequence=5) + b"GET / HTTP/1.1\r\n\r\n")
        assert read_reply(connection) == (5, "0.2")
        assert server.end_of(connection)["reason"] == "malformed"


def test_message_beyond_the_size_limit(tmp_path: Path) -> None:
    with StandIn(tmp_path / "data", max_message_bytes=1 * MB) as server:
        for data in (
            HEADER + b"\x0b\x00\x01" + struct.pack(">i", 2 * MB),  # known by its length
            HEADER + (b"\x0b\x00\x01" + struct.pack(">i", 1000) + b"x" * 1000) * 2000,  # and by its size alone
        ):
            with server.connect() as connection:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(data)
                assert server.end_of(connection)["reason"] in ("message_size", "string_size")
        fitting = Table(tableName="t", viewOriginalText="x" * (MB - 1000))
        with server.client() as client:
            client.create_table(fitting)
            assert client.get_table("d", "t") == fitting


EXCESSIVE = {
    "max_container_items": call("create_table", Table(partitionKeys=[FieldSchema(name="c")] * 1001)),
    "max_string_bytes": call("create_table", Table(viewOriginalText="x" * 10_001)),
    "max_depth": HEADER + b"\x0c\x00\x01" * 65 + b"\x00" * 66,
    "max_message_bytes": call("create_table", Table(parameters={str(i): "x" * 9000 for i in range(900)})),
}


@pytest.fixture(scope="module")
def strict_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    limits = {"max_container_items": 1000, "max_string_bytes": 10_000, "max_message_bytes": 1 * MB}
    with StandIn(tmp_path_factory.mktemp("strict") / "data", **limits) as server:
        yield server


@pytest.mark.parametrize("framed", [False, True])
@pytest.mark.parametrize("limit", EXCESSIVE)
def test_call_beyond_a_limit_is_answered(strict_server: StandIn, limit: str, framed: bool) -> None:
    """Also one of 8 MB, more than a client can send to a server that doesn't read. The connection goes on where it is
    known how long the call was."""
    message = EXCESSIVE[limit]
    with strict_server.connect() as connection:
        reading = TSocket()
        reading.setHandle(connection)
        transport = TFramedTransport(reading) if framed else TBufferedTransport(reading)
        protocol = TBinaryProtocol(transport)
        for _ in range(2):
            connection.sendall(len(message).to_bytes(4) + message if framed else message)
            assert protocol.readMessageBegin() == (binary.read_message_header(message).name, binary.EXCEPTION, 1)
            error = TApplicationException()
            error.read(protocol)
            assert error.type == TApplicationException.PROTOCOL_ERROR
            assert f"or raise the server's {limit}" in error.message
            if not framed or limit == "max_message_bytes":
                strict_server.end_of(connection)
                assert is_closed(connection)
                return
        assert len(strict_server.lines("call refused", address(connection))) == 2


def test_small_frames_beyond_a_limit_are_answered_one_by_one(strict_server: StandIn) -> None:
    message = HEADER + b"\x0f\x00\x01\x0b\x00\x00\x03\xe9"
    with strict_server.connect() as connection:
        connection.sendall((len(message).to_bytes(4) + message) * 3000)
        answers = connection.makefile("rb")
        for _ in range(3000):
            assert b"container of 1001 items" in answers.read(int.from_bytes(answers.read(4)))
        sound = call("getMetaConf", "0")
        connection.sendall(len(sound).to_bytes(4) + sound)
        assert answers.read(int.from_bytes(answers.read(4))).endswith(b"\x0b\x00\x00\x00\x00\x00\x010\x00")


def test_oneway_call_beyond_a_limit_is_not_answered(strict_server: StandIn) -> None:
    message = binary.message_header("get_table", binary.ONEWAY, 1) + b"\x0b\x00\x01\x00\x10\x00\x00"
    with strict_server.connect() as connection:
        connection.sendall(message)
        assert connection.recv(1) == b""
        assert strict_server.end_of(connection)["reason"] == "string_size"


@pytest.mark.long
def test_refused_call_that_never_ends_ends_its_connection(tmp_path: Path) -> None:
    with (
        StandIn(tmp_path / "data", receive_timeout_seconds=1) as server,
        server.connect() as dripping,
    ):
        dripping.sendall(HEADER + b"\x0c\x00\x01" * 100)
        server.end_of(dripping)  # it still reads
        with pytest.raises(ConnectionError):
            for _ in range(300):
                dripping.sendall(b"\x0c\x00\x01")
                time.sleep(0.05)  # slowly, but steadily


def test_call_beyond_a_limit_is_not_repeated(strict_server: StandIn) -> None:
    refused = len(strict_server.lines("connection closed"))
    large = Table(tableName="t", partitionKeys=[FieldSchema(name="c")] * 1001)
    with ReconnectingClient(strict_server.client, retry_seconds=20) as client:
        with pytest.raises(TApplicationException, match="container of 1001 items"):
            client.change(lambda each: each.create_table(large), done=AlreadyExistsException)
        assert client.call(lambda each: each.getVersion()) == "stand-in"
    assert len(strict_server.lines("connection closed")) == refused + 1


def test_two_hundred_half_sent_messages_at_once(server: StandIn) -> None:
    threads = server.worker.num_threads()
    half = call("create_table", Table(tableName="t", viewOriginalText="x" * 50_000))[:-20_000]
    earlier = len(server.lines("connection closed"))  # some of their ports may be these clients' now
    with contextlib.ExitStack() as stack, server.client() as other:
        began = time.monotonic()
        with flat_memory(server.worker, 40 * MB):
            halves = [stack.enter_context(server.connect()) for _ in range(200)]
            for connection in halves:
                connection.sendall(half)
            for _ in range(100):
                assert other.getVersion() == "stand-in"
        assert time.monotonic() - began < 30  # less than any time limit: none of them was waited for
        assert server.worker.num_threads() == threads
        peers = {address(connection) for connection in halves}
        assert not any(is_closed(connection) for connection in halves)

    def reasons() -> list[str]:
        lines = server.lines("connection closed")[earlier:]
        return [line["reason"] for line in lines if line["peer"] in peers]

    wait_until(lambda: len(reasons()) == 200)
    assert set(reasons()) == {"incomplete"}


def test_message_that_is_never_finished_ends_its_connection(tmp_path: Path) -> None:
    """However it is sent: the time counts from its first byte. A connection without a message may stay."""
    with (
        StandIn(tmp_path / "data", receive_timeout_seconds=1) as server,
        server.connect() as idle,
        server.connect() as stuck,
        server.connect() as dripping,
    ):
        stuck.sendall(HEADER[:6])
        began = time.monotonic()
        with contextlib.suppress(ConnectionError):
            for byte in call("create_table", Table(tableName="t" * 100)):
                dripping.sendall(bytes([byte]))
                time.sleep(0.05)  # slowly, but steadily
                if is_closed(dripping):
                    break
        assert 0.9 < time.monotonic() - began < 4
        assert server.end_of(stuck)["reason"] == "receive_timeout"
        assert server.end_of(dripping)["reason"] == "receive_timeout"
        idle.sendall(call("getVersion", sequence=9))
        assert read_reply(idle) == (9, "stand-in")


def test_message_in_single_bytes_is_answered(server: StandIn) -> None:
    with server.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in call("getMetaConf", "0", sequence=77):
            connection.sendall(bytes([byte]))
        assert read_reply(connection) == (77, "0")


def test_calls_of_the_server_go_on_while_large_messages_arrive(server: StandIn) -> None:
    """The walk over a large message must not keep the others waiting until it is through."""
    columns = [FieldSchema(name=f"c{number}", type="int") for number in range(300_000)]
    message = call("create_table", Table(tableName="wide", sd=StorageDescriptor(cols=columns)))
    assert len(message) > 7 * MB
    done = threading.Event()

    def send() -> None:
        with server.connect() as connection:
            connection.sendall(message)
            connection.recv(1000)
        done.set()

    threading.Thread(target=send).start()
    longest = 0.0
    with server.client() as client:
        while not done.is_set():
            began = time.monotonic()
            client.getVersion()
            longest = max(longest, time.monotonic() - began)
    assert longest < 1.0


def test_damaged_calls_do_no_harm(server: StandIn) -> None:
    """Some are answered with an error, some end their connection, some are waited for."""
    chance = random.Random(7)
    names = ["get_table", "create_table", "add_partitions", "get_partition_names", "abort_txns", "getMetaConf"]
    threads = server.worker.num_threads()
    closed = len(server.lines("connection closed"))
    with flat_memory(server.worker, 30 * MB):
        for _ in range(400):
            method = METHODS[chance.choice(names)]
            message = bytearray(binary.message_header(method.name, binary.CALL, 1) + binary.encode(filled(method.args)))
            for _ in range(chance.randint(1, 5)):
                message[chance.randrange(len(message))] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
            if chance.random() < 0.3:
                message = bytearray(compact.message_header(method.name, 1, 1)) + message[20:]
            with server.connect() as connection, contextlib.suppress(ConnectionError):
                connection.sendall(message)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass
    assert server.worker.num_threads() == threads
    assert len(server.lines("connection closed")) - closed <= 400, "one line for each at most"
