"""Structs as JSON, made at once, are what their plain values are as JSON."""

import copy
import json

from hypothesis import given
from hypothesis import strategies as st

from metastore.wire.hive import Partition, PrincipalPrivilegeSet, PrivilegeGrantInfo
from metastore.wire.plain import PlainJson, compact_json, json_fields, to_plain
from tests.support import builders

_TEXTS = st.text() | st.sampled_from(['"', "\\", "é\u2028", "\ud800", "\x00"])
_NUMBERS = st.none() | st.integers(-(2**31), 2**31 - 1)


@given(
    st.none() | st.lists(_TEXTS, max_size=3),
    st.none() | st.dictionaries(_TEXTS, _TEXTS, max_size=3),
    _NUMBERS,
    st.none() | st.booleans(),
)
def test_the_fields_are_those_of_the_plain_value(
    values: list[str] | None, parameters: dict[str, str] | None, number: int | None, flag: bool | None
) -> None:
    partition = Partition(
        values=values,
        dbName="d",
        createTime=number,
        sd=builders.storage("a:int", location="file:/t"),
        parameters=parameters,
        privileges=PrincipalPrivilegeSet(userPrivileges={"u": [PrivilegeGrantInfo(privilege="ALL", grantOption=True)]}),
        writeId=number,
        isStatsCompliant=flag,
    )
    for without in ((), ("dbName", "sd"), Partition.field_names()):
        expected = compact_json(to_plain(partition, without=without))
        assert "{" + ",".join(json_fields(partition, without=without)) + "}" == expected


def test_a_deep_copy_of_json_is_its_value() -> None:
    payload = {"partitions": PlainJson('[{"name":"a"}]'), "other": [1]}
    assert json.loads(compact_json(copy.deepcopy(payload))) == {"partitions": [{"name": "a"}], "other": [1]}
