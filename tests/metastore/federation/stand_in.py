"""Backends that do what a test says."""

import json
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TFileObjectTransport, TTransportException

from lake.protocol.codec import binary
from lake.protocol.hive import (
    CurrentNotificationEventId,
    MetaException,
    NotificationEvent,
    NotificationEventRequest,
    NotificationEventResponse,
)
from lake.protocol.services import METHODS

_OF_ALL: dict[str, Callable[..., Any]] = {
    "set_ugi": lambda *_: [],
    "getMetaConf": lambda key: MetaException(f"{key} is unknown"),
}
"""What all stand-ins answer, if a test doesn't say otherwise: they are no lake metastores."""


class HangUp(Exception):
    """Raised by an answer: the connection is closed without one."""


class StandIn:
    """A metastore on a port of the loopback interface. `answers`: by method, what makes its value of its arguments, or
    the exception that it answers with.

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
                    made = _OF_ALL[name] if name in _OF_ALL and name not in answers else answers[name]
                    value = made(*values)
                    field = method.exceptions.get(type(value), "success")
                    body = b"\0" if value is None else binary.encode_result(field, value, method.result)
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
        return [name for _, name, _ in self.calls if name not in _OF_ALL]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class LogStandIn(StandIn):
    """A metastore of Hive of which there is nothing but its notification log, `log`."""

    def __init__(self, *, port: int = 0) -> None:
        self.log: list[NotificationEvent] = []
        self.last = 0
        answers = {
            "get_all_databases": lambda: [],
            "get_current_notificationEventId": lambda: CurrentNotificationEventId(self.last),
            "get_next_notification": self._next,
        }
        super().__init__(answers, port=port)

    @classmethod
    def at(cls, port: int, before: "LogStandIn") -> Self:
        """One with the log of another one that has ended."""
        made = cls(port=port)
        made.log, made.last = before.log, before.last
        return made

    def _next(self, asked: NotificationEventRequest) -> NotificationEventResponse:
        found = [each for each in self.log if each.eventId > asked.lastEvent]
        return NotificationEventResponse(found[: asked.maxEvents or None])

    def add(self, db: str | None, table: str | None = "t", *, type: str = "DROP_TABLE", **message: object) -> None:
        """One more event."""
        self.last += 1
        text = json.dumps({"db": db, "table": table, **message})
        self.log.append(NotificationEvent(self.last, 7, type, db, table, text, "json-0.2"))


def _arguments(protocol: TBinaryProtocol, cls: Any) -> list[Any]:
    value = _struct(protocol, cls)
    return [getattr(value, entry[2]) for entry in cls.thrift_spec if entry is not None]


def _struct(protocol: TBinaryProtocol, cls: Any) -> Any:
    """A struct without what lists and maps of structs hold: no test looks there."""
    value = cls()
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            return value
        _, _, name, argument, _ = cls.thrift_spec[number]
        if kind == TType.STRUCT:
            setattr(value, name, _struct(protocol, argument[0]))
        elif kind in (TType.LIST, TType.SET, TType.MAP) and TType.STRUCT in argument[:3:2]:
            protocol.skip(kind)
        else:
            setattr(value, name, protocol.readFieldByTType(kind, argument))
        protocol.readFieldEnd()
