"""Decodes tables fast: columns that another table had, or the same one before, are not decoded again.

Columns are most of a table's bytes and of its objects, and a client alters a table with the columns that it has read.
So the accelerator gets a specification without them, and skips them. It knows nothing of their place. To check that,
the value is encoded with a mark in their stead, which no sender knows, and has to be the message with that mark.
"""

import secrets
from functools import cache
from typing import TypeVar

from thrift.protocol import fastbinary
from thrift.Thrift import TType

from lake.protocol.bounded_dict import BoundedDict
from lake.protocol.codec.binary import decode_by, decode_preserving, encode_fields, spec_without
from lake.protocol.codec.preserving import has_unknown
from lake.protocol.codec.shared_list import SharedList
from lake.protocol.hive import FieldSchema, StorageDescriptor, Table
from lake.protocol.struct import Spec, Struct

S = TypeVar("S", bound=Struct)

_BEFORE = b"\x0c\x00\x07"  # field 7 of Table, a struct
_COLUMNS = b"\x0f\x00\x01\x0c"  # field 1 of StorageDescriptor, a list of structs
_BEGINNING = 64  # bytes of columns by which they are looked up
_KNOWN = 256
_LONGEST = 16 << 10  # bytes

_MARK = [FieldSchema(name=secrets.token_hex(16))]
_MARK_ENCODED = encode_fields(StorageDescriptor(cols=_MARK))

_known: BoundedDict[bytes, tuple[bytes, SharedList]] = BoundedDict(_KNOWN)


def decode_table(cls: type[S], path: tuple[str, ...], data: bytes, offset: int = 0) -> S:
    """As `binary.decode_preserving`. The table's list of columns may be a SharedList, which must not be changed.

    `path`: from `path_to_table`.
    """
    before = data.find(_BEFORE + _COLUMNS, offset)
    if before < 0:
        return decode_preserving(cls, data, offset)
    at = before + len(_BEFORE)
    encoded, columns = _known.get(data[at : at + _BEGINNING], (b"", None))
    if columns is not None and data.startswith(encoded, at):
        value = decode_by(cls, _lean(cls), data, offset)  # type: ignore[arg-type]  # mypy: unhashable instances
        descriptor = _descriptor(value, path)
        if descriptor is not None:
            descriptor.cols = _MARK
            marked = data[offset:at] + _MARK_ENCODED + data[at + len(encoded) :]
            if fastbinary.encode_binary(value, [cls, cls.thrift_spec]) == marked:
                descriptor.cols = columns
                return value
    value = decode_preserving(cls, data, offset)
    _learn(_descriptor(value, path), data, at)
    return value


def _learn(descriptor: StorageDescriptor | None, data: bytes, at: int) -> None:
    """Remembers columns that begin at `at`, if there is nothing about them that isn't understood."""
    if descriptor is None or not descriptor.cols or has_unknown(descriptor):
        return
    encoded = encode_fields(StorageDescriptor(cols=descriptor.cols))
    if _BEGINNING <= len(encoded) <= _LONGEST and data.startswith(encoded, at):
        descriptor.cols = columns = SharedList(descriptor.cols)
        _known.put(encoded[:_BEGINNING], (encoded, columns))


@cache
def path_to_table(cls: type[Struct]) -> tuple[str, ...] | None:
    """The fields that lead from a class to the one table in it; None if there is none, or more than one."""
    if cls is Table:
        return ()
    found = [
        (entry[2], *rest)
        for entry in cls.thrift_spec
        if entry is not None and entry[1] == TType.STRUCT and (rest := path_to_table(entry[3][0])) is not None
    ]
    return found[0] if len(found) == 1 else None


@cache
def _lean(cls: type[Struct]) -> Spec:
    """The specification of a class without the columns of the table in it."""
    if cls is StorageDescriptor:
        return spec_without(cls, ("cols",))
    path = ("sd",) if cls is Table else path_to_table(cls)  # type: ignore[arg-type]
    assert path is not None
    return tuple(
        (*entry[:3], [entry[3][0], _lean(entry[3][0])], None) if entry is not None and entry[2] == path[0] else entry
        for entry in cls.thrift_spec
    )


def _descriptor(value: Struct, path: tuple[str, ...]) -> StorageDescriptor | None:
    """The storage descriptor of the table in a struct."""
    part = value
    for name in (*path, "sd"):
        part = getattr(part, name)
        if part is None:
            return None
    assert isinstance(part, StorageDescriptor)
    return part
