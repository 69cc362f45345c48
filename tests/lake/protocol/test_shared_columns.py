"""Partitions that come with the columns of their table are read as if each had been read in full."""

import tracemalloc
from typing import Any

import pytest

from lake.protocol.codec import binary, splice
from lake.protocol.codec.shared_columns import decode_sharing
from lake.protocol.hive import AddPartitionsRequest, FieldSchema, Partition
from lake.protocol.lake import ImportRequest
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from tests.support import builders

COLUMNS = tuple(f"column_{number}:decimal(10,2)#the {number}th" for number in range(30))


def _partitions(count: int = 20) -> list[Partition]:
    return [
        builders.partition("d", "t", str(number), sd=builders.storage(*COLUMNS, location=f"file:/t/{number}"))
        for number in range(count)
    ]


def _encoded_columns(partition: Partition) -> bytes:
    assert partition.sd is not None
    return binary.encode_fields(builders.storage().replace(cols=partition.sd.cols, serdeInfo=None))


def _request(partitions: list[Partition]) -> Struct:
    arguments = METHODS["add_partitions_req"].args()
    arguments.request = AddPartitionsRequest("d", "t", partitions, True, catName="hive")  # type: ignore[attr-defined]
    return arguments


def _list(partitions: list[Partition]) -> Struct:
    arguments = METHODS["add_partitions"].args()
    arguments.new_parts = partitions  # type: ignore[attr-defined]
    return arguments


def _imported(partitions: list[Partition]) -> Struct:
    arguments = METHODS["lake_import"].args()
    arguments.request = ImportRequest(partitions=partitions)  # type: ignore[attr-defined]
    return arguments


def _read(message: Struct) -> list[Partition]:
    """The partitions as they are read, which must be those that would be read without sharing."""
    encoded = b"before it" + binary.encode(message)
    alone = binary.decode_preserving(type(message), encoded, 9)
    shared = decode_sharing(type(message), encoded, 9)
    assert shared == alone
    assert binary.encode(shared) == binary.encode(alone)
    new: list[Partition] | None = getattr(shared, "new_parts", None)
    request: Any = getattr(shared, "request", None)
    return new or getattr(request, "parts", None) or request.partitions


def _rest_of_descriptor(encoded: bytes) -> bytes:
    """What follows on the first location, but for the last byte of the descriptor."""
    sd = _partitions()[0].sd
    assert sd is not None
    rest = binary.encode_fields(sd, without=("cols", "location"))
    assert rest in encoded
    return rest


def _lists_of_columns(partitions: list[Partition]) -> int:
    return len({id(partition.sd.cols) for partition in partitions if partition.sd is not None})


@pytest.mark.parametrize("message", [_request, _list, _imported])
def test_columns_are_shared(message: type[Struct]) -> None:
    assert _lists_of_columns(_read(message(_partitions()))) == 1


@pytest.mark.parametrize("change", [{"inputFormat": "another"}, {"location": None}, {"parameters": {"a": "b"}}])
@pytest.mark.parametrize("place", [0, 7])
def test_of_other_descriptors_the_columns_are_shared(change: dict[str, Any], place: int) -> None:
    partitions = _partitions()
    sd = partitions[place].sd
    assert sd is not None
    partitions[place].sd = sd.replace(**change)
    assert _lists_of_columns(_read(_request(partitions))) == 1


@pytest.mark.parametrize("removed", ["columns", "descriptor"])
def test_what_looks_like_a_descriptor_is_none(removed: str) -> None:
    """The bytes that descriptors share stand in a value as often as partitions lack them."""
    partitions = _partitions()
    sd = partitions[3].sd
    assert sd is not None
    text = binary.encode(sd).decode("latin-1")
    assert text.isascii()
    partitions[3].sd = None if removed == "descriptor" else sd.replace(cols=None)
    partitions[5].parameters = {"a": text}
    _read(_request(partitions))


def test_a_second_location_is_the_one_that_counts() -> None:
    request = _request(_partitions())
    encoded = binary.encode(request)
    other = splice.LOCATION_BEGIN + b"\x00\x00\x00\x01x"
    rest = _rest_of_descriptor(encoded)
    for message in (encoded.replace(rest, rest + other), encoded.replace(rest, rest + other, 1)):
        assert decode_sharing(type(request), message) == binary.decode_preserving(type(request), message)


def test_other_columns_stay_with_their_partition() -> None:
    partitions = _partitions()
    sd = partitions[7].sd
    assert sd is not None and sd.cols is not None
    sd.cols = [FieldSchema("Column_0", *(getattr(sd.cols[0], each) for each in ("type", "comment"))), *sd.cols[1:]]
    assert _lists_of_columns(_read(_request(partitions))) == 2


@pytest.mark.parametrize("columns", [None, []])
def test_what_looks_like_columns_is_none(columns: list[FieldSchema] | None) -> None:
    """The bytes of the columns stand in a value as often as partitions lack them."""
    partitions = _partitions()
    sd = partitions[3].sd
    assert sd is not None
    text = _encoded_columns(partitions[0]).decode("latin-1")
    assert text.isascii()
    sd.cols, partitions[5].parameters = columns, {"a": text}
    _read(_request(partitions))


def test_partitions_without_a_descriptor() -> None:
    partitions = _partitions()
    partitions[2].sd = None
    assert _lists_of_columns(_read(_request(partitions))) == 1


def test_fields_that_nobody_knows_are_kept() -> None:
    for position in (0, 4):
        partitions = _partitions()
        sd = partitions[position].sd
        assert sd is not None and sd.cols is not None
        sd.cols[0].unknown = b"\x08\x00\x63\x00\x00\x00\x01"
        sd.unknown = partitions[position].unknown = b""
        message = _request(partitions)
        message.unknown = b""
        kept = _read(message)[position].sd
        assert kept is not None and kept.cols is not None and kept.cols[0].unknown == sd.cols[0].unknown


def test_text_that_is_not_utf8_is_refused() -> None:
    request = _request(_partitions())
    encoded = binary.encode(request)
    for wrong in (encoded.replace(b"the 3th", b"the \xff\xffh"), encoded.replace(b"file:/t/3", b"file:/\xff/3", 1)):
        with pytest.raises(UnicodeDecodeError):
            decode_sharing(type(request), wrong)


def test_columns_of_what_is_no_descriptor_stay_where_they_are() -> None:
    """A struct that nobody would send has a descriptor's fields, and a descriptor has none of them."""
    for before in (b"\x0c\x00\x07", b"\x0c\x00\x06"):
        request = _request(_partitions())
        encoded = binary.encode(request)
        descriptor = binary.encode(_partitions()[3].sd)
        sd = splice.SD_BEGIN + descriptor
        assert encoded.count(sd) == 1
        wrong = encoded.replace(sd, splice.SD_BEGIN + before + descriptor + b"\x00")
        assert decode_sharing(type(request), wrong) == binary.decode_preserving(type(request), wrong)


def test_what_only_begins_like_columns_is_no_list() -> None:
    """A text before the partitions holds a beginning of columns that claims more than there is."""
    for claim in (b"\x7f\x7f\x7f\x7f", b"\x00\x00\x00\x01"):
        text = splice.SD_BEGIN + b"\x0f\x00\x01\x0c" + claim
        arguments = METHODS["alter_partitions"].args()
        arguments.db_name, arguments.new_parts = text.decode(), _partitions()  # type: ignore[attr-defined]
        _read(arguments)


def test_short_columns_take_no_more_memory_than_the_message() -> None:
    """Each would be replaced by something longer, wherever a text has them."""
    message = _request([builders.partition("d", "t", "1", sd=builders.storage().replace(cols=[]))])
    partition = message.request.parts[0]  # type: ignore[attr-defined]
    partition.parameters = {"a": "\x0f\x00\x01\x0c\x00\x00\x00\x00" * 100_000}
    encoded = binary.encode(message)
    tracemalloc.start()
    shared = decode_sharing(type(message), encoded)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert shared == message and peak < 4 * len(encoded)
