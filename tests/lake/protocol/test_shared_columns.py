"""Partitions that come with the columns of their table are read as if each had been read in full."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.Thrift import TType

from lake.protocol import required
from lake.protocol.codec import binary, shared_columns, splice
from lake.protocol.codec.scanner import BinaryScanner, Limits, WalkedMessage
from lake.protocol.codec.shared_columns import decode_sharing
from lake.protocol.hive import AddPartitionsRequest, FieldSchema, Partition, StorageDescriptor
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
    return AddPartitionsRequest("d", "t", partitions, True, catName="hive")


def _list(partitions: list[Partition]) -> Struct:
    arguments = METHODS["add_partitions"].args()
    arguments.new_parts = partitions  # type: ignore[attr-defined]
    return arguments


def _read(message: Struct) -> list[Partition]:
    """The partitions as they are read, which must be those that would be read without sharing."""
    encoded = b"before it" + binary.encode(message)
    alone = binary.decode_preserving(type(message), encoded, 9)
    for shared in (decode_sharing(type(message), each, 9) for each in (encoded, _walked(encoded, 9))):
        assert shared == alone
        assert binary.encode(shared) == binary.encode(alone)
    found: list[Partition] = getattr(shared, "new_parts", None) or shared.parts  # type: ignore[attr-defined]
    return found


def _walked(encoded: bytes, start: int) -> WalkedMessage:
    """The message as an inbox gives it out."""
    scanner = BinaryScanner(Limits())
    scanner._walk = BinaryScanner.struct(encoded, start, Limits())
    assert scanner.scan(encoded) == len(encoded)
    return WalkedMessage(encoded, scanner.walked.noted)


def _rest_of_descriptor(encoded: bytes) -> bytes:
    """What follows on the first location, but for the last byte of the descriptor."""
    sd = _partitions()[0].sd
    assert sd is not None
    rest = binary.encode_fields(sd, without=("cols", "location"))
    assert rest in encoded
    return rest


def _lists_of_columns(partitions: list[Partition]) -> int:
    return len({id(partition.sd.cols) for partition in partitions if partition.sd is not None})


@pytest.mark.parametrize("message", [_request, _list])
def test_columns_are_shared(message: type[Struct]) -> None:
    assert _lists_of_columns(_read(message(_partitions()))) == 1


def test_all_but_the_location_is_shared() -> None:
    first, *others = [partition.sd for partition in _read(_request(_partitions())) if partition.sd is not None]
    assert all(each.serdeInfo is first.serdeInfo and each.location != first.location for each in others)


@pytest.mark.parametrize("change", [{"inputFormat": "another"}, {"location": None}, {"parameters": {"a": "b"}}])
@pytest.mark.parametrize("place", [0, 7])
def test_of_other_descriptors_the_columns_are_shared(change: dict[str, Any], place: int) -> None:
    partitions = _partitions()
    sd = partitions[place].sd
    assert sd is not None
    partitions[place].sd = sd.replace(**change)
    assert _lists_of_columns(_read(_request(partitions))) == 1


@pytest.mark.parametrize(
    "change", [{"inputFormat": "another"}, {"location": None}, {"cols": builders.columns(*COLUMNS[:-1])}]
)
def test_descriptors_that_begin_as_those_of_another_message(change: dict[str, Any]) -> None:
    _read(_request(_partitions()))
    others = _partitions()
    for each in others:
        assert each.sd is not None
        each.sd = each.sd.replace(**change)
    for partitions in (others, _partitions(), others):
        assert _lists_of_columns(_read(_request(partitions))) == 1


def test_what_is_remembered_of_messages_is_limited() -> None:
    for number in range(200):
        partitions = _partitions(3)
        for each in partitions:
            assert each.sd is not None
            columns = builders.columns(f"{number}_first_of_columns_of_its_own:int", *COLUMNS)
            each.sd = each.sd.replace(cols=columns, parameters={"a": "b" * (number * 200)})
        _read(_request(partitions))
    kept = [len(common.columns) + len(common.rest or b"") for common in shared_columns._known.values()]
    assert len(kept) <= shared_columns._KNOWN and max(kept) <= shared_columns._LONGEST


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
    encoded = binary.encode(_request(_partitions()))
    other = splice.LOCATION_BEGIN + b"\x00\x00\x00\x01x"
    rest = _rest_of_descriptor(encoded)
    for message in (encoded.replace(rest, rest + other), encoded.replace(rest, rest + other, 1)):
        for each in (message, _walked(message, 0)):
            shared = decode_sharing(AddPartitionsRequest, each)
            assert shared == binary.decode_preserving(AddPartitionsRequest, message)


def test_other_columns_stay_with_their_partition() -> None:
    partitions = _partitions()
    sd = partitions[7].sd
    assert sd is not None and sd.cols is not None
    sd.cols = [FieldSchema("Column_0", *(getattr(sd.cols[0], each) for each in ("type", "comment"))), *sd.cols[1:]]
    assert _lists_of_columns(_read(_request(partitions))) == len(partitions)


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
    encoded = binary.encode(_request(_partitions()))
    for wrong in (encoded.replace(b"the 3th", b"the \xff\xffh"), encoded.replace(b"file:/t/3", b"file:/\xff/3", 1)):
        for message in (wrong, _walked(wrong, 0)):
            with pytest.raises(UnicodeDecodeError):
                decode_sharing(AddPartitionsRequest, message)


def test_columns_of_what_is_no_descriptor_stay_where_they_are() -> None:
    """A struct that nobody would send has a descriptor's fields, and a descriptor has none of them."""
    for before in (b"\x0c\x00\x07", b"\x0c\x00\x06"):
        encoded = binary.encode(_request(_partitions()))
        descriptor = binary.encode(_partitions()[3].sd)
        sd = splice.SD_BEGIN + descriptor
        assert encoded.count(sd) == 1
        wrong = encoded.replace(sd, splice.SD_BEGIN + before + descriptor + b"\x00")
        shared = decode_sharing(AddPartitionsRequest, _walked(wrong, 0))
        assert shared == binary.decode_preserving(AddPartitionsRequest, wrong)


def test_nothing_else_lies_where_columns_are_cut_out() -> None:
    """What a walked message has columns cut out of is field 6 of a struct and begins with a list of structs."""
    pending = [method.args for method in METHODS.values() if shared_columns._ways(method.args)]
    assert len(pending) > 5
    seen: set[type[Struct]] = set()
    while pending:
        cls = pending.pop()
        if cls in seen:
            continue
        seen.add(cls)
        for number, ttype, _, argument, _ in (entry for entry in cls.thrift_spec if entry is not None):
            pending += required._classes(ttype, argument)
            if (number, ttype) == (6, TType.STRUCT) and argument[0] is not StorageDescriptor:
                first = argument[0].thrift_spec[1]
                assert first is None or first[1] != TType.LIST or first[3][0] != TType.STRUCT, (cls, argument[0])


def test_the_columns_of_a_message_are_noted_in_order() -> None:
    message = _walked(binary.encode(_request(_partitions())), 0)
    columns = _encoded_columns(_partitions()[0])
    noted = [at for at in message.noted if message.startswith(columns, at)]
    assert len(noted) == len(_partitions()) and noted == sorted(noted)
    assert all(message.startswith(splice.SD_BEGIN, at - 3) for at in noted)


@given(st.binary(min_size=1, max_size=50), st.data())
def test_a_message_is_split_as_by_python(separator: bytes, data: st.DataObject) -> None:
    parts = st.one_of(st.just(separator), st.just(separator[:32]), st.just(separator[1:]), st.binary(max_size=3))
    message = b"".join(data.draw(st.lists(parts)))
    assert shared_columns._split(message, separator) == message.split(separator)
