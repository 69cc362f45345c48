"""A timeline against a model of it that is a dictionary: whatever writers do in whatever order, by two servers.

The model replays completions one after another, each against the snapshot before it. No update may get lost, no
refused completion may leave anything, and every earlier snapshot must read as it was until it is cleaned, and then say
so.
"""

from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import DataFile, Instant, InstantConflict, InstantKey, SnapshotGone
from metastore.services.instant_rules.conflicts import Strategy
from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.support import builders

PARTITIONS = [DAY(1), DAY(2)]
GROUPS = ["a", "b"]

Snapshot = dict[tuple[str, str], str]
"""The path of each file group, by (partition, file group)."""


@dataclass
class Writer:
    """An instant under way: what it read, and what it is going to do."""

    begun: Instant
    server: int
    groups: list[tuple[str, str]] = field(default_factory=list)
    overwrites: list[str] = field(default_factory=list)
    strategy: Strategy = Strategy.FILE_GROUP
    read: int = 0

    def changed_groups(self) -> set[tuple[str, str | None]]:
        return {*self.groups, *((each, None) for each in self.overwrites)}


def in_the_way(strategy: Strategy, mine: set[tuple[str, str | None]], theirs: set[tuple[str, str | None]]) -> bool:
    """The rule of conflicts, said once more as plainly as can be."""
    if strategy is Strategy.TABLE:
        return bool(mine and theirs)
    for partition, group in mine:
        for other_partition, other_group in theirs:
            if partition != other_partition:
                continue
            if strategy is Strategy.PARTITION or group is None or other_group is None or group == other_group:
                return True
    return False


class Timelines(RuleBasedStateMachine):
    """Set `pair` before it runs."""

    pair: tuple[Metastore, Metastore]
    numbers = iter(range(1_000_000))

    writers = Bundle("writers")

    def __init__(self) -> None:
        super().__init__()
        db = f"model{next(self.numbers)}"
        self.pair[0].databases.create(builders.database(db))
        table = LakeTable(self.pair[0], db)
        self.tables = [table, table.on(self.pair[1])]
        self.history: list[Snapshot] = [{}]
        self.touched: list[set[tuple[str, str | None]]] = [set()]
        self.completed: list[Instant | None] = [None]
        self.timestamps: list[str] = []
        self.undone: set[int] = set()
        self.oldest = 0

    @property
    def position(self) -> int:
        return len(self.history) - 1

    @rule(
        target=writers,
        server=st.integers(0, 1),
        groups=st.lists(st.tuples(st.sampled_from(PARTITIONS), st.sampled_from(GROUPS)), unique=True, max_size=2),
        overwrites=st.lists(st.sampled_from(PARTITIONS), unique=True, max_size=1),
        strategy=st.sampled_from([Strategy.TABLE, Strategy.PARTITION, Strategy.FILE_GROUP, Strategy.COLUMN]),
    )
    def begin(self, server: int, groups: list[tuple[str, str]], overwrites: list[str], strategy: Strategy) -> Writer:
        begun = self.tables[server].begin()
        assert (begun.timestamp or "") > max(self.timestamps, default="")
        self.timestamps.append(begun.timestamp or "")
        assert begun.readPosition == self.position
        return Writer(begun, server, groups, overwrites, strategy, self.position)

    @rule(writer=consumes(writers), twice=st.booleans())
    def complete(self, writer: Writer, twice: bool) -> None:
        added = [self.file_of(writer, *each) for each in writer.groups]
        paths = {(each.partition or "", each.fileGroup or ""): each.path or "" for each in added}
        request = self.tables[writer.server].request(
            writer.begun, *added, replacedPartitions=writer.overwrites or None, strategy=writer.strategy
        )
        service = self.pair[writer.server].instant_completion
        mine = writer.changed_groups()
        since = range(writer.read + 1, self.position + 1)
        if any(in_the_way(writer.strategy, mine, self.touched[each]) for each in since):
            with pytest.raises(InstantConflict):
                service.complete([request])
            self.tables[writer.server].metastore.timeline.delete(
                self.tables[0].reference, writer.begun.timestamp, "commit"
            )
            return
        before = self.history[-1]
        stale = any(
            each in before and self.slice_of(before[each]) >= (writer.begun.timestamp or "")
            for each in writer.groups
            if each[0] not in writer.overwrites
        )
        if stale:  # only a later slice may supersede
            with pytest.raises(InvalidOperationException, match="belongs to a later slice"):
                service.complete([request])
            return
        answer = service.complete([request])[0]
        if twice:
            other = self.pair[1 - writer.server].instant_completion
            assert other.complete([request])[0].repeated is True
        after = {each: path for each, path in before.items() if each[0] not in writer.overwrites} | paths
        self.append(after, mine, answer.instant)

    @rule(count=st.integers(1, 2))
    def roll_back(self, count: int) -> None:
        """Undoes the latest completions, if there are so many that haven't been undone and changed something."""
        latest = [
            each
            for each in range(1, self.position + 1)
            if each not in self.undone and self.completed[each] is not None and self.touched[each] is not None
        ][-count:]
        if len(latest) < count:
            return
        back_to = latest[0] - 1
        begun = self.tables[0].begin("restore")
        self.timestamps.append(begun.timestamp or "")
        keys = [InstantKey(self.completed[each].timestamp, self.completed[each].action) for each in latest]  # type: ignore[union-attr]
        request = self.tables[0].request(begun, rolledBack=keys)
        others = [
            each
            for each in range(back_to + 1, self.position + 1)
            if each not in latest and each not in self.undone and self.completed[each] is not None
        ]
        assert others == []
        if back_to < self.oldest:
            with pytest.raises(InvalidOperationException, match="have been cleaned"):
                self.pair[0].instant_completion.complete([request])
            return
        answer = self.pair[0].instant_completion.complete([request])[0]
        target = self.history[back_to]
        changed = {key for key in {*target, *self.history[-1]} if target.get(key) != self.history[-1].get(key)}
        self.undone |= set(latest)
        self.append(dict(target), set(changed), answer.instant)

    @rule(keep=st.integers(1, 4))
    def clean(self, keep: int) -> None:
        plan = self.tables[1].clean_plan(keepCommits=keep)
        files = set().union(*(each.values() for each in self.history))
        assert set(plan) <= files - set(self.history[-1].values())
        answer = self.tables[1].clean(plan)
        self.append(dict(self.history[-1]), set(), None)
        self.timestamps.append(answer.instant.completionTime or "")  # type: ignore[union-attr]
        self.oldest = self.tables[0].metastore.timeline_queries.position(self.tables[0].reference).oldestReadable or 0
        for at, snapshot in enumerate(self.history):
            if set(snapshot.values()) & set(plan):
                assert at < self.oldest

    @rule(at=st.floats(0, 1), server=st.integers(0, 1))
    def read_as_of(self, at: float, server: int) -> None:
        position = round(at * self.position)
        if position < self.oldest:
            with pytest.raises(SnapshotGone):
                self.tables[server].paths(asOfPosition=position)
        else:
            assert set(self.tables[server].paths(asOfPosition=position)) == set(self.history[position].values())

    @rule(one=st.floats(0, 1), two=st.floats(0, 1))
    def read_changes(self, one: float, two: float) -> None:
        start, end = sorted((round(one * self.position), round(two * self.position)))
        if start < self.oldest:
            return
        files = set(self.history[start].values())
        for each in self.tables[0].changes(start, end).changes or ():
            files -= {gone.path or "" for gone in each.removed or ()}
            files |= {come.path or "" for come in each.added or ()}
        assert files == set(self.history[end].values())

    @invariant()
    def the_latest_is_what_it_should_be(self) -> None:
        answer = self.tables[self.position % 2].snapshot()
        assert answer.position == self.position
        assert {each.path for each in answer.files or ()} == set(self.history[-1].values())
        counts = {name: int(each["numFiles"]) for name, each in self.tables[0].hive_partitions().items()}
        expected = {name: sum(key[0] == name for key in self.history[-1]) for name in PARTITIONS}
        assert {name: count for name, count in counts.items() if count} == {n: c for n, c in expected.items() if c}

    def append(self, after: Snapshot, touched: set[tuple[str, str | None]], instant: Instant | None) -> None:
        self.history.append(after)
        self.touched.append(touched)
        self.completed.append(instant)
        if instant is not None:
            assert (instant.completionTime or "") > max(self.timestamps, default="")
            self.timestamps.append(instant.completionTime or "")
            assert instant.position == self.position

    @staticmethod
    def file_of(writer: Writer, partition: str, group: str) -> DataFile:
        return file(partition, group, writer.begun.timestamp or "")

    @staticmethod
    def slice_of(path: str) -> str:
        return path.rsplit("_", 1)[1].removesuffix(".parquet")


def run(pair: tuple[Metastore, Metastore], examples: int, steps: int, *, always_the_same: bool) -> None:
    Timelines.pair = pair
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Timelines,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            derandomize=always_the_same,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_few_histories(pair: tuple[Metastore, Metastore]) -> None:
    run(pair, 6, 20, always_the_same=True)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_many_histories(pair: tuple[Metastore, Metastore]) -> None:
    run(pair, 300, 40, always_the_same=False)
