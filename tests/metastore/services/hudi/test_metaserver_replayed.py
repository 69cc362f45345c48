"""What Hudi's own client called, replayed: the calls of Spark jobs with Hudi 0.15.0, as a recording server took them.

Kept are the calls that change something, with what Hudi sent; only the table's location was put in the place of
another of the same length. The client was changed to send plans, as in tests/interop/test_hudi_metaserver.py.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hudi import Table, TAction, THoodieInstant, TState
from lake.protocol.lake import SnapshotRequest, TableReference
from metastore.warehouse.hudi_files import timeline as hudi_timeline
from tests.metastore.services.hudi.recordings import VERSIONS, recording
from tests.metastore.services.hudi.visible_files import seen_by_hudi_rs, tell
from tests.support.server import MetastoreServer

RECORDED = Path(__file__).parent / "recorded"
DATABASE = "hudi_replayed"


class Replay:
    """One recorded table, and what its timeline should be: the states that files would have."""

    def __init__(self, client: ThriftClient, kind: str, location: Path) -> None:
        self.client = client
        self.calls = [json.loads(line) for line in (RECORDED / f"metaserver_{kind}.jsonl").read_text().splitlines()]
        self.name = self.calls[0]["table"]["tableName"]
        self.location = location
        self.reference = TableReference(database=DATABASE, table=self.name)
        self.states: dict[tuple[str, int], int] = {}

    def completions(self) -> Iterator[tuple[str, str]]:
        """Makes all calls, and stops where an instant is completed: timestamp and action."""
        for call in self.calls:
            if call["call"] == "createTable":
                (self.location / ".hoodie").mkdir(parents=True)
                (self.location / ".hoodie/hoodie.properties").write_text("hoodie.table.partition.fields=dt\n")
                fields = {**call["table"], "dbName": DATABASE, "location": str(self.location)}
                self.client.createTable(Table(**fields))
                continue
            new = self._instant(call.get("toInstant") or call["instant"])
            match call["call"]:
                case "createNewInstantWithTime":
                    content = base64.b64decode(call["content"])
                    assert self.client.createNewInstantWithTime(DATABASE, self.name, new, content).success
                case "transitionInstantState":
                    content = base64.b64decode(call["metadata"])
                    old = self._instant(call["fromInstant"])
                    for _ in range(2):  # as if the first reply were lost
                        assert self.client.transitionInstantState(DATABASE, self.name, old, new, content).success
                    del self.states[old.timestamp, old.action]
                case "deleteInstant":
                    assert self.client.deleteInstant(DATABASE, self.name, new).success
                    del self.states[new.timestamp, new.action]
                    assert self.listed() == sorted(self.states.items())
                    continue
            self.states[new.timestamp, new.action] = new.state
            assert self.client.getInstantMetadata(DATABASE, self.name, new) == content
            assert self.listed() == sorted(self.states.items())
            if new.state == TState.COMPLETED:
                yield new.timestamp, TAction(new.action).name

    def listed(self) -> list[tuple[tuple[str, int], int]]:
        found = self.client.listInstants(DATABASE, self.name, 24)
        return sorted(((each.timestamp, each.action), each.state) for each in found)

    def rows(self) -> dict[str, int]:
        """How many rows partitions have for Hive's readers."""
        names = self.client.get_partition_names(DATABASE, self.name, -1)
        found = self.client.get_partitions_by_names(DATABASE, self.name, names)
        return {each.values[0]: int(each.parameters["numRows"]) for each in found}

    def paths(self, **fields: Any) -> list[str]:
        return [file.path for file in self.client.lake_get_snapshot(SnapshotRequest(self.reference, **fields)).files]

    @staticmethod
    def _instant(parts: list[Any]) -> THoodieInstant:
        return THoodieInstant(*parts)


@pytest.fixture
def client(metastore_server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(metastore_server.host, metastore_server.port) as connection:
        yield connection


def test_a_table_copied_on_write(client: ThriftClient, tmp_path: Path) -> None:
    """Inserted, upserted, deleted from, cleaned, rolled back, overwritten: Hudi read as many rows after each step."""
    replay = Replay(client, "copy_on_write", tmp_path)
    first, second = "2026-01-01", "2026-01-02"
    seen = [(action, replay.rows()) for _, action in replay.completions()]
    assert seen == [
        ("COMMIT", {first: 1, second: 1}),
        ("COMMIT", {first: 2, second: 1}),
        ("COMMIT", {first: 2, second: 0}),
        ("CLEAN", {first: 2, second: 0}),
        ("COMMIT", {first: 2, second: 0}),
        ("CLEAN", {first: 2, second: 0}),
        ("ROLLBACK", {first: 2, second: 0}),
        ("COMMIT", {first: 2, second: 1}),
        ("CLEAN", {first: 2, second: 1}),
        ("REPLACECOMMIT", {first: 1, second: 1}),
        ("CLEAN", {first: 1, second: 1}),
        ("COMMIT", {first: 1, second: 2}),
        ("CLEAN", {first: 1, second: 2}),
    ]
    one, two = "31f278b5-c977-4fbb-acd5-d1aec116a5ba-0_0", "c0a2f2ae-bbeb-46db-af57-c9f3187b97ac-0_0"
    latest = [
        f"dt={first}/{one}-142-156_20261122034237155.parquet",
        f"dt={second}/{two}-163-180_20261122034240696.parquet",
    ]
    assert replay.paths() == latest
    # What Hudi's cleans had left in the directories.
    assert replay.paths(allVersions=True) == [
        latest[0],
        f"dt={second}/{two}-121-134_20261122034230880.parquet",
        latest[1],
    ]
    columns = {column.name: column.type for column in client.get_table(DATABASE, replay.name).sd.cols}
    assert next(iter(columns)) == "_hoodie_commit_time"
    assert {"id": "int", "ts": "int", "note": "string"}.items() <= columns.items()


def test_a_table_merged_on_read(client: ThriftClient, tmp_path: Path) -> None:
    """Log files, a compaction that is planned and never done, a rollback, a partition that is overwritten."""
    replay = Replay(client, "merge_on_read", tmp_path)
    logs: list[int] = []
    for _ in replay.completions():
        logs.append(len(replay.paths()) - len(replay.paths(readOptimized=True)))
    assert logs == [0, 0, 1, 1, 2, 3, 3, 3, 1, 1]
    assert ("20261122034417275", TAction.COMPACTION) in replay.states
    assert client.getTable(DATABASE, replay.name).tableType == "MERGE_ON_READ"
    group = "904a6533-5588-4596-b402-f45a943f779b-0"
    assert [path for path in replay.paths() if group in path] == [
        f"dt=2026-01-02/{group}_1-4-9_20261122034331113.parquet",
        f"dt=2026-01-02/.{group}_20261122034331113.log.1_0-54-59",
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["orders", "clicks"])
def test_timelines_that_were_files(client: ThriftClient, tmp_path: Path, name: str, version: str) -> None:
    """What Hudi wrote into files, sent by the protocol: all that its client of the metaserver can't do, too. After each
    stage the snapshot is what Hudi read, and hudi-rs sees the same.
    """
    recorded, table = recording(version, name), f"{name}_{version.replace('.', '_')}"
    states: dict[tuple[str, str], TState] = {}
    for stage in recorded.stages:
        recorded.put(stage, tmp_path / name)
        if not states:
            client.createTable(Table(tableName=table, dbName=DATABASE, location=str(tmp_path / name)))
        contents = {path.rpartition("/")[2]: data for path, data in recorded.files(stage).items()}
        for step in hudi_timeline.history(hudi_timeline.instants(contents)):
            tell(client, DATABASE, table, step, contents, states)
        found = client.lake_get_snapshot(SnapshotRequest(TableReference(database=DATABASE, table=table))).files
        assert {file.path: file.size for file in found} == recorded.read_by_hudi(stage), stage
        if stage != "pending":  # hudi-rs passes over log files in the slice that a planned compaction opened
            assert seen_by_hudi_rs(tmp_path / name) == recorded.listed_by_hudi(stage).keys(), stage
