"""Calls as data: what generated tests play on two servers, and print as Python when the answers differ.

In a script some texts stand for what differs from play to play or from server to server:

- `N_` begins every name; each play replaces it by a prefix that nobody used before.
- `{x*4000}` is 4,000 times the letter x.
- `WAREHOUSE` is the directory in which a server makes databases, `SIDE` a directory beside it, of this play alone.
- `Txn(0)` and `Lock(0)` are the first transaction and the first lock that the script was given.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lake.protocol.struct import Struct

NAMES = "N_"
WAREHOUSE = "WAREHOUSE"
SIDE = "SIDE"
REPEATED = re.compile(r"\{(.)\*(\d+)\}")

PUT_FILE = "put_file"
"""Not a method: writes a file into a directory, if it exists; the path is relative to the warehouse."""


@dataclass(frozen=True, order=True)
class Txn:
    """The id of a transaction that the script opened, counted from 0."""

    number: int

    def __repr__(self) -> str:
        return f"Txn({self.number})"


@dataclass(frozen=True, order=True)
class Lock:
    """The id of a lock that the script asked for, counted from 0."""

    number: int

    def __repr__(self) -> str:
        return f"Lock({self.number})"


@dataclass(frozen=True, order=True)
class Expression:
    """A partition expression as Hive's planner serialises it, by its text in tests/support/expressions.json."""

    text: str

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


class Call:
    """A method and its arguments in the order of the IDL."""

    def __init__(self, method: str, *arguments: Any) -> None:
        self.method = method
        self.arguments = arguments

    def __repr__(self) -> str:
        return f"Call({', '.join([repr(self.method), *map(repr, self.arguments)])})"


Script = list[Call]


def transformed(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """A deep copy of an argument or answer with every text, number and id passed through `leaf`."""
    if isinstance(value, Struct):
        copy = type(value)()
        for name in value.field_names():
            setattr(copy, name, transformed(getattr(value, name), leaf))
        return copy
    if isinstance(value, list | tuple):
        return [transformed(item, leaf) for item in value]
    if isinstance(value, set):
        return {transformed(item, leaf) for item in value}
    if isinstance(value, dict):
        return {transformed(key, leaf): transformed(item, leaf) for key, item in value.items()}
    return leaf(value)


def as_python(script: Script) -> str:
    """The script as Python source."""
    return "\n".join(f"    {call!r}," for call in script)
