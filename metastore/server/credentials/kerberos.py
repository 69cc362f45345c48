"""Kerberos, from the server's side: the keytab, and whom principals are. It needs the extra `kerberos`."""

import socket
from pathlib import Path

import gssapi

from lake.protocol.errors import UserError
from lake.protocol.sasl.gssapi_messages import describe
from metastore.server.credentials.identity import Denied, Unavailable
from metastore.services.access.auth_to_local import AuthToLocal, NoUser, Principal
from metastore.settings import Settings

_HOST = "_HOST"
_MECHANISM = gssapi.MechType.kerberos
_NEGOTIATION = gssapi.OID.from_int_seq("1.3.6.1.5.5.2")
"""SPNEGO (RFC 4178), which HTTP's clients use."""


class BadKeytab(UserError):
    """The keytab can't be read, or has no key of the server's principal."""


class Kerberos:
    """The server's own principal, and the users of others. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        """Raises BadKeytab."""
        assert settings.kerberos_principal is not None and settings.kerberos_keytab is not None
        self._keytab = settings.kerberos_keytab
        self._principal = Principal.parse(settings.kerberos_principal.replace(_HOST, socket.getfqdn().lower()))
        self._rules = AuthToLocal(settings.auth_to_local, self._principal.realm)
        _check(self._keytab)
        try:
            self._credentials(self._principal, _MECHANISM)
        except gssapi.exceptions.GSSError as error:
            raise BadKeytab(f"{self._keytab} has no key of {self._principal}: {describe(error)}") from None
        self._http = Principal(("HTTP", *self._principal.components[1:]), self._principal.realm)
        self.speaks_http = self._has_key(self._http)
        """Whether the keytab has a key of `HTTP/host`, the principal to which HTTP's clients get tickets (RFC 4559)."""

    def context(self) -> gssapi.SecurityContext:
        """A new context for a client's login. The keytab is read anew: a replaced one holds at once.

        Raises Unavailable.
        """
        return self._context(self._principal, _MECHANISM)

    def negotiated(self, token: bytes) -> str:
        """The user whom a request's only token of SPNEGO proves. Raises Denied, Unavailable."""
        context = self._context(self._http, _NEGOTIATION)
        try:
            context.step(token)
            if not context.complete:
                raise Denied("the authorization Negotiate has no ticket of Kerberos for this server")
            return self.user(str(context.initiator_name))
        except gssapi.exceptions.GSSError as error:
            raise Denied(f"the authorization Negotiate is not valid: {describe(error)}") from None

    def _context(self, principal: Principal, mechanism: gssapi.OID) -> gssapi.SecurityContext:
        try:
            context = gssapi.SecurityContext(creds=self._credentials(principal, mechanism), usage="accept")
        except gssapi.exceptions.GSSError as error:
            raise Unavailable(
                "Kerberos logins can't be checked: the server can't use its keytab",
                f"{self._keytab}: {describe(error)}",
            ) from None
        # The library would return Kerberos' own error message, and raise at the next call.
        context.__DEFER_STEP_ERRORS__ = False
        return context

    def user(self, principal: str) -> str:
        """The user of a client's principal. Raises Denied."""
        try:
            return self._rules.user(principal)
        except NoUser as error:
            raise Denied(str(error)) from None

    def _has_key(self, principal: Principal) -> bool:
        try:
            self._credentials(principal, _MECHANISM)
        except gssapi.exceptions.GSSError:
            return False
        return True

    def _credentials(self, principal: Principal, mechanism: gssapi.OID) -> gssapi.Credentials:
        name = gssapi.Name(str(principal), gssapi.NameType.kerberos_principal)
        store = {"keytab": f"FILE:{self._keytab}"}
        return gssapi.Credentials(name=name, usage="accept", mechs=[mechanism], store=store)


def _check(keytab: Path) -> None:
    """The library's own message doesn't say why a file can't be read. Raises BadKeytab."""
    try:
        with keytab.open("rb"):
            pass
    except OSError as error:
        raise BadKeytab(f"can't read the keytab {keytab}: {error.strerror}") from None
