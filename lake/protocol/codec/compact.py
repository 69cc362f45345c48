"""Thrift's compact protocol: where a message ends, and the translation from and to the binary protocol.

Both protocols name the type of everything they hold, so that translating needs no knowledge of the structs.
Inside the server there is the binary protocol alone.
"""

from collections.abc import Generator
from struct import Struct as Layout

from thrift.Thrift import TType

from lake.protocol.codec.binary import Message
from lake.protocol.codec.scanner import (
    CALL_KINDS,
    VALUE_BYTES,
    Limits,
    Rejected,
    Scanner,
    StructWalk,
    Walk,
    Walked,
    arrival,
    check_container,
    check_depth,
    check_name,
    check_string,
    check_values,
    too_large,
)

FIRST_BYTE = 0x82
_VERSION = 1

# The protocol's own type numbers. A field of type bool has its value for a type; in a container it is a byte.
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _STRING, _LIST, _SET, _MAP, _STRUCT, _UUID = range(14)
_TO_BINARY = {
    _TRUE: TType.BOOL, _FALSE: TType.BOOL, _BYTE: TType.BYTE, _I16: TType.I16, _I32: TType.I32,
    _I64: TType.I64, _DOUBLE: TType.DOUBLE, _STRING: TType.STRING, _LIST: TType.LIST, _SET: TType.SET,
    _MAP: TType.MAP, _STRUCT: TType.STRUCT, _UUID: TType.UUID,
}  # fmt: skip
_FROM_BINARY = {binary: compact for compact, binary in _TO_BINARY.items() if compact != _FALSE}
_FIXED = {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8, _UUID: 16}  # bytes of an item of a container
_INTEGERS = {_I16: 16, _I32: 32, _I64: 64}  # bits
_LAYOUTS = {_I16: Layout(">h"), _I32: Layout(">i"), _I64: Layout(">q")}
_field = Layout(">bh")
_list = Layout(">bi")
_map = Layout(">bbi")
_length = Layout(">i")
_IN_STRUCT = -1


def message_header(name: str, kind: int, sequence: int) -> bytes:
    encoded = name.encode()
    first = bytes((FIRST_BYTE, _VERSION | kind << 5))
    return b"".join((first, _varint(sequence & 0xFFFFFFFF), _varint(len(encoded)), encoded))


def read_message_header(data: bytes) -> Message:
    """Reads the header of a message that a scanner has walked. Raises UnicodeDecodeError for the name."""
    sequence, at = _read_varint(data, 2)
    length, at = _read_varint(data, at)
    if sequence >= 1 << 31:
        sequence -= 1 << 32
    return Message(data[at : at + length].decode(), data[1] >> 5, sequence, at + length)


def to_binary(data: bytes, offset: int, limit: int) -> bytes:
    """Translates the struct at `offset`, which a scanner has walked, to the binary protocol.

    The compact form is up to eleven times shorter; Exceeded is raised where the result exceeds `limit` bytes.
    """
    out = bytearray()
    _Reader(data, offset, out, limit).struct()
    return bytes(out)


def to_compact(data: bytes, offset: int = 0) -> bytes:
    """Translates the binary struct at `offset` to the compact protocol."""
    out = bytearray()
    _Writer(data, offset, out).struct()
    return bytes(out)


def _envelope(data: bytes | bytearray, start: int, limits: Limits) -> Walk:
    yield from arrival(data, start + 2, limits)
    version, kind = data[start + 1] & 0x1F, data[start + 1] >> 5
    if data[start] != FIRST_BYTE or version != _VERSION or kind not in CALL_KINDS:
        raise Rejected("malformed", "not a Thrift call")
    at = yield from _integer(data, start + 2, 32, limits)
    at, length = yield from _size(data, at, limits)
    check_name(length)
    return at + length


def _struct(data: bytes | bytearray, at: int, limits: Limits) -> StructWalk:
    size = len(data)
    values, most = 0, limits.memory // VALUE_BYTES
    # What is walked now: a struct, or a container with `left` items. A map of n has 2n, the even ones keys.
    left, even, odd = _IN_STRUCT, 0, 0
    stack: list[tuple[int, int, int]] = []
    while True:
        if left == _IN_STRUCT:
            if at >= size:
                size = yield from arrival(data, at + 1, limits)
            head = data[at]
            ctype = head & 0x0F
            at += 1
            if head == _STOP:
                if not stack:
                    return Walked(at, values)
                left, even, odd = stack.pop()
                continue
            if head < 0x10:
                at = yield from _integer(data, at, 16, limits)
                size = len(data)
            if ctype in (_TRUE, _FALSE):
                continue
        elif left:
            ctype = odd if left & 1 else even
            left -= 1
        else:
            left, even, odd = stack.pop()
            continue

        if ctype in _INTEGERS:
            if at < size and data[at] < 0x80:
                at += 1
            else:
                at = yield from _integer(data, at, _INTEGERS[ctype], limits)
                size = len(data)
        elif ctype == _STRING:
            at, length = yield from _size(data, at, limits)
            size = len(data)
            check_string(length, limits)
            at += length
            values += 1
        elif ctype in _FIXED:
            at += _FIXED[ctype]
        elif ctype == _STRUCT:
            check_depth(len(stack) + 1, limits)
            stack.append((left, even, odd))
            left = _IN_STRUCT
            values += 1
        elif ctype in (_LIST, _SET, _MAP):
            if ctype == _MAP:
                at, count = yield from _size(data, at, limits)
                first = second = 0
                if count:
                    yield from arrival(data, at + 1, limits)
                    first, second = data[at] >> 4, data[at] & 0x0F
                    at += 1
            else:
                yield from arrival(data, at + 1, limits)
                count, first = data[at] >> 4, data[at] & 0x0F
                second = first
                at += 1
                if count == 15:
                    at, count = yield from _size(data, at, limits)
            size = len(data)
            check_container(count, limits)
            values += 1
            if first in _FIXED and second in _FIXED:
                at += count * (_FIXED[first] if ctype != _MAP else _FIXED[first] + _FIXED[second])
                values += count if ctype == _MAP else count >> 1
            elif count:
                if first in _INTEGERS and second in _INTEGERS:
                    values += count if ctype == _MAP else count >> 1
                check_depth(len(stack) + 1, limits)
                stack.append((left, even, odd))
                left, even, odd = (2 * count if ctype == _MAP else count), first, second
        else:
            raise Rejected("malformed", f"no such wire type: {ctype}")
        if values > most:
            check_values(values, most)


class CompactScanner(Scanner):
    """Finds the end of one message in the compact protocol."""

    envelope = staticmethod(_envelope)
    struct = staticmethod(_struct)


def _integer(data: bytes | bytearray, at: int, bits: int, limits: Limits) -> Walk:
    """Steps over a variable-length integer that must fit into `bits`."""
    last = at + bits // 7  # where the longest form ends, with the bits that no other byte had room for
    while True:
        yield from arrival(data, at + 1, limits)
        if at == last and data[at] >= 1 << bits % 7:
            raise Rejected("malformed", f"integer of more than {bits} bits")
        at += 1
        if data[at - 1] < 0x80:
            return at


def _size(data: bytes | bytearray, at: int, limits: Limits) -> Generator[None, None, tuple[int, int]]:
    """Steps over the length of a string or the count of a container: where it ends, and what it says."""
    end = yield from _integer(data, at, 32, limits)
    return end, _read_varint(data, at)[0]


def _read_varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[at]) >= 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    return value | byte << shift, at + 1


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class _Reader:
    """Reads compact, writes binary."""

    def __init__(self, data: bytes, at: int, out: bytearray, limit: int) -> None:
        self.data = data
        self.at = at
        self.out = out
        self.limit = limit

    def varint(self) -> int:
        value, self.at = _read_varint(self.data, self.at)
        return value

    def integer(self) -> int:
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def struct(self) -> None:
        field_id = 0
        while head := self.data[self.at]:
            self.at += 1
            field_id = field_id + (head >> 4) if head >= 0x10 else self.integer()
            ctype = head & 0x0F
            if field_id >= 1 << 15:
                raise Rejected("malformed", f"field id {field_id}")
            self.out += _field.pack(_TO_BINARY[ctype], field_id)
            if ctype in (_TRUE, _FALSE):
                self.out.append(ctype == _TRUE)
            else:
                self.value(ctype)
        self.at += 1
        self.out.append(TType.STOP)

    def value(self, ctype: int) -> None:
        """A value that is not a field of type bool."""
        if len(self.out) > self.limit:
            raise too_large(self.limit)
        if ctype == _STRING:
            length = self.varint()
            self.out += _length.pack(length)
            self.copy(length)
        elif ctype in _INTEGERS:
            self.out += _LAYOUTS[ctype].pack(self.integer())
        elif ctype == _STRUCT:
            self.struct()
        elif ctype == _MAP:
            count = self.varint()
            # An empty map doesn't say what it would hold; in the binary protocol it says "nothing" twice.
            types = self.byte() if count else 0
            key, item = types >> 4, types & 0x0F
            self.out += _map.pack(_TO_BINARY.get(key, 0), _TO_BINARY.get(item, 0), count)
            for _ in range(count):
                self.value(key)
                self.value(item)
        elif ctype in (_LIST, _SET):
            head = self.byte()
            count, item = head >> 4, head & 0x0F
            if count == 15:
                count = self.varint()
            # An empty list need not say what it would hold; one of strings is what every reader knows.
            self.out += _list.pack(_TO_BINARY.get(item, TType.STRING), count)
            for _ in range(count):
                self.value(item)
        elif ctype in (_TRUE, _FALSE):
            self.out.append(self.byte() == _TRUE)
        elif ctype == _DOUBLE:
            self.out += self.data[self.at : self.at + 8][::-1]
            self.at += 8
        else:
            self.copy(_FIXED[ctype])

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def copy(self, length: int) -> None:
        self.out += self.data[self.at : self.at + length]
        self.at += length


class _Writer:
    """Reads binary, writes compact."""

    def __init__(self, data: bytes, at: int, out: bytearray) -> None:
        self.data = data
        self.at = at
        self.out = out

    def struct(self) -> None:
        previous = 0
        while ttype := self.data[self.at]:
            _, field_id = _field.unpack_from(self.data, self.at)
            self.at += 3
            ctype = _FROM_BINARY[ttype]
            if ctype == _TRUE:
                ctype = _TRUE if self.data[self.at] else _FALSE
                self.at += 1
                self.field(ctype, field_id, previous)
            else:
                self.field(ctype, field_id, previous)
                self.value(ttype)
            previous = field_id
        self.at += 1
        self.out.append(_STOP)

    def field(self, ctype: int, field_id: int, previous: int) -> None:
        delta = field_id - previous
        if 0 < delta <= 15:
            self.out.append(delta << 4 | ctype)
        else:
            self.out.append(ctype)
            self.integer(field_id, 16)

    def integer(self, value: int, bits: int) -> None:
        self.out += _varint(value << 1 ^ value >> bits - 1)

    def value(self, ttype: int) -> None:
        """A value that is not a field of type bool."""
        ctype = _FROM_BINARY[ttype]
        if ctype == _STRING:
            length = self.number(_length)
            self.out += _varint(length)
            self.copy(length)
        elif ctype in _INTEGERS:
            self.integer(self.number(_LAYOUTS[ctype]), _INTEGERS[ctype])
        elif ctype == _STRUCT:
            self.struct()
        elif ctype == _MAP:
            key, item, count = _map.unpack_from(self.data, self.at)
            self.at += 6
            self.out += _varint(count)
            if count:
                self.out.append(_FROM_BINARY[key] << 4 | _FROM_BINARY[item])
            for _ in range(count):
                self.value(key)
                self.value(item)
        elif ctype in (_LIST, _SET):
            item, count = _list.unpack_from(self.data, self.at)
            self.at += 5
            # The type of what an empty list would hold matters to nobody, but a reader looks it up.
            item_type = _FROM_BINARY.get(item, _STRING)
            if count < 15:
                self.out.append(count << 4 | item_type)
            else:
                self.out.append(0xF0 | item_type)
                self.out += _varint(count)
            for _ in range(count):
                self.value(item)
        elif ctype == _TRUE:
            self.out.append(_TRUE if self.data[self.at] else _FALSE)
            self.at += 1
        elif ctype == _DOUBLE:
            self.out += self.data[self.at : self.at + 8][::-1]
            self.at += 8
        else:
            self.copy(_FIXED[ctype])

    def number(self, layout: Layout) -> int:
        (value,) = layout.unpack_from(self.data, self.at)
        self.at += layout.size
        return int(value)

    def copy(self, length: int) -> None:
        self.out += self.data[self.at : self.at + length]
        self.at += length
