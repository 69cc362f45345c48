"""Messages protected after a login by DIGEST-MD5 (RFC 2831, sections 2.3 and 2.4).

Hadoop's clients demand it of tokens, too, where `hadoop.rpc.protection` is `integrity` or `privacy`. MD5 and RC4 are
weak by today's measure: who relies on encryption takes TLS.
"""

import hashlib
import hmac
from functools import cache
from typing import Any

from lake.protocol.sasl.protection import BadMessage

QOPS = ("auth", "auth-int", "auth-conf")
"""The qualities of protection, as directives name them: nothing, against change, and against reading as well."""
CIPHER = "rc4"
MAX_SIZE = 1 << 16
"""The longest wrapped message that is taken, in bytes, unless the two sides agree on another."""

_SMALLEST = 1_024  # a peer that takes less is refused: each message would cost more than it carries
_MAC_BYTES = 10
_VERSION = b"\x00\x01"
_NUMBER_BYTES = 4
_TRAILER_BYTES = _MAC_BYTES + len(_VERSION) + _NUMBER_BYTES
_SIGNING = b"Digest session key to %s signing key magic constant"
_SEALING = b"Digest H(A1) to %s sealing key magic constant"
_DIRECTIONS = (b"client-to-server", b"server-to-client")


def offered() -> tuple[str, ...]:
    """The qualities of protection that can be had here: to encrypt takes the package `cryptography`."""
    return QOPS if _can_encrypt() else QOPS[:2]


class DigestProtection:
    """See `Protection`. Each direction counts its messages, so that none can be repeated or left out."""

    def __init__(self, session: bytes, *, encrypts: bool, of_server: bool, peer_max_size: int) -> None:
        """`session`: the session's key, H(A1). `peer_max_size`: of the wrapped messages that the peer takes, in bytes.

        Raises ValueError for a peer that takes next to nothing.
        """
        if peer_max_size < _SMALLEST:
            raise ValueError(f"messages of {peer_max_size} bytes are too small; {_SMALLEST} at least are needed")
        self.max_bytes = peer_max_size - _TRAILER_BYTES
        incoming, outgoing = _DIRECTIONS if of_server else reversed(_DIRECTIONS)
        self._in, self._out = (_Direction(session, each, encrypts) for each in (incoming, outgoing))

    def wrap(self, data: bytes | memoryview) -> bytes:
        """See `Protection`."""
        way, message = self._out, bytes(data)
        sealed = way.cipher(message + way.mac(message))
        return sealed + _VERSION + way.next_number()

    def unwrap(self, data: bytes) -> bytes:
        """See `Protection`. Raises BadMessage."""
        way = self._in
        if len(data) < _TRAILER_BYTES:
            raise BadMessage("it is shorter than its signature")
        opened = way.cipher(data[: -len(_VERSION) - _NUMBER_BYTES])
        message, mac = opened[:-_MAC_BYTES], opened[-_MAC_BYTES:]
        right = hmac.compare_digest(mac, way.mac(message))
        if not right or data[-len(_VERSION) - _NUMBER_BYTES :] != _VERSION + way.next_number():
            raise BadMessage("its signature is wrong")
        return message


class _Direction:
    """The keys of one direction, and the number of its next message."""

    def __init__(self, session: bytes, name: bytes, encrypts: bool) -> None:
        self._signing = hashlib.md5(session + _SIGNING % name).digest()
        self._number = 0
        sealing = hashlib.md5(session + _SEALING % name).digest()
        self.cipher = _rc4(sealing) if encrypts else bytes

    def mac(self, message: bytes) -> bytes:
        return hmac.digest(self._signing, self._encoded() + message, "md5")[:_MAC_BYTES]

    def next_number(self) -> bytes:
        """The number of the message that was just signed; the next one is greater by one."""
        found = self._encoded()
        self._number = (self._number + 1) % (1 << 8 * _NUMBER_BYTES)
        return found

    def _encoded(self) -> bytes:
        return self._number.to_bytes(_NUMBER_BYTES)


def _rc4(key: bytes) -> Any:
    """A function that encrypts what it is given, and decrypts as well, going on where it stopped."""
    from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4
    from cryptography.hazmat.primitives.ciphers import Cipher

    return Cipher(ARC4(key), None).encryptor().update


@cache
def _can_encrypt() -> bool:
    try:
        _rc4(bytes(16))(b"")
    except Exception:  # the package is missing or older, or OpenSSL has no RC4 (FIPS)
        return False
    return True
