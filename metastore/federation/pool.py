"""The connections of one worker to one backend: few, opened when needed, and none while the backend is down."""

import itertools
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import structlog
from thrift.Thrift import TApplicationException, TException, TMessageType
from thrift.transport.TTransport import TTransportException

from lake.protocol.codec import binary
from lake.protocol.connection.login import BadLogin, LoginRefused
from lake.protocol.connection.relay import Relay
from lake.protocol.hive import MetaException
from lake.protocol.services import METHODS
from metastore.federation.configuration import Backend
from metastore.federation.errors import Busy, Unreachable

State = Literal["unused", "up", "down"]

SILENT_SECONDS = 1.0
"""A backend whose connections are all in use, and that has answered nothing for so long, hangs."""

OWN_SECONDS = 60.0
"""How long the front waits at most for the next bytes of an answer to itself: its questions are short."""

SCOPE = "includeUnCommit"
"""The setting of a connection to a lake metastore by which it shows uncommitted partitions."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose calls a connection carries, and what is set on it: connections are shared by those who are the same.

    `hive4`: whether the client showed that it is newer than Hive 2.3; some metastores answer each connection by that.
    `front`: the front calls for itself, and as nobody else where it logs in.
    """

    user: str | None
    groups: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    hive4: bool = False
    front: bool = False


class Pool:
    """Thread-safe. `limit`: bytes of a reply that are held at once."""

    def __init__(self, backend: str, settings: Backend, limit: int) -> None:
        self.backend = backend
        self.settings = settings
        self._limit = limit
        self._uris = itertools.cycle(settings.uris)
        self._changed = threading.Condition()
        self._idle: OrderedDict[Relay, Identity] = OrderedDict()  # the one that was used last is the last
        self._open = 0  # connections, idle, in use or being opened
        self._failures = 0
        self._down_until = 0.0
        self._closed = False
        self._answered = time.monotonic()
        self.asking = ThreadPoolExecutor(settings.connections, "federation")
        """Threads that ask this backend for its part of a list. One that hangs keeps none of others' threads."""
        self.state: State = "unused"
        self.trouble = ""
        """Why the backend is down."""
        self.is_lake: bool | None = None
        """Whether the backend is a lake metastore; None as long as it wasn't asked."""
        self.hidden: frozenset[str] = frozenset()
        """Its databases whose names mean other places, as of the last list."""

    def take(self, identity: Identity, *, fresh: bool = False) -> Relay:
        """A connection for one call, to be given back. `fresh`: one that was not used before.

        Raises Unreachable, Busy, and MetaException for a caller who may not come in.
        """
        deadline = time.monotonic() + self.settings.wait_seconds
        stale: list[Relay] = []
        try:
            with self._changed:
                self._enter()
                while (relay := self._free(identity, fresh, stale)) is None and self._open >= self.settings.connections:
                    self._wait(deadline)
                if relay is not None:
                    return relay
                self._open += 1
        finally:
            for each in stale:
                each.close()
        try:
            return self._connect(identity)
        except BaseException:
            with self._changed:
                self._open -= 1
                self._changed.notify()
            raise

    def give_back(self, relay: Relay, identity: Identity, *, usable: bool) -> None:
        """`usable`: the reply was read to its end. Whether it is still open is looked at before its next use."""
        with self._changed:
            keep = usable and not self._closed
            if keep:
                self._idle[relay] = identity
            else:
                self._open -= 1
            self._changed.notify()
        if not keep:
            relay.close()

    def succeeded(self) -> None:
        """The backend has answered."""
        with self._changed:
            if self.state == "down":
                log.info("a backend answers again", backend=self.backend)
                self.is_lake = None  # it may be another one
            self.state, self.trouble = "up", ""
            self._answered = time.monotonic()
            self._failures, self._down_until = 0, 0.0

    def failed(self, reason: str) -> None:
        """The backend has not answered. After some times in a row it is left alone for a while."""
        with self._changed:
            self._failures += 1
            if self._failures >= self.settings.failures:
                self._down_until = time.monotonic() + self.settings.pause_seconds
                if self.state != "down":
                    log.warning("a backend is down", backend=self.backend, reason=reason)
                self.state, self.trouble = "down", reason
                self._changed.notify_all()

    def broke(self, uri: str, error: BaseException) -> None:
        """A connection ended before the answer to a call. If the server still takes others, it was about that call."""
        if timed_out(error) or not self._takes_others(uri):
            self.failed(f"{uri}: {error}")

    def hides(self, databases: frozenset[str]) -> None:
        """Notes which databases of the backend can't be reached, since their names mean other places."""
        if new := databases - self.hidden:
            log.warning("databases can't be reached, their names mean others", backend=self.backend, names=sorted(new))
        self.hidden = databases

    def close(self) -> None:
        """Closes the idle connections; those in use are closed after their calls."""
        with self._changed:
            self._closed = True
            idle, self._idle = list(self._idle), OrderedDict()
            self._open -= len(idle)
            self._changed.notify_all()
        for relay in idle:
            relay.close()

    # -- within ------------------------------------------------------------------------------------------------

    def _free(self, identity: Identity, fresh: bool, stale: list[Relay]) -> Relay | None:
        """An idle connection of the same identity. If there is none, one of another makes room for a new one."""
        relay = None if fresh else self._idle_one(identity, stale)
        if relay is None and self._open >= self.settings.connections and self._idle:
            other, _ = self._idle.popitem(last=False)
            stale.append(other)
            self._open -= 1
        return relay

    def _wait(self, deadline: float) -> None:
        """Waits for a connection of a backend that is busy. Nobody waits for one that has fallen silent: the threads
        are those of all backends."""
        now = time.monotonic()
        if now >= deadline or now - self._answered > SILENT_SECONDS:
            raise Busy(self.backend, self.settings.connections, now - self._answered)
        self._changed.wait(min(deadline - now, SILENT_SECONDS))
        if now < self._down_until:
            raise Unreachable(self.backend, self.trouble)

    def _enter(self) -> None:
        """Raises Unreachable while the backend is left alone. After each pause one call tries it for all."""
        if not self._down_until:
            return
        now = time.monotonic()
        if now < self._down_until:
            raise Unreachable(self.backend, self.trouble)
        self._down_until = now + self.settings.pause_seconds

    def _idle_one(self, identity: Identity, stale: list[Relay]) -> Relay | None:
        for relay in reversed([each for each, whose in self._idle.items() if whose == identity]):
            del self._idle[relay]
            if relay.is_quiet:
                return relay
            stale.append(relay)
            self._open -= 1
        return None

    def _connect(self, identity: Identity) -> Relay:
        """Opens a connection to the first server that accepts one, and says whose calls it carries."""
        reason = ""
        for _ in self.settings.uris:
            with self._changed:
                uri = next(self._uris)
            try:
                relay = Relay(
                    uri,
                    self.settings.login(identity.user, front=identity.front),
                    timeout=self.settings.connect_seconds,
                    limit=self._limit,
                )
            except (LoginRefused, BadLogin) as error:
                text = f"the front can't log in at backend {self.backend} for its caller: {error}"
                raise MetaException(text) from None
            except (TException, OSError) as error:
                reason = f"{uri}: {error}"
                continue
            try:
                self._introduce(relay, identity)
                seconds = self.settings.reply_seconds
                relay.set_timeout(min(seconds, OWN_SECONDS) if identity.front else seconds)
            except (TException, OSError, ValueError, EOFError) as error:
                relay.close()
                if isinstance(error, MetaException):
                    raise
                if identity.user is not None and not timed_out(error) and self._takes_others(uri):
                    raise MetaException(
                        f"backend {self.backend} ends the connections of who calls as {identity.user!r}: {error}"
                    ) from None
                reason = f"{uri}: {error}"
                continue
            return relay
        self.failed(reason)
        raise Unreachable(self.backend, reason)

    def _takes_others(self, uri: str) -> bool:
        """Whether a server that has ended a caller's connection answers one without a name. Hive says no otherwise why
        it doesn't take a name, and whoever calls by such a one must not stop others' calls."""
        if self.settings.proves:
            return False
        try:
            relay = Relay(uri, self.settings.login(None), timeout=self.settings.connect_seconds, limit=self._limit)
        except (TException, OSError, BadLogin):
            return False
        try:
            self._look_at_scope(relay)
        except (TException, OSError, ValueError, EOFError) as error:
            return isinstance(error, MetaException)
        finally:
            relay.close()
        return True

    def _introduce(self, relay: Relay, identity: Identity) -> None:
        if identity.user is not None and not self.settings.proves:
            simple(relay, "set_ugi", identity.user, list(identity.groups))
        if self.is_lake is not False:
            self._look_at_scope(relay)
        for key, value in identity.settings:
            try:
                simple(relay, "setMetaConf", key, value)
            except MetaException:
                if _knows(relay, key):
                    raise  # the value is none, and what follows would be answered as without it

    def _look_at_scope(self, relay: Relay) -> None:
        """Finds out whether the backend knows uncommitted partitions. Raises MetaException if it shows them to all."""
        try:
            scope = simple(relay, "getMetaConf", SCOPE)
        except (MetaException, TApplicationException):
            scope = None
        self.is_lake = scope is not None
        if scope == "true":
            raise MetaException(
                f"{relay.uri} of backend {self.backend} is the port of a lake metastore that shows uncommitted"
                f" partitions (uncommitted_port), so readers of this front would see what isn't ready: name its"
                f" ordinary port in backends.{self.backend}"
            )


def timed_out(error: BaseException) -> bool:
    """Whether nothing came in time."""
    return isinstance(error, TTransportException) and error.type == TTransportException.TIMED_OUT


def simple(relay: Relay, name: str, *values: object) -> object:
    """Calls a method with few bytes of answer. Raises what the method declares, TApplicationException, TException."""
    method = METHODS[name]
    reader = relay.call(name, binary.encode(method.args(*values)))
    header = reader.header()
    body = reader.skipped()
    if header.kind == TMessageType.EXCEPTION:
        raise application_error(body)
    result = binary.decode(method.result, body)
    for field in method.exceptions.values():
        if (raised := getattr(result, field)) is not None:
            raise raised
    return getattr(result, "success", None)


def _knows(relay: Relay, key: str) -> bool:
    """Whether a metastore has a setting, which clients may set: another one behind the front may have it."""
    try:
        simple(relay, "getMetaConf", key)
    except MetaException:
        return False
    return True


def application_error(body: bytes) -> TApplicationException:
    """The error that a server answers where it has no result."""
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.transport.TTransport import TMemoryBuffer

    error = TApplicationException()
    error.read(TBinaryProtocol(TMemoryBuffer(body)))
    return error
