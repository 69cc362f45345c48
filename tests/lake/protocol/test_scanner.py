"""The scanner finds where a message ends, however it arrives, and refuses what it must."""

import contextlib
import struct
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TType

from lake.protocol.codec import binary
from lake.protocol.codec.scanner import VALUE_BYTES, BinaryScanner, Limits, Rejected
from lake.protocol.hive import FieldSchema, Partition, SerDeInfo, StorageDescriptor
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from tests.lake.protocol.wire_values import Tree, any_struct, encoded_tree, filled, trees

HEADER = binary.message_header("get_table", binary.CALL, 7)
OLD_HEADER = binary.message_header("get_table", binary.CALL, 7, strict=False)
LIMITS = Limits(
    message_bytes=1 << 20, string_bytes=1 << 16, container_items=1000, memory=10_000 * VALUE_BYTES, depth=20
)

headers = st.sampled_from([HEADER, OLD_HEADER])


def scan(data: bytes, limits: Limits = LIMITS) -> int | None:
    return BinaryScanner(limits).scan(data)


def fed(data: bytes, cuts: list[int], limits: Limits = LIMITS) -> int | None:
    """Scans while the bytes arrive in pieces; where the scanner says that the message ends."""
    growing, buffer = BinaryScanner(limits), bytearray()
    for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        buffer += data[begin:end]
        if (found := growing.scan(buffer)) is not None:
            return found
    return None


@settings(max_examples=300, deadline=None)
@given(headers, any_struct(), st.data(), st.binary(max_size=40))
def test_end_is_found_however_the_message_arrives(
    header: bytes, value: Struct, data: st.DataObject, following: bytes
) -> None:
    message = header + binary.encode(value)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(message) - 1), max_size=10)))
    assert fed(message + following, [*cuts, len(message)]) == len(message)
    assert fed(message[:-1], [cut for cut in cuts if cut < len(message) - 1]) is None


@settings(max_examples=80, deadline=None)
@given(headers, trees())
def test_end_is_found_byte_by_byte(header: bytes, tree: Tree) -> None:
    message = header + encoded_tree(tree)
    found, buffer = BinaryScanner(LIMITS), bytearray()
    for at, byte in enumerate(message):
        assert found.scan(buffer) is None, at
        buffer.append(byte)
    assert found.scan(buffer) == len(message)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300) | st.builds(bytes.__add__, headers, st.binary(max_size=300)))
def test_garbage_is_refused_or_waited_for(data: bytes) -> None:
    _scan_and_decode(data)


@settings(max_examples=200, deadline=None)
@given(any_struct(), st.data())
def test_damaged_messages_do_no_harm(value: Struct, data: st.DataObject) -> None:
    message = bytearray(HEADER + binary.encode(value))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(message) - 1))
        change = data.draw(st.sampled_from(["set", "remove", "insert"]))
        if change == "set":
            message[at] = data.draw(st.integers(0, 255))
        elif change == "insert":
            message[at:at] = data.draw(st.binary(min_size=1, max_size=4))
        elif len(message) > 1:
            del message[at]
    _scan_and_decode(bytes(message), type(value))


def _scan_and_decode(data: bytes, cls: type[Struct] = Partition) -> None:
    """Nothing but Rejected comes out of the scanner, and what passes it can't harm the decoder."""
    try:
        end = scan(data)
    except Rejected as rejected:
        assert rejected.reason
        assert str(rejected)
        return
    if end is None:
        return
    assert end <= len(data)
    try:
        body = binary.read_message_header(data[:end]).body
    except UnicodeDecodeError:
        return  # of the method's name
    for decode in (binary.decode, binary.decode_strict, binary.decode_preserving):
        with contextlib.suppress(TProtocolException, TypeError, UnicodeDecodeError):
            decode(cls, data[:end], body)


def string_field(length: int) -> bytes:
    return b"\x0b\x00\x01" + struct.pack(">i", length)


def list_field(item: int, count: int) -> bytes:
    return b"\x0f\x00\x01" + struct.pack(">bi", item, count)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (string_field((1 << 31) - 1), "string_size"),
        (string_field(-1), "string_size"),
        (string_field(LIMITS.string_bytes + 1), "string_size"),
        (list_field(TType.STRING, (1 << 31) - 1), "container_size"),
        (list_field(TType.I64, 1001), "container_size"),
        (list_field(TType.BYTE, -1), "container_size"),
        (b"\x0d\x00\x01" + struct.pack(">bbi", 11, 11, 1 << 30), "container_size"),
        (b"\x0c\x00\x01" * 1000, "depth"),
        (list_field(TType.LIST, 1) + b"\x0f\x00\x00\x00\x01" * 1000, "depth"),
        (b"\x09\x00\x01", "malformed"),
        (b"\xff\x00\x01", "malformed"),
        (list_field(9, 1), "malformed"),
        (b"\x0d\x00\x01" + struct.pack(">bbi", 11, 0, 1) + b"\0\0\0\1x", "malformed"),
    ],
)
def test_what_no_client_would_send_is_refused_at_once(body: bytes, reason: str) -> None:
    with pytest.raises(Rejected) as caught:
        scan(HEADER + body)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02\x00\x01",  # another version
        b"\x80\x01\x00\x02",  # a reply
        b"\x80\x01\x00\x01\x00\x00\x00\x00",  # a method without a name
        b"\x80\x01\x00\x01\x7f\xff\xff\xff",
        b"\x80\x01\x00\x01\xff\xff\xff\xff",
        b"\x00\x00\x00\x01a\x02",
        b"\x00\x00\x10\x00",
    ],
)
def test_header_that_is_no_call_is_refused(data: bytes) -> None:
    with pytest.raises(Rejected) as caught:
        scan(data)
    assert caught.value.reason == "malformed"


def test_message_is_refused_before_it_outgrows_its_limit() -> None:
    limits = LIMITS._replace(message_bytes=200)
    with pytest.raises(Rejected) as caught:
        scan(HEADER + string_field(400), limits)
    assert caught.value.reason == "message_size"

    fields = b"\x02\x00\x01\x01" * 60
    with pytest.raises(Rejected):
        scan(HEADER + fields, limits)
    with pytest.raises(Rejected):
        scan(HEADER + fields + b"\x00", limits)
    fitting = HEADER + fields[:100] + b"\x00"
    assert scan(fitting, limits) == len(fitting)


def test_number_of_values_is_limited() -> None:
    body = b"".join(b"\x0b" + struct.pack(">hi", number, 0) for number in range(100)) + b"\x00"
    assert scan(HEADER + body, LIMITS._replace(memory=100 * VALUE_BYTES)) == len(HEADER + body)
    with pytest.raises(Rejected) as caught:
        scan(HEADER + body, LIMITS._replace(memory=99 * VALUE_BYTES))
    assert caught.value.reason == "memory"

    empty_lists = list_field(TType.LIST, 500) + b"\x0f\x00\x00\x00\x00" * 500 + b"\x00"
    with pytest.raises(Rejected):
        scan(HEADER + empty_lists, LIMITS._replace(memory=400 * VALUE_BYTES))


def columns(count: int) -> list[FieldSchema]:
    return [FieldSchema(name=f"column_{number}", type="string") for number in range(count)]


def partitions(count: int, width: int) -> bytes:
    """add_partitions of one table: every partition has the same columns."""
    sd = StorageDescriptor(cols=columns(width), location="file:/warehouse/t")
    method = METHODS["add_partitions"]
    parts = [Partition(values=[str(number)], sd=sd) for number in range(count)]
    return HEADER + binary.encode(method.args(new_parts=parts))


def test_repeated_columns_count_as_if_they_were_read() -> None:
    """What is stepped over at once is subject to the same limits as what is walked."""
    message = partitions(10, 5)
    # 1 list; per partition: itself, its list of values, the value, its descriptor, the location, the columns'
    # list, and per column itself and two strings
    values = 1 + 10 * (6 + 5 * 3)
    assert scan(message, LIMITS._replace(memory=values * VALUE_BYTES)) == len(message)
    with pytest.raises(Rejected):
        scan(message, LIMITS._replace(memory=(values - 1) * VALUE_BYTES))


def test_what_follows_on_repeated_columns_counts_as_if_it_were_read() -> None:
    """Descriptors differ in their location, and are the same from there on; one of them isn't."""
    method = METHODS["add_partitions"]
    parts = [
        Partition(
            values=[str(number)],
            sd=StorageDescriptor(
                cols=columns(10),
                location=f"file:/warehouse/t/{number}" if number % 5 else None,
                inputFormat="in" if number != 7 else "other",
                serdeInfo=SerDeInfo(serializationLib="lib", parameters={"a": "b"}),
                parameters={"c": "d", "e": str(number == 11)},
            ),
        )
        for number in range(20)
    ]
    body = binary.encode(method.args(new_parts=parts))
    for memory in (*range(0, 1_100, 7), 10_000):
        limits = LIMITS._replace(memory=memory * VALUE_BYTES)
        assert _outcome(HEADER + body, [], limits) == _outcome_without_memory(body, limits)


_SAME = encoded_tree([])  # an empty struct


@st.composite
def repetitions(draw: st.DrawFn) -> bytes:
    """Structs full of lists that equal each other, or nearly so, in lists, sets and maps of several depths.

    Texts follow on some lists, in the same struct.
    """
    return draw(st.recursive(st.just(_SAME), _containers_of, max_leaves=30))


def _containers_of(inner: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    def struct_with(ttype: int, items: list[bytes], texts: list[bytes]) -> bytes:
        if ttype == TType.STRUCT:
            return b"".join(b"\x0c\x00\x01" + item for item in items) + b"\x00"
        if ttype == TType.MAP:
            pairs = b"".join(b"\x01" + item for item in items)
            return b"\x0d\x00\x01" + struct.pack(">bbi", TType.BYTE, TType.STRUCT, len(items)) + pairs + b"\x00"
        rest = b"".join(b"\x0b\x00\x02" + struct.pack(">i", len(text)) + text for text in texts) + b"\x00"
        return bytes([ttype]) + b"\x00\x01" + struct.pack(">bi", TType.STRUCT, len(items)) + b"".join(items) + rest

    return st.builds(
        lambda ttype, item, others, copies, texts: struct_with(ttype, [item] * copies + others + [item], texts),
        st.sampled_from([TType.LIST, TType.LIST, TType.SET, TType.MAP, TType.STRUCT]),
        inner,
        st.lists(inner, max_size=2),
        st.integers(0, 3),
        st.lists(st.sampled_from([b"", b"a", b"b", b"\x00", b"\x0b\x00\x02"]), max_size=3),
    )


_TWO = b"\x0c\x00\x00\x00\x02" + 2 * _SAME  # a list of two structs
_HOLDS_TWO = b"\x0f\x00\x01" + _TWO + b"\x00"
_HOLDS_MORE = b"\x0f\x00\x01" + _TWO + 3 * b"\x0c\x00\x01" + 3 * b"\x00" + b"\x00"


def _list_of(ttype: int, *items: bytes) -> bytes:
    return struct.pack(">bi", ttype, len(items)) + b"".join(items)


IN_A_LIST_OF_LISTS = (
    *(b"\x0f\x00\x01", _list_of(TType.STRUCT, *3 * [_HOLDS_TWO])),
    *(b"\x0f\x00\x02", _list_of(TType.LIST, _list_of(TType.LIST, _TWO, _TWO, _list_of(0)))),
    b"\x00",
)
"""What followed on a list in a struct follows on it in a list, where it is something else."""
AT_ANOTHER_DEPTH = (
    *(b"\x0f\x00\x01", _list_of(TType.STRUCT, *3 * [_HOLDS_MORE])),
    *(3 * b"\x0c\x00\x02", b"\x0f\x00\x01", _list_of(TType.STRUCT, _HOLDS_TWO, _HOLDS_MORE)),
    4 * b"\x00",
)
"""What followed on a list follows on it again, and is nested too deep there."""


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(repetitions(), st.integers(0, 30))
@example(_SAME, 1)
@example(b"".join(IN_A_LIST_OF_LISTS), 0)
@example(b"".join(AT_ANOTHER_DEPTH), 0)
def test_repetitions_change_nothing(body: bytes, piece: int) -> None:
    message = HEADER + body
    cuts = list(range(piece, len(message), piece)) if piece else []
    for limits in (LIMITS, LIMITS._replace(depth=8), LIMITS._replace(memory=40 * VALUE_BYTES)):
        assert _outcome(message, cuts, limits) == _outcome_without_memory(body, limits)


def _outcome(message: bytes, cuts: list[int], limits: Limits) -> int | str:
    try:
        end = fed(message, cuts, limits)
    except Rejected as rejected:
        return rejected.reason
    assert end is not None
    return end


def _outcome_without_memory(body: bytes, limits: Limits) -> int | str:
    """Walks by recursion: the simple way to say what the scanner has to find."""
    values = 0

    def value(ttype: int, at: int, depth: int) -> int:
        nonlocal values
        if ttype == TType.BYTE:
            return at + 1
        values += 1
        if values > limits.values:
            raise Rejected("memory", "")
        if ttype == TType.STRING:
            return at + 4 + int.from_bytes(body[at : at + 4])
        if ttype == TType.STRUCT:
            if depth >= limits.depth:
                raise Rejected("depth", "")
            return fields(at, depth + 1)
        types = (body[at],) if ttype != TType.MAP else (body[at], body[at + 1])
        at += len(types)
        count = int.from_bytes(body[at : at + 4])
        at += 4
        if count and depth >= limits.depth:
            raise Rejected("depth", "")
        for _ in range(count):
            for inner in types:
                at = value(inner, at, depth + 1)
        return at

    def fields(at: int, depth: int) -> int:
        while body[at]:
            at = value(body[at], at + 3, depth)
        return at + 1

    try:
        return len(HEADER) + fields(0, 1)
    except Rejected as rejected:
        return rejected.reason


def test_large_message_in_small_reads_takes_linear_time() -> None:
    message = HEADER + list_field(TType.STRING, 500) + (struct.pack(">i", 60_000) + b"x" * 60_000) * 500 + b"\x00"
    limits = LIMITS._replace(message_bytes=100 << 20)
    began = time.process_time()
    assert fed(message, list(range(16_384, len(message), 16_384)), limits) == len(message)
    # 30 MB in 1,800 reads. Were all that came walked or copied again at each read, this would be 27 GB.
    assert time.process_time() - began < 3


def test_every_struct_of_the_idl_passes() -> None:
    for method in METHODS.values():
        message = HEADER + binary.encode(filled(method.args))
        assert scan(message) == len(message), method


def test_numbers_count_as_values_two_by_two() -> None:
    body = list_field(TType.I64, 200) + bytes(8 * 200) + b"\x00"
    assert scan(HEADER + body, LIMITS._replace(memory=101 * VALUE_BYTES)) == len(HEADER + body)
    with pytest.raises(Rejected, match="max_request_memory"):
        scan(HEADER + body + b"\x00", LIMITS._replace(memory=99 * VALUE_BYTES))
