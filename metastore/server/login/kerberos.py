"""The mechanism GSSAPI of SASL (RFC 4752), with Kerberos. It needs the extra `kerberos`."""

import gssapi

from lake.protocol.sasl.gssapi_layers import Choice, Offer, SecurityLayer, decode_choice
from lake.protocol.sasl.gssapi_messages import GssapiProtection, describe
from metastore.server.credentials.identity import Denied, Identity, checked
from metastore.server.credentials.kerberos import Kerberos
from metastore.server.credentials.logins import Logins
from metastore.server.login.mechanisms import Step

MAX_MESSAGE_BYTES = 64 << 10
"""The longest wrapped message that clients should send. Thrift's own ones send each call as one, however long."""

_LAYERS = {
    "auth": SecurityLayer.AUTH,
    "auth-int": SecurityLayer.AUTH_INT,
    "auth-conf": SecurityLayer.AUTH_CONF,
}


class Gssapi:
    """A login by Kerberos: tickets first, and then an agreement on how what follows is protected."""

    name = "kerberos"

    def __init__(self, logins: Logins, kerberos: Kerberos, peer: str) -> None:
        self.user: str | None = None
        self._logins = logins
        self._kerberos = kerberos
        self._peer = peer
        self._context: gssapi.SecurityContext | None = None
        self._offered: SecurityLayer | None = None
        protections = logins.settings.kerberos_protection
        self._layers = SecurityLayer(sum(_LAYERS[each] for each in protections))

    def step(self, response: bytes) -> Step:
        try:
            if self._offered is not None:
                return self._finish(response)
            return self._shake(response)
        except gssapi.exceptions.GSSError as error:
            raise Denied(f"GSS initiate failed: {describe(error)}") from None

    def _shake(self, response: bytes) -> Step:
        if self._context is None:
            if not response:
                return Step(b"")  # the client waits for a challenge before it says anything
            self._context = self._kerberos.context()
        context = self._context
        if context.complete and response:
            raise Denied("the client goes on with a handshake that is complete")
        challenge = b"" if context.complete else context.step(response)
        if not context.complete or challenge:
            return Step(challenge or b"")
        self.user = str(context.initiator_name)
        self._offered = self._layers
        return Step(context.wrap(Offer(self._offered, MAX_MESSAGE_BYTES).encode(), False).message)

    def _finish(self, response: bytes) -> Step:
        context = self._context
        assert context is not None and self._offered is not None and self.user is not None
        try:
            choice = decode_choice(context.unwrap(response).message)
        except ValueError as error:
            raise Denied(str(error)) from None
        if choice.layer not in self._offered:
            raise Denied(f"the server wants {self._wanted()} (kerberos_protection), as Hadoop's hadoop.rpc.protection")
        identity = self._identity(choice.authorization)
        return Step(b"", identity, self._protection(context, choice))

    def _identity(self, authorization: str) -> Identity:
        """Who has logged in. Raises Denied."""
        principal = self.user or ""
        user = self._kerberos.user(principal)
        identity = checked(Identity(user, "kerberos", self._logins.groups(user)))
        # Clients of Java send their own principal as the name they act as.
        other = identity.user if authorization in ("", principal) else self._short(authorization)
        return self._logins.acting_as(identity, other, self._peer)

    def _short(self, name: str) -> str:
        return self._kerberos.user(name) if "@" in name else name

    def _protection(self, context: gssapi.SecurityContext, choice: Choice) -> GssapiProtection | None:
        if choice.layer is SecurityLayer.AUTH:
            return None
        try:
            return GssapiProtection(context, choice.layer, choice.max_size)
        except ValueError as error:
            raise Denied(str(error)) from None

    def _wanted(self) -> str:
        return " or ".join(self._logins.settings.kerberos_protection)
