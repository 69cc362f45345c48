"""The committed changes that a worker knows, and whether a reply still holds."""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from metastore.cache.entry import Object
from metastore.cache.stamp import Stamp

MAX_KNOWN = 200_000
"""Changes that are kept. With more, all are dropped, and earlier entries no longer hold."""


class Kept(Protocol):
    """What `Changes` judges: see `metastore.cache.entry.Entry`."""

    stamp: Stamp
    proved: int

    @property
    def objects(self) -> Iterable[Object]: ...


class _Change(NamedTuple):
    """`poll`: the number of the poll that returned it. `greatest`: of the transaction ids of this and those before."""

    poll: int
    xid: int
    greatest: int


class Changes:
    """The changes that polls have returned, up to the last poll's snapshot. For one thread."""

    def __init__(self) -> None:
        self.last: Stamp | None = None
        """The snapshot of the last poll. None: no changes are known, and no entry holds."""
        self._base: Stamp | None = None  # every change that this snapshot doesn't see is known
        self._known: dict[Object, list[_Change]] = {}  # in the order of polls
        self._count = 0
        self._poll = 0
        self._trusted = 1  # the first poll whose results still count: entries proved at an earlier one are checked anew

    def forget(self) -> None:
        """Drop all changes. No entry holds until the next poll."""
        self.last = self._base = None
        self._clear()

    def add(self, stamp: Stamp, floor: int, changes: Iterable[tuple[int, str, int]], *, complete: bool) -> None:
        """Add the result of a poll.

        `changes` are (transaction id, kind, number): those that `stamp` sees and the last poll's snapshot didn't, or,
        in the first poll, all that the database keeps. The database keeps changes of transactions from `floor` on.
        `complete`: whether `changes` are all of them.
        """
        last = self.last
        if last is not None and (last.incarnation != stamp.incarnation or last.settled < floor):
            self.forget()  # changes between the two polls are lost
            return
        self._poll += 1
        self.last = stamp
        if not complete or self._count > MAX_KNOWN:
            self._clear()
            self._base = stamp
            return
        for xid, kind, number in changes:
            known = self._known.setdefault((kind, number), [])
            known.append(_Change(self._poll, xid, max(xid, known[-1].greatest) if known else xid))
            self._count += 1
        kept = Stamp(stamp.incarnation, floor, floor, frozenset())
        if self._base is None:
            self._base = kept
        elif kept != self._base and kept.sees_all_of(self._base):
            self._base = kept
            self._trim(floor)

    def holds(self, entry: Kept) -> bool:
        """Whether no object of an entry has changed after the entry was read, as of the last poll's snapshot.

        The rule: the entry's own snapshot sees every known change of its objects, and every change that is not known.
        If it is ahead, the last poll's snapshot sees all that it sees. An entry that holds gets the last poll's
        snapshot as its stamp.
        """
        last, base, stamp = self.last, self._base, entry.stamp
        if last is None or base is None or (stamp.ahead and not last.sees_all_of(stamp)):
            return False
        proved = entry.proved if entry.proved >= self._trusted else 0
        if proved == self._poll:
            return True
        if not proved and not stamp.sees_all_of(base):
            return False
        for each in entry.objects:
            for poll, xid, greatest in reversed(self._known.get(each, ())):
                if poll <= proved or greatest < stamp.settled:
                    break  # what is before that was seen, too
                if not stamp.sees(xid):
                    return False
        entry.proved = self._poll
        if last.sees_all_of(stamp):
            entry.stamp = last
        return True

    def _clear(self) -> None:
        self._known.clear()
        self._count = 0
        self._trusted = self._poll + 1

    def _trim(self, floor: int) -> None:
        """Drop the changes of transactions before `floor`."""
        for each, known in list(self._known.items()):
            gone = [change.poll for change in known if change.xid < floor]
            if not gone:
                continue
            # An entry proved before a dropped change may not see it.
            self._trusted = max(self._trusted, *gone)
            self._count -= len(gone)
            self._known[each] = [change for change in known if change.xid >= floor]
            if not self._known[each]:
                del self._known[each]
