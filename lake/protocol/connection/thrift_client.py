"""A plain Thrift client for every method that the metastore's port answers."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self
from urllib.parse import urlsplit

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TBufferedTransport, TTransportBase

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


class _Heard(TTransportBase):  # type: ignore[misc]
    """A transport of which what is read can be hashed."""

    def __init__(self, below: Any) -> None:
        self._below = below
        self.digest: Any = None
        self.isOpen, self.open, self.close = below.isOpen, below.open, below.close
        self.write, self.flush = below.write, below.flush

    def read(self, size: int) -> bytes:
        data: bytes = self._below.read(size)
        if self.digest is not None:
            self.digest.update(data)
        return data


class _Nothing:
    """A struct of whose fields none is wanted."""


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
        self._heard = _Heard(self._socket)
        self._transport = TBufferedTransport(self._heard, 1 << 16)
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
        self._send(name, args, named)
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

    @contextmanager
    def heard(self) -> Iterator["hashlib.blake2b"]:
        """A digest of what the server answers meanwhile: answers of the same bytes have the same."""
        self._heard.digest = digest = hashlib.blake2b()
        try:
            yield digest
        finally:
            self._heard.digest = None

    def pass_over(self, name: str, *args: Any) -> None:
        """Calls a method whose answer is only `heard`. Nothing is made of it, and no exception in it is raised."""
        self._send(name, args, {})
        self._protocol.readMessageBegin()
        self._protocol._fast_decode(_Nothing(), self._protocol, [_Nothing, ()])
        self._protocol.readMessageEnd()

    def _send(self, name: str, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        method = METHODS[name]
        arguments = method.args()
        for field, value in (*zip(method.argument_names, args, strict=False), *named.items()):
            setattr(arguments, field, value)
        # First, for arguments that can't be written must leave no half of a call behind.
        encoded = self._protocol._fast_encode(arguments, [method.args, method.args_spec])
        # The answer repeats the number: what is heard is the same each time.
        self._sequence = 0 if self._heard.digest is not None else self._sequence + 1
        kind = TMessageType.ONEWAY if method.oneway else TMessageType.CALL
        self._protocol.writeMessageBegin(name, kind, self._sequence)
        self._transport.write(encoded)
        self._protocol.writeMessageEnd()
        self._transport.flush()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in METHODS:
            raise AttributeError(name)
        return lambda *args, **named: self.call(name, *args, **named)

    def close(self) -> None:
        self._transport.close()
