"""Finds the end of a binary message while its bytes arrive, and rejects invalid or excessive messages.

An unframed message has no length: its end is found by walking over its fields. The walk is resumable, so that an
incomplete message occupies no thread. It allocates almost nothing, so that a huge length prefix does no harm: what it
notes of a message takes half of its bytes at most. A message that passed the walk is safe to decode.
"""

from array import array
from collections.abc import Generator, Sequence
from struct import Struct as Layout
from typing import NamedTuple

from thrift.Thrift import TType

from lake.protocol.bounded_dict import BoundedDict

FIXED = {
    TType.BOOL: 1, TType.BYTE: 1, TType.DOUBLE: 8, TType.I16: 2, TType.I32: 4, TType.I64: 8, TType.UUID: 16,
}  # fmt: skip
MAX_NAME_BYTES = 256
CALL_KINDS = (1, 4)  # call, oneway: what a client may send
_CONTAINERS = (TType.LIST, TType.SET, TType.MAP)
_IN_STRUCT = -1
_REMEMBERED_BYTES = 1 << 16
_REMEMBERED_LISTS = 64
_LONG_LIST = 8  # items from which on it pays to look whether a list came before
_BEGIN_BYTES = 64
_FIELD_HEADER = 3
_length_at = Layout(">i").unpack_from

Walk = Generator[None, None, int]
"""Steps over a part of a growing buffer: yields whenever it needs more bytes, returns where the part ends."""


class Walked(NamedTuple):
    """A struct that was walked over: where it ends, and how many values it holds.

    `noted`: where structs begin within it whose first field is a long list of structs, in their order. Descriptors with
    their columns are such. Those are missing that are part of a list, or of an ending, that came before.
    """

    end: int
    values: int
    noted: Sequence[int] = ()


class WalkedMessage(bytes):
    """A message that was walked over, with what `Walked` has noted. A part of it is bytes and no more."""

    noted: Sequence[int]

    def __new__(cls, data: bytes | bytearray | memoryview, noted: Sequence[int]) -> "WalkedMessage":
        message = super().__new__(cls, data)
        message.noted = noted
        return message


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


def _follows(value: bytes, data: bytes | bytearray, start: int, limits: Limits) -> Generator[None, None, bool]:
    """Whether a whole value is what begins at `start`. Waits for more while that is only the value's beginning.

    There is more to come then: no other value begins so and ends before.
    """
    compared, size = start, len(data)
    while size < start + len(value):
        if data[compared:size] != value[compared - start : size - start]:
            return False
        compared = size
        size = yield from arrival(data, size + 1, limits)
    return data.startswith(value, start)


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


_known: BoundedDict[tuple[Limits, int, bytes], tuple[bytes, int]] = BoundedDict(_REMEMBERED_LISTS)
"""Long lists of structs in earlier messages, with the values that each holds. The key has the limits that it kept, how
deep it lay and its first bytes."""


def _struct(data: bytes | bytearray, at: int, limits: Limits) -> StructWalk:
    """Steps over a struct. One flat loop: a large message has hundreds of thousands of fields.

    Partitions of one table repeat the table's columns. A list of structs whose bytes equal those of the list
    that ended last at the same depth is stepped over in one comparison. So are long lists that other messages had:
    a table is altered again and again. While no more than the beginning of such a list has arrived, the rest is
    waited for. Behind their columns descriptors have a location, and are the same again from there to their end. So
    are many partitions from the end of their descriptor to their own.
    """
    size = len(data)
    values, most = 0, limits.memory // VALUE_BYTES
    noted = array("Q")
    struct_at = at  # where the struct begins that began last
    # What is walked now: a struct, or a container with `left` items. A map of n has 2n, the even ones keys.
    left, even, odd = _IN_STRUCT, 0, 0
    # Where a list of structs began, and how many values came before it.
    begin, before = -1, 0
    stack: list[tuple[int, int, int, int, int]] = []  # the same of all that this is part of
    repeated, repeated_values, repeated_depth = b"", 0, -1
    # How structs ended, by their depth: what followed on such a list, or on the first string after it, or on a struct
    # that ended so. And where this begins in those that have not ended. Both with a number of values.
    endings: dict[int, tuple[bytes, int]] = {}
    open_endings: dict[int, tuple[int, int]] = {}
    may_end_as_before, string_due = False, -1  # the depth at which the string comes
    while True:
        if may_end_as_before:
            may_end_as_before = False
            depth = len(stack)
            ending, ending_values = endings.get(depth, (b"", 0))
            if ending and data.startswith(ending, at):
                at += len(ending)
                values += ending_values
                open_endings.pop(depth, None)
                string_due = -1
                if values > most:
                    check_values(values, most)
                if not stack:
                    return Walked(at, values, noted)
                left, even, odd, begin, before = stack.pop()
                may_end_as_before = left == _IN_STRUCT
                continue
            open_endings[depth] = at, values
        if left == _IN_STRUCT:
            if at >= size:
                size = yield from arrival(data, at + 1, limits)
            ttype = data[at]
            if ttype == TType.STOP:
                at += 1
                depth = len(stack)
                ended = open_endings.pop(depth, None)
                if ended is not None:
                    if at - ended[0] <= _REMEMBERED_BYTES:
                        endings[depth] = bytes(data[ended[0] : at]), values - ended[1]
                    string_due = -1
                if not stack:
                    return Walked(at, values, noted)
                left, even, odd, begin, before = stack.pop()
                may_end_as_before = ended is not None and left == _IN_STRUCT
                continue
            at += _FIELD_HEADER
        elif left:
            ttype = odd if left & 1 else even
            left -= 1
        else:
            if begin >= 0 and at - begin <= _REMEMBERED_BYTES:
                repeated = bytes(data[begin:at])
                repeated_values, repeated_depth = values - before, len(stack) - 1
                if _length_at(repeated, 1)[0] >= _LONG_LIST:
                    _known.put((limits, repeated_depth, repeated[:_BEGIN_BYTES]), (repeated, repeated_values))
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
            if string_due == len(stack):
                may_end_as_before, string_due = True, -1
        elif ttype in FIXED:
            at += FIXED[ttype]
        elif ttype == TType.STRUCT:
            check_depth(len(stack) + 1, limits)
            stack.append((left, even, odd, begin, before))
            left, begin, struct_at = _IN_STRUCT, -1, at
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
            if (
                start == struct_at + _FIELD_HEADER
                and left == _IN_STRUCT
                and ttype == TType.LIST
                and first == TType.STRUCT
                and count >= _LONG_LIST
            ):
                noted.append(struct_at)
            depth = len(stack)
            if ttype == TType.LIST and depth == repeated_depth and (yield from _follows(repeated, data, start, limits)):
                at = start + len(repeated)
                values += repeated_values
                if left == _IN_STRUCT:
                    may_end_as_before, string_due = True, depth
            elif (
                count >= _LONG_LIST
                and first == TType.STRUCT
                and ttype == TType.LIST
                and (known := _known.get((limits, depth, bytes(data[start : start + _BEGIN_BYTES]))))
                and (yield from _follows(known[0], data, start, limits))
            ):
                repeated, repeated_values = known
                repeated_depth = depth
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
