"""What the log keeps of a payload, and what readers get."""

import json
import zlib
from typing import Any

from eventbus.log import payloads
from lake.protocol.codec.packed_partitions import PackedPartitions, PackedStates
from lake.protocol.codec.plain import PlainList
from lake.protocol.codec.splice import partition_body
from lake.protocol.hive import Partition

COLUMNS = [{"name": f"column_{number}", "type": "string"} for number in range(50)]


def _alteration(partitions: int) -> dict[str, Any]:
    return {
        "version": 1,
        "descriptors": [{"cols": COLUMNS}, {"cols": COLUMNS[:1]}],
        "partitions": [
            {
                "name": f"ds={number}",
                "before": {"values": [str(number)], "sd": {"location": f"file:/t/ds={number}", "descriptor": 1}},
                "after": {"values": [str(number)], "sd": {"location": f"file:/t/ds={number}", "descriptor": 0}},
            }
            for number in range(partitions)
        ],
    }


def test_before_of_an_alteration_is_told_with_its_whole_descriptor() -> None:
    answer = payloads.unpack(payloads.pack(_alteration(2)))
    for number, partition in enumerate(answer["partitions"]):
        place = f"file:/t/ds={number}"
        assert partition["before"] == {"values": [str(number)], "sd": {"location": place, "cols": COLUMNS[:1]}}
        assert partition["after"]["sd"] == {"location": place, "descriptor": 0}


def test_what_was_kept_whole_is_told_as_it_was_kept() -> None:
    whole = _alteration(1)
    whole["partitions"][0]["before"]["sd"] = {"location": "file:/elsewhere", "cols": COLUMNS}
    assert payloads.unpack(payloads.pack(whole)) == whole


def test_partitions_without_descriptors_and_names_alone_are_told_as_they_are() -> None:
    for payload in (
        {"version": 1, "partitions": ["ds=1", "after"], "columns": ["id"]},
        {"version": 1, "descriptors": [], "partitions": [{"name": "ds=1", "before": {}, "after": {"values": ["1"]}}]},
        {
            "version": 1,
            "descriptors": [{"cols": COLUMNS}],
            "partitions": [{"name": "ds=1", "before": {"sd": {"descriptor": 0}}}],
        },
    ):
        assert payloads.unpack(payloads.pack(payload)) == payload


def test_packed_partitions_are_told_as_others_are() -> None:
    one = Partition(values=["1\n", "\u00e9"], createTime=3, lastAccessTime=0, parameters={"a": '"'})
    body = partition_body(one)
    packed = PackedPartitions(
        {"name": ["ds=1"], "ready": [False]},
        {"before": PackedStates(["file:/t/a"], [1], [body]), "after": PackedStates(["file:/t/b"], [0], [body])},
    )
    values = {"values": ["1\n", "\u00e9"], "createTime": 3, "lastAccessTime": 0, "parameters": {"a": '"'}}
    columns = PlainList(COLUMNS)
    payload = {
        "version": 1,
        "table": {"tableName": "t", "sd": {"location": "file:/t", "cols": columns}},
        "descriptors": [{"cols": columns}, {"cols": columns[:1]}],
        "partitions": packed,
    }
    expected = {
        **payload,
        "partitions": [
            {
                "name": "ds=1",
                "ready": False,
                "before": {**values, "sd": {"location": "file:/t/a", "cols": COLUMNS[:1]}},
                "after": {**values, "sd": {"location": "file:/t/b", "descriptor": 0}},
            }
        ],
    }
    assert payloads.unpack(payloads.pack(payload)) == expected
    assert payloads.read_ahead(payload) == expected
    assert payloads.pack(payload) == payloads.pack({**payload, "table": json.loads(json.dumps(payload["table"]))})


def test_columns_that_an_alteration_leaves_are_kept_once() -> None:
    def table(columns: list[dict[str, str]] | None, mark: str) -> dict[str, Any]:
        return {"tableName": "t", "sd": {"location": "file:/t", "cols": columns}, "parameters": {"mark": mark}}

    same = {"version": 1, "before": table(COLUMNS, "1"), "after": table(COLUMNS, "2")}
    others = {"version": 1, "before": table(COLUMNS, "1"), "after": table([dict(each) for each in COLUMNS], "2")}
    assert payloads.unpack(payloads.pack(same)) == same
    assert payloads.unpack(payloads.pack(others)) == others
    assert len(zlib.decompress(payloads.pack(same))) < 0.6 * len(zlib.decompress(payloads.pack(others)))


def test_columns_that_many_payloads_share_are_kept_as_others() -> None:
    columns = PlainList([*COLUMNS, {"name": 'a "quoted" one, \u00e9', "type": "string"}])
    before = {"tableName": "t", "sd": {"location": "file:/t", "cols": columns}, "parameters": {"cols": "[]"}}
    other = {**before, "sd": {"location": "file:/u", "cols": COLUMNS[:1]}}
    for payload in (
        {"version": 1, "before": before, "after": {**before, "parameters": {"mark": "2"}}},
        {"version": 1, "before": before, "after": other},
        {"version": 1, "before": other, "after": before},
        {"version": 1, "before": before},
        {"version": 1, "after": before},
    ):
        assert payloads.unpack(payloads.pack(payload)) == payload
    assert columns.json == json.dumps(columns, separators=(",", ":"))


def test_objects_without_columns_are_kept_as_they_are() -> None:
    for payload in (
        {"before": {"name": "d"}, "after": {"name": "d", "description": "x"}},
        {"before": {"sd": {"cols": COLUMNS}}},
        {"after": {"sd": {"cols": COLUMNS}}},
        {"before": {"sd": {"location": "file:/v"}}, "after": {"sd": {"location": "file:/v"}}},
        {"before": None, "after": None},
        {"epoch": "an epoch", "after": 2, "lossy": True},
    ):
        assert payloads.unpack(payloads.pack(payload)) == payload
