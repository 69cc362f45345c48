"""OAuth2 client credentials: a user's name and password for one of the server's delegation tokens.

Clients that know no password send the token from then on. It is for those that can't log in by Basic.
"""

import base64
import json
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import Response
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException

MAX_FORM = 16 << 10

_ERRORS = {400: "invalid_request", 401: "invalid_client", 429: "temporarily_unavailable"}


class NoToken(Exception):
    """A request is answered with an error of OAuth2's."""

    def __init__(self, status: int, error: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.error = error


def with_credentials(request: Request, form: bytes) -> tuple[Request, str]:
    """The request with the credentials of its form as Basic, and the user's name. Raises NoToken."""
    try:
        fields = {key: values[-1] for key, values in parse_qs(form.decode(), max_num_fields=20).items()}
    except ValueError:
        raise NoToken(400, "invalid_request", "the body is no form") from None
    if fields.get("grant_type") != "client_credentials":
        raise NoToken(400, "unsupported_grant_type", "the grant_type must be client_credentials")
    user, password = fields.get("client_id"), fields.get("client_secret")
    headers = request.scope["headers"]
    sent = [value for name, value in headers if name == b"authorization"]
    if user and password and ":" not in user:
        basic = base64.b64encode(f"{user}:{password}".encode())
        others = [(name, value) for name, value in headers if name != b"authorization"]
        return Request({**request.scope, "headers": [*others, (b"authorization", b"Basic " + basic)]}), user
    if len(sent) == 1 and sent[0][:6].lower() == b"basic ":
        try:
            return request, base64.b64decode(sent[0][6:], validate=True).decode().partition(":")[0]
        except ValueError:
            pass
    raise NoToken(401, "invalid_client", "give a user as client_id and a password as client_secret")


def issue(client: ThriftClient, user: str) -> Response:
    """A token of the user, on whose behalf the client calls. Raises NoToken, OSError, TException."""
    try:
        token = client.get_delegation_token(user, user)
    except (MetaException, TApplicationException) as error:
        text = f"{error.message}: add `token` to the server's authentication, or log in by Basic"
        raise NoToken(400, "unauthorized_client", text) from None
    found = {
        "access_token": token,
        "token_type": "bearer",
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }
    return _json(found, 200)


def failure(error: NoToken) -> Response:
    return _json({"error": error.error, "error_description": str(error)}, error.status)


def of_status(status: int, text: str) -> NoToken:
    """What the HTTP port refuses."""
    return NoToken(status, _ERRORS.get(status, "server_error"), text)


def _json(value: dict[str, str], status: int) -> Response:
    headers = {"Cache-Control": "no-store"}
    return Response(json.dumps(value), status, headers, media_type="application/json")
