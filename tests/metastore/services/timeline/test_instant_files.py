"""Who lists the directories of Hive's view finds what the snapshot says, or said a moment ago, and no mixture."""

from pathlib import Path

import pytest

from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import Column, DataFile, Instant, InstantConflict, InstantKey
from metastore.services.model.visibility import Scope
from metastore.services.timeline.staging import InstantFiles
from metastore.services.wiring import Metastore
from metastore.warehouse import Warehouse, WarehouseError
from tests.metastore.services.timeline.lake import DAY, LakeTable, file
from tests.support.target import local_path


def directory(instant: Instant) -> Path:
    return local_path(instant.directory or "")


def put(instant: Instant, partition: str, name: str, *, staged: bool = False) -> DataFile:
    """Writes a file into an instant's directory."""
    place = directory(instant) / partition
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(name)
    own = (instant.directory or "").rpartition("/.instants/")[2]
    path = f".instants/{own}/{partition}/{name}".replace("//", "/")
    return file(partition, name, instant.timestamp or "", path=path, staged=staged or None)


def append(table: LakeTable, partition: str, *names: str) -> Instant:
    begun = table.begin()
    table.complete(begun, *(put(begun, partition, name, staged=True) for name in names))
    return begun


def overwrite(table: LakeTable, *replaced: str, **added: list[str]) -> Instant:
    """Replaces partitions; `added` are names of files by the partition's number."""
    begun = table.begin("replacecommit")
    files = [put(begun, DAY(number[1:]), name) for number, names in added.items() for name in names]
    table.complete(begun, *files, replacedPartitions=list(replaced), relocate=True)
    return begun


def visible(place: Path) -> set[str]:
    return {each.name for each in place.iterdir() if each.is_file() and not each.name.startswith((".", "_"))}


def listed(table: LakeTable) -> dict[str, set[str]]:
    """The files in the directory of each partition of Hive's view."""
    if not table.hive.partitionKeys:
        return {"": visible(table.directory)}
    found = {}
    for name in table.hive_partitions():
        value = table.metastore.partition_reads.get_by_name(Scope.UNCOMMITTED, table.db, table.name, name)
        assert value.sd is not None
        found[name] = visible(local_path(value.sd.location or ""))
    return found


def named(table: LakeTable, **fields: object) -> dict[str, set[str]]:
    """The files that a snapshot names, each of which is there."""
    response = table.snapshot(scope=Scope.UNCOMMITTED, **fields)
    found: dict[str, set[str]] = {}
    for each in response.files or ():
        path = local_path(f"{response.location}/{each.path}")
        assert path.is_file(), path
        found.setdefault(each.partition or "", set()).add(path.name)
    return found


def test_a_staged_file_that_vanished_is_named_and_its_instant_can_be_undone(
    table: LakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(table, DAY(1), "a.parquet")
    with monkeypatch.context() as patch:  # the server dies before it moves the files
        patch.setattr(InstantFiles, "publish", lambda *_: None)
        lost = append(table, DAY(1), "b.parquet", "c.parquet")
    (directory(lost) / DAY(1) / "b.parquet").unlink()
    later = table.begin()
    added = put(later, DAY(1), "d.parquet", staged=True)
    for _ in range(2):
        with pytest.raises(WarehouseError, match=r"b\.parquet.*put it back there, or roll back the instant"):
            table.complete(later, added)
    with pytest.raises(WarehouseError, match=r"b\.parquet"):  # not one that undoes something else
        table.complete(table.begin("rollback"), rolledBack=[InstantKey("20200101000000000", "commit")])
    table.complete(table.begin("rollback"), rolledBack=[InstantKey(lost.timestamp, lost.action)])
    assert named(table) == {DAY(1): {"a.parquet"}}
    table.complete(later, added)
    assert named(table) == {DAY(1): {"a.parquet", "d.parquet"}}


def test_staged_files_join_their_partitions(table: LakeTable) -> None:
    begun = table.begin()
    files = [put(begun, DAY(1), "a.parquet", staged=True), put(begun, DAY(2), "b.parquet", staged=True)]
    assert listed(table) == named(table) == {}
    table.complete(begun, *files)
    assert listed(table) == named(table) == {DAY(1): {"a.parquet"}, DAY(2): {"b.parquet"}}
    table.delete_files()
    assert not directory(begun).exists()
    append(table, DAY(1), "c.parquet")
    assert listed(table)[DAY(1)] == {"a.parquet", "c.parquet"}
    assert table.complete(begun, *files).repeated is True


def test_a_snapshot_names_no_file_that_is_not_in_its_place(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that completed the instant dies before it moved the files."""
    begun = table.begin()
    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "move_file", lambda *_: (_ for _ in ()).throw(WarehouseError("away")))
        table.complete(begun, put(begun, DAY(1), "a.parquet", staged=True))
        with pytest.raises(WarehouseError):
            table.snapshot()
        with pytest.raises(WarehouseError):
            table.changes(0)
        assert listed(table) == {DAY(1): set()}
        assert (directory(begun) / DAY(1) / "a.parquet").is_file()
    assert named(table) == listed(table) == {DAY(1): {"a.parquet"}}
    table.delete_files()
    assert not directory(begun).exists()


def test_what_is_on_its_way_arrives_before_it_is_replaced(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "move_file", lambda *_: (_ for _ in ()).throw(WarehouseError("away")))
        append(table, DAY(1), "a.parquet")
    overwrite(table, DAY(1), _1=["b.parquet"])
    assert listed(table) == named(table) == {DAY(1): {"b.parquet"}}
    assert named(table, asOfPosition=1) == {DAY(1): {"a.parquet"}}


def test_a_replaced_partition_lies_elsewhere_and_can_still_be_read_as_it_was(table: LakeTable) -> None:
    append(table, DAY(1), "a.parquet")
    append(table, DAY(2), "b.parquet")
    begun = overwrite(table, DAY(1), DAY(2), DAY(3), _1=["c.parquet"], _3=["d.parquet"])
    assert named(table) == {DAY(1): {"c.parquet"}, DAY(3): {"d.parquet"}}
    assert listed(table) == {**named(table), DAY(2): set()}
    assert named(table, asOfPosition=2) == {DAY(1): {"a.parquet"}, DAY(2): {"b.parquet"}}
    append(table, DAY(1), "e.parquet")
    append(table, DAY(2), "f.parquet")
    assert listed(table) == named(table)
    assert listed(table)[DAY(1)] == {"c.parquet", "e.parquet"}
    assert listed(table)[DAY(2)] == {"f.parquet"}
    assert directory(begun).exists()


def test_undoing_a_replacement_brings_the_directories_back(table: LakeTable) -> None:
    append(table, DAY(1), "a.parquet")
    begun = overwrite(table, DAY(1), DAY(2), _1=["b.parquet"], _2=["c.parquet"])
    after = append(table, DAY(1), "d.parquet")
    keys = [InstantKey(each.timestamp, each.action) for each in (after, begun)]
    table.complete(table.begin("restore"), rolledBack=keys)
    assert named(table) == {DAY(1): {"a.parquet"}}
    assert listed(table) == {**named(table), DAY(2): set()}
    assert named(table, asOfPosition=3) == {DAY(1): {"b.parquet", "d.parquet"}, DAY(2): {"c.parquet"}}


def test_a_table_without_keys(metastore: Metastore, db: str) -> None:
    flat = LakeTable(metastore, db, keys=())
    home = flat.directory
    append(flat, "", "a.parquet")
    assert listed(flat) == named(flat) == {"": {"a.parquet"}}
    first = flat.begin("replacecommit")
    flat.complete(first, put(first, "", "b.parquet"), replacedPartitions=[""], relocate=True)
    append(flat, "", "c.parquet")
    assert listed(flat) == named(flat) == {"": {"b.parquet", "c.parquet"}}
    second = flat.begin("replacecommit")
    flat.complete(second, put(second, "", "d.parquet"), replacedPartitions=[""], relocate=True)
    assert named(flat, asOfPosition=1) == {"": {"a.parquet"}}
    assert named(flat, asOfPosition=3) == {"": {"b.parquet", "c.parquet"}}
    flat.complete(flat.begin("rollback"), rolledBack=[InstantKey(second.timestamp, second.action)])
    assert listed(flat) == named(flat) == {"": {"b.parquet", "c.parquet"}}
    metastore.tables.alter(db, "t", flat.hive.replace(tableName="u"), {})
    flat.name, flat.reference = "u", flat.reference.replace(table="u")
    assert listed(flat) == named(flat) == {"": {"b.parquet", "c.parquet"}}
    assert named(flat, asOfPosition=1) == {"": {"a.parquet"}}
    assert not home.exists()
    moved = flat.directory
    metastore.tables.drop(db, "u", delete_data=True)
    assert not moved.exists() and not home.with_name("u").exists()


@pytest.mark.parametrize("how", ["lost", "outside", "hidden", "taken"])
def test_staged_files_that_can_not_join_are_refused(table: LakeTable, how: str) -> None:
    append(table, DAY(1), "a.parquet")
    begun = table.begin()
    given = put(begun, DAY(1), "_b.parquet" if how == "hidden" else "b.parquet", staged=True)
    if how == "lost":
        given = given.replace(path=f"{given.path}x")
    elif how == "outside":
        given = given.replace(path=f"{DAY(1)}/a.parquet")
    elif how == "taken":
        (table.directory / DAY(1) / "b.parquet").write_text("somebody else's")
    before = table.kept()
    with pytest.raises(InvalidOperationException, match="name of its own" if how == "taken" else "is not in the inst"):
        table.complete(begun, given)
    assert table.kept() == before


@pytest.mark.parametrize("how", ["more", "less", "elsewhere", "other partition"])
def test_relocated_directories_hold_exactly_what_is_added(table: LakeTable, how: str) -> None:
    append(table, DAY(1), "a.parquet")
    begun = table.begin("replacecommit")
    added = [put(begun, DAY(1), "b.parquet"), put(begun, DAY(1), "c.parquet")]
    if how == "more":
        added.pop()
    elif how == "less":
        (directory(begun) / DAY(1) / "c.parquet").unlink()
    elif how == "elsewhere":
        added[1] = added[1].replace(partition=DAY(2))
    replaced = [DAY(1)] if how == "other partition" else [DAY(1), DAY(2)]
    if how == "other partition":
        added.append(put(begun, DAY(2), "d.parquet"))
    before = table.kept()
    with pytest.raises(InvalidOperationException, match="with relocate"):
        table.complete(begun, *added, replacedPartitions=replaced, relocate=True)
    assert table.kept() == before


def test_who_loses_leaves_nothing(table: LakeTable) -> None:
    append(table, DAY(1), "a.parquet")
    loser = table.begin()
    given = put(loser, DAY(1), "b.parquet", staged=True)
    winner = overwrite(table, DAY(1), _1=["c.parquet"])
    with pytest.raises(InstantConflict) as lost:
        table.complete(loser, given)
    assert [each.timestamp for each in lost.value.winners or ()] == [winner.timestamp]
    assert lost.value.filesToRemove == [given.path]
    table.metastore.timeline.delete(table.reference, loser.timestamp, loser.action)
    table.delete_files()
    assert not directory(loser).exists()
    assert listed(table) == named(table) == {DAY(1): {"c.parquet"}}


def test_who_dies_leaves_nothing(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat with the beginning: there is no time in which the death of the writer goes unnoticed."""
    begun = table.begin(heartbeat=True)
    put(begun, DAY(1), "a.parquet")
    waits = table.begin()
    put(waits, DAY(1), "b.parquet")
    monkeypatch.setattr(table.metastore.timeline_sweeper, "_heartbeat_seconds", -1.0)
    table.metastore.timeline_sweeper.sweep()
    table.delete_files()
    assert not directory(begun).exists()
    assert directory(waits).exists()
    assert [each.timestamp for each in table.instants()] == [waits.timestamp]


def test_an_instant_of_the_same_name_keeps_its_files(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage was away when the first one was aborted: its directory is still to be deleted."""
    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "delete_directory", lambda *_, **__: (_ for _ in ()).throw(WarehouseError("away")))
        begun = table.begin("replacecommit", timestamp="5")
        put(begun, DAY(1), "a.parquet")
        table.metastore.timeline.delete(table.reference, "5", "replacecommit")
        table.delete_files()
    assert directory(begun).exists()
    again = table.begin("replacecommit", timestamp="5")
    assert not directory(begun).exists()
    table.complete(again, put(again, DAY(1), "b.parquet"), replacedPartitions=[DAY(1)], relocate=True)
    table.delete_files()
    assert listed(table) == named(table) == {DAY(1): {"b.parquet"}}


def test_files_that_somebody_left_are_not_of_a_new_partition(table: LakeTable) -> None:
    append(table, DAY(1), "a.parquet")
    table.metastore.partitions.drop(table.db, "t", name=DAY(1), delete_data=False)
    assert (table.directory / DAY(1) / "a.parquet").is_file()
    append(table, DAY(1), "b.parquet")
    assert listed(table) == named(table) == {DAY(1): {"b.parquet"}}
    append(table, DAY(1), "c.parquet")
    assert listed(table) == named(table) == {DAY(1): {"b.parquet", "c.parquet"}}


def test_what_was_replaced_goes_with_the_partition(table: LakeTable) -> None:
    append(table, DAY(1), "a.parquet")
    begun = overwrite(table, DAY(1), _1=["b.parquet"])
    table.metastore.partitions.drop(table.db, "t", name=DAY(1), delete_data=True)
    table.delete_files()
    assert not (table.directory / DAY(1) / "a.parquet").exists()
    assert not (directory(begun) / DAY(1)).exists()


def test_spark_is_told_where_its_own_table_went(metastore: Metastore, db: str) -> None:
    """Spark keeps its tables' locations among the serializer's properties, too, and goes by that."""
    flat = LakeTable(metastore, db, keys=())
    sd = flat.hive.sd
    assert sd is not None and sd.serdeInfo is not None
    own = sd.serdeInfo.replace(parameters={"path": sd.location or "", "a": "b"})
    metastore.tables.alter(db, "t", flat.hive.replace(sd=sd.replace(serdeInfo=own)), {})
    begun = flat.begin("replacecommit")
    flat.complete(begun, put(begun, "", "b.parquet"), replacedPartitions=[""], relocate=True)
    moved = flat.hive.sd
    assert moved is not None and moved.serdeInfo is not None
    assert moved.location == begun.directory
    assert moved.serdeInfo.parameters == {"path": begun.directory, "a": "b"}


def test_sparks_own_columns_come_with_hives(table: LakeTable) -> None:
    columns = [*((each.name or "", each.type or "") for each in (table.hive.sd and table.hive.sd.cols) or ())]
    wider = [Column(*each) for each in [*columns, ("extra", "string")]]
    begun = table.begin()
    with pytest.raises(InvalidOperationException, match="can't be changed with the columns"):
        table.complete(begun, columns=wider, schemaProperties={"partition.commit.mode": "manual"})
    table.complete(begun, columns=wider, schemaProperties={"spark.sql.sources.schema": "{}"})
    assert table.hive.sd is not None and table.hive.parameters is not None
    assert (table.hive.sd.cols or [])[-1].name == "extra"
    assert table.hive.parameters["spark.sql.sources.schema"] == "{}"
