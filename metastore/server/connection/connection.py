"""One client's connection: what all its states share, and the events that it passes on to the current one."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, cast

import structlog

from lake.protocol.codec import protocols
from lake.protocol.codec.protocols import Inbox
from metastore.api.session import Session
from metastore.server.connection.context import WorkerContext
from metastore.server.credentials.identity import Identity
from metastore.server.monitoring import metrics
from metastore.services.access.caller import Caller

CROWDED_SECONDS = 5.0
"""How long a client that doesn't read its reply may keep a thread for which other requests wait."""

# TCP keepalive: a client that vanished without a word is noticed within two minutes.
_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}

log = structlog.get_logger(__name__)


class Channel(Protocol):
    """Where a connection sends its bytes: asyncio's transport, or a layer upon it."""

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None: ...

    def write(self, data: bytes | bytearray | memoryview) -> None: ...

    def write_eof(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


class State:
    """What a connection does at present, with the data that it needs for that. Event loop only, unless a state says so.

    A connection gets a new state object each time (`Connection.become`). What a state doesn't handle is ignored,
    but for data: that is kept, and the client has to wait with more.
    """

    __slots__ = ("connection",)

    owes_reply: bool = False
    """Whether the client waits for a reply. It still gets it after it has closed its side for sending."""

    uses_thread: ClassVar[bool] = False
    """Whether a thread works on the reply."""

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection

    def enter(self) -> None:
        """The state has become the connection's."""

    def leave(self) -> None:
        """Another state follows, or the connection has ended: cancels timers."""

    def data_received(self, data: bytes) -> None:
        self.connection.inbox.add(data)
        self.connection.pause_reading()

    def writable(self) -> None:
        """The operating system has taken all that was written."""

    def memory_granted(self) -> None:
        """The memory for which the connection waits is reserved now."""

    def drain(self) -> None:
        """The worker stops. Whatever waits for the client ends the connection; a reply is finished first."""

    def lost(self) -> None:
        """The connection has ended; called before `leave`."""
        self.connection.release_memory()

    def is_idle(self, since: float) -> bool:
        """Whether there has been no request since a moment of the loop's clock."""
        return False


class _Ended(State):
    """The connection has ended. One object for all connections: none keeps itself alive by its state."""

    __slots__ = ()

    def __init__(self) -> None:
        pass


_ENDED = _Ended()


class Connection(asyncio.Protocol):
    """Answers one message at a time, in their order. Event loop only, but for `gone` and `send_from_thread`.

    What arrives while a message is answered is kept; after one read of it, the client has to wait with more.
    """

    def __init__(
        self,
        connection_id: str,
        context: WorkerContext,
        receiving: "Callable[[Connection], State]",
        *,
        first: "Callable[[Connection], State] | None" = None,
        include_uncommitted: bool = False,
    ) -> None:
        """`receiving` makes the state that waits for a message, or for the rest of one.

        `first` makes the state in which the connection begins, if it is another one.
        """
        self.context = context
        self.inbox = Inbox(context.limits)
        self.receiving = self.after_reply = receiving
        self.state = (first or receiving)(self)
        self.session: Session  # from `connection_made` on
        self.transport: Channel
        self._below: asyncio.Transport  # from `connection_made` on, with the descriptor of its socket
        self._descriptor = -1
        self._alive = threading.Lock()  # held while `gone` changes, and by who needs it to stay as it is
        self.identity: Identity | None = None
        """Who has logged in; None: nobody."""
        self.unsent = False
        """Whether the transport holds bytes that the operating system hasn't taken yet."""
        self.eof = False
        """Whether the client has closed its side for sending."""
        self.draining = False
        self.gone = False
        """Whether the connection has ended. May be read from any thread."""
        self.close_reported = False
        """Whether the log has the line about the end of this connection, or needs none."""
        self._id = connection_id
        self._include_uncommitted = include_uncommitted
        self._reading_paused = False
        self._holds_memory = False
        self._reader_timer: asyncio.TimerHandle | None = None  # while `unsent`

    @property
    def protocol(self) -> protocols.Protocol:
        """What the client speaks. Known once it has sent a message."""
        protocol = self.inbox.protocol
        assert protocol is not None
        return protocol

    def become(self, state: State) -> None:
        """Leaves the current state for another one."""
        self.state.leave()
        self.state = state
        state.enter()

    def receive(self) -> None:
        """Waits for the next message: the last one is answered."""
        self.become(self.after_reply(self))

    def logged_in(self, identity: Identity | None, *, peer: str | None = None) -> None:
        """Somebody has proven who they are, or leaves the connection to nobody: a session of their own begins.

        `peer`: the address of who makes its calls, if that isn't where the connection comes from.
        """
        self.identity = identity
        address = peer or self.session.peer
        if identity is None:
            self.session = self._new_session(Caller(None, peer=address))
        else:
            self.session = self._new_session(
                Caller(
                    identity.user, identity.groups, identity.mechanism, identity.real_user, address, identity.passwords
                )
            )

    # -- called by asyncio ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        below = cast(asyncio.Transport, transport)
        below.set_write_buffer_limits(high=0)  # so `pause_writing` means: not all is sent
        self.transport = self._below = below
        own_socket = transport.get_extra_info("socket")
        self._descriptor = own_socket.fileno()
        _keep_alive(own_socket)
        self.session = self._new_session(Caller(None, peer=address(transport.get_extra_info("peername"))))
        self.state.enter()

    def _new_session(self, caller: Caller) -> Session:
        return Session(self._id, caller, include_uncommitted=self._include_uncommitted)

    def data_received(self, data: bytes) -> None:
        self.context.tally.received += len(data)
        self.state.data_received(data)

    def eof_received(self) -> bool:
        """The client sends no more. True keeps the connection open for the reply."""
        self.eof = True
        return self.state.owes_reply

    def pause_writing(self) -> None:
        self.unsent = True
        self._watch_reader(self.context.loop.time())

    def resume_writing(self) -> None:
        self.unsent = False
        self._stop_reader_timer()
        self.state.writable()

    def connection_lost(self, exc: Exception | None) -> None:
        with self._alive:
            self.gone = True
        self._stop_reader_timer()
        self.context.connections.remove(self)
        state = self.state
        state.lost()
        if state.owes_reply:
            self.report_close("client_gone", "the client went away before it had its reply")
        elif len(self.inbox):
            size = len(self.inbox)
            self.report_close("incomplete", f"the client went away after {size} bytes of a message")
        self.become(_ENDED)
        self.inbox.clear()

    # -- called by the worker ---------------------------------------------------------------------------------

    def drain(self) -> None:
        """Ends the connection: now, or after the reply that is under way."""
        self.draining = True
        self.state.drain()

    def revoke(self, detail: str) -> None:
        """Ends the connection in the same way: who has logged in may not come in any more."""
        if not self.draining:
            self.report_close("revoked", detail)
            self.drain()

    def abort(self) -> None:
        """Ends the connection at once."""
        self.close_for("shutdown", "the server stops and the request took too long")

    def close_if_idle(self, since: float) -> None:
        """Ends the connection if it has had no request since a moment of the loop's clock."""
        if self.state.is_idle(since):
            self.close_for("idle_timeout", f"no request for {self.context.timeouts.idle:g} s")

    def memory_granted(self) -> None:
        """See `metastore.server.memory_budget`."""
        self.state.memory_granted()

    # -- called by threads ------------------------------------------------------------------------------------

    def send_from_thread(self, data: bytes) -> int:
        """Sends what the operating system takes at once, without the event loop. Returns how many bytes that is.

        Only for the end of a reply, when all before it is sent. It sends nothing where a layer lies between, nor after
        an error: the event loop meets that again when it sends the rest.
        """
        if self.transport is not self._below or self.unsent:
            return 0
        with self._alive:  # the socket isn't closed meanwhile, nor its descriptor another connection's
            if self.gone:
                return 0
            try:
                return os.write(self._descriptor, data)
            except OSError:
                return 0

    # -- called by states -------------------------------------------------------------------------------------

    def take_memory(self, size: int, *, answered: bool = False) -> bool:
        """Reserves memory for the request, in bytes of all of it so far. False: `memory_granted` follows."""
        self._holds_memory = True
        return self.context.memory.take(self, size, answered=answered)

    def release_memory(self) -> None:
        """The request needs no memory any more."""
        if self._holds_memory:
            self._holds_memory = False
            self.context.memory.release(self)

    def pause_reading(self) -> None:
        if not self._reading_paused:
            self._reading_paused = True
            self.transport.pause_reading()

    def resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            self.transport.resume_reading()

    def close_for(self, reason: str, detail: str) -> None:
        """Ends the connection at once, with a line in the log. `reason` is a label of metrics."""
        self.report_close(reason, detail)
        self.transport.abort()

    def closes_after_login(self) -> None:
        """The connection ends because its login is refused. The log of logins says so, not always by a line."""
        if not self.close_reported:
            self.close_reported = True
            metrics.message_rejected("login")

    def report_close(self, reason: str, detail: str) -> None:
        """Logs and counts a connection that doesn't end as it should, once."""
        if self.close_reported:
            return
        self.close_reported = True
        metrics.message_rejected(reason)
        session = self.session
        log.warning("connection closed", peer=session.peer, user=session.user, reason=reason, detail=detail)

    # -- clients that don't read ------------------------------------------------------------------------------

    def _watch_reader(self, since: float) -> None:
        """Ends the connection of a client that reads nothing: sooner if it keeps a thread and requests wait for one.

        `since`: when something was left unsent, by the loop's clock.
        """
        limit, waited = self.context.timeouts.write, self.context.loop.time() - since
        crowded = self.state.uses_thread and self.context.threads.crowded
        if (limit and waited >= limit) or (waited >= CROWDED_SECONDS and crowded):
            others = ", and others wait" if crowded else ""
            self.close_for("write_timeout", f"the client doesn't read its reply within {waited:.3g} s{others}")
            return
        wait = min(limit - waited, CROWDED_SECONDS) if limit else CROWDED_SECONDS
        self._reader_timer = self.context.loop.call_later(wait, self._watch_reader, since)

    def _stop_reader_timer(self) -> None:
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None


def _keep_alive(connection: Any) -> None:
    with contextlib.suppress(OSError):  # it may be gone already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def address(peer: Any) -> str:
    """A client's address as logs and sessions have it, of what `socket.getpeername` returns."""
    if not peer:
        return "unknown"
    host, port = peer[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
