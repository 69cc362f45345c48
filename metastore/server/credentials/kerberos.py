"""Kerberos, from the server's side: the keytab, and whom principals are. It needs the extra `kerberos`."""

import socket
from pathlib import Path

import gssapi

from metastore.errors import UserError
from metastore.server.credentials.identity import Denied, Unavailable
from metastore.services.access.auth_to_local import AuthToLocal, NoUser, Principal
from metastore.settings import Settings
from metastore.wire.gssapi_messages import describe

_HOST = "_HOST"
_MECHANISM = gssapi.MechType.kerberos


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
            self._credentials()
        except gssapi.exceptions.GSSError as error:
            raise BadKeytab(f"{self._keytab} has no key of {self._principal}: {describe(error)}") from None

    def context(self) -> gssapi.SecurityContext:
        """A new context for a client's login. The keytab is read anew: a replaced one holds at once.

        Raises Unavailable.
        """
        try:
            context = gssapi.SecurityContext(creds=self._credentials(), usage="accept")
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

    def _credentials(self) -> gssapi.Credentials:
        name = gssapi.Name(str(self._principal), gssapi.NameType.kerberos_principal)
        store = {"keytab": f"FILE:{self._keytab}"}
        return gssapi.Credentials(name=name, usage="accept", mechs=[_MECHANISM], store=store)


def _check(keytab: Path) -> None:
    """The library's own message doesn't say why a file can't be read. Raises BadKeytab."""
    try:
        with keytab.open("rb"):
            pass
    except OSError as error:
        raise BadKeytab(f"can't read the keytab {keytab}: {error.strerror}") from None
