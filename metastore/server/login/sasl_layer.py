"""The frames that follow a login by SASL: four bytes of length and a payload, perhaps a protected one."""

import asyncio

from lake.protocol.codec.protocols import SMALL_BYTES
from lake.protocol.sasl.messages import FRAME_HEADER_BYTES
from lake.protocol.sasl.protection import BadMessage, Protection
from metastore.server.connection.connection import Connection
from metastore.server.connection.receiving import Receiving, WaitingForMemory
from metastore.server.login.layer import Layer

_FRAME_BYTES = (1 << 31) - 1
_PROTECTION_BYTES = 1 << 10
"""By how much a protected message may be longer than what it protects."""


class SaslLayer(Layer):
    """Frames of four bytes of length and a payload. Those that arrive are read as one stream, and kept nowhere."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._header = bytearray()
        self._left = 0  # bytes of the frame that is arriving

    def data_received(self, data: bytes) -> None:
        if (
            not self._left
            and not self._header
            and int.from_bytes(data[:FRAME_HEADER_BYTES]) == len(data) - FRAME_HEADER_BYTES > 0
        ):
            self.above.data_received(data[FRAME_HEADER_BYTES:])  # one frame and nothing else, as most calls are
            return
        pieces = []
        at = 0
        while at < len(data):
            if not self._left:
                wanted = FRAME_HEADER_BYTES - len(self._header)
                self._header += data[at : at + wanted]
                at += wanted
                if len(self._header) < FRAME_HEADER_BYTES:
                    break
                self._left = int.from_bytes(self._header)
                self._header.clear()
                if self._left > _FRAME_BYTES:
                    self.connection.close_for("message_size", f"a frame of SASL with {self._left} bytes")
                    return
            else:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
        if pieces:
            self.above.data_received(b"".join(pieces))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if size := len(data):
            self.below.write(b"".join((size.to_bytes(FRAME_HEADER_BYTES), data)))


class ProtectedLayer(Layer):
    """Frames whose payloads are wrapped: they are read as a whole, for only then can they be checked.

    Thrift's clients send each call as one frame, however long. So while one arrives, its memory is reserved and its
    time is limited as that of a call.
    """

    def __init__(self, connection: Connection, protection: Protection) -> None:
        super().__init__(connection)
        self._protection = protection
        self._longest = connection.context.limits.message_bytes + _PROTECTION_BYTES
        self._buffer = bytearray()
        self._timer: asyncio.TimerHandle | None = None  # from the first byte of a frame that isn't complete

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        pieces = []
        try:
            while (frame := self._take()) is not None:
                pieces.append(self._protection.unwrap(frame))
        except BadMessage as error:
            self.connection.close_for("login", f"a protected message can't be read: {error}")
            return
        if pieces:
            self._stop_timer()
            self.above.data_received(b"".join(pieces))
        if self._buffer and not self.connection.gone:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(data)
        size = self._protection.max_bytes
        try:
            wrapped = [self._protection.wrap(rest[at : at + size]) for at in range(0, len(rest), size)]
        except BadMessage as error:
            self.connection.close_for("login", f"nothing can be protected any more: {error}")
            return
        if wrapped:
            self.below.write(
                b"".join(part for each in wrapped for part in (len(each).to_bytes(FRAME_HEADER_BYTES), each))
            )

    def _take(self) -> bytes | None:
        """The next frame's payload, if it has arrived completely."""
        if len(self._buffer) < FRAME_HEADER_BYTES:
            return None
        length = int.from_bytes(self._buffer[:FRAME_HEADER_BYTES])
        if length > self._longest:
            detail = f"a protected frame with {length} bytes; {self._longest} are allowed (max_message_bytes)"
            self.connection.close_for("message_size", detail)
            self._buffer.clear()
            return None
        end = FRAME_HEADER_BYTES + length
        if len(self._buffer) < end:
            return None
        frame = bytes(memoryview(self._buffer)[FRAME_HEADER_BYTES:end])
        del self._buffer[:end]
        return frame

    def _wait(self) -> None:
        """For the rest of a frame."""
        connection = self.connection
        context = connection.context
        if self._timer is None and (limit := context.timeouts.receive):
            detail = f"the client doesn't finish its message within {limit:g} s"
            self._timer = context.loop.call_later(limit, connection.close_for, "receive_timeout", detail)
        if len(self._buffer) <= SMALL_BYTES:
            return
        if not isinstance(connection.state, Receiving):
            connection.pause_reading()  # until the call before it is answered
        elif not connection.take_memory(len(self._buffer)):
            connection.become(WaitingForMemory(connection, None))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
