"""Encodes partitions and tables from stored pieces, by concatenation and without decoding.

In the binary protocol a struct's fields may come in any order, so a partition is the concatenation of

    database's, table's and catalog's name      the same for the whole list
    the partition's own fields                   stored with the partition
    the beginning of `sd`, and its location      the location is stored relative to the table's
    the rest of `sd`                             stored once per distinct storage descriptor
    two STOP bytes                               the ends of `sd` and of the partition
"""

import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from thrift.Thrift import TType

from lake.protocol.codec.binary import STOP, decode_preserving, encode, encode_fields
from lake.protocol.codec.shared_list import SharedList
from lake.protocol.hive import Partition, PartitionListComposingSpec, PartitionSpec, StorageDescriptor, Table

PIECE_BYTES = 1 << 20
_FIRST_PIECE = 100  # partitions, of which nobody knows yet how large they are
_KEPT_BYTES = 16 << 20  # of storage descriptors, while partitions are encoded
_DECODED = 256  # storage descriptors that are kept decoded
_DECODED_BYTES = 16 << 10  # of the longest of them
_OF_ROW = (
    "dbName", "tableName", "catName", "sd", "parameters", "owner", "tableType", "lastAccessTime", "id",
)  # fmt: skip
NO_DESCRIPTOR = 0  # the id of what a partition of a view may lack

SD_BEGIN = b"\x0c\x00\x06"  # field 6 of Partition, a struct
LOCATION_BEGIN = b"\x0b\x00\x02"  # field 2 of StorageDescriptor, a string
_LIST_OF_STRINGS = b"\x0b"
_LIST_OF_STRUCTS = b"\x0c"


class StoredPartition(NamedTuple):
    """The stored parts of one partition: its bytes, its location, and the id of its shared descriptor."""

    body: bytes
    path: str | None
    location: str | None
    storage_descriptor_id: int


class StoredPage(NamedTuple):
    """Of many partitions: what lies between their table's name and the rest of `sd`, and their descriptors' ids."""

    middles: Sequence[bytes]
    storage_descriptor_ids: Sequence[int]


def descriptor_body(descriptor: StorageDescriptor) -> bytes:
    """What is kept of a descriptor: everything but the location, without STOP."""
    if type(descriptor.cols) is SharedList:
        return descriptor.cols.of(_encoded_columns) + encode_fields(descriptor, without=("cols", "location"))
    return encode_fields(descriptor, without=("location",))


def _encoded_columns(columns: SharedList) -> bytes:
    return encode_fields(StorageDescriptor(cols=columns))


def descriptor_bodies(descriptors: Sequence[StorageDescriptor | None]) -> list[bytes | None]:
    """What is kept of many descriptors, in their order. Those made of the same parts are encoded once."""
    known: dict[tuple[int, ...], bytes] = {}  # by the parts' identities: they live as long as `descriptors`
    bodies: list[bytes | None] = []
    for each in descriptors:
        if each is None:
            bodies.append(None)
            continue
        parts = parts_of(each)
        if parts not in known:
            known[parts] = descriptor_body(each)
        bodies.append(known[parts])
    return bodies


def parts_of(descriptor: StorageDescriptor) -> tuple[int, ...]:
    """The identities of a descriptor's parts, but for its location. They hold as long as it lives."""
    return (*map(id, _parts_of_descriptor(descriptor)), id(getattr(descriptor, "unknown", None)))


_parts_of_descriptor = attrgetter(*(name for name in StorageDescriptor.field_names() if name != "location"))


def descriptor(body: bytes, location: str | None) -> StorageDescriptor:
    """The descriptor again. Its parts may be shared with other descriptors, and must not be changed."""
    shared = _kept(body) if len(body) <= _DECODED_BYTES else _decoded(body)
    return shared.replace(location=location)


def _decoded(body: bytes) -> StorageDescriptor:
    value = decode_preserving(StorageDescriptor, body + STOP)
    if value.cols is not None:
        value.cols = SharedList(value.cols)
    return value


_kept = lru_cache(maxsize=_DECODED)(_decoded)


def without_columns(body: bytes) -> bytes:
    """A kept descriptor's body with an empty list of columns."""
    return descriptor_body(descriptor(body, None).replace(cols=[]))


def partition_body(partition: Partition) -> bytes:
    """What is kept of a partition: everything but the names it shares and its descriptor, without STOP."""
    return encode_fields(partition, without=("dbName", "tableName", "catName", "sd"))


def joined_bodies(bodies: Sequence[bytes]) -> bytes:
    """A PartitionListComposingSpec of the partitions with these bodies: many are decoded by one call."""
    pieces = [part for body in bodies for part in (body, STOP)]
    return b"".join(in_struct(1, [list_of_structs(len(bodies)), *pieces]))


def table_body(table: Table) -> bytes:
    """What is kept of a table beside the columns of its row, with STOP."""
    return encode(table, without=_OF_ROW)


class PartitionEncoder:
    """Encodes the partitions of one table from their stored parts."""

    def __init__(
        self,
        catalog: str,
        database: str,
        table: str,
        table_location: str | None,
        descriptors: Callable[[Iterable[int]], Mapping[int, bytes]],
    ) -> None:
        """`descriptors` tells the kept bodies of storage descriptors by their ids; it is asked once for each."""
        self._names = database, table, catalog
        self._prefix = encode_fields(Partition(dbName=database, tableName=table, catName=catalog))
        self._location = table_location or ""
        self._descriptors = descriptors
        self._tails: dict[int, bytes] = {}
        self._tail_bytes = 0
        self._decoded: dict[int, Callable[[str | None], StorageDescriptor]] = {}  # by their location

    def _tail(self, number: int) -> bytes:
        self._learn({number})
        return self._tails[number]

    def _learn(self, numbers: set[int]) -> None:
        """Has the ends of these descriptors at hand, and of others as long as they aren't too many."""
        if numbers <= self._tails.keys():
            return
        if self._tail_bytes > _KEPT_BYTES:
            self._tails.clear()
            self._decoded.clear()
            self._tail_bytes = 0
        missing = numbers - self._tails.keys()
        found = {number: body + STOP + STOP for number, body in self._descriptors(missing).items()}
        self._tails |= found
        self._tail_bytes += sum(map(len, found.values()))

    def _where(self, path: str | None, location: str | None) -> str | None:
        if path is not None:
            return f"{self._location}/{path}" if path else self._location
        return location

    def decoded(self, stored: StoredPartition) -> Partition:
        """One partition as an object. Descriptors of one id share their parts, which must not be changed."""
        value = decode_preserving(Partition, stored.body + STOP)
        self._complete(value, stored)
        return value

    def all_decoded(self, stored: Sequence[StoredPartition]) -> list[Partition]:
        """As `decoded`, for many at once."""
        self._learn(_numbers(stored))
        encoded = joined_bodies([each.body for each in stored])
        values = decode_preserving(PartitionListComposingSpec, encoded).partitions or []
        for value, each in zip(values, stored, strict=True):
            self._complete(value, each)
        return values

    def _complete(self, value: Partition, stored: StoredPartition) -> None:
        """Gives a partition what is not in its own bytes."""
        _, path, location, number = stored
        value.dbName, value.tableName, value.catName = self._names
        if number != NO_DESCRIPTOR:
            decoded = self._decoded.get(number)
            if decoded is None:
                decoded = self._decoded[number] = descriptor(self._tail(number)[:-2], None).varying("location")
            value.sd = decoded(self._where(path, location))
            if hasattr(value.sd, "unknown") and not hasattr(value, "unknown"):
                value.unknown = b""  # contains such a struct, see Struct

    def ids_of(self, stored: Iterable[StoredPartition]) -> dict[bytes, int]:
        """The ids of partitions' descriptors, by their kept bodies."""
        numbers = _numbers(stored)
        self._learn(numbers)
        return {self._tails[number][:-2]: number for number in numbers}

    def pieces(self, pages: Iterable[StoredPage]) -> Iterator[bytes]:
        """The structs of many partitions, joined into pieces of about a megabyte."""
        count = _FIRST_PIECE
        for middles, numbers in pages:
            at = 0
            while at < len(middles):
                some, theirs = middles[at : at + count], numbers[at : at + count]
                at += count
                piece = self._piece(some, theirs)
                yield piece
                count = max(1, len(some) * PIECE_BYTES // len(piece))

    def _piece(self, middles: Sequence[bytes], numbers: Sequence[int]) -> bytes:
        different = set(numbers)
        self._learn(different - {NO_DESCRIPTOR})
        if len(different) == 1:
            # What a large answer costs is this: where all have the same descriptor, what lies between two is, too.
            end = self._end(numbers[0])
            return b"".join((self._prefix, (end + self._prefix).join(middles), end))
        ends = map(self._end, numbers)
        return b"".join([part for each in zip(middles, ends, strict=True) for part in (self._prefix, *each)])

    def _end(self, number: int) -> bytes:
        return STOP if number == NO_DESCRIPTOR else self._tails[number]


def _numbers(stored: Iterable[StoredPartition]) -> set[int]:
    """The ids of the descriptors that partitions have."""
    return {each.storage_descriptor_id for each in stored} - {NO_DESCRIPTOR}


def list_of_structs(count: int) -> bytes:
    """The beginning of a list value of `count` structs."""
    return _LIST_OF_STRUCTS + struct.pack(">i", count)


def list_of_strings(count: int) -> bytes:
    """The beginning of a list value of `count` strings, each of which is its length in four bytes and its UTF-8."""
    return _LIST_OF_STRINGS + struct.pack(">i", count)


def in_struct(field: int, pieces: Iterable[bytes], *rest: bytes) -> Generator[bytes, None, None]:
    """A struct whose field `field` is an encoded list; `rest` are further encoded fields."""
    yield struct.pack(">bh", TType.LIST, field)
    yield from pieces
    yield b"".join(rest) + STOP


def composing_spec(about: PartitionSpec, pieces: Iterable[bytes]) -> Generator[bytes, None, None]:
    """A list of one PartitionSpec that holds an encoded list of partitions."""
    yield list_of_structs(1) + encode_fields(about) + struct.pack(">bh", TType.STRUCT, 5)
    yield from in_struct(1, pieces)
    yield STOP
