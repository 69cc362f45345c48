"""Which protocol a connection speaks, its messages one by one, and the replies in its own protocol."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.transport.TTransport import TFramedTransport, TMemoryBuffer

from lake.protocol.codec import binary, foreign
from lake.protocol.codec.protocols import Inbox, Protocol, Refused, detect, reply, request
from lake.protocol.codec.scanner import Limits, Rejected
from lake.protocol.hive_versions import EXCEPTIONS_OF_2_3, NEW_SINCE_2_3
from lake.protocol.required import missing_field
from lake.protocol.services import METHODS
from lake.protocol.struct import Struct
from tests.lake.protocol.wire_values import encoded_tree, filled, read_fields, read_tree, trees, write_tree

LIMITS = Limits(message_bytes=1 << 20)
KINDS = list(itertools.product([False, True], ["strict", "old", "compact"]))


def protocol_of(style: str, transport: Any) -> Any:
    """Thrift's own writer and reader of a protocol."""
    if style == "compact":
        return TCompactProtocol(transport)
    return TBinaryProtocol(transport, strictRead=style == "strict", strictWrite=style == "strict")


def message_of(style: str, framed: bool, tree: Any, name: str = "get_table", sequence: int = 7) -> bytes:
    """A call as one of thrift's clients writes it."""
    buffer = TMemoryBuffer()
    transport = TFramedTransport(buffer) if framed else buffer
    protocol = protocol_of(style, transport)
    protocol.writeMessageBegin(name, binary.CALL, sequence)
    write_tree(protocol, tree)
    protocol.writeMessageEnd()
    transport.flush()
    return bytes(buffer.getvalue())


@pytest.mark.parametrize(("framed", "style"), KINDS)
@settings(max_examples=20, deadline=None)
@given(st.lists(trees(), min_size=1, max_size=3), st.integers(1, 100), st.text(min_size=1, max_size=30))
def test_messages_are_cut_and_read(framed: bool, style: str, sent: list[Any], piece: int, name: str) -> None:
    name = "m" + name
    stream = b"".join(message_of(style, framed, tree, name, number) for number, tree in enumerate(sent))
    inbox, received = Inbox(LIMITS), []
    for at in range(0, len(stream), piece):
        inbox.add(stream[at : at + piece])
        while (message := inbox.take()) is not None:
            assert inbox.protocol is not None
            received.append(request(inbox.protocol, message, LIMITS))
    assert len(inbox) == 0
    assert inbox.protocol == Protocol(framed=framed, compact=style == "compact")
    assert [one.header[:3] for one in received] == [(name, binary.CALL, number) for number in range(len(sent))]
    assert [one.data[one.header.body :] for one in received] == [encoded_tree(tree) for tree in sent]


@pytest.mark.parametrize(("framed", "style"), KINDS)
def test_reply_is_in_the_protocol_of_the_request(framed: bool, style: str) -> None:
    inbox = Inbox(LIMITS)
    inbox.add(message_of(style, framed, [], "größe", -3))
    message = inbox.take()
    assert message is not None
    assert inbox.protocol is not None
    value = filled(METHODS["get_table"].result)
    encoded = binary.encode(value)
    to = request(inbox.protocol, message, LIMITS)
    pieces = list(reply(inbox.protocol, to, binary.REPLY, [encoded[:5], encoded[5:]]))

    assert (b"\x80\x01" in b"".join(pieces)[:6]) == (style == "strict")
    buffer = TMemoryBuffer(b"".join(pieces))
    transport = TFramedTransport(buffer) if framed else buffer
    protocol = protocol_of(style, transport)
    assert protocol.readMessageBegin() == ("größe", binary.REPLY, -3)
    assert read_fields(protocol) == read_tree(encoded)
    assert framed or buffer.read(1) == b""


def test_unframed_binary_reply_leaves_as_it_comes() -> None:
    inbox = Inbox(LIMITS)
    inbox.add(message_of("strict", False, []))
    message = inbox.take()
    assert message is not None
    produced = []

    def body() -> Iterator[bytes]:
        for number in range(3):
            produced.append(number)
            yield b"x"

    protocol = Protocol(framed=False, compact=False)
    pieces = reply(protocol, request(protocol, message, LIMITS), binary.REPLY, body())
    next(pieces)
    next(pieces)
    assert produced == [0]


@pytest.mark.parametrize(
    ("data", "reason", "text"),
    [
        (b"GET / HTTP/1.1\r\n", "http", "HTTP"),
        (b"POST /metastore HTTP/1.1\r\n", "http", "HTTP"),
        (b"PRI * HTTP/2.0\r\n", "http", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "tls", "TLS"),
        (b"\x01\x00\x00\x00\x06GSSAPI", "sasl", "Kerberos"),
        (b"\x01\x00\x00\x00\x05PLAIN", "sasl", "SASL"),
        (b"\x02\x00\x00\x00\x05PLAIN", "sasl", "SASL"),
        (b"SSH-2.0-OpenSSH_9.2", "not_thrift", "SSH-2.0"),
        (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", "not_thrift", "not Thrift"),
        (b"\xff\xff\xff\xff", "not_thrift", "not Thrift"),
        (b"\x81", "not_thrift", "not Thrift"),
        (b"\x00\x10\x00\x00abcd", "not_thrift", "not Thrift"),
        (b"hello\n", "not_thrift", "hello"),
    ],
)
def test_what_is_no_thrift_is_named(data: bytes, reason: str, text: str) -> None:
    with pytest.raises(Rejected) as caught:
        detect(data)
    assert caught.value.reason == reason
    assert text in str(caught.value)


@pytest.mark.parametrize(("framed", "style"), KINDS)
def test_protocol_is_known_as_soon_as_it_can_be(framed: bool, style: str) -> None:
    message = message_of(style, framed, [])
    needed = 1 if not framed and style != "old" else 5
    for length in range(len(message)):
        found = detect(message[:length])
        assert (found is None) == (length < needed)
    assert found == Protocol(framed=framed, compact=style == "compact")


@example(b"OPTIO")
@given(st.binary(max_size=40))
def test_any_beginning_is_detected_refused_or_waited_for(data: bytes) -> None:
    try:
        assert detect(data) is not None or len(data) < 5 or foreign.may_become(data)
    except Rejected as rejected:
        assert str(rejected)


@pytest.mark.parametrize(("length_change", "reason"), [(-1, "malformed"), (1, "malformed"), (1 << 21, "message_size")])
def test_frame_that_is_not_one_message_is_refused(length_change: int, reason: str) -> None:
    message = message_of("strict", True, [])
    frame = (len(message) - 4 + length_change).to_bytes(4) + message[4:]
    inbox = Inbox(LIMITS)
    inbox.add(frame + b"\x00" * 10)
    with pytest.raises(Rejected) as caught:
        inbox.take()
    assert caught.value.reason == reason


@pytest.mark.parametrize(("framed", "style"), KINDS)
def test_call_beyond_a_limit_is_known_by_name_and_number(framed: bool, style: str) -> None:
    refused, sound = message_of(style, framed, [(1, 11, b"x" * 50)], sequence=-8), message_of(style, framed, [])
    inbox = Inbox(LIMITS._replace(string_bytes=40))
    for end in range(1, len(refused)):
        inbox.add(refused[end - 1 : end])
        try:
            assert inbox.take() is None
        except Refused as caught:
            assert not framed and not caught.ended
            assert caught.to.header[:3] == ("get_table", binary.CALL, -8)
            return
    inbox.add(refused[-1:] + sound)
    with pytest.raises(Refused) as last:
        inbox.take()
    assert last.value.ended and last.value.to.header[:3] == ("get_table", binary.CALL, -8)
    assert inbox.take() == sound


def test_length_of_a_frame_costs_no_memory() -> None:
    inbox = Inbox(Limits())
    inbox.add((99 << 20).to_bytes(4) + b"\x80\x01\x00\x01")
    assert inbox.take() is None
    assert len(inbox) == 8


def test_method_name_that_is_not_text_is_refused() -> None:
    message = message_of("strict", False, []).replace(b"get_table", b"get_\xff\xfe\xfd\xfc\xfb")
    with pytest.raises(Rejected):
        request(Protocol(framed=False, compact=False), message, LIMITS)


def test_required_fields() -> None:
    hive = METHODS["abort_txns"].args.thrift_spec[1][3][0]
    arguments = METHODS["abort_txns"].args()
    assert missing_field(arguments) is None
    arguments.rqst = hive()
    assert str(missing_field(arguments)) == "Required field 'txn_ids' is unset! Struct:AbortTxnsRequest"
    arguments.rqst = hive(txn_ids=[])
    assert missing_field(arguments) is None


def test_every_required_field_is_missed_wherever_it_stands() -> None:
    """In every method whose arguments hold, at any depth, a struct with required fields."""
    checked = 0
    for method in METHODS.values():
        arguments = filled(method.args)
        assert missing_field(arguments) is None or _has_empty(arguments)
        for holder in _structs_in(arguments):
            for name in holder.required:
                kept = getattr(holder, name)
                setattr(holder, name, None)
                found = missing_field(arguments)
                assert found is not None, (method, holder, name)
                setattr(holder, name, kept)
                checked += 1
    assert checked > 300


def _structs_in(value: Any) -> list[Struct]:
    if isinstance(value, Struct):
        parts = [part for name in value.field_names() for part in _structs_in(getattr(value, name))]
        return [value, *parts]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return []
    return [part for item in value for part in _structs_in(item)]


def _has_empty(value: Struct) -> bool:
    """Whether `filled` stopped at a depth where required fields were left out."""
    return any(getattr(part, name) is None for part in _structs_in(value) for name in part.required)


def test_methods_of_hive_2_3() -> None:
    assert set(METHODS) >= NEW_SINCE_2_3
    assert not NEW_SINCE_2_3 & {"get_table", "getName", "get_partitions", "lock", "add_index"}
    assert {"get_table", "get_table_req", "set_ugi"}.isdisjoint(NEW_SINCE_2_3)
    for (name, field), older in EXCEPTIONS_OF_2_3.items():
        # The client raises the last one.
        assert list(METHODS[name].exceptions.values()) == [older, field]
