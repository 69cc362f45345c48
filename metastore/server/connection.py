"""One client's connection: gathers a message without a thread, has it answered by one, sends the reply.

Everything here runs in the event loop, except where a comment says "in a request's thread".
"""

import asyncio
import contextlib
import enum
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import structlog
from thrift.Thrift import TApplicationException

from metastore.api.registry import NotYet
from metastore.api.session import Session
from metastore.server import metrics
from metastore.server.dispatch import Copy, Dispatcher, ReplyBroken, wants_answer
from metastore.server.replies import Replies
from metastore.server.threads import ThreadPool
from metastore.store.footprint import Footprint
from metastore.wire import binary, protocols
from metastore.wire.protocols import Inbox, Refused, Request
from metastore.wire.scanner import Limits, Rejected

PIECE_BYTES = 256 << 10
"""What a thread hands over at a time. It waits with the next piece until the client's side took this one."""

CROWDED_SECONDS = 5.0
"""How long a client that takes nothing of its reply may keep a thread for which others wait."""

# Seconds and tries after which a client that vanished without a word is given up: two minutes.
_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}

REFUSED_BYTES = 1 << 30
"""How much of a call that is refused, and whose end nobody knows, is passed over so that its client gets to the answer.
"""

REFUSED_SECONDS = 60.0
"""How long that may take where there is no `receive_timeout_seconds`."""

Concerned = Callable[[int], bool]
"""Whether the news up to a generation concern one who waits. For a request's thread."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """In seconds; 0 is no limit.

    `receive`: from the first byte of a message to its last. `write`: for the client to take a piece of its
    reply. `idle`: from a reply to the next message.
    """

    receive: float
    write: float
    idle: float


class Connections:
    """The open connections of a worker. Its length, and `accepted`, may be read from any thread."""

    def __init__(self) -> None:
        self._open: set[Connection] = set()
        self.accepted = 0

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> "Iterator[Connection]":
        return iter(list(self._open))

    def add(self, connection: "Connection") -> None:
        self._open.add(connection)
        self.accepted += 1
        metrics.connection_opened()

    def remove(self, connection: "Connection") -> None:
        self._open.remove(connection)
        metrics.connection_closed()


class News:
    """Who waits for new events. Among many, those whom the news concern are found by one thread at a time.

    Everything but `generation` is for the event loop alone, except where a comment says otherwise.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, threads: ThreadPool) -> None:
        self.generation = 0
        self._loop = loop
        self._threads = threads
        self._for_everybody = 0  # the last generation that was
        self._waiting: dict[Connection, Concerned | None] = {}
        self._looking = False
        self._look_again = False

    def tell(self, everybody: bool = False) -> None:
        """There are new events: those whom they concern ask again, or everybody does."""
        self.generation += 1
        if everybody:
            self._for_everybody = self.generation
        for connection in [each for each, concerned in self._waiting.items() if everybody or concerned is None]:
            connection.ask_again()
        self._look()

    def add(self, connection: "Connection", concerned: Concerned | None, generation: int) -> None:
        """One that waits for those after a generation."""
        self._waiting[connection] = concerned
        if generation != self.generation:
            if concerned is None or generation < self._for_everybody:
                connection.ask_again()
            else:
                self._look()

    def discard(self, connection: "Connection") -> None:
        self._waiting.pop(connection, None)

    def _look(self) -> None:
        waiting = [(each, concerned) for each, concerned in self._waiting.items() if concerned is not None]
        if self._looking:
            self._look_again = True
        elif waiting:
            self._looking = True
            self._threads.submit(partial(self._find, waiting, self.generation))

    def _find(self, waiting: "list[tuple[Connection, Concerned]]", generation: int) -> None:
        """In a request's thread."""
        try:
            found = [connection for connection, concerned in waiting if concerned(generation)]
        except Exception:  # each of them is told when it asks
            found = [connection for connection, _ in waiting]
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._found, found)

    def _found(self, concerned: "list[Connection]") -> None:
        for connection in concerned:
            connection.ask_again()
        self._looking = False
        if self._look_again:
            self._look_again = False
            self._look()


@dataclass(frozen=True, slots=True)
class Shared:
    """What the connections of a worker have in common."""

    loop: asyncio.AbstractEventLoop
    dispatcher: Dispatcher
    threads: ThreadPool
    connections: Connections
    limits: Limits
    timeouts: Timeouts
    news: News
    replies: Replies | None = None


class Gone(Exception):
    """There is no client any more to send a reply to."""


class _State(enum.Enum):
    GATHERING = "waits for a message, or for the rest of one"
    ANSWERING = "a thread has the message"
    WAITING = "the message is a long poll that has nothing to answer yet"
    FLUSHING = "the reply is on its way, and nobody works on it"
    REFUSED = "the last reply is on its way, and what still comes is passed over"


class Connection(asyncio.Protocol):
    """Answers one message at a time, in their order.

    What arrives while a message is answered is kept; after one read of it, the client has to wait with more.
    """

    def __init__(self, connection_id: str, shared: Shared, *, include_uncommitted: bool = False) -> None:
        self._id = connection_id
        self._include_uncommitted = include_uncommitted
        self._shared = shared
        self._inbox = Inbox(shared.limits)
        self._state = _State.GATHERING
        self._idle_since = shared.loop.time()
        self._deadline: asyncio.TimerHandle | None = None  # for the client to finish a message, or take a piece
        self._reading_paused = False
        self._unsent = False  # the transport holds bytes that the system doesn't take yet
        self._room = threading.Event()  # it doesn't: a thread may hand over a piece
        self._room.set()
        self._eof = False
        self._draining = False
        self._close_reported = False
        self._gone = False
        self._last = b""
        self._message = b""  # that may be answered with a reply that is kept
        self._arguments = 0  # where they begin in it
        self._key = b""
        self._asked_at = 0.0
        self._rest = memoryview(b"")  # of a reply that was kept
        self._poll = b""  # the message of a long poll that waits
        self._poll_until: float | None = None  # a moment of the loop's clock
        self._passed_over = 0  # bytes
        self._end: asyncio.TimerHandle | None = None  # of passing over

    # -- what asyncio calls ----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=0)  # so "pause writing" says: not all is sent
        _keep_alive(transport.get_extra_info("socket"))
        self._session = Session(
            self._id,
            _address(transport.get_extra_info("peername")),
            include_uncommitted=self._include_uncommitted,
        )

    def data_received(self, data: bytes) -> None:
        metrics.bytes_received(len(data))
        if self._state is _State.REFUSED:
            self._passed_over += len(data)
            if self._passed_over > REFUSED_BYTES:
                self._transport.abort()
            return
        self._inbox.add(data)
        if self._state is _State.GATHERING:
            self._next()
        else:
            self._transport.pause_reading()
            self._reading_paused = True

    def eof_received(self) -> bool:
        """The client sends no more. It may still wait for a reply: True keeps the connection open."""
        self._eof = True
        return self._state in (_State.ANSWERING, _State.FLUSHING)

    def pause_writing(self) -> None:
        self._unsent = True
        self._wait_for_reader(self._shared.loop.time())

    def resume_writing(self) -> None:
        self._unsent = False
        self._clear_deadline()
        self._room.set()
        if self._state is _State.FLUSHING:
            self._write_rest()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        self._rest = memoryview(b"")
        self._room.set()
        self._clear_deadline()
        if self._end is not None:
            self._end.cancel()
        self._shared.connections.remove(self)
        self._shared.news.discard(self)
        if self._state in (_State.ANSWERING, _State.FLUSHING):
            self._report_close("client_gone", "the client went away before it had its reply")
        elif len(self._inbox):
            size = len(self._inbox)
            self._report_close("incomplete", f"the client went away after {size} bytes of a message")
        self._inbox.clear()

    # -- what the worker calls -------------------------------------------------------------------------------

    def drain(self) -> None:
        """Ends the connection: now, or after the reply that is under way."""
        self._draining = True
        if self._state is _State.GATHERING:
            self._close_reported = True
            self._transport.close()
        elif self._state is _State.REFUSED:
            self._transport.close()
        elif self._state is _State.WAITING:
            self.ask_again()

    def abort(self) -> None:
        """Ends the connection, whatever goes on."""
        self._close_for("shutdown", "the server stops and the request took too long")

    def close_if_idle(self, since: float) -> None:
        """Ends the connection if it has been without requests since a moment of the loop's clock."""
        if self._state is _State.GATHERING and not len(self._inbox) and self._idle_since <= since:
            self._close_for("idle_timeout", f"no request for {self._shared.timeouts.idle:g} s")

    def ask_again(self) -> None:
        """Has a long poll that waits answered, if there is something by now or it has waited long enough."""
        if self._state is not _State.WAITING:
            return
        self._clear_deadline()
        self._shared.news.discard(self)
        message, self._poll = self._poll, b""
        assert self._poll_until is not None
        may_wait = not self._draining and self._shared.loop.time() < self._poll_until
        self._state = _State.ANSWERING
        self._shared.threads.submit(partial(self._answer, message, may_wait=may_wait))

    # -- from message to message -----------------------------------------------------------------------------

    def _next(self) -> None:
        """Has the next message answered, or waits for it."""
        try:
            message = self._inbox.take()
        except Refused as refused:
            self._refuse(refused)
            return
        except Rejected as rejected:
            self._close_for(rejected.reason, str(rejected))
            return
        if message is not None:
            self._clear_deadline()
            self._state = _State.ANSWERING
            if not self._ask_replies(message):
                self._shared.threads.submit(partial(self._answer, message))
            return
        if self._reading_paused:  # only now: what is kept must not grow from message to message
            self._reading_paused = False
            self._transport.resume_reading()
        if self._eof:
            self._transport.close()
        elif len(self._inbox):
            if self._deadline is None:
                limit = self._shared.timeouts.receive
                self._set_deadline(limit, "receive_timeout", "the client doesn't finish its message")
        else:
            self._idle_since = self._shared.loop.time()

    def _ask_replies(self, message: bytes) -> bool:
        """Whether the message may be answered with a reply that is kept; `give` or `work` is called then."""
        replies, protocol = self._shared.replies, self._inbox.protocol
        if replies is None or protocol is None or protocol.compact:
            return False
        call = binary.call_at(message, protocol.frame_header)
        key = replies.key_of(call[0], message[call[1] :], self._session) if call is not None else None
        if call is None or key is None:
            return False
        self._message, self._arguments, self._key = message, call[1], key
        self._asked_at = time.perf_counter()
        replies.ask(self, key)
        return True

    def give(self, body: bytes) -> None:
        """Answers with a reply that is kept."""
        if self._gone:
            return
        message, self._message = self._message, b""
        protocol = self._inbox.protocol
        assert protocol is not None
        self._state = _State.FLUSHING
        header = protocols.kept_reply(protocol, message, self._arguments, body)
        if len(body) <= PIECE_BYTES:
            self._transport.write(header + body)
        else:
            self._transport.write(header)
            self._rest = memoryview(body)
        method = self._key.partition(b" ")[0]
        self._shared.dispatcher.given(self._session, method, len(header) + len(body), self._asked_at)
        self._write_rest()

    def work(self) -> None:
        """Has the message answered that can't be answered with a reply that is kept."""
        message, self._message = self._message, b""
        self._shared.threads.submit(partial(self._answer, message, key=self._key))

    def _wait(self, message: bytes, poll: NotYet, generation: int) -> None:
        """A long poll has nothing to answer: it waits for news; those that came while it looked count, too."""
        if self._gone:
            return
        if self._eof:
            self._transport.close()
            return
        now = self._shared.loop.time()
        if self._poll_until is None:
            self._poll_until = now + poll.seconds
        self._state, self._poll = _State.WAITING, message
        if self._draining:
            self.ask_again()
            return
        self._deadline = self._shared.loop.call_later(max(self._poll_until - now, 0), self.ask_again)
        self._shared.news.add(self, poll.concerned, generation)

    def _answered(self, last: bytes) -> None:
        """A thread is done with the message; `last` is what it has not handed over of the reply."""
        if self._gone:
            return
        self._state = _State.FLUSHING
        self._poll_until = None
        if last:
            self._transport.write(last)
        if not self._unsent:
            self._go_on()

    def _write_rest(self) -> None:
        while len(self._rest) and not self._unsent:
            piece, self._rest = self._rest[:PIECE_BYTES], self._rest[PIECE_BYTES:]
            self._transport.write(piece)
        if not self._unsent:
            self._go_on()

    def _go_on(self) -> None:
        self._state = _State.GATHERING
        if self._draining:
            self._transport.close()
            return
        self._next()

    def _write(self, piece: bytes | memoryview) -> None:
        if not self._gone:
            self._transport.write(piece)
        if not self._unsent:
            self._room.set()

    # -- in a request's thread -------------------------------------------------------------------------------

    def _answer(self, message: bytes, *, may_wait: bool = True, key: bytes | None = None) -> None:
        """With a `key` the reply may be kept under it."""
        self._last = b""
        then: Callable[[], None] = _nothing
        copy = None
        if key is not None and self._shared.replies is not None:
            copy = Copy(self._shared.replies.largest)
        generation = self._shared.news.generation
        try:
            protocol = self._inbox.protocol
            assert protocol is not None
            request = protocols.request(protocol, message, self._shared.limits)
            send = partial(self._send, protocol, request)
            self._shared.dispatcher.serve(self._session, request, send, may_wait=may_wait, copy=copy)
            then = partial(self._answered, self._last)
        except NotYet as poll:
            then = partial(self._wait, message, poll, generation)
        except Gone:
            pass
        except Refused as refused:
            then = partial(self._refuse, refused)
        except Rejected as rejected:
            then = partial(self._close_for, rejected.reason, str(rejected))
        except ReplyBroken as broken:
            then = partial(self._close_for, "reply_broken", str(broken))
        except Exception as error:
            log.exception("internal error", peer=self._session.peer)
            then = partial(self._close_for, "internal_error", f"{type(error).__name__}: {error}")
        self._last = b""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            if key is not None and copy is not None:
                self._shared.loop.call_soon_threadsafe(self._was_read, key, copy.body, copy.footprint, then)
            else:
                self._shared.loop.call_soon_threadsafe(then)

    def _was_read(self, key: bytes, body: bytes | None, footprint: Footprint | None, then: Callable[[], None]) -> None:
        """In the event loop: what a thread has read may be kept."""
        assert self._shared.replies is not None
        self._shared.replies.loaded(key, body, footprint)
        then()

    def _send(self, protocol: protocols.Protocol, request: Request, kind: int, body: Iterable[bytes]) -> int:
        total = size = 0
        gathered: list[bytes] = []
        pieces = protocols.reply(protocol, request, kind, body)
        with contextlib.closing(pieces):  # a reader of the database must not wait for the garbage collector
            for piece in pieces:
                gathered.append(piece)
                size += len(piece)
                total += len(piece)
                if size >= PIECE_BYTES:
                    self._hand_over(b"".join(gathered))
                    gathered, size = [], 0
        self._last = b"".join(gathered)
        metrics.bytes_sent(total)
        return total

    def _hand_over(self, data: bytes) -> None:
        view = memoryview(data)
        for at in range(0, len(data), PIECE_BYTES):
            self._room.wait()
            if self._gone:
                raise Gone
            self._room.clear()
            try:
                self._shared.loop.call_soon_threadsafe(self._write, view[at : at + PIECE_BYTES])
            except RuntimeError:
                raise Gone from None

    # -- ends ------------------------------------------------------------------------------------------------

    def _refuse(self, refused: Refused) -> None:
        """Answers a call that asks for more than the limits allow. Unless it is known where it ends, it is the last."""
        if self._gone:
            return
        self._clear_deadline()
        protocol = self._inbox.protocol
        assert protocol is not None
        answer = b""
        if wants_answer(refused.to):
            body = binary.encode_application_exception(TApplicationException.PROTOCOL_ERROR, str(refused))
            answer = b"".join(protocols.reply(protocol, refused.to, binary.EXCEPTION, [body]))
            metrics.bytes_sent(len(answer))
        if refused.ended:
            metrics.message_rejected(refused.reason)
            facts = {"method": refused.to.header.name, "reason": refused.reason, "detail": str(refused)}
            log.warning("call refused", peer=self._session.peer, user=self._session.user, **facts)
            self._state = _State.ANSWERING
            # Not at once: thousands of small ones may have arrived together.
            self._shared.loop.call_soon(self._answered, answer)
            return
        self._report_close(refused.reason, str(refused))
        self._state = _State.REFUSED
        self._inbox.clear()
        self._transport.write(answer)
        if self._eof or self._draining:
            self._transport.close()
            return
        # A client reads no answer before it has sent its call, and none at all of a connection that is reset.
        self._transport.write_eof()
        self._end = self._shared.loop.call_later(
            self._shared.timeouts.receive or REFUSED_SECONDS, self._transport.abort
        )
        if self._reading_paused:
            self._reading_paused = False
            self._transport.resume_reading()

    def _set_deadline(self, seconds: float, reason: str, detail: str) -> None:
        if seconds:
            detail = f"{detail} within {seconds:g} s"
            self._deadline = self._shared.loop.call_later(seconds, self._close_for, reason, detail)

    def _wait_for_reader(self, since: float) -> None:
        """Gives a client time to take a piece of its reply; less of it while others wait for the thread it keeps."""
        limit, waited = self._shared.timeouts.write, self._shared.loop.time() - since
        crowded = self._state is _State.ANSWERING and self._shared.threads.crowded
        if (limit and waited >= limit) or (waited >= CROWDED_SECONDS and crowded):
            others = ", and others wait" if crowded else ""
            self._close_for("write_timeout", f"the client doesn't read its reply within {waited:.3g} s{others}")
            return
        wait = min(limit - waited, CROWDED_SECONDS) if limit else CROWDED_SECONDS
        self._deadline = self._shared.loop.call_later(wait, self._wait_for_reader, since)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_for(self, reason: str, detail: str) -> None:
        self._report_close(reason, detail)
        self._transport.abort()

    def _report_close(self, reason: str, detail: str) -> None:
        """One line for a connection that didn't end as it should."""
        if self._close_reported:
            return
        self._close_reported = True
        metrics.message_rejected(reason)
        session = self._session
        log.warning("connection closed", peer=session.peer, user=session.user, reason=reason, detail=detail)


def _nothing() -> None:
    """What is to be done for a client that is gone."""


def _keep_alive(connection: Any) -> None:
    with contextlib.suppress(OSError):  # it may be gone already
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _address(peer: Any) -> str:
    if not peer:
        return "unknown"
    host, port = peer[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
