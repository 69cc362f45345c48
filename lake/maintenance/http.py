"""The service's HTTP port: `/metrics` for Prometheus, `/ready` for whoever runs it, and the hook of Hudi's writers."""

import contextlib
import http.server
import json
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from lake.maintenance import metrics
from lake.maintenance.writer_hook import PREFIX

_REQUEST_SECONDS = 10.0


class HttpPort:
    """Answers from its start until `close`."""

    def __init__(
        self, host: str, port: int, trouble: Callable[[], str | None], accept: Callable[[str], None] | None
    ) -> None:
        """`trouble`: why the service isn't ready; None if it is. `accept`: takes in what a writer hands over, by the
        path and query; raises ValueError. None: nothing is taken in. Raises OSError if the port can't be had."""
        self._server = http.server.ThreadingHTTPServer((host, port), partial(_Handler, trouble, accept))
        self._server.daemon_threads = True
        self.address = f"http://{self._server.server_address[0]!s}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, name="http", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = _REQUEST_SECONDS
    server_version = "metastore-table-services"
    sys_version = ""

    def __init__(self, trouble: Callable[[], str | None], accept: Callable[[str], None] | None, *args: Any) -> None:
        self._trouble = trouble
        self._accept = accept
        super().__init__(*args)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._reply(200, metrics.exposition(), "text/plain; version=0.0.4; charset=utf-8")
        elif path in ("/ready", "/health"):
            trouble = self._trouble()
            report = {"status": "failing", "reason": trouble} if trouble else {"status": "ok"}
            self._reply(503 if trouble else 200, json.dumps(report).encode() + b"\n", "application/json")
        elif path.startswith(PREFIX) and self._accept is None:
            self._reply(403, b"this service takes nothing over from writers (--writer-hook)\n", "text/plain")
        elif path.startswith(PREFIX) and self.command == "GET" and self._accept is not None:
            try:
                self._accept(self.path)
            except ValueError as error:
                self._reply(400, f"{error}\n".encode(), "text/plain")
            else:
                self._reply(200, b"true\n", "application/json")
        else:
            self._reply(404, b"there are /metrics, /health and /ready\n", "text/plain")

    do_HEAD = do_GET  # noqa: N815 - http.server looks for this name

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
