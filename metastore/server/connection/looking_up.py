"""The state in which the cache is asked for a reply."""

import time

from metastore.api.rights.guard import Guard
from metastore.api.rights.naming import Requirement
from metastore.server.connection.answering import Answering
from metastore.server.connection.connection import Connection, State
from metastore.server.connection.replying import PIECE_BYTES, finish
from metastore.server.replies import Recognised
from metastore.wire import binary, protocols

LONGEST_DECODED = 4096
"""Bytes of the longest message that the event loop decodes to decide about rights. Longer ones are not kept."""


class LookingUp(State):
    """The cache is asked for the reply. It calls `give` or `work` (`metastore.server.replies.Waiter`)."""

    __slots__ = ("_arguments", "_key", "_message", "_needs", "_started")

    owes_reply = True

    def __init__(
        self,
        connection: Connection,
        message: bytes,
        arguments: int,
        key: bytes,
        needs: tuple[Requirement, ...] = (),
    ) -> None:
        """`arguments`: where they begin in the message. `key`: the cache's. `needs`: the rights that a caller needs."""
        self.connection = connection
        self._message = message
        self._arguments = arguments
        self._key = key
        self._needs = needs
        self._started = time.perf_counter()

    @classmethod
    def for_message(cls, connection: Connection, message: bytes) -> "LookingUp | None":
        """None if replies to such a message aren't cached."""
        replies, protocol = connection.context.replies, connection.inbox.protocol
        if replies is None or protocol is None or protocol.compact:
            return None
        call = binary.call_at(message, protocol.frame_header)
        if call is None:
            return None
        method, arguments = call
        key = replies.key_of(method, message[arguments:], connection.session)
        if key is None:
            return None
        guard = connection.context.dispatcher.guard
        if guard is None:
            return cls(connection, message, arguments, key)
        needs = _needs(guard, method, message, arguments, connection)
        return None if needs is None else cls(connection, message, arguments, key, needs)

    def enter(self) -> None:
        replies = self.connection.context.replies
        assert replies is not None
        replies.ask(self, self._key)

    def lost(self) -> None:
        """The cache still calls `give` or `work`."""

    def give(self, body: bytes) -> None:
        """Answers with a reply from the cache."""
        connection = self.connection
        if not connection.gone and not self._allowed():  # or not by what is in memory: a thread decides and answers
            connection.become(Answering(connection, self._message))
            return
        connection.release_memory()
        if connection.gone:
            return
        header = protocols.kept_reply(connection.protocol, self._message, self._arguments, body)
        at_once = len(body) <= PIECE_BYTES
        connection.transport.write(header + body if at_once else header)
        method = self._key.partition(b" ")[0]
        if (replies := connection.context.replies) is not None and not connection.protocol.framed:
            known = Recognised(method, self._key, self._needs)
            replies.recognise(self._message, self._arguments, connection.session, known)
        size = len(header) + len(body)
        connection.context.dispatcher.served_from_cache(
            connection.session, method, self._message, self._arguments, size, self._started
        )
        if at_once:
            finish(connection)
        else:
            finish(connection, memoryview(body))

    def _allowed(self) -> bool:
        """Whether the caller may have the reply. The last poll began after the request had come."""
        context = self.connection.context
        guard, replies = context.dispatcher.guard, context.replies
        if guard is None or replies is None:
            return guard is None
        return guard.allows_now(self.connection.session, self._needs, replies.holds)

    def work(self) -> None:
        """Answers from the database."""
        answering = Answering(self.connection, self._message, key=self._key)
        if self.connection.gone:
            answering.enter()  # other requests wait for what this one reads
        else:
            self.connection.become(answering)


def _needs(
    guard: Guard, method: bytes, message: bytes, arguments: int, connection: Connection
) -> tuple[Requirement, ...] | None:
    """What a call needs rights to; None if its reply can't be kept for others, or that takes too long to find out."""
    if len(message) > LONGEST_DECODED:
        return None
    return guard.requirements(method, message[arguments:], uncommitted=connection.session.include_uncommitted)


def answer_at_once(connection: Connection, data: bytes) -> bool:
    """Answers from the cache if the data is a message that was answered from there before, and nobody need be asked.

    This does what `LookingUp` does, without a state of its own: most calls come this way. False: nothing was done.
    """
    context = connection.context
    replies, protocol, session = context.replies, connection.inbox.protocol, connection.session
    if replies is None or protocol is None or protocol.framed or protocol.compact:
        return False
    started = time.perf_counter()
    found = replies.recognised(data, session)
    if found is None:
        return False
    known, arguments = found
    body = replies.at_once(known.key)
    if body is None or len(body) > PIECE_BYTES:
        return False
    dispatcher = context.dispatcher
    if dispatcher.guard is not None and not dispatcher.guard.allows_now(session, known.needs, replies.holds):
        return False
    reply = binary.reply_to(data, 0, arguments) + body
    connection.transport.write(reply)
    context.tally.answered(known.method, time.perf_counter() - started, len(reply))
    dispatcher.answered_at_once(session, known.method, data, arguments, len(reply))
    if connection.unsent:
        finish(connection)
    return True


def answer(connection: Connection, message: bytes) -> None:
    """Has a whole message answered: from the cache if that keeps such replies, else by a thread."""
    connection.become(LookingUp.for_message(connection, message) or Answering(connection, message))
