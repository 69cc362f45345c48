"""Thrift over HTTP/1.1, as Hive 4's clients speak it: one message in the body of each `POST /metastore`.

Each request says who sends it, see `credentials.http_credentials`.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Self

import h11

from metastore.server.connection.connection import Connection, State
from metastore.server.connection.receiving import Receiving
from metastore.server.connection.replying import Discarding, Writing
from metastore.server.credentials import http_credentials
from metastore.server.credentials.fair_threads import Job
from metastore.server.credentials.http_credentials import Ambiguous, Given
from metastore.server.credentials.identity import Denied, Identity, TooMany, Unavailable
from metastore.server.credentials.json_web_tokens import Verified
from metastore.server.credentials.logins import PasswordCheck
from metastore.server.login.layer import Layer
from metastore.server.login.progress import TRY_AGAIN_SECONDS, Progress, log

PATH = b"/metastore"
"""Hive 4.1's clients ask for everything below it, `/metastore/*`, as their server's own pattern is."""
MEDIA_TYPE = "application/x-thrift"
MAX_HEAD_BYTES = 32 << 10
"""Of a request's first line and headers."""

RETRY_AFTER = {"retry-after": "2"}
"""The header of a refusal because too many logins wait (RFC 9110, 10.2.3), in seconds."""

_ACTOR_HEADER = http_credentials.ACTOR_HEADER.encode()
_Checked = Verified | Denied
"""The result of a check that doesn't wait for a password any more."""
_MORE_THAN_ONE = "there is more than one message in the body of a request"


class HttpLayer(Layer):
    """Takes messages out of requests, and puts replies into responses. Event loop only.

    A reply of one piece goes with its length, a longer one in chunks: memory stays flat.
    """

    def __init__(self, connection: Connection, progress: Progress) -> None:
        super().__init__(connection)
        self._progress = progress
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        self._of_connection = connection.identity  # by its certificate
        self._held: bytes | None = None  # the first piece of a reply that may be its only one
        self._checking = False
        self._answered = True  # the last request
        self._paused = False  # by the connection
        self._held_back = False  # by the layer itself
        self._timer: asyncio.TimerHandle | None = None  # from a request's first byte to its last
        self._known: tuple[Given, Verified] | None = None  # the last token, and whom it named

    @classmethod
    def begin(cls, connection: Connection, progress: Progress) -> Self:
        """Puts the layer under a connection that has begun with HTTP."""
        progress.end()  # from here on it is each request that has a time limit
        beginning = connection.inbox.pour()
        layer = cls(connection, progress)
        connection.receiving = partial(ReceivingBody, layer)
        connection.after_reply = layer.next_request
        connection.become(connection.receiving(connection))
        layer.data_received(beginning)
        return layer

    @property
    def body_ended(self) -> bool:
        """Whether all of a request has arrived that isn't answered yet."""
        return not self._answered and not self._checking and self._http.their_state is not h11.SEND_BODY

    # -- called from below ------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._timer is None:
            self._timer = self._time_limit()
        self._http.receive_data(data)
        self._pump()

    def eof_received(self) -> bool | None:
        return self.above.eof_received() or self._checking

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._progress.end()
        super().connection_lost(exc)

    # -- called from above ------------------------------------------------------------------------------------

    def pause_reading(self) -> None:
        self._paused = True
        self.below.pause_reading()

    def resume_reading(self) -> None:
        self._paused = False
        if not self._held_back:
            self.below.resume_reading()
        self.connection.context.loop.call_soon(self._pump)

    def _hold_back(self) -> None:
        """Reads no more for now, whatever the connection asks for."""
        self._held_back = True
        self.below.pause_reading()

    def _let_go(self) -> None:
        if self._held_back:
            self._held_back = False
            self.resume_reading()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._http.our_state is h11.SEND_BODY:
            self._send(h11.Data(data=bytes(data)))
        elif self._held is None:
            self._held = bytes(data)
        else:
            first, self._held = self._held, None
            self._send(_head([("transfer-encoding", "chunked")]), h11.Data(data=first), h11.Data(data=bytes(data)))

    def write_eof(self) -> None:
        self._end_reply()
        self._stop_timer()
        self.remove()  # what still comes is discarded as it is
        self.below.write_eof()

    def next_request(self, connection: Connection) -> State:
        """The last message is answered: the state that follows."""
        self._end_reply()
        if connection.unsent:
            return Writing(connection)
        return ReceivingBody(self, connection)

    def proceed(self) -> bool:
        """Reads the next request, if the last one is answered and at its end. False: the connection ends instead."""
        if not self._answered:
            return True
        if len(self.connection.inbox):
            self.connection.report_close("malformed", _MORE_THAN_ONE)
            self.close()
            return False
        if self._http.our_state is h11.MUST_CLOSE:
            self.close()
            return False
        if self._http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
            self._http.start_next_cycle()
            self._let_go()
        return True

    # -- requests ---------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Passes on what has arrived, as far as the connection takes it."""
        while not (self._paused or self._checking or self.connection.gone or self.connection.transport is not self):
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse(getattr(error, "error_status_hint", 400), f"this is no HTTP request: {error}")
                return
            match event:
                case h11.Request():
                    self._begin(event)
                case h11.Data():
                    self._pass_on(bytes(event.data))
                case h11.EndOfMessage():
                    self._stop_timer()
                    self._end_body()
                case h11.PAUSED:  # the next request is there, and this one isn't answered
                    self._hold_back()
                    return
                case _:  # more has to come, or nothing will
                    return

    def _begin(self, request: h11.Request) -> None:
        self._answered = False
        path = bytes(request.target).partition(b"?")[0]
        if path.removesuffix(b"/*").rstrip(b"/") != PATH:
            self._refuse(404, "Thrift is at /metastore; /metrics, /health and /ready are on the server's http_port")
        elif request.method != b"POST":
            self._refuse(405, "Thrift takes POST", allow="POST")
        else:
            self._authenticate(request)

    def _authenticate(self, request: h11.Request) -> None:
        """Finds out who sends the request; that is checked in a thread, and of a token once for many requests."""
        logins = self._progress.logins
        try:
            sent = http_credentials.given(
                [value.decode("latin-1") for name, value in request.headers if name == b"authorization"],
                [value.decode(errors="replace") for name, value in request.headers if name == _ACTOR_HEADER],
                logins,
                encrypted=self._progress.encrypted,
            )
        except Denied as denied:
            self._refuse(400 if isinstance(denied, Ambiguous) else 401, str(denied))
            return
        if (
            sent is not None
            and self._known is not None
            and self._known[0] == sent
            and time.time() < self._known[1].until
        ):
            self._authenticated(self._known[1].identity)
        elif sent is not None and sent.mechanism == "header":
            self._checking = True
            self._checked(sent, self._by_header(sent))
        elif sent is not None:
            self._checking = True
            self._hold_back()
            logins.proofs.submit(self._job(sent, partial(self._check, sent)))
        elif self._of_connection is not None or "none" in logins.allowed:
            self._authenticated(self._of_connection)
        else:
            self._refuse(
                401, f"the request doesn't say who sends it: this server wants {http_credentials.wanted(logins)}"
            )

    def _by_header(self, sent: Given) -> Verified | Denied:
        found = self._result(sent, self._begin_check)
        assert isinstance(found, _Checked)
        return found

    def _job(self, sent: Given, run: Callable[[], None], user: str = "") -> Job:
        connection = self.connection
        return Job(
            connection.session.peer,
            run,
            refuse=partial(self._tell, sent),
            gone=lambda: connection.gone,
            half_closed=lambda: connection.eof,
            user=user,
        )

    @staticmethod
    def _result(
        sent: Given, function: Callable[[Given], Verified | PasswordCheck]
    ) -> Verified | PasswordCheck | Denied:
        try:
            return function(sent)
        except Denied as denied:
            return denied
        except Exception as error:
            log.exception("a request's login can't be checked", mechanism=sent.mechanism)
            return Unavailable("who sends the request can't be checked", type(error).__name__)

    def _begin_check(self, sent: Given) -> Verified | PasswordCheck:
        return http_credentials.check(sent, self._progress.logins, self.connection.session.peer)

    def _check(self, sent: Given) -> None:
        """In a thread."""
        result = self._result(sent, self._begin_check)
        if isinstance(result, PasswordCheck):
            run = partial(self._finish_check, sent, result)
            self._progress.logins.checks.submit(self._job(sent, run, result.user))
        else:
            self._tell(sent, result)

    def _finish_check(self, sent: Given, check: PasswordCheck) -> None:
        """In a thread."""
        result = self._result(sent, lambda _: Verified(check.finish(), 0))
        assert isinstance(result, _Checked)
        self._tell(sent, result)

    def _tell(self, sent: Given, result: Verified | Denied) -> None:
        """From any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.connection.context.loop.call_soon_threadsafe(self._checked, sent, result)

    def _checked(self, sent: Given, result: Verified | Denied) -> None:
        if self.connection.gone:
            return
        if isinstance(result, Denied):
            self._stop_timer()
            self._progress.failed(sent.mechanism, result, sent.user)
            self.connection.closes_after_login()
            if isinstance(result, TooMany):
                refuse = partial(self._refuse, 429, str(result), **RETRY_AFTER)
                self.connection.context.loop.call_later(TRY_AGAIN_SECONDS, refuse)
            else:
                self._refuse(503 if isinstance(result, Unavailable) else 401, str(result))
            return
        self._checking = False
        self._known = sent, result
        self._authenticated(result.identity)
        self._let_go()

    def _authenticated(self, identity: Identity | None) -> None:
        """A session lasts as long as the same user sends the requests."""
        if identity is not None and identity != self.connection.identity:
            self._progress.succeeded(identity)
        elif identity is None and self.connection.identity is not None:
            self.connection.logged_in(None)
        if self._http.they_are_waiting_for_100_continue:
            self._send(h11.InformationalResponse(status_code=100, headers=[]))

    def _pass_on(self, body: bytes) -> None:
        if self._answered or not isinstance(self.connection.state, Receiving):
            self.connection.close_for("malformed", _MORE_THAN_ONE)
        else:
            self.above.data_received(body)

    def _end_body(self) -> None:
        if self._answered:
            self.proceed()
        elif isinstance(self.connection.state, Receiving):
            self.refuse_body()

    def refuse_body(self) -> None:
        """Refuses a request whose body ended within a message, or has none."""
        self._refuse(400, "the body of the request is not one message of Thrift")

    def _time_limit(self) -> asyncio.TimerHandle | None:
        context = self.connection.context
        limit = context.timeouts.receive
        if self.connection.identity is None and "none" not in self._progress.logins.allowed:
            limit = self._progress.logins.settings.login_timeout_seconds
        if not limit:
            return None
        detail = f"the client doesn't finish its request within {limit:g} s"
        return context.loop.call_later(limit, self.connection.close_for, "receive_timeout", detail)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- responses --------------------------------------------------------------------------------------------

    def _end_reply(self) -> None:
        """The reply is complete: what is held back of its response is sent."""
        if self._answered:
            return
        self._answered = True
        if self._http.our_state is h11.SEND_RESPONSE:
            body, self._held = self._held or b"", None
            self._send(_head([("content-length", str(len(body)))]), h11.Data(data=body))
        if self._http.our_state is h11.SEND_BODY:
            self._send(h11.EndOfMessage())

    def _send(self, *events: h11.Event) -> None:
        """Sends events of a response. One that can't be sent any more ends the connection."""
        try:
            self.below.write(b"".join(self._http.send(event) or b"" for event in events))
        except h11.LocalProtocolError:
            self.connection.close_for("http", "the client broke off its request")

    def _refuse(self, status: int, text: str, **headers: str) -> None:
        """Sends a response of its own and ends the connection: what is left of the request is discarded."""
        connection = self.connection
        if connection.gone or connection.transport is not self:
            return
        self._stop_timer()
        if not isinstance(connection.state, Receiving):
            # A thread works on the reply to the message, and what comes behind that is no HTTP.
            connection.close_for("http", f"status {status}: {text}")
            return
        self.remove()
        if self._held_back:
            self.below.resume_reading()
        body = f"{text}\n".encode()
        if status == 401:
            headers["WWW-Authenticate"] = ", ".join(http_credentials.challenges(self._progress.logins)) or "Bearer"
        lines = [f"{name.title()}: {value}" for name, value in headers.items()]
        head = "\r\n".join(
            [
                f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
                "Content-Type: text/plain; charset=utf-8",
                f"Content-Length: {len(body)}",
                "Connection: close",
                *lines,
            ]
        )
        connection.report_close("http", f"status {status}: {text}")
        connection.become(Discarding(connection, f"{head}\r\n\r\n".encode() + body))


class ReceivingBody(Receiving):
    """Waits for a message in the body of a request, or for the rest of one."""

    __slots__ = ("_layer",)

    messages_follow = False

    def __init__(self, layer: HttpLayer, connection: Connection) -> None:
        super().__init__(connection)
        self._layer = layer

    def enter(self) -> None:
        if self._layer.proceed():
            super().enter()

    def _wait(self) -> None:
        if self._layer.body_ended:
            self._layer.refuse_body()
        else:
            super()._wait()


def _head(headers: list[tuple[str, str]]) -> h11.Response:
    return h11.Response(status_code=200, headers=[("content-type", MEDIA_TYPE), *headers], reason=b"OK")
