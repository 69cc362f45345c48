"""Thrift's binary protocol: structs and message headers to bytes and back.

Bytes handed to `decode` must have been walked by `lake.protocol.codec.scanner` if they came from outside: the C
accelerator allocates what a length prefix says.
"""

import struct
from functools import cache
from typing import Any, NamedTuple, TypeVar

# An ImportError here is wanted: the pure Python fall-back would be silent and slow.
from thrift.protocol import fastbinary
from thrift.transport.TTransport import TMemoryBuffer

from lake.protocol.codec.preserving import decode_with_unknown, encode_with_unknown, has_unknown
from lake.protocol.struct import Spec, Struct

S = TypeVar("S", bound=Struct)

CALL, REPLY, EXCEPTION, ONEWAY = 1, 2, 3, 4
STOP = b"\x00"
_VERSION_1 = 0x80010000
_UNLIMITED = (1 << 31) - 1


class _Input:
    """What the accelerator asks of a protocol."""

    __slots__ = ("container_length_limit", "string_length_limit", "trans")

    def __init__(self, data: bytes, offset: int) -> None:
        self.trans = TMemoryBuffer(data)
        self.trans.cstringio_buf.seek(offset)
        self.string_length_limit = _UNLIMITED
        self.container_length_limit = _UNLIMITED


class Message(NamedTuple):
    """A message's header and where its body begins."""

    name: str
    kind: int
    sequence: int
    body: int


def encode(value: Struct, *, without: tuple[str, ...] = ()) -> bytes:
    """Encodes a struct, or all but some of its fields, its unknown fields included, with the final STOP byte."""
    if has_unknown(value, without=without):
        # Not `value.replace`: InsertEventRequestData has a field of that name.
        return encode_with_unknown(Struct.replace(value, **dict.fromkeys(without)) if without else value)
    cls = type(value)
    spec = spec_without(cls, without) if without else value.thrift_spec  # type: ignore[arg-type]
    encoded: bytes = fastbinary.encode_binary(value, [cls, spec])
    return encoded


@cache
def spec_without(cls: type[Struct], names: tuple[str, ...]) -> Spec:
    """The specification of a class without some of its fields, by which the accelerator skips them."""
    return tuple(None if entry is None or entry[2] in names else entry for entry in cls.thrift_spec)


def encode_fields(value: Struct, *, without: tuple[str, ...] = ()) -> bytes:
    """Encodes a struct's fields without the final STOP byte, so that more fields can follow."""
    return encode(value, without=without)[:-1]


def decode(cls: type[S], data: bytes, offset: int = 0) -> S:
    """Decodes one struct. Fields that the IDL doesn't know are dropped, and in a text that is not UTF-8 there
    are replacement characters.

    Raises whatever the accelerator raises on malformed bytes: EOFError, TProtocolException, TypeError.
    """
    return decode_by(cls, cls.thrift_spec, data, offset)


def decode_by(cls: type[S], spec: Spec, data: bytes, offset: int = 0) -> S:
    """As `decode`, by another specification than the class's own."""
    value = cls()
    fastbinary.decode_binary(value, _Input(data, offset), [cls, spec])
    return value


def decode_preserving(cls: type[S], data: bytes, offset: int = 0) -> S:
    """Decodes the struct that fills `data` from `offset` to its end, fields that the IDL doesn't know
    included.

    What the accelerator understood encodes to as many bytes as it was read from. Only where the lengths
    differ something was dropped, and the slow decoder finds it. Raises UnicodeDecodeError for text that is
    not UTF-8.
    """
    value, body = decode(cls, data, offset), data[offset:]
    again = fastbinary.encode_binary(value, [cls, cls.thrift_spec])
    # A replacement character may be as long as what it stands for, hence the second look at what isn't ASCII.
    if len(again) == len(body) and (body.isascii() or again == body):
        return value
    return decode_with_unknown(cls, data, offset)


def decode_strict(cls: type[S], data: bytes, offset: int = 0) -> S:
    """As `decode`, but raises UnicodeDecodeError for text that is not UTF-8."""
    value, body = decode(cls, data, offset), data[offset:]
    if not body.isascii() and fastbinary.encode_binary(value, [cls, cls.thrift_spec]) != body:
        decode_with_unknown(cls, data, offset)
    return value


def message_header(name: str, kind: int, sequence: int, *, strict: bool = True) -> bytes:
    """The header of a message; the old style (`strict` false) is for who writes it himself."""
    encoded = name.encode()
    if strict:
        return struct.pack(f">Ii{len(encoded)}si", _VERSION_1 | kind, len(encoded), encoded, sequence)
    return struct.pack(f">i{len(encoded)}sbi", len(encoded), encoded, kind, sequence)


def read_message_header(data: bytes) -> Message:
    """Reads a header, strict or old style. Raises ValueError where the bytes are none."""
    try:
        (first,) = struct.unpack_from(">i", data)
        if first < 0:
            if first & 0xFFFF0000 != _VERSION_1:
                raise ValueError("not a binary-protocol message")
            (length,) = struct.unpack_from(">i", data, 4)
            name, (sequence,) = data[8 : 8 + length].decode(), struct.unpack_from(">i", data, 8 + length)
            return Message(name, first & 0xFF, sequence, 12 + length)
        name, (kind, sequence) = data[4 : 4 + first].decode(), struct.unpack_from(">bi", data, 4 + first)
        return Message(name, kind, sequence, 9 + first)
    except struct.error as error:
        raise ValueError("a message's header is cut short") from error


def call_at(data: bytes, at: int) -> tuple[bytes, int] | None:
    """The method that a scanned message calls, as it is encoded, and where its arguments begin; None for a message of
    another kind than a call."""
    if data[at] & 0x80:
        end = at + 8 + int.from_bytes(data[at + 4 : at + 8])
        return (data[at + 8 : end], end + 4) if data[at + 3] == CALL else None
    end = at + 4 + int.from_bytes(data[at : at + 4])
    return (data[at + 4 : end], end + 5) if data[end] == CALL else None


def reply_to(data: bytes, at: int, body: int) -> bytes:
    """The header of the reply to a call whose arguments begin at `body`."""
    if data[at] & 0x80:
        return b"".join((data[at : at + 3], b"\x02", data[at + 4 : body]))
    return b"".join((data[at : body - 5], b"\x02", data[body - 4 : body]))


def encode_result(field: str, value: Any, cls: type[Struct]) -> bytes:
    """Encodes a result struct with one field set."""
    result = cls()
    setattr(result, field, value)
    return encode(result)


def encode_application_exception(kind: int, message: str) -> bytes:
    """Encodes a TApplicationException; `kind` is one of its constants."""
    text = message.encode(errors="replace")
    return struct.pack(f">bhi{len(text)}sbhi", 11, 1, len(text), text, 8, 2, kind) + STOP
