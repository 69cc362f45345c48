"""The state of the database that a reply was read in."""

from typing import NamedTuple, Self


class Stamp(NamedTuple):
    """A snapshot of Postgres: which transactions it sees.

    `incarnation`: the time within which snapshots can be compared; see docs/cache.md. The snapshot sees all transaction
    ids before `settled`, none from `begun` on, and those between except `open_`.

    `ahead`: it sees its own transaction besides, and was taken before that committed. So what it sees may never have
    been the truth, if others committed in between. A snapshot that sees that transaction says whether they did.
    """

    incarnation: str
    settled: int
    begun: int
    open_: frozenset[int]
    ahead: bool = False

    @classmethod
    def of(cls, incarnation: str, snapshot: str) -> Self:
        """From a pg_snapshot as Postgres writes it: `xmin:xmax:xip,…`. Raises ValueError."""
        xmin, xmax, xip = snapshot.split(":")
        return cls(incarnation, int(xmin), int(xmax), frozenset(map(int, xip.split(","))) if xip else frozenset())

    @classmethod
    def of_writer(cls, incarnation: str, snapshot: str, xid: int) -> Self:
        """What a transaction has read in a snapshot, and changed itself. Raises ValueError."""
        seen = cls.of(incarnation, snapshot)
        begun = max(seen.begun, xid + 1)
        open_ = seen.open_.union(range(seen.begun, begun)) - {xid}
        return cls(incarnation, seen.settled, begun, open_, ahead=True)

    def sees(self, xid: int) -> bool:
        """Whether the snapshot sees the changes of a committed transaction."""
        return xid < self.settled or (xid < self.begun and xid not in self.open_)

    def sees_all_of(self, other: "Stamp") -> bool:
        """Whether the snapshot sees every transaction that `other` sees."""
        return (
            self.incarnation == other.incarnation
            and self.begun >= other.begun
            and all(xid in other.open_ or xid >= other.begun for xid in self.open_)
        )

    def __str__(self) -> str:
        """The snapshot as Postgres writes a pg_snapshot."""
        return f"{self.settled}:{self.begun}:{','.join(map(str, sorted(self.open_)))}"
