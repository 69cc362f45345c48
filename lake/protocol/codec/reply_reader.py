"""Reads a reply in the binary protocol while its bytes arrive: whole, or a long list of partitions item by item.

What is passed on keeps its bytes, so fields that the IDL doesn't know survive. Skipped parts are skipped by the C
accelerator, which makes no objects of them.
"""

import struct
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import TypeVar

from thrift.protocol import fastbinary
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TType

from lake.protocol.codec.binary import STOP, Message, read_message_header, spec_without
from lake.protocol.hive import Partition
from lake.protocol.struct import Struct

S = TypeVar("S", bound=Struct)

PIECE_BYTES = 1 << 20
_READ_BYTES = 1 << 17
_FIELD_HEADER = 3
_LIST_HEADER = 5
_MAX_NAME_BYTES = 256
_DATABASE, _CATALOG = 2, 9  # fields of Partition
_NUMBERS = {TType.I32: 4, TType.I64: 8, TType.BOOL: 1}

RenamePartition = Callable[[str | None, str | None], tuple[str | None, str | None]]
"""Takes a partition's catalog and database, and returns those that take their places."""


class ReplyTooLong(Exception):
    """A reply that isn't passed on in pieces exceeds the limit."""


class _Skipped(Struct):
    """A struct of which nothing is decoded."""

    __slots__ = ("unknown",)


class _Names(Struct):
    """What is decoded of a partition."""

    __slots__ = ("catName", "dbName", "unknown")

    def __init__(self) -> None:
        self.dbName: str | None = None
        self.catName: str | None = None


_SKIPPED = _Skipped()
_NOTHING = [_Skipped, ()]
_OF_NAMES = [_Names, spec_without(Partition, tuple(set(Partition.field_names()) - {"dbName", "catName"}))]


class ReplyReader:
    """Reads one reply. `read(n)` returns from one to n bytes, or raises. `limit`: of bytes that are held at once."""

    def __init__(self, read: Callable[[int], bytes], limit: int) -> None:
        self._read = read
        self._limit = limit
        self._piece = min(PIECE_BYTES, limit // 4)
        self._held = bytearray()  # from where the last part began
        self._taken = 0
        self._size = 0  # of what the accelerator reads from
        # What the accelerator asks of a protocol and of its transport.
        self.trans = self
        self.cstringio_buf = BytesIO()
        self.string_length_limit = self.container_length_limit = limit

    def cstringio_refill(self, partial: bytes, wanted: int) -> BytesIO:
        """Called by the accelerator, when what it has read of a value is not all of it."""
        parts, have = [partial], len(partial)
        if self._taken >= _READ_BYTES:
            del self._held[: self._taken]
            self._taken = 0
        while have < wanted:
            chunk = self._read(max(wanted - have, _READ_BYTES))
            parts.append(chunk)
            have += len(chunk)
            self._held += chunk
            if len(self._held) - self._taken > self._limit:
                raise ReplyTooLong(f"an answer of more than {self._limit} bytes")
        data = b"".join(parts)
        self._size = len(data)
        self.cstringio_buf = BytesIO(data)
        return self.cstringio_buf

    def header(self) -> Message:
        """The reply's header. Raises ValueError where the bytes are none."""
        first = self._exactly(4)
        length = int.from_bytes(first, signed=True)
        if length < 0:
            length = int.from_bytes(self._exactly(4))
            if length > _MAX_NAME_BYTES:
                raise ValueError("not a Thrift reply")
            self._exactly(length + 4)
        elif length > _MAX_NAME_BYTES:
            raise ValueError("not a Thrift reply")
        else:
            self._exactly(length + 5)
        return read_message_header(self._take())

    def peek(self, count: int) -> bytes:
        """The next bytes, which stay unread."""
        data = self._exactly(count)
        self.cstringio_buf.seek(-count, 1)
        return data

    def skipped(self) -> bytes:
        """The next struct, or what is left of one, as it is encoded."""
        fastbinary.decode_binary(_SKIPPED, self, _NOTHING)
        return self._take()

    @property
    def ended(self) -> bool:
        """Whether everything that arrived was read."""
        return self.cstringio_buf.tell() == self._size

    def begins_partitions(self, result: type[Struct]) -> bool:
        """Whether what follows is the result of a method, and its value begins with a list of partitions."""
        success = result.thrift_spec[0] if result.thrift_spec else None
        if success is None or self.peek(1) == STOP or self.peek(_FIELD_HEADER) != _field(success[1], 0):
            return False
        if success[1] == TType.LIST:
            return _is_partitions(success[3])
        if success[1] != TType.STRUCT:
            return False
        entry = next((each for each in success[3][0].thrift_spec if each is not None), None)
        if entry is None or entry[1] != TType.LIST or not _is_partitions(entry[3]):
            return False
        beginning = _field(TType.STRUCT, 0)
        if self.peek(len(beginning) + 1).endswith(STOP):
            return False
        return self.peek(2 * _FIELD_HEADER) == beginning + _field(TType.LIST, entry[0])

    def partitions(self, rename: RenamePartition | None) -> Iterator[bytes]:
        """The body of a reply that begins with partitions, in pieces of about a megabyte. None: names stay."""
        nested = self._exactly(_FIELD_HEADER)[0] == TType.STRUCT
        if nested:
            self._exactly(_FIELD_HEADER)
        count = int.from_bytes(self._exactly(_LIST_HEADER)[1:], signed=True)
        if count < 0:
            raise TProtocolException(TProtocolException.NEGATIVE_SIZE, f"a list of {count} partitions")
        yield from self._as_they_are(count) if rename is None else self._renamed(count, rename)
        for _ in range(2 if nested else 1):
            fastbinary.decode_binary(_SKIPPED, self, _NOTHING)
        yield self._take()

    def _as_they_are(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            fastbinary.decode_binary(_SKIPPED, self, _NOTHING)
            if len(self._held) - self._taken >= self._piece:
                yield self._take()

    def _renamed(self, count: int, rename: RenamePartition) -> Iterator[bytes]:
        pieces, size = [self._take()], 0
        for _ in range(count):
            piece = self._partition(rename)
            pieces.append(piece)
            size += len(piece)
            if size >= self._piece:
                yield b"".join(pieces)
                pieces, size = [], 0
        yield b"".join(pieces)

    def _partition(self, rename: RenamePartition) -> bytes:
        partition = _Names()
        fastbinary.decode_binary(partition, self, _OF_NAMES)
        encoded = self._take()
        catalog, database = rename(partition.catName, partition.dbName)
        wanted = {}
        if database is not None and database != partition.dbName:
            wanted[_DATABASE] = database
        if catalog is not None and catalog != partition.catName:
            wanted[_CATALOG] = catalog
        return _replaced(encoded, wanted) if wanted else encoded

    def _exactly(self, count: int) -> bytes:
        data = self.cstringio_buf.read(count)
        if len(data) < count:
            data = self.cstringio_refill(data, count).read(count)
        return data

    def _take(self) -> bytes:
        end = len(self._held) - (self._size - self.cstringio_buf.tell())
        taken = bytes(memoryview(self._held)[self._taken : end])
        self._taken = end
        return taken


def _is_partitions(argument: object) -> bool:
    return isinstance(argument, tuple) and isinstance(argument[1], list) and argument[1][0] is Partition


def _field(kind: int, number: int) -> bytes:
    return struct.pack(">bh", kind, number)


def _text(number: int, value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">bhi", TType.STRING, number, len(encoded)) + encoded


def _replaced(encoded: bytes, wanted: dict[int, str]) -> bytes:
    """A partition with other texts in some fields.

    Those before its storage descriptor are replaced where they are. A later one is followed by a second one: every
    reader of Thrift keeps the last.
    """
    parts, at, copied = [], 0, 0
    left = dict(wanted)
    while left and encoded[at] != TType.STOP:
        kind, number, end = encoded[at], int.from_bytes(encoded[at + 1 : at + 3]), at + _FIELD_HEADER
        if kind == TType.STRING:
            end += 4 + int.from_bytes(encoded[end : end + 4])
        elif kind in _NUMBERS:
            end += _NUMBERS[kind]
        elif kind == TType.LIST and encoded[end] == TType.STRING:
            count, end = int.from_bytes(encoded[end + 1 : end + 5]), end + _LIST_HEADER
            for _ in range(count):
                end += 4 + int.from_bytes(encoded[end : end + 4])
        else:
            break
        if kind == TType.STRING and number in left:
            parts += [encoded[copied:at], _text(number, left.pop(number))]
            copied = end
        at = end
    parts.append(encoded[copied:-1])
    parts += [_text(number, value) for number, value in left.items()]
    return b"".join((*parts, STOP))
