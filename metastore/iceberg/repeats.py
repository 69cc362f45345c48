"""Requests with an `Idempotency-Key`: sent again, they have no second effect, and get the answer of the first time.

A worker keeps the key in the transaction of the change. So it holds for all servers of a database, and after a crash.
"""

import hashlib
import json
from typing import Any
from uuid import UUID

from starlette.requests import Request

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.lake import RequestKey, RequestOutcome
from metastore.iceberg.errors import WORKER_ERRORS, RestError, bad_request, of_worker, unavailable

HEADER = "Idempotency-Key"

LIFETIME = "PT30M"
"""How long after the first time a request may be sent again, as clients are told. Workers keep it for longer."""

_CHANGING = ("POST", "DELETE")
_FINAL = frozenset({400, 404, 405, 406, 409, 422})
"""Refusals that are kept. Who may do something, and which server is busy, is decided again."""

_MAX_TEXT = 2_000  # characters of an error that is kept
_MAX_ANSWER = 65_536  # what a worker keeps


def key_of(request: Request, content: bytes) -> RequestKey | None:
    """The key of a request that changes something, if it has one. `content`: its body. Raises RestError (400)."""
    text = request.headers.get(HEADER)
    if text is None or request.method not in _CHANGING:
        return None
    try:
        key = str(UUID(text.strip()))
    except ValueError:
        raise bad_request(f"{HEADER} is a UUID (version 7), not {text[:60]!r}") from None
    digest = hashlib.sha256(f"{request.method} {request.url.path}?{request.url.query}\n".encode() + content).digest()
    return RequestKey(key, digest)


class Once:
    """One request with a key. Its changes are those that its connection makes, from `begin` to `close`."""

    def __init__(self, client: ThriftClient, key: RequestKey) -> None:
        self._client = client
        self._key = key

    def begin(self) -> RequestOutcome:
        """What became of the request before. Raises RestError."""
        try:
            found: RequestOutcome = self._client.lake_begin_request(self._key)
        except WORKER_ERRORS as error:
            raise of_worker(error, changes=False) from error
        return found

    def note(self, answer: Any, shorter: Any = None) -> None:
        """Has an answer kept with the change that follows, for requests whose answer can't be found out later.

        `shorter`: in place of one that is too long; None: there is none. Raises RestError, 400 for what is too long.
        """
        text = json.dumps(answer, separators=(",", ":"))
        if len(text) > _MAX_ANSWER:
            if shorter is None:
                raise bad_request(f"too much at once for a request with an {HEADER}: change fewer properties")
            text = json.dumps(shorter, separators=(",", ":"))
        self._key = self._key.replace(answer=text)
        self.begin()

    def refused(self, error: RestError) -> RequestOutcome:
        """Keeps a refusal that is final. Returns what is kept: another server may have done the request meanwhile.

        Raises RestError: `error` itself if it says that the outcome isn't known, else 503.
        """
        kept = {"type": error.type, "message": str(error)[:_MAX_TEXT]}
        try:
            if error.status in _FINAL:
                found = self._client.lake_end_request(error.status, json.dumps(kept))
            else:
                found = self._client.lake_end_request(0)
        except WORKER_ERRORS as failure:
            if error.status >= 500:
                raise error from failure
            # Clients clean up after a refusal, and the request may have been done before.
            raise unavailable(f"it can't be found out whether the request was done before: {failure}") from failure
        outcome: RequestOutcome = found
        return outcome

    def close(self) -> None:
        """What the connection changes from here on is nobody's. It is closed if it can't be told."""
        try:
            self._client.lake_end_request()
        except WORKER_ERRORS:
            self._client.close()


def check(outcome: RequestOutcome) -> None:
    """Raises RestError if the key is another request's (422), or the request was refused."""
    if outcome.other:
        text = f"the {HEADER} is that of another request: give each request its own"
        raise RestError(422, "UnprocessableEntityException", text)
    if outcome.refusal is not None:
        kept = json.loads(outcome.answer or "{}")
        raise RestError(outcome.refusal, kept["type"], kept["message"])
