"""Rows in Postgres' binary format: bytes come as they are, where a result would have two digits for each.

Of many rows with bytes in them it takes a third of the time. A row is two bytes, and for each column a length in
four bytes and the value, as its type's `send` function has it; the length is -1 for NULL.
"""

import struct
from typing import Any

from sqlalchemy import Connection, Engine, Select, event

ROW_BEGIN = 2
LENGTH = 4
"""Bytes before a row's columns, and before each column's value."""

_OUTPUT = "metastore_copy_to"  # the execution option that names where rows go
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER = len(_SIGNATURE) + 8  # flags, and the length of an extension that isn't there
_TRAILER = b"\xff\xff"
_length = struct.Struct(">i").unpack_from


class _Output:
    """What psycopg2 takes for a file. It writes each message of the database's by itself: one for each row."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.write = self.messages.append


def prepare(engine: Engine) -> None:
    """Lets an engine's connections be asked so."""
    event.listen(engine, "do_execute", _copy)


def fetch(tx: Connection, query: Select[*tuple[Any, ...]]) -> list[bytes]:
    """The rows of a query."""
    output = _Output()
    tx.execute(query, execution_options={_OUTPUT: output})
    first, *rows = output.messages
    assert first.startswith(_SIGNATURE), "no rows in the binary format"
    rows.insert(0, first[_HEADER:])
    assert rows.pop() == _TRAILER, "a message of the database's is a row"
    return rows


def values(row: bytes) -> list[bytes | None]:
    """The values of a row."""
    found: list[bytes | None] = []
    at = ROW_BEGIN
    while at < len(row):
        length: int = _length(row, at)[0]
        begin = at + LENGTH
        at = begin + max(length, 0)
        found.append(row[begin:at] if length >= 0 else None)
    return found


def _copy(cursor: Any, statement: str, parameters: Any, context: Any) -> bool | None:
    """Takes the place of a statement's execution where its rows are to be copied."""
    output = context.execution_options.get(_OUTPUT)
    if output is None:
        return None
    query = cursor.mogrify(statement, parameters).decode()
    cursor.copy_expert(f"COPY ({query}) TO STDOUT (FORMAT binary)", output)
    return True
