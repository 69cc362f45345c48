"""The mechanisms of SASL, from the server's side."""

import base64
import secrets
from typing import NamedTuple, Protocol

from lake.protocol.sasl import digest_md5
from lake.protocol.sasl import messages as sasl
from lake.protocol.sasl.delegation_token import Identifier
from lake.protocol.sasl.protection import Protection
from metastore.server.credentials import logins as credentials
from metastore.server.credentials.identity import Denied, Identity, Unavailable
from metastore.server.credentials.logins import Logins, PasswordCheck
from metastore.server.login.passing_on import PassedOn
from metastore.services.access.issued_tokens import TokenRefused

SERVER_MECHANISM = "METASTORE-PROCESS"
"""How a process of this server logs in to its workers: the secret that the supervisor gave both."""


class Step(NamedTuple):
    """What follows a client's response: a challenge, and the identity once the login is done.

    `protection` is what later messages are wrapped with, if the two sides agreed on that. `on_behalf_of`: whose calls
    follow, if a process of the server passes them on.
    """

    challenge: bytes
    identity: Identity | None = None
    protection: Protection | None = None
    on_behalf_of: PassedOn | None = None


class Mechanism(Protocol):
    """One login. Its steps run in a thread, one at a time; those of a process of the server in the event loop."""

    name: str
    """The name for the log and the metrics."""
    user: str | None
    """Who the client says it is, once it has said so."""

    def step(self, response: bytes) -> Step | PasswordCheck:
        """Answers what the client sent, or says what has to be done before. Raises Denied."""


class Plain:
    """PLAIN (RFC 4616): a name and a password, and perhaps somebody else as whom the client acts."""

    name = "plain"

    def __init__(self, logins: Logins, peer: str) -> None:
        self.user: str | None = None
        self._logins = logins
        self._peer = peer

    def step(self, response: bytes) -> Step | PasswordCheck:
        if not response:
            return Step(b"")  # the client waits for a challenge before it says anything
        try:
            sent = sasl.plain_response(response)
        except ValueError as error:
            raise Denied(str(error)) from None
        self.user = sent.user
        found = self._logins.by_password(sent.user, sent.password, self._peer, sent.authorization)
        return found if isinstance(found, PasswordCheck) else Step(b"", found)


class DigestMd5:
    """DIGEST-MD5 (RFC 2831): the client proves that it has a delegation token, without sending it."""

    name = "token"

    def __init__(self, logins: Logins) -> None:
        self.user: str | None = None
        self._logins = logins
        self._nonce: str | None = None

    def step(self, response: bytes) -> Step:
        if self._nonce is None:
            self._nonce = secrets.token_urlsafe(24)  # what the client says first means nothing
            return Step(digest_md5.challenge(self._nonce))
        try:
            sent = digest_md5.directives(response)
            data = base64.b64decode(sent.get("username", ""), validate=True)
            identifier, password = self._password(data)
            self.user = identifier.owner
            if sent.get("authzid", sent["username"]) != sent["username"]:
                raise Denied("a token is for its owner alone", "another authzid")
            proven = digest_md5.check_response(sent, base64.b64encode(password).decode(), self._nonce)
        except (ValueError, TokenRefused) as error:
            raise Denied("the delegation token is not valid", str(error)) from None
        return Step(proven.answer, self._logins.owner(identifier), proven.protection)

    def _password(self, data: bytes) -> tuple[Identifier, bytes]:
        if self._logins.tokens is None:
            raise Unavailable("tokens can't be checked", "there is nothing to check them with")
        return self._logins.tokens.password(data)


class ServerProcess:
    """A process of this server, such as the one that answers probes. It may pass the calls of its own client on."""

    name = "server"

    def __init__(self) -> None:
        self.user: str | None = None

    def step(self, response: bytes) -> Step:
        secret, caller = response[: credentials.SECRET_BYTES], response[credentials.SECRET_BYTES :]
        if not credentials.is_server_secret(secret):
            raise Denied("wrong secret")
        passed_on = PassedOn.decode(caller) if caller else None
        return Step(b"", Identity("metastore", "server"), on_behalf_of=passed_on)


def begin(name: str, logins: Logins, peer: str, *, encrypted: bool) -> Mechanism:
    """The mechanism that a client asks for. Raises Denied if there is none of that name, or it may not be used."""
    if name == SERVER_MECHANISM:
        return ServerProcess()
    if logins.settings.tls_required and not encrypted:
        raise Denied("this server takes encrypted connections only (tls_required): switch TLS on in the client")
    if name == "PLAIN" and logins.passwords is not None:
        if not encrypted and not logins.settings.credentials_without_tls:
            raise Denied("this server takes passwords within TLS only: switch TLS on in the client")
        return Plain(logins, peer)
    if name == "DIGEST-MD5" and logins.tokens is not None:
        return DigestMd5(logins)
    if name == "GSSAPI" and logins.kerberos is not None:
        from metastore.server.login.kerberos import Gssapi  # only here is its library sure to be installed

        return Gssapi(logins, logins.kerberos, peer)
    raise Denied(f"Unsupported mechanism type {name}", f"mechanism {name!r} is not configured")
