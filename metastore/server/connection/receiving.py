"""The states in which a message arrives."""

import asyncio
from typing import ClassVar

from lake.protocol.codec import protocols
from lake.protocol.codec.foreign import Foreign
from lake.protocol.codec.protocols import SMALL_BYTES, Refused
from lake.protocol.codec.scanner import Exceeded, Rejected
from metastore.server.connection.connection import Connection, State
from metastore.server.connection.looking_up import answer, answer_recognised
from metastore.server.connection.replying import refuse, reject_foreign

MEMORY_SECONDS = 60.0
"""How long a request waits for memory where there is no `receive_timeout_seconds`."""

_NO_MEMORY = (
    "the requests that are being answered take all the memory there is for them: "
    "try again later, send less at a time, or raise the server's max_request_memory"
)


class Receiving(State):
    """Waits for a message, or for the rest of one."""

    __slots__ = ("_idle_since", "_timer")

    messages_follow: ClassVar[bool] = True
    """Whether nothing lies between a reply and the next message."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._idle_since: float | None = None  # None while a message arrives, or is about to be taken
        self._timer: asyncio.TimerHandle | None = None  # from the first byte of a message

    def enter(self) -> None:
        if self.connection.draining:
            self.connection.transport.close()
        else:
            self._take()

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        connection = self.connection
        if self._idle_since is not None and self.messages_follow and answer_recognised(connection, data):
            if connection.state is self:
                self._idle_since = connection.context.loop.time()
            return
        self._idle_since = None
        self.connection.inbox.add(data)
        self._take()

    def drain(self) -> None:
        self.connection.close_reported = True
        self.connection.transport.close()

    def is_idle(self, since: float) -> bool:
        return self._idle_since is not None and self._idle_since <= since

    def _take(self) -> None:
        """Has the next message answered, or waits for it."""
        connection = self.connection
        inbox = connection.inbox
        try:
            message = inbox.take()
        except Refused as refused:
            refuse(connection, refused)
        except Foreign as foreign:
            reject_foreign(connection, foreign)
        except Rejected as rejected:
            connection.close_for(rejected.reason, str(rejected))
        else:
            if message is None:
                self._wait()
            elif len(message) > SMALL_BYTES and not connection.take_memory(inbox.memory, answered=True):
                connection.become(WaitingForMemory(connection, message))
            else:
                answer(connection, message)

    def _wait(self) -> None:
        connection = self.connection
        size = len(connection.inbox)
        if size > SMALL_BYTES and not connection.take_memory(size):
            connection.become(WaitingForMemory(connection, None))
            return
        connection.resume_reading()  # not before: what is kept must not grow from message to message
        if connection.eof:
            connection.transport.close()
        elif not size:
            self._idle_since = connection.context.loop.time()
        elif self._timer is None and (limit := connection.context.timeouts.receive):
            detail = f"the client doesn't finish its message within {limit:g} s"
            self._timer = connection.context.loop.call_later(limit, connection.close_for, "receive_timeout", detail)


class WaitingForMemory(State):
    """The memory budget has nothing left for a message, or for the rest of one."""

    __slots__ = ("_message", "_timer")

    def __init__(self, connection: Connection, message: bytes | None) -> None:
        """`message` is None if it hasn't arrived completely."""
        super().__init__(connection)
        self._message = message
        self._timer: asyncio.TimerHandle | None = None

    @property
    def owes_reply(self) -> bool:  # type: ignore[override]
        return self._message is not None

    def enter(self) -> None:
        context = self.connection.context
        self.connection.pause_reading()
        self._timer = context.loop.call_later(context.timeouts.receive or MEMORY_SECONDS, self._time_out)

    def leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def memory_granted(self) -> None:
        if self._message is not None:
            answer(self.connection, self._message)
        else:
            self.connection.become(self.connection.receiving(self.connection))

    def drain(self) -> None:
        self.connection.close_reported = True
        self.connection.transport.close()

    def _time_out(self) -> None:
        connection, message = self.connection, self._message
        if message is None:
            refuse(connection, connection.inbox.refuse_unfinished("no_room", _NO_MEMORY))
        else:
            call = protocols.header_of(connection.protocol, message)
            refuse(connection, Refused(Exceeded("no_room", _NO_MEMORY), call, ended=True))
