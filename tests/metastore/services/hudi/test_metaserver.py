"""Hudi's metaserver protocol: tables that Hive's clients see, too, and the liberties that Hudi takes with instants."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.clock import now_ms
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import NoSuchObjectException as NoSuchObjectInHive
from lake.protocol.hudi import (
    AlreadyExistException,
    FieldSchema,
    MetaserverException,
    MetaserverStorageException,
    NoSuchObjectException,
    Table,
    TAction,
    THoodieInstant,
    TState,
)
from lake.protocol.lake import BeginInstantRequest, CompleteInstantRequest, DataFile, SnapshotRequest, TableReference
from metastore.services.instant_rules.states import timestamp_at
from tests.support import builders
from tests.support.expect import refused
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
REQUESTED, INFLIGHT, COMPLETED = TState.REQUESTED, TState.INFLIGHT, TState.COMPLETED
COMMIT, COMPACTION = TAction.COMMIT, TAction.COMPACTION
SCHEMA = {
    "type": "record",
    "name": "orders",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "dt", "type": "string"},
    ],
}


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(metastore_server.host, metastore_server.port) as connection:
        yield connection


@pytest.fixture
def db() -> str:
    """The name of a database that isn't there yet."""
    return f"hudi_{next(NUMBERS)}"


@pytest.fixture
def table(client: ThriftClient, db: str, tmp_path: Path) -> TableReference:
    """A table `t` as Hudi registers it, by day."""
    properties(tmp_path, "hoodie.table.partition.fields=dt")
    client.createTable(Table(tableName="t", dbName=db, location=str(tmp_path), tableType="COPY_ON_WRITE"))
    return TableReference(database=db, table="t")


def properties(location: Path, *lines: str) -> None:
    """Writes Hudi's file beside a table's data."""
    (location / ".hoodie").mkdir()
    (location / ".hoodie/hoodie.properties").write_text("\n".join(("#Properties saved on …", *lines)))


def instant(timestamp: str, action: TAction = COMMIT, state: TState = REQUESTED) -> THoodieInstant:
    return THoodieInstant(timestamp, action, state)


def listed(client: ThriftClient, db: str, count: int = 24) -> list[tuple[str, str, str]]:
    return [
        (each.timestamp, TAction(each.action).name, TState(each.state).name)
        for each in client.listInstants(db, "t", count)
    ]


def metadata(group: str, timestamp: str, directory: str = "dt=2026-01-01") -> bytes:
    """What Hudi 0.15 writes of a commit of one base file."""
    path = f"{directory}/{group}_0-1-0_{timestamp}.parquet"
    stat = {"fileId": group, "path": path, "prevCommit": "null", "numWrites": 3, "fileSizeInBytes": 1_000}
    return json.dumps(
        {
            "partitionToWriteStats": {directory: [stat]},
            "compacted": False,
            "extraMetadata": {"schema": json.dumps(SCHEMA)},
            "operationType": "UPSERT",
        }
    ).encode()


def begin(client: ThriftClient, db: str, timestamp: str, action: TAction = COMMIT) -> None:
    client.createNewInstantWithTime(db, "t", instant(timestamp, action), b"")
    client.transitionInstantState(db, "t", instant(timestamp, action), instant(timestamp, action, INFLIGHT), b"")


def complete(client: ThriftClient, db: str, timestamp: str, content: bytes) -> None:
    client.transitionInstantState(
        db, "t", instant(timestamp, COMMIT, INFLIGHT), instant(timestamp, COMMIT, COMPLETED), content
    )


class TestTables:
    def test_registered_by_hudi(self, client: ThriftClient, db: str, tmp_path: Path) -> None:
        properties(tmp_path, "hoodie.table.partition.fields=dt,hr\\:SIMPLE", "hoodie.table.name=t")
        client.createTable(
            Table(tableName="T", dbName=db, owner="ann", location=str(tmp_path), tableType="MERGE_ON_READ")
        )
        answer = client.getTable(db, "t")
        assert (answer.tableName, answer.dbName, answer.owner) == ("t", db, "ann")
        assert answer.tableType == "MERGE_ON_READ"
        assert answer.location.endswith(str(tmp_path))
        assert [key.name for key in answer.partitionKeys] == ["dt", "hr"]
        seen = client.get_table(db, "t")
        assert seen.tableType == "EXTERNAL_TABLE"
        assert seen.parameters["spark.sql.sources.provider"] == "hudi"
        assert seen.sd.inputFormat == "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
        assert [key.name for key in seen.partitionKeys] == ["dt", "hr"]

    def test_keys_that_the_client_names(self, client: ThriftClient, db: str, tmp_path: Path) -> None:
        client.createDatabase(db)
        keys = [FieldSchema("day", "date", "of the order")]
        client.createTable(Table(tableName="t", dbName=db, location=str(tmp_path), partitionKeys=keys))
        assert client.getTable(db, "t").partitionKeys == keys
        assert client.getTable(db, "t").tableType == "COPY_ON_WRITE"

    @pytest.mark.parametrize(
        ("parameters", "format", "answer"),
        [
            ({"type": "mor"}, None, "MERGE_ON_READ"),
            ({"type": "cow"}, None, "COPY_ON_WRITE"),
            ({}, "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat", "MERGE_ON_READ"),
            ({}, "org.apache.hudi.hadoop.HoodieParquetInputFormat", "COPY_ON_WRITE"),
            ({}, None, "MERGE_ON_READ"),
        ],
    )
    def test_registered_in_hive(
        self, client: ThriftClient, db: str, tmp_path: Path, parameters: dict[str, str], format: str | None, answer: str
    ) -> None:
        """By a sync, by Spark SQL, or by a table of no kind whose files are Hudi's."""
        properties(tmp_path, "hoodie.table.type=MERGE_ON_READ")
        client.create_database(builders.database(db))
        sd = builders.storage(location=str(tmp_path), inputFormat=format)
        client.create_table(builders.external_table(db, keys=("dt",), sd=sd, parameters=parameters))
        assert client.getTable(db, "t").tableType == answer
        assert [key.name for key in client.getTable(db, "t").partitionKeys] == ["dt"]
        assert client.listInstants(db, "t", 24) == []

    def test_taken(self, client: ThriftClient, db: str, table: TableReference, tmp_path: Path) -> None:
        with refused(AlreadyExistException):
            client.createTable(Table(tableName="t", dbName=db, location=str(tmp_path)))
        with refused(AlreadyExistException):
            client.createDatabase(db)

    def test_what_can_t_be_a_table(self, client: ThriftClient, db: str) -> None:
        with refused(MetaserverException, message="not a valid object name"):
            client.createTable(Table(tableName="a\\b", dbName=db, location="file:/nowhere/t"))
        with refused(MetaserverStorageException, message="not a valid database name"):
            client.createDatabase("a/b")

    def test_missing(self, client: ThriftClient, db: str) -> None:
        one, two = instant("20260101000000000"), instant("20260101000000000", COMMIT, INFLIGHT)
        calls: dict[str, tuple[Any, ...]] = {
            "getTable": (),
            "listInstants": (24,),
            "getInstantMetadata": (one,),
            "createNewInstantTime": (),
            "createNewInstantWithTime": (one, b""),
            "transitionInstantState": (one, two, b""),
            "deleteInstant": (one,),
        }
        for name, arguments in calls.items():
            with refused(NoSuchObjectException, message=f"{db}.t"):
                client.call(name, db, "t", *arguments)
        with pytest.raises(NoSuchObjectInHive):
            client.get_table(db, "t")

    def test_views_are_no_tables(self, client: ThriftClient, db: str) -> None:
        client.create_database(builders.database(db))
        client.create_table(builders.view(db, "v"))
        with refused(NoSuchObjectException, message="is a view"):
            client.getTable(db, "v")


class TestInstants:
    def test_timestamps_rise(self, client: ThriftClient, db: str, table: TableReference) -> None:
        given = [client.createNewInstantTime(db, "t") for _ in range(20)]
        assert given == sorted(set(given))
        later = timestamp_at(now_ms() + 20 * 3_600_000)
        client.createNewInstantWithTime(db, "t", instant(later), b"")
        assert client.createNewInstantTime(db, "t") > later

    @pytest.mark.parametrize("timestamp", ["99991231235959999", "99991231235959"])
    def test_none_ends_the_timeline(self, client: ThriftClient, db: str, table: TableReference, timestamp: str) -> None:
        with refused(MetaserverStorageException, message="is in the future"):
            client.createNewInstantWithTime(db, "t", instant(timestamp), b"")
        assert client.createNewInstantTime(db, "t") < "9"

    def test_from_requested_to_inflight(self, client: ThriftClient, db: str, table: TableReference) -> None:
        old, new = instant("20260101000000000"), instant("20260101000000000", COMMIT, INFLIGHT)
        for _ in range(2):  # who lost a reply calls again
            done = client.createNewInstantWithTime(db, "t", old, b"planned")
            assert (done.success, done.instant) == (True, old)
        for _ in range(2):
            done = client.transitionInstantState(db, "t", old, new, b"profile")
            assert (done.success, done.instant) == (True, new)
        assert listed(client, db) == [("20260101000000000", "COMMIT", "INFLIGHT")]
        assert client.getInstantMetadata(db, "t", old) == b"planned"
        assert client.getInstantMetadata(db, "t", new) == b"profile"
        assert client.getInstantMetadata(db, "t", instant("20260101000000000", COMMIT, COMPLETED)) == b""
        assert client.getInstantMetadata(db, "t", instant("20260102000000000")) == b""
        with refused(MetaserverException, message="other metadata"):
            client.transitionInstantState(db, "t", old, new, b"another")

    def test_ways_that_there_aren_t(self, client: ThriftClient, db: str, table: TableReference) -> None:
        one = "20260101000000000"
        client.createNewInstantWithTime(db, "t", instant(one), b"")
        with refused(MetaserverException, message="expected inflight"):
            client.transitionInstantState(db, "t", instant(one), instant(one, COMMIT, COMPLETED), metadata("a", one))
        with refused(MetaserverException, message="keeps its time"):
            client.transitionInstantState(db, "t", instant(one), instant("20260102000000000", COMMIT, INFLIGHT), b"")
        with refused(MetaserverException, message="can't be completed as"):
            client.transitionInstantState(db, "t", instant(one), instant(one, TAction.CLEAN, INFLIGHT), b"")
        with refused(MetaserverException, message="no state"):
            client.transitionInstantState(db, "t", instant(one), instant(one, COMMIT, TState.NIL), b"")
        with refused(MetaserverStorageException, message="no action"):
            client.createNewInstantWithTime(db, "t", THoodieInstant("20260103000000000", 99, REQUESTED), b"")
        with refused(MetaserverStorageException, message="requested or inflight"):
            client.createNewInstantWithTime(db, "t", instant("20260103000000000", COMMIT, COMPLETED), b"")
        with refused(NoSuchObjectException, message="has no instant"):
            client.transitionInstantState(
                db, "t", instant("20260104000000000"), instant("20260104000000000", COMMIT, INFLIGHT), b""
            )

    def test_states_are_deleted_as_files_are(self, client: ThriftClient, db: str, table: TableReference) -> None:
        """As Hudi rolls back a commit that failed, and gives a compaction back."""
        one = "20260101000000000"
        begin(client, db, one)
        with refused(MetaserverStorageException, message="is inflight"):
            client.deleteInstant(db, "t", instant(one))
        for _ in range(2):
            assert client.deleteInstant(db, "t", instant(one, COMMIT, INFLIGHT)).success
            assert listed(client, db) == [(one, "COMMIT", "REQUESTED")]
        for _ in range(2):
            assert client.deleteInstant(db, "t", instant(one)).success
            assert listed(client, db) == []

    def test_a_completed_commit_stays(self, client: ThriftClient, db: str, table: TableReference) -> None:
        one = "20260101000000000"
        begin(client, db, one)
        complete(client, db, one, metadata("a", one))
        with refused(MetaserverStorageException, message="rollback"):
            client.deleteInstant(db, "t", instant(one, COMMIT, COMPLETED))
        assert listed(client, db) == [(one, "COMMIT", "COMPLETED")]


class TestCompletion:
    def test_everything_at_once(self, client: ThriftClient, db: str, table: TableReference) -> None:
        one = "20260101000000000"
        begin(client, db, one)
        assert client.get_partition_names(db, "t", -1) == []
        for _ in range(2):
            complete(client, db, one, metadata("a", one))
        assert client.get_partition_names(db, "t", -1) == ["dt=2026-01-01"]
        found = client.get_partition(db, "t", ["2026-01-01"])
        assert (found.parameters["numFiles"], found.parameters["numRows"]) == ("1", "3")
        assert found.sd.location.endswith("/dt=2026-01-01")
        columns = {column.name: column.type for column in client.get_table(db, "t").sd.cols}
        assert (columns["id"], columns["note"]) == ("int", "string")
        assert "dt" not in columns
        spark = client.get_table(db, "t").parameters
        assert json.loads(spark["spark.sql.sources.schema.part.0"])["fields"][-3:] == [
            {"name": "id", "type": "integer", "nullable": False, "metadata": {}},
            {"name": "note", "type": "string", "nullable": True, "metadata": {}},
            {"name": "dt", "type": "string", "nullable": False, "metadata": {}},
        ]
        assert spark["spark.sql.sources.schema.partCol.0"] == "dt"
        (file,) = client.lake_get_snapshot(SnapshotRequest(table)).files
        assert (file.path, file.rows, file.size) == (f"dt=2026-01-01/a_0-1-0_{one}.parquet", 3, 1_000)
        assert client.getInstantMetadata(db, "t", instant(one, COMMIT, COMPLETED)) == metadata("a", one)
        with refused(MetaserverException, message="another content"):
            complete(client, db, one, metadata("b", one))

    def test_directories_that_do_not_name_the_key(self, client: ThriftClient, db: str, table: TableReference) -> None:
        one = "20260101000000000"
        begin(client, db, one)
        complete(client, db, one, metadata("a", one, "2026-01-31"))
        (found,) = client.get_partitions(db, "t", -1)
        assert (found.values, found.sd.location.rpartition("/")[2]) == (["2026-01-31"], "2026-01-31")
        (file,) = client.lake_get_snapshot(SnapshotRequest(table, partitions=["dt=2026-01-31"])).files
        assert file.path.startswith("2026-01-31/")

    def test_metadata_that_nobody_understands(self, client: ThriftClient, db: str, table: TableReference) -> None:
        """The writer gets an error, and nothing is half done."""
        one = "20260101000000000"
        begin(client, db, one)
        with refused(MetaserverException, message="can't be read"):
            complete(client, db, one, b'{"partitionToWriteStats": 5}')
        assert listed(client, db) == [(one, "COMMIT", "INFLIGHT")]
        assert client.lake_get_snapshot(SnapshotRequest(table)).files == []
        complete(client, db, one, metadata("a", one))
        assert listed(client, db) == [(one, "COMMIT", "COMPLETED")]

    def test_of_two_writers_of_a_file_group_one_fails(
        self, client: ThriftClient, db: str, table: TableReference
    ) -> None:
        one, two, three = "20260101000000000", "20260101000000001", "20260101000000002"
        for each in (one, two, three):
            begin(client, db, each)
        complete(client, db, two, metadata("a", two))
        for _ in range(3):  # Hudi's client calls again whatever the error is
            with refused(MetaserverException, message=f"{two} commit completed since"):
                complete(client, db, three, metadata("a", three))
        complete(client, db, one, metadata("b", one))
        assert [path.rpartition("/")[2][0] for path in paths(client, table)] == ["a", "b"]
        assert listed(client, db)[2] == (three, "COMMIT", "INFLIGHT")

    def test_a_compaction_is_completed_as_a_commit(self, client: ThriftClient, db: str, table: TableReference) -> None:
        one = "20260101000000000"
        client.createNewInstantWithTime(db, "t", instant(one, COMPACTION), b"")
        client.transitionInstantState(db, "t", instant(one, COMPACTION), instant(one, COMPACTION, INFLIGHT), b"")
        client.transitionInstantState(db, "t", instant(one, COMPACTION, INFLIGHT), instant(one, COMPACTION), b"")
        assert listed(client, db) == [(one, "COMPACTION", "REQUESTED")]
        client.transitionInstantState(db, "t", instant(one, COMPACTION), instant(one, COMPACTION, INFLIGHT), b"")
        for _ in range(2):
            client.transitionInstantState(
                db, "t", instant(one, COMPACTION, INFLIGHT), instant(one, COMMIT, COMPLETED), metadata("a", one)
            )
        assert listed(client, db) == [(one, "COMMIT", "COMPLETED")]
        assert client.getInstantMetadata(db, "t", instant(one, COMMIT, COMPLETED)) == metadata("a", one)


class TestListing:
    def written(self, client: ThriftClient, db: str, count: int) -> list[str]:
        times = [f"202601010000{number:05}" for number in range(count)]
        for number, each in enumerate(times):
            begin(client, db, each)
            complete(client, db, each, metadata(f"g{number}", each))
        return times

    def test_the_latest_writes(self, client: ThriftClient, db: str, table: TableReference) -> None:
        times = self.written(client, db, 6)
        assert [each[0] for each in listed(client, db, 4)] == times[2:]
        assert [each[0] for each in listed(client, db, 0)] == times
        begin(client, db, "20260101000005001")
        assert [each[0] for each in listed(client, db, 4)] == [*times[2:], "20260101000005001"]

    def test_all_since_what_isn_t_completed(self, client: ThriftClient, db: str, table: TableReference) -> None:
        """Else Hudi would take what was committed since for uncommitted."""
        client.createNewInstantWithTime(db, "t", instant("20260101000000000", COMPACTION), b"")
        times = self.written(client, db, 6)
        assert [each[0] for each in listed(client, db, 4)] == ["20260101000000000", *times]

    def test_all_since_files_were_replaced_that_are_still_there(
        self, client: ThriftClient, db: str, table: TableReference
    ) -> None:
        """Else Hudi would read what was replaced again."""
        old = "20251231000000000"
        begin(client, db, old)
        complete(client, db, old, metadata("old", old))
        replacing = client.lake_begin_instant(
            BeginInstantRequest(table, "replacecommit", "20251231000000001", state="inflight")
        )
        client.lake_complete_instants(
            [
                CompleteInstantRequest(
                    table,
                    replacing.timestamp,
                    "replacecommit",
                    metadata=b"{}",
                    removedPaths=[f"dt=2026-01-01/old_0-1-0_{old}.parquet"],
                )
            ]
        )
        times = self.written(client, db, 6)
        assert [each[0] for each in listed(client, db, 4)] == [replacing.timestamp, *times]

    def test_without_what_hudi_can_t_read(self, client: ThriftClient, db: str, table: TableReference) -> None:
        begun = client.lake_begin_instant(BeginInstantRequest(table, "commit", state="inflight"))
        file = DataFile("dt=2026-01-01", "a", begun.timestamp, "dt=2026-01-01/a.parquet", size=1)
        client.lake_complete_instants([CompleteInstantRequest(table, begun.timestamp, "commit", added=[file])])
        assert listed(client, db) == []


def paths(client: ThriftClient, table: TableReference) -> list[str]:
    return sorted(file.path for file in client.lake_get_snapshot(SnapshotRequest(table)).files)
