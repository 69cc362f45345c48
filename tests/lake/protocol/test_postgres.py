"""Messages of Postgres' protocol, however they arrive."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metastore.postgres import messages as postgres
from metastore.postgres.messages import Message, MessageReader

MESSAGES = st.lists(
    st.builds(Message, st.sampled_from([b"T", b"D", b"C", b"Z", b"E"]), st.binary(max_size=40)), max_size=5
)


def encoded(message: Message) -> bytes:
    return message.kind + struct.pack(">I", 4 + len(message.body)) + message.body


class Arriving:
    """Bytes that arrive piece by piece: between two pieces there are none."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.pieces: list[bytes] = []
        for size in sizes:
            piece, data = data[:size], data[size:]
            self.pieces += [piece, b""]
        self.pieces.append(data)

    def receive(self, size: int) -> bytes:
        while self.pieces and not self.pieces[0]:
            self.pieces.pop(0)
            if self.pieces:
                raise BlockingIOError
        if not self.pieces:
            return b""
        taken, self.pieces[0] = self.pieces[0][:size], self.pieces[0][size:]
        return taken

    @property
    def left(self) -> bytes:
        return b"".join(self.pieces)


@given(MESSAGES, st.binary(max_size=10), st.lists(st.integers(1, 9), max_size=30))
def test_messages_are_read_one_by_one(messages: list[Message], rest: bytes, sizes: list[int]) -> None:
    """And never a byte beyond the one that is asked for."""
    arriving = Arriving(b"".join(map(encoded, messages)) + rest, sizes)
    reader = MessageReader(arriving.receive)
    found: list[Message] = []
    while len(found) < len(messages):
        try:
            found.append(reader.next())
        except BlockingIOError:
            continue
    assert found == messages
    assert arriving.left == rest


def test_the_end() -> None:
    with pytest.raises(EOFError):
        MessageReader(Arriving(encoded(Message(b"Z", b"I"))[:-1], []).receive).next()


@pytest.mark.parametrize("length", [0, 3, postgres.LONGEST_BYTES + 1, (1 << 32) - 1])
def test_no_message(length: int) -> None:
    with pytest.raises(ValueError, match="no message of Postgres"):
        MessageReader(Arriving(b"Z" + struct.pack(">I", length), []).receive).next()


@given(st.lists(st.none() | st.text(max_size=20), max_size=6))
def test_rows(values: list[str | None]) -> None:
    body = struct.pack(">H", len(values))
    for value in values:
        text = None if value is None else value.encode()
        body += struct.pack(">i", -1) if text is None else struct.pack(">i", len(text)) + text
    assert postgres.row(body) == values


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\1", b"\0\1\0\0\0\1\xff"])
def test_no_row(body: bytes) -> None:
    with pytest.raises(ValueError, match="no row of Postgres"):
        postgres.row(body)


def test_a_query() -> None:
    assert postgres.query("SELECT 1") == b"Q\0\0\0\rSELECT 1\0"


def columns(*types: int) -> Message:
    body = struct.pack(">H", len(types))
    for number, type in enumerate(types):
        body += b"column %d\0" % number + struct.pack(">IHIhih", 0, 0, type, -1, -1, 0)
    return Message(b"T", body)


def values(*texts: bytes | None) -> Message:
    body = struct.pack(">H", len(texts))
    for each in texts:
        body += struct.pack(">i", -1) if each is None else struct.pack(">i", len(each)) + each
    return Message(b"D", body)


DONE, READY = Message(b"C", b"SELECT 1\0"), Message(b"Z", b"I")
ANSWERS = {
    "a row": ([columns(25, 20, 23), values(b"a", b"-5", None), DONE, READY], (("a", -5, None), None)),
    "the first row": ([columns(25), values(b"a"), values(b"b"), DONE, READY], (("a",), None)),
    "the last statement's row": (
        [columns(25), values(b"a"), DONE, columns(21), values(b"1"), DONE, READY],
        ((1,), None),
    ),
    "a last statement without rows": ([columns(25), values(b"a"), DONE, DONE, READY], (None, None)),
    "a last statement that finds nothing": ([columns(25), values(b"a"), DONE, columns(25), DONE, READY], (None, None)),
    "an error": (
        [columns(25), values(b"a"), DONE, Message(b"E", b"SERROR\0C22012\0Mdivision by zero\0\0"), READY],
        (("a",), "22012"),
    ),
    "notices, too": (
        [Message(b"N", b"\0"), columns(25), Message(b"S", b"a\0b\0"), values(b"a"), DONE, READY],
        (("a",), None),
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer(name: str) -> None:
    messages, expected = ANSWERS[name]
    data = b"".join(map(encoded, messages))
    assert postgres.answer(data) == expected
    for end in range(len(data)):
        assert postgres.answer(data[:end]) is None


@pytest.mark.parametrize(
    "messages",
    [
        [READY, DONE],
        [columns(16), values(b"t"), DONE, READY],
        [columns(25, 25), values(b"a"), DONE, READY],
        [columns(25), values(b"\xff"), DONE, READY],
        [Message(b"T", b"\0\1no end"), READY],
        [Message(b"T", b"\0\1a\0"), READY],
        [columns(20), values(b"a"), DONE, READY],
        [Message(b"E", b"SERROR\0\0"), READY],
    ],
)
def test_no_answer(messages: list[Message]) -> None:
    with pytest.raises(ValueError):
        postgres.answer(b"".join(map(encoded, messages)))


def test_an_answer_that_is_too_long() -> None:
    with pytest.raises(ValueError, match="no message of Postgres"):
        postgres.answer(b"D" + struct.pack(">I", postgres.LONGEST_BYTES + 1))
