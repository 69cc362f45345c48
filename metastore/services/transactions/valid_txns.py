"""Snapshots of transactions and write ids, and their text forms, as Hive's clients store them.

The text for transactions is `highest:oldest open:open,...:aborted,...` (ValidReadTxnList), the text for write ids
has the table's name before that (ValidReaderWriteIdList). Several of these follow a transaction's id, separated by `$`
(ValidTxnWriteIdList).
"""

import json
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple, Self

from lake.protocol.hive import MetaException

NOTHING_OPEN = (1 << 63) - 1
"""What stands for the oldest open one where none is open: Java's Long.MAX_VALUE."""


MAX_JSON = 4 << 20
"""Of a materialized view's snapshot in JSON, in characters."""
MAX_SHOWN = 100
"""Of a text, in an error."""


class Snapshot(NamedTuple):
    """The ids that a reader sees: all up to `highest` without those in `invalid`, which is sorted.

    `aborted`: the aborted ones of these. `oldest_open`: the lowest open id; NOTHING_OPEN if there is none.
    """

    highest: int
    invalid: Sequence[int] = ()
    aborted: frozenset[int] = frozenset()
    oldest_open: int = NOTHING_OPEN

    def sees(self, number: int) -> bool:
        """Whether what was written under this id is visible."""
        if number > self.highest:
            return False
        at = bisect_left(self.invalid, number)
        return at == len(self.invalid) or self.invalid[at] != number

    def before(self, own: int) -> Self:
        """The snapshot of a transaction: of those that began before it."""
        if own <= 0:
            return self
        return self._replace(highest=min(own, self.highest), invalid=[each for each in self.invalid if each < own])


def parse(text: str) -> Snapshot:
    """A snapshot out of its text. Raises MetaException if it is none."""
    if not text:
        return Snapshot(NOTHING_OPEN)
    parts = text.split(":")
    try:
        highest = int(parts[0])
        oldest = int(parts[1]) if len(parts) > 1 and parts[1] else NOTHING_OPEN
        opened = _numbers(parts[2]) if len(parts) > 2 else []
        aborted = _numbers(parts[3]) if len(parts) > 3 else []
    except ValueError:
        raise MetaException(f"{text[:MAX_SHOWN]!r} is no list of valid transactions") from None
    return Snapshot(highest, sorted({*opened, *aborted}), frozenset(aborted), oldest)


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")] if text else []


def parse_write_ids(text: str) -> tuple[str, Snapshot]:
    """A table's full name, and the snapshot of its write ids. Raises MetaException if the text is none."""
    name, separator, rest = text.partition(":")
    if not separator:
        raise MetaException(f"{text[:MAX_SHOWN]!r} is no list of valid write ids")
    return name, parse(rest)


def parse_materialization(text: str) -> dict[str, Snapshot] | None:
    """The snapshots of a materialized view's source tables when it was built; None for sources that aren't
    transactional. The text may be wrapped in JSON (Hive 4's MaterializationSnapshot). Raises MetaException.
    """
    if text.startswith("{"):
        # JSON may take many times its length in memory, so it is bounded. Beyond that it is no list either.
        try:
            wrapped = json.loads(text) if len(text) <= MAX_JSON else {"validTxnList": None}
        except (ValueError, RecursionError):
            wrapped = {"validTxnList": None}
        if wrapped.get("tableSnapshots"):
            return None
        listed = wrapped.get("validTxnList", "")
        if not isinstance(listed, str):
            raise MetaException(f"{text[:MAX_SHOWN]!r} is no snapshot of a materialized view's sources")
        text = listed
    _, *tables = text.split("$")
    return dict(parse_write_ids(each) for each in tables if each)


def bits(positions: Sequence[int]) -> bytes:
    """A set of numbers as Java's BitSet writes it."""
    encoded = bytearray(max(positions, default=-1) // 8 + 1)
    for position in positions:
        encoded[position // 8] |= 1 << position % 8
    return bytes(encoded)
