"""What the footers of Parquet files say: how many rows they have, and their columns."""

import threading
from typing import NamedTuple

from cachetools import LRUCache
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TException, TType
from thrift.transport.TTransport import TMemoryBuffer

from metastore.iceberg.errors import bad_request, unavailable
from metastore.warehouse import Warehouse, WarehouseError

MAX_FOOTER = 32 << 20
"""Of a footer, in bytes."""

_FIRST_READ = 64 << 10
_MAGIC = b"PAR1"
_TAIL = 8  # the footer's length and the magic
_KEPT = 100_000
_SCHEMA, _NUM_ROWS = 2, 3  # fields of FileMetaData
_NAME, _CHILDREN, _FIELD_ID = 4, 5, 9  # of SchemaElement


class Footer(NamedTuple):
    """`columns`: names as the file has them. `has_ids`: whether any column has a field id."""

    rows: int
    columns: tuple[str, ...]
    has_ids: bool


class Footers:
    """Reads footers, and keeps what they say: a file doesn't change. Thread-safe."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._kept: LRUCache[tuple[str, int], Footer] = LRUCache(_KEPT)
        self._lock = threading.Lock()

    def of(self, location: str, size: int) -> Footer:
        """That of a file of `size` bytes. Raises RestError: 503 if it can't be read, 400 if it is no Parquet."""
        with self._lock:
            known = self._kept.get((location, size))
        if known is None:
            known = self._read(location, size)
            with self._lock:
                self._kept[location, size] = known
        return known

    def _read(self, location: str, size: int) -> Footer:
        end = self._end(location, size, min(size, _FIRST_READ))
        if end[-len(_MAGIC) :] != _MAGIC:
            raise bad_request(f"{location} is no Parquet file")
        length = int.from_bytes(end[-_TAIL : -len(_MAGIC)], "little") + _TAIL
        if length > min(size, MAX_FOOTER):
            raise bad_request(f"{location} has no footer that can be read")
        if length > len(end):
            end = self._end(location, size, length)
        try:
            return _footer(TCompactProtocol(TMemoryBuffer(end[-length:-_TAIL])))
        except (TException, EOFError, ValueError, IndexError):
            raise bad_request(f"{location} has no footer that can be read") from None

    def _end(self, location: str, size: int, length: int) -> bytes:
        try:
            found = self._warehouse.read_range(location, size - length, length)
        except WarehouseError as error:
            raise unavailable(f"a footer can't be read: {error}") from None
        if len(found) != length or not length:
            raise bad_request(f"{location} hasn't the {size} bytes that its writer said")
        return found


def _footer(protocol: TCompactProtocol) -> Footer:
    columns: list[str] = []
    has_ids = False
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            raise ValueError("no number of rows")
        if number == _NUM_ROWS:  # comes after the schema
            return Footer(int(protocol.readI64()), tuple(columns), has_ids)
        if number == _SCHEMA:
            _, count = protocol.readListBegin()
            inner = [0]  # how many elements are still to come, of each element that is open
            for place in range(count):
                name, children, has_id = _element(protocol)
                if len(inner) == 2:
                    columns.append(name)
                    has_ids |= has_id
                inner[-1] -= 1
                if children:
                    inner.append(children)
                while place and len(inner) > 1 and not inner[-1]:
                    inner.pop()
            protocol.readListEnd()
        else:
            protocol.skip(kind)
        protocol.readFieldEnd()


def _element(protocol: TCompactProtocol) -> tuple[str, int, bool]:
    """A column's name, the number of its parts, and whether it has a field id."""
    name, children, has_id = "", 0, False
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            break
        if number == _NAME:
            name = protocol.readString()
        elif number == _CHILDREN:
            children = protocol.readI32()
        else:
            has_id |= number == _FIELD_ID
            protocol.skip(kind)
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return name, children, has_id
