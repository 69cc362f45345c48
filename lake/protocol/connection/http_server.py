"""HTTP/1.1 for servers: uvicorn's protocol, with bounds on the time that a client may take."""

import asyncio
import socket
import sys
from http import HTTPStatus
from typing import Any

import h11
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

ANSWER_SECONDS = 10
"""How long a client may take none of its answer. Then the connection is cut."""


def uvicorn_config(app: ASGIApp, head_seconds: float, **further: Any) -> Config:
    """How uvicorn serves an application by `HttpProtocol`, without a log of accesses.

    `head_seconds`: how long the head of a request may take. `further`: settings of uvicorn's.
    """
    return Config(
        app,
        http=HttpProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_keep_alive=head_seconds,  # type: ignore[arg-type]
        **further,
    )


class HttpProtocol(H11Protocol):
    """A connection. Requests may follow one another.

    The head of a request has to be complete within `Config.timeout_keep_alive` seconds after the connection began, or
    after the last response. A client that closes its side for sending still gets the answer to its request.
    """

    deadline: float | None = None
    """When the first head has to be complete, by the loop's clock."""

    head_limit = "the request's headers are too long"
    """What a client reads that sends a longer head than `Config.h11_max_incomplete_event_size`."""

    half_closed = False
    """Whether the client sends no more."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if sys.platform == "linux":
            client = transport.get_extra_info("socket")
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, ANSWER_SECONDS * 1000)
        deadline = self.deadline or self.loop.time() + self.timeout_keep_alive
        self.timeout_keep_alive_task = self.loop.call_at(deadline, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        self.half_closed = True
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        # uvicorn's own method stops the clock at the first byte of a head.
        self.conn.receive_data(data)
        self.handle_events()

    def eof_received(self) -> bool:  # type: ignore[override]
        self.half_closed = True
        if not self._answering or self.cycle.more_body or self.scheme == "https":
            return False  # within TLS nothing can be sent any more
        self.cycle.keep_alive = False
        return True

    def timeout_keep_alive_handler(self) -> None:
        if not self._answering:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """Answers what is no HTTP with the status that h11's error names, and closes the connection."""
        error = sys.exc_info()[1]
        status = HTTPStatus(getattr(error, "error_status_hint", 400))
        if self._answering:
            self.cycle.disconnected = True
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            text = self.head_limit if status == 431 else f"this is no HTTP request: {error}"
            body = b"" if self._answering and self.scope["method"] == "HEAD" else f"{text}\n".encode()
            headers = [("Content-Type", "text/plain; charset=utf-8"), ("Connection", "close")]
            response = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete
