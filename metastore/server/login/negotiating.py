"""SASL: the negotiation as a state."""

import contextlib
from collections.abc import Callable
from functools import partial

from lake.protocol.codec.scanner import Rejected
from lake.protocol.sasl import messages as sasl
from lake.protocol.sasl.messages import Status
from metastore.server.connection.connection import Connection
from metastore.server.connection.replying import Discarding
from metastore.server.credentials.fair_threads import Job
from metastore.server.credentials.identity import Denied, TooMany, Unavailable
from metastore.server.credentials.logins import PasswordCheck
from metastore.server.login import mechanisms
from metastore.server.login.mechanisms import Mechanism, ServerProcess, Step
from metastore.server.login.progress import TRY_AGAIN_SECONDS, LoginState, Progress, log
from metastore.server.login.sasl_layer import ProtectedLayer, SaslLayer

_Checked = Step | Denied
"""The result of a step that doesn't wait for a password any more."""
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
            if isinstance(self._mechanism, ServerProcess):  # probes wait for nobody
                result = self._result(self._mechanism, partial(self._mechanism.step, message.payload))
                assert isinstance(result, _Checked)
                self._stepped(self._mechanism, result)
            else:
                self.progress.logins.proofs.submit(
                    self._job(self._mechanism, partial(self._step, self._mechanism, message.payload))
                )

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

    def _job(self, mechanism: Mechanism, run: Callable[[], None], user: str = "") -> Job:
        connection = self.connection
        return Job(
            connection.session.peer,
            run,
            refuse=partial(self._tell, mechanism),
            gone=lambda: connection.gone,
            user=user,
        )

    def _step(self, mechanism: Mechanism, response: bytes) -> None:
        """In a thread."""
        result = self._result(mechanism, partial(mechanism.step, response))
        if isinstance(result, PasswordCheck):
            run = partial(self._check, mechanism, result)
            self.progress.logins.checks.submit(self._job(mechanism, run, result.user))
        else:
            self._tell(mechanism, result)

    def _check(self, mechanism: Mechanism, check: PasswordCheck) -> None:
        """In a thread."""
        result = self._result(mechanism, lambda: Step(b"", check.finish()))
        assert isinstance(result, _Checked)
        self._tell(mechanism, result)

    @staticmethod
    def _result(mechanism: Mechanism, function: Callable[[], Step | PasswordCheck]) -> Step | PasswordCheck | Denied:
        try:
            return function()
        except Denied as denied:
            return denied
        except Exception as error:
            log.exception("a login failed with an error", mechanism=mechanism.name)
            return Unavailable("the login can't be checked", type(error).__name__)

    def _tell(self, mechanism: Mechanism, result: Step | Denied) -> None:
        """From any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.connection.context.loop.call_soon_threadsafe(self._stepped, mechanism, result)

    def _stepped(self, mechanism: Mechanism, result: Step | Denied) -> None:
        connection = self.connection
        if connection.state is not self:
            return
        self._working = False
        if isinstance(result, Denied):
            self._refused = True
            self.progress.failed(mechanism.name, result, mechanism.user)
            connection.closes_after_login()
            if isinstance(result, TooMany):
                connection.context.loop.call_later(TRY_AGAIN_SECONDS, self._refuse, str(result))
            else:
                self._refuse(str(result))
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
