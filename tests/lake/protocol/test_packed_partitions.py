"""What an event keeps of changed partitions is what readers got of them when it was JSON."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.protocol.codec import splice
from lake.protocol.codec.packed_partitions import PackedPartitions, PackedStates, unpacked
from lake.protocol.codec.plain import to_plain
from lake.protocol.hive import Partition
from tests.lake.protocol.wire_values import structs

_PARTITIONS = st.lists(structs(Partition), min_size=1, max_size=3)


def _packed(values: list[Partition], locations: list[str | None], descriptors: list[int | None]) -> PackedStates:
    return PackedStates(locations, descriptors, [splice.partition_body(each) for each in values])


def _plain(value: Partition, location: str | None, descriptor: int | None) -> dict[str, Any]:
    plain = to_plain(value, without=("dbName", "tableName", "catName", "sd"))
    return plain if descriptor is None else {**plain, "sd": {"location": location, "descriptor": descriptor}}


@settings(max_examples=30)
@given(_PARTITIONS, st.data())
def test_what_is_unpacked_is_what_was_packed(values: list[Partition], data: st.DataObject) -> None:
    size = len(values)
    others = data.draw(st.lists(structs(Partition), min_size=size, max_size=size))
    locations = data.draw(st.lists(st.none() | st.text(), min_size=size, max_size=size))
    descriptors = data.draw(st.lists(st.none() | st.integers(0, 2), min_size=size, max_size=size))
    renamed = data.draw(st.lists(st.none() | st.text(), min_size=size, max_size=size))
    names = [f"ds={number}\n" for number in range(size)]
    packed = PackedPartitions(
        {"name": names, "ready": [False] * size, "renamedFrom": renamed},
        {"before": _packed(values, locations, descriptors), "after": _packed(others, locations, descriptors)},
    )
    expected = [
        {"name": name, "ready": False, "renamedFrom": former, "before": before, "after": after}
        for name, former, before, after in zip(
            names,
            renamed,
            map(_plain, values, locations, descriptors),
            map(_plain, others, locations, descriptors),
            strict=True,
        )
    ]
    expected = [{name: value for name, value in each.items() if value is not None} for each in expected]
    assert unpacked(json.loads(json.dumps(packed.plain)), packed.encoded) == expected
    assert copy.deepcopy({"partitions": packed}) == {"partitions": expected}


def test_partitions_without_a_state_are_their_fields() -> None:
    packed = PackedPartitions({"name": ["ds=1"], "ready": [True]}, {})
    assert unpacked(packed.plain, packed.encoded) == [{"name": "ds=1", "ready": True}]


def test_of_each_partition_there_must_be_all() -> None:
    with pytest.raises(ValueError, match="each changed partition needs all that others have"):
        PackedPartitions({"name": ["ds=1", "ds=2"]}, {"after": _packed([Partition()], ["file:/t"], [0])})
