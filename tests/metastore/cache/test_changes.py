"""The judgement whether a reply still holds, against a database that is played and remembers everything."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from metastore.cache import changes as rules
from metastore.cache.changes import Changes
from metastore.cache.entry import Entry, Object
from metastore.cache.memory import Memory
from metastore.cache.stamp import Stamp

OBJECTS: list[Object] = [("t", 1), ("p", 1), ("t", 2)]


@dataclass
class Transaction:
    xid: int
    objects: list[Object]
    committed_as: int | None = None  # the how-manieth
    aborted: bool = False
    looked: Stamp | None = None  # the snapshot in which it read what it had locked
    looked_at: int = 0  # the last commit by then


@dataclass
class Postgres:
    """What of it matters: snapshots, and the notes of what transactions changed."""

    incarnation: int = 1
    next_xid: int = 10
    floor: int = 10
    commits: int = 0
    transactions: list[Transaction] = field(default_factory=list)

    def snapshot(self) -> Stamp:
        running = [each.xid for each in self.transactions if each.committed_as is None and not each.aborted]
        return Stamp(str(self.incarnation), min(running, default=self.next_xid), self.next_xid, frozenset(running))

    def round(self, last: Stamp | None, limit: int) -> tuple[Stamp, int, list[tuple[int, str, int]], bool]:
        found = [
            (each.xid, kind, number)
            for each in self.transactions
            if each.committed_as is not None and each.xid >= self.floor
            if last is None or each.xid >= last.begun or each.xid in last.open_
            for kind, number in each.objects
        ]
        return self.snapshot(), self.floor, found[:limit], len(found) < limit


@dataclass
class Read:
    """An entry, and at which commit of the database it was read.

    `own`: the transaction that has put it there itself, and isn't counted as one that came after.
    """

    entry: Entry
    commit: int
    own: Transaction | None = None


class Judged(RuleBasedStateMachine):
    """Transactions run and end, entries are read and come back from Redis, changes are forgotten, Postgres crashes."""

    def __init__(self) -> None:
        super().__init__()
        self.postgres = Postgres()
        self.changes = Changes()
        self.reads: list[Read] = []
        self.asked_at = -1
        self.limit = 1000

    @rule(objects=st.lists(st.sampled_from(OBJECTS), min_size=1, unique=True))
    def begin(self, objects: list[Object]) -> None:
        self.postgres.transactions.append(Transaction(self.postgres.next_xid, objects))
        self.postgres.next_xid += 1

    def _running(self) -> list[Transaction]:
        return [each for each in self.postgres.transactions if each.committed_as is None and not each.aborted]

    @rule(which=st.integers(0, 5))
    def look(self, which: int) -> None:
        if running := self._running():
            transaction = running[which % len(running)]
            transaction.looked, transaction.looked_at = self.postgres.snapshot(), self.postgres.commits

    @rule(which=st.integers(0, 5), commit=st.booleans())
    def end(self, which: int, commit: bool) -> None:
        if not (running := self._running()):
            return
        transaction = running[which % len(running)]
        if not commit:
            transaction.aborted = True
            return
        self.postgres.commits += 1
        transaction.committed_as = self.postgres.commits
        if transaction.looked is not None:
            incarnation, seen = transaction.looked.incarnation, str(transaction.looked)
            stamp = Stamp.of_writer(incarnation, seen, transaction.xid)
            entry = Entry(b"", stamp, transaction.objects)
            self.reads.append(Read(entry, transaction.looked_at, transaction))

    @rule(objects=st.lists(st.sampled_from(OBJECTS), min_size=1, unique=True))
    def read(self, objects: list[Object]) -> None:
        entry = Entry(b"", self.postgres.snapshot(), objects)
        self.reads.append(Read(entry, self.postgres.commits))

    @rule(limit=st.sampled_from([1, 2, 1000, 1000, 1000]))
    def ask(self, limit: int) -> None:
        stamp, floor, found, complete = self.postgres.round(self.changes.last, limit)
        self.changes.add(stamp, floor, found, complete=complete)
        if self.changes.last is not None:
            assert self.changes.last == stamp
        self.asked_at = self.postgres.commits

    @precondition(lambda self: self.reads)
    @rule(which=st.integers(0, 20))
    def another_server_reads_it_from_redis(self, which: int) -> None:
        """With the stamp that it has there by now, and no proof."""
        kept = self.reads[which % len(self.reads)]
        again = Entry.from_bytes(kept.entry.to_bytes())
        assert (again.stamp, again.objects) == (kept.entry.stamp, kept.entry.objects)
        self.reads.append(Read(again, kept.commit, kept.own))

    @rule(back=st.integers(0, 3))
    def forget_old_notes(self, back: int) -> None:
        self.postgres.floor = max(self.postgres.floor, self.postgres.snapshot().settled - back)

    @rule()
    def crash(self) -> None:
        """Ids that were given and left no trace are given again."""
        postgres = self.postgres
        postgres.incarnation += 1
        committed = [each for each in postgres.transactions if each.committed_as is not None]
        postgres.next_xid = max([each.xid for each in committed], default=9) + 1
        postgres.transactions = committed
        postgres.floor = postgres.next_xid

    @rule()
    def restart(self) -> None:
        """Of this worker: what was read is still in Redis."""
        self.changes = Changes()
        for kept in self.reads:
            kept.entry.proved = 0

    @invariant()
    def what_holds_is_unchanged(self) -> None:
        if self.changes.last is None:
            return
        for kept in self.reads:
            if not self.changes.holds(kept.entry):
                continue
            changed = [
                each
                for each in self.postgres.transactions
                if each.committed_as is not None and each is not kept.own
                if kept.commit < each.committed_as <= self.asked_at
                if set(each.objects) & set(kept.entry.objects)
            ]
            assert not changed, f"{kept.entry.stamp} holds although {changed} came between"


Judged.TestCase.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
TestJudged = Judged.TestCase


def entry(stamp: Stamp, *objects: Object, size: int = 0) -> Entry:
    return Entry(b"x" * size, stamp, objects)


def snapshot(text: str, incarnation: str = "a") -> Stamp:
    return Stamp.of(incarnation, text)


def test_what_nobody_changed_holds_and_gets_the_newest_stamp():
    changes = Changes()
    kept = entry(snapshot("10:10:"), ("t", 1))
    assert not changes.holds(kept), "nothing was asked yet"
    changes.add(snapshot("12:12:"), 5, [(11, "t", 2)], complete=True)
    assert changes.holds(kept)
    assert kept.stamp == snapshot("12:12:")


def test_a_change_that_its_snapshot_saw_does_no_harm_and_another_does():
    changes = Changes()
    changes.add(snapshot("10:10:"), 5, [], complete=True)
    saw, saw_not = entry(snapshot("11:13:11"), ("t", 1)), entry(snapshot("11:13:11,12"), ("t", 1))
    changes.add(snapshot("11:14:11"), 5, [(12, "t", 1)], complete=True)
    assert changes.holds(saw)
    assert not changes.holds(saw_not)


def test_changes_that_are_forgotten_end_what_was_not_proved_since():
    changes = Changes()
    idle, asked = entry(snapshot("10:10:"), ("t", 1)), entry(snapshot("10:10:"), ("t", 2))
    changes.add(snapshot("10:10:"), 5, [], complete=True)
    assert changes.holds(idle)
    changes.add(snapshot("20:20:"), 5, [(15, "t", 1)], complete=True)
    assert changes.holds(asked)
    changes.add(snapshot("30:30:"), 18, [], complete=True)
    assert not changes.holds(idle)
    assert changes.holds(asked)


@pytest.mark.parametrize("limit", ["incomplete", "too many"])
def test_with_more_changes_than_are_returned_or_kept_it_begins_anew(limit, monkeypatch):
    changes = Changes()
    monkeypatch.setattr(rules, "MAX_KNOWN", 1)
    changes.add(snapshot("10:10:"), 5, [(6, "t", 2), (7, "t", 2)], complete=True)
    before = entry(snapshot("10:10:"), ("t", 1))
    assert changes.holds(before)
    changes.add(snapshot("20:20:"), 5, [], complete=limit == "too many")
    assert not changes.holds(before)
    assert changes.holds(entry(snapshot("20:20:"), ("t", 1)))


@pytest.mark.parametrize("header", [b"", b"{}", b"[]", b"7", b"\xff", b'["a","1"]', b'["a","1",[]]', b'["a",1,[]]'])
def test_what_is_no_entry_is_rejected(header):
    with pytest.raises(ValueError):
        Entry.from_bytes(b"\x02" + len(header).to_bytes(4) + (0).to_bytes(8) + header)


def test_what_is_cut_short_or_goes_on_is_no_entry():
    whole = entry(snapshot("1:1:"), ("t", 1), size=5).to_bytes()
    assert len(Entry.from_bytes(whole)) == 5
    for wrong in (*(whole[:length] for length in range(len(whole))), whole + b"\0"):
        with pytest.raises(ValueError):
            Entry.from_bytes(wrong)


def test_memory_keeps_what_was_asked_for_last():
    memory = Memory(4_000)
    for name in (b"a", b"b", b"c"):
        memory.put(name, entry(snapshot("1:1:"), size=700))
    assert memory.get(b"a") is not None
    memory.put(b"d", entry(snapshot("1:1:"), size=700))
    assert [memory.get(name) is not None for name in (b"a", b"b", b"c", b"d")] == [True, False, True, True]
    memory.put(b"e", entry(snapshot("1:1:"), size=5_000))
    assert memory.get(b"e") is None, "larger than all the memory"
    for name in (b"a", b"c", b"d"):
        memory.remove(name)
    assert (memory.size, len(memory)) == (0, 0)
