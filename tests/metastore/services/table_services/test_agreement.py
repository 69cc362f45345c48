"""The server decides about cleans as `cleaning_rules` says, in random histories: plans, verdicts, what is readable."""

import itertools
from random import Random

import pytest

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import DataFile, Instant, InstantConflict, InstantKey, LeaseRequest, SnapshotGone
from metastore.services.wiring import Metastore
from tests.metastore.services.table_services.cleaning_rules import (
    Group,
    Kept,
    Plan,
    Row,
    by_commits,
    by_versions,
    may_delete,
)
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.support import builders
from tests.support.long_runs import share_of

GROUPS: list[Group] = [(DAY(1), "a"), (DAY(1), "b"), (DAY(2), "a")]
READERS = ["one", "two"]
STEPS = 18


class History:
    """A table of two servers, and what the rules say of it."""

    numbers = itertools.count(1)

    def __init__(self, pair: tuple[Metastore, Metastore], random: Random) -> None:
        self.random = random
        db = f"agrees{next(self.numbers)}"
        pair[0].databases.create(builders.database(db))
        self.table = LakeTable(pair[0], db)
        self.other = self.table.on(pair[1])
        self.rows: list[Row] = []
        self.sizes: dict[str, DataFile] = {}
        self.position = 0
        self.oldest = 0
        self.changes: list[tuple[int, Instant]] = []
        self.plans: list[tuple[Instant, Plan]] = []
        self.saved: dict[int, str] = {}
        self.leases: dict[str, tuple[int, bool]] = {}
        self.uncommitted: set[str] = set()
        self.turned = False  # since then what readers see is not the files alone
        self.cleans = {True: 0, False: 0}

    # --- what the rules say -----------------------------------------------------------------------------------

    def kept(self) -> Kept:
        positions = {*self.saved, *(each for each, _ in self.leases.values())}
        since = min((each for each, onwards in self.leases.values() if onwards), default=None)
        return Kept(positions, since, self.uncommitted)

    def open_plans(self) -> list[Plan]:
        return [each for _, each in self.plans]

    def cleanable(self, keep: int, *, versions: bool) -> set[str]:
        if versions:
            return by_versions(self.rows, self.open_plans(), self.kept(), keep)
        horizon = self.changes[-keep][0] if len(self.changes) >= keep else 0
        return by_commits(self.rows, self.open_plans(), self.kept(), horizon)

    def is_readable(self, position: int) -> bool:
        kept = {*self.saved, *(each for each, _ in self.leases.values())}
        return position >= self.oldest or position in kept

    def live(self) -> list[Row]:
        return [each for each in self.rows if each.removed is None]

    # --- steps ------------------------------------------------------------------------------------------------

    def change(self, instant: Instant, added: list[DataFile], gone: set[str]) -> None:
        """A completion has added files, and others are gone by it."""
        self.position += 1
        for row in self.live():
            if row.path in gone:
                row.removed = self.position
        for each in added:
            group = each.partition or "", each.fileGroup or ""
            self.rows.append(Row(each.path or "", group, each.slice or "", self.position))
            self.sizes[each.path or ""] = each
        assert instant.position == self.position
        self.changes.append((self.position, instant))

    def superseded(self, added: list[DataFile]) -> set[str]:
        slices = {(each.partition or "", each.fileGroup or ""): each.slice or "" for each in added}
        return {each.path for each in self.live() if each.slice < slices.get(each.group, "")}

    def commit(self) -> None:
        begun = self.table.begin()
        chosen = self.random.sample(GROUPS, self.random.randint(1, 2))
        added = [file(*each, begun.timestamp or "") for each in chosen]
        try:
            done = self.table.complete(begun, *added).instant
        except InvalidOperationException as error:  # a plan that was completed late has opened a later slice
            assert "later slice" in str(error)
            self.table.metastore.timeline.delete(self.table.reference, begun.timestamp, "commit")
            return
        assert done is not None
        self.change(done, added, self.superseded(added))

    def append(self) -> None:
        bases = [each for each in self.live() if each.path.endswith(".parquet") and each.group in GROUPS]
        if not bases:
            return
        base = self.random.choice(bases)
        logs = [each for each in self.live() if (each.group, each.slice) == (base.group, base.slice) and each != base]
        if logs and self.random.random() < 0.5:
            old = self.sizes[self.random.choice(logs).path]
            added, gone = old.replace(size=(old.size or 0) + 1), {old.path or ""}
        else:
            added, gone = file(*base.group, base.slice, kind="log", version=self.position), set()
        done = self.other.complete(self.other.begin("deltacommit"), added).instant
        assert done is not None
        self.change(done, [added], gone)

    def plan(self) -> None:
        chosen = self.random.sample(GROUPS, self.random.randint(1, 2))
        action = self.random.choice(["compaction", "clustering"])
        groups = [self.table.group(name, partition) for partition, name in chosen]
        begun = self.table.begin(action, state="requested", plan=groups)
        self.plans.append((begun, Plan(self.position, chosen)))

    def end_plan(self) -> None:
        if not self.plans:
            return
        begun, plan = self.plans.pop(self.random.randrange(len(self.plans)))
        stamp, action, timeline = begun.timestamp or "", begun.action or "", self.table.metastore.timeline
        inputs = {each.path for each in self.rows if each.group in plan.groups and each.is_in(plan.read)}
        timeline.transition(self.table.reference, stamp, action, "inflight", None, runner="me")
        if action == "compaction":
            added = [file(*each, stamp) for each in plan.groups if any(row.group == each for row in self.live())]
            gone, request = self.superseded(added), {}
        else:
            added, gone = [file(plan.groups[0][0], f"n{stamp}", stamp)], inputs  # type: ignore[index]
            request = {"removedPaths": sorted(inputs)}
        try:
            if not added or self.random.random() < 0.3:
                raise InvalidOperationException("given up")
            done = self.table.complete(begun, *added, **request).instant
        except (InstantConflict, InvalidOperationException):
            timeline.delete(self.table.reference, stamp, action)
            return
        assert done is not None
        self.change(done, added, gone)

    def roll_back(self) -> None:
        count = self.random.choice([1, 1, 2])
        undone = self.changes[-count:]
        if len(undone) < count:
            return
        back_to = undone[0][0] - 1
        begun = self.table.begin("rollback")
        keys = [InstantKey(each.timestamp, each.action) for _, each in undone]
        refused = back_to < self.oldest and back_to not in self.saved
        try:
            self.table.complete(begun, rolledBack=keys)
        except InvalidOperationException as error:
            assert "have been cleaned" in str(error)
            assert refused
            self.table.metastore.timeline.delete(self.table.reference, begun.timestamp, "rollback")
            return
        assert not refused
        self.position += 1
        before = [each for each in self.rows if each.is_in(back_to) and each.removed is not None]
        for row in self.live():
            if row.added > back_to:
                row.removed = self.position
        self.rows += [Row(each.path, each.group, each.slice, self.position) for each in before]
        del self.changes[-count:]

    def save(self) -> None:
        chosen = self.changes[-3:]
        if not chosen:
            return
        position, instant = self.random.choice(chosen)
        if position in self.saved:
            return
        try:
            begun = self.table.begin("savepoint", instant.timestamp)
        except InvalidOperationException:
            assert position < self.oldest
            return
        assert position >= self.oldest
        self.table.complete(begun)
        self.position += 1
        self.saved[position] = instant.timestamp or ""

    def forget_savepoint(self) -> None:
        if self.saved:
            position = self.random.choice(sorted(self.saved))
            self.table.metastore.timeline.delete(self.table.reference, self.saved.pop(position), "savepoint")

    def turn(self) -> None:
        partition = self.random.choice(sorted({each.group[0] for each in self.rows}) or [""])
        if not any(each.group[0] == partition for each in self.live()):
            return
        states = self.table.metastore.partition_states
        if partition in self.uncommitted:
            states.commit(self.table.reference, [partition], None, "me")
        else:
            states.reopen(self.table.reference, [partition], None)
        self.uncommitted ^= {partition}
        self.turned = True
        self.position += 1

    def lease(self) -> None:
        reader, onwards = self.random.choice(READERS), self.random.random() < 0.4
        position = max(0, self.position - self.random.randint(0, 5))
        granted = position >= self.oldest if onwards else self.is_readable(position)
        try:
            request = LeaseRequest(self.table.reference, reader, position, 600, onwards=onwards)
            self.other.metastore.reader_leases.take(request)
        except SnapshotGone:
            assert not granted
            return
        assert granted
        self.leases[reader] = position, onwards

    def release(self) -> None:
        reader = self.random.choice(READERS)
        self.other.metastore.reader_leases.release(self.table.reference, reader)
        self.leases.pop(reader, None)

    def clean(self) -> None:
        keep, versions = self.random.randint(1, 3), self.random.random() < 0.4
        expected = self.cleanable(keep, versions=versions)
        planned = self.table.clean_plan(**{"keepVersions" if versions else "keepCommits": keep})
        assert set(planned) == expected
        superseded = sorted({each.path for each in self.rows if each.removed is not None})
        if superseded and self.random.random() < 0.5:  # by a service that is wrong, or has planned long ago
            planned = self.random.sample(superseded, self.random.randint(1, min(3, len(superseded))))
        if not planned:
            return
        found, may = may_delete(self.rows, self.open_plans(), self.kept(), planned)
        self.cleans[may] += 1
        begun = self.other.begin("clean")
        try:
            self.other.complete(begun, cleanedPaths=planned)
        except InvalidOperationException as error:
            assert "plan the clean again" in str(error)
            assert not may
            self.other.metastore.timeline.delete(self.table.reference, begun.timestamp, "clean")
            return
        assert may
        gone = {id(each) for each in found}
        self.position += 1
        self.oldest = max(self.oldest, *(each.removed or 0 for each in found))
        self.rows = [each for each in self.rows if id(each) not in gone]

    def compare(self) -> None:
        known = self.table.metastore.timeline_queries.position(self.table.reference)
        assert (known.position, known.oldestReadable or 0) == (self.position, self.oldest)
        ready = [each for each in self.rows if each.group[0] not in self.uncommitted]
        assert set(self.table.paths()) == {each.path for each in ready if each.removed is None}
        position = self.random.randint(0, self.position)
        if not self.turned and self.is_readable(position):
            shown = set(self.other.paths(asOfPosition=position))
            assert shown == {each.path for each in self.rows if each.is_in(position)}

    def run(self) -> dict[bool, int]:
        steps = [self.commit] * 7 + [self.append] * 3 + [self.plan] * 4 + [self.end_plan] * 2 + [self.roll_back] * 3
        steps += [self.save] * 2 + [self.forget_savepoint, self.turn] + [self.lease] * 4 + [self.release] * 2
        steps += [self.clean] * 8
        for _ in range(STEPS):
            self.random.choice(steps)()
            self.compare()
        return self.cleans


def run(pair: tuple[Metastore, Metastore], count: int, first: int = 0) -> tuple[int, int]:
    """So many histories. Returns how many cleans went through, and how many were refused."""
    done = refused = 0
    for seed in range(first, first + count):
        try:
            cleans = History(pair, Random(seed)).run()
        except Exception as error:
            raise AssertionError(f"history {seed}") from error
        done += cleans[True]
        refused += cleans[False]
    return done, refused


def test_some_histories(pair: tuple[Metastore, Metastore]) -> None:
    done, refused = run(pair, 8)
    assert done > 3
    assert refused > 3


@pytest.mark.long
@pytest.mark.timeout(0)
def test_thousands_of_histories(pair: tuple[Metastore, Metastore], capsys: pytest.CaptureFixture[str]) -> None:
    count = share_of(3_000)
    done, refused = run(pair, count, 1_000)
    with capsys.disabled():
        print(f"\n{count:,} histories: {done:,} cleans deleted files, {refused:,} were refused, as the rules say")
