"""The optional HTTP port: `/metrics` for Prometheus, `/health` and `/ready` for whoever runs the server, and, where it
is switched on, `/hudi/commits` for the commit callback of Hudi's writers.

The standard library's server is enough: few small answers to a few known clients, by default on the loopback
interface (prometheus-client's own exporter is the same server). It runs in a process of its own, so that it
answers while every worker is busy, and asks as a client would.
"""

import contextlib
import http.server
import json
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from thrift.Thrift import TException

from metastore.server import hudi_callback, metrics
from metastore.server.worker_client import worker_client
from metastore.settings import Settings
from metastore.wire.generated.fb303_types import fb_status
from metastore.wire.lake import EventGroup

_PROBE_SECONDS = 5.0
_GROUPS_SECONDS = 2.0  # how long a worker may take to list the groups, and how long its answer is used
_REQUEST_SECONDS = 10.0


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
    server = http.server.ThreadingHTTPServer(
        listener.getsockname()[:2],
        partial(_Handler, settings, _EventGroups(settings), draining),
        bind_and_activate=False,
    )
    server.socket.close()
    server.socket = listener
    threading.Thread(target=server.serve_forever, daemon=True).start()
    on_ready()
    while parent_alive not in select.select([parent_alive, signal_read], [], [])[0]:
        os.read(signal_read, 4096)
    return 0


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = _REQUEST_SECONDS
    server_version = "metastore"
    sys_version = ""

    def __init__(self, settings: Settings, groups: "_EventGroups", draining: threading.Event, *args: Any) -> None:
        self._settings = settings
        self._groups = groups
        self._draining = draining
        super().__init__(*args)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            counts, media_type = metrics.exposition()
            groups = self._groups.now()
            if groups is not None:
                counts += metrics.groups_exposition(groups)
            self._reply(200, counts, media_type)
        elif path == "/health":
            self._report(_trouble(self._settings, with_database=True))
        elif path == "/ready":
            draining = "the server is stopping" if self._draining.is_set() else None
            self._report(draining or _trouble(self._settings, with_database=False))
        else:
            self._say(404, "there are /metrics, /health and /ready")

    do_HEAD = do_GET  # noqa: N815 - http.server looks for this name

    def do_POST(self) -> None:
        if self.path.partition("?")[0] != hudi_callback.PATH or self._settings.hudi_callback_key is None:
            self._say(404, "nothing is taken here")
        elif not hudi_callback.is_key(self.headers.get(hudi_callback.KEY_HEADER), self._settings.hudi_callback_key):
            self._say(401, f"give the key that the server knows, as {hudi_callback.KEY_HEADER}")
        elif not (length := self.headers.get("Content-Length", "")).isdecimal():
            self._say(411, "say how long the body is")
        elif int(length) > hudi_callback.MAX_BYTES:
            self._say(413, f"at most {hudi_callback.MAX_BYTES:,} bytes are read")
        else:
            self._say(*hudi_callback.answer(self.rfile.read(int(length)), self._settings))

    def _report(self, trouble: str | None) -> None:
        report = {"status": "failing", "reason": trouble} if trouble else {"status": "ok"}
        self._reply(503 if trouble else 200, json.dumps(report).encode() + b"\n", "application/json")

    def _say(self, status: int, text: str) -> None:
        self._reply(status, text.encode() + b"\n", "text/plain")

    def _reply(self, status: int, body: bytes, media_type: str) -> None:
        with contextlib.suppress(OSError):  # the client left
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Probes come every few seconds: not worth a log line."""


def _trouble(settings: Settings, *, with_database: bool) -> str | None:
    """Why the server can't serve; None if a worker, and the database if asked for, answers."""
    doing = "no worker answers"
    try:
        with worker_client(settings, timeout=_PROBE_SECONDS) as client:
            if (status := client.call("getStatus")) != fb_status.ALIVE:
                return f"the worker's status is {status}"
            if with_database:
                doing = "the database doesn't answer"
                client.call("getOption", "schema.revision")
    except (OSError, TException) as error:
        return f"{doing}: {error}"
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
