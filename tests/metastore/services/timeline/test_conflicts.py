"""Two writers in each other's way: who comes second has lost, and nothing of it is seen."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from lake.protocol.hive import InvalidOperationException, MetaException
from lake.protocol.lake import Instant, InstantConflict, InstantKey
from metastore.services.instant_rules.conflicts import PROPERTY, Strategy, overlap
from metastore.services.wiring import Metastore
from metastore.store.timeline.instants import ChangedGroup
from tests.metastore.services.timeline.lake import DAY, LakeTable, file

TABLE, PARTITION, GROUP, COLUMN = Strategy


def race(table: LakeTable) -> tuple[Instant, Instant]:
    """Two commits that have read the same."""
    table.commit("a", "b")
    table.commit("c", partition=DAY(2))
    return table.begin(), table.begin()


@pytest.mark.parametrize(
    ("strategy", "mine", "collides"),
    [
        (TABLE, (DAY(2), "new"), True),
        (PARTITION, (DAY(2), "new"), False),
        (PARTITION, (DAY(1), "new"), True),
        (GROUP, (DAY(1), "b"), False),
        (GROUP, (DAY(2), "a"), False),
        (GROUP, (DAY(1), "a"), True),
        (COLUMN, (DAY(1), "a"), True),
    ],
)
@pytest.mark.parametrize("by_property", [True, False])
def test_strategies(
    metastore: Metastore, db: str, strategy: Strategy, mine: tuple[str, str], collides: bool, by_property: bool
) -> None:
    table = LakeTable(metastore, db, parameters={PROPERTY: strategy} if by_property else {})
    winner, loser = race(table)
    table.complete(winner, file(DAY(1), "a", winner.timestamp or ""))
    request = table.request(loser, file(*mine, loser.timestamp or ""), strategy=None if by_property else strategy)
    before = table.kept()
    if not collides:
        metastore.instant_completion.complete([request])
        return
    with pytest.raises(InstantConflict) as caught:
        metastore.instant_completion.complete([request])
    assert [each.timestamp for each in caught.value.winners or ()] == [winner.timestamp]
    assert caught.value.filesToRemove == [each.path for each in request.added or ()]
    assert "begin a new instant" in (caught.value.message or "")
    assert table.kept() == before
    answer = next(each for each in table.instants() if each.timestamp == loser.timestamp)
    assert (answer.state, answer.conflict) == ("inflight", caught.value.message)
    table.metastore.timeline.delete(table.reference, loser.timestamp, loser.action)
    rejected = metastore.timeline_queries.rejected_commits(table.reference)[-1]
    assert (rejected.timestamp, rejected.action, rejected.winners) == (loser.timestamp, "commit", [3])
    assert rejected.reason == caught.value.message


def test_columns_that_differ_do_not_collide(metastore: Metastore, db: str) -> None:
    table = LakeTable(metastore, db, parameters={PROPERTY: "column"})
    one, two, three = table.begin(), table.begin(), table.begin()
    table.complete(one, file(DAY(1), "a", one.timestamp or "", columns=["id"]))
    table.complete(two, file(DAY(1), "a", two.timestamp or "", columns=["name"]))
    with pytest.raises(InstantConflict, match="columns id"):
        table.complete(three, file(DAY(1), "a", three.timestamp or "", columns=["ID", "other"]))
    assert len(table.paths()) == 2


def test_what_was_read_later_is_no_conflict(table: LakeTable) -> None:
    winner, late = race(table)
    done = table.complete(winner, file(DAY(1), "a", winner.timestamp or "")).instant
    assert done is not None
    added = file(DAY(1), "a", late.timestamp or "")
    with pytest.raises(InstantConflict):
        table.complete(late, added)
    table.complete(late, added, readPosition=done.position)
    assert table.paths()[0] == added.path
    answer = next(each for each in table.instants() if each.timestamp == late.timestamp)
    assert answer.conflict is None


def test_an_overwrite_collides_with_everything_in_its_partition(table: LakeTable) -> None:
    append, overwrite = race(table)
    table.complete(append, file(DAY(1), "new", append.timestamp or ""))
    with pytest.raises(InstantConflict, match=f"partition {DAY(1)}"):
        table.complete(overwrite, replacedPartitions=[DAY(1)])
    elsewhere = table.begin()
    table.complete(elsewhere, replacedPartitions=[DAY(2)])


@pytest.mark.parametrize(
    ("where", "collides"),
    [
        (None, False),
        ("", True),
        ("`dt`='2026-01-03'", True),
        ("(`DT`='x%2Fy' OR dt='2026-01-03') AND (dt='2026-01-03')", True),
        ("dt='2026-01-02'", False),
    ],
)
def test_an_overwrite_by_a_condition_collides_with_partitions_made_since(
    table: LakeTable, where: str | None, collides: bool
) -> None:
    append, overwrite = race(table)
    table.complete(append, file(DAY(3), "new", append.timestamp or ""))
    before = table.kept()
    if not collides:
        table.complete(overwrite, replacedPartitions=[DAY(2)], replacedWhere=where)
        return
    with pytest.raises(InstantConflict, match=f"partition {DAY(3)}"):
        table.complete(overwrite, replacedPartitions=[DAY(1), DAY(2)], replacedWhere=where)
    assert table.kept() == before
    table.complete(table.begin(), replacedPartitions=[DAY(1), DAY(2), DAY(3)], replacedWhere=where)
    assert table.paths() == []


def test_an_overwrite_of_an_empty_table_collides_with_its_first_rows(metastore: Metastore, db: str) -> None:
    for name, keys, partition in (("flat", (), ""), ("by_day", ("dt",), DAY(1))):
        table = LakeTable(metastore, db, name, keys=keys)
        overwrite = table.begin()
        table.commit("a", partition=partition)
        with pytest.raises(InstantConflict):
            table.complete(overwrite, replacedWhere="")
        assert len(table.paths()) == 1


def test_a_condition_that_is_none_is_refused(table: LakeTable) -> None:
    for where in ("dt", "hour='1'"):
        with pytest.raises(MetaException):
            table.complete(table.begin(), replacedPartitions=[DAY(1)], replacedWhere=where)


def test_who_takes_out_a_file_that_is_gone_by_then_has_lost(table: LakeTable) -> None:
    winner, loser = race(table)
    (path,) = [each for each in table.paths() if "/a_" in each]
    table.complete(winner, removedPaths=[path])
    with pytest.raises(InstantConflict, match="file group a"):
        table.complete(loser, removedPaths=[path])


def test_a_compaction_does_not_mind_the_logs_it_left_room_for(table: LakeTable) -> None:
    slice = table.commit("a").instant.timestamp or ""  # type: ignore[union-attr]
    compaction = table.begin("compaction", plan=[table.group("a")])
    later = compaction.timestamp or ""
    before, after, stale = (table.begin("deltacommit") for _ in range(3))
    table.complete(before, file(DAY(1), "a", later, kind="log", version=1))
    table.complete(compaction, file(DAY(1), "a", later), newAction="commit")
    # Its own log file overlaps with that of the other writer.
    with pytest.raises(InstantConflict):
        table.complete(after, file(DAY(1), "a", later, kind="log", version=2))
    only_compaction = table.begin("deltacommit", readPosition=2)
    table.complete(only_compaction, file(DAY(1), "a", later, kind="log", version=2))
    with pytest.raises(InstantConflict):
        table.complete(stale, file(DAY(1), "a", slice, kind="log", version=1))


def test_a_compaction_that_missed_a_log_file_has_lost(table: LakeTable) -> None:
    slice = table.commit("a").instant.timestamp or ""  # type: ignore[union-attr]
    compaction = table.begin("compaction", plan=[table.group("a")])
    table.complete(table.begin("deltacommit"), file(DAY(1), "a", slice, kind="log", version=1))
    with pytest.raises(InstantConflict):
        table.complete(compaction, file(DAY(1), "a", compaction.timestamp or ""))


def test_files_of_who_lost_go_with_its_instant(table: LakeTable) -> None:
    winner, loser = race(table)
    table.complete(winner, file(DAY(1), "a", winner.timestamp or ""))
    lost = table.directory / f"{DAY(1)}/a_{loser.timestamp}.parquet"
    lost.write_bytes(b"rows")
    kept = table.directory / table.paths()[0]
    kept.write_bytes(b"rows")
    with pytest.raises(InstantConflict):
        table.complete(loser, file(DAY(1), "a", loser.timestamp or ""))
    table.metastore.timeline_sweeper.sweep()
    table.delete_files()
    assert lost.exists()  # its writer may come again
    table.metastore.timeline.delete(table.reference, loser.timestamp, "commit")
    table.delete_files()
    assert not lost.exists()
    assert kept.exists()


def test_nobody_overtakes_a_restore(table: LakeTable) -> None:
    writer, _ = race(table)
    last = table.instants(states=["completed"])[-1]
    table.complete(table.begin("rollback"), rolledBack=[InstantKey(last.timestamp, last.action)])
    with pytest.raises(InstantConflict):
        table.complete(writer, file(DAY(2), "c", writer.timestamp or ""))


def test_of_several_tables_one_conflict_is_enough(metastore: Metastore, db: str) -> None:
    one, two = LakeTable(metastore, db, "one"), LakeTable(metastore, db, "two")
    for each in (one, two):
        each.commit("a")
    a, b = one.begin(), two.begin()
    two.commit("a")
    before = one.kept()
    with pytest.raises(InstantConflict, match=f"{db}.two"):
        metastore.instant_completion.complete(
            [
                one.request(a, file(DAY(1), "a", a.timestamp or "")),
                two.request(b, file(DAY(1), "a", b.timestamp or "")),
            ]
        )
    assert one.kept() == before


def test_of_many_writers_of_one_file_group_one_wins_each_round(
    pair: tuple[Metastore, Metastore], table: LakeTable
) -> None:
    """Each adds its row to what it read: no row may get lost."""
    first = table.commit("a").instant
    assert first is not None

    def add(number: int) -> int:
        mine = table.on(pair[number % 2])
        attempts = 0
        while True:
            attempts += 1
            begun = mine.begin()
            rows = (mine.snapshot(asOfPosition=begun.readPosition).files or ())[0].rows or 0
            try:
                mine.complete(begun, file(DAY(1), "a", begun.timestamp or "", rows=rows + 1))
            except (InstantConflict, InvalidOperationException):
                # Also that its slice is older than that of a commit which began later and was read: begin anew.
                mine.metastore.timeline.delete(mine.reference, begun.timestamp, "commit")
                continue
            return attempts

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(add, range(30)))
    assert [each.rows for each in table.snapshot().files or ()] == [40]
    assert table.hive_partitions()[DAY(1)]["numRows"] == "40"
    assert all(each.state == "completed" for each in table.instants())


def test_overlap_is_symmetric() -> None:
    columns = (None, frozenset({"a"}), frozenset({"b"}))
    groups = [
        ChangedGroup(partition, group, slice, logs_only, compacted, some)
        for partition, group, slice, some in itertools.product("pq", ("g", None), ("1", "2"), columns)
        for logs_only, compacted in ((False, False), (True, False), (False, True))
    ]
    for strategy, one, two in itertools.product(Strategy, groups, groups):
        assert overlap(strategy, [one], [two]) == overlap(strategy, [two], [one])
        if overlap(strategy, [one], [two]) and strategy is not TABLE:
            assert overlap(TABLE, [one], [two])
    assert overlap(TABLE, [], groups) == overlap(GROUP, groups, []) == []
    assert overlap(GROUP, [ChangedGroup("", "g")], [ChangedGroup("", "g")]) == ["the table file group g"]
