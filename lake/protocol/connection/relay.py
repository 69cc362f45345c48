"""A connection over which calls and replies go as they are encoded."""

import itertools
import select
import socket
from urllib.parse import urlsplit

from thrift.Thrift import TMessageType

from lake.protocol.codec import binary
from lake.protocol.codec.reply_reader import ReplyReader
from lake.protocol.connection.closing import Closing
from lake.protocol.connection.login import Login
from lake.protocol.connection.transports import transport


class Relay(Closing):
    """One connection to a metastore. Not thread-safe.

    `call` sends; then the reply has to be read to its end from the reader that it returns, before the next call.
    """

    def __init__(self, uri: str, login: Login, *, timeout: float, limit: int) -> None:
        """Connects. `timeout` in seconds bounds connecting and each wait for bytes, `limit` the bytes of a reply that
        are held at once.

        Raises TTransportException, LoginRefused, BadLogin.
        """
        parts = urlsplit(uri)
        self.uri = uri
        self._limit = limit
        self._numbers = itertools.count(1)
        self._transport = transport(parts.hostname or "", parts.port or 9083, login)
        self._transport.setTimeout(timeout * 1000)
        try:
            self._transport.open()
        except BaseException:
            self._transport.close()
            raise
        connected: socket.socket | None = getattr(self._transport, "handle", None)
        if connected is not None:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def set_timeout(self, seconds: float) -> None:
        """Bounds each wait for bytes from now on."""
        self._transport.setTimeout(seconds * 1000)

    def call(self, name: str, arguments: bytes) -> ReplyReader:
        """Sends a call with encoded arguments. Raises TTransportException: some of it may have left by then."""
        header = binary.message_header(name, TMessageType.CALL, next(self._numbers) & 0x7FFFFFFF)
        self._transport.write(header + arguments)
        self._transport.flush()
        return ReplyReader(self._transport.read, self._limit)

    @property
    def is_quiet(self) -> bool:
        """Whether the connection is open and nothing is to be read: neither the end, nor what nobody waits for."""
        connected: socket.socket | None = getattr(self._transport, "handle", None)
        if connected is None:
            return False
        poll = select.poll()
        poll.register(connected, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        self._transport.close()
