"""The bytes of SASL (RFC 4422) as Thrift's TSaslTransport sends them, and of its mechanism PLAIN (RFC 4616).

A message of the negotiation is a status, a length of four bytes and a payload. After it everything is in frames: a
length of four bytes and a payload.
"""

from enum import IntEnum
from typing import NamedTuple

from lake.protocol.codec.scanner import Rejected

HEADER_BYTES = 5
FRAME_HEADER_BYTES = 4


class Status(IntEnum):
    """What a message of the negotiation is."""

    START = 1
    OK = 2
    BAD = 3
    ERROR = 4
    COMPLETE = 5


class Message(NamedTuple):
    status: Status
    payload: bytes


def message(status: Status, payload: bytes = b"") -> bytes:
    return bytes((status,)) + len(payload).to_bytes(4) + payload


def take_message(buffer: bytearray, limit: int) -> Message | None:
    """Takes the first message out of a buffer; None while it hasn't arrived.

    Raises Rejected for one that is longer than `limit` bytes, or no message.
    """
    if buffer and buffer[0] not in Status.__members__.values():
        raise Rejected("malformed", f"not a message of SASL: its status is {buffer[0]}")
    if len(buffer) < HEADER_BYTES:
        return None
    length = int.from_bytes(buffer[1:HEADER_BYTES])
    if length > limit:
        raise Rejected("message_size", f"a message of SASL with {length} bytes; {limit} are allowed")
    end = HEADER_BYTES + length
    if len(buffer) < end:
        return None
    found = Message(Status(buffer[0]), bytes(buffer[HEADER_BYTES:end]))
    del buffer[:end]
    return found


class PlainResponse(NamedTuple):
    """What a client of PLAIN sends: as whom it wants to act (empty: as itself), its name, its password."""

    authorization: str
    user: str
    password: str


def plain_response(payload: bytes) -> PlainResponse:
    """Raises ValueError."""
    try:
        parts = payload.decode().split("\0")
    except UnicodeDecodeError:
        raise ValueError("the name or password is not UTF-8") from None
    if len(parts) != 3 or not parts[1] or not parts[2]:
        raise ValueError("a client of PLAIN sends two NUL characters between names and password, none of them empty")
    return PlainResponse(*parts)
