"""The states in which a reply is on its way, and nothing works on it any more."""

import asyncio

import structlog
from thrift.Thrift import TApplicationException

from lake.protocol.codec import binary, protocols
from lake.protocol.codec.foreign import Foreign
from lake.protocol.codec.protocols import Refused
from metastore.server.connection.connection import Connection, State
from metastore.server.dispatch import wants_answer
from metastore.server.monitoring import metrics

PIECE_BYTES = 256 << 10
"""How much of a reply is written at a time: the next piece follows when the operating system has taken it."""

DISCARDED_BYTES = 1 << 30
"""How much is discarded of a refused call whose end is unknown, so that its client gets to read the answer."""

DISCARD_SECONDS = 60.0
"""How long that may take where there is no `receive_timeout_seconds`."""

_NOTHING = memoryview(b"")

log = structlog.get_logger(__name__)


class Writing(State):
    """The reply is complete, and its end is on its way."""

    __slots__ = ("_rest",)

    owes_reply = True

    def __init__(self, connection: Connection, rest: memoryview = _NOTHING) -> None:
        """`rest`: what is left to be written after what the caller has written."""
        self.connection = connection
        self._rest = rest

    def writable(self) -> None:
        connection = self.connection
        while len(self._rest) and not connection.unsent:
            piece, self._rest = self._rest[:PIECE_BYTES], self._rest[PIECE_BYTES:]
            connection.transport.write(piece)
        if not connection.unsent:
            connection.receive()


class Refusing(State):
    """A call that exceeds a limit is refused in the loop's next turn: thousands may have arrived together."""

    __slots__ = ("_answer",)

    owes_reply = True

    def __init__(self, connection: Connection, answer: bytes) -> None:
        super().__init__(connection)
        self._answer = answer

    def enter(self) -> None:
        self.connection.context.loop.call_soon(self._refuse)

    def _refuse(self) -> None:
        if not self.connection.gone:
            write(self.connection, self._answer)


class Discarding(State):
    """The last answer of the connection is on its way. What still comes is discarded.

    A client reads no answer before it has sent its call, and none at all of a connection that is reset.
    """

    __slots__ = ("_answer", "_size", "_timer")

    def __init__(self, connection: Connection, answer: bytes) -> None:
        super().__init__(connection)
        self._answer = answer
        self._size = 0  # of what was discarded
        self._timer: asyncio.TimerHandle | None = None

    def enter(self) -> None:
        connection, context = self.connection, self.connection.context
        transport = connection.transport
        connection.inbox.clear()
        transport.write(self._answer)
        if connection.eof or connection.draining:
            transport.close()
            return
        try:
            transport.write_eof()
        except OSError:  # the client has reset the connection
            transport.abort()
            return
        self._timer = context.loop.call_later(context.timeouts.receive or DISCARD_SECONDS, transport.abort)
        connection.resume_reading()

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > DISCARDED_BYTES:
            self.connection.transport.abort()

    def drain(self) -> None:
        self.connection.transport.close()


def write(connection: Connection, reply: bytes) -> None:
    """Sends a reply, or its end, and then waits for the next message."""
    if reply:
        connection.transport.write(reply)
    finish(connection)


def finish(connection: Connection, rest: memoryview = _NOTHING) -> None:
    """Waits for the next message once all is sent: what was written, and the rest of the reply."""
    if len(rest) or connection.unsent:
        writing = Writing(connection, rest)
        connection.become(writing)
        writing.writable()
    else:
        connection.receive()


def refuse(connection: Connection, refused: Refused) -> None:
    """Answers a call that asks for more than the limits allow. If nobody knows where it ends, nothing follows it."""
    connection.release_memory()
    answer = refusal(connection, refused)
    if not refused.ended:
        connection.report_close(refused.reason, str(refused))
        connection.become(Discarding(connection, answer))
        return
    metrics.message_rejected(refused.reason)
    facts = {"method": refused.to.header.name, "reason": refused.reason, "detail": str(refused)}
    log.warning("call refused", peer=connection.session.peer, user=connection.session.user, **facts)
    connection.become(Refusing(connection, answer))


def refusal(connection: Connection, refused: Refused) -> bytes:
    """The answer to a refused call; empty for one that wants none."""
    if not wants_answer(refused.to):
        return b""
    body = binary.encode_application_exception(TApplicationException.PROTOCOL_ERROR, str(refused))
    answer = b"".join(protocols.reply(connection.protocol, refused.to, binary.EXCEPTION, [body]))
    metrics.bytes_sent(len(answer))
    return answer


def reject_foreign(connection: Connection, foreign: Foreign) -> None:
    """Answers a client of another protocol, in that protocol."""
    connection.close_reported = True
    metrics.message_rejected(foreign.reason)
    connection.context.foreign_clients.rejected(connection.session.peer, foreign)
    metrics.bytes_sent(len(foreign.answer))
    connection.become(Discarding(connection, foreign.answer))
