"""What lies between a connection and its transport, and translates in both directions."""

import asyncio

from metastore.server.connection.connection import Channel, Connection


class Layer(asyncio.Protocol):
    """To what is below it is the protocol, to the connection it is the transport. By itself it changes nothing.

    Event loop only. Several may lie upon one another: SASL within TLS.
    """

    def __init__(self, connection: Connection) -> None:
        """Lies down between the connection and what it wrote to so far."""
        self.connection = connection
        self.below: Channel = connection.transport
        self.above: asyncio.Protocol = connection
        self.below.set_protocol(self)
        connection.transport = self

    def remove(self) -> None:
        """The connection writes to what is below again. Only for the topmost layer."""
        self.below.set_protocol(self.connection)
        self.connection.transport = self.below

    # -- called from below ------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self.above.data_received(data)

    def eof_received(self) -> bool | None:
        return self.above.eof_received()

    def pause_writing(self) -> None:
        self.above.pause_writing()

    def resume_writing(self) -> None:
        self.above.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.above.connection_lost(exc)

    # -- called from above ------------------------------------------------------------------------------------

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self.above = protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.below.write(data)

    def write_eof(self) -> None:
        self.below.write_eof()

    def pause_reading(self) -> None:
        self.below.pause_reading()

    def resume_reading(self) -> None:
        self.below.resume_reading()

    def close(self) -> None:
        self.below.close()

    def abort(self) -> None:
        self.below.abort()
