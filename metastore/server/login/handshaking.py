"""TLS: the handshake as a state, and the layer that stays."""

import contextlib
import ssl
from collections.abc import Callable
from functools import partial

from metastore.server.connection.connection import Connection, State
from metastore.server.credentials import certificates
from metastore.server.credentials.fair_threads import Job
from metastore.server.credentials.identity import Denied, TooMany
from metastore.server.login.layer import Layer
from metastore.server.login.progress import LoginState, Progress

READ_BYTES = 16 << 10
"""How much is decrypted at a time: a record of TLS has no more. Room for more costs system calls each time."""


class Handshaking(LoginState):
    """A TLS handshake. Each step is computed in a thread: signing takes a millisecond, and may come by thousands."""

    __slots__ = ("_incoming", "_outgoing", "_then", "_tls", "_working")

    def __init__(
        self, connection: Connection, progress: Progress, then: Callable[[Connection, Progress], State]
    ) -> None:
        """`then` makes the state that receives what is within TLS."""
        super().__init__(connection, progress)
        self._then = then
        files = progress.logins.tls
        assert files is not None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = files.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._working = False

    def enter(self) -> None:
        self._step(self.connection.inbox.pour())

    def data_received(self, data: bytes) -> None:
        if self._working:
            super().data_received(data)  # one read of it is kept, and the client has to wait with more
        else:
            self._step(data)

    def _step(self, data: bytes) -> None:
        self._working = True
        connection = self.connection
        self.progress.logins.handshakes.submit(
            Job(
                connection.session.peer,
                partial(self._shake, data),
                refuse=self._refuse,
                gone=lambda: connection.gone,
            )
        )

    def _shake(self, data: bytes) -> None:
        """In a thread: nothing else touches the objects of TLS meanwhile."""
        failure: str | None = None
        done = False
        self._incoming.write(data)
        try:
            self._tls.do_handshake()
            done = True
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLError, ValueError) as error:
            failure = getattr(error, "verify_message", None) or getattr(error, "reason", None) or str(error)
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.connection.context.loop.call_soon_threadsafe(self._shaken, len(data), done, failure)

    def _refuse(self, refusal: TooMany) -> None:
        """In a thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.connection.context.loop.call_soon_threadsafe(self.connection.close_for, "tls", str(refusal))

    def _shaken(self, size: int, done: bool, failure: str | None) -> None:
        """`size`: of what the step was made with. With the last one a first call may have come, of any size."""
        connection = self.connection
        if connection.state is not self:
            return
        self._working = False
        if self._outgoing.pending:
            connection.transport.write(self._outgoing.read())  # an alert, if it failed
        if failure is not None:
            connection.report_close("tls", f"the TLS handshake failed: {failure}")
            connection.transport.close()
        elif done:
            self._finish()
        elif self.progress.may_receive(size):
            if len(connection.inbox):
                self._step(connection.inbox.pour())
            connection.resume_reading()

    def _finish(self) -> None:
        connection, progress = self.connection, self.progress
        progress.encrypted = True
        if not self._identify():
            return
        rest = connection.inbox.pour()
        layer = TlsLayer(connection, self._tls, self._incoming, self._outgoing)
        connection.become(self._then(connection, progress))
        connection.resume_reading()
        layer.data_received(rest)  # also what came with the last bytes of the handshake

    def _identify(self) -> bool:
        """Takes the user from the client's certificate, if there is one and such logins are allowed."""
        progress = self.progress
        certificate = self._tls.getpeercert()
        if not certificate or "certificate" not in progress.logins.allowed:
            return True
        try:
            identity = certificates.user_of(certificate, progress.logins.settings.certificate_user)
        except Denied as denied:
            progress.failed("certificate", denied)
            self.connection.close_for("login", str(denied))
            return False
        progress.succeeded(identity)
        return True


class TlsLayer(Layer):
    """Encrypts what the connection writes, and decrypts what arrives."""

    def __init__(
        self, connection: Connection, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        super().__init__(connection)
        self._tls = tls
        self._incoming, self._outgoing = incoming, outgoing
        self._closed = False  # no more is encrypted; what arrives is discarded by its reader

    def data_received(self, data: bytes) -> None:
        if self._closed:
            self.above.data_received(data)
            return
        incoming, tls = self._incoming, self._tls
        incoming.write(data)
        pieces, ended = [], False
        try:
            while piece := tls.read(READ_BYTES):
                pieces.append(piece)
                if not incoming.pending and not tls.pending():
                    break  # without the exception that says the same
            else:
                ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            ended = True
        except ssl.SSLError as error:
            self.connection.close_for("tls", f"what the client sent is no TLS: {error.reason or error}")
            return
        self._flush()
        if pieces:
            self.above.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if ended and not self.above.eof_received():
            self.close()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if len(data) and not self._closed:
            try:
                self._tls.write(data)
            except ssl.SSLError as error:
                self._closed = True
                self.connection.close_for("tls", f"nothing can be encrypted any more: {error.reason or error}")
            else:
                self._flush()

    def write_eof(self) -> None:
        self._say_goodbye()
        self.below.write_eof()

    def close(self) -> None:
        self._say_goodbye()
        self.below.close()

    def _say_goodbye(self) -> None:
        """Sends close_notify. Without it the client couldn't tell the end from an attack."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(ssl.SSLError):  # the client's own goodbye is not waited for
                self._tls.unwrap()
            self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self.below.write(self._outgoing.read())
