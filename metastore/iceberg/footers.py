"""How many rows Parquet files have, from their footers, where their writer didn't say."""

import threading

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
_KEPT = 200_000
_NUM_ROWS = 3  # the field of FileMetaData


class RowCounts:
    """Counts rows of files, and keeps the counts: a file doesn't change. Thread-safe."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._kept: LRUCache[tuple[str, int], int] = LRUCache(_KEPT)
        self._lock = threading.Lock()

    def of(self, location: str, size: int) -> int:
        """The rows of a file of `size` bytes. Raises RestError: 503 if it can't be read, 400 if it is no Parquet."""
        with self._lock:
            known = self._kept.get((location, size))
        if known is None:
            known = self._read(location, size)
            with self._lock:
                self._kept[location, size] = known
        return known

    def _read(self, location: str, size: int) -> int:
        end = self._end(location, size, min(size, _FIRST_READ))
        if end[-4:] != _MAGIC:
            raise bad_request(f"{location} is no Parquet file")
        length = int.from_bytes(end[-_TAIL:-4], "little") + _TAIL
        if length > min(size, MAX_FOOTER):
            raise bad_request(f"{location} has no footer that can be read")
        if length > len(end):
            end = self._end(location, size, length)
        try:
            return _num_rows(end[-length:-_TAIL])
        except (TException, EOFError, ValueError, IndexError):
            raise bad_request(f"{location} has no footer that can be read") from None

    def _end(self, location: str, size: int, length: int) -> bytes:
        try:
            found = self._warehouse.read_range(location, size - length, length)
        except WarehouseError as error:
            raise unavailable(f"rows can't be counted: {error}") from None
        if len(found) != length or not length:
            raise bad_request(f"{location} hasn't the {size} bytes that its writer said")
        return found


def _num_rows(footer: bytes) -> int:
    protocol = TCompactProtocol(TMemoryBuffer(footer))
    protocol.readStructBegin()
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            raise ValueError("no number of rows")
        if number == _NUM_ROWS:
            return int(protocol.readI64())
        protocol.skip(kind)
        protocol.readFieldEnd()
