"""Of which state of the database something was read."""

from typing import NamedTuple, Self


class Stamp(NamedTuple):
    """A snapshot of Postgres: which transactions it sees.

    `incarnation`: ends with a crash of Postgres, since ids of transactions may be given again after one. `begun`: the
    first id that the snapshot knows nothing of; of those from `settled` on, `open_` were under way.
    """

    incarnation: str
    settled: int
    begun: int
    open_: frozenset[int]

    @classmethod
    def of(cls, incarnation: str, snapshot: str) -> Self:
        """From a pg_snapshot as Postgres writes it: `xmin:xmax:xip,…`. Raises ValueError."""
        xmin, xmax, xip = snapshot.split(":")
        return cls(incarnation, int(xmin), int(xmax), frozenset(map(int, xip.split(","))) if xip else frozenset())

    def sees(self, xid: int) -> bool:
        """Whether it sees what a transaction did that has committed."""
        return xid < self.settled or (xid < self.begun and xid not in self.open_)

    def sees_all_of(self, other: "Stamp") -> bool:
        """Whether it sees whatever another one sees."""
        return (
            self.incarnation == other.incarnation
            and self.begun >= other.begun
            and all(xid in other.open_ or xid >= other.begun for xid in self.open_)
        )

    def __str__(self) -> str:
        """The pg_snapshot."""
        return f"{self.settled}:{self.begun}:{','.join(map(str, sorted(self.open_)))}"
