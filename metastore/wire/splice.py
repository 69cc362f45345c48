"""Partitions and tables as they are kept and as they go out: encoded pieces, joined without decoding.

In the binary protocol a struct's fields may come in any order, so a partition is the concatenation of

    database's, table's and catalog's name      the same for the whole list
    the partition's own fields                   kept with the partition
    the beginning of `sd`, and its location      the location is kept relative to the table's
    the rest of `sd`                             kept once per distinct storage descriptor
    two STOP bytes                               the ends of `sd` and of the partition
"""

import struct
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from thrift.Thrift import TType

from metastore.wire.binary import STOP, decode_preserving, encode_fields
from metastore.wire.hive import Partition, PartitionSpec, StorageDescriptor, Table

PIECE_BYTES = 1 << 20
NO_DESCRIPTOR = 0  # the id of what a partition of a view may lack

_SD_BEGIN = b"\x0c\x00\x06"  # field 6 of Partition, a struct
_LOCATION_BEGIN = b"\x0b\x00\x02"  # field 2 of StorageDescriptor, a string
_LIST_OF_STRUCTS = b"\x0c"

StoredRow = tuple[bytes, str | None, str | None, int, str]
"""A `StoredPartition` and its name; the bytes may be a memoryview."""


class StoredPartition(NamedTuple):
    """What the reading of one partition needs: its bytes, where it lies, and which descriptor it shares."""

    body: bytes
    path: str | None
    location: str | None
    storage_descriptor_id: int


def descriptor_body(descriptor: StorageDescriptor) -> bytes:
    """What is kept of a descriptor: everything but the location, without STOP."""
    return encode_fields(descriptor.replace(location=None))


def descriptor_bodies(descriptors: Sequence[StorageDescriptor | None]) -> list[bytes | None]:
    """What is kept of many descriptors, in their order. Those made of the same parts are encoded once."""
    known: dict[tuple[int, ...], bytes] = {}  # by the parts' identities: they live as long as `descriptors`
    bodies: list[bytes | None] = []
    for each in descriptors:
        if each is None:
            bodies.append(None)
            continue
        parts = (*map(id, _parts_of_descriptor(each)), id(getattr(each, "unknown", None)))
        if parts not in known:
            known[parts] = descriptor_body(each)
        bodies.append(known[parts])
    return bodies


_parts_of_descriptor = attrgetter(*(name for name in StorageDescriptor.field_names() if name != "location"))


def descriptor(body: bytes, location: str | None) -> StorageDescriptor:
    """The descriptor again."""
    value = decode_preserving(StorageDescriptor, body + STOP)
    value.location = location
    return value


def without_columns(body: bytes) -> bytes:
    """A kept descriptor's body with an empty list of columns."""
    return descriptor_body(descriptor(body, None).replace(cols=[]))


def partition_body(partition: Partition) -> bytes:
    """What is kept of a partition: everything but the names it shares and its descriptor, without STOP."""
    return encode_fields(partition.replace(dbName=None, tableName=None, catName=None, sd=None))


def table_body(table: Table) -> bytes:
    """What is kept of a table beside the columns of its row, with STOP."""
    kept = table.replace(
        dbName=None, tableName=None, catName=None, sd=None, parameters=None, owner=None, tableType=None,
        lastAccessTime=None, id=None,
    )  # fmt: skip
    return encode_fields(kept) + STOP


class PartitionEncoder:
    """Encodes the partitions of one table from what is kept of them."""

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
        self._base = (table_location or "").encode() + b"/"
        self._descriptors = descriptors
        self._tails: dict[int, bytes] = {}
        self._decoded: dict[int, StorageDescriptor] = {}

    def partition(self, stored: StoredPartition) -> bytes:
        """One Partition struct."""
        body, path, location, descriptor_id = stored
        if descriptor_id == NO_DESCRIPTOR:
            return b"".join((self._prefix, body, STOP))
        where, tail = self._where(path, location), self._tail(descriptor_id)
        if where is None:
            return b"".join((self._prefix, body, _SD_BEGIN, tail))
        length = struct.pack(">i", len(where))
        return b"".join((self._prefix, body, _SD_BEGIN, _LOCATION_BEGIN, length, where, tail))

    def _tail(self, number: int) -> bytes:
        if number not in self._tails:
            self._learn({number})
        return self._tails[number]

    def _learn(self, numbers: set[int]) -> None:
        missing = numbers - self._tails.keys() - {NO_DESCRIPTOR}
        if missing:
            self._tails |= {number: body + STOP + STOP for number, body in self._descriptors(missing).items()}

    def _where(self, path: str | None, location: str | None) -> bytes | None:
        if path is not None:
            return self._base + path.encode() if path else self._base[:-1]
        return None if location is None else location.encode()

    def decoded(self, stored: StoredPartition) -> Partition:
        """One partition as an object. Descriptors of one id share their parts, which must not be changed."""
        body, path, location, number = stored
        value = decode_preserving(Partition, body + STOP)
        value.dbName, value.tableName, value.catName = self._names
        if number != NO_DESCRIPTOR:
            shared = self._decoded.get(number)
            if shared is None:
                shared = self._decoded[number] = descriptor(self._tail(number)[:-2], None)
            where = self._where(path, location)
            value.sd = shared.replace(location=None if where is None else where.decode())
            if hasattr(shared, "unknown") and not hasattr(value, "unknown"):
                value.unknown = b""  # contains such a struct, see Struct
        return value

    def pieces(self, pages: Iterable[Sequence[StoredRow]]) -> Iterator[bytes]:
        """The structs of many partitions, joined into pieces of about a megabyte."""
        for page in pages:
            self._learn({row[3] for row in page})
            of_one = len(self.partition(StoredPartition(*page[0][:4])))
            count = max(1, PIECE_BYTES // of_one)
            for at in range(0, len(page), count):
                yield self._joined(page[at : at + count])

    def _joined(self, rows: Sequence[StoredRow]) -> bytes:
        # As `partition`, of many at once: this loop is what a large answer costs.
        prefix, base, tails, pack = self._prefix, self._base, self._tails, struct.Struct(">i").pack
        begin = _SD_BEGIN + _LOCATION_BEGIN
        gathered: list[bytes] = []
        for body, path, location, number, _ in rows:
            if path and number in tails:
                where = base + path.encode()
                gathered += (prefix, body, begin, pack(len(where)), where, tails[number])
            else:
                gathered.append(self.partition(StoredPartition(body, path, location, number)))
        return b"".join(gathered)


def list_of_structs(count: int) -> bytes:
    """The beginning of a list value of `count` structs."""
    return _LIST_OF_STRUCTS + struct.pack(">i", count)


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
