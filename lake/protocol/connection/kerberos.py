"""Logins from the Kerberos cache: SASL GSSAPI (RFC 4752) from the client's side. It needs the extra `kerberos`."""

import gssapi

from lake.protocol.connection.login import LoginRefused
from lake.protocol.sasl.gssapi_layers import Choice, SecurityLayer, decode_offer
from lake.protocol.sasl.gssapi_messages import GssapiProtection, describe

_MAX_MESSAGE_BYTES = 1 << 20  # of the wrapped messages that the server may send


class Gssapi:
    """One login with the tickets that `kinit` fetched, or a client's keytab."""

    name = "GSSAPI"

    def __init__(self, principal: str, authorization: str, *, encrypted: bool) -> None:
        """`principal`: the server's, `service/host@REALM`. `authorization`: as whom the client acts, "" is itself.

        `encrypted`: the connection is, so nothing more is asked for than the server demands. Raises LoginRefused.
        """
        self.protection: GssapiProtection | None = None
        self._principal = principal
        self._authorization = authorization
        self._encrypted = encrypted
        try:
            name = gssapi.Name(principal, gssapi.NameType.kerberos_principal)
            flags = gssapi.RequirementFlag
            self._context = gssapi.SecurityContext(
                name=name,
                usage="initiate",
                mech=gssapi.MechType.kerberos,
                flags=flags.mutual_authentication
                | flags.integrity
                | flags.confidentiality
                | flags.out_of_sequence_detection
                | flags.replay_detection,
            )
        except gssapi.exceptions.GSSError as error:
            raise self._refused(error) from None
        self._context.__DEFER_STEP_ERRORS__ = False

    def respond(self, challenge: bytes) -> bytes:
        """Raises LoginRefused."""
        try:
            if not self._context.complete:
                return bytes(self._context.step(challenge or None) or b"")
            return self._choose(bytes(self._context.unwrap(challenge).message))
        except gssapi.exceptions.GSSError as error:
            raise self._refused(error) from None

    def finish(self, last: bytes) -> None:
        """The context has proven who the server is. Raises LoginRefused if it isn't complete."""
        if not self._context.complete:
            raise LoginRefused("the server ends the login by GSSAPI before it has proven who it is")

    def _choose(self, offered: bytes) -> bytes:
        try:
            offer = decode_offer(offered)
        except ValueError as error:
            raise LoginRefused(str(error)) from None
        layer = self._layer(offer.layers)
        if layer is not SecurityLayer.AUTH:
            try:
                self.protection = GssapiProtection(self._context, layer, offer.max_size)
            except ValueError as error:
                raise LoginRefused(str(error)) from None
        size = 0 if layer is SecurityLayer.AUTH else _MAX_MESSAGE_BYTES
        return bytes(self._context.wrap(Choice(layer, size, self._authorization).encode(), False).message)

    def _layer(self, offered: SecurityLayer) -> SecurityLayer:
        """The strongest one; within TLS the weakest one, for it encrypts already."""
        order = (SecurityLayer.AUTH_CONF, SecurityLayer.AUTH_INT, SecurityLayer.AUTH)
        for layer in reversed(order) if self._encrypted else order:
            if layer in offered:
                return layer
        raise LoginRefused("the server offers no security layer of GSSAPI")

    def _refused(self, error: gssapi.exceptions.GSSError) -> LoginRefused:
        return LoginRefused(f"can't log in to {self._principal} by Kerberos: {describe(error)} (see `klist`)")
