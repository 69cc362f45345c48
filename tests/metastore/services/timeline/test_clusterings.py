"""Clusterings rewrite files beside writers: no writer notices, and who lists directories finds each row once."""

import shutil

import pytest

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import DataFile, FileGroup, Instant, InstantConflict, InstantKey
from metastore.services.instant_rules.conflicts import PROPERTY, Strategy
from metastore.services.wiring import Metastore
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.metastore.services.timeline.test_instant_files import append, listed, named, put
from tests.metastore.services.timeline.test_keyed_tables import BUCKET, keyed
from tests.support.target import local_path


def cluster(table: LakeTable, begun: Instant, *groups: str, into: str = "big.parquet", **fields: object) -> None:
    """Completes a clustering of file groups of a partition; it brings the others along."""
    added, removed = [put(begun, DAY(1), into)], []
    for each in table.snapshot(partitions=[DAY(1)]).files or ():
        if each.fileGroup not in groups:
            added.append(kept(table, begun, each))
            removed.append(each.path)
    table.complete(
        begun,
        *added,
        removedGroups=[FileGroup(DAY(1), each) for each in groups],
        removedPaths=removed or None,
        relocate=True,
        newAction="replacecommit",
        **fields,
    )


def kept(table: LakeTable, begun: Instant, old: DataFile) -> DataFile:
    """A copy of a file in an instant's directory, of the same file group."""
    new = put(begun, DAY(1), (old.path or "").rpartition("/")[2])
    base = table.snapshot().location
    shutil.copyfile(local_path(f"{base}/{old.path}"), local_path(f"{base}/{new.path}"))
    return old.replace(path=new.path, addedAt=None, removedAt=None, firstAddedAt=None)


def replace(table: LakeTable, begun: Instant, name: str) -> None:
    table.complete(begun, put(begun, DAY(1), name), replacedPartitions=[DAY(1)], relocate=True)


def test_directories_have_the_rows_of_the_snapshot(table: LakeTable) -> None:
    """Also those of files that aren't rewritten, and of appends before, while and after it runs."""
    append(table, DAY(1), "a.parquet", "b.parquet", "large.parquet")
    begun = table.begin("clustering", plan=[table.group("a.parquet"), table.group("b.parquet")])
    append(table, DAY(1), "meanwhile.parquet")
    read = table.snapshot().position
    cluster(table, begun, "a.parquet", "b.parquet", readPosition=read)
    files = {"big.parquet", "large.parquet", "meanwhile.parquet"}
    assert named(table) == listed(table) == {DAY(1): files}
    assert named(table, asOfPosition=read) == {DAY(1): {"a.parquet", "b.parquet", "large.parquet", "meanwhile.parquet"}}
    assert table.hive_partitions()[DAY(1)]["numFiles"] == "3"
    append(table, DAY(1), "later.parquet")
    assert named(table) == listed(table) == {DAY(1): {*files, "later.parquet"}}


def test_no_file_is_left_behind(table: LakeTable) -> None:
    append(table, DAY(1), "a.parquet")
    begun = table.begin("clustering")
    rewritten = put(begun, DAY(1), "big.parquet")
    append(table, DAY(1), "meanwhile.parquet")
    before = table.kept()
    with pytest.raises(InvalidOperationException, match=r"meanwhile\.parquet' would not be in the new directory"):
        table.complete(begun, rewritten, removedGroups=[table.group("a.parquet")], relocate=True)
    assert table.kept() == before
    cluster(table, begun, "a.parquet", into="big.parquet", readPosition=2)
    assert named(table) == listed(table) == {DAY(1): {"big.parquet", "meanwhile.parquet"}}


@pytest.mark.parametrize("strategy", Strategy)
def test_no_writer_is_refused(metastore: Metastore, db: str, strategy: Strategy) -> None:
    """One that adds rows, or replaces all, or changes a file group that the clustering only moved."""
    table = LakeTable(metastore, db, parameters={PROPERTY: strategy})
    append(table, DAY(1), "a.parquet", "b.parquet", "large.parquet")
    changes = table.begin()
    replaces, replaces_more = table.begin("replacecommit"), table.begin("replacecommit")
    cluster(table, table.begin("clustering"), "a.parquet", "b.parquet")
    if strategy in (Strategy.FILE_GROUP, Strategy.COLUMN):
        table.complete(changes, file(DAY(1), "large.parquet", changes.timestamp or ""))
        assert {"big.parquet", f"large.parquet_{changes.timestamp}.parquet"} == {
            each.rpartition("/")[2] for each in table.paths()
        }
        table.complete(table.begin("restore"), rolledBack=[InstantKey(changes.timestamp, "commit")])
        replaces = table.begin("replacecommit")  # that one did change rows
    replace(table, replaces, "new.parquet")
    assert named(table) == listed(table) == {DAY(1): {"new.parquet"}}
    with pytest.raises(InstantConflict):
        replace(table, replaces_more, "newer.parquet")
    adds = table.begin()
    cluster(table, table.begin("clustering"), "new.parquet", into="last.parquet")
    table.complete(adds, put(adds, DAY(1), "more.parquet", staged=True))
    assert named(table) == listed(table) == {DAY(1): {"last.parquet", "more.parquet"}}


@pytest.mark.parametrize("strategy", Strategy)
def test_a_clustering_loses_to_who_changed_its_groups_only(metastore: Metastore, db: str, strategy: Strategy) -> None:
    table = LakeTable(metastore, db, parameters={PROPERTY: strategy})
    append(table, DAY(1), "a.parquet", "b.parquet")
    loses, loses_too, wins = (table.begin("clustering") for _ in range(3))
    cluster(table, wins, "a.parquet")
    with pytest.raises(InstantConflict, match="file group a"):
        table.complete(loses, put(loses, DAY(1), "c.parquet"), removedGroups=[table.group("a.parquet")], relocate=True)
    replace(table, table.begin("replacecommit"), "new.parquet")
    with pytest.raises(InstantConflict, match=f"partition {DAY(1)}"):
        table.complete(
            loses_too, put(loses_too, DAY(1), "c.parquet"), removedGroups=[table.group("b.parquet")], relocate=True
        )
    assert named(table) == listed(table) == {DAY(1): {"new.parquet"}}


def test_a_rollback_brings_the_directory_back(table: LakeTable) -> None:
    append(table, DAY(1), "a.parquet", "b.parquet", "large.parquet")
    begun = table.begin("clustering")
    cluster(table, begun, "a.parquet", "b.parquet")
    undone = InstantKey(begun.timestamp, "replacecommit")
    table.complete(table.begin("rollback"), rolledBack=[undone])
    assert named(table) == listed(table) == {DAY(1): {"a.parquet", "b.parquet", "large.parquet"}}


def test_a_replacement_is_not_hindered_by_compactions_either(metastore: Metastore, db: str) -> None:
    table = keyed(metastore, db)
    table.commit(BUCKET(0))
    replaces = table.begin("replacecommit")
    compaction = table.begin("compaction", plan=[table.group(BUCKET(0))])
    at = compaction.timestamp or ""
    table.complete(compaction, file(DAY(1), BUCKET(0), at), newAction="commit")
    new = file(DAY(1), BUCKET(0), replaces.timestamp or "", path="new.parquet")
    table.complete(replaces, new, replacedPartitions=[DAY(1)])
    assert table.paths() == ["new.parquet"]
    log = table.begin("deltacommit")
    table.complete(log, file(DAY(1), BUCKET(0), log.timestamp or "", kind="log", version=1))
    assert [each.slice for each in table.snapshot().files or ()] == [replaces.timestamp] * 2
