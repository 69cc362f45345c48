"""SASL: the negotiation as a state."""

import contextlib
from functools import partial

from metastore.server.connection.connection import Connection
from metastore.server.connection.replying import Discarding
from metastore.server.credentials.identity import Denied, Unavailable
from metastore.server.login import mechanisms
from metastore.server.login.mechanisms import Mechanism, Step
from metastore.server.login.progress import LoginState, Progress, log
from metastore.server.login.sasl_layer import ProtectedLayer, SaslLayer
from metastore.wire import sasl
from metastore.wire.sasl import Status
from metastore.wire.scanner import Rejected

_LONGEST_NAME = 40  # of a mechanism; RFC 4422 allows 20


class Negotiating(LoginState):
    """The negotiation of SASL. Its steps run in threads: they compute hashes, and ask other servers."""

    __slots__ = ("_buffer", "_mechanism", "_refused", "_working")

    def __init__(self, connection: Connection, progress: Progress) -> None:
        super().__init__(connection, progress)
        self._buffer = bytearray(connection.inbox.pour())
        self._mechanism: Mechanism | None = None
        self._working = False
        self._refused = False

    def enter(self) -> None:
        if self.progress.may_receive(len(self._buffer)):
            self._take()

    def data_received(self, data: bytes) -> None:
        if not self.progress.may_receive(len(data)) or self._refused:
            return
        self._buffer += data
        if not self._working:
            self._take()

    def _take(self) -> None:
        """Reads the next message, if it has arrived."""
        try:
            message = sasl.take_message(self._buffer, self.progress.logins.settings.login_max_bytes)
        except Rejected as rejected:
            self.connection.close_for(rejected.reason, str(rejected))
            return
        if message is None:
            return
        if self._mechanism is None:
            if message.status is not Status.START:
                self._refuse("Expecting START status", Status.ERROR)
                return
            self._begin(message.payload)
        elif message.status not in (Status.OK, Status.COMPLETE):
            self._refuse(f"Expected OK or COMPLETE, got {message.status.name}", Status.ERROR)
        else:
            self._working = True
            self.progress.logins.checks.submit(partial(self._step, self._mechanism, message.payload))

    def _begin(self, payload: bytes) -> None:
        name = payload[:_LONGEST_NAME].decode("ascii", errors="replace")
        progress = self.progress
        try:
            self._mechanism = mechanisms.begin(
                name, progress.logins, self.connection.session.peer, encrypted=progress.encrypted
            )
        except Denied as denied:
            self._refuse(str(denied))
        else:
            self._take()

    def _step(self, mechanism: Mechanism, response: bytes) -> None:
        """In a thread."""
        result: Step | Denied
        try:
            result = mechanism.step(response)
        except Denied as denied:
            result = denied
        except Exception as error:
            log.exception("a login failed with an error", mechanism=mechanism.name)
            result = Unavailable("the login can't be checked", type(error).__name__)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.connection.context.loop.call_soon_threadsafe(self._stepped, mechanism, result)

    def _stepped(self, mechanism: Mechanism, result: Step | Denied) -> None:
        connection = self.connection
        if connection.state is not self:
            return
        self._working = False
        if isinstance(result, Denied):
            self._refused = True
            pause = self.progress.failed(mechanism.name, result, mechanism.user)
            connection.context.loop.call_later(pause, self._refuse, str(result))
        elif result.identity is None:
            connection.transport.write(sasl.message(Status.OK, result.challenge))
            self._take()
        else:
            self._finish(result)

    def _finish(self, last: Step) -> None:
        connection, progress = self.connection, self.progress
        assert last.identity is not None
        connection.transport.write(sasl.message(Status.COMPLETE, last.challenge))
        progress.succeeded(last.identity)
        if last.on_behalf_of is not None:
            connection.logged_in(last.on_behalf_of.identity, peer=last.on_behalf_of.peer)
        progress.end()
        layer = SaslLayer(connection) if last.protection is None else ProtectedLayer(connection, last.protection)
        connection.become(connection.receiving(connection))
        if self._buffer:
            layer.data_received(bytes(self._buffer))

    def _refuse(self, text: str, status: Status = Status.BAD) -> None:
        connection = self.connection
        if connection.state is not self:
            return
        self.progress.end()
        connection.report_close("login", text)
        connection.become(Discarding(connection, sasl.message(status, text.encode())))
