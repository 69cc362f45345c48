"""The optional HTTP port: `/metrics` for Prometheus, `/health`, `/ready` and `/live` for whoever runs the server, and
`/hudi/commits` for the commit callback of Hudi's writers.

Probes are answered to everybody. Who sends another request is found out first, and a worker then decides about it as
about a call of Thrift.

The standard library's server is enough: few small answers to a few known clients, by default on the loopback
interface (prometheus-client's own exporter is the same server). It runs in a process of its own, so that it
answers while every worker is busy, and asks as a client would.
"""

import contextlib
import http.server
import io
import json
import os
import re
import select
import signal
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
from thrift.Thrift import TApplicationException, TException

from lake.protocol.lake import EventGroup
from metastore.server.connection.connection import address
from metastore.server.credentials.fair_threads import shared_address
from metastore.server.credentials.http_credentials import ACTOR_HEADER, Ambiguous
from metastore.server.credentials.identity import Denied, Identity, TooMany, Unavailable
from metastore.server.login.http import RETRY_AFTER
from metastore.server.login.passing_on import PassedOn
from metastore.server.monitoring import metrics
from metastore.server.web import hudi_callback
from metastore.server.web.request_logins import RequestLogins, request_logins
from metastore.server.web.worker_client import worker_client
from metastore.settings import Settings

MOST_CONNECTIONS = 1_000
"""Connections at the same time, each with a thread. Further ones are closed at once."""

MOST_OF_ADDRESS = 250
"""The same of one address: probes come from others."""

_PROBE_SECONDS = 5.0
_GROUPS_SECONDS = 2.0  # how long a worker may take to list the groups, and how long its answer is used
_ANSWER_SECONDS = 10.0  # how long a client may take none of its answer
_DISCARD_SECONDS = 1.0
_TLS = 0x16  # the first byte of a handshake
_HEAD_END = re.compile(rb"\r?\n\r?\n")

log = structlog.get_logger(__name__)


def run(listener: socket.socket, settings: Settings, *, parent_alive: int, on_ready: Callable[[], None]) -> int:
    """Serve `listener` until the supervisor is gone (end of file on `parent_alive`); the exit code.

    SIGTERM says that the server is draining: from then on it is not ready, but still answers.
    """
    draining = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: draining.set())
    # A signal that another thread receives, or that comes just before a blocking read, interrupts nothing. It does
    # arrive at this pipe.
    signal_read, signal_write = os.pipe()
    for end in (signal_read, signal_write):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(signal_write, warn_on_full_buffer=False)
    logins = request_logins(settings)
    server = _Server(listener, settings, logins, draining)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    on_ready()
    while parent_alive not in select.select([parent_alive, signal_read], [], [])[0]:
        os.read(signal_read, 4096)
    if logins is not None and logins.audit_log is not None:
        logins.audit_log.close()
    return 0


class _Server(http.server.ThreadingHTTPServer):
    """Takes plain connections and, with a certificate, those within TLS: the first byte tells which."""

    def __init__(
        self, listener: socket.socket, settings: Settings, logins: RequestLogins | None, draining: threading.Event
    ) -> None:
        handler = partial(_Handler, settings, logins, _EventGroups(settings), draining)
        super().__init__(listener.getsockname()[:2], handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._tls = None if logins is None else logins.tls
        self._seconds = settings.login_timeout_seconds
        self._open: Counter[str] = Counter()  # connections by address
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        place = shared_address(address(client_address))
        with self._lock:
            free = self._open.total() < MOST_CONNECTIONS and self._open[place] < MOST_OF_ADDRESS
            if free:
                self._open[place] += 1
        if free:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            place = shared_address(address(client_address))
            with self._lock:
                self._open[place] -= 1
                if not self._open[place]:
                    del self._open[place]

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(self._seconds)
        with contextlib.suppress(TimeoutError, ConnectionError):
            first = request.recv(1, socket.MSG_PEEK) if self._tls is not None else b""
            if self._tls is None or first != bytes([_TLS]):
                super().finish_request(request, client_address)
                return
            try:
                with self._tls.context.wrap_socket(request, server_side=True) as encrypted:
                    super().finish_request(encrypted, client_address)
            except ssl.SSLError as error:
                log.warning("connection closed", peer=address(client_address), reason="tls", detail=str(error.reason))

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.exception("a request to the HTTP port failed")


class _Refused(Exception):
    """A request is answered with a status and a line of text, and nothing else is done."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Handler(http.server.BaseHTTPRequestHandler):
    """One connection, with one request."""

    server_version = "metastore"
    sys_version = ""

    def __init__(
        self,
        settings: Settings,
        logins: RequestLogins | None,
        groups: "_EventGroups",
        draining: threading.Event,
        *args: Any,
    ) -> None:
        self._settings = settings
        self._logins = logins
        self._groups = groups
        self._draining = draining
        super().__init__(*args)

    def handle(self) -> None:
        self.requestline, self.request_version, self.command = "", "HTTP/1.0", ""
        self.close_connection = True
        self._rest = b""
        try:
            head = self._head(time.monotonic() + self._settings.login_timeout_seconds)
        except _Refused as refused:
            self._say(refused.status, str(refused))
            return
        except TimeoutError:
            return
        self.connection.settimeout(_ANSWER_SECONDS)
        self.rfile = io.BufferedReader(io.BytesIO(head))
        self.handle_one_request()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(self._metrics)
        elif path == "/live":
            self._report(_trouble(self._settings, "aliveSince"))
        elif path == "/health":
            self._report(_trouble(self._settings, "getStatus"))
        elif path == "/ready":
            draining = "the server is stopping" if self._draining.is_set() else None
            self._report(draining or _trouble(self._settings, "getStatus"))
        else:
            self._say(404, "there are /metrics, /health, /ready and /live")

    do_HEAD = do_GET  # noqa: N815 - http.server looks for this name

    def do_POST(self) -> None:
        if self.path.partition("?")[0] == hudi_callback.PATH:
            self._answer(self._hudi_commit)
        else:
            self._say(404, "nothing is taken here")

    def _answer(self, what: Callable[[], None]) -> None:
        try:
            what()
        except _Refused as refused:
            self._discard()
            self._say(refused.status, str(refused))
        except TimeoutError:
            self._say(408, "the request doesn't come to its end")

    def _metrics(self) -> None:
        if self._settings.metrics_anonymous:
            groups = self._groups.now()
        else:
            groups = _groups_of(self._settings, self._caller())
        counts, media_type = metrics.exposition()
        if groups is not None:
            counts += metrics.groups_exposition(groups)
        self._reply(200, counts, media_type)

    def _hudi_commit(self) -> None:
        caller = self._caller()
        if caller.identity is None:
            self._ask_for_key()
        length = self._length
        if length is None:
            raise _Refused(411, "say how long the body is")
        if length > hudi_callback.MAX_BYTES:
            raise _Refused(413, f"at most {hudi_callback.MAX_BYTES:,} bytes are read")
        self._say(*hudi_callback.answer(self._body(length), self._settings, caller))

    def _ask_for_key(self) -> None:
        """Who has proven nothing needs the key. Raises _Refused."""
        key = self._settings.hudi_callback_key
        if key is None:
            raise _Refused(404, "nothing is taken here")
        if not hudi_callback.is_key(self.headers.get(hudi_callback.KEY_HEADER), key):
            raise _Refused(401, f"give the key that the server knows, as {hudi_callback.KEY_HEADER}")

    # -- who sends it -----------------------------------------------------------------------------------------

    def _caller(self) -> PassedOn:
        """Who sends the request. Raises _Refused."""
        peer = address(self.client_address)
        return PassedOn(self._identity(self._logins, peer), peer)

    def _identity(self, logins: RequestLogins | None, peer: str) -> Identity | None:
        if logins is None:
            return None
        encrypted = isinstance(self.connection, ssl.SSLSocket)
        certificate: Any = self.connection.getpeercert() if isinstance(self.connection, ssl.SSLSocket) else None
        try:
            return logins.sender(
                self.headers.get_all("Authorization", []),
                self.headers.get_all(ACTOR_HEADER, []),
                certificate,
                encrypted=encrypted,
                peer=peer,
                half_closed=self._is_half_closed,
            )
        except Ambiguous as denied:
            raise _Refused(400, str(denied)) from None
        except TooMany as denied:
            raise _Refused(429, str(denied)) from None
        except Unavailable as denied:
            raise _Refused(503, str(denied)) from None
        except Denied as denied:
            raise _Refused(401, str(denied)) from None

    def _is_half_closed(self) -> bool:
        """Whether the client has closed the connection, or its side of it."""
        looked = select.poll()
        looked.register(self.connection, select.POLLRDHUP)
        return bool(looked.poll(0))

    # -- bytes ------------------------------------------------------------------------------------------------

    def _head(self, deadline: float) -> bytes:
        """The first line and the headers; what came behind them is kept. Raises _Refused, TimeoutError."""
        limit = int(self._settings.login_max_bytes)
        received, looked = bytearray(), 0
        while (end := _HEAD_END.search(received, max(looked - 3, 0))) is None:
            if len(received) >= limit:
                raise _Refused(431, f"the request's headers have more than {limit} bytes (login_max_bytes)")
            looked = len(received)
            received += self._receive(limit - looked, deadline)
        self._rest = bytes(received[end.end() :])
        return bytes(received[: end.end()])

    @property
    def _length(self) -> int | None:
        """Of the body, in bytes; None if the request doesn't say. Of a number with very many digits the first ones."""
        text = self.headers.get("Content-Length", "")
        return int(text[:18]) if text.isascii() and text.isdecimal() else None

    def _body(self, length: int) -> bytes:
        """Raises _Refused, TimeoutError."""
        deadline = time.monotonic() + (self._settings.receive_timeout_seconds or 3_600)
        received = bytearray(self._rest[:length])
        while len(received) < length:
            received += self._receive(length - len(received), deadline)
        self.connection.settimeout(_ANSWER_SECONDS)
        return bytes(received)

    def _discard(self) -> None:
        """Reads a little of a body that nobody wants: a client that is reset while it sends gets to read no answer."""
        deadline = time.monotonic() + _DISCARD_SECONDS
        left = min(self._length or 0, int(self._settings.login_max_bytes)) - len(self._rest)
        with contextlib.suppress(_Refused, OSError):  # TimeoutError is one
            while left > 0:
                left -= len(self._receive(left, deadline))
        self.connection.settimeout(_ANSWER_SECONDS)

    def _receive(self, size: int, deadline: float) -> bytes:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        piece: bytes = self.connection.recv(min(size, 64 << 10))
        if not piece:
            raise _Refused(400, "the request ends too early")
        return piece

    def _report(self, trouble: str | None) -> None:
        report = {"status": "failing", "reason": trouble} if trouble else {"status": "ok"}
        self._reply(503 if trouble else 200, json.dumps(report).encode() + b"\n", "application/json")

    def _say(self, status: int, text: str) -> None:
        self._reply(status, text.encode() + b"\n", "text/plain; charset=utf-8")

    def _reply(self, status: int, body: bytes, media_type: str) -> None:
        with contextlib.suppress(OSError):  # the client left
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            if status == 429:
                for name, value in RETRY_AFTER.items():
                    self.send_header(name.title(), value)
            if status == 401 and self._logins is not None:
                for challenge in self._logins.challenges:
                    self.send_header("WWW-Authenticate", challenge)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Probes come every few seconds: not worth a log line."""


def _trouble(settings: Settings, method: str) -> str | None:
    """Why the server can't serve; None if a worker answers a method, by which it may look at the database, too."""
    try:
        with worker_client(settings, timeout=_PROBE_SECONDS) as client:
            client.call(method)
    except TApplicationException as error:
        return error.message or "the worker fails"
    except (OSError, TException) as error:
        return f"no worker answers: {error}"
    return None


def _groups_of(settings: Settings, caller: PassedOn) -> list[EventGroup] | None:
    """Groups as a caller may see them; None if it may not, or no worker answers in time."""
    try:
        with worker_client(settings, timeout=_GROUPS_SECONDS, on_behalf_of=caller) as client:
            groups: list[EventGroup] = client.call("lake_event_groups")
            return groups
    except (OSError, TException):
        return None


class _EventGroups:
    """Groups of subscribers and outlets, as a worker lists them. It is asked once in `_GROUPS_SECONDS` at most."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._known: list[EventGroup] | None = None
        self._until = 0.0  # by time.monotonic()

    def now(self) -> list[EventGroup] | None:
        """None if no worker answers in time: the other metrics are shown without them."""
        with self._lock:
            if time.monotonic() >= self._until:
                try:
                    with worker_client(self._settings, timeout=_GROUPS_SECONDS) as client:
                        self._known = client.call("lake_event_groups")
                except (OSError, TException):
                    self._known = None
                self._until = time.monotonic() + _GROUPS_SECONDS
            return self._known
