"""Positions in the log of a source, as numbers: texts of them don't sort."""

from typing import NamedTuple

_HALF = 1 << 32


def parse_lsn(text: str) -> int:
    """The number of a position as Postgres writes it, `16/B374D848`. Raises ValueError."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def format_lsn(lsn: int) -> str:
    """A position as Postgres writes it."""
    return f"{lsn // _HALF:X}/{lsn % _HALF:X}"


class SnapshotOfTransactions(NamedTuple):
    """Which transactions a query saw: pg_current_snapshot(). Those below `xmin` are over; those from `xmax` on had not
    begun to write; between them those in `running` weren't seen."""

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> "SnapshotOfTransactions":
        """From Postgres's text, `10:20:10,14,15`."""
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(int(each) for each in running.split(",") if each))

    def sees(self, xid: int) -> bool:
        """Whether the query saw what a transaction wrote that has committed."""
        return xid < self.xmax and xid not in self.running

    def whole_xid(self, xid: int) -> int:
        """The number of a transaction of which the log has the lower 32 bits: the one nearest to the snapshot."""
        found = self.xmax - self.xmax % _HALF + xid
        if found > self.xmax + _HALF // 2:
            return found - _HALF
        return found + _HALF if found < self.xmax - _HALF // 2 else found
