"""Structs in Thrift's JSON protocol and in the binary one."""

import json

import pytest
from hypothesis import given

from lake.protocol.codec import binary, json_transcoding
from lake.protocol.codec.json_protocol import to_json
from lake.protocol.codec.plain import to_plain
from lake.protocol.hive import SkewedInfo, Table
from lake.protocol.struct import Struct
from tests.lake.protocol.wire_values import any_struct


@given(any_struct())
def test_nothing_is_lost(value: Struct) -> None:
    data = binary.encode(value)
    try:
        text = json_transcoding.from_binary(data)
    except ValueError:  # bytes that are no text, or keys that JSON can't say
        return
    assert json_transcoding.to_binary(text) == data


def test_it_is_what_the_other_writer_writes() -> None:
    table = Table(tableName='t"é\n', dbName="d", createTime=3, parameters={"a": "b"}, partitionKeys=[], temporary=True)
    assert json_transcoding.from_binary(binary.encode(table)) == to_json(Table, to_plain(table))


def test_what_the_idl_does_not_know_is_kept() -> None:
    text = (
        '{"1":{"str":"t"},"2":{"str":"d"},"99":{"map":["i32","dbl",2,{"-1":1.5,"7":"NaN"}]},"100":{"set":["tf",1,1]}}'
    )
    table = binary.decode_preserving(Table, json_transcoding.to_binary(text))
    assert table.dbName == "d"
    assert json.loads(json_transcoding.from_binary(binary.encode(table))) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "1", '{"a":{"str":"x"}}', '{"1":{"str":1}}', '{"1":{"lst":["str",2,"x"]}}', '{"1":{"i32":"x"}}',
     '{"1":{"what":"x"}}', '{"1":{"i8":300}}', '{"1":' * 100, '{"1":{"rec":' * 80 + "{}" + "}}" * 80],
)  # fmt: skip
def test_what_is_no_struct(text: str) -> None:
    with pytest.raises(ValueError):
        json_transcoding.to_binary(text)


def test_keys_that_json_cannot_say() -> None:
    with pytest.raises(ValueError, match="neither texts nor numbers"):
        json_transcoding.from_binary(binary.encode(SkewedInfo([], [], {("a",): "b"})))
