"""What a connection does and costs, against real worker processes."""

import contextlib
import itertools
import random
import resource
import signal
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from thrift.transport.TTransport import TTransportException

from lake.protocol.codec import binary
from lake.protocol.hive import FieldSchema, NoSuchObjectException, Partition, StorageDescriptor
from tests.metastore.server.stand_in import (
    AnyProtocolClient,
    StandIn,
    address,
    call,
    flat_memory,
    is_closed,
    read_reply,
)
from tests.support.waiting import wait_until

MB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with StandIn(tmp_path_factory.mktemp("connections") / "data") as server:
        yield server


# -- protocols -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("framed", [False, True], ids=["unframed", "framed"])
@pytest.mark.parametrize("style", ["strict", "old style", "compact"])
def test_every_protocol_on_one_port(server: StandIn, framed: bool, style: str) -> None:
    client = AnyProtocolClient(server.port, framed=framed, compact=style == "compact", strict=style == "strict")
    for _ in range(3):
        assert client.call("getVersion").success == "stand-in"
        assert client.call("get_database", "größe").success.name == "größe"
        assert client.call("get_database", "missing").o1 == NoSuchObjectException(message="no such database")
    sd = StorageDescriptor(cols=[FieldSchema(name="c", type="int")] * 30, compressed=True)
    many = [Partition(values=[str(number)], createTime=-number, sd=sd) for number in range(2000)]
    assert client.call("add_partitions", many).success == 2000
    parts = client.call("get_partitions", "db", "t", 2).success
    assert len(parts) == 2000
    assert parts[-1].sd.cols[19].name == "column_19"
    client.transport.close()


# -- one request at a time -----------------------------------------------------------------------------------


def test_pipelined_calls_are_answered_one_by_one_in_order(server: StandIn) -> None:
    with server.connect() as connection:
        calls = [call("getMetaConf", "0.3" if number == 250 else "0", sequence=number) for number in range(500)]
        connection.sendall(b"".join(calls))
        for number in range(500):
            assert read_reply(connection) == (number, "0.3" if number == 250 else "0")


def test_client_that_never_reads_is_not_read_either(server: StandIn) -> None:
    """Calls without end while none of the replies is taken: the client has to wait, the server's memory stays."""
    endless = call("get_database", "x" * 10_000) * 100
    with server.connect() as connection, flat_memory(server.worker, 20 * MB):
        connection.settimeout(1.0)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 200 * MB:
                sent += connection.send(endless)
        assert sent < 200 * MB
        with server.client() as other:
            assert other.getVersion() == "stand-in"


def test_client_that_sends_no_more_still_gets_its_replies(server: StandIn) -> None:
    with server.connect() as connection:
        connection.sendall(call("getMetaConf", "0.2", sequence=1) + call("getMetaConf", "0", sequence=2))
        connection.shutdown(socket.SHUT_WR)
        assert read_reply(connection) == (1, "0.2")
        assert read_reply(connection) == (2, "0")
        assert connection.recv(1) == b""
        assert server.lines("connection closed", address(connection)) == []


def test_client_that_sends_no_more_after_its_first_reply(server: StandIn) -> None:
    """It may stop just when a thread has sent that, and the event loop doesn't know it yet."""
    for number in range(100):
        with server.connect() as connection:
            connection.sendall(call("getMetaConf", "0", sequence=number) + call("getMetaConf", "0.0", sequence=number))
            assert read_reply(connection) == (number, "0")
            connection.shutdown(socket.SHUT_WR)
            assert read_reply(connection) == (number, "0.0")
            assert connection.recv(1) == b""


def test_oneway_call_gets_no_reply(server: StandIn) -> None:
    with server.connect() as connection:
        peer = address(connection)
        unknown = binary.message_header("flush", binary.ONEWAY, 1) + b"\x00"
        connection.sendall(call("shutdown", kind=binary.ONEWAY) + call("shutdown") + unknown)
        connection.sendall(call("getVersion", sequence=3))
        assert read_reply(connection) == (3, "stand-in")
        connection.sendall(call("shutdown", kind=binary.ONEWAY))
    wait_until(lambda: len(server.lines("call", peer)) == 5)
    assert server.lines("connection closed", peer) == []


# -- replies and those who read them -------------------------------------------------------------------------


def test_large_reply_is_streamed(server: StandIn) -> None:
    with server.client() as client, flat_memory(server.worker, 20 * MB):
        assert len(client.get_partitions("db", "t", 60)) == 60_000
    [line] = wait_until(lambda: [line for line in server.lines("call") if line["bytes"] > 30 * MB])
    assert line["outcome"] == "ok"


def test_reply_that_the_socket_takes_in_part(server: StandIn) -> None:
    """A thread sends what it can, and the event loop the rest."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", server.port))
        names = ["0." + "0" * (250_000 + number) for number in range(3)]  # the call sleeps for so long
        for number, name in enumerate(names):
            connection.sendall(call("getMetaConf", name, sequence=number))
            time.sleep(0.2)  # while nobody reads
            assert read_reply(connection) == (number, name)


def test_no_reply_gets_to_another_client(server: StandIn) -> None:
    """Clients come and go, many before their reply: what is sent to one that has gone must not reach the next one."""
    numbers = itertools.count()
    wrong: list[tuple[str, object]] = []

    def come_and_go(chance: random.Random) -> None:
        for _ in range(100):
            with server.connect() as connection:
                for _ in range(chance.randrange(1, 4)):
                    key = f"0.000{next(numbers):09d}"  # the call sleeps for so long, and returns it
                    connection.sendall(call("getMetaConf", key))
                    if chance.random() < 0.5:  # it leaves at once, with a reset
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        break
                    if (found := read_reply(connection)[1]) != key:
                        wrong.append((key, found))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(come_and_go, map(random.Random, range(8))))
    assert wrong == []


def test_slow_reader_loses_its_connection_and_frees_its_thread(tmp_path: Path) -> None:
    with StandIn(tmp_path / "data", threads=2, write_timeout_seconds=1) as server, contextlib.ExitStack() as stack:
        with flat_memory(server.worker, 20 * MB):
            # More slow readers than threads, each with a reply of some 70 MB.
            readers = [stack.enter_context(server.connect()) for _ in range(5)]
            for reader in readers:
                reader.sendall(call("get_partitions", "db", "t", 100))
            with server.client() as other:
                assert other.getVersion() == "stand-in"
            for reader in readers:
                assert server.end_of(reader)["reason"] == "write_timeout"
        lines = wait_until(lambda: (found := server.lines("call"))[5:] and found)
        outcomes = Counter(line["outcome"] for line in lines if line["method"] == "get_partitions")
        assert outcomes == {"reply not delivered": 5}


@pytest.mark.long
def test_slow_reader_has_less_time_while_others_wait(tmp_path: Path) -> None:
    with StandIn(tmp_path / "data", threads=2) as server, contextlib.ExitStack() as stack:
        readers = [stack.enter_context(server.connect()) for _ in range(2)]
        for reader in readers:
            reader.sendall(call("get_partitions", "db", "t", 100))
        time.sleep(1)  # in which both threads fill the connection, and stand still
        began = time.monotonic()
        with server.client() as other:
            assert other.getVersion() == "stand-in"
        assert time.monotonic() - began < 15  # of 60 that they have otherwise
        # One of them is enough: with its thread free nobody waits, and the other one keeps its time.
        line = wait_until(lambda: server.lines("connection closed"))[0]
        assert line["peer"] in [address(reader) for reader in readers]
        assert (line["reason"], "others wait" in line["detail"]) == ("write_timeout", True)


@pytest.mark.long
def test_last_piece_that_nobody_reads_ends_the_connection(tmp_path: Path) -> None:
    """No thread waits for it, but the connection would stay for ever."""
    with StandIn(tmp_path / "data", write_timeout_seconds=1) as server, server.connect() as reader:
        with contextlib.suppress(ConnectionResetError):
            reader.sendall(call("get_database", "x" * 100_000) * 100)
        assert server.end_of(reader)["reason"] == "write_timeout"


@pytest.mark.long
def test_reader_that_is_slow_but_steady_gets_everything(tmp_path: Path) -> None:
    with StandIn(tmp_path / "data", write_timeout_seconds=1) as server, server.connect() as reader:
        reader.sendall(call("get_partitions", "db", "t", 60))
        size, began = 0, time.monotonic()
        while not server.lines("call", address(reader)):
            size += len(reader.recv(100_000))
            time.sleep(0.01)  # slow, but steady
        assert time.monotonic() - began > 2
        [line] = server.lines("call", address(reader))
        while size < line["bytes"]:
            size += len(reader.recv(MB))
        assert (line["outcome"], line["bytes"]) == ("ok", size)
        assert server.lines("connection closed") == []


def test_reply_that_fails_in_the_middle_ends_the_connection(server: StandIn) -> None:
    with server.client() as client, pytest.raises((TTransportException, EOFError, ConnectionError)):
        client.get_partitions("broken", "t", 100)
    line = wait_until(lambda: server.lines("connection closed"))[-1]
    assert line["reason"] == "reply_broken"
    assert "secret" not in line["detail"]
    error = wait_until(lambda: server.lines("internal error"))[-1]
    assert error["reference"] in line["detail"]
    assert "a secret of the server" in error["exception"]
    with server.client() as client:
        assert client.getVersion() == "stand-in"


def test_whatever_a_call_raises_its_client_does_not_wait_for_ever(server: StandIn) -> None:
    """Also what no handler expects, as of a listener in Python that ends its process."""
    for _ in range(3):
        with server.client() as client, pytest.raises((TTransportException, EOFError, ConnectionError)):
            client.get_database("exit")
    assert wait_until(lambda: server.lines("connection closed"))[-1]["reason"] == "internal_error"
    with server.client() as client:
        assert client.getVersion() == "stand-in"


@pytest.mark.long
def test_client_that_leaves_in_the_middle_of_its_reply_frees_the_thread(tmp_path: Path) -> None:
    with StandIn(tmp_path / "data", threads=1) as server:
        for _ in range(3):
            with server.connect() as connection:
                connection.sendall(call("get_partitions", "db", "t", 200))
                connection.recv(100_000)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        with server.client() as client:
            assert client.getVersion() == "stand-in"
        assert [line["reason"] for line in server.lines("connection closed")] == ["client_gone"] * 3


# -- many connections ----------------------------------------------------------------------------------------


@pytest.fixture
def many_files() -> Iterator[None]:
    """Lets this process open the other ends of thousands of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_idle_connections_cost_no_threads_and_little_memory(server: StandIn, many_files: None) -> None:
    threads = server.worker.num_threads()
    with contextlib.ExitStack() as stack, flat_memory(server.worker, 40 * MB):
        clients = [stack.enter_context(server.client()) for _ in range(2000)]
        for client in clients:
            assert client.getVersion() == "stand-in"
        assert server.worker.num_threads() == threads
        assert len(server.worker.net_connections()) > 2000
        for client in clients[::100]:
            assert client.getVersion() == "stand-in"
    wait_until(lambda: len(server.worker.net_connections()) < 100)


def test_connections_beyond_the_limit_are_closed_at_once(tmp_path: Path) -> None:
    with StandIn(tmp_path / "data", max_connections=20) as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for _ in range(20)]
        for client in clients:
            assert client.getVersion() == "stand-in"
        for _ in range(300):
            with server.connect() as refused, contextlib.suppress(ConnectionResetError):
                assert refused.recv(1) == b""
        for client in clients:
            assert client.getVersion() == "stand-in"
        assert len(server.lines("connections refused")) == 1
        clients[0].close()
        wait_until(lambda: len(server.worker.net_connections()) <= 20)
        with server.client() as client:
            assert client.getVersion() == "stand-in"


def test_workers_share_the_connections(tmp_path: Path) -> None:
    with StandIn(tmp_path / "data", workers=2) as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.client()) for _ in range(60)]
        by_worker = Counter(client.getName() for client in clients)
        assert len(by_worker) == 2
        assert min(by_worker.values()) >= 6


def test_idle_connection_is_closed_and_a_busy_one_is_not(tmp_path: Path) -> None:
    with (
        StandIn(tmp_path / "data", idle_timeout_seconds=0.5) as server,
        server.connect() as idle,
        server.connect() as busy,
    ):
        busy.sendall(call("getMetaConf", "1.5"))
        assert server.end_of(idle)["reason"] == "idle_timeout"
        assert read_reply(busy) == (1, "1.5")


# -- stopping ------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_stop_lets_running_calls_finish(tmp_path: Path) -> None:
    server = StandIn(tmp_path / "data", drain_seconds=20)
    with server.connect() as idle, server.connect() as half, server.connect() as busy:
        half.sendall(call("getVersion")[:10])
        busy.sendall(call("getMetaConf", "1.5"))
        idle.sendall(call("getVersion"))
        read_reply(idle)
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        wait_until(lambda: is_closed(idle) and is_closed(half))
        with pytest.raises(OSError):
            server.connect()
        assert read_reply(busy) == (1, "1.5")
        assert busy.recv(1) == b""
        stopping.join()
    assert server.lines("connection closed") == []
    assert server.lines("process failed") == []


def test_stop_waits_no_longer_than_it_may(tmp_path: Path) -> None:
    server = StandIn(tmp_path / "data", drain_seconds=0.5)
    with server.connect() as busy:
        busy.sendall(call("getMetaConf", "60"))
        wait_until(lambda: server.worker.num_threads() > 1)
        time.sleep(0.3)  # in which a thread begins with the call
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 5
        assert is_closed(busy)
    [line] = server.lines("connection closed")
    assert line["reason"] == "shutdown"


def test_interrupt_from_the_terminal_does_not_reach_the_workers(server: StandIn) -> None:
    with server.client() as client:
        server.worker.send_signal(signal.SIGINT)
        time.sleep(0.2)  # in which the worker would end
        assert client.getVersion() == "stand-in"


# -- the log -------------------------------------------------------------------------------------------------


def test_log_says_who_called_what_on_which_object(server: StandIn) -> None:
    with server.client() as client:
        client.set_ugi("alice", ["users"])
        with pytest.raises(NoSuchObjectException):
            client.get_database("missing")
        client.get_partition_names("sales", "orders", 3)
        client.add_partitions([Partition(dbName="sales", tableName="orders", values=["1"])])
        client.getMetaConf("1.1")
        peer = client.get_database("sales").description
    # A line is written after the reply; an earlier client may have had the same port.
    wait_until(lambda: len(server.lines("call", peer)) >= 6)
    lines = server.lines("call", peer)[-6:]
    assert [(line["method"], line["object"], line["outcome"]) for line in lines] == [
        ("set_ugi", "", "ok"),
        ("get_database", "missing", "NoSuchObjectException"),
        ("get_partition_names", "sales.orders", "ok"),
        ("add_partitions", "sales.orders", "ok"),
        ("getMetaConf", "", "ok"),
        ("get_database", "sales", "ok"),
    ]
    assert {line["user"] for line in lines} == {"alice"}
    assert [line["level"] for line in lines] == ["info"] * 4 + ["warning", "info"]
    assert lines[4]["ms"] >= 1100
    assert all(line["bytes"] > 0 for line in lines)
