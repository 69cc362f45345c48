"""What the HTTP port answers: `/metrics` for Prometheus, `/health`, `/ready` and `/live` for whoever runs the server,
`/hudi/commits` for the commit callback of Hudi's writers, and `/iceberg` for Iceberg's REST catalog.

Probes are answered to everybody. Who sends another request is found out first, and a worker then decides about it as
about a call of Thrift. Handlers are plain functions, which Starlette calls in threads.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import lru_cache

import anyio
import structlog
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from thrift.Thrift import TApplicationException, TException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException
from lake.protocol.lake import EventGroup
from metastore.federation.routing import CATALOG, ONLY
from metastore.iceberg.credentials import Sts, Vending
from metastore.iceberg.errors import WORKER_ERRORS, RestError, of_worker
from metastore.iceberg.routes import Front, Port, iceberg_routes
from metastore.server.login.passing_on import PassedOn
from metastore.server.monitoring import metrics
from metastore.server.web import hudi_callback
from metastore.server.web.kept_connections import KEPT_SECONDS, KeptConnections
from metastore.server.web.request_logins import RequestLogins
from metastore.server.web.requests import Context, Refused, body, caller, challenges, head_limit, refusal
from metastore.server.web.worker_client import WorkerClient, worker_client
from metastore.settings import Settings
from metastore.warehouse import Warehouse

PROBES_AT_ONCE = 16
"""Probes that wait for a worker at the same time. They don't wait for the threads of other requests."""

_PIECE_BYTES = 64 << 10  # of a response
_PROBE_SECONDS = 5.0
_CALL_SECONDS = 120.0  # how long a worker may take for one call of Iceberg's catalog
_GROUPS_SECONDS = 2.0  # how long a worker may take to list the groups, and how long its answer is used

Roots = Callable[[], Sequence[str]]
"""Directories, as of now."""

log = structlog.get_logger(__name__)


def application(
    settings: Settings, logins: RequestLogins | None, draining: threading.Event, roots: Roots | None = None
) -> Starlette:
    """The HTTP port's application. `draining`: whether the server is stopping; `logins`: None if everybody may come in.

    `roots`: below which directories a front of other metastores reads and writes Iceberg's metadata; None for a server
    of its own tables.

    A connection's `requests.Client` has to be in the state of each request, as `client`.
    """
    handlers = _Handlers(settings, draining)
    found = Starlette(
        routes=[
            Route("/metrics", handlers.metrics),
            Route("/live", handlers.live),
            Route("/health", handlers.health),
            Route("/ready", handlers.ready),
            Route(hudi_callback.PATH, _hudi_commit, methods=["POST"]),
            *(_iceberg(settings, roots) if settings.iceberg_rest else []),
        ],
        middleware=[Middleware(_Entrance, settings=settings, logins=logins, draining=draining)],
        exception_handlers={Refused: refusal, HTTPException: _not_here, Exception: _failed},
    )
    found.router.redirect_slashes = False
    return found


class _Entrance:
    """Looks at each request's head, and tells the handlers what they need to know."""

    def __init__(
        self, app: ASGIApp, settings: Settings, logins: RequestLogins | None, draining: threading.Event
    ) -> None:
        self._app = app
        self._settings = settings
        self._logins = logins
        self._draining = draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [(b"date", _date(int(time.time())))]
                if self._draining.is_set():
                    more.append((b"connection", b"close"))
                message["headers"] = [*message["headers"], *more]
            # Each piece waits until the client has taken most of those before.
            whole, start = message.get("body", b""), 0
            while len(whole) - start > _PIECE_BYTES:
                await send({**message, "body": whole[start : start + _PIECE_BYTES], "more_body": True})
                start += _PIECE_BYTES
                await asyncio.sleep(0)  # others take their turn, and the end of the connection is noticed
            await send({**message, "body": whole[start:]} if start else message)

        scope["state"]["context"] = Context(self._settings, self._logins, scope["state"]["client"])
        app = self._refusal(scope["headers"]) or self._app
        await app(scope, receive, completed)

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> Response | None:
        close = {"Connection": "close"}
        if sum(len(name) + len(value) for name, value in headers) > self._settings.login_max_bytes:
            return PlainTextResponse(f"{head_limit(self._settings)}\n", 431, close)
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in headers}:
            return PlainTextResponse("the request says twice how long its body is\n", 400, close)
        return None


@lru_cache(1)
def _date(seconds: int) -> bytes:
    return formatdate(seconds, usegmt=True).encode()


class _Handlers:
    def __init__(self, settings: Settings, draining: threading.Event) -> None:
        self._settings = settings
        self._draining = draining
        self._groups = _EventGroups(settings)
        self._probes = anyio.CapacityLimiter(PROBES_AT_ONCE)

    def metrics(self, request: Request) -> Response:
        if self._settings.metrics_anonymous:
            groups = self._groups.now()
        else:
            groups = _groups_of(self._settings, caller(request))
        counts, media_type = metrics.exposition()
        if groups is not None:
            counts += metrics.groups_exposition(groups)
        return Response(counts, headers={"Content-Type": media_type})

    async def live(self, request: Request) -> Response:
        return await self._probe("aliveSince")

    async def health(self, request: Request) -> Response:
        return await self._probe("getStatus")

    async def ready(self, request: Request) -> Response:
        return _report("the server is stopping") if self._draining.is_set() else await self._probe("getStatus")

    async def _probe(self, method: str) -> Response:
        return _report(await to_thread.run_sync(_trouble, self._settings, method, limiter=self._probes))


def _hudi_commit(request: Request) -> Response:
    sender = caller(request)
    settings: Settings = request.state.context.settings
    if sender.identity is None:  # who has proven nothing needs the key
        key = settings.hudi_callback_key
        if key is None:
            raise Refused(404, "nothing is taken here")
        if not hudi_callback.is_key(request.headers.get(hudi_callback.KEY_HEADER), key):
            text = f"give the key that the server knows, as {hudi_callback.KEY_HEADER}"
            raise Refused(401, text, challenges(request))
    status, text = hudi_callback.answer(body(request, hudi_callback.MAX_BYTES), settings, sender)
    return PlainTextResponse(f"{text}\n", status)


def _iceberg(settings: Settings, roots: Roots | None) -> list[Route]:
    def connect(sender: PassedOn) -> WorkerClient:
        return worker_client(settings, timeout=_CALL_SECONDS, on_behalf_of=sender)

    # Before a worker ends connections that are idle.
    kept = KeptConnections(connect, min(KEPT_SECONDS, settings.idle_timeout_seconds / 2 or KEPT_SECONDS))
    warehouse = Warehouse(settings.warehouse_dir, settings.warehouse_external_dir, delete_roots=settings.delete_roots)
    port = Port(caller, kept.connection, body, Refused)
    front = None if roots is None else Front(roots, _enter)
    return iceberg_routes(port, warehouse, _vending(settings), expose=settings.iceberg_expose, front=front)


def _enter(client: ThriftClient, warehouse: str | None) -> tuple[str, str]:
    """Has a worker of a front show one backend alone over a connection; its key, and its databases' catalog."""
    try:
        client.setMetaConf(ONLY, warehouse or "")
        return client.getMetaConf(ONLY), client.getMetaConf(CATALOG)
    except MetaException as error:
        raise RestError(404, "NotFoundException", str(error.message)) from None
    except WORKER_ERRORS as error:
        raise of_worker(error, changes=False) from error


def _vending(settings: Settings) -> Vending | None:
    """None if no credentials are to be given. Raises UserError if what gets them can't be used."""
    if settings.iceberg_credentials_role is None:
        return None
    sts = Sts(
        settings.iceberg_credentials_role,
        settings.iceberg_credentials_endpoint,
        settings.iceberg_credentials_region,
        settings.iceberg_credentials_seconds,
    )
    return Vending.of(sts)


async def _not_here(request: Request, error: Exception) -> Response:
    if request.method == "POST":
        return await refusal(request, Refused(404, "nothing is taken here"))
    return await refusal(request, Refused(404, "there are /metrics, /health, /ready and /live"))


async def _failed(request: Request, error: Exception) -> Response:
    log.error("a request to the HTTP port failed", path=request.url.path, exc_info=error)
    return PlainTextResponse("the server failed to answer: its log says why\n", 500)


def _report(trouble: str | None) -> Response:
    report = {"status": "failing", "reason": trouble} if trouble else {"status": "ok"}
    return Response(f"{json.dumps(report)}\n", 503 if trouble else 200, media_type="application/json")


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


def _groups_of(settings: Settings, sender: PassedOn | None) -> list[EventGroup] | None:
    """Groups of subscribers and outlets as a sender may see them, by default all; None if no worker lists them."""
    try:
        with worker_client(settings, timeout=_GROUPS_SECONDS, on_behalf_of=sender) as client:
            groups: list[EventGroup] = client.call("lake_event_groups")
            return groups
    except (OSError, TException):
        return None


class _EventGroups:
    """All groups, as a worker lists them. It is asked once in `_GROUPS_SECONDS` at most."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._known: list[EventGroup] | None = None
        self._until = 0.0  # by time.monotonic()

    def now(self) -> list[EventGroup] | None:
        """None if no worker answers in time: the other metrics are shown without them."""
        with self._lock:
            if time.monotonic() >= self._until:
                self._known = _groups_of(self._settings, None)
                self._until = time.monotonic() + _GROUPS_SECONDS
            return self._known
