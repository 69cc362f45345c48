"""A publish gives Hive directories with the base files of one position of a keyed table, and nothing else changes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from eventbus.log import log as event_log
from lake.protocol.formats.keyed_table import TOMBSTONES
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import Column, CompletedInstant, DataFile, FileGroup, Instant, InstantKey
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from metastore.warehouse import Warehouse, WarehouseError
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.metastore.services.timeline.test_deleting_files import make_due
from tests.metastore.services.timeline.test_instant_files import directory, listed, put
from tests.metastore.services.timeline.test_keyed_tables import BUCKET, keyed
from tests.support import builders
from tests.support.target import local_path


@pytest.fixture
def table(metastore: Metastore, db: str) -> LakeTable:
    return keyed(metastore, db)


@pytest.fixture
def flat(metastore: Metastore, db: str) -> LakeTable:
    """A keyed table without partitions."""
    return LakeTable(metastore, db, "flat", keys=(), parameters={"primary-key": "id"}, sd=builders.parquet())


def write(table: LakeTable, *buckets: int, partition: str = DAY(1), **fields: Any) -> Instant:
    """Writes a base file of each bucket; each stays in the instant's directory."""
    begun = table.begin()
    table.complete(begun, *(written(begun, each, partition) for each in buckets), **fields)
    return begun


def written(instant: Instant, bucket: int, partition: str = DAY(1), **fields: Any) -> DataFile:
    suffix = "log" if fields.get("kind") == "log" else "parquet"
    made = put(instant, partition, f"{BUCKET(bucket)}_{instant.timestamp}.{suffix}")
    return made.replace(fileGroup=BUCKET(bucket), **fields)


def linked(table: LakeTable, instant: Instant, position: int, names: Iterable[str]) -> None:
    """Links the base files of a position into a publish's directory."""
    for name in names:
        place = directory(instant) / name
        place.mkdir(parents=True, exist_ok=True)
        found = table.snapshot(Scope.UNCOMMITTED, asOfPosition=position, partitions=[name], readOptimized=True)
        for each in found.files or ():
            source = local_path(f"{found.location}/{each.path}")
            (place / source.name).hardlink_to(source)


def position(table: LakeTable) -> int:
    return table.metastore.timeline_queries.position(table.reference).position or 0


def publish(table: LakeTable, *names: str, at: int | None = None) -> Instant:
    at = position(table) if at is None else at
    begun = table.begin("publish")
    linked(table, begun, at, names)
    table.complete(begun, published=list(names), readPosition=at)
    return begun


def base_files(table: LakeTable, at: int | None = None) -> dict[str, set[str]]:
    """The names of a snapshot's base files, by partition."""
    found: dict[str, set[str]] = {}
    for each in table.snapshot(Scope.UNCOMMITTED, asOfPosition=at, readOptimized=True).files or ():
        found.setdefault(each.partition or "", set()).add(Path(each.path or "").name)
    return found


def alterations(table: LakeTable) -> list[str]:
    """The types of the events of Hive's that altered the table or its partitions, so far."""
    table.metastore.sequencer.catch_up()
    with table.metastore.database.read() as tx:
        found = event_log.read(tx, 0, 100_000)
    types = [each.type for each in found if (each.database, each.table) == (table.db, table.name)]
    return [str(each) for each in types if each.startswith("ALTER")]


# --- what Hive sees -------------------------------------------------------------------------------------------


def test_hive_sees_what_was_published_and_nothing_before(table: LakeTable) -> None:
    write(table, 1, 2)
    nothing = {"numFiles": "0", "totalSize": "0", "numRows": "0"}
    assert (listed(table), table.hive_partitions()) == ({DAY(1): set()}, {DAY(1): nothing})
    first = publish(table, DAY(1))
    assert listed(table) == base_files(table, 1)
    assert table.hive_partitions() == {DAY(1): {"numFiles": "2", "totalSize": "200", "numRows": "20"}}
    before = alterations(table)
    write(table, 1)
    write(table, 3, partition=DAY(2))
    assert alterations(table) == before
    assert listed(table) == {**base_files(table, 1), DAY(2): set()}
    assert table.hive_partitions() == {
        DAY(1): {"numFiles": "2", "totalSize": "200", "numRows": "20"},
        DAY(2): nothing,
    }
    publish(table, DAY(1), DAY(2))
    assert listed(table) == base_files(table)
    assert [*base_files(table)] == [DAY(1), DAY(2)]
    assert (directory(first) / DAY(1)).is_dir()
    assert len(alterations(table)) == len(before) + 1


def test_a_publish_changes_no_snapshot_and_conflicts_with_nobody(table: LakeTable) -> None:
    write(table, 1)
    slow = table.begin()
    begun = table.begin("publish")
    before = table.paths()
    linked(table, begun, 1, [DAY(1)])
    write(table, 1)
    done = table.complete(begun, published=[DAY(1)], readPosition=1, metadata=b"{}")
    assert (done.instant and done.instant.position) == 3
    assert listed(table) == base_files(table, 1) != base_files(table)
    table.complete(slow, written(slow, 2))
    assert table.paths(asOfPosition=1) == before
    assert table.paths(asOfPosition=2) == table.paths(asOfPosition=3)
    assert [(each.added, each.removed) for each in table.changes(2, 3).changes or ()] == [([], [])]
    again = table.complete(begun, published=[DAY(1)], readPosition=1, metadata=b"{}")
    assert again.repeated is True
    of_hudi = table.metastore.hudi_timeline.instants(table.db, table.name, 0)
    assert begun.timestamp not in [each.timestamp for each in of_hudi]


def test_the_position_is_the_instant_s_own_unless_it_says_another(table: LakeTable) -> None:
    write(table, 1)
    begun = table.begin("publish")
    linked(table, begun, 1, [DAY(1)])
    write(table, 1)
    table.complete(begun, published=[DAY(1)])
    assert listed(table) == base_files(table, 1)
    [state] = table.metastore.partition_states.listing(Scope.READY, table.reference, None, None, None)
    assert (state.publishedAt, state.changedAt) == (1, 2)


def test_a_table_without_partitions(flat: LakeTable) -> None:
    home = flat.directory
    counts = {name: value for name, value in (flat.hive.parameters or {}).items() if name.startswith("num")}
    write(flat, 1, partition="")
    assert (flat.directory, listed(flat)) == (home, {"": set()})
    assert counts.items() <= (flat.hive.parameters or {}).items()
    where = flat.metastore.timeline_queries.position(flat.reference)
    assert (where.changedAt, where.publishedAt) == (1, None)
    first = publish(flat, "")
    assert flat.directory == directory(first)
    assert listed(flat) == base_files(flat)
    assert (flat.hive.parameters or {})["numRows"] == "10"
    write(flat, 1, 2, partition="")
    assert listed(flat) == base_files(flat, 1)
    where = flat.metastore.timeline_queries.position(flat.reference)
    assert (where.changedAt, where.publishedAt) == (3, 1)
    second = publish(flat, "")
    assert listed(flat) == base_files(flat)
    assert local_path(flat.snapshot().location or "") == home
    assert directory(second).parent == home / ".instants"
    for each in flat.snapshot().files or ():
        assert (home / (each.path or "")).is_file()
    make_due(flat)
    flat.delete_files()
    assert not directory(first).exists()
    flat.metastore.tables.alter(flat.db, "flat", flat.hive.replace(tableName="other"), {})
    renamed = flat.on(flat.metastore)
    renamed.name, renamed.reference = "other", flat.reference.replace(table="other")
    assert listed(renamed) == base_files(renamed) != {}
    write(renamed, 3, partition="")
    publish(renamed, "")
    assert listed(renamed) == base_files(renamed)
    flat.metastore.tables.drop(flat.db, "other", delete_data=True)
    assert not home.exists()
    assert not home.with_name("other").exists()


def test_tombstones_are_no_rows_and_stay_where_they_are(table: LakeTable) -> None:
    begun = table.begin("deltacommit")
    table.complete(begun, written(begun, 1), written(begun, 1, kind="log", statistics=TOMBSTONES))
    publish(table, DAY(1))
    assert listed(table) == base_files(table) == {DAY(1): {f"{BUCKET(1)}_{begun.timestamp}.parquet"}}


def test_a_partition_that_lost_its_rows_is_published_empty(table: LakeTable) -> None:
    write(table, 1)
    write(table, 1, partition=DAY(2))
    publish(table, DAY(1))
    table.complete(table.begin("replacecommit"), replacedPartitions=[DAY(1), DAY(2)])
    publish(table, DAY(1))
    assert listed(table) == {DAY(1): set(), DAY(2): set()}
    assert table.hive_partitions()[DAY(1)] == {"numFiles": "0", "totalSize": "0", "numRows": "0"}
    make_due(table)
    table.delete_files()
    assert listed(table) == {DAY(1): set(), DAY(2): set()}
    with pytest.raises(InvalidOperationException, match="nothing is to be published"):
        publish(table, DAY(2))


def test_names_that_readers_of_directories_would_pass_over(metastore: Metastore, db: str) -> None:
    odd = LakeTable(
        metastore, db, "odd", keys=("_p", "q"), parameters={"primary-key": "_p,q,id"}, sd=builders.parquet()
    )
    name = "_p=.a%2Fb/q=_c"
    write(odd, 1, partition=name)
    begun = publish(odd, name)
    assert listed(odd) == base_files(odd) == {name: {f"{BUCKET(1)}_{odd.instants()[0].timestamp}.parquet"}}
    write(odd, 1, partition=name)
    hidden = odd.begin("publish")
    linked(odd, hidden, position(odd), [name])
    for each in ("_SUCCESS", f"{name}/.a.crc", f"{name}/_b", "_temporary/0/c.parquet"):
        (directory(hidden) / each).parent.mkdir(parents=True, exist_ok=True)
        (directory(hidden) / each).write_text("hidden")
    odd.complete(hidden, published=[name])
    assert listed(odd) == base_files(odd)
    make_due(odd)
    odd.delete_files()
    assert not directory(begun).exists()


# --- what is refused ------------------------------------------------------------------------------------------


def refused(table: LakeTable, begun: Instant, match: str, *names: str, **fields: Any) -> None:
    before = table.kept(), listed(table)
    with pytest.raises(InvalidOperationException, match=match):
        table.complete(begun, published=list(names), **fields)
    assert (table.kept(), listed(table)) == before


def test_exactly_the_files_of_the_position(table: LakeTable) -> None:
    write(table, 1, 2)
    write(table, 3, partition=DAY(2))
    begun = table.begin("publish")
    refused(table, begun, "is missing", DAY(1))
    linked(table, begun, 2, [DAY(1)])
    refused(table, begun, "is missing", DAY(1), DAY(2))
    own = directory(begun)
    for extra in (f"{DAY(1)}/more.parquet", "more.parquet", f"{DAY(2)}/a.parquet", f"{DAY(1)}/below/a.parquet"):
        (own / extra).parent.mkdir(parents=True, exist_ok=True)
        (own / extra).write_text("rows")
        refused(table, begun, "belongs to no base file", DAY(1))
        (own / extra).unlink()
    one = min((own / DAY(1)).glob("*.parquet"))
    one.rename(one.with_name("renamed.parquet"))
    refused(table, begun, "file", DAY(1))
    one.with_name("renamed.parquet").rename(one)
    write(table, 1)
    refused(table, begun, "file", DAY(1), readPosition=3)
    table.complete(begun, published=[DAY(1)])
    assert listed(table)[DAY(1)] == base_files(table, 2)[DAY(1)]


def test_an_older_position_than_the_one_that_hive_sees(table: LakeTable) -> None:
    write(table, 1)
    late = table.begin("publish")
    linked(table, late, 1, [DAY(1)])
    write(table, 1)
    publish(table, DAY(1))
    refused(table, late, "Hive sees position 2 already", DAY(1), readPosition=1)
    table.metastore.timeline.delete(table.reference, late.timestamp, "publish")
    again = publish(table, DAY(1), at=2)
    assert local_path(table_location(table, DAY(1))).parent == directory(again)


def table_location(table: LakeTable, name: str) -> str:
    value = table.metastore.partition_reads.get_by_name(Scope.UNCOMMITTED, table.db, table.name, name)
    assert value.sd is not None
    return value.sd.location or ""


def test_log_files_have_to_be_merged_first(table: LakeTable) -> None:
    write(table, 1)
    begun = table.begin("deltacommit")
    table.complete(begun, written(begun, 1, kind="log"))
    refused(table, table.begin("publish"), "compact it first", DAY(1))
    publish(table, DAY(1), at=1)
    planned = table.begin("compaction")
    table.complete(planned, written(planned, 1), newAction="commit")
    publish(table, DAY(1))
    assert listed(table) == base_files(table)


def test_partitions_that_are_not_there(table: LakeTable) -> None:
    write(table, 1)
    write(table, 1, partition=DAY(2))
    begun = table.begin("publish")
    refused(table, begun, "no files at position 1", DAY(2), readPosition=1)
    refused(table, begun, "has no partition dt=2026-01-03", DAY(3))
    refused(table, begun, "no position 3", DAY(1), readPosition=3)
    refused(table, begun, "no position -1", DAY(1), readPosition=-1)
    with pytest.raises((InvalidOperationException, NoSuchObjectException)):
        table.complete(begun, published=["x=1"])


@pytest.mark.parametrize(
    "fields",
    [
        {"removedGroups": [FileGroup(DAY(1), BUCKET(1))]},
        {"removedPaths": ["a"]},
        {"replacedPartitions": [DAY(1)]},
        {"rolledBack": [InstantKey("1", "commit")]},
        {"cleanedPaths": ["a"]},
        {"columns": [Column("id", "bigint")]},
        {"eventTimes": {"a": 1}},
        {"relocate": True},
    ],
)
def test_a_publish_does_nothing_else(table: LakeTable, fields: dict[str, Any]) -> None:
    write(table, 1)
    begun = table.begin("publish")
    linked(table, begun, 1, [DAY(1)])
    before = table.kept()
    with pytest.raises(InvalidOperationException):
        table.complete(begun, published=[DAY(1)], **fields)
    with pytest.raises(InvalidOperationException, match="only names published"):
        table.complete(begun, file(DAY(1), "g", "1"), published=[DAY(1)])
    assert table.kept() == before
    table.complete(begun, published=[DAY(1)])


def test_only_a_publish_of_a_keyed_table_publishes(table: LakeTable, metastore: Metastore, db: str) -> None:
    write(table, 1)
    refused(table, table.begin(), "only a publish", DAY(1))
    plain = LakeTable(metastore, db, "plain", sd=builders.parquet())
    plain.commit("g")
    begun = plain.begin("publish")
    with pytest.raises(InvalidOperationException, match="no primary key"):
        plain.complete(begun, published=[DAY(1)])
    plain.complete(begun)


def test_nothing_is_brought_into_hive_s_directories(table: LakeTable) -> None:
    write(table, 1)
    begun = table.begin("replacecommit")
    for fields in ({"relocate": True, "replacedPartitions": [DAY(1)]}, {}):
        added = written(begun, 1).replace(staged=None if fields else True)
        with pytest.raises(InvalidOperationException, match="has a primary key"):
            table.complete(begun, added, **fields)


# --- rollbacks, drops, cleans ---------------------------------------------------------------------------------


def key(instant: Instant) -> InstantKey:
    return InstantKey(instant.timestamp, instant.action)


def test_a_publish_is_not_undone_and_stands_in_nobody_s_way(table: LakeTable) -> None:
    write(table, 1)
    publish(table, DAY(1))
    second = write(table, 1, 2)
    published = publish(table, DAY(1))
    seen = listed(table)
    for keys in ([key(published)], [key(published), key(second)]):
        with pytest.raises(InvalidOperationException, match="publish again"):
            table.complete(table.begin("rollback"), rolledBack=keys)
    with pytest.raises(InvalidOperationException, match="publish again"):
        table.metastore.timeline.delete(table.reference, published.timestamp, "publish")
    table.complete(table.begin("rollback"), rolledBack=[key(second)])
    assert listed(table) == seen
    assert base_files(table) == base_files(table, 1)
    publish(table, DAY(1))
    assert listed(table) == base_files(table, 1)


def test_an_aborted_publish_leaves_nothing(table: LakeTable) -> None:
    write(table, 1)
    begun = table.begin("publish")
    linked(table, begun, 1, [DAY(1)])
    table.metastore.timeline.delete(table.reference, begun.timestamp, "publish")
    table.delete_files()
    assert not directory(begun).exists()
    assert listed(table) == {DAY(1): set()}


def test_earlier_directories_go_after_a_grace(table: LakeTable) -> None:
    write(table, 1)
    write(table, 1, partition=DAY(2))
    first = publish(table, DAY(1), DAY(2))
    write(table, 1)
    second = publish(table, DAY(1))
    table.delete_files()
    assert (directory(first) / DAY(1)).is_dir()
    with table.metastore.database.read() as tx:
        query = "SELECT path, extract(epoch FROM next_attempt_at - clock_timestamp()) FROM pending_deletions"
        [(path, seconds)] = [row for row in tx.exec_driver_sql(query) if str(first.timestamp) in row[0]]
    assert path == f".instants/{first.timestamp}.publish/{DAY(1)}/"
    assert 3_500 < seconds <= 3_600
    make_due(table)
    table.delete_files()
    assert not (directory(first) / DAY(1)).exists()
    assert listed(table) == base_files(table)
    write(table, 1, partition=DAY(2))
    publish(table, DAY(2))
    make_due(table)
    table.delete_files()
    assert not directory(first).exists()
    assert directory(second).exists()
    assert listed(table) == base_files(table)


def test_what_hive_looks_at_again_stays(table: LakeTable, flat: LakeTable) -> None:
    """A client that reads a partition or table before a publish and alters it afterwards brings the location back."""
    write(table, 1)
    first = publish(table, DAY(1))
    seen = listed(table)
    read = table.metastore.partition_reads.get_by_name(Scope.UNCOMMITTED, table.db, table.name, DAY(1))
    write(table, 1)
    publish(table, DAY(1))
    table.metastore.partitions.alter(table.db, table.name, [read], {})
    write(flat, 1, partition="")
    of_table = publish(flat, "")
    home, whole = flat.hive, listed(flat)
    write(flat, 1, partition="")
    publish(flat, "")
    flat.metastore.tables.alter(flat.db, flat.name, home, {})
    make_due(table)
    table.delete_files()
    assert (listed(table), listed(flat)) == (seen, whole)
    assert directory(first).exists()
    write(table, 1)
    publish(table, DAY(1))
    write(flat, 1, partition="")
    publish(flat, "")
    make_due(table)
    table.delete_files()
    assert (listed(table), listed(flat)) == (base_files(table), base_files(flat))
    assert not directory(first).exists()
    assert not directory(of_table).exists()


@pytest.mark.parametrize("whole", [True, False])
def test_truncating(table: LakeTable, flat: LakeTable, whole: bool) -> None:
    mine, name = (flat, "") if whole else (table, DAY(1))
    write(mine, 1, partition=name)
    publish(mine, name)
    late = mine.begin("publish")
    linked(mine, late, 1, [name])
    mine.metastore.tables.truncate(mine.db, mine.name, None if whole else [name])
    assert listed(mine) == {name: set()}
    refused(mine, late, "cleaned", name, readPosition=1)
    write(mine, 2, partition=name)
    assert listed(mine) == {name: set()}
    publish(mine, name)
    assert listed(mine) == base_files(mine) != {}
    make_due(mine)
    mine.delete_files()
    assert listed(mine) == base_files(mine)


def test_a_clean_does_no_harm_to_what_is_published(table: LakeTable) -> None:
    write(table, 1, 2)
    publish(table, DAY(1))
    for _ in range(3):
        write(table, 1)
        publish(table, DAY(1))
    late = table.begin("publish")
    linked(table, late, 3, [DAY(1)])
    write(table, 2)
    seen = base_files(table, 8)
    assert len(table.clean_plan(keepCommits=2)) == 3  # publishes don't count
    table.clean(table.clean_plan(keepCommits=1))
    table.delete_files()
    refused(table, late, "have been cleaned", DAY(1), readPosition=3)
    assert listed(table) == seen != base_files(table)
    [place] = [local_path(table_location(table, DAY(1)))]
    assert {each.read_text() for each in place.iterdir()} == listed(table)[DAY(1)]
    publish(table, DAY(1))
    assert listed(table) == base_files(table)


@pytest.mark.parametrize("external", [False, True])
def test_dropping_a_partition(metastore: Metastore, db: str, tmp_path: Path, external: bool) -> None:
    fields: dict[str, Any] = {"tableType": "EXTERNAL_TABLE"} if external else {}
    parameters = {"primary-key": "dt,id", **({"EXTERNAL": "TRUE"} if external else {})}
    table = LakeTable(metastore, db, "dropped", parameters=parameters, sd=builders.parquet(), **fields)
    write(table, 1)
    write(table, 1, partition=DAY(2))
    first = publish(table, DAY(1), DAY(2))
    write(table, 1)
    second = publish(table, DAY(1))
    late = table.begin("publish")
    linked(table, late, 2, [DAY(1)])
    metastore.partitions.drop(db, "dropped", name=DAY(1), delete_data=True)
    make_due(table)
    metastore.housekeeping.run()
    table.delete_files()
    assert (directory(second) / DAY(1)).exists() is external
    assert not (directory(first) / DAY(1)).exists()
    assert listed(table) == base_files(table) == {DAY(2): {*base_files(table)[DAY(2)]}}
    refused(table, late, "cleaned|no partition", DAY(1), readPosition=2)
    write(table, 1)
    refused(table, late, "cleaned|sees position", DAY(1), readPosition=2)
    assert listed(table) == {**base_files(table), DAY(1): set()}
    publish(table, DAY(1))
    assert listed(table) == base_files(table)
    home = table.directory
    metastore.tables.drop(db, "dropped", delete_data=True)
    assert home.exists() is external
    with metastore.database.read() as tx:
        left = tx.exec_driver_sql("SELECT path FROM pending_deletions").scalars().all()
    assert [path for path in left if str(first.timestamp) in path or str(second.timestamp) in path] == []


def test_the_storage_is_away(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    write(table, 1)
    begun = table.begin("publish")
    linked(table, begun, 1, [DAY(1)])
    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "files", lambda *_, **__: (_ for _ in ()).throw(WarehouseError("away")))
        with pytest.raises(WarehouseError):
            table.complete(begun, published=[DAY(1)])
    assert listed(table) == {DAY(1): set()}
    done: CompletedInstant = table.complete(begun, published=[DAY(1)])
    assert done.repeated is False
    assert listed(table) == base_files(table)
