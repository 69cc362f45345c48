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
        self._round = 0
        self._begun = 0  # the first round of which changes are known
        self._floor = 0
        self._trimmed = 0  # changes of later rounds are all known
        self._known: dict[Object, list[tuple[int, int]]] = {}  # (round, xid) in the order of rounds
        self._count = 0

    def forget(self) -> None:
        """Begins anew. Entries that were proved are not any more."""
        self.last = None
        self._known.clear()
        self._count = 0
        self._round += 1  # so that no proof of before is believed

    def add(self, stamp: Stamp, floor: int, changes: Iterable[tuple[int, str, int]], *, complete: bool) -> None:
        """A round: what has been committed since the last one, of which `complete` says whether it is all.

        All changes of transactions from `floor` on are kept in the database.
        """
        last = self.last
        if last is not None and (last.incarnation != stamp.incarnation or last.settled < floor):
            self.forget()  # what came between can't be known any more
            return
        if not complete or self._count > MAX_KNOWN:
            self.forget()
            return
        self._round += 1
        if last is None:
            self._begun = self._round
        self.last = stamp
        for xid, kind, number in changes:
            self._known.setdefault((kind, number), []).append((self._round, xid))
            self._count += 1
        if floor > self._floor or last is None:
            self._floor = floor
            self._trim()

    def holds(self, entry: Entry) -> bool:
        """Whether nothing that an entry was made of has been changed, as far as the last round's snapshot sees.

        The rule: every change of its objects that is known, its own snapshot sees, too.
        """
        last, stamp = self.last, entry.stamp
        if last is None or stamp.incarnation != last.incarnation:
            return False
        proved = entry.proved if entry.proved >= self._begun else 0
        if stamp.settled < self._floor and proved < max(self._trimmed, 1):
            return False  # some changes that it doesn't see are forgotten
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

    def _trim(self) -> None:
        """Forgets what every entry sees that may still be proved."""
        for each, known in list(self._known.items()):
            kept = [(number, xid) for number, xid in known if xid >= self._floor]
            self._trimmed = max([self._trimmed, *(number for number, xid in known if xid < self._floor)])
            if kept:
                self._known[each] = kept
            else:
                del self._known[each]
        self._count = sum(map(len, self._known.values()))
