"""Finds the end of a binary message while its bytes arrive, and rejects invalid or excessive messages.

An unframed message has no length: its end is found by walking over its fields. The walk is resumable, so that an
incomplete message occupies no thread. It allocates almost nothing, so that a huge length prefix does no harm. A message
that passed the walk is safe to decode.
"""

from collections.abc import Generator
from struct import Struct as Layout
from typing import NamedTuple

from thrift.Thrift import TType

FIXED = {
    TType.BOOL: 1, TType.BYTE: 1, TType.DOUBLE: 8, TType.I16: 2, TType.I32: 4, TType.I64: 8, TType.UUID: 16,
}  # fmt: skip
MAX_NAME_BYTES = 256
CALL_KINDS = (1, 4)  # call, oneway: what a client may send
_CONTAINERS = (TType.LIST, TType.SET, TType.MAP)
_IN_STRUCT = -1
_REMEMBERED_BYTES = 1 << 16
_FIELD_HEADER = 3
_length_at = Layout(">i").unpack_from

Walk = Generator[None, None, int]
"""Steps over a part of a growing buffer: yields whenever it needs more bytes, returns where the part ends."""


class Walked(NamedTuple):
    """A struct that was walked over: where it ends, and how many values it holds."""

    end: int
    values: int


StructWalk = Generator[None, None, Walked]
"""The same over a struct."""

VALUE_BYTES = 96
"""Memory that a value takes once it is decoded, its content aside. Structs take more, strings less."""
COPIES = 3
"""How often a message's bytes are in memory while it is answered: as they came, decoded, and encoded to be checked."""


class Limits(NamedTuple):
    """Limits for messages."""

    message_bytes: int = 100 << 20
    string_bytes: int = 64 << 20
    container_items: int = 1_000_000
    memory: int = 1 << 30  # bytes that one message may take, see `memory`
    depth: int = 64

    @property
    def values(self) -> int:
        """Strings, structs and containers in one message. Two numbers in a container count as one of these."""
        return self.memory // VALUE_BYTES


class Rejected(Exception):
    """The bytes are no valid message. `reason`: a short label; the text has the details."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Exceeded(Rejected):
    """The message, or its beginning, exceeds a limit."""


class Scanner:
    """Finds the end of one message at the start of a growing buffer, or of a part of it.

    Subclasses implement the walk for a protocol.
    """

    def __init__(self, limits: Limits, start: int = 0) -> None:
        """`start`: where the message begins in the buffer."""
        self._limits = limits
        self._start = start
        self._walk: StructWalk | None = None
        self.walked = Walked(0, 0)
        """The message that was found."""

    def scan(self, data: bytes | bytearray) -> int | None:
        """Where the message ends, once it is complete; None while it is not.

        To be called again with the same buffer, grown. Raises Rejected.
        """
        if self._walk is None:
            self._walk = self.walk(data, self._start, self._limits)
        try:
            next(self._walk)
        except StopIteration as done:
            self.walked = done.value
            if self.walked.end > self._limits.message_bytes:
                raise too_large(self._limits.message_bytes) from None
            return self.walked.end
        return None

    @classmethod
    def walk(cls, data: bytes | bytearray, start: int, limits: Limits) -> StructWalk:
        body = yield from cls.envelope(data, start, limits)
        return (yield from cls.struct(data, body, limits))

    @staticmethod
    def envelope(data: bytes | bytearray, start: int, limits: Limits) -> Walk:
        """Steps over a message's header, whose last bytes may not have arrived when it returns."""
        raise NotImplementedError

    @staticmethod
    def struct(data: bytes | bytearray, at: int, limits: Limits) -> StructWalk:
        """Steps over a struct."""
        raise NotImplementedError


def arrival(data: bytes | bytearray, end: int, limits: Limits) -> Walk:
    """Waits until the buffer reaches `end`; returns how long it is then."""
    if end > limits.message_bytes:
        raise too_large(limits.message_bytes)
    while len(data) < end:
        yield
    return len(data)


def check_string(length: int, limits: Limits) -> None:
    if length < 0:
        raise Rejected("string_size", f"string of {length} bytes")
    if length > limits.string_bytes:
        what = f"string of {length} bytes; the limit is {limits.string_bytes}"
        raise Exceeded("string_size", f"{what}: send a shorter one, or raise the server's max_string_bytes")


def check_container(count: int, limits: Limits) -> None:
    if count < 0:
        raise Rejected("container_size", f"container of {count} items")
    if count > limits.container_items:
        what = f"container of {count} items; the limit is {limits.container_items}"
        raise Exceeded("container_size", f"{what}: send fewer at a time, or raise the server's max_container_items")


def check_depth(depth: int, limits: Limits) -> None:
    if depth >= limits.depth:
        what = f"message is nested deeper than {limits.depth}"
        raise Exceeded("depth", f"{what}: send a flatter one, or raise the server's max_depth")


def check_values(values: int, most: int) -> None:
    if values > most:
        what = f"message holds more than {most} values"
        raise Exceeded("memory", f"{what}: send less at a time, or raise the server's max_request_memory")


def memory(size: int, values: int) -> int:
    """The memory, in bytes, that a message of so many bytes and values takes while it is answered: an estimate."""
    return COPIES * size + VALUE_BYTES * values


def check_memory(needed: int, limits: Limits) -> None:
    if needed > limits.memory:
        what = f"message takes {needed} bytes of memory once it is decoded; the limit is {limits.memory}"
        raise Exceeded("memory", f"{what}: send less at a time, or raise the server's max_request_memory")


def check_name(length: int) -> None:
    if not 0 < length <= MAX_NAME_BYTES:
        raise Rejected("malformed", f"method name of {length} bytes")


def too_large(limit: int) -> Exceeded:
    what = f"message is larger than {limit} bytes"
    return Exceeded("message_size", f"{what}: send less at a time, or raise the server's max_message_bytes")


def _envelope(data: bytes | bytearray, start: int, limits: Limits) -> Walk:
    """Steps over a message's header."""
    yield from arrival(data, start + 4, limits)
    strict = data[start] & 0x80
    if strict:
        if data[start : start + 3] != b"\x80\x01\x00" or data[start + 3] not in CALL_KINDS:
            raise Rejected("malformed", "not a Thrift call")
        start += 4
        yield from arrival(data, start + 4, limits)
    length: int = _length_at(data, start)[0]
    check_name(length)
    at: int = start + 4 + length
    if strict:
        return at + 4
    yield from arrival(data, at + 1, limits)
    if data[at] not in CALL_KINDS:
        raise Rejected("malformed", "not a Thrift call")
    return at + 5


def _struct(data: bytes | bytearray, at: int, limits: Limits) -> StructWalk:
    """Steps over a struct. One flat loop: a large message has hundreds of thousands of fields.

    Partitions of one table repeat the table's columns. A list of structs whose bytes equal those of the list
    that ended last at the same depth is stepped over in one comparison.
    """
    size = len(data)
    values, most = 0, limits.memory // VALUE_BYTES
    # What is walked now: a struct, or a container with `left` items. A map of n has 2n, the even ones keys.
    left, even, odd = _IN_STRUCT, 0, 0
    # Where a list of structs began, and how many values came before it.
    begin, before = -1, 0
    stack: list[tuple[int, int, int, int, int]] = []  # the same of all that this is part of
    repeated, repeated_values, repeated_depth = b"", 0, -1
    while True:
        if left == _IN_STRUCT:
            if at >= size:
                size = yield from arrival(data, at + 1, limits)
            ttype = data[at]
            if ttype == TType.STOP:
                at += 1
                if not stack:
                    return Walked(at, values)
                left, even, odd, begin, before = stack.pop()
                continue
            at += _FIELD_HEADER
        elif left:
            ttype = odd if left & 1 else even
            left -= 1
        else:
            if begin >= 0 and at - begin <= _REMEMBERED_BYTES:
                repeated = bytes(data[begin:at])
                repeated_values, repeated_depth = values - before, len(stack) - 1
            left, even, odd, begin, before = stack.pop()
            continue

        if ttype == TType.STRING:
            if at + 4 > size:
                size = yield from arrival(data, at + 4, limits)
            length: int = _length_at(data, at)[0]
            if not 0 <= length <= limits.string_bytes:
                check_string(length, limits)
            at += 4 + length
            values += 1
        elif ttype in FIXED:
            at += FIXED[ttype]
        elif ttype == TType.STRUCT:
            check_depth(len(stack) + 1, limits)
            stack.append((left, even, odd, begin, before))
            left, begin = _IN_STRUCT, -1
            values += 1
        elif ttype in _CONTAINERS:
            header = 6 if ttype == TType.MAP else 5
            if at + header > size:
                size = yield from arrival(data, at + header, limits)
            count: int = _length_at(data, at + header - 4)[0]
            check_container(count, limits)
            values += 1
            first, second = data[at], data[at + header - 5]
            start, at = at, at + header
            if ttype == TType.LIST and len(stack) == repeated_depth and data.startswith(repeated, start):
                at = start + len(repeated)
                values += repeated_values
            elif first in FIXED and second in FIXED:
                at += count * (FIXED[first] if ttype != TType.MAP else FIXED[first] + FIXED[second])
                values += count if ttype == TType.MAP else count >> 1
            elif count:
                check_depth(len(stack) + 1, limits)
                stack.append((left, even, odd, begin, before))
                left, even, odd = (2 * count if ttype == TType.MAP else count), first, second
                begin, before = (start if ttype == TType.LIST and first == TType.STRUCT else -1), values
        else:
            raise Rejected("malformed", f"no such wire type: {ttype}")
        if values > most:
            check_values(values, most)


class BinaryScanner(Scanner):
    """For messages in the binary protocol, strict or old style."""

    envelope = staticmethod(_envelope)
    struct = staticmethod(_struct)
