"""Decodes lists of partitions whose columns are the same: nine tenths of the bytes, and more of the objects.

The columns of the first partition are decoded once and shared. Wherever they occur, a mark that no sender knows takes
their place. The same bytes may occur in a text, so each mark must turn out to be the columns of a partition.
"""

import secrets
from collections.abc import Iterator
from typing import Any, TypeVar

from thrift.Thrift import TType

from lake.protocol.codec.binary import STOP, decode, decode_preserving, encode, encode_fields
from lake.protocol.codec.preserving import Decoder
from lake.protocol.codec.scanner import BinaryScanner, Limits, Rejected
from lake.protocol.codec.splice import SD_BEGIN
from lake.protocol.hive import AddPartitionsRequest, AlterPartitionsRequest, FieldSchema, Partition, StorageDescriptor
from lake.protocol.lake import ImportRequest
from lake.protocol.struct import Struct

S = TypeVar("S", bound=Struct)

_COLUMNS_BEGIN = b"\x0f\x00\x01\x0c"  # field 1 of StorageDescriptor, a list of structs
_HEADER = 3  # bytes of a field
_WORTH_IT = 1 << 13  # bytes of a message
_BEGINNING = 256  # bytes of columns that are searched for; shorter columns than that are not shared
_LIMITS = Limits()
_MARK = [FieldSchema(secrets.token_hex(16))]
_MARK_ENCODED = encode_fields(StorageDescriptor(cols=_MARK))


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
    columns = data[at : decoder.at]
    shared = decode(StorageDescriptor, columns + STOP).cols
    if len(columns) < _BEGINNING or encode_fields(StorageDescriptor(cols=shared)) != columns:
        return None
    # As `bytes.replace`, which prepares each search for a long text at length.
    begin, rest = columns[:_BEGINNING], columns[_BEGINNING:]
    first, *others = data[offset:].split(begin)
    ends = [each[len(rest) :] if each.startswith(rest) else None for each in others]
    count = len(ends) - ends.count(None)
    parts = [begin + each if end is None else _MARK_ENCODED + end for each, end in zip(others, ends, strict=True)]
    marked = b"".join((first, *parts))
    if count < 2 or _end_of_struct(marked, 0) != len(marked):
        return None
    value = decode(cls, marked)
    alike = [each.sd for each in _partitions(value) if each.sd is not None and each.sd.cols == _MARK]
    if len(alike) != count or encode(value) != marked:
        return None
    for descriptor in alike:
        descriptor.cols = shared
    return value


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
        elif isinstance(value, (AlterPartitionsRequest, ImportRequest)):
            value = value.partitions
        if isinstance(value, list):
            yield from (each for each in value if isinstance(each, Partition))
