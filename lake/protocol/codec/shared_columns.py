"""Decodes lists of partitions fast: what their storage descriptors have in common is decoded once.

Columns are nine tenths of a partition's bytes, and even more of the decoded objects. Mostly descriptors differ in their
location alone. So the accelerator gets a specification without the columns, and without what follows on the location
if that is the same in each descriptor, and skips these. To check that they are the same, their bytes are removed from
the message, once per descriptor; the rest must equal the encoded objects. Otherwise the whole message is decoded.
Where the scanner has noted the places of columns, they are taken out before the rest is decoded, which spares the
accelerator the walk over them. Without its notes the message is decoded as the scanner has walked it: one that was cut
anywhere else might be anything.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, TypeVar

from thrift.protocol import fastbinary
from thrift.Thrift import TType

from lake.protocol.bounded_dict import BoundedDict
from lake.protocol.codec import splice
from lake.protocol.codec.binary import STOP, decode, decode_by, decode_preserving, encode_fields, spec_without
from lake.protocol.codec.known_columns import decode_table, path_to_table
from lake.protocol.codec.preserving import Decoder
from lake.protocol.codec.scanner import WalkedMessage
from lake.protocol.codec.splice import LOCATION_BEGIN, SD_BEGIN
from lake.protocol.hive import AddPartitionsRequest, AlterPartitionsRequest, Partition, StorageDescriptor
from lake.protocol.struct import Spec, Struct

S = TypeVar("S", bound=Struct)

_COLUMNS = 1  # the field of StorageDescriptor
_WORTH_IT = 1 << 13  # bytes of a message
_BEGINNING = 64  # bytes of columns that are searched for, or looked up, before all of them are compared
_KNOWN = 64
_LONGEST = 16 << 10  # bytes of what is remembered of a message
_HOLDERS = (AddPartitionsRequest, AlterPartitionsRequest, Partition)
_LENGTH = 4  # bytes before a text
_ALL_BUT_LOCATION = tuple(name for name in StorageDescriptor.field_names() if name != "location")


class _Common(NamedTuple):
    """What the first descriptor of a message may have in common with others.

    `columns`: the first field, with its header. `rest`: what follows on the location, the second field, up to STOP;
    None if that isn't the second.
    """

    columns: bytes
    rest: bytes | None


class _Stripped(NamedTuple):
    """A message without some fields of its descriptors."""

    encoded: bytes
    without: tuple[str, ...]
    descriptors: int


_known: BoundedDict[bytes, _Common] = BoundedDict(_KNOWN)
"""What the descriptors of earlier messages had in common, by its first bytes: to step over columns takes long."""


def decode_sharing(cls: type[S], data: bytes, offset: int = 0) -> S:
    """As `binary.decode_preserving`. Descriptors may share all parts but their location; these must not be changed."""
    path = path_to_table(cls)  # type: ignore[arg-type]  # mypy: unhashable instances
    if path is not None:
        return decode_table(cls, path, data, offset)
    value = None
    if _ways(cls) and len(data) - offset >= _WORTH_IT:  # type: ignore[arg-type]
        value = _decode_shared(cls, data, offset)
    return decode_preserving(cls, data, offset) if value is None else value


def _decode_shared(cls: type[S], data: bytes, offset: int) -> S | None:
    """The message, if all of its descriptors have something in common."""
    common = _common_of_first(Decoder(data, offset), cls)
    if common is None:
        return None
    columns = common.columns
    if places := _places(data, columns, offset):
        value = _shared(cls, _cut(data, columns, offset, places), common, None)
        if value is not None:
            return value
    return _shared(cls, _split(data, columns, offset), common, (data, offset))


def _shared(cls: type[S], between: list[bytes], common: _Common, whole: tuple[bytes, int] | None) -> S | None:
    """The message, whose columns are cut out of `between`, if all descriptors have something in common.

    `whole`: the message, and where it begins; None if what was cut out were fields, so that the rest can be decoded.
    """
    count = len(between) - 1
    if count < 2:
        return None
    if common.rest is not None and (shared := _shared_descriptor(between, common.columns, common.rest)) is not None:
        stripped = _Stripped(b"".join(_without_rest(between, len(common.rest))), _ALL_BUT_LOCATION, count)
    elif (shared := _shared_columns(common.columns)) is not None:
        stripped = _Stripped(b"".join(between), ("cols",), count)
    else:
        return None
    return _decoded(cls, *(whole or (stripped.encoded, 0)), stripped, shared)


def _places(data: bytes, columns: bytes, offset: int) -> list[int]:
    """Where partitions' descriptors begin that have these columns, as far as the scanner has noted it."""
    if not isinstance(data, WalkedMessage):
        return []
    header = len(SD_BEGIN)
    return [
        at
        for at in data.noted
        if at >= offset + header and data.startswith(SD_BEGIN, at - header) and data.startswith(columns, at)
    ]


def _cut(data: bytes, columns: bytes, offset: int, places: Sequence[int]) -> list[bytes]:
    """What lies between the columns in these places."""
    begins = [offset, *(at + len(columns) for at in places)]
    return [data[begin:end] for begin, end in zip(begins, [*places, len(data)], strict=True)]


def _decoded(cls: type[S], encoded: bytes, start: int, stripped: _Stripped, shared: StorageDescriptor) -> S | None:
    """The message, if it is `stripped` without the fields that its descriptors have of `shared`.

    `encoded`: what has the message at `start`, with these fields or without.
    """
    lean = _lean(cls, stripped.without)  # type: ignore[arg-type]  # mypy: unhashable instances
    value = decode_by(cls, lean, encoded, start)
    descriptors = _descriptors(value)
    if len(descriptors) != stripped.descriptors or stripped.encoded != fastbinary.encode_binary(value, [cls, lean]):
        return None
    parts = [(name, part) for name in stripped.without if (part := getattr(shared, name)) is not None]
    for each in descriptors:
        for name, part in parts:
            setattr(each, name, part)
    return value


def _shared_descriptor(between: list[bytes], columns: bytes, rest: bytes) -> StorageDescriptor | None:
    """The descriptor that all are but for the location, if they are the same. `between`: what the columns part."""
    end = rest + STOP
    for piece in between[1:]:
        if not piece.startswith(LOCATION_BEGIN) or not piece.startswith(end, _after_location(piece)):
            return None
    body = columns + rest
    shared = splice.descriptor(body, None)
    understood = not hasattr(shared, "unknown") and splice.descriptor_body(shared) == body
    return shared if understood else None


def _without_rest(between: list[bytes], length: int) -> list[bytes]:
    """The same without so many bytes after each location."""
    cut = between[:1]
    for piece in between[1:]:
        end = _after_location(piece)
        cut += piece[:end], piece[end + length :]
    return cut


def _after_location(piece: bytes) -> int:
    """Where a location ends that comes first."""
    begin = len(LOCATION_BEGIN) + _LENGTH
    return begin + int.from_bytes(piece[len(LOCATION_BEGIN) : begin])


def _shared_columns(encoded: bytes) -> StorageDescriptor | None:
    """A descriptor with nothing but these columns; None if they have more than is understood."""
    shared = StorageDescriptor(cols=decode(StorageDescriptor, encoded + STOP).cols)
    return shared if encode_fields(shared) == encoded else None


def _split(data: bytes, separator: bytes, offset: int = 0) -> list[bytes]:
    """As `data[offset:].split(separator)`, for a long separator that comes often.

    Python prepares a search for it each time.
    """
    beginning = separator[:_BEGINNING]
    pieces = []
    end = at = offset
    while (at := data.find(beginning, at)) >= 0:
        if data.startswith(separator, at):
            pieces.append(data[end:at])
            end = at = at + len(separator)
        else:
            at += 1
    return [*pieces, data[end:]]


@cache
def _lean(cls: type[Struct], names: tuple[str, ...]) -> Spec:
    """The specification of a class without these fields of partitions' descriptors."""
    if cls is StorageDescriptor:
        return spec_without(cls, names)
    changed = {number: _lean_argument(argument, names) for number, argument in _ways(cls)}  # type: ignore[arg-type]
    return tuple(
        entry if entry is None or entry[0] not in changed else (*entry[:3], changed[entry[0]], None)
        for entry in cls.thrift_spec
    )


def _lean_argument(argument: Any, names: tuple[str, ...]) -> Any:
    if isinstance(argument, list):
        return [argument[0], _lean(argument[0], names)]
    return (argument[0], _lean_argument(argument[1], names), *argument[2:])


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


def _common_of_first(decoder: Decoder, cls: type[Struct]) -> _Common | None:
    """Of the first descriptor that begins with its columns."""
    ways = dict(_ways(cls))  # type: ignore[arg-type]
    while True:
        start = decoder.at
        ttype = decoder.number(">b")
        if ttype == TType.STOP:
            return None
        field = decoder.number(">h")
        if cls is StorageDescriptor and field == _COLUMNS and ttype == TType.LIST:
            return _known_at(decoder.data, start) or _learned(decoder, start)
        argument = ways.get(field)
        if ttype == TType.STRUCT and isinstance(argument, list):
            found = _common_of_first(decoder, argument[0])
            if found is not None:
                return found
        elif ttype == TType.LIST and isinstance(argument, tuple):
            inner, count = decoder.number(">b"), decoder.number(">i")
            for _ in range(count):
                if inner != TType.STRUCT:
                    decoder.skip(inner)
                elif (found := _common_of_first(decoder, argument[1][0])) is not None:
                    return found
        else:
            decoder.skip(ttype)


def _known_at(data: bytes, start: int) -> _Common | None:
    """What an earlier message's descriptors had in common, if the descriptor that begins at `start` has it too."""
    known = _known.get(data[start : start + _BEGINNING])
    if known is None or known.rest is None or not data.startswith(known.columns, start):
        return None
    location = start + len(known.columns)
    if not data.startswith(LOCATION_BEGIN, location):
        return None
    end = location + len(LOCATION_BEGIN) + _LENGTH
    end += int.from_bytes(data[end - _LENGTH : end])
    return known if data.startswith(known.rest + STOP, end) else None


def _learned(decoder: Decoder, start: int) -> _Common:
    """What a descriptor may have in common with others. `decoder` is behind the header of its columns, at `start`."""
    decoder.skip(TType.LIST)
    common = _Common(decoder.data[start : decoder.at], _rest(decoder))
    if len(common.columns) + len(common.rest or b"") <= _LONGEST:
        _known.put(common.columns[:_BEGINNING], common)
    return common


def _rest(decoder: Decoder) -> bytes | None:
    """What follows on the location that comes next in a descriptor, if it does."""
    if not decoder.data.startswith(LOCATION_BEGIN, decoder.at):
        return None
    decoder.at += len(LOCATION_BEGIN)
    decoder.skip(TType.STRING)
    start = decoder.at
    while (ttype := decoder.number(">b")) != TType.STOP:
        decoder.at += 2
        decoder.skip(ttype)
    return decoder.data[start : decoder.at - 1]
