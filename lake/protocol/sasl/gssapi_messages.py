"""Messages protected by a security context of GSSAPI (RFC 2743). It needs the extra `kerberos`."""

import gssapi

from lake.protocol.sasl.gssapi_layers import SecurityLayer
from lake.protocol.sasl.protection import BadMessage

_SMALLEST = 1_024  # a peer that takes less is refused: each message would cost more than it carries


class GssapiProtection:
    """See `Protection`."""

    def __init__(self, context: gssapi.SecurityContext, layer: SecurityLayer, peer_max_size: int) -> None:
        """`layer`: AUTH_INT or AUTH_CONF. `peer_max_size`: of the wrapped messages that the peer takes, in bytes.

        Raises ValueError for a peer that takes next to nothing.
        """
        self._context = context
        self._encrypts = layer is SecurityLayer.AUTH_CONF
        if peer_max_size < _SMALLEST:
            raise ValueError(f"messages of {peer_max_size} bytes are too small; {_SMALLEST} at least are needed")
        self.max_bytes: int = context.get_wrap_size_limit(peer_max_size, self._encrypts)

    def wrap(self, data: bytes | memoryview) -> bytes:
        """Raises BadMessage."""
        try:
            wrapped = self._context.wrap(bytes(data), self._encrypts)
        except gssapi.exceptions.GSSError as error:
            raise BadMessage(describe(error)) from None
        if self._encrypts and not wrapped.encrypted:
            raise BadMessage("the context can't encrypt")
        return bytes(wrapped.message)

    def unwrap(self, data: bytes) -> bytes:
        """Raises BadMessage, also for a message that should be encrypted and isn't."""
        try:
            unwrapped = self._context.unwrap(data)
        except gssapi.exceptions.GSSError as error:
            raise BadMessage(describe(error)) from None
        if self._encrypts and not unwrapped.encrypted:
            raise BadMessage("it is not encrypted, as was agreed")
        return bytes(unwrapped.message)


def describe(error: gssapi.exceptions.GSSError) -> str:
    """What the mechanism says went wrong, in one line."""
    return " ".join(str(error.gen_message()).split())
