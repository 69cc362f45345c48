"""Messages of Postgres' protocol (version 3), for a connection that is read byte by byte."""

import struct
from collections.abc import Callable
from typing import NamedTuple

READY, ROW, ERROR = b"Z", b"D", b"E"
LONGEST_BYTES = 1 << 16

_header = struct.Struct(">cI")
_count = struct.Struct(">H")
_length = struct.Struct(">i")


class Message(NamedTuple):
    kind: bytes
    body: bytes


def query(statement: str) -> bytes:
    """The message that has statements executed."""
    body = statement.encode() + b"\0"
    return _header.pack(b"Q", len(body) + _length.size) + body


def row(body: bytes) -> list[str | None]:
    """The values of a row, in the text format. Raises ValueError."""
    try:
        (count,) = _count.unpack_from(body)
        at, values = _count.size, list[str | None]()
        for _ in range(count):
            (length,) = _length.unpack_from(body, at)
            at += _length.size
            values.append(None if length < 0 else body[at : at + length].decode())
            at += max(length, 0)
        return values
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"no row of Postgres: {error}") from None


class MessageReader:
    """Reads messages, and never a byte beyond the one that is read."""

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        """`receive` returns some bytes, at most as many as is said, and none at the end.

        It may raise BlockingIOError; the next call goes on.
        """
        self._receive = receive
        self._read = b""

    def next(self) -> Message:
        """The next message. Raises BlockingIOError while it hasn't arrived, EOFError, and ValueError for none."""
        self._fill(_header.size)
        kind, length = _header.unpack_from(self._read)
        if not _length.size <= length <= LONGEST_BYTES:
            raise ValueError(f"no message of Postgres: {length} bytes")
        self._fill(1 + length)
        body, self._read = self._read[_header.size :], b""
        return Message(kind, body)

    def _fill(self, size: int) -> None:
        while len(self._read) < size:
            received = self._receive(size - len(self._read))
            if not received:
                raise EOFError
            self._read += received
