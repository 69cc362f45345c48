"""Ids of transactions and locks, which carry the number of their backend above the id that it has there.

The primary backend's have number 0 and are as they are: in Hive 2.3 the directories of transactional tables are called
by them.
"""

import json
from collections.abc import Callable

_SHIFT = 48
_LARGEST = (1 << _SHIFT) - 1
_OPEN_END = (1 << 63) - 1  # Java's Long.MAX_VALUE, which stands for none
_SEPARATORS = ":,"


def marked(number: int, identifier: int) -> int:
    """An id of a backend with a number. Raises OverflowError for an id that leaves no room for a number."""
    if not number or identifier <= 0 or identifier == _OPEN_END:
        return identifier
    if identifier > _LARGEST:
        raise OverflowError(f"{identifier} is too large an id")
    return number << _SHIFT | identifier


def highest(number: int, identifier: int) -> int:
    """The last id of a backend, marked also where it is 0: a list of transactions that ends there is this backend's."""
    return number << _SHIFT if identifier == 0 else marked(number, identifier)


def number_of(identifier: int) -> int | None:
    """The number of the backend that an id is from; None for what is no id."""
    return None if identifier <= 0 or identifier == _OPEN_END else identifier >> _SHIFT


def unmarked(identifier: int) -> int:
    """The id as the backend has it."""
    return identifier if number_of(identifier) is None else identifier & _LARGEST


def in_text(text: str, change: Callable[[int], int]) -> str:
    """A list of transactions as text, with each number changed; what is no number stays."""
    made, digits = [], ""
    for character in text + ":":
        if character not in _SEPARATORS:
            digits += character
            continue
        made.append(str(change(int(digits))) if digits.isdecimal() and digits.isascii() else digits)
        made.append(character)
        digits = ""
    return "".join(made[:-1])


def in_snapshot(text: str, transactions: Callable[[str], str], qualified: Callable[[str], str]) -> str:
    """A list of transactions as text, or what a materialized view was built from, with other ids and names in it.

    The latter is a transaction, and for each table `$`, its name and its write ids, which have no backend's number.
    Hive 4 wraps it in JSON, with snapshots of other tables by their names. What is no such JSON stays as it is.
    """
    if text.startswith("{"):
        try:
            wrapped = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if isinstance(listed := wrapped.get("validTxnList"), str):
            wrapped["validTxnList"] = in_snapshot(listed, transactions, qualified) if listed[:1] != "{" else listed
        if isinstance(others := wrapped.get("tableSnapshots"), dict):
            wrapped["tableSnapshots"] = {qualified(name) if "." in name else name: it for name, it in others.items()}
        return json.dumps(wrapped, separators=(",", ":"), ensure_ascii=False)
    transaction, *tables = text.split("$")
    parts = [each.partition(":") for each in tables]
    return "$".join([
        transactions(transaction),
        *(f"{qualified(name) if '.' in name else name}{colon}{rest}" for name, colon, rest in parts),
    ])  # fmt: skip


def numbers_in(text: str) -> set[int]:
    """The numbers of the backends that the transactions in a text are from.

    A list that ends at 0 is of the primary one, whose 0 alone has no mark.
    """
    found = {0} if text.startswith("0:") else set()

    def note(identifier: int) -> int:
        if (number := number_of(identifier)) is not None:
            found.add(number)
        return identifier

    in_text(text, note)
    return found
