"""Webhooks: sends events as HTTP POST requests, in the structured JSON form of CloudEvents 1.0.

With a secret, the header `X-Metastore-Signature` is `sha256=` and the HMAC-SHA256 of the body, in hexadecimal.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

import urllib3

from eventbus.outlets.base import Outlet
from eventbus.outlets.cloud_events import CONTENT_TYPE, body_of
from lake.protocol.events.filters import Filter
from lake.protocol.events.types import Event

SIGNATURE = "X-Metastore-Signature"
_CONNECT_SECONDS = 5.0
_ANSWER_BYTES = 300  # how much of a failed response is quoted in the error


class NotAccepted(Exception):
    """The response's status is not 2xx."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook's configuration.

    `source`: the CloudEvents `source` of this metastore. `secret`: signs requests. `attempts`: before an event becomes
    a dead letter. `timeout`: in seconds. `max_bytes`: of a request's body; a longer payload is left out.
    """

    name: str
    url: str
    source: str
    wanted: Filter = field(default_factory=Filter)
    secret: str | None = field(default=None, repr=False)
    attempts: int = 8
    timeout: float = 10.0
    max_bytes: int = 1 << 20


class WebhookOutlet(Outlet):
    """Sends one event per request. Redirects are not followed: change the URL in the settings instead."""

    def __init__(self, hook: Webhook) -> None:
        self.name = f"webhook:{hook.name}"
        self.wanted = hook.wanted
        self.attempts = hook.attempts
        self._hook = hook
        self._poster = Poster(hook.url, hook.secret, hook.timeout, CONTENT_TYPE)

    def deliver(self, events: Sequence[Event]) -> None:
        """Sends the events one after another. Raises NotAccepted, urllib3's HTTPError."""
        for event in events:
            self._poster.send(body_of(event, self._hook.source, self._hook.max_bytes, self.history))

    def close(self) -> None:
        self._poster.close()


class Poster:
    """Sends bodies to one URL. Redirects are not followed."""

    def __init__(self, url: str, secret: str | None, timeout: float, content_type: str) -> None:
        """`secret` signs requests. `timeout`: in seconds."""
        self._url = url
        self._secret = secret
        self._content_type = content_type
        self._http = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=min(_CONNECT_SECONDS, timeout), read=timeout), retries=False
        )

    def send(self, body: bytes) -> None:
        """Raises NotAccepted for a status that isn't 2xx, urllib3's HTTPError."""
        headers = {"Content-Type": self._content_type, "User-Agent": "lake-metastore"}
        if self._secret is not None:
            headers[SIGNATURE] = signature(body, self._secret)
        answer = self._http.request(
            "POST", self._url, body=body, headers=headers, redirect=False, preload_content=False
        )
        try:
            if not 200 <= answer.status < 300:
                text = answer.read(_ANSWER_BYTES).decode(errors="replace").strip()
                raise NotAccepted(" ".join([f"HTTP {answer.status}", answer.headers.get("Location", ""), text]).strip())
        finally:
            answer.close()

    def close(self) -> None:
        """Closes connections."""
        self._http.clear()


def signature(body: bytes, secret: str) -> str:
    """The signature header's value. Receivers compute it from the body and compare with `hmac.compare_digest`."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
