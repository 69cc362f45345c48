"""Cleans beside readers' leases, savepoints, plans and rollbacks, in any order, against a model.

Whatever somebody may still read is there: the latest snapshot, those under a lease or a savepoint, and what a pending
plan is to rewrite.
"""

import itertools

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import Instant, InstantConflict, InstantKey, LeaseRequest, SnapshotGone
from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.support import builders
from tests.support.long_runs import share_of

GROUPS = ["a", "b"]
READERS = ["one", "two"]


class Cleans(RuleBasedStateMachine):
    """Set `pair` before it runs."""

    pair: tuple[Metastore, Metastore]
    numbers = itertools.count(1)

    def __init__(self) -> None:
        super().__init__()
        db = f"cleans{next(self.numbers)}"
        self.pair[0].databases.create(builders.database(db))
        self.table = LakeTable(self.pair[0], db)
        self.other = self.table.on(self.pair[1])
        self.snapshots: list[frozenset[str]] = [frozenset()]
        self.completed: list[Instant | None] = [None]
        self.leases: dict[str, tuple[int, bool]] = {}
        self.savepoints: dict[int, str] = {}
        self.plans: list[tuple[Instant, frozenset[str]]] = []
        self.deleted: set[str] = set()

    @property
    def position(self) -> int:
        return len(self.snapshots) - 1

    def kept_positions(self) -> set[int]:
        """The positions whose snapshots must be readable."""
        found = {self.position, *self.savepoints}
        for position, onwards in self.leases.values():
            found.update(range(position, self.position + 1) if onwards else [position])
        return found

    def needed(self) -> set[str]:
        """The files that nobody may delete."""
        found = set().union(*(self.snapshots[each] for each in self.kept_positions()))
        return found.union(*(files for _, files in self.plans))

    def note(self, instant: Instant | None) -> None:
        self.snapshots.append(frozenset(self.table.paths()))
        self.completed.append(instant)
        assert self.table.metastore.timeline_queries.position(self.table.reference).position == self.position

    @rule(groups=st.lists(st.sampled_from(GROUPS), min_size=1, max_size=2, unique=True))
    def commit(self, groups: list[str]) -> None:
        try:
            self.note(self.table.commit(*groups).instant)
        except InvalidOperationException as error:  # a plan that is completed late has opened a later slice
            assert "later slice" in str(error)

    @rule(group=st.sampled_from(GROUPS))
    def plan(self, group: str) -> None:
        files = frozenset(each for each in self.snapshots[-1] if f"/{group}_" in each)
        begun = self.table.begin("clustering", state="requested", plan=[self.table.group(group)])
        self.plans.append((begun, files))

    @precondition(lambda self: self.plans)
    @rule(which=st.integers(0, 9), aborts=st.booleans())
    def end_plan(self, which: int, aborts: bool) -> None:
        begun, files = self.plans[which % len(self.plans)]
        timeline = self.table.metastore.timeline
        if aborts or not files or not files <= self.snapshots[-1]:
            timeline.delete(self.table.reference, begun.timestamp, "clustering")
        else:
            timeline.transition(self.table.reference, begun.timestamp, "clustering", "inflight", None, runner="me")
            new = file(DAY(1), f"n{begun.timestamp}", begun.timestamp or "")
            try:
                done = self.table.complete(begun, new, removedPaths=sorted(files))
                self.note(done.instant)
            except (InstantConflict, InvalidOperationException):
                timeline.delete(self.table.reference, begun.timestamp, "clustering")
        self.plans.remove((begun, files))

    @rule(reader=st.sampled_from(READERS), back=st.integers(0, 5), onwards=st.booleans())
    def lease(self, reader: str, back: int, onwards: bool) -> None:
        position = max(0, self.position - back)
        request = LeaseRequest(self.table.reference, reader, position, 600, onwards=onwards)
        try:
            self.other.metastore.reader_leases.take(request)
        except SnapshotGone:
            assert position < self.position
            assert not self.kept_positions().issuperset(range(position, self.position + 1) if onwards else [position])
        else:
            assert not self.snapshots[position] & self.deleted
            self.leases[reader] = position, onwards

    @rule(reader=st.sampled_from(READERS))
    def release(self, reader: str) -> None:
        self.other.metastore.reader_leases.release(self.table.reference, reader)
        self.leases.pop(reader, None)

    @precondition(lambda self: self.completed[-1] is not None and self.completed[-1].action == "commit")
    @rule()
    def save(self) -> None:
        last, position = self.completed[-1], self.position
        assert last is not None
        self.table.complete(self.table.begin("savepoint", last.timestamp))
        self.savepoints[position] = last.timestamp or ""
        self.note(None)

    @precondition(lambda self: self.savepoints)
    @rule()
    def forget_savepoint(self) -> None:
        position = min(self.savepoints)
        self.table.metastore.timeline.delete(self.table.reference, self.savepoints.pop(position), "savepoint")

    @precondition(lambda self: self.completed[-1] is not None and self.position - 1 not in self.savepoints)
    @rule()
    def roll_back(self) -> None:
        last = self.completed[-1]
        assert last is not None
        begun = self.table.begin("rollback")
        try:
            self.table.complete(begun, rolledBack=[InstantKey(last.timestamp, last.action)])
        except InvalidOperationException:  # files of the snapshot before have been cleaned, or a savepoint has it
            self.table.metastore.timeline.delete(self.table.reference, begun.timestamp, "rollback")
            return
        self.note(None)

    @rule(keep=st.integers(1, 2), by_versions=st.booleans(), commits=st.integers(0, 2))
    def clean(self, keep: int, by_versions: bool, commits: int) -> None:
        for _ in range(commits):
            self.commit(GROUPS)
        paths = self.table.clean_plan(**{"keepVersions" if by_versions else "keepCommits": keep})
        assert not set(paths) & self.needed()
        if paths:
            self.other.clean(paths)
            self.deleted |= set(paths)
            self.note(None)

    @rule(position=st.integers(0, 100), commits=st.booleans())
    def clean_what_somebody_may_need(self, position: int, commits: bool) -> None:
        """By a service with a stale plan, or one that is wrong: the server alone decides."""
        asked = [*sorted(self.kept_positions()), position % len(self.snapshots)]
        if commits:
            self.commit(GROUPS)
        found = self.snapshots[asked[position % len(asked)]]
        if position % 2 and self.plans:
            found = self.plans[0][1]
        paths = sorted(found - self.deleted)
        if not paths:
            return
        begun = self.other.begin("clean")
        try:
            self.other.complete(begun, cleanedPaths=paths)
        except InvalidOperationException:
            assert set(paths) & self.needed()
            self.table.metastore.timeline.delete(self.table.reference, begun.timestamp, "clean")
        else:
            assert not set(paths) & self.needed()
            self.deleted |= set(paths)
            self.note(None)

    @invariant()
    def what_is_needed_is_there(self) -> None:
        assert not self.needed() & self.deleted
        for position in self.kept_positions():
            assert frozenset(self.table.paths(asOfPosition=position)) == self.snapshots[position]


def run(pair: tuple[Metastore, Metastore], examples: int, steps: int) -> None:
    Cleans.pair = pair
    run_state_machine_as_test(
        Cleans,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        ),
    )


def test_cleans_delete_nothing_that_is_needed(pair: tuple[Metastore, Metastore]) -> None:
    run(pair, examples=6, steps=15)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_many_cleans_delete_nothing_that_is_needed(pair: tuple[Metastore, Metastore]) -> None:
    steps = share_of(50_000)
    run(pair, examples=max(1, steps // 50), steps=50)
