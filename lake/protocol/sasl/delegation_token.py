"""Delegation tokens as Hadoop encodes them: the identifier that is signed, and the text that clients carry.

Hadoop's `AbstractDelegationTokenIdentifier`, `Token.encodeToUrlString` and `WritableUtils` are the specification.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import NamedTuple

KIND = "HIVE_DELEGATION_TOKEN"
MAX_BYTES = 4_096
"""Of an identifier, and of a token's text: names have 256 characters at most."""

_VERSION = 0


class BadToken(ValueError):
    """Bytes or a text are no delegation token."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """What a token says about itself. Times are in milliseconds since 1970.

    `renewer` may prolong it until `max_date`. `real_user` asked for it in the `owner`'s place; empty: the owner did.
    """

    owner: str
    renewer: str
    real_user: str
    issue_date: int
    max_date: int
    sequence: int
    key_id: int

    def encode(self) -> bytes:
        texts = b"".join(map(_text, (self.owner, self.renewer, self.real_user)))
        numbers = b"".join(map(_number, (self.issue_date, self.max_date, self.sequence, self.key_id)))
        return bytes((_VERSION,)) + texts + numbers

    @classmethod
    def decode(cls, data: bytes) -> "Identifier":
        """Raises BadToken."""
        reader = _Reader(data)
        if reader.take(1) != bytes((_VERSION,)):
            raise BadToken("the identifier has another version")
        owner, renewer, real_user = (reader.text() for _ in range(3))
        issue_date, max_date, sequence, key_id = (reader.number() for _ in range(4))
        reader.end()
        return cls(owner, renewer, real_user, issue_date, max_date, sequence, key_id)


class Token(NamedTuple):
    """A token: its identifier, and the password that proves that it was issued."""

    identifier: bytes
    password: bytes
    kind: str = KIND
    service: str = ""


def to_text(token: Token) -> str:
    """The text by which clients carry a token."""
    data = _bytes(token.identifier) + _bytes(token.password) + _text(token.kind) + _text(token.service)
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def from_text(text: str) -> Token:
    """Raises BadToken."""
    if len(text) > MAX_BYTES:
        raise BadToken("the token is too long")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise BadToken("the token is no base64") from None
    reader = _Reader(data)
    token = Token(reader.bytes(), reader.bytes(), reader.text(), reader.text())
    reader.end()
    return token


def _number(value: int) -> bytes:
    """A number as `WritableUtils.writeVLong` writes it: one byte, or minus the count of bytes and then these."""
    if -112 <= value <= 127:
        return value.to_bytes(1, signed=True)
    negative = value < 0
    magnitude = ~value if negative else value
    count = (magnitude.bit_length() + 7) // 8
    first = (-120 if negative else -112) - count
    return first.to_bytes(1, signed=True) + magnitude.to_bytes(count)


def _bytes(data: bytes) -> bytes:
    return _number(len(data)) + data


def _text(value: str) -> bytes:
    return _bytes(value.encode())


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or count > len(self._data) - self._at:
            raise BadToken("the token is cut short")
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self) -> int:
        (first,) = self.take(1)
        value = first - 256 if first > 127 else first
        if value >= -112:
            return value
        negative = value < -120
        count = -(value + 120) if negative else -(value + 112)
        magnitude = int.from_bytes(self.take(count))
        return ~magnitude if negative else magnitude

    def bytes(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        try:
            return self.take(self.number()).decode()
        except UnicodeDecodeError:
            raise BadToken("a name in the token is not UTF-8") from None

    def end(self) -> None:
        if self._at != len(self._data):
            raise BadToken("there is something behind the token")
