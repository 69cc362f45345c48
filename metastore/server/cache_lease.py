"""A worker's lease: while it lasts, nothing that the cache keeps can change, and reads ask nobody. Event loop only.

docs/cache.md says why that is so.
"""

import asyncio
import contextlib
import os
import select
import socket
from collections.abc import Callable

import structlog

from metastore.postgres import messages as postgres
from metastore.postgres.messages import MessageReader
from metastore.server.monitoring import metrics
from metastore.store.cache import cache_lease
from metastore.store.engine import local_peer
from metastore.store.engine.async_connection import LoopConnection

SHORTEST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
"""After a lease that was soon ended by a change, or could not be taken, the next one waits; each time twice as long."""

SHORT_SECONDS = 1.0
"""A lease that lasted less was hardly worth its cost to the writer that ended it."""

log = structlog.get_logger(__name__)


class CacheLease:
    """Takes a lease, and says whether it lasts. One session of Postgres for each worker."""

    def __init__(self, url: str) -> None:
        """`url` is SQLAlchemy's, of a database that is reached `through_unix_socket`."""
        self._database = LoopConnection(
            url,
            cache_lease.PREPARE,
            name="metastore cache lease",
            ready=self._is_ready,
            lost=self._was_lost,
            unasked=self._readable,
        )
        self._socket: socket.socket | None = None  # the session's, while a lease is being taken or held
        self._messages: MessageReader | None = None  # while the answer is awaited
        self._row: list[str | None] = []
        self._then: Callable[[], None] | None = None
        self._arrivals = select.poll()
        self._number = 0
        self._taken = 0
        self._ready = False  # connected
        self._pause = SHORTEST_PAUSE_SECONDS
        self._not_before = 0.0  # by the loop's clock
        self._taken_at = 0.0

    def open(self) -> None:
        """Connects in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._database.open()

    def close(self) -> None:
        self._was_lost()
        self._database.close()

    def holds(self) -> int:
        """The number of the lease that lasts at this moment; 0 for none. Each has another number.

        It lasted when it was looked at: Postgres sends word through the socket before it lets a change be committed.
        """
        if self._taken and self._arrivals.poll(0):
            self._end()
        return self._taken

    def may_be_taken(self) -> bool:
        """Whether a lease is worth trying now."""
        return self._ready and self._socket is None and self._loop.time() >= self._not_before

    def take(self, then: Callable[[], None]) -> None:
        """Tries to take a lease, and calls `then` if that succeeds. Call it if `may_be_taken`."""
        # From here on the session is read without libpq. That would read beyond the answer, and what lies in its
        # buffer can't be seen in the socket.
        self._socket = socket.socket(fileno=os.dup(self._database.descriptor))
        self._messages, self._row, self._then = MessageReader(self._socket.recv), [], then
        message = postgres.query(cache_lease.TAKE)
        try:
            if self._socket.send(message) != len(message):
                self._end()
        except OSError:
            self._end()

    def _readable(self) -> None:
        """Something has arrived in the session. It is the answer to `take`, or the session's end."""
        if self._messages is None:
            self._end()
            return
        try:
            while (message := self._messages.next()).kind != postgres.READY:
                if message.kind == postgres.ROW:
                    self._row = postgres.row(message.body)
        except BlockingIOError:
            return
        except (OSError, EOFError, ValueError):
            self._end()
            return
        self._messages = None
        self._answered(*self._row or ("f", "0"))

    def _answered(self, taken: str | None, backend: str | None) -> None:
        if taken == "f":
            self._end()
            return
        assert self._socket is not None and self._then is not None
        self._arrivals.register(self._socket, select.POLLIN)
        if taken is not None and local_peer.is_backend(self._database.descriptor, int(backend or 0)):
            metrics.cache_lease_taken()
            self._number += 1
            self._taken, self._taken_at = self._number, self._loop.time()
            self._then()
        elif self._arrivals.poll(0):  # the session has ended meanwhile, and its process with it
            self._end()
        else:
            log.info("the cache asks Postgres at each read", reason="this connection can't hold a lease")
            self.close()

    def _end(self) -> None:
        """The lease has ended, or could not be taken. Another one needs another session."""
        now = self._loop.time()
        if self._taken and now - self._taken_at >= SHORT_SECONDS:
            self._pause = SHORTEST_PAUSE_SECONDS
        self._not_before = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        self._was_lost()
        self._database.reconnect(self._not_before - now)

    def _is_ready(self) -> None:
        self._ready = True

    def _was_lost(self) -> None:
        self._ready, self._taken = False, 0
        self._messages = self._then = None
        if self._socket is not None:
            with contextlib.suppress(KeyError):
                self._arrivals.unregister(self._socket)
            self._socket.close()
            self._socket = None
