"""Readiness is versioned: a position shows the partitions that were ready there, and a change of it is a change."""

import random
import threading

import pytest

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import InstantKey
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import DAY, LakeTable
from tests.support import builders

MANUAL = {"partition.commit.mode": "manual"}


@pytest.fixture
def manual(metastore: Metastore, db: str) -> LakeTable:
    """A table whose partitions turn ready by hand."""
    return LakeTable(metastore, db, parameters=MANUAL)


def commit(table: LakeTable, *days: int) -> None:
    table.metastore.partition_states.commit(table.reference, [DAY(each) for each in days], None, None)


def reopen(table: LakeTable, *days: int) -> None:
    table.metastore.partition_states.reopen(table.reference, [DAY(each) for each in days], None)


def changes(table: LakeTable, after: int, up_to: int | None = None) -> list[tuple[str, int, int]]:
    """The changes as (action, files that came, files that went), without those of nothing."""
    found = table.changes(after, up_to).changes or ()
    counted = [(str(each.instant.action), len(each.added or ()), len(each.removed or ())) for each in found]
    return [each for each in counted if each[1:] != (0, 0)]


def test_a_position_shows_what_was_ready_then(manual: LakeTable) -> None:
    manual.commit("a", "b")
    commit(manual, 1)
    reopen(manual, 1)
    assert [len(manual.paths(asOfPosition=each)) for each in range(4)] == [0, 0, 2, 0]
    assert [len(manual.paths(asOfPosition=each, scope=Scope.UNCOMMITTED)) for each in range(4)] == [0, 2, 2, 2]
    assert [each.action for each in manual.instants()] == ["commit", "readiness", "readiness"]
    moments = [each.moment or 0 for each in manual.instants()]
    assert len(manual.paths(asOfMoment=moments[1])) == 2
    assert manual.paths(asOfMoment=moments[2]) == []


def test_turning_ready_brings_the_rows_and_reopening_takes_them(manual: LakeTable) -> None:
    manual.commit("a", "b")
    commit(manual, 1)
    manual.commit("c")
    reopen(manual, 1)
    manual.commit("d")
    assert changes(manual, 0) == [("readiness", 2, 0), ("commit", 1, 0), ("readiness", 0, 3)]
    assert changes(manual, 0, 1) == changes(manual, 4) == []
    assert changes(manual, 2, 3) == [("commit", 1, 0)]


def test_a_ready_partition_has_no_changes_of_readiness(table: LakeTable) -> None:
    table.commit("a")
    commit(table, 1)
    assert [each.action for each in table.instants()] == ["commit"]


def test_a_partition_without_files_has_no_instant(manual: LakeTable) -> None:
    manual.commit("a")
    manual.metastore.partitions.add(manual.db, "t", [builders.partition(manual.db, "t", "2026-01-02")], {})
    commit(manual, 2)
    assert len(manual.instants()) == 1
    manual.commit("a", partition=DAY(2))
    assert len(manual.paths()) == len(manual.paths(asOfPosition=2)) == 1


def test_by_an_alteration(manual: LakeTable) -> None:
    manual.commit("a")
    name, values = manual.name, ["2026-01-01"]
    for flag in ("true", "false"):
        value = manual.metastore.partition_reads.get(Scope.UNCOMMITTED, manual.db, name, values)
        changed = value.replace(parameters={**(value.parameters or {}), "commit": flag})
        changed.parameters.pop("commit.opened", None)
        manual.metastore.partitions.alter(manual.db, name, [changed], {})
    assert [len(manual.paths(asOfPosition=each)) for each in range(4)] == [0, 0, 1, 0]


def test_a_dropped_partition_comes_back_ready(metastore: Metastore, db: str) -> None:
    table = LakeTable(metastore, db, parameters=MANUAL)
    table.commit("a")
    metastore.partitions.drop(db, "t", name=DAY(1), delete_data=False)
    new = builders.partition(db, "t", "2026-01-01", parameters={"commit": "true"})
    metastore.partitions.add(db, "t", [new], {})
    table.commit("b")
    assert len(table.paths()) == 1
    assert [len(table.paths(asOfPosition=each)) for each in range(4)] == [0, 0, 0, 1]
    assert changes(table, 0) == [("commit", 1, 0)]


def test_a_partition_that_was_uncommitted_before_the_timeline_began(metastore: Metastore, db: str) -> None:
    table = LakeTable(metastore, db, parameters=MANUAL)
    metastore.partitions.add(db, "t", [builders.partition(db, "t", "2026-01-01")], {})
    table.commit("a")
    commit(table, 1)
    assert [len(table.paths(asOfPosition=each)) for each in range(3)] == [0, 0, 1]


def test_a_renamed_partition_stays_uncommitted(metastore: Metastore, db: str) -> None:
    table = LakeTable(metastore, db, parameters=MANUAL)
    table.commit("a", partition=DAY(2))
    metastore.partitions.add(db, "t", [builders.partition(db, "t", "2026-01-01")], {})
    renamed = builders.partition(db, "t", "2026-01-03")
    metastore.partitions.rename(db, "t", ["2026-01-01"], renamed, {})
    table.commit("a", partition=DAY(3))
    table.commit("a", partition=DAY(1))
    assert table.paths() == table.paths(asOfPosition=3) == []
    commit(table, 3)
    assert len(table.paths()) == 1


def test_nobody_begins_or_undoes_a_change_of_readiness(manual: LakeTable) -> None:
    manual.commit("a")
    commit(manual, 1)
    turned = manual.instants()[-1]
    with pytest.raises(InvalidOperationException, match="nobody begins a readiness"):
        manual.begin("readiness")
    with pytest.raises(InvalidOperationException, match="commit or reopen the partitions"):
        manual.metastore.timeline.delete(manual.reference, turned.timestamp, turned.action)
    with pytest.raises(InvalidOperationException, match="commit or reopen the partitions"):
        manual.complete(manual.begin("rollback"), rolledBack=[InstantKey(turned.timestamp, turned.action)])


def test_a_rollback_beyond_a_change_of_readiness(manual: LakeTable) -> None:
    manual.commit("a")
    wrong = manual.commit("b").instant
    assert wrong is not None
    commit(manual, 1)
    manual.complete(manual.begin("rollback"), rolledBack=[InstantKey(wrong.timestamp, wrong.action)])
    assert [len(manual.paths(asOfPosition=each)) for each in range(5)] == [0, 0, 0, 2, 1]
    assert changes(manual, 0) == [("readiness", 2, 0), ("rollback", 0, 1)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(6))
def test_what_was_read_can_be_read_again(pair: tuple[Metastore, Metastore], db: str, seed: int) -> None:
    """Random writes, changes of readiness and drops: reads of each position repeat, and changes lead to it."""
    chance = random.Random(seed)
    table = LakeTable(pair[0], db, parameters=MANUAL)
    reads: dict[int, set[str]] = {0: set()}
    for _ in range(20):
        day = chance.randint(1, 2)
        there = {*table.hive_partitions()}
        match chance.choice(["write", "write", "replace", "commit", "reopen", "drop"]):
            case "write":
                table.commit(f"g{chance.randint(1, 3)}", partition=DAY(day))
            case "replace":
                table.complete(table.begin("replacecommit"), replacedPartitions=[DAY(day)])
            case "commit" if DAY(day) in there:
                commit(table, day)
            case "reopen" if DAY(day) in there:
                reopen(table, day)
            case "drop" if DAY(day) in there and chance.random() < 0.3:
                pair[0].partitions.drop(db, "t", name=DAY(day), delete_data=False)
        now = table.snapshot()
        reads[now.position or 0] = {each.path or "" for each in now.files or ()}
    for position, paths in reads.items():
        assert {*table.paths(asOfPosition=position)} == paths
    for after in reads:
        for up_to in (each for each in reads if each >= after):
            seen = set(reads[after])
            for change in table.changes(after, up_to).changes or ():
                seen -= {each.path or "" for each in change.removed or ()}
                seen |= {each.path or "" for each in change.added or ()}
            assert seen == reads[up_to]


def test_completions_and_changes_of_readiness_at_once(pair: tuple[Metastore, Metastore], db: str) -> None:
    """They don't wait for each other in a circle, and none is lost."""
    table = LakeTable(pair[0], db, parameters=MANUAL)
    table.commit("a")
    failures: list[Exception] = []

    def write(on: LakeTable, name: str) -> None:
        for number in range(10):
            on.commit(f"{name}{number}")

    def turn(on: LakeTable) -> None:
        for _ in range(10):
            commit(on, 1)
            reopen(on, 1)

    def guarded(work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except Exception as error:
            failures.append(error)

    both = table, table.on(pair[1])
    threads = [threading.Thread(target=guarded, args=(write, on, name)) for on, name in zip(both, "xy", strict=True)]
    threads += [threading.Thread(target=guarded, args=(turn, on)) for on in both]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
    assert not failures
    assert len(table.paths(scope=Scope.UNCOMMITTED)) == 21
    positions = sorted(each.position or 0 for each in table.instants(includeArchived=True))
    assert positions == list(range(1, len(positions) + 1))
