"""Descriptors that are decoded once: what they share, and what belongs to each."""

from collections.abc import Iterable

import pytest

from lake.protocol.codec import splice
from lake.protocol.codec.binary import STOP, decode_preserving, encode_fields
from lake.protocol.codec.plain import from_plain, to_plain
from lake.protocol.codec.splice import StoredPartition
from lake.protocol.hive import FieldSchema, Partition, StorageDescriptor

UNKNOWN = b"\x0b\x7f\x00\x00\x00\x00\x03new"  # a string in a field that the IDL doesn't have


def _body(columns: int, prefix: str = "c") -> bytes:
    fields = [FieldSchema(name=f"{prefix}{number}", type="decimal(10,2)", comment="é") for number in range(columns)]
    return splice.descriptor_body(StorageDescriptor(cols=fields, numBuckets=4, parameters={"a": "b"}))


@pytest.mark.parametrize("columns", [0, 1, 50, 2_000])
def test_a_descriptor_is_what_was_encoded(columns: int) -> None:
    """Whether it is short enough to be kept or not, and the second time as well."""
    body = _body(columns, "same")
    for location in ("file:/a", None, "file:/b"):
        found = splice.descriptor(body, location)
        expected = decode_preserving(StorageDescriptor, body + STOP).replace(location=location)
        assert found == expected
        assert encode_fields(found) == encode_fields(expected)
        assert splice.descriptor_body(found) == body
        assert to_plain(found) == to_plain(expected)
        assert from_plain(StorageDescriptor, to_plain(found)) == expected


def test_locations_belong_to_each() -> None:
    body = _body(3)
    first, second = splice.descriptor(body, "file:/a"), splice.descriptor(body, "file:/b")
    first.location = "file:/c"
    assert (first.location, second.location) == ("file:/c", "file:/b")
    assert splice.descriptor(body, None).location is None


def test_the_plain_form_of_shared_columns_is_made_once() -> None:
    first, second = (splice.descriptor(_body(5), location) for location in ("file:/a", "file:/b"))
    assert to_plain(first)["cols"] is to_plain(second)["cols"]
    assert to_plain(first)["cols"] is not to_plain(splice.descriptor(_body(5, "d"), None))["cols"]


def test_fields_of_a_newer_client_stay() -> None:
    body = _body(2) + UNKNOWN
    for _ in range(2):
        assert splice.descriptor_body(splice.descriptor(body, "file:/a")) == body


@pytest.mark.parametrize("unknown", [b"", UNKNOWN])
def test_partitions_are_decoded_together_as_one_by_one(unknown: bytes) -> None:
    asked = []

    def bodies(numbers: Iterable[int]) -> dict[int, bytes]:
        asked.append(set(numbers))
        return {number: _body(number) for number in asked[-1]}

    stored = [
        StoredPartition(encode_fields(Partition(values=["é"], parameters={"a": "b"})), "p=1", None, 3),
        StoredPartition(encode_fields(Partition(createTime=7)) + unknown, None, "file:/b", 3),
        StoredPartition(encode_fields(Partition(values=["c"])), None, None, splice.NO_DESCRIPTOR),
        StoredPartition(encode_fields(Partition(values=["d"])), "", None, 5),
    ]
    encoder = splice.PartitionEncoder("hive", "d", "t", "file:/t", bodies)
    found = encoder.all_decoded(stored)
    assert asked == [{3, 5}]  # one message to the database
    assert found == [encoder.decoded(each) for each in stored]
    assert [each.sd and each.sd.location for each in found] == ["file:/t/p=1", "file:/b", None, "file:/t"]
    assert encoder.ids_of(stored) == {_body(3): 3, _body(5): 5}
    assert encoder.all_decoded([]) == []
