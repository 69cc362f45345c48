"""The parent of a server's processes.

It owns what a server has once: the lock on the data directory, the listening sockets, the embedded Postgres. It
upgrades the schema, forks the workers, replaces those that die, and stops everything in order. It has one thread and no
database connection, so that a fork copies neither.
"""

import contextlib
import errno
import gc
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn, Protocol

import structlog

from lake.protocol.errors import UserError
from lake.protocol.logging import name_process
from metastore.server import outlets
from metastore.server.credentials import logins
from metastore.server.data_directory import DataDirectory
from metastore.server.embedded_postgres import EmbeddedPostgres, PostgresError
from metastore.server.monitoring import metrics
from metastore.server.monitoring.metrics_directory import MetricsDirectory
from metastore.server.web import http
from metastore.settings import Settings
from metastore.store import DatabaseUnavailable

START_SECONDS = 60.0
"""How long the workers may take to become ready after the schema's upgrade."""

_ATTEMPTS = 3  # of a process that ends before the server was ever ready
_STABLE_SECONDS = 5.0  # a process that lived this long wasn't broken from the start
_LONGEST_PAUSE = 30.0
_KILL_AFTER = 5.0  # past the time that draining may take
_BACKLOG = 1024
_OTHER_FILES = 512  # open files of a worker besides its clients' connections
_CONNECTIONS_BESIDE_POOL = 3  # of a worker: the cache's polls, its lease, and notices of events
_OTHER_DATABASE_CONNECTIONS = 20  # commands, probes, those reserved for superusers
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_READY, _FAILURE = b"R", b"E"  # what a child writes to its pipe; text follows the second

log = structlog.get_logger(__name__)


class StartupError(UserError):
    """The server can't start."""


class WorkerFunction(Protocol):
    """Runs a worker in a process of its own, and returns its exit code.

    The worker serves `listeners` until SIGTERM. Then it accepts nothing more, and finishes its requests within
    `settings.drain_seconds`. At end of file of `parent_alive` the supervisor is gone, and the worker ends, too.
    `settings` are complete: `database_url` is set, `port` is the port that is bound. SIGINT and SIGHUP are ignored: a
    terminal sends them to every process, and the supervisor decides.
    """

    def __call__(
        self,
        listeners: list[socket.socket],
        settings: Settings,
        *,
        worker_id: int,
        parent_alive: int,
        on_ready: Callable[[], None],
    ) -> int: ...


class _StopRequested(Exception):
    """A signal to stop came while the server was starting."""


# Gets a function to call when it is ready, returns the exit code.
_Target = Callable[[Callable[[], None]], int]


@dataclass(eq=False)
class _Child:
    """A forked process. `status` is its exit status, minus the signal's number, or None while it runs."""

    name: str
    pid: int
    pipe: int
    started: float = field(default_factory=time.monotonic)
    received: bytes = b""
    status: int | None = None

    @property
    def ready(self) -> bool:
        return self.status is None and self.received.startswith(_READY)

    @property
    def end(self) -> str:
        """How it ended, in words."""
        reason = self.received.removeprefix(_READY).removeprefix(_FAILURE).decode(errors="replace")
        return reason or ("still running" if self.status is None else _status_text(self.status))


@dataclass(eq=False)
class _Restarts:
    """When a process that ended is started again: at once, then after pauses that double."""

    early_ends: int = 0
    due: float = 0.0

    def ended_after(self, seconds: float) -> None:
        self.early_ends = 0 if seconds >= _STABLE_SECONDS else self.early_ends + 1
        pause = min(_LONGEST_PAUSE, 0.1 * 2**self.early_ends) if self.early_ends else 0.0
        self.due = time.monotonic() + pause


@dataclass(eq=False)
class _Role:
    """A process that is started again whenever it ends."""

    name: str
    target: _Target
    child: _Child | None = None
    restarts: _Restarts = field(default_factory=_Restarts)

    @property
    def ready(self) -> bool:
        return self.child is not None and self.child.ready


class Supervisor:
    """One server, from its first file to its last process. `run` may be called once, in the main thread."""

    def __init__(
        self,
        settings: Settings,
        *,
        worker: WorkerFunction,
        migrate: Callable[[str], None] | None,
        roots: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        """`migrate` brings the database at a URL up to date; it runs in a process of its own. A UserError
        that it raises ends the server with that message. None: the server has no database. `roots`: below which
        directories a front of other metastores reads and writes Iceberg's metadata; None for other servers."""
        self._roots = roots
        self._settings = settings
        self._worker = worker
        self._migrate = migrate
        self._directory = DataDirectory(settings.data_dir)
        self._metrics = MetricsDirectory(settings.data_dir / "run" / "metrics")
        self._postgres: EmbeddedPostgres | None = None
        self._postgres_started = 0.0
        self._postgres_restarts = _Restarts()
        self._listeners: list[socket.socket] = []
        self._http_listener: socket.socket | None = None
        self._workers: list[_Role] = []
        self._outlets: list[_Role] = []
        self._http: _Role | None = None
        self._children: set[_Child] = set()
        self._stop_signals = 0
        self._started = False
        self._selector = selectors.DefaultSelector()
        self._wakeup_read, self._wakeup_write = os.pipe()
        # Its write end is open in this process alone: the kernel closes it however this process ends.
        self._alive_read, self._alive_write = os.pipe()

    def run(self) -> int:
        """Serve until a signal to stop, and return the exit code. Raises UserError if the server can't start."""
        self._watch_signals()
        self._directory.lock(wait_seconds=self._settings.drain_seconds + _KILL_AFTER)
        try:
            try:
                self._start()
            except _StopRequested:
                return self._stop()
            self._started = True
            log.info("ready", uri=self._uri, workers=len(self._workers))
            with contextlib.suppress(OSError):  # nobody has to read it
                print(f"metastore ready {self._uri}", flush=True)
                if self._settings.uncommitted_port is not None:
                    where = _address(self._settings.host, self._settings.uncommitted_port)
                    print(f"uncommitted partitions included: thrift://{where}", flush=True)
            while not self._stop_signals:
                self._attend()
            return self._stop()
        finally:
            self._end_everything()

    # -- start -----------------------------------------------------------------------------------------------

    def _start(self) -> None:
        settings = self._settings
        metrics.start(self._metrics.make())
        logins.check_files(settings)
        self._listeners = [_listen(settings.host, settings.port)]
        found = {"port": self._listeners[0].getsockname()[1]}
        if settings.uncommitted_port is not None:
            self._listeners.append(_listen(settings.host, settings.uncommitted_port))
            found["uncommitted_port"] = self._listeners[1].getsockname()[1]
        if settings.http_port is not None:
            self._http_listener = _listen(settings.http_host, settings.http_port)
            found["http_port"] = self._http_listener.getsockname()[1]
        self._settings = settings = settings.model_copy(update=found)
        self._directory.describe_owner(self._uri)
        if (exposure := settings.exposure) is not None:
            log.warning("THE SERVER IS OPEN TO EVERYBODY", detail=exposure)
        _allow_open_files(settings.max_connections + _OTHER_FILES)
        if self._migrate is not None:
            if settings.database_url is None:
                url = self._start_postgres()
                self._settings = settings = settings.model_copy(update={"database_url": url})
            self._upgrade_schema(self._migrate)

        # What was imported so far is shared by all workers; a collector's run in one would copy it.
        gc.collect()
        gc.freeze()
        self._workers = [_Role(f"worker-{i}", self._worker_target(i)) for i in range(settings.workers)]
        self._outlets = [_Role(f"outlet-{name}", self._outlet_target(name)) for name in outlets.names(settings)]
        if self._http_listener is not None:
            self._http = _Role("http", self._http_target(self._http_listener))
            log.info("http", uri=f"http://{_address(settings.http_host, found['http_port'])}")
        deadline = time.monotonic() + START_SECONDS
        while not all(role.ready for role in self._roles):
            if time.monotonic() > deadline:
                silent = ", ".join(role.name for role in self._roles if not role.ready)
                raise StartupError(f"not ready after {START_SECONDS:g} s: {silent}")
            self._attend(deadline)
            self._stop_if_requested()

    def _start_postgres(self) -> str:
        settings = self._settings
        connections = (
            settings.workers * (settings.database_pool_size + _CONNECTIONS_BESIDE_POOL)
            + len(outlets.names(settings)) * outlets.DATABASE_CONNECTIONS
            + _OTHER_DATABASE_CONNECTIONS
        )
        self._postgres = EmbeddedPostgres(settings.data_dir, max_connections=connections)
        self._postgres_started = time.monotonic()
        return self._postgres.start(while_waiting=self._stop_if_requested)

    def _upgrade_schema(self, migrate: Callable[[str], None]) -> None:
        def upgrade(on_ready: Callable[[], None]) -> int:
            assert self._settings.database_url is not None
            migrate(self._settings.database_url)
            return 0

        child = self._fork("migration", upgrade)
        while child.status is None:
            self._wait(None)
            self._stop_if_requested()
        if child.status != 0:
            raise StartupError(child.end)

    def _worker_target(self, worker_id: int) -> _Target:
        def target(on_ready: Callable[[], None]) -> int:
            if self._http_listener is not None:
                self._http_listener.close()
            return self._worker(
                self._listeners,
                self._settings,
                worker_id=worker_id,
                parent_alive=self._alive_read,
                on_ready=on_ready,
            )

        return target

    def _outlet_target(self, name: str) -> _Target:
        def target(on_ready: Callable[[], None]) -> int:
            for listener in (*self._listeners, *filter(None, [self._http_listener])):
                listener.close()
            return outlets.run(name, self._settings, parent_alive=self._alive_read, on_ready=on_ready)

        return target

    def _http_target(self, listener: socket.socket) -> _Target:
        def target(on_ready: Callable[[], None]) -> int:
            for other in self._listeners:
                other.close()
            return http.run(
                listener, self._settings, parent_alive=self._alive_read, on_ready=on_ready, roots=self._roots
            )

        return target

    @property
    def _uri(self) -> str:
        return f"thrift://{_address(self._settings.host, self._settings.port)}"

    # -- life ------------------------------------------------------------------------------------------------

    @property
    def _roles(self) -> list[_Role]:
        return [*self._workers, *self._outlets, *([self._http] if self._http else [])]

    def _attend(self, deadline: float | None = None) -> None:
        """Start processes that are due, then wait for the next event and handle the processes that ended."""
        now = time.monotonic()
        for role in self._roles:
            if role.child is None and role.restarts.due <= now:
                role.child = self._fork(role.name, role.target)
        pauses = [role.restarts.due for role in self._roles if role.child is None]
        if self._postgres is not None and self._postgres.exit_status() is not None:
            if self._postgres_restarts.due <= now:
                self._restart_postgres(self._postgres)
            else:
                pauses.append(self._postgres_restarts.due)
        self._wait(min(pauses, default=deadline))
        self._handle_ends()

    def _handle_ends(self) -> None:
        for role in self._roles:
            if role.child is None or role.child.status is None:
                continue
            child, role.child = role.child, None
            seconds = time.monotonic() - child.started
            role.restarts.ended_after(seconds)
            metrics.process_restarted("http" if role is self._http else "outlet" if role in self._outlets else "worker")
            log.error(
                "process ended",
                name=child.name,
                pid=child.pid,
                reason=child.end,
                seconds=round(seconds, 1),
            )
            if not self._started and role.restarts.early_ends >= _ATTEMPTS:
                raise StartupError(f"{role.name} doesn't become ready: {child.end}")
        postgres = self._postgres
        if postgres is not None and (status := postgres.exit_status()) is not None and self._postgres_started:
            self._postgres_restarts.ended_after(time.monotonic() - self._postgres_started)
            self._postgres_started = 0.0  # this end is handled
            log.error("the embedded Postgres ended", status=_status_text(status))

    def _restart_postgres(self, postgres: EmbeddedPostgres) -> None:
        self._postgres_started = time.monotonic()
        try:
            postgres.spawn()
            log.info("started the embedded Postgres again")
        except PostgresError as error:
            log.error("can't start the embedded Postgres again", error=str(error))

    def _wait(self, until: float | None) -> None:
        """Wait for a signal, a message or the end of a child, at most until a moment of the monotonic
        clock."""
        timeout = None if until is None else max(0.0, until - time.monotonic())
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                os.read(self._wakeup_read, 4096)
            else:
                self._listen_to(key.data)
        for child in [child for child in self._children if child.status is None]:
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._listen_to(child)
                child.status = os.waitstatus_to_exitcode(status)
                self._forget(child)

    def _listen_to(self, child: _Child) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(child.pipe, 4096):
                child.received += data
            # End of file. The child may live on for a moment, and a pipe at its end would be readable for
            # ever.
            with contextlib.suppress(KeyError):
                self._selector.unregister(child.pipe)

    def _forget(self, child: _Child) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(child.pipe)
        os.close(child.pipe)
        self._children.discard(child)
        metrics.process_ended(child.pid)

    # -- end -------------------------------------------------------------------------------------------------

    def _stop(self) -> int:
        """Let the workers finish their requests. Returns 0, or 1 if workers had to be killed."""
        signals = self._stop_signals  # one that comes after the line in the log is the second
        log.info("stopping", drain_seconds=self._settings.drain_seconds)
        for listener in self._listeners:
            listener.close()
        deadline = time.monotonic() + self._settings.drain_seconds + _KILL_AFTER
        http_child = self._http.child if self._http else None
        self._signal_children(signal.SIGTERM)
        while remaining := [child for child in self._children if child is not http_child]:
            if self._stop_signals > signals or time.monotonic() > deadline:
                log.warning("killing processes that still work", names=[child.name for child in remaining])
                return 1
            self._wait(deadline)
        return 0

    def _end_everything(self) -> None:
        """End all that still runs, each before what it needs."""
        os.close(self._alive_write)  # the HTTP process ends by itself
        http_child = self._http.child if self._http else None
        deadline = time.monotonic() + 1
        while self._children == {http_child} and time.monotonic() < deadline:
            self._wait(deadline)
        self._signal_children(signal.SIGKILL)
        while self._children:
            self._wait(None)
        for listener in (*self._listeners, *filter(None, [self._http_listener])):
            listener.close()
        if self._postgres is not None:
            self._postgres.stop()
        self._metrics.remove()
        self._directory.unlock()

    def _signal_children(self, number: signal.Signals) -> None:
        for child in self._children:  # none is reaped meanwhile: the numbers are still theirs
            os.kill(child.pid, number)

    # -- signals and forks -----------------------------------------------------------------------------------

    def _watch_signals(self) -> None:
        for end in (self._wakeup_read, self._wakeup_write):
            os.set_blocking(end, False)
        self._selector.register(self._wakeup_read, selectors.EVENT_READ)
        signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)  # without a handler nothing would wake us
        for number in _STOP_SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores it
                signal.signal(number, self._on_stop_signal)

    def _on_stop_signal(self, number: int, frame: FrameType | None) -> None:
        self._stop_signals += 1

    def _stop_if_requested(self) -> None:
        if self._stop_signals:
            raise _StopRequested

    def _fork(self, name: str, target: _Target) -> _Child:
        read, write = os.pipe()
        sys.stdout.flush()
        # A signal that reached the child before it let go of our handlers would count as ours.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
        pid = os.fork()
        if pid == 0:
            self._live_as_child(name, target, write, mask)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(write)
        os.set_blocking(read, False)
        child = _Child(name, pid, read)
        self._selector.register(read, selectors.EVENT_READ, child)
        self._children.add(child)
        return child

    def _live_as_child(self, name: str, target: _Target, pipe: int, mask: set[int | signal.Signals]) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._selector.close()
            ours = (self._alive_write, self._wakeup_read, self._wakeup_write)
            for end in (*ours, *(child.pipe for child in self._children)):
                os.close(end)
            name_process(name)

            def on_ready() -> None:
                os.write(pipe, _READY)

            code = target(on_ready)
        except (UserError, DatabaseUnavailable) as error:
            os.write(pipe, _FAILURE + str(error).encode())
        except BaseException as error:
            log.exception("process failed")
            os.write(pipe, _FAILURE + f"{type(error).__name__}: {error}".partition("\n")[0].encode())
        finally:
            os._exit(code)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        both = family == socket.AF_INET6 and host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise StartupError(f"port {port} of {host} is in use by another program") from None
        # create_server adds the address to the text.
        reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise StartupError(f"can't listen on {_address(host, port)}: {reason}") from None


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _allow_open_files(wanted: int) -> None:
    """A connection is an open file, and most systems allow 1024 unless asked for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        log.warning("too few open files allowed for max_connections", allowed=allowed, needed=wanted)


def _status_text(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
