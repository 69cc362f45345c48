"""Connections as readers have them: without a scope, or with one of those that show uncommitted partitions."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import TableReference

DECORATION = "@includeuncommit"
SCOPE = "includeUnCommit"


class Ports(NamedTuple):
    """Where the server listens: as usual, and for those who see uncommitted partitions without asking."""

    host: str
    usual: int
    uncommitted: int


class RecordingClient(ThriftClient):
    """A connection that keeps the bytes of the last call and its reply."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self.sent = self.received = b""
        socket = self._transport._TBufferedTransport__trans
        read, write = socket.read, socket.write

        def reading(size: int) -> bytes:
            piece: bytes = read(size)
            self.received += piece
            return piece

        def writing(piece: bytes) -> None:
            self.sent += piece
            write(piece)

        socket.read, socket.write = reading, writing

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        self.sent = self.received = b""
        return super().call(name, *args, **named)


@dataclass(frozen=True)
class Readers:
    """Makes connections."""

    ports: Ports
    stack: ExitStack

    def plain(self) -> RecordingClient:
        return self._connected(self.ports.usual)

    def metaconf(self, value: str = "true") -> RecordingClient:
        client = self.plain()
        client.setMetaConf(SCOPE, value)
        return client

    def listener(self) -> RecordingClient:
        return self._connected(self.ports.uncommitted)

    def _connected(self, port: int) -> RecordingClient:
        return self.stack.enter_context(RecordingClient(self.ports.host, port))


@dataclass(frozen=True)
class Reader:
    """Who asks, and for which table by which name; `include`: what the call itself says, where a call can."""

    client: RecordingClient
    db: str
    suffix: str = ""
    include: bool | None = None

    def table(self, name: str = "t") -> str:
        return name + self.suffix

    @property
    def reference(self) -> TableReference:
        return TableReference(database=self.db, table=self.table())


@dataclass(frozen=True)
class Scope:
    """One of the ways to ask for uncommitted partitions."""

    name: str
    connect: Callable[[Readers], RecordingClient]
    reader: dict[str, Any] = field(default_factory=dict)

    def of(self, readers: Readers, db: str) -> Reader:
        return Reader(self.connect(readers), db, **self.reader)

    def __str__(self) -> str:
        return self.name


NONE = Scope("none", Readers.plain)
NAME = Scope("name", Readers.plain, {"suffix": DECORATION})
CALL = Scope("call", Readers.plain, {"include": True})
CONNECTION = Scope("connection", Readers.metaconf)
LISTENER = Scope("listener", Readers.listener)
