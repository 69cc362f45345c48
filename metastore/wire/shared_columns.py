"""Decodes lists of partitions fast: their common columns are decoded once.

Columns are nine tenths of a partition's bytes, and even more of the decoded objects. So the accelerator gets a
specification without them, and skips them. This requires that all descriptors have the columns of the first one. To
check it, the bytes of these columns are removed from the message, once per descriptor; the rest must equal the encoded
objects. Otherwise the whole message is decoded.
"""

from functools import cache
from typing import Any, TypeVar

from thrift.protocol import fastbinary
from thrift.Thrift import TType

from metastore.wire.binary import STOP, decode, decode_by, decode_preserving, encode_fields, spec_without
from metastore.wire.hive import AddPartitionsRequest, AlterPartitionsRequest, Partition, StorageDescriptor
from metastore.wire.known_columns import decode_table, path_to_table
from metastore.wire.preserving import Decoder
from metastore.wire.struct import Spec, Struct

S = TypeVar("S", bound=Struct)

_COLUMNS = 1  # the field of StorageDescriptor
_WORTH_IT = 1 << 13  # bytes of a message
_BEGINNING = 32  # bytes of columns that are searched for, before all of them are compared
_HOLDERS = (AddPartitionsRequest, AlterPartitionsRequest, Partition)


def decode_sharing(cls: type[S], data: bytes, offset: int = 0) -> S:
    """As `binary.decode_preserving`. Descriptors may share their list of columns, which must not be changed."""
    path = path_to_table(cls)  # type: ignore[arg-type]  # mypy: unhashable instances
    if path is not None:
        return decode_table(cls, path, data, offset)
    lean = _lean(cls)  # type: ignore[arg-type]
    if lean is None or len(data) - offset < _WORTH_IT:
        return decode_preserving(cls, data, offset)
    span = _first_columns(Decoder(data, offset), cls)
    if span is None:
        return decode_preserving(cls, data, offset)
    encoded, body = data[slice(*span)], data[offset:]
    columns = decode(StorageDescriptor, encoded + STOP).cols
    between = _split(body, encoded)
    if len(between) < 3 or encode_fields(StorageDescriptor(cols=columns)) != encoded:  # it has more than was understood
        return decode_preserving(cls, data, offset)
    value = decode_by(cls, lean, data, offset)
    descriptors = _descriptors(value)
    rest = b"".join(between)
    if len(descriptors) != len(between) - 1 or rest != fastbinary.encode_binary(value, [cls, lean]):
        return decode_preserving(cls, data, offset)
    for each in descriptors:
        each.cols = columns
    return value


def _split(data: bytes, separator: bytes) -> list[bytes]:
    """As `data.split(separator)`, for a long separator that comes often: Python prepares a search for it each time."""
    beginning = separator[:_BEGINNING]
    pieces = []
    end = at = 0
    while (at := data.find(beginning, at)) >= 0:
        if data.startswith(separator, at):
            pieces.append(data[end:at])
            end = at = at + len(separator)
        else:
            at += 1
    return [*pieces, data[end:]]


@cache
def _lean(cls: type[Struct]) -> Spec | None:
    """The specification of a class without the columns of partitions; None if it holds no partitions."""
    if cls is StorageDescriptor:
        return spec_without(cls, ("cols",))
    changed = {number: _lean_argument(argument) for number, argument in _ways(cls)}  # type: ignore[arg-type]
    if not changed:
        return None
    return tuple(
        entry if entry is None or entry[0] not in changed else (*entry[:3], changed[entry[0]], None)
        for entry in cls.thrift_spec
    )


def _lean_argument(argument: Any) -> Any:
    if isinstance(argument, list):
        return [argument[0], _lean(argument[0])]
    return (argument[0], _lean_argument(argument[1]), *argument[2:])


@cache
def _ways(cls: type[Struct]) -> list[tuple[int, Any]]:
    """The fields, structs or lists of structs, that lead to a partition's descriptor, and their type arguments."""
    ways = []
    for entry in cls.thrift_spec:
        if entry is None:
            continue
        inner = entry[3][0] if entry[1] == TType.STRUCT else _item_class(entry)
        if inner in _HOLDERS or (inner is StorageDescriptor and cls is Partition):
            ways.append((entry[0], entry[3]))
    return ways


def _item_class(entry: Any) -> Any:
    return entry[3][1][0] if entry[1] == TType.LIST and entry[3][0] == TType.STRUCT else None


def _descriptors(value: Struct) -> list[StorageDescriptor]:
    """The descriptors within a struct."""
    found: list[StorageDescriptor] = []
    some: list[Any] = [value]
    while some:
        within: list[Any] = []
        for each in some:
            if isinstance(each, StorageDescriptor):
                found.append(each)
                continue
            for name in _names(type(each)):  # type: ignore[arg-type]  # mypy: unhashable instances
                part = getattr(each, name)
                if isinstance(part, list):
                    within += part
                elif part is not None:
                    within.append(part)
        some = within
    return found


@cache
def _names(cls: type[Struct]) -> list[str]:
    """The names of the fields that lead to a partition's descriptor."""
    numbers = {number for number, _ in _ways(cls)}  # type: ignore[arg-type]
    return [entry[2] for entry in cls.thrift_spec if entry is not None and entry[0] in numbers]


def _first_columns(decoder: Decoder, cls: type[Struct]) -> tuple[int, int] | None:
    """Where the first descriptor's columns begin, with their field's header, and end."""
    ways = dict(_ways(cls))  # type: ignore[arg-type]
    while True:
        start = decoder.at
        ttype = decoder.number(">b")
        if ttype == TType.STOP:
            return None
        field = decoder.number(">h")
        if cls is StorageDescriptor and field == _COLUMNS and ttype == TType.LIST:
            decoder.skip(ttype)
            return start, decoder.at
        argument = ways.get(field)
        if ttype == TType.STRUCT and isinstance(argument, list):
            found = _first_columns(decoder, argument[0])
            if found is not None:
                return found
        elif ttype == TType.LIST and isinstance(argument, tuple):
            inner, count = decoder.number(">b"), decoder.number(">i")
            for _ in range(count):
                if inner != TType.STRUCT:
                    decoder.skip(inner)
                elif (found := _first_columns(decoder, argument[1][0])) is not None:
                    return found
        else:
            decoder.skip(ttype)
