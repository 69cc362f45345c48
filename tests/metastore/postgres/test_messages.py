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
