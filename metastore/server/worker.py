"""A worker process: an event loop for its connections, and threads that answer their requests."""

import asyncio
import contextlib
import errno
import gc
import itertools
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from eventbus.log import sequencer
from eventbus.log.listener import Notices
from lake.protocol.codec.scanner import Limits
from metastore import api
from metastore.api.methods import HANDLERS
from metastore.api.rights.guard import Guard
from metastore.cache.shared import SharedLevel
from metastore.server.connection.connection import Connection
from metastore.server.connection.context import Timeouts, WorkerContext
from metastore.server.connection.event_notifier import EventNotifier
from metastore.server.connection.open_connections import Connections
from metastore.server.credentials import certificates
from metastore.server.credentials import logins as credentials
from metastore.server.credentials.identity import Identity
from metastore.server.credentials.logins import Logins, Tokens
from metastore.server.credentials.password_file import password_version
from metastore.server.dispatch import Dispatcher
from metastore.server.foreign_clients import ForeignClients
from metastore.server.iceberg_names import IcebergNames
from metastore.server.leader_tasks import LeaderTask, LeaderTasks
from metastore.server.login.detecting import open_connection
from metastore.server.memory_budget import MemoryBudget
from metastore.server.monitoring import audit, metrics
from metastore.server.monitoring.audit import AuditLog
from metastore.server.replies import Replies
from metastore.server.threads import ThreadPool
from metastore.services.access.rights import Authorizer
from metastore.services.maintenance import file_deletions
from metastore.services.table_services import queue
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from metastore.store.cache import cache_changes
from metastore.store.engine.leader_lock import LeaderLock

# How long a busy thread may hold up the event loop, and with it all clients.
_SWITCH_SECONDS = 0.001
# The garbage collector's first threshold. A large message decodes to a hundred thousand objects that all live; with
# Python's 700, the collector's runs take as long as the decoding.
_NEW_OBJECTS = 10_000
_OUT_OF_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_ACCEPT_PAUSE_SECONDS = 1.0  # when the system has no room for a connection
_REFUSAL_LOG_SECONDS = 10.0
_COUNT_SECONDS = 5.0  # between counts of pending work
_QUEUE_LOOK_SECONDS = 1.0
_AUTHORIZATION_LOOK_SECONDS = 1.0
_REVOKED_LOOK_SECONDS = 2.0
_TALLY_SECONDS = 0.5
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
    """Runs a worker until it is stopped; see `supervisor.WorkerFunction`."""
    api.load()
    metastore = Metastore.open(
        settings,
        open_connections=metrics.open_connections,
        pool_waited=metrics.database_pool_waited,
        password_version=password_version(settings.password_file),
    )
    leader_tasks = _leader_tasks(metastore, settings) if worker_id == 0 else None  # one candidate of each server
    if leader_tasks is not None:
        leader_tasks.start()
    metastore.sequencer.start()
    audits: AuditLog | None = None
    try:
        control = metastore.access_control
        guard = None if control is None else Guard(control)
        if control is not None:
            watch = partial(watch_authorization, control.authorizer)
            threading.Thread(target=watch, name="authorization", daemon=True).start()
        audits = audit.audit_log(settings)
        dispatcher = Dispatcher(HANDLERS, metastore, guard, audits)
        dispatcher.as_iceberg = IcebergNames(dispatcher, settings).show
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
            tokens=metastore.issued_tokens,
        )
        worker.run(parent_alive, on_ready)
    finally:
        if leader_tasks is not None:
            leader_tasks.stop()
        if audits is not None:
            audits.close()
        metastore.sequencer.stop()
        metastore.close()
    return 0


def _leader_tasks(metastore: Metastore, settings: Settings) -> LeaderTasks:
    assert settings.database_url is not None
    return LeaderTasks(
        LeaderLock(settings.database_url, f"{socket.gethostname()}:{settings.port}"),
        [
            LeaderTask("housekeeping", metastore.housekeeping.run, settings.housekeeping_seconds),
            LeaderTask("readiness", partial(_commit_due, metastore), settings.readiness_seconds),
            LeaderTask("file deletions", metastore.file_deletions.run, file_deletions.SECONDS),
            LeaderTask("lost jobs of table services", metastore.job_queue.sweep, queue.SWEEP_SECONDS),
            LeaderTask("counting pending work", partial(_count_pending_work, metastore), _COUNT_SECONDS),
            LeaderTask("sequencer", metastore.sequencer.catch_up, sequencer.LOOK_SECONDS),
        ],
    )


def watch_authorization(authorizer: Authorizer) -> None:
    """Shows whether rights are what the operator has written last, and has changed policies read without a call."""
    while True:
        metrics.authorization_in_trouble(authorizer.trouble() is not None)
        time.sleep(_AUTHORIZATION_LOOK_SECONDS)


def _commit_due(metastore: Metastore) -> None:
    backlog = metastore.readiness.commit_due_everywhere()
    metrics.readiness_backlog(backlog.watermark_age / 1000, backlog.overdue)


def _count_pending_work(metastore: Metastore) -> None:
    counts = metastore.pending_work.counts()
    metrics.files_to_delete(counts.files, counts.undeletable)
    metrics.pending_files(counts.moves, counts.publications)


def _replies(metastore: Metastore, settings: Settings) -> Replies | None:
    if not settings.cache_memory:
        return None
    assert settings.database_url is not None
    shared = None
    if settings.cache_redis_url is not None:
        shared = SharedLevel(settings.cache_redis_url, keep_seconds=cache_changes.KEEP_SECONDS)
    return Replies(settings.database_url, settings.cache_memory, shared, metastore.change_notes.begin)


class Worker:
    """Accepts connections from sockets that the workers share, and serves them until SIGTERM."""

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
        tokens: Tokens | None = None,
    ) -> None:
        """`notices` reports new events, for which long polls wait; `replies` is the cache; `tokens` issues tokens."""
        self._tokens = tokens
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
        logins = Logins(settings, self._tokens) if credentials.needed(settings) else None
        self._context = WorkerContext(
            loop=loop,
            dispatcher=self._dispatcher,
            threads=threads,
            connections=self._connections,
            limits=Limits(
                message_bytes=settings.max_message_bytes,
                string_bytes=settings.max_string_bytes,
                container_items=settings.max_container_items,
                memory=settings.max_request_memory,
                depth=settings.max_depth,
            ),
            timeouts=Timeouts(
                receive=settings.receive_timeout_seconds,
                write=settings.write_timeout_seconds,
                idle=settings.idle_timeout_seconds,
            ),
            event_notifier=EventNotifier(loop, threads),
            memory=MemoryBudget(settings.max_request_memory),
            foreign_clients=ForeignClients(),
            tally=metrics.Tally(),
            replies=self._replies,
            logins=logins,
        )
        if logins is not None:
            logins.start(self._dispatcher.audit_log)
            self._look_at_certificates(logins)
            self._look_at_revoked(logins)
        audit_log = self._dispatcher.audit_log
        if audit_log is not None:
            audit_log.gather(loop.call_later)
        if self._replies is not None:
            self._replies.start(threads)
        if self._notices is not None:
            self._notices.start(self._notify, partial(self._notify, everybody=True))
        stop = asyncio.Event()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the supervisor decides
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        loop.add_reader(parent_alive, stop.set)
        for listener in self._listeners:
            listener.setblocking(False)
            self._listen(listener)
        if settings.idle_timeout_seconds:
            self._close_idle(settings.idle_timeout_seconds)
        self._count_queued()
        self._show_tally()
        on_ready()
        await stop.wait()
        loop.remove_reader(parent_alive)
        if self._notices is not None:
            self._notices.stop()
        await self._drain()
        if audit_log is not None:
            audit_log.write_gathered()
        self._context.tally.show()
        if self._replies is not None:
            self._replies.stop()

    def _notify(self, everybody: bool = False) -> None:
        """New events. In the thread of `Notices`."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._context.event_notifier.notify, everybody)

    def _close_idle(self, seconds: float) -> None:
        for connection in self._connections:
            connection.close_if_idle(self._loop.time() - seconds)
        self._loop.call_later(max(seconds / 10, 0.1), self._close_idle, seconds)

    def _look_at_certificates(self, logins: Logins) -> None:
        if logins.tls is not None:
            self._context.threads.submit(logins.tls.look)
            self._loop.call_later(certificates.LOOK_SECONDS, self._look_at_certificates, logins)

    def _look_at_revoked(self, logins: Logins) -> None:
        """Ends the connections of those who may not come in any more, every few seconds."""
        identities = {each.identity for each in self._connections if each.identity is not None}
        depending = [each for each in identities if each.passwords or each.token is not None]
        if depending:
            self._context.threads.submit(partial(self._find_revoked, logins, depending))
        else:
            self._loop.call_later(_REVOKED_LOOK_SECONDS, self._look_at_revoked, logins)

    def _find_revoked(self, logins: Logins, identities: list[Identity]) -> None:
        """In a thread."""
        found: dict[Identity, str] = {}
        try:
            found = logins.revoked(identities)
        except Exception:
            log.exception("it can't be found out who may not come in any more")
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._end_revoked, logins, found)

    def _end_revoked(self, logins: Logins, found: dict[Identity, str]) -> None:
        for connection in self._connections:
            if connection.identity is not None and (detail := found.get(connection.identity)):
                connection.revoke(detail)
        self._loop.call_later(_REVOKED_LOOK_SECONDS, self._look_at_revoked, logins)

    def _count_queued(self) -> None:
        logins = self._context.logins
        metrics.requests_queued(
            for_thread=self._context.threads.waiting,
            for_memory=self._context.memory.waiting,
            for_login=0 if logins is None else logins.waiting,
        )
        self._loop.call_later(_QUEUE_LOOK_SECONDS, self._count_queued)

    def _show_tally(self) -> None:
        self._context.tally.show()
        self._loop.call_later(_TALLY_SECONDS, self._show_tally)

    # -- accepting -------------------------------------------------------------------------------------------

    def _listen(self, listener: socket.socket) -> None:
        if not self._draining:
            self._loop.add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        """Accepts one connection. Those that wait behind it go to whichever worker is ready first."""
        try:
            client, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in _OUT_OF_ROOM:
                raise
            self._log_refusal(f"the system has no room for more: {error.strerror}")
            self._loop.remove_reader(listener)
            self._loop.call_later(_ACCEPT_PAUSE_SECONDS, self._listen, listener)
            return
        if len(self._connections) >= self._settings.max_connections:
            client.close()
            self._log_refusal(f"there are max_connections ({self._settings.max_connections}) already")
            return
        connection = open_connection(
            f"{self._worker_id}-{next(self._numbers)}",
            self._context,
            include_uncommitted=listener.getsockname()[1] == self._settings.uncommitted_port,
        )
        self._connections.add(connection)  # it removes itself when it ends
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

    def _log_refusal(self, reason: str) -> None:
        """Logs refused connections, at most one line in `_REFUSAL_LOG_SECONDS`."""
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
            listener.close()  # once all workers have done so, new clients are refused and needn't wait
        await asyncio.gather(*self._opening, return_exceptions=True)
        for connection in self._connections:
            connection.drain()
        deadline = self._loop.time() + self._settings.drain_seconds
        while len(self._connections) and self._loop.time() < deadline:
            await asyncio.sleep(_DRAIN_LOOK_SECONDS)
        for connection in self._connections:
            connection.abort()
        await asyncio.sleep(0)  # asyncio calls their `connection_lost` in the next turn of the loop


def _log_unexpected(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    log.error("unexpected error in the event loop", message=context["message"], exc_info=error)
