"""The first state of a connection where logins or encryption are configured: what does the client speak?"""

from lake.protocol.codec import foreign, protocols
from lake.protocol.codec.protocols import Refused
from lake.protocol.codec.scanner import Exceeded, Rejected
from metastore.server.connection.connection import Connection
from metastore.server.connection.context import WorkerContext
from metastore.server.connection.receiving import Receiving
from metastore.server.connection.replying import refusal, refuse, reject_foreign
from metastore.server.credentials.logins import Logins
from metastore.server.login.handshaking import Handshaking
from metastore.server.login.http import HttpLayer
from metastore.server.login.negotiating import Negotiating
from metastore.server.login.progress import LoginState, Progress

_TLS_FIRST = (
    "this server takes encrypted connections only (tls_required): switch TLS on in the client "
    "(Hive, Spark: hive.metastore.use.SSL=true)"
)


def open_connection(connection_id: str, context: WorkerContext, *, include_uncommitted: bool) -> Connection:
    """A connection that waits for its first bytes once asyncio has opened it."""
    logins = context.logins
    if logins is None:
        return Connection(connection_id, context, Receiving, include_uncommitted=include_uncommitted)
    return Connection(
        connection_id,
        context,
        Receiving,
        first=lambda connection: Detecting(connection, Progress(connection, logins)),
        include_uncommitted=include_uncommitted,
    )


class Detecting(LoginState):
    """Waits for the first bytes, at the beginning of a connection and again within TLS."""

    __slots__ = ("_idle_since", "_introduced")

    def __init__(self, connection: Connection, progress: Progress) -> None:
        super().__init__(connection, progress)
        self._introduced = False  # by `set_ugi`, which was refused
        self._idle_since: float | None = None

    def enter(self) -> None:
        self._idle_since = self.connection.context.loop.time()
        if not self._may_stay_unknown:
            self.progress.begin()
        elif not len(self.connection.inbox):
            self.progress.end()
        self._look()

    def data_received(self, data: bytes) -> None:
        self._idle_since = None
        self.progress.begin()
        self.connection.inbox.add(data)
        self._look()
        if self.connection.state is self:
            self.progress.may_receive(len(data))

    def is_idle(self, since: float) -> bool:
        return self._idle_since is not None and self._idle_since <= since

    @property
    def _may_stay_unknown(self) -> bool:
        """Whether the client needs to prove nothing, or has done so."""
        return self.connection.identity is not None or "none" in self.progress.logins.allowed

    def _look(self) -> None:
        connection, progress = self.connection, self.progress
        beginning = connection.inbox.beginning
        if not beginning:
            return
        kind = foreign.kind_of(beginning)
        if kind is None and foreign.may_become(beginning):
            return
        settings = progress.logins.settings
        open_enough = progress.encrypted or not settings.tls_required
        if kind == "tls" and progress.logins.tls is not None and not progress.encrypted:
            connection.become(Handshaking(connection, progress, Detecting))
        elif kind == "sasl":  # also where TLS is required: the server's own processes come this way
            connection.become(Negotiating(connection, progress))
        elif kind == "http" and progress.logins.speaks_http and open_enough:
            HttpLayer.begin(connection, progress)
        elif kind is not None:
            progress.end()
            refusal = foreign.recognised(beginning, _protocols(progress.logins))
            assert refusal is not None
            reject_foreign(connection, refusal)
        elif not open_enough:
            self._refuse_call("not_encrypted", _TLS_FIRST)
        elif not self._may_stay_unknown:
            self._refuse_call("not_logged_in", _login_first(progress.logins))
        else:
            progress.end()
            connection.become(connection.receiving(connection))

    def _refuse_call(self, reason: str, text: str) -> None:
        """Answers the first call with an error, once it is known which one it is. The connection ends.

        Hive's clients say who they are first, by `set_ugi`, and go on when that is refused: what their users read is
        what becomes of the call after it. So that one is answered as well.
        """
        connection, inbox = self.connection, self.connection.inbox
        exceeded = Exceeded(reason, text)
        try:
            message = inbox.take()
        except Refused as refused:
            self._end_with(Refused(exceeded, refused.to, ended=False))
        except Rejected as rejected:
            connection.close_for(rejected.reason, str(rejected))
        else:
            if message is None:
                return
            call = Refused(exceeded, protocols.header_of(connection.protocol, message), ended=False)
            if call.to.header.name == "set_ugi" and not self._introduced:
                self._introduced = True
                connection.transport.write(refusal(connection, call))
                self._look()
            else:
                self._end_with(call)

    def _end_with(self, refused: Refused) -> None:
        self.progress.end()
        refuse(self.connection, refused)


def _protocols(logins: Logins) -> str:
    """What the server speaks, for those whom it doesn't understand."""
    ways = ["within TLS" if logins.settings.tls_required else "plain or within TLS"] if logins.tls else ["plain"]
    if logins.passwords is not None:
        ways.append("after SASL PLAIN")
    if logins.kerberos is not None:
        ways.append("after SASL GSSAPI")
    if logins.speaks_http:
        ways.append("or by POST /metastore")
    return f"this port speaks Thrift ({', '.join(ways)})"


def _login_first(logins: Logins) -> str:
    """How to log in, for those who didn't."""
    return (
        f"this server answers nobody who has not logged in: it takes {', '.join(sorted(logins.allowed))} "
        "(its setting `authentication`), and its documentation says how clients do that"
    )
