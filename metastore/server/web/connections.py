"""The connections of the HTTP port: accepted, bounded, plain or within TLS, and each given to uvicorn's HTTP/1.1."""

import asyncio
import socket
import ssl
from collections import Counter
from functools import partial
from typing import Any

import structlog
from anyio import to_thread
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.server import ServerState

from lake.protocol.connection.http_server import HttpProtocol, uvicorn_config
from metastore.server.connection.connection import address
from metastore.server.credentials.certificates import CertificateFiles
from metastore.server.credentials.fair_threads import shared_address
from metastore.server.web.requests import Client, head_limit
from metastore.settings import Settings

MOST_CONNECTIONS = 1_000
"""Connections at the same time. Further ones are closed at once."""

MOST_OF_ADDRESS = 250
"""The same of one address: probes come from others."""

MOST_AT_ONCE = 500
"""Requests that threads work on at the same time. Further ones wait. One address can't have all of them."""

_FINISH_SECONDS = 0.5  # the supervisor waits for a second
_PAUSE_SECONDS = 1.0  # when the system has no room for a connection
_TLS = b"\x16"  # the first byte of a handshake
_TLS_SHUTDOWN_SECONDS = 30.0  # for the end of a response, and for the client's own goodbye

log = structlog.get_logger(__name__)


class Port:
    """Gives an application the requests of the connections that it accepts. Event loop only."""

    def __init__(self, app: ASGIApp, settings: Settings, tls: CertificateFiles | None) -> None:
        """`tls`: for the connections that begin with TLS; None: it is not spoken."""
        self._config = uvicorn_config(
            app,
            settings.login_timeout_seconds,
            log_level="critical",  # what clients do wrong is answered to them
            h11_max_incomplete_event_size=int(settings.login_max_bytes),
        )
        self._config.load()
        self._state = ServerState()
        self._state.default_headers = [(b"server", b"metastore")]
        self._head_limit = head_limit(settings)
        self._tls = tls
        self._open: Counter[str] = Counter()  # connections by address
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, listener: socket.socket) -> None:
        """Accepts connections until it is cancelled."""
        loop = asyncio.get_running_loop()
        to_thread.current_default_thread_limiter().total_tokens = MOST_AT_ONCE
        listener.setblocking(False)
        while True:
            try:
                client, found = await loop.sock_accept(listener)
            except ConnectionAbortedError:
                continue
            except OSError as error:
                log.warning("the HTTP port takes no connection", reason=error.strerror)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            peer = address(found)
            place = shared_address(peer)
            if self._open.total() >= MOST_CONNECTIONS or self._open[place] >= MOST_OF_ADDRESS:
                client.close()
                continue
            # A response's body follows its head in a second write, which would wait for an acknowledgement otherwise.
            # asyncio sets this only for connections of listeners that it made itself.
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._open[place] += 1
            task = loop.create_task(self._connect(client, peer))
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, place))

    def drain(self) -> None:
        """Ends connections that wait for another request, and the others after their response."""
        for each in list(self._state.connections):
            if each.cycle is not None:  # type: ignore[union-attr]
                each.shutdown()

    async def finish(self) -> None:
        """Gives requests that are being answered a moment to end."""
        self.drain()
        if self._state.tasks:
            await asyncio.wait(self._state.tasks, timeout=_FINISH_SECONDS)

    def _ended(self, place: str, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._open[place] -= 1
        if not self._open[place]:
            del self._open[place]

    async def _connect(self, client: socket.socket, peer: str) -> None:
        """Opens a connection, and returns when it has ended."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.timeout_keep_alive
        try:
            async with asyncio.timeout_at(deadline):
                tls = await self._encryption(client)
        except OSError:  # TimeoutError is one
            client.close()
            return
        options: dict[str, Any] = {"ssl": tls, "ssl_shutdown_timeout": _TLS_SHUTDOWN_SECONDS} if tls else {}
        protocol = _Protocol(self._config, self._state, peer, deadline)
        protocol.head_limit = self._head_limit
        try:
            async with asyncio.timeout_at(deadline):
                await loop.connect_accepted_socket(lambda: protocol, client, **options)
        except ssl.SSLError as error:
            log.warning("connection closed", peer=peer, reason="tls", detail=str(error.reason))
        except OSError:
            pass
        else:
            await protocol.ended.wait()

    async def _encryption(self, client: socket.socket) -> ssl.SSLContext | None:
        """What a connection is encrypted with, by its first byte. Raises OSError."""
        if self._tls is None:
            return None
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(client, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(client)
        return self._tls.context if client.recv(1, socket.MSG_PEEK) == _TLS else None


class _Protocol(HttpProtocol):
    """Tells the handlers of requests who is at the other end, in `request.state.client`."""

    def __init__(self, config: Config, state: ServerState, peer: str, deadline: float) -> None:
        super().__init__(config, state, {})
        self.deadline = deadline
        self.ended = asyncio.Event()
        self._peer = peer

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        certificate = transport.get_extra_info("peercert")
        encrypted = self.scheme == "https"
        self.app_state["client"] = Client(self._peer, certificate, encrypted, lambda: self.half_closed)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.ended.set()
