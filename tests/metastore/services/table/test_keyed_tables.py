"""Keyed tables: definitions that mean nothing are refused, and changes by which files couldn't be read any more."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from lake.protocol.hive import InvalidObjectException, InvalidOperationException, SerDeInfo, StorageDescriptor, Table
from lake.protocol.lake import (
    BeginInstantRequest,
    Column,
    CompleteInstantRequest,
    DataFile,
    InstantKey,
    LeaseRequest,
    ReadChangesRequest,
    SnapshotGone,
    SnapshotRequest,
    TableReference,
)
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from tests.support import builders

KEY = {"primary-key": "dt,id", "bucket": "4"}
PROVIDER = "spark.sql.sources.provider"
ORC = "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"
HUDI = "org.apache.hudi.hadoop.HoodieParquetInputFormat"


def keyed(db: str, name: str = "t", *, keys: tuple[str, ...] = ("dt",), **fields: Any) -> Table:
    parameters = {**KEY, **fields.pop("parameters", {})}
    return builders.table(db, name, keys=keys, **{"sd": builders.parquet(), "parameters": parameters, **fields})


def write(
    metastore: Metastore,
    db: str,
    name: str = "t",
    *columns: Column,
    group: str = "bucket-00000",
    layout: Mapping[str, str] | None = None,
    properties: dict[str, str] | None = None,
) -> InstantKey:
    """Completes an instant that adds a file, and gives the table these columns and properties. Returns the instant."""
    table = TableReference(database=db, table=name)
    begun = metastore.timeline.begin(BeginInstantRequest(table, "commit", state="inflight"))
    at = begun.timestamp or ""
    file = DataFile("dt=1", group, at, f"dt=1/{at}.parquet", size=1)
    request = CompleteInstantRequest(
        table,
        at,
        "commit",
        added=[file],
        columns=list(columns) or None,
        layout=None if layout is None else {**layout},
        schemaProperties=properties,
    )
    metastore.instant_completion.complete([request])
    return InstantKey(at, "commit")


def alter(metastore: Metastore, db: str, name: str = "t", **parameters: str | None) -> None:
    """Sets parameters, and removes those that are None, as Spark and Hive do: with the whole table."""
    table = metastore.tables.get(db, name)
    changed = {**(table.parameters or {}), **parameters}
    kept = {key: value for key, value in changed.items() if value is not None}
    metastore.tables.alter(db, name, table.replace(parameters=kept), {})


# --- what can have a key --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"keys": ("dt", "hr")}, "primary-key: add hr, by which the table is partitioned, too"),
        (
            {"parameters": {"primary-key": "id", "merge-engine": "aggregation"}},
            "primary-key without dt, by which the table is partitioned, doesn't go with merge-engine=aggregation",
        ),
        ({"parameters": {"primary-key": "id", "ignore-delete": "true"}}, "doesn't go with ignore-delete=true"),
        ({"parameters": {"tombstone.time-retained": "7 d"}}, "tombstone.time-retained goes with sequence.field only"),
        (
            {"parameters": {"changelog-producer": "full-compaction"}},
            "changelog-producer=full-compaction: expected none",
        ),
        (
            {"parameters": {"insert.duplicate-key": "update"}},
            "insert.duplicate-key=update: expected replace, ignore, fail",
        ),
        ({"parameters": {"changelog.time-retained": "1 d"}}, "changelog.time-retained needs changelog-producer=input"),
        ({"parameters": {"snapshot.time-retained": "long"}}, "snapshot.time-retained=long: expected a duration"),
        (
            {"parameters": {"changelog-producer": "input", "sequence.field": "name"}},
            "changelog-producer=input doesn't go with sequence.field",
        ),
        (
            {"parameters": {"changelog-producer": "input", "merge-engine": "first-row"}},
            "changelog-producer=input doesn't go with merge-engine=first-row",
        ),
        (
            {"parameters": {"changelog-producer": "input", "primary-key": "id"}},
            "changelog-producer=input doesn't go with a primary-key that is unique over the whole table",
        ),
        (
            {
                "parameters": {
                    "changelog-producer": "lookup",
                    "table-type": "merge-on-read",
                    "sequence.field": "name",
                    "tombstone.time-retained": "7 d",
                }
            },
            "tombstone.time-retained doesn't go with changelog-producer=lookup and table-type=merge-on-read",
        ),
        ({"parameters": {"column-families": "a,b"}}, "column-families: 'a,b' is no family: write name:column"),
        ({"parameters": {"column-families": "a:other"}}, "column-families: the table has no column other"),
        ({"parameters": {"column-families": "a:id"}}, "column-families: the column id belongs to the key"),
        ({"parameters": {"column-families": "a:name;b:name"}}, "column-families: the column name is named twice"),
        ({"parameters": {"column-families": "a:name;A:at"}}, "column-families: the family a is named twice"),
        (
            {"parameters": {"column-families": "a:name", "table-type": "merge-on-read"}},
            "column-families doesn't go with table-type=merge-on-read",
        ),
        (
            {"parameters": {"column-families": "a:name", "sequence.field": "name"}},
            "column-families: the column name orders versions",
        ),
        (
            {"parameters": {"column-families": "a:name", "publish.commits": "5"}},
            "column-families doesn't go with publish.commits",
        ),
        ({"parameters": {"tombstone.time-retained": "long"}}, "tombstone.time-retained=long: expected a duration"),
        ({"parameters": {"primary-key": "dt,other"}}, "primary-key: the table has no column other"),
        ({"parameters": {"bucket": "many"}}, "bucket=many: expected a number"),
        ({"parameters": {"merge-engine": "magic"}}, "merge-engine=magic: expected"),
        ({"sd": builders.parquet("id:double")}, "primary-key: the column id is double"),
        ({"sd": builders.parquet("id:int", "_metastore_deleted:boolean")}, "doesn't begin with _metastore_"),
        ({"keys": ("dt", "_Metastore_x")}, "doesn't begin with _metastore_"),
        ({"sd": builders.parquet("id:char(5)")}, "primary-key: the column id is char(5), which some writers fill up"),
        ({"keys": ("dt:timestamp",)}, "primary-key: the table is partitioned by dt, which is timestamp"),
        ({"keys": ("dt:decimal(10,2)",)}, "primary-key: the table is partitioned by dt, which is decimal(10,2)"),
        ({"sd": builders.storage()}, "only Parquet tables have one"),
        ({"sd": builders.storage(inputFormat=ORC)}, "only Parquet tables have one"),
        ({"parameters": {PROVIDER: "orc"}}, "only Parquet tables have one"),
        ({"tableType": "VIRTUAL_VIEW", "viewOriginalText": "select 1"}, "a view has no files"),
        ({"parameters": {"transactional": "true"}}, "doesn't go with Hive's transactional tables"),
        ({"parameters": {"partition.late-rows": "next"}}, "doesn't go with partition.late-rows=next"),
    ],
)
def test_what_can_have_no_key(metastore: Metastore, db: str, fields: Mapping[str, Any], message: str) -> None:
    wrong = keyed(db, **fields)
    with pytest.raises(InvalidObjectException, match=f"^{db}.t: .*{re.escape(message)}"):
        metastore.tables.create(wrong, {})
    assert metastore.tables.names(db, "*") == []
    metastore.tables.create(wrong.replace(parameters={}), {})
    had = metastore.tables.get(db, "t")
    with pytest.raises(InvalidOperationException, match=f"^{db}.t: .*{re.escape(message)}"):
        metastore.tables.alter(db, "t", had.replace(parameters={**(had.parameters or {}), **wrong.parameters}), {})
    assert metastore.tables.get(db, "t") == had


@pytest.mark.parametrize(
    ("storage", "parameters"),
    [
        (builders.parquet(), {}),
        (builders.parquet(), {PROVIDER: "hive"}),
        (builders.storage(serdeInfo=SerDeInfo(serializationLib=builders.PARQUET_SERDE)), {}),
        (builders.storage(inputFormat="org.apache.hadoop.mapred.SequenceFileInputFormat"), {PROVIDER: "Parquet"}),
    ],
)
def test_parquet_tables(
    metastore: Metastore, db: str, storage: StorageDescriptor, parameters: Mapping[str, str]
) -> None:
    metastore.tables.create(keyed(db, sd=storage, parameters=parameters), {})
    with pytest.raises(InvalidOperationException, match="bucket=0"):
        alter(metastore, db, bucket="0")
    alter(metastore, db, bucket="8", comment="eight")
    assert (metastore.tables.get(db, "t").parameters or {})["bucket"] == "8"


@pytest.mark.parametrize(
    ("storage", "parameters"),
    [
        (builders.parquet().replace(inputFormat=HUDI), {}),
        (builders.parquet(), {PROVIDER: "hudi"}),
        (builders.parquet(), {PROVIDER: "delta"}),
        (builders.storage(), {PROVIDER: "iceberg"}),
        (builders.storage(), {"table_type": "ICEBERG"}),
        (builders.storage(), {"storage_handler": "org.apache.paimon.hive.PaimonStorageHandler"}),
        (builders.storage(inputFormat="org.apache.paimon.hive.mapred.PaimonInputFormat"), {}),
    ],
)
def test_tables_of_other_systems_are_left_alone(
    metastore: Metastore, db: str, storage: StorageDescriptor, parameters: Mapping[str, str]
) -> None:
    odd = {"primary-key": "no column", "bucket": "-1", "partition.late-rows": "next", **parameters}
    metastore.tables.create(keyed(db, sd=storage, parameters=odd), {})
    write(metastore, db)
    alter(metastore, db, **{"primary-key": "another", "bucket": "-2"})
    alter(metastore, db, **{"primary-key": None})


def test_tables_without_a_key_are_left_alone(metastore: Metastore, db: str) -> None:
    """Hudi's property has another name; an empty one means nothing."""
    odd = {"primary-key": " ", "primaryKey": "id", "bucket": "-1", "merge-engine": "magic"}
    metastore.tables.create(keyed(db, sd=builders.storage(), parameters=odd), {})
    write(metastore, db)
    alter(metastore, db, bucket="-2")


# --- what can't be changed any more ---------------------------------------------------------------------------


def test_what_files_were_written_by_stays(metastore: Metastore, db: str) -> None:
    metastore.tables.create(keyed(db), {})
    alter(metastore, db, bucket="2", **{"merge-engine": "first-row"})
    alter(metastore, db, bucket="4", **{"merge-engine": None, "sequence.field": "name"})
    write(metastore, db)
    before = metastore.tables.get(db, "t")
    for changed, name in (
        ({"bucket": "8"}, "bucket"),
        ({"primary-key": "dt,name", "sequence.field": None}, "primary-key, sequence.field"),
        ({"sequence.field": None}, "sequence.field"),
        ({"sequence.field": None, "merge-engine": "first-row"}, "merge-engine, sequence.field"),
        ({"primary-key": None}, "primary-key"),
        ({"primary-key": ""}, "primary-key"),
        ({PROVIDER: "hudi"}, "primary-key"),
    ):
        with pytest.raises(InvalidOperationException, match=f"{db}.t: {name} can't be changed.* into a new table"):
            alter(metastore, db, **changed)
    assert metastore.tables.get(db, "t") == before
    alter(metastore, db, **{"table-type": "merge-on-read", "bucket": " 4", "primary-key": "ID, dt"})
    metastore.tables.alter(db, "t", metastore.tables.get(db, "t").replace(tableName="u"), {})
    metastore.tables.truncate(db, "u", None)
    alter(metastore, db, "u", bucket="8")


def test_columns_by_which_buckets_are_found_stay(metastore: Metastore, db: str) -> None:
    def type_of_table() -> str | None:
        return (metastore.tables.get(db, "t").parameters or {}).get("table-type")

    metastore.tables.create(keyed(db, parameters={"primary-key": "dt,id,name", "bucket-key": "id"}), {})
    assert type_of_table() == "copy-on-write+bucket-key", "clients that don't know the property refuse that"
    alter(metastore, db, **{"bucket-key": None})
    assert type_of_table() == "copy-on-write"
    alter(metastore, db, **{"bucket-key": "name", "table-type": "merge-on-read"})
    assert type_of_table() == "merge-on-read+bucket-key"
    with pytest.raises(InvalidOperationException, match="partitioned by dt, so a bucket has one value"):
        alter(metastore, db, **{"bucket-key": "dt"})
    with pytest.raises(InvalidOperationException, match=r"placed by bucket-key='', and .* has 'name'"):
        write(metastore, db)
    write(metastore, db, layout={"bucket-key": "Name"})
    for changed in ({"bucket-key": "id"}, {"bucket-key": None}, {"bucket-key": "id,name"}):
        with pytest.raises(InvalidOperationException, match=r"bucket-key can't be changed.* into a new table"):
            alter(metastore, db, **changed)
    alter(metastore, db, **{"table-type": "copy-on-write"})
    assert type_of_table() == "copy-on-write+bucket-key"
    with pytest.raises(InvalidObjectException, match="'rows' isn't known here: a later version has made the table"):
        metastore.tables.create(keyed(db, "u", parameters={"table-type": "merge-on-read+rows"}), {})


def test_a_table_with_files_gets_no_key(metastore: Metastore, db: str) -> None:
    metastore.tables.create(keyed(db).replace(parameters={}), {})
    write(metastore, db)
    with pytest.raises(InvalidOperationException, match="primary-key can't be changed"):
        alter(metastore, db, **KEY)
    metastore.tables.truncate(db, "t", None)
    alter(metastore, db, **KEY)


def test_columns_of_a_key_stay(metastore: Metastore, db: str) -> None:
    metastore.tables.create(keyed(db, parameters={"timeline.schema-changes": "any"}), {})
    table = metastore.tables.get(db, "t")
    assert table.sd is not None
    without = table.replace(sd=table.sd.replace(cols=builders.columns("name:string")))
    with pytest.raises(InvalidOperationException, match="the table has no column id"):
        metastore.tables.alter(db, "t", without, {}, incompatible_types_allowed=True)
    with pytest.raises(InvalidOperationException, match="the table has no column id"):
        write(metastore, db, "t", Column("name", "string"))
    write(metastore, db, "t", Column("id", "bigint"), Column("more", "double"))
    table = metastore.tables.get(db, "t")
    assert table.sd is not None
    assert [each.name for each in table.sd.cols or ()] == ["id", "more"]


CHANGED_TYPES = [
    ("id:string", {}, "primary-key"),
    ("id:bigint", {}, None),
    ("id:tinyint", {}, None),
    ("name:varchar(9)", {"sequence.field": "name"}, None),
    ("name:date", {"sequence.field": "name"}, "sequence.field"),
    ("name:date", {}, None),
    ("n:bigint", {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}, None),
    (
        "n:double",
        {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"},
        "fields.\\*.aggregate-function",
    ),
    ("n:string", {"merge-engine": "partial-update", "fields.n.sequence-group": "name"}, "fields.\\*.sequence-group"),
    ("name:int", {"merge-engine": "partial-update", "fields.n.sequence-group": "name"}, None),
]
"""An altered column of a table with id:int, name:string, n:int; the table's properties; which of them refuses it."""


@pytest.mark.parametrize("how", ["alter", "commit"])
@pytest.mark.parametrize(("column", "parameters", "refused"), CHANGED_TYPES)
def test_types_by_which_rows_are_merged_stay(
    metastore: Metastore, db: str, how: str, column: str, parameters: Mapping[str, str], refused: str | None
) -> None:
    """Values in files hash and compare by their type: only ranges may change."""
    parameters = {**parameters, "timeline.schema-changes": "any"}
    metastore.tables.create(keyed(db, sd=builders.parquet("id:int", "name:string", "n:int"), parameters=parameters), {})
    types = {"id": "int", "name": "string", "n": "int"}
    name, _, kind = column.partition(":")

    def change(types: Mapping[str, str], group: str = "bucket-00001") -> None:
        if how == "commit":
            write(metastore, db, "t", *(Column(*each) for each in types.items()), group=group)
            return
        table = metastore.tables.get(db, "t")
        assert table.sd is not None
        changed = table.sd.replace(cols=builders.columns(*(f"{name}:{kind}" for name, kind in types.items())))
        metastore.tables.alter(db, "t", table.replace(sd=changed), {}, incompatible_types_allowed=True)

    change({**types, name: kind})  # of a table without files
    metastore.tables.truncate(db, "t", None)
    change(types)
    write(metastore, db)
    if how == "commit":
        metastore.tables.truncate(db, "t", None)
        change(types, "bucket-00000")
        change({**types, name: kind}, "bucket-00000")  # which replaces all files
        change(types, "bucket-00000")
    if refused is None:
        change({**types, name: kind})
        return
    with pytest.raises(InvalidOperationException, match=f"{db}.t: {refused} can't be changed.* into a new table"):
        change({**types, name: kind})
    sd = metastore.tables.get(db, "t").sd
    assert sd is not None
    assert {each.name: each.type for each in sd.cols or ()} == types


# --- another key for all files --------------------------------------------------------------------------------

REKEYED = {"timeline.schema-changes": "any", "spark.sql.sources.schema": "{}"}
COLUMNS = (Column("id", "int"), Column("name", "string"))


def test_who_replaces_all_files_may_give_the_table_another_key(metastore: Metastore, db: str) -> None:
    sd = builders.parquet("id:int", "name:string")
    metastore.tables.create(keyed(db, sd=sd, parameters=REKEYED), {})
    table = TableReference(database=db, table="t")
    layout, other_layout = {"primary-key": "id,dt"}, {"primary-key": "id,name,dt"}
    first = write(metastore, db)
    lease = metastore.reader_leases.take(LeaseRequest(table, "reader", seconds=60))
    assert lease.position == 1
    other = {"primary-key": "dt,id,name"}
    with pytest.raises(InvalidOperationException, match=r"primary-key can't be changed.* into a new table"):
        write(metastore, db, "t", *COLUMNS, group="bucket-00001", properties=other)
    with pytest.raises(InvalidOperationException, match="the table has no column more"):
        write(metastore, db, "t", *COLUMNS, properties={"primary-key": "dt,more"})
    for nothing in ("", " "):
        with pytest.raises(InvalidOperationException, match=r"may only give .* primary-key if it has a primary"):
            write(metastore, db, "t", *COLUMNS, properties={"primary-key": nothing})
    with pytest.raises(InvalidOperationException, match="'merge-engine' can't be changed with the columns"):
        write(metastore, db, "t", *COLUMNS, properties={"merge-engine": "deduplicate"})
    with pytest.raises(InvalidOperationException, match=r"placed by primary-key='id,name,dt', and .* has 'id,dt'"):
        write(metastore, db, "t", *COLUMNS, properties=other, layout=other_layout)
    last = write(metastore, db, "t", *COLUMNS, properties=other, layout=layout)
    parameters = metastore.tables.get(db, "t").parameters or {}
    assert (parameters["primary-key"], parameters["spark.sql.sources.schema"]) == ("dt,id,name", "{}")
    found = metastore.file_snapshots.read(Scope.UNCOMMITTED, SnapshotRequest(table))
    assert [each.slice for each in found.files or ()] == [last.timestamp]
    for position in (0, 1):
        with pytest.raises(SnapshotGone):
            metastore.file_snapshots.read(Scope.UNCOMMITTED, SnapshotRequest(table, asOfPosition=position))
        with pytest.raises(SnapshotGone):
            metastore.file_snapshots.changes(Scope.UNCOMMITTED, ReadChangesRequest(table, after=position))
    assert metastore.reader_leases.listing(table) == [], "which would keep the first snapshot readable"
    begun = metastore.timeline.begin(BeginInstantRequest(table, "rollback", state="inflight"))
    with pytest.raises(InvalidOperationException, match="position 1"):
        metastore.instant_completion.complete(
            [CompleteInstantRequest(table, begun.timestamp, "rollback", rolledBack=[last])]
        )
    with pytest.raises(InvalidOperationException, match="have been cleaned already"):
        metastore.timeline.begin(BeginInstantRequest(table, "savepoint", first.timestamp))
    with pytest.raises(InvalidOperationException, match=r"placed by primary-key='id,dt', and .* has 'id,name,dt'"):
        write(metastore, db, layout=layout)
    write(metastore, db, layout=other_layout)
    changes = metastore.file_snapshots.changes(Scope.UNCOMMITTED, ReadChangesRequest(table, after=2)).changes
    assert len(changes or ()) == 1


def test_savepoints_keep_a_tables_key(metastore: Metastore, db: str) -> None:
    metastore.tables.create(keyed(db, sd=builders.parquet("id:int", "name:string"), parameters=REKEYED), {})
    table = TableReference(database=db, table="t")
    saved = metastore.timeline.begin(
        BeginInstantRequest(table, "savepoint", write(metastore, db).timestamp, state="inflight")
    )
    metastore.instant_completion.complete([CompleteInstantRequest(table, saved.timestamp, "savepoint")])
    with pytest.raises(InvalidOperationException, match="a savepoint keeps position 1"):
        write(metastore, db, "t", *COLUMNS, properties={"primary-key": "dt,name"})
    metastore.timeline.delete(table, saved.timestamp, "savepoint")
    write(metastore, db, "t", *COLUMNS, properties={"primary-key": "dt,name"})


def test_only_keyed_tables_that_allow_it_get_another_key(metastore: Metastore, db: str) -> None:
    sd = builders.parquet("id:int", "name:string")
    metastore.tables.create(keyed(db, sd=sd), {})
    metastore.tables.create(keyed(db, "plain", sd=sd).replace(parameters=REKEYED), {})
    for name in ("t", "plain"):
        for change in ({"primary-key": "dt,name"}, {"bucket": "2"}, {"bucket-key": "id"}):
            with pytest.raises(InvalidOperationException, match=rf"may only give .* another {min(change)} if it has a"):
                write(metastore, db, name, *COLUMNS, properties=change)


def test_who_replaces_all_files_may_place_the_rows_otherwise(metastore: Metastore, db: str) -> None:
    sd = builders.parquet("id:int", "name:string")
    own = {**REKEYED, "primary-key": "id,name,dt", "bucket": "1"}
    metastore.tables.create(keyed(db, sd=sd, parameters=own), {})
    table = TableReference(database=db, table="t")
    write(metastore, db)
    other = {"bucket": "4", "bucket-key": "name"}
    with pytest.raises(InvalidOperationException, match=r"bucket, bucket-key can't be changed.* into a new table"):
        write(metastore, db, "t", *COLUMNS, group="bucket-00001", properties=other)
    with pytest.raises(InvalidOperationException, match="bucket"):
        write(metastore, db, "t", *COLUMNS, properties={"bucket": "none"})
    last = write(metastore, db, "t", *COLUMNS, properties=other, layout={"bucket": "1"})
    parameters = metastore.tables.get(db, "t").parameters or {}
    assert (parameters["bucket"], parameters["bucket-key"], parameters["primary-key"]) == ("4", "name", "id,name,dt")
    assert "bucket-key" in parameters["table-type"], "older clients don't read it"
    found = metastore.file_snapshots.read(Scope.UNCOMMITTED, SnapshotRequest(table))
    assert [each.slice for each in found.files or ()] == [last.timestamp]
    with pytest.raises(SnapshotGone):
        metastore.file_snapshots.read(Scope.UNCOMMITTED, SnapshotRequest(table, asOfPosition=1))
    with pytest.raises(InvalidOperationException, match=r"placed by bucket='1', and .* has '4'"):
        write(metastore, db, layout={"bucket": "1", "bucket-key": "name"})
    write(metastore, db, "t", *COLUMNS, properties={"bucket-key": ""}, layout={"bucket": "4", "bucket-key": "name"})
    parameters = metastore.tables.get(db, "t").parameters or {}
    assert "bucket-key" not in parameters
    assert "bucket-key" not in parameters.get("table-type", "")


def test_earlier_snapshots_of_an_empty_table_are_not_read_by_its_new_key(metastore: Metastore, db: str) -> None:
    metastore.tables.create(keyed(db, sd=builders.parquet("id:int", "name:string")), {})
    table = TableReference(database=db, table="t")
    write(metastore, db)
    begun = metastore.timeline.begin(BeginInstantRequest(table, "replacecommit", state="inflight"))
    emptied = CompleteInstantRequest(table, begun.timestamp, "replacecommit", replacedPartitions=["dt=1"])
    metastore.instant_completion.complete([emptied])
    metastore.file_snapshots.read(Scope.UNCOMMITTED, SnapshotRequest(table, asOfPosition=1))
    alter(metastore, db, comment="the same key")
    metastore.file_snapshots.read(Scope.UNCOMMITTED, SnapshotRequest(table, asOfPosition=1))
    alter(metastore, db, **{"primary-key": "dt,name"})
    with pytest.raises(SnapshotGone):
        metastore.file_snapshots.read(Scope.UNCOMMITTED, SnapshotRequest(table, asOfPosition=1))
    assert metastore.file_snapshots.read(Scope.UNCOMMITTED, SnapshotRequest(table)).files == []
