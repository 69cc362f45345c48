"""Rollbacks and restores: the snapshot is as it was, and what was is still there to be read."""

import pytest

from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import Instant, InstantConflict, InstantKey
from tests.metastore.services.timeline.lake import DAY, LakeTable, file


def keys(*some: Instant) -> list[InstantKey]:
    return [InstantKey(each.timestamp, each.action) for each in some]


def test_a_rollback_brings_the_files_back(table: LakeTable) -> None:
    table.commit("a", "b")
    before, sums = table.paths(), table.hive_partitions()
    overwrite = table.begin("replacecommit")
    at = overwrite.timestamp or ""
    table.complete(overwrite, file(DAY(1), "n", at), file(DAY(2), "m", at), replacedPartitions=[DAY(1)])
    after = table.paths()
    undone = table.complete(table.begin("rollback"), rolledBack=keys(overwrite)).instant
    assert undone is not None
    assert table.paths() == before
    assert table.hive_partitions()[DAY(1)] == sums[DAY(1)]
    assert table.hive_partitions()[DAY(2)]["numFiles"] == "0"
    assert table.paths(asOfPosition=2) == after
    assert table.keys() == [("commit", "completed"), ("rollback", "completed")]
    answer = next(each for each in table.instants(includeArchived=True) if each.timestamp == at)
    assert answer.undoneBy == undone.timestamp
    with pytest.raises(InvalidOperationException, match="savepoint needs"):
        table.begin("savepoint", at)


def test_a_restore_goes_back_over_several(table: LakeTable) -> None:
    table.commit("a")
    before = table.paths()
    later = [table.commit("a").instant, table.commit("b").instant, table.commit("a", "c").instant]
    instants = [each for each in later if each is not None]
    with pytest.raises(InvalidOperationException, match="undo it, too"):
        table.complete(table.begin("restore"), rolledBack=keys(instants[0]))
    restore = table.begin("restore")
    table.complete(restore, rolledBack=keys(*instants))
    assert table.paths() == before
    assert table.complete(restore, rolledBack=keys(*instants)).repeated is True
    # And back again: what was undone is not undone twice, but the restore is.
    table.complete(table.begin("restore"), rolledBack=keys(restore))
    assert len(table.paths()) == 3


def test_what_never_completed_is_given_up(table: LakeTable) -> None:
    table.commit("a")
    one, two = table.begin(), table.begin()
    table.complete(one, file(DAY(1), "a", one.timestamp or ""))
    with pytest.raises(InstantConflict):
        table.complete(two, file(DAY(1), "a", two.timestamp or ""))
    lost = table.directory / f"{DAY(1)}/a_{two.timestamp}.parquet"
    lost.write_bytes(b"rows")
    table.complete(table.begin("rollback"), rolledBack=keys(two))
    table.delete_files()
    assert not lost.exists()
    assert table.keys() == [("commit", "completed"), ("commit", "completed"), ("rollback", "completed")]


def test_what_can_not_be_undone(table: LakeTable) -> None:
    for _ in range(3):
        table.commit("a")
    table.clean(table.clean_plan(keepCommits=1))
    last = table.instants(actions=["commit"])[-1]
    with pytest.raises(InvalidOperationException, match="have been cleaned"):
        table.complete(table.begin("rollback"), rolledBack=keys(last))
    with pytest.raises(InvalidOperationException, match="changes only files of"):
        table.complete(table.begin("rollback"), file(DAY(1), "x", "1"), rolledBack=keys(last))
    with pytest.raises(NoSuchObjectException):
        table.complete(table.begin("rollback"), rolledBack=[InstantKey("x", "commit")])
