"""What bounds a connection until somebody has logged in, and the log of logins."""

import asyncio

import structlog

from metastore.server.connection.connection import Connection, State
from metastore.server.credentials.identity import Denied, Identity
from metastore.server.credentials.logins import Logins

TRY_AGAIN_SECONDS = 0.25
"""Time until a client reads that too many logins wait: many try again at once, and each try costs a connection."""

log = structlog.get_logger(__name__)


class Progress:
    """How far a connection's login has come. Event loop only."""

    def __init__(self, connection: Connection, logins: Logins) -> None:
        self.connection = connection
        self.logins = logins
        self.encrypted = False
        self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The time for the login begins, unless it has."""
        if self._timer is None:
            limit = self.logins.settings.login_timeout_seconds
            detail = f"the client has not logged in within {limit:g} s (login_timeout_seconds)"
            self._timer = self.connection.context.loop.call_later(
                limit, self.connection.close_for, "login_timeout", detail
            )

    def end(self) -> None:
        """The time for the login ends: it is done, or there is none."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def may_receive(self, count: int) -> bool:
        """Counts bytes. False: there are too many, and the connection has ended."""
        self._bytes += count
        limit = self.logins.settings.login_max_bytes
        if self._bytes > limit:
            detail = f"the client sent more than {int(limit)} bytes and has not logged in (login_max_bytes)"
            self.connection.close_for("login_size", detail)
        return self._bytes <= limit

    def succeeded(self, identity: Identity) -> None:
        """Somebody has logged in."""
        connection = self.connection
        connection.logged_in(identity)
        self.logins.records.succeeded(identity, connection.session.peer, encrypted=self.encrypted)

    def failed(self, mechanism: str, denied: Denied, user: str | None = None) -> None:
        """Somebody was refused, perhaps a `user`."""
        self.logins.records.refused(mechanism, denied, self.connection.session.peer, user)


class LoginState(State):
    """A state before the login is done."""

    __slots__ = ("progress",)

    def __init__(self, connection: Connection, progress: Progress) -> None:
        super().__init__(connection)
        self.progress = progress

    def drain(self) -> None:
        self.connection.close_reported = True
        self.connection.transport.close()

    def lost(self) -> None:
        self.progress.end()
