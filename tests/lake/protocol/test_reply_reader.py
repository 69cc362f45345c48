"""Replies that are read while they arrive keep their bytes; renamed partitions keep all but the names."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.protocol.codec import binary
from lake.protocol.codec.reply_reader import ReplyReader, ReplyTooLong
from lake.protocol.hive import MetaException, Partition, PartitionsByExprResult
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from tests.lake.protocol.wire_values import structs

LIMIT = 1 << 20
UNKNOWN = b"\x0b\x03\xe7\x00\x00\x00\x03new"  # a field of a newer version
PARTITIONS = st.lists(structs(Partition), max_size=5)
SIZES = st.integers(1, 40)
TEXTS = st.text(max_size=5)


def arriving(message: bytes, size: int) -> Callable[[int], bytes]:
    """What reads a message that arrives in pieces of a size."""
    left = [message]

    def read(wanted: int) -> bytes:
        piece, left[0] = left[0][: min(size, wanted)], left[0][min(size, wanted) :]
        if not piece:
            raise EOFError
        return piece

    return read


def reader_of(name: str, body: bytes, size: int, *, limit: int = LIMIT) -> ReplyReader:
    reader = ReplyReader(arriving(binary.message_header(name, binary.REPLY, 5) + body, size), limit)
    assert reader.header()[:3] == (name, binary.REPLY, 5)
    return reader


def encoded(name: str, value: Any) -> bytes:
    return binary.encode_result("success", value, METHODS[name].result)


@settings(max_examples=40)
@given(st.sampled_from(["get_table", "get_partition_names", "get_databases", "lock"]), st.data(), SIZES)
def test_a_whole_reply_keeps_its_bytes(name: str, data: st.DataObject, size: int) -> None:
    result: Struct = data.draw(structs(METHODS[name].result))
    body = binary.encode(result)[:-1] + UNKNOWN + binary.STOP
    reader = reader_of(name, body, size)
    assert not reader.begins_partitions(METHODS[name].result)
    assert reader.skipped() == body
    assert reader.ended


@settings(max_examples=40)
@given(PARTITIONS, SIZES, st.booleans())
def test_partitions_keep_their_bytes(partitions: list[Partition], size: int, wrapped: bool) -> None:
    name = "get_partitions_by_expr" if wrapped else "get_partitions"
    body = encoded(name, PartitionsByExprResult(partitions, True) if wrapped else partitions)
    reader = reader_of(name, body, size)
    assert reader.begins_partitions(METHODS[name].result)
    assert b"".join(reader.partitions(None)) == body
    assert reader.ended


@settings(max_examples=40)
@given(PARTITIONS, SIZES, TEXTS, TEXTS, st.booleans())
def test_partitions_get_other_names(
    partitions: list[Partition], size: int, catalog: str, database: str, first: bool
) -> None:
    """Whether the names come before all else, as from our servers, or in the order of the IDL."""
    bodies = [_with_unknown(each, first) for each in partitions]
    head = b"\x0f\x00\x00\x0c" + len(bodies).to_bytes(4)
    reader = reader_of("get_partitions", head + b"".join(bodies) + binary.STOP, size)
    assert reader.begins_partitions(METHODS["get_partitions"].result)

    def rename(old_catalog: str | None, old: str | None) -> tuple[str | None, str | None]:
        return catalog, None if old is None else database

    body = b"".join(reader.partitions(rename))
    found = binary.decode_preserving(METHODS["get_partitions"].result, body).success  # type: ignore[attr-defined]
    expected = [
        binary.decode_preserving(Partition, each).replace(
            catName=catalog, **({} if old.dbName is None else {"dbName": database})
        )
        for each, old in zip(bodies, partitions, strict=True)
    ]
    assert [binary.encode(each) for each in found] == [binary.encode(each) for each in expected]


def _with_unknown(partition: Partition, first: bool) -> bytes:
    if not first:
        return binary.encode(partition)[:-1] + UNKNOWN + binary.STOP
    names = ("dbName", "tableName", "catName")
    head = binary.encode_fields(
        Partition(dbName=partition.dbName, tableName=partition.tableName, catName=partition.catName)
    )
    return head + binary.encode_fields(partition, without=names) + UNKNOWN + binary.STOP


def test_an_exception_is_no_list() -> None:
    method = METHODS["get_partitions"]
    field = method.exceptions[MetaException]
    body = binary.encode_result(field, MetaException("no"), method.result)
    reader = reader_of("get_partitions", body, 7)
    assert not reader.begins_partitions(method.result)
    assert reader.skipped() == body


def test_a_reply_that_breaks_off() -> None:
    body = encoded("get_partitions", [Partition(values=["1"], dbName="a")] * 3)
    reader = reader_of("get_partitions", body[:-4], 5)
    assert reader.begins_partitions(METHODS["get_partitions"].result)
    with pytest.raises(EOFError):
        list(reader.partitions(None))


def test_only_what_is_passed_on_in_pieces_may_be_long() -> None:
    partitions = [Partition(values=[str(i)], dbName="a", parameters={"k": "v" * 1000}) for i in range(400)]
    body = encoded("get_partitions", partitions)
    reader = reader_of("get_partitions", body, 1 << 16, limit=1 << 18)
    assert reader.begins_partitions(METHODS["get_partitions"].result)
    assert b"".join(reader.partitions(None)) == body
    names = encoded("get_databases", ["x" * 1000] * 200)
    with pytest.raises(ReplyTooLong):
        reader_of("get_databases", names, 1 << 16, limit=1 << 17).skipped()


def test_what_is_no_thrift() -> None:
    with pytest.raises((ValueError, EOFError)):
        ReplyReader(arriving(b"HTTP/1.1 400 Bad Request\r\n\r\n", 8), LIMIT).header()
