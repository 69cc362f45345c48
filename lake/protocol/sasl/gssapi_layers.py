"""The bytes by which SASL GSSAPI agrees on a security layer, once both sides know each other (RFC 4752, section 3)."""

from enum import IntFlag
from typing import NamedTuple

_SIZE_BYTES = 3
MAX_SIZE = (1 << 8 * _SIZE_BYTES) - 1


class SecurityLayer(IntFlag):
    """What protects the messages after the login. The numbers are the protocol's."""

    AUTH = 1
    """Nothing: the login alone is proven."""
    AUTH_INT = 2
    """Nobody can change them."""
    AUTH_CONF = 4
    """Nobody can change or read them."""


class Offer(NamedTuple):
    """What the server offers: layers, and the longest wrapped message that it takes, in bytes."""

    layers: SecurityLayer
    max_size: int

    def encode(self) -> bytes:
        return bytes((self.layers,)) + self.max_size.to_bytes(_SIZE_BYTES)


class Choice(NamedTuple):
    """What the client takes: one layer, the longest wrapped message that it takes, and as whom it acts (or "")."""

    layer: SecurityLayer
    max_size: int
    authorization: str

    def encode(self) -> bytes:
        return bytes((self.layer,)) + self.max_size.to_bytes(_SIZE_BYTES) + self.authorization.encode()


def decode_offer(data: bytes) -> Offer:
    """Raises ValueError."""
    if len(data) != 1 + _SIZE_BYTES:
        raise ValueError(f"an offer of security layers has 4 bytes, not {len(data)}")
    return Offer(SecurityLayer(data[0] & 7), int.from_bytes(data[1:]))


def decode_choice(data: bytes) -> Choice:
    """Raises ValueError."""
    if len(data) <= _SIZE_BYTES or data[0] not in (1, 2, 4):
        raise ValueError("the client has not chosen one security layer")
    try:
        authorization = data[1 + _SIZE_BYTES :].decode()
    except UnicodeDecodeError:
        raise ValueError("the name as whom the client acts is not UTF-8") from None
    # Java's clients may end it with NUL characters, as the C libraries do.
    return Choice(SecurityLayer(data[0]), int.from_bytes(data[1 : 1 + _SIZE_BYTES]), authorization.rstrip("\0"))
