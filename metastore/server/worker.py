"""A worker process: an event loop for its connections, a few threads for their requests."""

import asyncio
import contextlib
import errno
import gc
import itertools
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from eventbus import sequencer
from eventbus.notices import Notices
from metastore import api
from metastore.api.registry import HANDLERS
from metastore.cache.shared import SharedLevel
from metastore.server import metrics
from metastore.server.connection import Connection, Connections, News, Shared, Timeouts
from metastore.server.dispatch import Dispatcher
from metastore.server.duties import Duties, Duty
from metastore.server.replies import Replies
from metastore.server.threads import ThreadPool
from metastore.services import Metastore
from metastore.settings import Settings
from metastore.store import cache_changes
from metastore.store.duties import DutyLock
from metastore.wire.scanner import Limits

# How long a thread that computes may keep the event loop, and with it every other client, waiting.
_SWITCH_SECONDS = 0.001
# New objects after which the collector looks for garbage. Decoding a large message makes a hundred thousand that
# all stay; with Python's own 700, looking at them again and again takes as long as the decoding.
_NEW_OBJECTS = 10_000
_OUT_OF_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_ACCEPT_PAUSE_SECONDS = 1.0  # when the system has no room for a connection
_REFUSAL_LOG_SECONDS = 10.0
_DRAIN_LOOK_SECONDS = 0.05

log = structlog.get_logger(__name__)


def run(
    listeners: list[socket.socket],
    settings: Settings,
    *,
    worker_id: int,
    parent_alive: int,
    on_ready: Callable[[], None],
) -> int:
    """A worker's whole life; see `supervisor.WorkerFunction`."""
    api.load()
    metastore = Metastore.open(settings, open_connections=metrics.open_connections)
    duties = _duties(metastore, settings) if worker_id == 0 else None  # one candidate of each server
    if duties is not None:
        duties.start()
    metastore.sequencer.start()
    try:
        dispatcher = Dispatcher(HANDLERS, metastore)
        assert settings.database_url is not None
        notices = Notices(settings.database_url)
        worker = Worker(
            listeners,
            settings,
            dispatcher,
            Connections(),
            worker_id=worker_id,
            notices=notices,
            replies=_replies(metastore, settings),
        )
        worker.run(parent_alive, on_ready)
    finally:
        if duties is not None:
            duties.stop()
        metastore.sequencer.stop()
        metastore.close()
    return 0


def _duties(metastore: Metastore, settings: Settings) -> Duties:
    assert settings.database_url is not None
    return Duties(
        DutyLock(settings.database_url, f"{socket.gethostname()}:{settings.port}"),
        [
            Duty("housekeeping", metastore.housekeeping.run, settings.housekeeping_seconds),
            Duty("readiness", metastore.readiness.commit_due_everywhere, settings.readiness_seconds),
            Duty("sequencer", metastore.sequencer.catch_up, sequencer.LOOK_SECONDS),
        ],
    )


def _replies(metastore: Metastore, settings: Settings) -> Replies | None:
    if not settings.cache_memory:
        return None
    assert settings.database_url is not None
    shared = None
    if settings.cache_redis_url is not None:
        shared = SharedLevel(settings.cache_redis_url, keep_seconds=cache_changes.KEEP_SECONDS)
    return Replies(settings.database_url, settings.cache_memory, shared, metastore.change_notes.begin)


class Worker:
    """Accepts connections from sockets that other workers share, and serves them until told to stop."""

    def __init__(
        self,
        listeners: list[socket.socket],
        settings: Settings,
        dispatcher: Dispatcher,
        connections: Connections,
        *,
        worker_id: int,
        notices: Notices | None = None,
        replies: Replies | None = None,
    ) -> None:
        """`notices` tells of new events, for which long polls wait; `replies` are those that are kept."""
        self._notices = notices
        self._replies = replies
        self._listeners = listeners
        self._settings = settings
        self._dispatcher = dispatcher
        self._connections = connections
        self._worker_id = worker_id
        self._opening: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count()
        self._draining = False
        self._refused = 0  # since the last log line about it
        self._refusals_silent_until = 0.0

    def run(self, parent_alive: int, on_ready: Callable[[], None]) -> None:
        """Serves until SIGTERM, or until `parent_alive`, an end of a pipe, is at end of file."""
        sys.setswitchinterval(_SWITCH_SECONDS)
        gc.freeze()
        gc.set_threshold(_NEW_OBJECTS)
        asyncio.run(self._serve(parent_alive, on_ready))

    async def _serve(self, parent_alive: int, on_ready: Callable[[], None]) -> None:
        settings = self._settings
        loop = self._loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_unexpected)
        threads = ThreadPool(settings.threads)
        self._shared = Shared(
            loop=loop,
            dispatcher=self._dispatcher,
            threads=threads,
            connections=self._connections,
            limits=Limits(
                message_bytes=settings.max_message_bytes,
                string_bytes=settings.max_string_bytes,
                container_items=settings.max_container_items,
                depth=settings.max_depth,
            ),
            timeouts=Timeouts(
                receive=settings.receive_timeout_seconds,
                write=settings.write_timeout_seconds,
                idle=settings.idle_timeout_seconds,
            ),
            news=News(loop, threads),
            replies=self._replies,
        )
        if self._replies is not None:
            self._replies.start(threads)
        if self._notices is not None:
            self._notices.start(self._tell_news, partial(self._tell_news, everybody=True))
        stop = asyncio.Event()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the supervisor decides
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        loop.add_reader(parent_alive, stop.set)
        for listener in self._listeners:
            listener.setblocking(False)
            self._listen(listener)
        if settings.idle_timeout_seconds:
            self._close_idle(settings.idle_timeout_seconds)
        on_ready()
        await stop.wait()
        loop.remove_reader(parent_alive)
        if self._notices is not None:
            self._notices.stop()
        await self._drain()
        if self._replies is not None:
            self._replies.stop()

    def _tell_news(self, everybody: bool = False) -> None:
        """In the notices' thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._shared.news.tell, everybody)

    def _close_idle(self, seconds: float) -> None:
        for connection in self._connections:
            connection.close_if_idle(self._loop.time() - seconds)
        self._loop.call_later(max(seconds / 10, 0.1), self._close_idle, seconds)

    # -- accepting -------------------------------------------------------------------------------------------

    def _listen(self, listener: socket.socket) -> None:
        if not self._draining:
            self._loop.add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        """Takes one connection: those that wait behind it are for whichever worker is ready first."""
        try:
            client, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in _OUT_OF_ROOM:
                raise
            self._note_refusal(f"the system has no room for more: {error.strerror}")
            self._loop.remove_reader(listener)
            self._loop.call_later(_ACCEPT_PAUSE_SECONDS, self._listen, listener)
            return
        if len(self._connections) >= self._settings.max_connections:
            client.close()
            self._note_refusal(f"there are max_connections ({self._settings.max_connections}) already")
            return
        connection = Connection(
            f"{self._worker_id}-{next(self._numbers)}",
            self._shared,
            include_uncommitted=listener.getsockname()[1] == self._settings.uncommitted_port,
        )
        self._connections.add(connection)  # which takes itself out when it ends
        task = self._loop.create_task(self._open(connection, client))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _open(self, connection: Connection, client: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: connection, client)
        except OSError as error:
            self._connections.remove(connection)
            client.close()
            log.warning("connection closed", reason="not_opened", detail=str(error))

    def _note_refusal(self, reason: str) -> None:
        """At most one line in some seconds, however many connections come."""
        self._refused += 1
        now = self._loop.time()
        if now >= self._refusals_silent_until:
            log.warning("connections refused", count=self._refused, reason=reason)
            self._refused = 0
            self._refusals_silent_until = now + _REFUSAL_LOG_SECONDS

    # -- end -------------------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Ends idle connections at once, the others after their reply; none outlives `drain_seconds`."""
        self._draining = True
        for listener in self._listeners:
            self._loop.remove_reader(listener)
            listener.close()  # once all workers have, clients are refused instead of kept waiting
        await asyncio.gather(*self._opening, return_exceptions=True)
        for connection in self._connections:
            connection.drain()
        deadline = self._loop.time() + self._settings.drain_seconds
        while len(self._connections) and self._loop.time() < deadline:
            await asyncio.sleep(_DRAIN_LOOK_SECONDS)
        for connection in self._connections:
            connection.abort()
        await asyncio.sleep(0)  # asyncio tells the connections in its next round


def _log_unexpected(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    log.error("unexpected error in the event loop", message=context["message"], exc_info=error)
