"""The server's certificate, and the users whom clients' certificates name."""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import structlog

from lake.protocol.errors import UserError
from metastore.server.credentials.identity import Denied, Identity, checked
from metastore.settings import Settings

LOOK_SECONDS = 2.0
"""Time between two looks whether the files were renewed."""

UserField = Literal["cn", "subject", "dns", "email", "uri"]
"""What of a certificate is the user's name; see the setting `certificate_user`."""

_ALTERNATIVES = {"dns": "DNS", "email": "email", "uri": "URI"}
_SHORT = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "stateOrProvinceName": "ST",
    "localityName": "L",
    "domainComponent": "DC",
    "userId": "UID",
}

log = structlog.get_logger(__name__)


class BadCertificate(UserError):
    """The files of TLS can't be used."""


class CertificateFiles:
    """The PEM files of TLS, and the context for handshakes that was made of them last. `look` may run in any thread."""

    def __init__(self, settings: Settings) -> None:
        """Raises BadCertificate."""
        assert settings.tls_certificate is not None and settings.tls_key is not None
        self._certificate, self._key = settings.tls_certificate, settings.tls_key
        self._authorities = settings.tls_client_ca
        self._password = settings.tls_key_password
        self._seen = self._state()
        self.context = self._load()
        """For new handshakes; those that began before keep theirs."""

    def look(self) -> None:
        """Takes renewed files. If they can't be used, the context stays, and the log says why, once."""
        state = self._state()
        if state == self._seen:
            return
        self._seen = state
        try:
            self.context = self._load()
        except BadCertificate as error:
            log.error("renewed files of TLS can't be used; the ones before stay in use", error=str(error))
        else:
            log.info("renewed files of TLS are in use", certificate=str(self._certificate))

    @property
    def _files(self) -> list[Path]:
        return [file for file in (self._certificate, self._key, self._authorities) if file is not None]

    def _state(self) -> list[tuple[int, int, int] | None]:
        """What changes when files are renewed: also a link in the path, as Kubernetes replaces it."""
        found: list[tuple[int, int, int] | None] = []
        for file in self._files:
            try:
                stat = file.stat()
            except OSError:
                found.append(None)
            else:
                found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        return found

    def _load(self) -> ssl.SSLContext:
        for file in self._files:
            try:
                file.read_bytes()
            except OSError as error:
                raise BadCertificate(f"can't read {file}: {error.strerror}") from None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
        # A session that is taken up again would outlive what its certificate was checked against.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        try:
            context.load_cert_chain(self._certificate, self._key, self._key_password)
        except ssl.SSLError as error:
            raise BadCertificate(
                f"{self._certificate} and {self._key} are no pair of a certificate and its key in PEM: {_reason(error)}"
            ) from None
        if self._authorities is not None:
            try:
                context.load_verify_locations(self._authorities)
            except ssl.SSLError as error:
                raise BadCertificate(f"{self._authorities} has no certificates in PEM: {_reason(error)}") from None
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _key_password(self) -> str:
        """Called for an encrypted key only; without it OpenSSL would ask at the terminal."""
        if self._password is None:
            raise BadCertificate(f"{self._key} is encrypted: set tls_key_password")
        return self._password


def user_of(certificate: Mapping[str, Any], field: UserField) -> Identity:
    """Whom a client's certificate names, as `ssl.SSLSocket.getpeercert` returns it.

    Raises Denied if the certificate hasn't exactly one such name: nobody may choose among several.
    """
    subject = [pair for relative in certificate.get("subject", ()) for pair in relative]
    if field == "subject":
        names = [",".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in reversed(subject))]
    elif field == "cn":
        names = [value for name, value in subject if name == "commonName"]
    else:
        kind = _ALTERNATIVES[field]
        names = [value for name, value in certificate.get("subjectAltName", ()) if name == kind]
    if len(names) != 1:
        raise Denied(f"the client's certificate has {len(names)} names of the kind {field}, not one")
    return checked(Identity(names[0], "certificate"))


def _escaped(value: str) -> str:
    """A value within a distinguished name (RFC 4514)."""
    text = "".join(f"\\{character}" if character in ',+"\\<>;=' else character for character in value)
    return f"\\{text}" if text[:1] in ("#", " ") else text


def _reason(error: ssl.SSLError) -> str:
    return error.reason or error.strerror or str(error)
