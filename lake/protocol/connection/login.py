"""How clients log in to a metastore that asks who they are."""

import base64
import hmac
import importlib.util
import os
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, Self

from thrift.Thrift import TException

from lake.protocol.errors import UserError
from lake.protocol.sasl import delegation_token, digest_md5
from lake.protocol.sasl.delegation_token import BadToken
from lake.protocol.sasl.digest_md5 import BadDigest
from lake.protocol.sasl.protection import Protection

SYSTEM = "system"
"""In place of a file of authorities: those that the operating system trusts."""


class LoginRefused(TException):  # type: ignore[misc]
    """The server doesn't let the client in, or the client doesn't trust the server. Trying again doesn't help."""


class BadLogin(UserError):
    """What a login is made of is incomplete, contradicts itself or can't be read."""


class SaslMechanism(Protocol):
    """One login by SASL, from the client's side."""

    name: str

    @property
    def protection(self) -> Protection | None:
        """What messages are wrapped with after the login, if that was agreed."""

    def respond(self, challenge: bytes) -> bytes:
        """Answers a challenge; the first one is empty. Raises LoginRefused."""

    def finish(self, last: bytes) -> None:
        """Checks the server's last word, by which it may have to prove itself. Raises LoginRefused."""


@dataclass(frozen=True)
class Login:
    """What a client proves who it is with. Without arguments it proves nothing, and doesn't encrypt.

    `authorities`: a PEM file of those whom the server's certificate must come from, or `system`; with it the connection
    is encrypted. `certificate` and `key`: PEM files of the client's own certificate. `user` and `password`: for SASL
    PLAIN. `token`: a JSON Web Token, sent over HTTP, or a delegation token of the metastore's. `kerberos_principal`:
    the server's, `service/host@REALM`, where `_HOST` stands for the server's host name; the client's own name is in its
    cache of tickets. `acting_as`: the user for whom a proxy user logs in, by password or Kerberos.

    Raises BadLogin for what doesn't go together.
    """

    authorities: Path | str | None = None
    certificate: Path | str | None = None
    key: Path | str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    kerberos_principal: str | None = None
    acting_as: str | None = None

    def __post_init__(self) -> None:
        wrong = {
            "a user needs a password (METASTORE_PASSWORD or METASTORE_PASSWORD_FILE)": self.user and not self.password,
            "a client's certificate needs its key, and the other way round": bool(self.certificate) != bool(self.key),
            "a client's certificate needs the server's authorities (METASTORE_TLS_CA)": self.certificate
            and not self.authorities,
            "a login is by password, by token or by Kerberos, not by several of them": sum(
                map(bool, (self.user, self.token, self.kerberos_principal))
            )
            > 1,
            "who acts as somebody logs in by password or Kerberos": self.acting_as
            and not (self.user or self.kerberos_principal),
            "a login by Kerberos needs the extra `kerberos`: pip install 'lake-metastore-client[kerberos]'": (
                self.kerberos_principal and importlib.util.find_spec("gssapi") is None
            ),
        }
        for complaint, holds in wrong.items():
            if holds:
                raise BadLogin(complaint)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ, *, user: str | None = None) -> Self:
        """The login that the environment describes; see docs/security.md. `user` comes before METASTORE_USER.

        Raises BadLogin.
        """
        given = user or environment.get("METASTORE_USER") or None
        kerberos = None if user else environment.get("METASTORE_KERBEROS_PRINCIPAL") or None
        return cls(
            authorities=environment.get("METASTORE_TLS_CA") or None,
            certificate=environment.get("METASTORE_CLIENT_CERTIFICATE") or None,
            key=environment.get("METASTORE_CLIENT_KEY") or None,
            user=given,
            password=_secret(environment, "METASTORE_PASSWORD") if given else None,
            token=None if given or kerberos else _secret(environment, "METASTORE_TOKEN"),
            kerberos_principal=kerberos,
            acting_as=environment.get("METASTORE_ACTING_AS") or None,
        )

    @cached_property
    def tls(self) -> ssl.SSLContext | None:
        """The context of encrypted connections; None for plain ones. Raises BadLogin."""
        if self.authorities is None:
            return None
        try:
            file = None if self.authorities == SYSTEM else self.authorities
            context = ssl.create_default_context(cafile=file)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        except OSError as error:  # also what ssl raises
            names = ", ".join(str(each) for each in (self.authorities, self.certificate, self.key) if each)
            raise BadLogin(f"can't use the files of TLS ({names}): {error.strerror or error}") from None
        return context

    @property
    def proves_something(self) -> bool:
        """Whether the client says and proves who it is."""
        return any((self.user, self.token, self.kerberos_principal, self.certificate))

    @property
    def over_http(self) -> bool:
        """Whether calls go over HTTP: only there are bearer tokens sent."""
        return self.token is not None and "." in self.token

    def sasl(self, host: str) -> SaslMechanism | None:
        """A new login by SASL to a server, if it is one. Raises LoginRefused."""
        if self.token is not None:
            return None if self.over_http else _DigestMd5(self.token)
        if self.kerberos_principal is not None:
            from lake.protocol.connection.kerberos import Gssapi  # only here is its library sure to be installed

            principal = self.kerberos_principal.replace("_HOST", host.lower())
            return Gssapi(principal, self.acting_as or "", encrypted=self.tls is not None)
        if self.user is None:
            return None
        return _Plain(self.user, self.password or "", self.acting_as or "")


class _Plain:
    name = "PLAIN"
    protection = None

    def __init__(self, user: str, password: str, acting_as: str) -> None:
        self._response = f"{acting_as}\0{user}\0{password}".encode()

    def respond(self, challenge: bytes) -> bytes:
        return self._response

    def finish(self, last: bytes) -> None:
        """The certificate has proven who the server is."""


class _DigestMd5:
    name = "DIGEST-MD5"
    protection = None

    def __init__(self, text: str) -> None:
        try:
            token = delegation_token.from_text(text)
        except BadToken as error:
            raise BadLogin(f"the token is neither a JSON Web Token nor a delegation token: {error}") from None
        self._user = base64.b64encode(token.identifier).decode()
        self._password = base64.b64encode(token.password).decode()
        self._expected: bytes | None = None

    def respond(self, challenge: bytes) -> bytes:
        if not challenge:
            return b""
        try:
            response, self._expected = digest_md5.response(
                challenge, self._user, self._password, secrets.token_urlsafe(24)
            )
        except BadDigest as error:
            raise LoginRefused(str(error)) from None
        return response

    def finish(self, last: bytes) -> None:
        if self._expected is None or not hmac.compare_digest(last, self._expected):
            raise LoginRefused("the server doesn't know the token's password: it is not the metastore")


def _secret(environment: Mapping[str, str], name: str) -> str | None:
    """A secret from the environment, or from the file that it names. Never from the command line."""
    if value := environment.get(name):
        return value
    if not (file := environment.get(f"{name}_FILE")):
        return None
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadLogin(f"can't read {name}_FILE {file}: {error}") from None
