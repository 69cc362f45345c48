"""The protocols of one port: detects a client's protocol, decodes its messages, and encodes replies.

The first bytes of the first message show the protocol:

    80 01 …                     binary, strict
    00 00 00 length name        binary, old style
    82 …                        compact
    length, then one of these   the same in a frame

Inside the server, the arguments of a request and the body of a reply are structs in the binary protocol.
"""

import contextlib
import re
from collections.abc import Generator, Iterable
from typing import NamedTuple

from lake.protocol.codec import binary, compact, foreign
from lake.protocol.codec.binary import Message
from lake.protocol.codec.scanner import (
    MAX_NAME_BYTES,
    BinaryScanner,
    Exceeded,
    Limits,
    Rejected,
    Scanner,
    check_memory,
    memory,
    too_large,
)

SMALL_BYTES = 16 << 10
"""Of a message that takes no memory worth reckoning."""

_FRAME_HEADER = 4
_BEGINNING = 16
_LONGEST_FRAME = (1 << 31) - 1
_NAME = re.compile(rb"[A-Za-z_]")


class Protocol(NamedTuple):
    """What a connection speaks. Binary messages may be strict or old style, each for itself."""

    framed: bool
    compact: bool

    @property
    def frame_header(self) -> int:
        """Bytes before each message."""
        return _FRAME_HEADER if self.framed else 0

    def __str__(self) -> str:
        return ("framed " if self.framed else "") + ("compact" if self.compact else "binary")


class Request(NamedTuple):
    """A client's message. In `data`, from `header.body` on, are the arguments in the binary protocol."""

    header: Message
    data: bytes
    strict: bool


class Refused(Rejected):
    """A call that asks for more than the limits allow.

    `to` is what an answer goes to: the call without its arguments, with neither name nor number if its header has not
    arrived. `ended`: the call is over, and what comes next is a message again; else nobody knows where it ends.
    """

    def __init__(self, exceeded: Exceeded, to: Request, *, ended: bool) -> None:
        super().__init__(exceeded.reason, str(exceeded))
        self.to = to
        self.ended = ended


_UNKNOWN = Request(Message("", binary.CALL, 0, 0), b"", strict=True)


def detect(data: bytes | bytearray) -> Protocol | None:
    """The protocol of a connection that began with these bytes; None while there are too few to tell.

    Raises Rejected for what is no Thrift, and Foreign if it is known what it is.
    """
    if not data:
        return None
    if data[0] in (0x80, compact.FIRST_BYTE):
        return Protocol(framed=False, compact=data[0] == compact.FIRST_BYTE)
    if data[0] >= 0x08:  # as a length: 128 MB at least
        if foreign.may_become(data):
            return None
        raise foreign.recognised(data) or _not_thrift(data)
    if len(data) < 5:
        return None
    if data[4] in (0x80, compact.FIRST_BYTE, 0x00):
        return Protocol(framed=True, compact=data[4] == compact.FIRST_BYTE)
    if (other := foreign.recognised(data)) is not None:
        raise other
    if int.from_bytes(data[:4]) > MAX_NAME_BYTES or not _NAME.match(data, 4):
        raise _not_thrift(data)
    return Protocol(framed=False, compact=False)


def _not_thrift(data: bytes | bytearray) -> Rejected:
    return Rejected("not_thrift", f"not Thrift: begins with {bytes(data[:16])!r}")


class Inbox:
    """Gathers the bytes of one connection and cuts them into messages."""

    def __init__(self, limits: Limits) -> None:
        self.protocol: Protocol | None = None
        self.memory = 0
        """Bytes that the last message of more than SMALL_BYTES takes while it is answered, as estimated."""
        self._limits = limits
        self._buffer = bytearray()
        self._scanner: Scanner | None = None
        self._exceeded: Exceeded | None = None

    def __len__(self) -> int:
        """Bytes that arrived and were not taken yet."""
        return len(self._buffer)

    def add(self, data: bytes) -> None:
        self._buffer += data

    @property
    def beginning(self) -> bytes:
        """The first bytes that were not taken yet: enough to tell what a connection speaks."""
        return bytes(self._buffer[:_BEGINNING])

    def pour(self) -> bytes:
        """Takes all bytes as they are: they are no Thrift, but what carries it."""
        data = bytes(self._buffer)
        self._buffer = bytearray()
        return data

    def clear(self) -> None:
        self._scanner = self._exceeded = None
        self._buffer = bytearray()

    def take(self) -> bytes | None:
        """The next whole message, frame included; None while it has not arrived.

        Raises Rejected, and Refused for a call that exceeds a limit: in a frame of a size that may be, once the frame
        has arrived.
        """
        buffer = self._buffer
        if not buffer:
            return None
        if self.protocol is None:
            self.protocol = detect(buffer)
            if self.protocol is None:
                return None
        if self._scanner is None:
            kind = compact.CompactScanner if self.protocol.compact else BinaryScanner
            self._scanner = kind(self._limits, _FRAME_HEADER if self.protocol.framed else 0)
        end = None
        if self._exceeded is None:
            try:
                end = self._framed(self._scanner) if self.protocol.framed else self._scanner.scan(buffer)
                if end is not None and end > SMALL_BYTES:
                    self.memory = memory(end, self._scanner.walked.values)
                    check_memory(self.memory, self._limits)
            except Exceeded as exceeded:
                self._exceeded = exceeded
        if self._exceeded is not None:
            self._refuse(self._exceeded, self.protocol, self._scanner)
        if end is None:
            return None
        self._scanner = None
        if end == len(buffer):
            message = bytes(buffer)
            self._buffer = bytearray()
        else:
            with memoryview(buffer) as view:
                message = bytes(view[:end])
            del buffer[:end]
        return message

    def refuse_unfinished(self, reason: str, detail: str) -> Refused:
        """The error for a call that has arrived in part. Its end is unknown."""
        exceeded = Exceeded(reason, detail)
        if self.protocol is None or self._scanner is None:
            return Refused(exceeded, _UNKNOWN, ended=False)
        return Refused(exceeded, _begun(self.protocol, self._scanner, self._buffer, self._limits), ended=False)

    def _framed(self, scanner: Scanner) -> int | None:
        """The end of a frame that arrived and is filled by one message."""
        buffer = self._buffer
        if len(buffer) < _FRAME_HEADER:
            return None
        length = int.from_bytes(buffer[:_FRAME_HEADER], signed=True)
        if length <= 0:
            raise Rejected("message_size", f"frame of {length} bytes")
        if length > self._limits.message_bytes:
            raise Exceeded("message_size", f"frame of {length} bytes; {too_large(self._limits.message_bytes)}")
        frame_end = _FRAME_HEADER + length
        end = scanner.scan(buffer)
        if end is None and len(buffer) < frame_end:
            return None
        if end != frame_end:
            raise Rejected("malformed", f"frame of {length} bytes is not one message")
        return end

    def _refuse(self, exceeded: Exceeded, protocol: Protocol, scanner: Scanner) -> None:
        """Raises Refused, unless the rest of the call's frame is to be waited for."""
        buffer = self._buffer
        length = int.from_bytes(buffer[:_FRAME_HEADER])
        ended = protocol.framed and length <= self._limits.message_bytes
        if ended and len(buffer) < _FRAME_HEADER + length:
            return
        to = _begun(protocol, scanner, buffer, self._limits)
        self._scanner = self._exceeded = None
        if ended:
            del buffer[: _FRAME_HEADER + length]
        raise Refused(exceeded, to, ended=ended)


def _begun(protocol: Protocol, scanner: Scanner, buffer: bytearray, limits: Limits) -> Request:
    """The call that a buffer begins with, as far as it is known, without its arguments."""
    start = protocol.frame_header
    try:
        next(scanner.envelope(buffer, start, limits))
    except StopIteration as envelope:
        header = bytes(buffer[start : envelope.value])
        with contextlib.suppress(ValueError):  # it is cut short, or the name is not UTF-8
            if protocol.compact:
                return Request(compact.read_message_header(header), b"", strict=True)
            return Request(binary.read_message_header(header), b"", strict=header[0] == 0x80)
    except Rejected:
        pass
    return _UNKNOWN


def request(protocol: Protocol, message: bytes, limits: Limits) -> Request:
    """Reads a message that an inbox gave out. Raises Rejected, and Refused where it is too long when translated."""
    if protocol.framed:
        message = message[_FRAME_HEADER:]
    try:
        if protocol.compact:
            header = compact.read_message_header(message)
            try:
                arguments = compact.to_binary(message, header.body, limits.message_bytes)
            except Exceeded as exceeded:
                raise Refused(exceeded, Request(header, b"", strict=True), ended=True) from None
            return Request(header._replace(body=0), arguments, strict=True)
        return Request(binary.read_message_header(message), message, strict=message[0] == 0x80)
    except UnicodeDecodeError:
        raise Rejected("malformed", "method name is not UTF-8") from None


def header_of(protocol: Protocol, message: bytes) -> Request:
    """The call that an inbox gave out, without its arguments."""
    start = protocol.frame_header
    with contextlib.suppress(UnicodeDecodeError):
        if protocol.compact:
            return Request(compact.read_message_header(message[start:]), b"", strict=True)
        return Request(binary.read_message_header(message[start:]), b"", strict=message[start] == 0x80)
    return _UNKNOWN


def kept_reply(protocol: Protocol, message: bytes, arguments: int, body: bytes) -> bytes:
    """What leaves before a body that answers a message in the binary protocol, whose arguments begin where is said."""
    header = binary.reply_to(message, protocol.frame_header, arguments)
    if not protocol.framed:
        return header
    length = len(header) + len(body)
    if length > _LONGEST_FRAME:
        raise OverflowError(f"a reply of {length} bytes doesn't fit into a frame")
    return length.to_bytes(_FRAME_HEADER) + header


def reply(protocol: Protocol, to: Request, kind: int, body: Iterable[bytes]) -> Generator[bytes, None, None]:
    """The reply to a request as its connection expects it, in pieces.

    `kind` is REPLY or EXCEPTION of `lake.protocol.codec.binary`, `body` a struct in the binary protocol. On an
    unframed binary connection it leaves as it comes. Otherwise it is gathered first: a frame begins with its
    length, and what is to be translated must be whole.
    """
    name, sequence = to.header.name, to.header.sequence
    if protocol.compact:
        pieces = [compact.message_header(name, kind, sequence), compact.to_compact(b"".join(body))]
    elif protocol.framed:
        pieces = [binary.message_header(name, kind, sequence, strict=to.strict), *body]
    else:
        yield binary.message_header(name, kind, sequence, strict=to.strict)
        yield from body
        return
    if protocol.framed:
        length = sum(map(len, pieces))
        if length > _LONGEST_FRAME:
            raise OverflowError(f"a reply of {length} bytes doesn't fit into a frame")
        yield length.to_bytes(_FRAME_HEADER)
    yield from pieces
