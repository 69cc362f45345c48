"""What is known of committed changes, and the judgement whether a reply still holds."""

from collections.abc import Iterable

from metastore.cache.entry import Entry, Object
from metastore.cache.stamp import Stamp

MAX_KNOWN = 200_000
"""Changes that are remembered; with more, everything is forgotten and begins anew."""


class Changes:
    """The changes that rounds told of, up to the last one's snapshot. For one thread."""

    def __init__(self) -> None:
        self.last: Stamp | None = None
        """The snapshot of the last round; None: nothing is known, and no entry holds."""
        self._base: Stamp | None = None  # every change that this doesn't see is known
        self._known: dict[Object, list[tuple[int, int]]] = {}  # (round, xid) in the order of rounds
        self._count = 0
        self._round = 0
        self._trusted = 1  # the first round at which a proof still says something

    def forget(self) -> None:
        """Begins anew. Entries that were proved are not any more."""
        self.last = self._base = None
        self._clear()

    def add(self, stamp: Stamp, floor: int, changes: Iterable[tuple[int, str, int]], *, complete: bool) -> None:
        """A round: what it sees and the last one did not, or, in the first one, what the database keeps.

        That is whatever transactions from `floor` on changed. `complete`: whether all of it is told.
        """
        last = self.last
        if last is not None and (last.incarnation != stamp.incarnation or last.settled < floor):
            self.forget()  # what came between can't be known any more
            return
        self._round += 1
        self.last = stamp
        if not complete or self._count > MAX_KNOWN:
            self._clear()
            self._base = stamp
            return
        for xid, kind, number in changes:
            self._known.setdefault((kind, number), []).append((self._round, xid))
            self._count += 1
        kept = Stamp(stamp.incarnation, floor, floor, frozenset())
        if self._base is None:
            self._base = kept
        elif kept != self._base and kept.sees_all_of(self._base):
            self._base = kept
            self._trim(floor)

    def holds(self, entry: Entry) -> bool:
        """Whether nothing that an entry was made of has been changed, as far as the last round's snapshot sees.

        The rule: every change of its objects that is known, its own snapshot sees, too; and every change that is not
        known.
        """
        last, base, stamp = self.last, self._base, entry.stamp
        if last is None or base is None:
            return False
        proved = entry.proved if entry.proved >= self._trusted else 0
        if not proved and not stamp.sees_all_of(base):
            return False
        for each in entry.objects:
            for number, xid in reversed(self._known.get(each, ())):
                if number <= proved:
                    break
                if not stamp.sees(xid):
                    return False
        entry.proved = self._round
        if last.sees_all_of(stamp):
            entry.stamp = last
        return True

    def _clear(self) -> None:
        self._known.clear()
        self._count = 0
        self._trusted = self._round + 1

    def _trim(self, floor: int) -> None:
        """Forgets the changes of transactions before `floor`."""
        for each, known in list(self._known.items()):
            gone = [number for number, xid in known if xid < floor]
            if not gone:
                continue
            # A proof from before a change that is forgotten says nothing of it.
            self._trusted = max(self._trusted, *gone)
            self._count -= len(gone)
            self._known[each] = [(number, xid) for number, xid in known if xid >= floor]
            if not self._known[each]:
                del self._known[each]
