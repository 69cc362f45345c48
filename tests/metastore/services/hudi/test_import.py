"""Tables whose timeline Hudi keeps in files come into the metastore, by `metastore hudi import`."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lake.cli import main
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import InvalidOperationException
from lake.protocol.lake import (
    HudiInstant,
    ImportedInstant,
    ImportHudiRequest,
    ListInstantsRequest,
    SnapshotRequest,
    TableReference,
)
from tests.metastore.services.hudi.recordings import VERSIONS, Recording, recording
from tests.support.server import MetastoreServer
from tests.support.target import local_path

NUMBERS = itertools.count(1)


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(metastore_server.host, metastore_server.port) as connection:
        yield connection


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Imported:
    """A recorded table in a directory of its own, and what the server makes of it."""

    def __init__(self, server: MetastoreServer, client: ThriftClient, recorded: Recording, directory: Path) -> None:
        self.server, self.client, self.recorded, self.directory = server, client, recorded, directory
        self.table = TableReference(database=f"hudi_import_{next(NUMBERS)}", table="t")
        named = f"{self.table.database}.t"
        self.arguments = ["hudi", "import", str(directory), "--table", named, "--json", "--uri", server.uri]

    def run(self, stage: str) -> dict[str, Any]:
        self.recorded.put(stage, self.directory)
        return self.again()

    def again(self) -> dict[str, Any]:
        run = CliRunner().invoke(main, self.arguments)
        assert run.exit_code == 0, run.output
        by_hand: dict[str, Any] = json.loads(run.stdout)
        return by_hand

    def files(self) -> dict[str, int]:
        """The snapshot's files and sizes."""
        found = self.client.lake_get_snapshot(SnapshotRequest(self.table)).files
        return {each.path: each.size for each in found}


@pytest.fixture
def imported(
    request: pytest.FixtureRequest,
    metastore_server: MetastoreServer,
    client: ThriftClient,
    version: str,
    tmp_path: Path,
) -> Imported:
    return Imported(metastore_server, client, recording(version, request.param), tmp_path / "t")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("imported", ["orders", "clicks"], indirect=True)
def test_after_each_stage_the_snapshot_is_what_hudi_reads(imported: Imported) -> None:
    for stage in imported.recorded.stages:
        by_hand = imported.run(stage)
        assert by_hand["imported"], stage
        assert imported.files() == imported.recorded.read_by_hudi(stage), stage
        again = imported.run(stage)
        assert (again["imported"], again["position"]) == ([], by_hand["position"])


@pytest.mark.parametrize("imported", ["clicks", "visits"], indirect=True)
def test_the_whole_of_a_timeline_at_once(imported: Imported) -> None:
    imported.run("end")
    assert imported.files() == imported.recorded.read_by_hudi("end")


@pytest.mark.parametrize("imported", ["orders"], indirect=True)
def test_hives_view_of_an_imported_table(imported: Imported, client: ThriftClient) -> None:
    imported.run("written")
    database, name = imported.table.database, imported.table.table
    owner = client.get_table(database, name)
    assert [(key.name, key.type) for key in owner.partitionKeys] == [("dt", "string"), ("hr", "string")]
    columns = [(each.name, each.type) for each in owner.sd.cols]
    assert [each for each in columns if not each[0].startswith("_hoodie_")] == [
        ("id", "int"),
        ("ts", "bigint"),
        ("amount", "double"),
        ("note", "string"),
    ]
    assert len(columns) == 9 and owner.parameters["spark.sql.sources.provider"] == "hudi"
    partitions = client.get_partitions(database, name, -1)
    assert {tuple(each.values): local_path(each.sd.location) for each in partitions} == {
        ("a", "7"): imported.directory / "a/7",
        ("a", "8"): imported.directory / "a/8",
        ("b", "7"): imported.directory / "b/7",
    }
    assert [each.parameters["numRows"] for each in sorted(partitions, key=lambda each: each.values)] == ["1", "1", "2"]


@pytest.mark.parametrize("imported", ["orders"], indirect=True)
def test_earlier_snapshots_and_a_savepoint(imported: Imported, client: ThriftClient) -> None:
    imported.run("end")
    assert imported.files() == imported.recorded.read_by_hudi("end")
    instants = client.lake_list_instants(ListInstantsRequest(imported.table, includeArchived=True))
    (saved,) = [each for each in instants if each.action == "savepoint"]
    found = client.lake_get_snapshot(SnapshotRequest(imported.table, asOf=saved.timestamp)).files
    assert {each.path: each.size for each in found} == imported.recorded.read_by_hudi("written")


@pytest.mark.parametrize("imported", ["visits"], indirect=True)
def test_what_is_archived_is_said(imported: Imported) -> None:
    assert imported.run("end")["archived"]
    run = CliRunner().invoke(main, imported.arguments[:-3] + imported.arguments[-2:])
    assert run.exit_code == 0 and "what each of them did is not known" in run.stderr
    assert run.stdout.startswith(f"{imported.table.database}.t: 0 instants, position ")


@pytest.mark.parametrize("imported", ["clicks"], indirect=True)
def test_what_hudi_rolled_back_is_removed(imported: Imported, client: ThriftClient) -> None:
    imported.run("pending")
    assert pending(client, imported.table) == [("compaction", "requested")]
    plans = list(Path(imported.directory, ".hoodie").rglob("*.compaction.requested"))
    assert plans
    for plan in plans:
        plan.unlink()
    imported.again()
    assert pending(client, imported.table) == []


@pytest.mark.parametrize("imported", ["orders"], indirect=True)
def test_metadata_that_cannot_be_read_ends_an_import(imported: Imported) -> None:
    imported.recorded.put("written", imported.directory)
    commits = sorted(each for each in Path(imported.directory, ".hoodie").rglob("*.commit"))
    good = commits[1].read_bytes()
    commits[1].write_bytes(b"Obj\x01 and nothing")
    run = CliRunner().invoke(main, imported.arguments)
    timestamp = commits[1].name.partition(".")[0].partition("_")[0]
    assert run.exit_code == 1 and f"{timestamp} commit: " in run.output and "can't be read" in run.output
    assert len(imported.files()) == 3  # of the first commit
    commits[1].write_bytes(good)
    imported.again()
    assert imported.files() == imported.recorded.read_by_hudi("written")


@pytest.mark.parametrize("imported", ["orders"], indirect=True)
def test_a_table_that_lies_elsewhere_is_not_touched(imported: Imported, client: ThriftClient, tmp_path: Path) -> None:
    imported.run("written")
    imported.recorded.put("end", tmp_path / "other")
    run = CliRunner().invoke(main, ["hudi", "import", str(tmp_path / "other"), *imported.arguments[3:]])
    assert run.exit_code == 1 and " lies at " in run.output
    assert imported.files() == imported.recorded.read_by_hudi("written")


@pytest.mark.parametrize("imported", ["orders"], indirect=True)
def test_an_import_into_a_table_that_was_dropped(imported: Imported, client: ThriftClient) -> None:
    """One that names a table by its id, as a table service does after a job, doesn't add another in its place."""
    imported.run("written")
    of_first = ["--table-id", str(client.get_table(imported.table.database, "t").id)]
    client.drop_table(imported.table.database, "t", False)
    run = CliRunner().invoke(main, [*imported.arguments, *of_first])
    assert run.exit_code == 1 and f"{imported.table.database}.t" in run.output and "was dropped" in run.output
    assert client.get_all_tables(imported.table.database) == []
    imported.again()
    run = CliRunner().invoke(main, [*imported.arguments, *of_first])
    assert run.exit_code == 1 and "another table" in run.output
    of_second = ["--table-id", str(client.get_table(imported.table.database, "t").id)]
    assert CliRunner().invoke(main, [*imported.arguments, *of_second]).exit_code == 0


def test_a_directory_that_is_no_table(metastore_server: MetastoreServer, tmp_path: Path) -> None:
    run = CliRunner().invoke(main, ["hudi", "import", str(tmp_path), "--uri", metastore_server.uri])
    assert run.exit_code == 1 and "is no table of Hudi's" in run.output


def pending(client: ThriftClient, table: TableReference) -> list[tuple[str, str]]:
    found = client.lake_list_instants(ListInstantsRequest(table, states=["requested", "inflight"]))
    return [(each.action, each.state) for each in found]


# --- metadata as this file writes it, sent by the call --------------------------------------------------------

KEYS = {"hoodie.table.partition.fields": "dt", "hoodie.table.type": "MERGE_ON_READ"}


class ImportedByHand:
    """A table of which a client tells, instant by instant."""

    def __init__(self, client: ThriftClient, location: Path) -> None:
        self.client, self.location = client, location
        self.table = TableReference(database=f"hudi_told_{next(NUMBERS)}", table="t")

    def tell(self, timestamp: str, action: str, *stats: dict[str, Any], **fields: Any) -> ImportedInstant:
        by_partition: dict[str, list[dict[str, Any]]] = {}
        for each in stats:
            by_partition.setdefault(each["partitionPath"], []).append(each)
        metadata = json.dumps({"partitionToWriteStats": by_partition, **fields}).encode()
        instant = HudiInstant(timestamp, action, "completed", metadata=metadata)
        request = ImportHudiRequest(self.table, str(self.location), KEYS, [instant])
        (by_hand,) = self.client.lake_import_hudi(request).instants
        return by_hand

    def slices(self) -> list[tuple[str, str, str]]:
        files = self.client.lake_get_snapshot(SnapshotRequest(self.table)).files
        return [(each.slice, each.kind, each.path.rpartition("/")[2]) for each in files]


def stat(name: str, partition: str = "a", **fields: Any) -> dict[str, Any]:
    return {"fileId": "f", "path": f"{partition}/{name}", "partitionPath": partition, "numWrites": 1} | {
        "fileSizeInBytes": 10,
        **fields,
    }


@pytest.fixture
def by_hand(client: ThriftClient, tmp_path: Path) -> ImportedByHand:
    return ImportedByHand(client, tmp_path)


def test_slices_of_log_files_of_both_generations(by_hand: ImportedByHand) -> None:
    by_hand.tell("001", "deltacommit", stat("f_0-1-1_001.parquet"))
    by_hand.tell("002", "deltacommit", stat(".f_001.log.1_0-2-2"), stat(".f_001.log.1_0-2-2.cdc"))
    by_hand.tell("003", "deltacommit", stat(".f_003.log.1_0-3-3"), stat(".g_003.log.1_1-3-3"))
    by_hand.tell("004", "deltacommit", stat(".f_001.log.1_0-2-2", fileSizeInBytes=30))  # it has grown
    assert by_hand.slices() == [
        ("001", "base", "f_0-1-1_001.parquet"),
        ("001", "log", ".f_003.log.1_0-3-3"),
        ("001", "log", ".f_001.log.1_0-2-2"),
        ("003", "log", ".g_003.log.1_1-3-3"),
    ]


def test_event_times_move_the_watermark(by_hand: ImportedByHand, client: ThriftClient) -> None:
    by_hand.tell("001", "deltacommit", stat("f_0-1-1_001.parquet", minEventTime=5_000, maxEventTime=9_000))
    by_hand.tell("002", "deltacommit", stat(".f_002.log.1_0-1-1", minEventTime=7_000), stat(".g_002.log.1_0-1-1"))
    (file, *_) = client.lake_get_snapshot(SnapshotRequest(by_hand.table)).files
    assert (file.minEventTime, file.maxEventTime, file.rows, file.size) == (5_000, 9_000, 1, 10)
    (source,) = client.lake_get_watermark(by_hand.table).sources
    assert (source.source, source.watermark) == ("hudi", 7_000)


def test_columns_come_from_writers_and_not_from_rewrites(by_hand: ImportedByHand, client: ThriftClient) -> None:
    def schema(*names: str) -> dict[str, str]:
        fields = [{"name": name, "type": "int"} for name in names]
        return {"schema": json.dumps({"type": "record", "name": "r", "fields": fields})}

    def columns() -> list[str]:
        found = client.get_table(by_hand.table.database, "t").sd.cols
        return [each.name for each in found if not each.name.startswith("_hoodie_")]

    by_hand.tell("001", "commit", extraMetadata=schema("a", "b", "dt"))
    assert columns() == ["a", "b"]
    by_hand.tell("002", "replacecommit", operationType="CLUSTER", extraMetadata=schema("a"))
    assert columns() == ["a", "b"]
    by_hand.tell("003", "commit", operationType="UPSERT", extraMetadata=schema("b", "C"))
    assert columns() == ["b", "c"]


def test_the_same_again_and_something_else_under_its_name(by_hand: ImportedByHand) -> None:
    assert by_hand.tell("001", "commit", stat("f_0-1-1_001.parquet")).fresh
    assert not by_hand.tell("001", "commit", stat("f_0-1-1_001.parquet")).fresh


@pytest.mark.parametrize("timestamp", ["", "../1"])
def test_an_instant_has_a_timestamp(by_hand: ImportedByHand, timestamp: str) -> None:
    with pytest.raises(InvalidOperationException, match="is no valid timestamp"):
        by_hand.client.lake_import_hudi(
            ImportHudiRequest(
                by_hand.table, str(by_hand.location), KEYS, [HudiInstant(timestamp, "commit", "completed")]
            )
        )
    assert by_hand.client.lake_list_instants(ListInstantsRequest(by_hand.table)) == []


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (
            {"partitionToWriteStats": {"a/b/c": [stat("x_1_001.parquet", "a/b/c")], "": [stat("y_1_001.parquet", "")]}},
            "''",
        ),
        ({"partitionToWriteStats": {"a": [{**stat("f_1_001.parquet"), "path": "../f_1_001.parquet"}]}}, "no path"),
        ({"extraMetadata": {"schema": "{}"}}, "schema"),
        ({"partitionToWriteStats": 7}, "partitionToWriteStats"),
    ],
)
def test_metadata_that_does_not_fit(by_hand: ImportedByHand, metadata: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidOperationException, match="001 commit: ") as refused:
        by_hand.tell("001", "commit", **metadata)
    assert said in str(refused.value.message)
