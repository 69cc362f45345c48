"""Messages of Postgres' protocol (version 3), for a connection that is read byte by byte."""

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

READY, ROW, ERROR = b"Z", b"D", b"E"
_COLUMNS, _DONE = b"T", b"C"
LONGEST_BYTES = 1 << 16

_header = struct.Struct(">cI")
_count = struct.Struct(">H")
_length = struct.Struct(">i")
_column = struct.Struct(">IHIhih")  # the table's id, the column's number; the type's id, size and modifier; the format
_NUMBERS = (20, 21, 23)  # ids of bigint, smallint, integer
_TEXTS = (19, 25, 1043)  # name, text, varchar


class Message(NamedTuple):
    kind: bytes
    body: bytes


class Answer(NamedTuple):
    """What came in answer to a `query`.

    `row`: the first row of its last statement, None without one. `error`: the SQLSTATE of the statement that failed;
    None if all went well.
    """

    row: tuple[int | str | None, ...] | None
    error: str | None


def query(statement: str | bytes) -> bytes:
    """The message that has statements executed."""
    body = (statement.encode() if isinstance(statement, str) else statement) + b"\0"
    return _header.pack(b"Q", len(body) + _length.size) + body


def row(body: bytes) -> list[str | None]:
    """The values of a row, in the text format. Raises ValueError."""
    try:
        (count,) = _count.unpack_from(body)
        at, values = _count.size, list[str | None]()
        for _ in range(count):
            (length,) = _length.unpack_from(body, at)
            at += _length.size
            values.append(None if length < 0 else body[at : at + length].decode())
            at += max(length, 0)
        return values
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"no row of Postgres: {error}") from None


def answer(data: bytes) -> Answer | None:
    """The answer to a `query` whose rows are numbers and texts; None while its end hasn't come. Raises ValueError."""
    at, types, first = 0, list[int](), None
    last, error = None, None
    while len(data) - at >= _header.size:
        kind, length = _header.unpack_from(data, at)
        if not _length.size <= length <= LONGEST_BYTES:
            raise ValueError(f"no message of Postgres: {length} bytes")
        begin, at = at + _header.size, at + 1 + length
        if at > len(data):
            break
        body = data[begin:at]
        if kind == _COLUMNS:
            types = _types(body)
        elif kind == ROW and first is None:
            first = _typed(row(body), types)
        elif kind == _DONE:
            last, first = first, None
        elif kind == ERROR:
            error = _state(body)
        elif kind == READY:
            if at != len(data):
                raise ValueError("Postgres sent more than an answer")
            return Answer(last, error)
    return None


def _state(body: bytes) -> str:
    """The SQLSTATE of an error."""
    for field in body.split(b"\0"):
        if field.startswith(b"C"):
            return field[1:].decode()
    raise ValueError("an error of Postgres without a code")


def _types(body: bytes) -> list[int]:
    """The ids of the types of a result's columns."""
    try:
        (count,) = _count.unpack_from(body)
        at, types = _count.size, list[int]()
        for _ in range(count):
            at = body.index(0, at) + 1  # the end of the column's name
            types.append(_column.unpack_from(body, at)[2])
            at += _column.size
    except struct.error as error:
        raise ValueError(f"no columns of Postgres: {error}") from None
    return types


def _typed(values: Sequence[str | None], types: Sequence[int]) -> tuple[int | str | None, ...]:
    typed = list[int | str | None]()
    for value, type in zip(values, types, strict=True):
        if type not in _NUMBERS and type not in _TEXTS:
            raise ValueError(f"a value of Postgres' type {type}, which is neither a number nor a text")
        typed.append(int(value) if value is not None and type in _NUMBERS else value)
    return tuple(typed)


class MessageReader:
    """Reads messages, and never a byte beyond the one that is read."""

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        """`receive` returns some bytes, at most as many as is said, and none at the end.

        It may raise BlockingIOError; the next call goes on.
        """
        self._receive = receive
        self._read = b""

    def next(self) -> Message:
        """The next message. Raises BlockingIOError while it hasn't arrived, EOFError, and ValueError for none."""
        self._fill(_header.size)
        kind, length = _header.unpack_from(self._read)
        if not _length.size <= length <= LONGEST_BYTES:
            raise ValueError(f"no message of Postgres: {length} bytes")
        self._fill(1 + length)
        body, self._read = self._read[_header.size :], b""
        return Message(kind, body)

    def _fill(self, size: int) -> None:
        while len(self._read) < size:
            received = self._receive(size - len(self._read))
            if not received:
                raise EOFError
            self._read += received
