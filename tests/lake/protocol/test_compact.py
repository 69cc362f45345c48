"""The compact protocol, against thrift's own implementations of it."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thrift.protocol import fastbinary
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from lake.protocol.codec import binary, compact
from lake.protocol.codec.compact import CompactScanner
from lake.protocol.codec.scanner import VALUE_BYTES, Limits, Rejected
from lake.protocol.hive import AbortTxnRequest, Partition
from lake.protocol.struct import Struct
from tests.lake.protocol.wire_values import (
    ALL_STRUCTS,
    Field,
    Items,
    Pairs,
    Tree,
    any_struct,
    canonical,
    encoded_tree,
    filled,
    read_tree,
    trees,
)

LIMITS = Limits(
    message_bytes=1 << 20, string_bytes=1 << 16, container_items=1000, memory=10_000 * VALUE_BYTES, depth=20
)
HEADER = compact.message_header("get_table", binary.CALL, 7)
PLENTY = 1 << 20


class _Input:
    """What the accelerator asks of a protocol."""

    def __init__(self, data: bytes) -> None:
        self.trans = TMemoryBuffer(data)
        self.string_length_limit = self.container_length_limit = PLENTY


def by_accelerator(value: Struct) -> bytes:
    encoded: bytes = fastbinary.encode_compact(value, [type(value), value.thrift_spec])
    return encoded


def read_by_accelerator(cls: type[Struct], data: bytes) -> Struct:
    value = cls()
    fastbinary.decode_compact(value, _Input(data), [cls, cls.thrift_spec])
    return value


@settings(max_examples=120, deadline=None)
@given(trees())
def test_any_struct_translates_both_ways(tree: Tree) -> None:
    """Byte for byte what thrift's pure Python protocols write, whatever the order of the fields."""
    in_binary, in_compact = encoded_tree(tree), encoded_tree(tree, TCompactProtocol)
    assert compact.to_binary(in_compact, 0, PLENTY) == in_binary
    assert compact.to_compact(in_binary) == in_compact
    assert compact.to_binary(b"before" + in_compact, 6, PLENTY) == in_binary
    assert compact.to_compact(b"before" + in_binary, 6) == in_compact


@settings(max_examples=120, deadline=None)
@given(any_struct())
def test_structs_of_the_idl_translate_both_ways(value: Struct) -> None:
    translated = compact.to_binary(by_accelerator(value), 0, PLENTY)
    assert binary.decode(type(value), translated) == value
    assert read_by_accelerator(type(value), compact.to_compact(binary.encode(value))) == value


def test_every_struct_of_the_idl_translates_with_all_its_fields() -> None:
    for cls in ALL_STRUCTS:
        value = filled(cls)
        assert compact.to_compact(binary.encode(value)) == by_accelerator(value)
        translated = compact.to_binary(by_accelerator(value), 0, PLENTY)
        assert canonical(read_tree(translated)) == canonical(read_tree(binary.encode(value)))


@pytest.mark.parametrize(
    "field",
    [
        Field(1, TType.BOOL, True),
        Field(1, TType.BOOL, False),
        Field(1, TType.LIST, Items(TType.BOOL, [True, False])),
        Field(1, TType.SET, Items(TType.BOOL, [False])),
        Field(1, TType.MAP, Pairs(TType.BOOL, TType.BOOL, [(True, False), (False, True)])),
        Field(1, TType.MAP, Pairs(0, 0, [])),
        Field(1, TType.LIST, Items(TType.STRUCT, [])),
        Field(1, TType.LIST, Items(TType.I32, list(range(-7, 7)))),
        Field(1, TType.LIST, Items(TType.I32, list(range(15)))),
        Field(1, TType.LIST, Items(TType.BYTE, [1] * 300)),
        Field(16, TType.I32, 5),
        Field(-1, TType.I32, 5),
        Field(32767, TType.BOOL, True),
        Field(1, TType.I64, -(1 << 63)),
        Field(1, TType.I64, (1 << 63) - 1),
        Field(1, TType.DOUBLE, -0.1),
        Field(1, TType.STRING, b"x" * 200),
    ],
    ids=repr,
)
def test_corner(field: Field) -> None:
    in_binary, in_compact = encoded_tree([field]), encoded_tree([field], TCompactProtocol)
    assert compact.to_binary(in_compact, 0, PLENTY) == in_binary
    assert compact.to_compact(in_binary) == in_compact
    assert CompactScanner(LIMITS).scan(HEADER + in_compact) == len(HEADER + in_compact)


@given(st.text(min_size=1, max_size=200), st.sampled_from([1, 2, 3, 4]), st.integers(-(1 << 31), (1 << 31) - 1))
def test_header(name: str, kind: int, sequence: int) -> None:
    transport = TMemoryBuffer()
    TCompactProtocol(transport).writeMessageBegin(name, kind, sequence)
    header = transport.getvalue()
    assert compact.message_header(name, kind, sequence) == header
    assert compact.read_message_header(header) == (name, kind, sequence, len(header))


@settings(max_examples=60, deadline=None)
@given(trees(), st.binary(max_size=20))
def test_end_is_found_byte_by_byte(tree: Tree, following: bytes) -> None:
    message = HEADER + encoded_tree(tree, TCompactProtocol)
    scanner, buffer = CompactScanner(LIMITS), bytearray()
    for at, byte in enumerate(message):
        assert scanner.scan(buffer) is None, at
        buffer.append(byte)
    assert scanner.scan(buffer) == len(message)
    assert CompactScanner(LIMITS).scan(message + following) == len(message)


@settings(max_examples=150, deadline=None)
@given(any_struct(), st.data())
def test_damaged_messages_do_no_harm(value: Struct, data: st.DataObject) -> None:
    message = bytearray(HEADER + by_accelerator(value))
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    _scan_and_translate(bytes(message))


def test_an_empty_list_need_not_say_what_it_would_hold() -> None:
    _scan_and_translate(HEADER + b"\x19\x00\x00")
    assert compact.to_binary(b"\x19\x00\x00", 0, PLENTY) == b"\x0f\x00\x01\x0b\x00\x00\x00\x00\x00"


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_refused_or_waited_for(data: bytes) -> None:
    _scan_and_translate(data)
    _scan_and_translate(HEADER + data)


def _scan_and_translate(data: bytes) -> None:
    """Nothing but Rejected comes out, and what passes is a whole struct in the binary protocol."""
    try:
        end = CompactScanner(LIMITS).scan(data)
        if end is None:
            return
        assert end <= len(data)
        body = compact.read_message_header(data[:end]).body
        translated = compact.to_binary(data[:end], body, PLENTY)
    except UnicodeDecodeError:
        return  # of the method's name
    except Rejected as rejected:
        assert rejected.reason
        return
    again = compact.to_compact(translated)
    assert compact.to_binary(again, 0, PLENTY) == translated


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x18" + varint((1 << 31) - 1), "string_size"),
        (b"\x18" + varint((1 << 32) - 1), "string_size"),
        (b"\x19\xf8" + varint(1 << 30), "container_size"),
        (b"\x1b" + varint(1001) + b"\x88", "container_size"),
        (b"\x1c" * 100, "depth"),
        (b"\x19\x19" * 100, "depth"),
        (b"\x1e", "malformed"),
        (b"\x10", "malformed"),
        (b"\x15" + b"\xff" * 5, "malformed"),
        (b"\x15" + b"\xff" * 4 + b"\x10", "malformed"),
        (b"\x14" + b"\xff\xff\x04", "malformed"),
        (b"\x16" + b"\xff" * 9 + b"\x02", "malformed"),
        (b"\x18" + b"\xff" * 20, "malformed"),
        (b"\x19\x1e", "malformed"),
        (b"\x1b\x01\x00", "malformed"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[:8].hex(),
)
def test_what_no_client_would_send_is_refused_at_once(body: bytes, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        CompactScanner(LIMITS).scan(HEADER + body)
        pytest.fail("the scanner waits for more")
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "data", [b"\x82\x22", b"\x82\x41", b"\x82\x21\x01\x00", b"\x82\x21\x01" + varint(1 << 20)], ids=bytes.hex
)
def test_header_that_is_no_call_is_refused(data: bytes) -> None:
    with pytest.raises(Rejected) as caught:
        CompactScanner(LIMITS).scan(data)
    assert caught.value.reason == "malformed"


def test_field_ids_beyond_sixteen_bits_are_refused() -> None:
    body = b"\x01" + varint(2 * 32767) + b"\xf1" + b"\x00"  # 32767, then 15 more
    assert CompactScanner(LIMITS).scan(HEADER + body) == len(HEADER + body)
    with pytest.raises(Rejected):
        compact.to_binary(body, 0, PLENTY)


def test_translation_is_limited_in_size() -> None:
    numbers = b"\x19\xf6" + varint(1000) + b"\x00" * 1000 + b"\x00"
    assert len(compact.to_binary(numbers, 0, 10_000)) == 8009
    with pytest.raises(Rejected) as caught:
        compact.to_binary(numbers, 0, 7000)
    assert caught.value.reason == "message_size"


def test_fields_in_any_order_keep_their_meaning() -> None:
    """What is spliced together of encoded parts has its fields in no particular order."""
    body = (
        b"\x0a\x00\x0a" + struct.pack(">q", 5) + b"\x08\x00\x04" + struct.pack(">i", 6) + b"\x0b\x00\x02\0\0\0\x01d\x00"
    )
    value = read_by_accelerator(Partition, compact.to_compact(body))
    assert value == Partition(writeId=5, createTime=6, dbName="d")
    assert read_by_accelerator(AbortTxnRequest, compact.to_compact(b"\x00")) == AbortTxnRequest()
