"""The states in which a message is being answered: somebody works on it, or a long poll waits for events."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import NamedTuple

import structlog

from eventbus.log import sequencer
from eventbus.log.sequencer import Sequencer
from lake.protocol.codec import protocols
from lake.protocol.codec.protocols import Protocol, Refused, Request
from lake.protocol.codec.scanner import Rejected
from metastore.api.methods import NotYet
from metastore.cache.entry import Entry
from metastore.server.connection.connection import Connection, State
from metastore.server.connection.replying import PIECE_BYTES, refuse, write
from metastore.server.dispatch import Copy, ReplyBroken
from metastore.server.monitoring import metrics
from metastore.store.table import altered_tables

Then = Callable[[], None]
"""What follows in the event loop when a thread is done."""

log = structlog.get_logger(__name__)


class _ClientGone(Exception):
    """There is no client any more to send a reply to."""


class _Answered(NamedTuple):
    """What came of a message. `copy`: of the reply, for the cache. `renewed`: replies that an alteration has changed.

    `then`: what is done instead of sending a reply. `sequencers`: those that have events to number, which can wait for
    the reply.
    """

    copy: Copy | None
    renewed: list[tuple[bytes, Entry]]
    then: Then | None
    sequencers: Collection[Sequencer]


class Answering(State):
    """A thread works on the reply.

    Its attributes belong to the thread until that has `_finish` called in the event loop.
    """

    __slots__ = ("_key", "_last", "_may_wait", "_message", "_sent", "_taken", "_wait_until")

    owes_reply = True
    uses_thread = True

    def __init__(
        self,
        connection: Connection,
        message: bytes,
        *,
        key: bytes | None = None,
        may_wait: bool = True,
        wait_until: float | None = None,
    ) -> None:
        """`key`: under which the cache keeps the reply. `may_wait`: a long poll may wait for events.

        `wait_until`: for how long, by the loop's clock, if it has waited before.
        """
        self.connection = connection
        self._message = message
        self._key = key
        self._may_wait = may_wait
        self._wait_until = wait_until
        self._last = b""  # of the reply: what was not handed over
        self._taken: threading.Event | None = None  # set when all that was handed over is taken
        self._sent = False  # whether a thread has sent all of the reply, or is about to

    def enter(self) -> None:
        threads = self.connection.context.threads
        # One event may wake thousands of waiting requests: new requests must not queue behind all of them.
        submit = threads.submit if self._wait_until is None else threads.submit_patient
        submit(self._run)

    def writable(self) -> None:
        if self._taken is not None:
            self._taken.set()

    def data_received(self, data: bytes) -> None:
        if self._sent:
            self.connection.inbox.add(data)  # `_finish` is due: it isn't worth while to have the client wait
        else:
            super().data_received(data)

    def lost(self) -> None:
        self.writable()  # the thread finds the connection gone; the memory is released when it is done
        if self._sent:
            self.connection.close_reported = True  # the client has what it is owed

    # -- in a request's thread ----------------------------------------------------------------------------------

    def _run(self) -> None:
        answered = self._work()
        if answered.then is None and self._taken is None:
            self._send_at_once()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.connection.context.loop.call_soon_threadsafe(self._finish, answered)

    def _work(self) -> _Answered:
        context = self.connection.context
        copy = None
        renewed: list[tuple[bytes, Entry]] = []
        if self._key is not None and context.replies is not None:
            copy = Copy(context.replies.largest)
        with altered_tables.collecting() as altered, sequencer.waking_later() as sequencers:
            then = self._answer(copy)
        if altered and context.replies is not None:
            renewed = context.replies.renewed(altered)
        self._message = b""  # before `_finish` releases the memory that it took
        return _Answered(copy, renewed, then, sequencers)

    def _answer(self, copy: Copy | None) -> Then | None:
        """Answers the message. None: its reply, or the end of that, is in `_last`.

        Otherwise it returns what follows in the event loop if the client is still there.
        """
        connection = self.connection
        context, protocol = connection.context, connection.protocol
        generation = context.event_notifier.generation
        try:
            request = protocols.request(protocol, self._message, context.limits)
            send = partial(self._send, protocol, request)
            context.dispatcher.serve(connection.session, request, send, may_wait=self._may_wait, copy=copy)
            return None
        except NotYet as poll:
            return partial(self._wait_for_events, self._message, poll, generation)
        except _ClientGone:
            return _nothing
        except Refused as refused:
            return partial(refuse, connection, refused)
        except Rejected as rejected:
            return partial(connection.close_for, rejected.reason, str(rejected))
        except ReplyBroken as broken:
            return partial(connection.close_for, "reply_broken", str(broken))
        except BaseException as error:  # whatever it is, or the client would wait for ever
            log.exception("internal error", peer=connection.session.peer)
            return partial(connection.close_for, "internal_error", f"{type(error).__name__}: {error}")

    def _send(self, protocol: Protocol, request: Request, kind: int, body: Iterable[bytes]) -> int:
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

    def _send_at_once(self) -> None:
        """Sends the reply, or as much of it as the socket takes. The event loop would have to be woken for that."""
        self._sent = True  # before: the client may be faster than this thread
        self._last = self._last[self.connection.send_from_thread(self._last) :]
        self._sent = not self._last

    def _hand_over(self, data: bytes) -> None:
        view = memoryview(data)
        for at in range(0, len(data), PIECE_BYTES):
            if self._taken is None:  # most replies are shorter than a piece
                self._taken = threading.Event()
            else:
                self._taken.wait()
            if self.connection.gone:
                raise _ClientGone
            self._taken.clear()
            try:
                self.connection.context.loop.call_soon_threadsafe(self._write_piece, view[at : at + PIECE_BYTES])
            except RuntimeError:
                raise _ClientGone from None

    # -- in the event loop ------------------------------------------------------------------------------------

    def _write_piece(self, piece: memoryview) -> None:
        connection = self.connection
        if not connection.gone:
            connection.transport.write(piece)
        if not connection.unsent:
            self.writable()

    def _finish(self, answered: _Answered) -> None:
        connection = self.connection
        copy, renewed, then, sequencers = answered
        replies = connection.context.replies
        if replies is not None:
            replies.keep(renewed)
            if self._key is not None and copy is not None:
                replies.loaded(self._key, copy.body, copy.read_set, copy.renew)
        connection.release_memory()
        try:
            if connection.gone:
                return
            if then is None:
                write(connection, self._last)
            else:
                then()
        finally:
            for each in sequencers:
                each.wake()

    def _wait_for_events(self, message: bytes, poll: NotYet, generation: int) -> None:
        connection = self.connection
        if connection.eof:
            connection.transport.close()
            return
        until = self._wait_until
        if until is None:
            until = connection.context.loop.time() + poll.seconds
        connection.become(WaitingForEvents(connection, message, poll, until, generation))


class WaitingForEvents(State):
    """A long poll waits until there are events for it, or it has waited long enough."""

    __slots__ = ("_every", "_generation", "_message", "_predicate", "_timer", "_until")

    def __init__(self, connection: Connection, message: bytes, poll: NotYet, until: float, generation: int) -> None:
        """`until`: by the loop's clock. `generation`: of the event notifier, when the call began to look."""
        super().__init__(connection)
        self._message = message
        self._predicate = poll.predicate
        self._every = poll.every
        self._until = until
        self._generation = generation
        self._timer: asyncio.TimerHandle | None = None

    def enter(self) -> None:
        if self.connection.draining:
            self.ask_again()
            return
        context = self.connection.context
        at = self._until if self._every is None else min(self._until, context.loop.time() + self._every)
        self._timer = context.loop.call_at(at, self.ask_again)
        context.event_notifier.add(self, self._predicate, self._generation)

    def leave(self) -> None:
        self.connection.context.event_notifier.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    def drain(self) -> None:
        self.ask_again()

    def ask_again(self) -> None:
        """Runs the call again. It has to answer now if it has waited long enough, or the worker stops."""
        connection = self.connection
        if connection.state is not self:
            return
        may_wait = not connection.draining and connection.context.loop.time() < self._until
        connection.become(Answering(connection, self._message, may_wait=may_wait, wait_until=self._until))


def _nothing() -> None:
    """The client is gone."""
