"""The service's HTTP port: `/metrics` for Prometheus, `/ready` for whoever runs it, and the hook of Hudi's writers."""

import json
import socket
import threading
from collections.abc import Callable

import anyio
import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from lake.maintenance import metrics
from lake.maintenance.writer_hook import PREFIX
from lake.protocol.connection.http_server import uvicorn_config

PROBES_AT_ONCE = 8
"""Probes that wait for the metastore at the same time. Nothing else waits behind them."""

_REQUEST_SECONDS = 10
_CLOSE_SECONDS = 2


class HttpPort:
    """Answers from its start until `close`."""

    def __init__(
        self, host: str, port: int, trouble: Callable[[], str | None], accept: Callable[[str], None] | None
    ) -> None:
        """`trouble`: why the service isn't ready; None if it is. `accept`: takes in what a writer hands over, by the
        path and query; raises ValueError. None: nothing is taken in. Raises OSError if the port can't be had."""
        self._listener = socket.create_server((host, port))
        config = uvicorn_config(
            _application(trouble, accept),
            _REQUEST_SECONDS,
            log_level="error",  # what clients do wrong is answered to them
            headers=[("Server", "metastore-table-services")],
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self.address = "http://{}:{}".format(*self._listener.getsockname())
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(_CLOSE_SECONDS)


def _application(trouble: Callable[[], str | None], accept: Callable[[str], None] | None) -> Starlette:
    async def show_metrics(request: Request) -> Response:
        return Response(metrics.exposition(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def ready(request: Request) -> Response:
        found = await to_thread.run_sync(trouble, limiter=probes)
        report = {"status": "failing", "reason": found} if found else {"status": "ok"}
        return Response(f"{json.dumps(report)}\n", 503 if found else 200, media_type="application/json")

    async def take_over(request: Request) -> Response:
        if accept is None:
            return PlainTextResponse("this service takes nothing over from writers (--writer-hook)\n", 403)
        if request.method != "GET":
            return await not_here(request, ValueError())
        try:
            accept(f"{request.url.path}?{request.url.query}")
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 400)
        return Response(b"true\n", media_type="application/json")

    async def not_here(request: Request, error: Exception) -> Response:
        return PlainTextResponse("there are /metrics, /health and /ready\n", 404)

    probes = anyio.CapacityLimiter(PROBES_AT_ONCE)
    return Starlette(
        routes=[
            Route("/metrics", show_metrics),
            Route("/ready", ready),
            Route("/health", ready),
            Route(PREFIX + "{service:path}", take_over),
        ],
        exception_handlers={404: not_here},
    )
