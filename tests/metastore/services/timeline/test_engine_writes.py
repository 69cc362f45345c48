"""Rows that engines write past the timeline are refused where their calls tell of them; definitions go on."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPartitionsRequest,
    DataOperationType,
    EnvironmentContext,
    FieldSchema,
    FireEventRequest,
    FireEventRequestData,
    InsertEventRequestData,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    MetaException,
    Partition,
    Table,
)
from lake.protocol.lake import InstantKey
from lake.tables.lake import LakeClient, LakeTable
from lake.tables.publishing import publish
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from tests.lake.tables.keyed.histories import make_table
from tests.metastore.services.timeline import lake as timelines
from tests.metastore.services.timeline.lake import DAY, file
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.target import local_path

PAST = "readers of the timeline don't see such rows"
PART = "part-00000-1.snappy.parquet"
"""A file as Spark names it."""


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(metastore_server.host, metastore_server.port) as client:
        yield client


class Written:
    """A keyed table with a row, as an engine finds it."""

    def __init__(self, lakes: LakeClient, client: ThriftClient, *, partitioned: bool = True) -> None:
        columns = {"id": "bigint", "v": "int", **({"part": "string"} if partitioned else {})}
        key = {"primary-key": "id,part" if partitioned else "id"}
        self.lake: LakeTable = make_table(lakes, key, columns, partitioned)
        row = {"id": [1], "v": pa.array([1], pa.int32()), "part": ["x"]}
        self.lake.upsert(pa.table({name: row[name] for name in columns}))
        self.db, self.name = self.lake.reference.database or "", self.lake.reference.table or ""
        self.client = client

    @property
    def table(self) -> Table:
        return self.client.get_table(self.db, self.name)

    def partition(self, value: str = "x") -> Partition:
        return self.client.get_partition(self.db, self.name, [value])

    def new(self, value: str) -> Partition:
        sd = self.table.sd
        return Partition([value], self.db, self.name, 0, 0, sd.replace(location=f"{sd.location}/part={value}"), {})

    def allow(self) -> None:
        table = self.table
        parameters = {**table.parameters, "allow-external-writes": "true"}
        self.client.alter_table(self.db, self.name, table.replace(parameters=parameters))


@pytest.fixture
def lakes(metastore_server: MetastoreServer) -> Iterator[LakeClient]:
    with LakeClient(metastore_server.uri) as lakes:
        yield lakes


@pytest.fixture
def keyed(lakes: LakeClient, client: ThriftClient) -> Written:
    return Written(lakes, client)


@pytest.fixture
def flat(lakes: LakeClient, client: ThriftClient) -> Written:
    return Written(lakes, client, partitioned=False)


def insert(location: str | Path, name: str = PART) -> Path:
    """Leaves a file where an engine's INSERT does."""
    place = (location if isinstance(location, Path) else local_path(location)) / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"PAR1")
    return place


def loads_new_partition(keyed: Written) -> None:
    """Hive's load, and Spark's of a table that its reader doesn't convert."""
    new = keyed.new("n")
    insert(new.sd.location)
    keyed.client.add_partition_with_environment_context(new, EnvironmentContext({}))


def inserts_new_partitions(keyed: Written) -> None:
    """Spark's INSERT, and its MSCK REPAIR TABLE."""
    new = keyed.new("n")
    insert(new.sd.location)
    keyed.client.add_partitions_req(AddPartitionsRequest(keyed.db, keyed.name, [new], ifNotExists=True))


def adds_partitions(keyed: Written) -> None:
    """Trino's INSERT; it deletes the files again when the call fails."""
    new = keyed.new("n")
    insert(new.sd.location)
    keyed.client.add_partitions([new])


def appends_partition(keyed: Written) -> None:
    insert(keyed.new("n").sd.location)
    keyed.client.append_partition(keyed.db, keyed.name, ["n"])


def loads_partition_again(keyed: Written) -> None:
    partition = keyed.partition()
    insert(partition.sd.location)
    parameters = {"transient_lastDdlTime": "1", "COLUMN_STATS_ACCURATE": "{}"}
    keyed.client.alter_partition(keyed.db, keyed.name, partition.replace(parameters=parameters))


def updates_statistics(keyed: Written) -> None:
    """Trino's INSERT into a partition that is there."""
    partition = keyed.partition()
    insert(partition.sd.location)
    partition.parameters.update(numFiles="1", numRows="2", totalSize="3")
    keyed.client.alter_partitions(keyed.db, keyed.name, [partition])


def moves_a_partition(keyed: Written) -> None:
    """ALTER TABLE … PARTITION … SET LOCATION to a directory with files of an engine."""
    partition = keyed.partition()
    place = f"{keyed.table.sd.location}/elsewhere"
    insert(place)
    moved = partition.replace(sd=partition.sd.replace(location=place))
    keyed.client.alter_partitions(keyed.db, keyed.name, [moved])


def loads_union(keyed: Written) -> None:
    """Hive leaves the rows of each part of a UNION ALL in a directory of their own."""
    partition = keyed.partition()
    insert(partition.sd.location, "HIVE_UNION_SUBDIR_1/000000_0")
    keyed.client.alter_partition(keyed.db, keyed.name, partition)


REPORTS = [
    loads_new_partition,
    inserts_new_partitions,
    adds_partitions,
    appends_partition,
    loads_partition_again,
    updates_statistics,
    moves_a_partition,
    loads_union,
]


@pytest.mark.parametrize("report", REPORTS, ids=[each.__name__ for each in REPORTS])
def test_rows_that_engines_report(keyed: Written, report: Callable[[Written], None]) -> None:
    before = keyed.client.get_partition_names(keyed.db, keyed.name, -1), keyed.partition(), keyed.table
    with pytest.raises(MetaException, match=PAST) as refused:
        report(keyed)
    assert "allow-external-writes=true" in str(refused.value)
    assert (keyed.client.get_partition_names(keyed.db, keyed.name, -1), keyed.partition(), keyed.table) == before
    keyed.allow()
    report(keyed)


def test_rows_in_a_published_partition(keyed: Written) -> None:
    publish(keyed.lake)
    updated = keyed.partition()
    keyed.client.alter_partition(keyed.db, keyed.name, updated)
    with pytest.raises(MetaException, match=PAST):
        loads_partition_again(keyed)


@pytest.mark.parametrize("published", [False, True])
def test_rows_in_a_table_without_partitions(flat: Written, published: bool) -> None:
    """Hive's load, Spark's and Trino's INSERT alter the table, which has other statistics then, or none."""
    if published:
        publish(flat.lake)
    table = flat.table
    table.parameters.pop("transient_lastDdlTime")
    flat.client.alter_table(flat.db, flat.name, table)
    insert(table.sd.location)
    for changed in ({}, {"numRows": "7", "spark.sql.statistics.totalSize": "9"}):
        with pytest.raises(MetaException, match=PAST):
            new = table.replace(parameters={**table.parameters, **changed})
            flat.client.alter_table_with_environment_context(flat.db, flat.name, new, EnvironmentContext({}))
    # A definition is changed even so.
    sd = table.sd.replace(cols=[*table.sd.cols, FieldSchema("w", "int", None)])
    flat.client.alter_table(flat.db, flat.name, table.replace(sd=sd))
    flat.allow()
    flat.client.alter_table(flat.db, flat.name, flat.table)


def locks(written: Written, operation: int) -> LockRequest:
    component = LockComponent(
        LockType.SHARED_READ, LockLevel.TABLE, written.db, written.name, operationType=operation, isTransactional=False
    )
    return LockRequest([component], user="u", hostname="h")


def test_hive_is_refused_before_it_writes(keyed: Written) -> None:
    for operation in (DataOperationType.INSERT, DataOperationType.UPDATE, DataOperationType.DELETE):
        with pytest.raises(TApplicationException, match=PAST):
            keyed.client.lock(locks(keyed, operation))
    for operation in (DataOperationType.UNSET, DataOperationType.NO_TXN):
        assert keyed.client.lock(locks(keyed, operation)).state == LockState.ACQUIRED
    keyed.allow()
    assert keyed.client.lock(locks(keyed, DataOperationType.INSERT)).state == LockState.ACQUIRED


def test_insert_events(keyed: Written) -> None:
    data = FireEventRequestData(insertData=InsertEventRequestData(filesAdded=[PART]))
    request = FireEventRequest(True, data, keyed.db, keyed.name, ["x"])
    with pytest.raises(TApplicationException, match=PAST):
        keyed.client.fire_listener_event(request)
    keyed.allow()
    assert len(keyed.client.fire_listener_event(request).eventIds) == 1


def test_exchanges(keyed: Written) -> None:
    sd = keyed.table.sd.replace(location=None)
    keyed.client.create_table(keyed.table.replace(tableName="source", sd=sd, parameters={}))
    keyed.client.add_partition(keyed.new("n").replace(tableName="source", sd=sd))
    with pytest.raises(MetaException, match=PAST):
        keyed.client.exchange_partition({"part": "n"}, keyed.db, "source", keyed.db, keyed.name)


def test_definitions_go_on(keyed: Written) -> None:
    """Statistics and empty partitions too, and the writer's own commits and publishes."""
    client = keyed.client
    client.add_partitions([keyed.new("empty")])
    client.alter_partition(keyed.db, keyed.name, keyed.partition("empty"))
    table = keyed.table
    sd = table.sd.replace(cols=[*table.sd.cols, FieldSchema("w", "int", None)])
    client.alter_table(keyed.db, keyed.name, table.replace(sd=sd, parameters={**table.parameters, "note": "x"}))
    client.drop_partition(keyed.db, keyed.name, ["empty"], True)
    client.alter_table(keyed.db, keyed.name, keyed.table.replace(tableName="renamed"))


# --- lake tables without a key ----------------------------------------------------------------------------------


@pytest.fixture
def plain(metastore: Metastore, db: str) -> timelines.LakeTable:
    """A Parquet table with a partition in its timeline and one that is older than it."""
    table = timelines.LakeTable(metastore, db, sd=builders.parquet())
    older = builders.partition(db, "t", "2026-01-09")
    [added] = metastore.partitions.add(db, "t", [older], {}).partitions
    assert added.sd is not None
    insert(added.sd.location or "")
    instant = table.begin()
    table.complete(instant, file(DAY(1), "g", instant.timestamp or "", path=f"{DAY(1)}/own.parquet"))
    insert(table.directory / DAY(1), "own.parquet")
    return table


def alter(table: timelines.LakeTable, value: str) -> None:
    found = table.metastore.partition_reads.get(Scope.READY, table.db, table.name, [value])
    table.metastore.partitions.alter(table.db, table.name, [found], {})


def test_a_lake_table_s_own_files_and_older_partitions(plain: timelines.LakeTable) -> None:
    alter(plain, "2026-01-01")
    alter(plain, "2026-01-09")
    insert(plain.directory / DAY(1))
    with pytest.raises(MetaException, match=PAST):
        alter(plain, "2026-01-01")


def test_files_that_are_about_to_be_deleted(metastore: Metastore, db: str) -> None:
    """They aren't in any snapshot any more, and still in the directory."""
    table = timelines.LakeTable(metastore, db, keys=(), sd=builders.parquet())
    for name in ("old", "own"):
        instant = table.begin()
        table.complete(instant, file("", name, instant.timestamp or "", path=f"{name}.parquet"))
        insert(table.directory, f"{name}.parquet")
        if name == "old":
            table.complete(table.begin("rollback"), rolledBack=[InstantKey(instant.timestamp, "commit")])
    metastore.tables.alter(db, "t", table.hive, {})
    table.clean(["old.parquet"])
    metastore.tables.alter(db, "t", table.hive, {})
    insert(table.directory)
    with pytest.raises(MetaException, match=PAST):
        metastore.tables.alter(db, "t", table.hive, {})


def test_new_partitions_of_a_lake_table(plain: timelines.LakeTable) -> None:
    new = builders.partition(plain.db, "t", "2026-01-02")
    place = insert(plain.directory / DAY(2))
    with pytest.raises(MetaException, match=PAST):
        plain.metastore.partitions.add(plain.db, "t", [new], {})
    place.unlink()
    plain.metastore.partitions.add(plain.db, "t", [new], {})


def test_tables_without_a_timeline_and_of_other_formats(metastore: Metastore, db: str) -> None:
    metastore.tables.create(builders.table(db, "parquet", keys=("dt",), sd=builders.parquet()), {})
    hoodie = builders.storage(inputFormat="org.apache.hudi.hadoop.HoodieParquetInputFormat")
    hudi = timelines.LakeTable(metastore, db, "hudi", sd=hoodie, parameters={"primary-key": "id"})
    hudi.commit("g")
    for name in ("parquet", "hudi"):
        directory = local_path(metastore.tables.get(db, name).sd.location or "")  # type: ignore[union-attr]
        insert(directory / DAY(2))
        metastore.partitions.add(db, name, [builders.partition(db, name, "2026-01-02")], {})
        found = metastore.partition_reads.get(Scope.READY, db, name, ["2026-01-02"])
        metastore.partitions.alter(db, name, [found], {})
