"""Decodes lists of partitions whose columns are the same: nine tenths of the bytes, and more of the objects.

The columns of the first partition are cut out wherever they occur, decoded once, and shared. The result counts only if
it encodes to the message again: the same bytes may occur in a text, too.
"""

from collections.abc import Iterator
from typing import Any, TypeVar

from thrift.Thrift import TType

from lake.protocol.codec.binary import STOP, decode, decode_preserving, encode
from lake.protocol.codec.preserving import Decoder
from lake.protocol.codec.scanner import BinaryScanner, Limits, Rejected
from lake.protocol.codec.splice import SD_BEGIN
from lake.protocol.hive import AddPartitionsRequest, AlterPartitionsRequest, Partition, StorageDescriptor
from lake.protocol.struct import Struct

S = TypeVar("S", bound=Struct)

_COLUMNS_BEGIN = b"\x0f\x00\x01\x0c"  # field 1 of StorageDescriptor, a list of structs
_HEADER = 3  # bytes of a field
_WORTH_IT = 1 << 13  # bytes of a message
_LIMITS = Limits()


def decode_sharing(cls: type[S], data: bytes, offset: int = 0) -> S:
    """As `binary.decode_preserving`. Partitions may share their list of columns, which must not be changed."""
    value = _decode_shared(cls, data, offset) if len(data) - offset >= _WORTH_IT else None
    return decode_preserving(cls, data, offset) if value is None else value


def _decode_shared(cls: type[S], data: bytes, offset: int) -> S | None:
    """The arguments of a call; None if they are not a list of partitions that have columns in common."""
    at = data.find(SD_BEGIN + _COLUMNS_BEGIN, offset) + len(SD_BEGIN)
    if at < len(SD_BEGIN) or _end_of_struct(data, at) is None:
        return None
    decoder = Decoder(data, at + _HEADER)
    decoder.skip(TType.LIST)
    columns, body = data[at : decoder.at], data[offset:]
    without = body.replace(columns, b"")
    if len(without) + len(columns) >= len(body) or _end_of_struct(without, 0) != len(without):
        return None
    value = decode(cls, without)
    shared = decode(StorageDescriptor, columns + STOP).cols
    for partition in _partitions(value):
        if partition.sd is not None and partition.sd.cols is None:
            partition.sd.cols = shared
    return value if encode(value) == body else None


def _end_of_struct(data: bytes, at: int) -> int | None:
    """Where a struct ends; None if the bytes are not one, and must not be decoded."""
    try:
        next(BinaryScanner.struct(data, at, _LIMITS))
    except StopIteration as done:
        end: int = done.value.end
        return end
    except Rejected:
        pass
    return None


def _partitions(arguments: Struct) -> Iterator[Partition]:
    """The partitions in the lists of a call's arguments."""
    for name in arguments.field_names():
        value: Any = getattr(arguments, name)
        if isinstance(value, AddPartitionsRequest):
            value = value.parts
        elif isinstance(value, AlterPartitionsRequest):
            value = value.partitions
        if isinstance(value, list):
            yield from (each for each in value if isinstance(each, Partition))
