"""Calls by the raw wire, whose replies are compared as bytes."""

import socket
import struct
from typing import Self

from lake.protocol.codec import binary
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct

_CALL = 0x80010001


class RawConnection:
    """A framed connection. The same call always gets the same bytes, but for what is in the reply."""

    def __init__(self, host: str, port: int, user: str | None = None) -> None:
        """`user`: the name that it claims."""
        self._socket = socket.create_connection((host, port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if user is not None:
            arguments = METHODS["set_ugi"].args()
            arguments.user_name, arguments.group_names = user, []  # type: ignore[attr-defined]
            self.reply("set_ugi", arguments)

    def reply(self, method: str, arguments: Struct) -> bytes:
        """The body of the reply, with the kind of message before it."""
        name = method.encode()
        head = struct.pack(">Ii", _CALL, len(name)) + name + struct.pack(">i", 0)
        message = head + binary.encode(arguments)
        self._socket.sendall(struct.pack(">I", len(message)) + message)
        reply = self._read(struct.unpack(">I", self._read(4))[0])
        return reply[3:4] + reply[len(head) :]

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = self._socket.recv(size - len(found))
            assert piece, "the server has closed the connection"
            found += piece
        return found

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
