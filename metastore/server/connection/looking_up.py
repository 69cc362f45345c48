"""The state in which the cache is asked for a reply."""

import time

from lake.protocol.codec import binary, protocols
from metastore.api.rights.guard import Guard
from metastore.api.rights.naming import Requirement
from metastore.server.connection.answering import Answering
from metastore.server.connection.connection import Connection, State
from metastore.server.connection.replying import PIECE_BYTES, finish
from metastore.server.replies import CacheableCall, Replies

LONGEST_DECODED = 4096
"""Bytes of the longest message that the event loop decodes to decide about rights. Longer ones are not kept."""


class LookingUp(State):
    """The cache is asked for the reply. It calls `give` or `work` (`metastore.server.replies.Waiter`)."""

    __slots__ = ("_arguments", "_call", "_message", "_started")

    owes_reply = True

    def __init__(self, connection: Connection, message: bytes, arguments: int, call: CacheableCall) -> None:
        """`arguments`: where they begin in the message."""
        self.connection = connection
        self._message = message
        self._arguments = arguments
        self._call = call
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
            return cls(connection, message, arguments, CacheableCall(method, key))
        needs = _needs(guard, method, message, arguments, connection)
        return None if needs is None else cls(connection, message, arguments, CacheableCall(method, key, needs))

    def enter(self) -> None:
        replies = self.connection.context.replies
        assert replies is not None
        replies.ask(self, self._call.key)

    def lost(self) -> None:
        """The cache still calls `give` or `work`."""

    def give(self, body: bytes, *, from_redis: bool) -> None:
        """Answers with a reply from the cache."""
        connection, call = self.connection, self._call
        context, session = connection.context, connection.session
        replies, dispatcher = context.replies, context.dispatcher
        if connection.gone or replies is None:
            connection.release_memory()
            return
        decision = None
        if dispatcher.guard is not None:
            # The last poll began after the request had come: what holds as of that one was so at that moment.
            decision = dispatcher.guard.allowed_now(session, call.needs, replies.holds)
            if decision is None:  # a thread finds out, and answers
                connection.become(Answering(connection, self._message))
                return
        connection.release_memory()
        header = protocols.kept_reply(connection.protocol, self._message, self._arguments, body)
        at_once = len(body) <= PIECE_BYTES
        connection.transport.write(header + body if at_once else header)
        if not connection.protocol.framed:
            replies.recognise(self._message, self._arguments, session, call)
        size = len(header) + len(body)
        context.tally.answered(call.method, time.perf_counter() - self._started, size, from_redis=from_redis)
        dispatcher.served_from_cache(session, call, decision, self._message, self._arguments, size)
        if at_once:
            finish(connection)
        else:
            finish(connection, memoryview(body))

    def work(self) -> None:
        """Answers from the database."""
        answering = Answering(self.connection, self._message, key=self._call.key)
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


def answer_recognised(connection: Connection, data: bytes) -> bool:
    """Has data answered that is a message which was answered from the cache before; most calls come this way.

    It is answered at once, without a state of its own, if nobody need be asked. False: nothing was done.
    """
    context = connection.context
    replies, protocol, session = context.replies, connection.inbox.protocol, connection.session
    if replies is None or protocol is None or protocol.framed or protocol.compact:
        return False
    started = time.perf_counter()
    found = replies.recognised(data, session)
    if found is None:
        return False
    call, arguments = found
    if not _answered_at_once(connection, data, arguments, call, replies, started):
        connection.become(LookingUp(connection, data, arguments, call))
    return True


def _answered_at_once(
    connection: Connection, data: bytes, arguments: int, call: CacheableCall, replies: Replies, started: float
) -> bool:
    """As `LookingUp.give`, for a kept reply that is known to be the truth at this moment."""
    body = replies.at_once(call.key)
    if body is None or len(body) > PIECE_BYTES:
        return False
    context, session = connection.context, connection.session
    dispatcher = context.dispatcher
    decision = None
    if dispatcher.guard is not None:
        decision = dispatcher.guard.allowed_now(session, call.needs, replies.holds)
        if decision is None:
            return False
    reply = binary.reply_to(data, 0, arguments) + body
    connection.transport.write(reply)
    context.tally.answered(call.method, time.perf_counter() - started, len(reply))
    dispatcher.served_from_cache(session, call, decision, data, arguments, len(reply))
    if connection.unsent:
        finish(connection)
    return True


def answer(connection: Connection, message: bytes) -> None:
    """Has a whole message answered: from the cache if that keeps such replies, else by a thread."""
    connection.become(LookingUp.for_message(connection, message) or Answering(connection, message))
