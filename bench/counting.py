"""A relay before Postgres that counts what goes through: messages, and bytes each way."""

import asyncio
import threading
from dataclasses import dataclass

_ASKS = {ord("Q"), ord("S")}  # a simple query, or the Sync that ends extended ones: each waits for its answer
_HEADER = 5  # a message's type and its length, which counts itself and not the type


@dataclass
class Counts:
    """Since the relay was made; `sent` to Postgres, `received` from it, in bytes."""

    round_trips: int = 0
    sent: int = 0
    received: int = 0


class CountingRelay:
    """Listens on a free port of the loopback interface and passes on to another one; without TLS."""

    def __init__(self, host: str, port: int) -> None:
        self.counts = Counts()
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection(*self._target)
        answers = asyncio.ensure_future(self._answers(there, writer))
        try:
            length = await reader.readexactly(4)  # the first message has no type
            here.write(length + await reader.readexactly(int.from_bytes(length) - 4))
            while True:
                header = await reader.readexactly(_HEADER)
                body = await reader.readexactly(int.from_bytes(header[1:]) - 4)
                self.counts.round_trips += header[0] in _ASKS
                self.counts.sent += len(header) + len(body)
                here.write(header + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            here.close()
            await answers

    async def _answers(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await there.read(1 << 16):
                self.counts.received += len(piece)
                writer.write(piece)
        except ConnectionError:
            pass
        writer.close()
