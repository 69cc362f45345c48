"""Backends that do what a test says."""

import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TFileObjectTransport, TTransportException

from lake.protocol.codec import binary
from lake.protocol.services import METHODS


class HangUp(Exception):
    """Raised by an answer: the connection is closed without one."""


class StandIn:
    """A metastore on a port of the loopback interface. `answers`: by method, what makes its value of its arguments.

    `calls` has all calls that have arrived, in their order: the connection's number, the method and the arguments.
    """

    def __init__(self, answers: Mapping[str, Callable[..., Any]], *, port: int = 0) -> None:
        self.calls: list[tuple[int, str, list[Any]]] = []
        self.connections = 0
        self._open: set[socket.socket] = set()
        stand_in = self

        class Connection(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                stand_in.connections += 1
                stand_in._open.add(self.connection)
                try:
                    self._serve(stand_in.connections)
                except (HangUp, TTransportException, EOFError, OSError):
                    pass
                finally:
                    stand_in._open.discard(self.connection)

            def _serve(self, number: int) -> None:
                protocol = TBinaryProtocol(TFileObjectTransport(self.rfile))
                while True:
                    name, _, sequence = protocol.readMessageBegin()
                    method = METHODS[name]
                    values = _arguments(protocol, method.args)
                    stand_in.calls.append((number, name, values))
                    made = (lambda *_: []) if name == "set_ugi" and name not in answers else answers[name]
                    value = made(*values)
                    body = b"\0" if value is None else binary.encode_result("success", value, method.result)
                    self.wfile.write(binary.message_header(name, binary.REPLY, sequence) + body)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            request_queue_size = 100

        self._server = Server(("127.0.0.1", port), Connection)
        self._server.daemon_threads = True
        self.uri = f"thrift://127.0.0.1:{self._server.server_address[1]}"

    @property
    def open(self) -> int:
        """Connections that are open now."""
        return len(self._open)

    def close_connections(self) -> None:
        """Ends all connections, as a server that is restarted."""
        for each in list(self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def names(self) -> list[str]:
        """The methods that were called, but for logins."""
        return [name for _, name, _ in self.calls if name != "set_ugi"]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _arguments(protocol: TBinaryProtocol, cls: Any) -> list[Any]:
    value = cls()
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == 0:
            break
        spec = cls.thrift_spec[number]
        if kind == 12:  # a request struct: tests look at names alone
            protocol.skip(kind)
            part = spec[3][0]()
        else:
            part = protocol.readFieldByTType(kind, spec[3])
        setattr(value, spec[2], part)
        protocol.readFieldEnd()
    return [getattr(value, entry[2]) for entry in cls.thrift_spec if entry is not None]
