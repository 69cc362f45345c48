"""Who sends a request over HTTP, as its headers say: for Thrift over HTTP and for the HTTP port alike.

`Authorization` holds a user with a password (RFC 7617), a JSON Web Token or one of the server's own delegation tokens
(RFC 6750), or a ticket of Kerberos (RFC 4559). A bare name is believed if the server is told to.
"""

import base64
import binascii
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from lake.protocol.sasl import delegation_token
from lake.protocol.sasl.delegation_token import BadToken
from metastore.server.credentials.identity import Denied, Identity, checked
from metastore.server.credentials.json_web_tokens import MAX_TOKEN_BYTES, Verified
from metastore.server.credentials.logins import Logins, PasswordCheck
from metastore.services.access.issued_tokens import TokenRefused

ACTOR_HEADER = "x-actor-username"
"""The header in which Hive's clients name their user."""

REALM = "metastore"


class Ambiguous(Denied):
    """A request says more than once who sends it."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a request proves its sender with, by which way of logging in. `value`: the credentials, or the bare name."""

    mechanism: Literal["plain", "jwt", "token", "kerberos", "header"]
    value: str = field(repr=False)

    @property
    def user(self) -> str | None:
        """Who the request says it is from, where that can be read without a check."""
        if self.mechanism == "header":
            return self.value
        return _user_and_password(self.value)[0] if self.mechanism == "plain" else None


def given(authorizations: Sequence[str], actors: Sequence[str], logins: Logins, *, encrypted: bool) -> Given | None:
    """What a request is checked by; None if it has nothing that this server looks at.

    `authorizations` and `actors`: the values of the headers `Authorization` and `x-actor-username`.
    Raises Ambiguous, Denied.
    """
    if len(authorizations) > 1 or len(actors) > 1:
        raise Ambiguous("the request says more than once who sends it")
    taken = _taken(logins)
    if authorizations and taken:
        if not encrypted and not logins.settings.credentials_without_tls:
            raise Denied("this server takes passwords, bearer tokens and tickets over HTTP within TLS only")
        scheme, _, value = authorizations[0].partition(" ")
        if scheme.lower() not in taken:
            raise Denied(f"this server takes the authorization {' or '.join(each.title() for each in taken)} only")
        if scheme.lower() == "basic":
            return Given("plain", value.strip())
        if scheme.lower() == "negotiate":
            return Given("kerberos", value.strip())
        issued = logins.bearer is None or (logins.tokens is not None and "." not in value)
        return Given("token" if issued else "jwt", value.strip())
    if actors and "header" in logins.allowed:
        return Given("header", actors[0])
    return None


def check(sent: Given, logins: Logins, peer: str) -> Verified | PasswordCheck:
    """Whom a request names, and until when; or how that is found out. For a thread: it may ask others.

    Raises Denied.
    """
    if sent.mechanism == "header":
        return Verified(checked(Identity(sent.value, "header")), 0)
    if sent.mechanism == "plain":
        found = _by_password(sent.value, logins, peer)
        return Verified(found, 0) if isinstance(found, Identity) else found
    if sent.mechanism == "token":
        return Verified(_by_issued_token(sent.value, logins), 0)
    if sent.mechanism == "kerberos":
        return Verified(_by_ticket(sent.value, logins), 0)
    assert logins.bearer is not None
    return logins.bearer.check(sent.value)


def challenges(logins: Logins) -> list[str]:
    """The values of `WWW-Authenticate` in a refusal."""
    parameters = {
        "negotiate": "Negotiate",
        "basic": f'Basic realm="{REALM}", charset="UTF-8"',
        "bearer": f'Bearer realm="{REALM}"',
    }
    return [parameters[each] for each in _taken(logins)]


def wanted(logins: Logins) -> str:
    """What a request may say who sends it with, in words."""
    words = {"negotiate": "a ticket (Negotiate)", "basic": "a password (Basic)", "bearer": "a bearer token"}
    ways = [words[each] for each in _taken(logins)]
    if "header" in logins.allowed:
        ways.append(f"the header {ACTOR_HEADER}")
    if "certificate" in logins.allowed:
        ways.append("a client's certificate")
    return " or ".join(ways)


def _taken(logins: Logins) -> list[Literal["negotiate", "basic", "bearer"]]:
    """The schemes of `Authorization` that mean something here."""
    taken: list[Literal["negotiate", "basic", "bearer"]] = []
    if logins.kerberos is not None and logins.kerberos.speaks_http:
        taken.append("negotiate")
    if logins.passwords is not None:
        taken.append("basic")
    if logins.bearer is not None or logins.tokens is not None:
        taken.append("bearer")
    return taken


def _by_password(value: str, logins: Logins, peer: str) -> Identity | PasswordCheck:
    user, password = _user_and_password(value)
    if not user or not password or "\0" in user + password:
        raise Denied("the authorization Basic is not a user and a password in base64")
    return logins.by_password(user, password, peer)


def _user_and_password(value: str) -> tuple[str | None, str | None]:
    """What the authorization Basic holds; None where it holds nothing of the kind."""
    try:
        user, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None, None
    return (user, password) if colon else (None, None)


def _by_ticket(text: str, logins: Logins) -> Identity:
    assert logins.kerberos is not None
    try:
        token = base64.b64decode(text, validate=True)
    except ValueError:
        token = b""
    if not token:
        raise Denied("the authorization Negotiate is no token in base64")
    user = logins.kerberos.negotiated(token)
    return checked(Identity(user, "kerberos", logins.groups(user)))


def _by_issued_token(text: str, logins: Logins) -> Identity:
    assert logins.tokens is not None
    if len(text) > MAX_TOKEN_BYTES:
        raise Denied("the bearer token is too long")
    try:
        token = delegation_token.from_text(text)
        identifier, password = logins.tokens.password(token.identifier)
    except (BadToken, TokenRefused) as error:
        raise Denied("the bearer token is not valid", str(error)) from None
    if not hmac.compare_digest(token.password, password):
        raise Denied("the bearer token is not valid", "another password")
    return logins.owner(identifier)
