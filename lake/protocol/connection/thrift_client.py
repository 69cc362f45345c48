"""A plain Thrift client for every method that the metastore's port answers."""

from collections.abc import Callable
from typing import Any, Self
from urllib.parse import urlsplit

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TBufferedTransport

import lake
from lake.protocol.connection.closing import Closing
from lake.protocol.connection.login import Login
from lake.protocol.connection.transports import transport
from lake.protocol.services import METHODS, OWN_METHODS
from lake.protocol.struct import ExceptionStruct

_ANY_LENGTH = (1 << 31) - 1
_VERSIONS = (
    f"This client has version {lake.__version__}. It works with lake metastores of its minor version and the next one:"
    " upgrade the server first, or install a client of the server's version"
)


class ThriftClient(Closing):
    """One connection. Every Thrift method is a method of this object: `client.get_table("db", "t")`.

    Arguments are positional in the order of the IDL, or by name; one that is left out is not sent. A declared
    exception is raised as the class in `lake.protocol.hive` (or `.hudi`); anything else the server can't answer is
    a `thrift.Thrift.TApplicationException`; a broken connection a `TTransportException`. Not thread-safe.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9083,
        *,
        timeout: float | None = 60.0,
        login: Login | None = None,
    ) -> None:
        """Connects; `timeout` in seconds bounds connecting and each wait for bytes (None: no bound).

        `login`: who the client is, by default what the environment says (`Login.from_environment`). Raises BadLogin,
        LoginRefused.
        """
        self._socket = transport(host, port, Login.from_environment() if login is None else login)
        self.set_timeout(timeout)
        self._transport = TBufferedTransport(self._socket, 1 << 16)
        # Thrift's own limit of a text is 16 MB; an event or a table may be longer, and would stop who reads it.
        self._protocol = TBinaryProtocolAccelerated(
            self._transport, fallback=False, string_length_limit=_ANY_LENGTH, container_length_limit=_ANY_LENGTH
        )
        self._sequence = 0
        self._transport.open()

    def set_timeout(self, timeout: float | None) -> None:
        """Bounds each wait for bytes from now on; see the constructor."""
        self._socket.setTimeout(timeout and timeout * 1000)

    @classmethod
    def from_uri(cls, uri: str, *, timeout: float | None = 60.0, login: Login | None = None) -> Self:
        """Connects to `thrift://host:port`. Raises ValueError if the URI is not of that form."""
        parts = urlsplit(uri)
        if parts.scheme != "thrift" or not parts.hostname:
            raise ValueError(f"{uri!r} is not of the form thrift://host:port")
        return cls(parts.hostname, parts.port or 9083, timeout=timeout, login=login)

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        """Calls a method by its Thrift name and returns its value (None for void)."""
        method = METHODS[name]
        arguments = method.args()
        for field, value in (*zip(method.argument_names, args, strict=False), *named.items()):
            setattr(arguments, field, value)
        # First, for arguments that can't be written must leave no half of a call behind.
        encoded = self._protocol._fast_encode(arguments, [method.args, method.args_spec])
        self._sequence += 1
        kind = TMessageType.ONEWAY if method.oneway else TMessageType.CALL
        self._protocol.writeMessageBegin(name, kind, self._sequence)
        self._transport.write(encoded)
        self._protocol.writeMessageEnd()
        self._transport.flush()
        if method.oneway:
            return None
        _, kind, _ = self._protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            error.read(self._protocol)
            self._protocol.readMessageEnd()
            if error.type == TApplicationException.UNKNOWN_METHOD and name.startswith(OWN_METHODS):
                error.message = f"{error.message}. {_VERSIONS}"
            raise error
        result = method.result()
        self._protocol._fast_decode(result, self._protocol, [method.result, method.result_spec])
        self._protocol.readMessageEnd()
        # The last one: the field before may repeat it for clients of Hive 2.3 (`EXCEPTIONS_OF_2_3`).
        for field in reversed(method.exceptions.values()):
            raised: ExceptionStruct | None = getattr(result, field)
            if raised is not None:
                raise raised
        if not method.returns_value:
            return None
        value = getattr(result, "success")  # noqa: B009 - the class is made at run time
        if value is None:
            raise TApplicationException(TApplicationException.MISSING_RESULT, f"{name} failed: no result")
        return value

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in METHODS:
            raise AttributeError(name)
        return lambda *args, **named: self.call(name, *args, **named)

    def close(self) -> None:
        self._transport.close()
