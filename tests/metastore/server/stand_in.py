"""The stand-in metastore's process, seen from a test: its port, its workers, its log; and clients of all kinds."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import psutil
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TFramedTransport

from lake.protocol.codec import binary
from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.services import METHODS
from tests.support.forked import Forked, can_begin_so
from tests.support.waiting import wait_until


def _stand_in(settings: str) -> None:
    from tests.metastore.server import stand_in_metastore

    stand_in_metastore.main(settings)


def _process(settings: str, environment: dict[str, str], log: Path) -> "subprocess.Popen[str] | Forked":
    if can_begin_so(environment):
        return Forked(_stand_in, settings, environment=environment, log=log)
    command = [sys.executable, "-m", "tests.metastore.server.stand_in_metastore", settings]
    with log.open("ab") as file:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True, env=environment)


class StandIn:
    """`tests.metastore.server.stand_in_metastore` with some settings; one worker unless they say otherwise."""

    def __init__(self, directory: Path, environment: dict[str, str] | None = None, **settings: Any) -> None:
        self.log = directory.with_name(directory.name + ".log")
        values = {"port": 0, "data_dir": str(directory), "workers": 1, "threads": 4, "log_format": "json"}
        self.log.write_bytes(b"")
        self._process = _process(json.dumps(values | settings), environment or dict(os.environ), self.log)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("metastore ready thrift://127.0.0.1:"), (line, self.log.read_text())
        self.port = int(line.rpartition(":")[2])
        self.workers = psutil.Process(self._process.pid).children()

    @property
    def worker(self) -> psutil.Process:
        [worker] = self.workers
        return worker

    def client(self, login: Login | None = None) -> ThriftClient:
        return ThriftClient("127.0.0.1", self.port, timeout=30, login=login)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def lines(self, event: str, peer: str | None = None) -> list[dict[str, Any]]:
        """The lines of the log about an event, all or those about one client."""
        whole = self.log.read_text().rpartition("\n")[0]  # the last line may still be on its way
        lines = [json.loads(line) for line in whole.splitlines()]
        return [line for line in lines if line["event"] == event and peer in (None, line.get("peer"))]

    def end_of(self, connection: socket.socket) -> dict[str, Any]:
        """Waits until the server has closed a connection; the one line that says why."""
        peer = address(connection)
        wait_until(lambda: self.lines("connection closed", peer))
        with contextlib.suppress(ConnectionResetError):
            while connection.recv(1 << 20):
                pass
        [line] = self.lines("connection closed", peer)
        return line

    def stop(self) -> int:
        """Tells the server to stop and waits; its exit status."""
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status

    @property
    def stopped(self) -> bool:
        return self._process.poll() is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.stopped:
            status = self.stop()
            assert status == 0, self.log.read_text()[-5000:]


class AnyProtocolClient:
    """A client in a protocol of choice, of thrift's own transports and protocols."""

    def __init__(self, port: int, *, framed: bool, compact: bool, strict: bool = True) -> None:
        socket = TSocket("127.0.0.1", port)
        socket.setTimeout(30_000)
        self.transport = TFramedTransport(socket) if framed else TBufferedTransport(socket)
        if compact:
            self._protocol = TCompactProtocolAccelerated(self.transport, fallback=False)
        else:
            self._protocol = TBinaryProtocolAccelerated(
                self.transport, strictRead=strict, strictWrite=strict, fallback=False
            )
        self.transport.open()

    def call(self, name: str, *args: Any) -> Any:
        """The method's whole result struct."""
        method = METHODS[name]
        arguments = method.args(**dict(zip(method.argument_names, args, strict=True)))
        protocol = self._protocol
        protocol.writeMessageBegin(name, TMessageType.CALL, 1)
        self.transport.write(protocol._fast_encode(arguments, [method.args, method.args_spec]))
        protocol.writeMessageEnd()
        self.transport.flush()
        answered, kind, sequence = protocol.readMessageBegin()
        assert (answered, sequence) == (name, 1)
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            error.read(protocol)
            protocol.readMessageEnd()
            raise error
        assert kind == TMessageType.REPLY
        result = method.result()
        protocol._fast_decode(result, protocol, [method.result, method.result_spec])
        protocol.readMessageEnd()
        return result


def call(name: str, *args: Any, sequence: int = 1, kind: int = binary.CALL) -> bytes:
    """An encoded call."""
    method = METHODS[name]
    arguments = method.args(**dict(zip(method.argument_names, args, strict=True)))
    return binary.message_header(name, kind, sequence) + binary.encode(arguments)


def read_reply(connection: socket.socket) -> tuple[int, str]:
    """The sequence number and the value of the next reply, which must be that of a method that returns a string."""
    reply = connection.makefile("rb", buffering=0)
    length = int.from_bytes(_exactly(reply, 8)[4:])
    name = _exactly(reply, length).decode()
    sequence = int.from_bytes(_exactly(reply, 4), signed=True)
    header = _exactly(reply, 7)
    assert header[:3] == b"\x0b\x00\x00", f"{name} doesn't return a string"
    value = _exactly(reply, int.from_bytes(header[3:])).decode()
    assert _exactly(reply, 1) == b"\x00"
    return sequence, value


def _exactly(stream: Any, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = stream.read(count - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def raised(client: ThriftClient, name: str, *args: Any) -> TApplicationException:
    """The application exception that a call ends with."""
    try:
        value = client.call(name, *args)
    except TApplicationException as error:
        return error
    raise AssertionError(f"{name} returned {value!r}")


def address(connection: socket.socket) -> str:
    host, port = connection.getsockname()[:2]
    return f"{host}:{port}"


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has closed the connection; what it sent before is read and forgotten."""
    while select.select([connection], [], [], 0)[0]:
        try:
            if not connection.recv(1 << 16):
                return True
        except ConnectionResetError:
            return True
    return False


@contextlib.contextmanager
def flat_memory(process: psutil.Process, growth: int) -> Iterator[None]:
    """Asserts that a process grows by no more than so many bytes, looked at after the block."""
    before = process.memory_info().rss
    yield
    after = process.memory_info().rss
    assert after - before <= growth, f"grew by {(after - before) >> 20} MB"
