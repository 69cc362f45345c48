"""Finds out who sends a request to the HTTP port: by the same logins as on the Thrift ports.

Each request has a thread of its own here, which waits for the answer.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from metastore.server.credentials import certificates, http_credentials, logins
from metastore.server.credentials.http_credentials import Given
from metastore.server.credentials.identity import Denied, Identity, TooMany, Unavailable
from metastore.server.credentials.logins import Logins, PasswordCheck, Tokens
from metastore.server.credentials.password_file import password_version
from metastore.server.login.progress import TRY_AGAIN_SECONDS
from metastore.server.monitoring import audit
from metastore.services.access.issued_tokens import IssuedTokenService
from metastore.settings import Settings
from metastore.store import Database, DatabaseUnavailable

_ENCRYPT = "this server takes encrypted connections only (tls_required): use https"

log = structlog.get_logger(__name__)


class RequestLogins:
    """What requests are checked with. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        """Raises UserError, OSError for files and functions that can't be used."""
        self._settings = settings
        self._logins = Logins(settings, _tokens(settings))
        self.audit_log = audit.audit_log(settings)
        self._logins.start(self.audit_log, requests=True)
        self.tls = self._logins.tls
        if self.tls is not None:
            threading.Thread(target=self._look_at_certificates, name="certificates", daemon=True).start()

    @property
    def challenges(self) -> Sequence[str]:
        """The values of `WWW-Authenticate` in a refusal."""
        return http_credentials.challenges(self._logins)

    def sender(
        self,
        authorizations: Sequence[str],
        actors: Sequence[str],
        certificate: Mapping[str, Any] | None,
        *,
        encrypted: bool,
        peer: str,
        half_closed: Callable[[], bool],
    ) -> Identity | None:
        """Who sends a request; None for who proves nothing, if that is allowed.

        `authorizations` and `actors`: the values of its headers. `certificate`: the client's, as `ssl` has it.
        `half_closed`: whether the client sends no more. Logins from an address where some failed wait. Raises Denied,
        TooMany, Unavailable, Ambiguous.
        """
        taken = self._logins
        if self._settings.tls_required and not encrypted:
            raise Denied(_ENCRYPT)
        sent = http_credentials.given(authorizations, actors, taken, encrypted=encrypted)
        if sent is not None:
            return self._checked(sent, encrypted, peer, half_closed)
        if certificate and "certificate" in taken.allowed:
            try:
                return self._succeeded(
                    certificates.user_of(certificate, self._settings.certificate_user), encrypted, peer
                )
            except Denied as denied:
                self._logins.records.refused("certificate", denied, peer, None)
                raise
        if "none" in taken.allowed:
            return None
        if not (wanted := http_credentials.wanted(taken)):
            raise Denied(
                f"the HTTP port knows none of this server's ways to log in ({', '.join(sorted(taken.allowed))}): "
                "add plain, jwt, token or certificate to `authentication`, or a key of HTTP/host to Kerberos' keytab"
            )
        raise Denied(f"the request doesn't say who sends it: this server wants {wanted}")

    def _checked(self, sent: Given, encrypted: bool, peer: str, half_closed: Callable[[], bool]) -> Identity:
        try:
            identity = self._check(sent, peer, half_closed)
        except Denied as denied:
            self._logins.records.refused(sent.mechanism, denied, peer, sent.user)
            if isinstance(denied, TooMany):
                time.sleep(TRY_AGAIN_SECONDS)
            raise
        return self._succeeded(identity, encrypted, peer)

    def _check(self, sent: Given, peer: str, half_closed: Callable[[], bool]) -> Identity:
        taken = self._logins
        try:
            found = taken.proofs.call(peer, "", lambda: http_credentials.check(sent, taken, peer), half_closed)
            if isinstance(found, PasswordCheck):
                return taken.checks.call(peer, found.user, found.finish, half_closed)
            return found.identity
        except Denied:
            raise
        except DatabaseUnavailable as error:
            raise Unavailable("tokens can't be checked", str(error)) from None
        except Exception as error:
            log.exception("a request's login can't be checked", mechanism=sent.mechanism)
            raise Unavailable("who sends the request can't be checked", type(error).__name__) from None

    def _succeeded(self, identity: Identity, encrypted: bool, peer: str) -> Identity:
        self._logins.records.succeeded(identity, peer, encrypted=encrypted)
        return identity

    def _look_at_certificates(self) -> None:
        while self.tls is not None:
            time.sleep(certificates.LOOK_SECONDS)
            self.tls.look()


def request_logins(settings: Settings) -> RequestLogins | None:
    """None where everybody may come in, and nothing is encrypted. Raises UserError."""
    return RequestLogins(settings) if logins.needed(settings) else None


def _tokens(settings: Settings) -> Tokens | None:
    """Who knows the delegation tokens. It connects to the database once a token comes."""
    if "token" not in settings.authentication:
        return None
    assert settings.database_url is not None
    database = Database(settings.database_url, pool_size=1, application_name="metastore-http")
    version = password_version(settings.password_file)
    return IssuedTokenService(database, settings.proxy_users, enabled=True, password_version=version)
