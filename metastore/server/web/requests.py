"""What handlers of the HTTP port's requests have in common: who sends one, its body, and refusals.

All of it is for handlers that run in threads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from anyio import from_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from metastore.server.credentials.http_credentials import ACTOR_HEADER, Ambiguous
from metastore.server.credentials.identity import Denied, Identity, TooMany, Unavailable
from metastore.server.login.http import RETRY_AFTER
from metastore.server.login.passing_on import PassedOn
from metastore.server.web.request_logins import RequestLogins
from metastore.settings import Settings

_DISCARD_SECONDS = 1.0
_LONGEST_BODY_SECONDS = 3_600.0  # without receive_timeout_seconds

Header = tuple[str, str]


class Refused(Exception):
    """A request is answered with a status, a line of text and headers, and nothing else is done."""

    def __init__(self, status: int, text: str, headers: Sequence[Header] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.headers = headers


@dataclass(frozen=True, slots=True)
class Client:
    """Who is at the other end of a connection. `peer`: the address and port. `certificate`: as `ssl` has it.

    `half_closed`: whether the client sends no more.
    """

    peer: str
    certificate: Mapping[str, Any] | None
    encrypted: bool
    half_closed: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Context:
    """What a request's handler finds as `request.state.context`. `logins`: None where everybody may come in."""

    settings: Settings
    logins: RequestLogins | None
    client: Client


def head_limit(settings: Settings) -> str:
    """What a client reads whose request has a longer head."""
    return f"the request's headers have more than {int(settings.login_max_bytes)} bytes (login_max_bytes)"


def context(request: Request) -> Context:
    found: Context = request.state.context
    return found


def caller(request: Request) -> PassedOn:
    """Who sends the request. Raises Refused."""
    client = context(request).client
    return PassedOn(_identity(request, client), client.peer)


def challenges(request: Request) -> list[Header]:
    """The headers of a response 401 that say how to log in."""
    logins = context(request).logins
    return [] if logins is None else [("WWW-Authenticate", each) for each in logins.challenges]


def body(request: Request, limit: int) -> bytes:
    """The body of a request, of at most `limit` bytes. Raises Refused."""
    length = request.headers.get("Content-Length")
    if length is None and "Transfer-Encoding" not in request.headers:
        raise Refused(411, "say how long the body is")
    too_long = Refused(413, f"at most {limit:,} bytes are read")
    if length is not None and int(length) > limit:
        raise too_long
    seconds = context(request).settings.receive_timeout_seconds or _LONGEST_BODY_SECONDS

    async def received() -> bytearray:
        found = bytearray()
        with anyio.fail_after(seconds):
            async for piece in request.stream():
                found += piece
                if len(found) > limit:
                    raise too_long
        return found

    try:
        return bytes(from_thread.run(received))
    except TimeoutError:
        raise Refused(408, "the request doesn't come to its end") from None
    except ClientDisconnect:
        raise Refused(400, "the request ends too early") from None


async def refusal(request: Request, refused: Exception) -> Response:
    """The answer to a refused request. A little of its body is read first: a client that is reset while it sends
    gets to read no answer."""
    assert isinstance(refused, Refused)
    if "Expect" not in request.headers:
        left = int(context(request).settings.login_max_bytes)
        with anyio.move_on_after(_DISCARD_SECONDS):
            while left > 0 and (message := await request.receive()).get("more_body"):
                left -= len(message["body"])
    response = PlainTextResponse(f"{refused}\n", refused.status)
    for name, value in refused.headers:
        response.headers.append(name, value)
    return response


def _identity(request: Request, client: Client) -> Identity | None:
    logins = context(request).logins
    if logins is None:
        return None
    try:
        return logins.sender(
            request.headers.getlist("Authorization"),
            request.headers.getlist(ACTOR_HEADER),
            client.certificate,
            encrypted=client.encrypted,
            peer=client.peer,
            half_closed=client.half_closed,
        )
    except Ambiguous as denied:
        raise Refused(400, str(denied)) from None
    except TooMany as denied:
        raise Refused(429, str(denied), [*RETRY_AFTER.items()]) from None
    except Unavailable as denied:
        raise Refused(503, str(denied)) from None
    except Denied as denied:
        raise Refused(401, str(denied), challenges(request)) from None
