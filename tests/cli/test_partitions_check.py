"""`metastore partitions check` of keyed tables: files that an engine wrote past the timeline are found."""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.tables.lake import LakeClient, LakeTable
from lake.tables.publishing import publish
from tests.lake.tables.keyed.histories import make_table
from tests.support.server import MetastoreServer
from tests.support.target import local_path

COLUMNS = {"id": "bigint", "v": "int", "part": "string"}


def check(server: MetastoreServer, lake: LakeTable) -> tuple[int, list[dict[str, object]]]:
    command = [sys.executable, "-m", "lake.cli", "partitions", "check", lake.name, "--uri", server.uri, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def insert(location: str) -> None:
    """What an engine's INSERT leaves."""
    directory = local_path(location)
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": [9], "v": pa.array([9], pa.int32())}), directory / "part-00000-1.snappy.parquet")
    (directory / "_SUCCESS").touch()


@pytest.mark.parametrize("published", [False, True])
def test_files_of_an_insert_are_found(metastore_server: MetastoreServer, published: bool) -> None:
    with LakeClient(metastore_server.uri) as client:
        lake = make_table(client, {"primary-key": "id,part"}, COLUMNS)
        rows = pa.table({"id": [1, 2], "v": pa.array([1, 2], pa.int32()), "part": ["x", "y"]})
        lake.upsert(rows)
        if published:
            publish(lake)
        assert check(metastore_server, lake) == (0, [])
        location = client.call(
            lambda opened: opened.get_partition_by_name(lake.reference.database, lake.reference.table, "part=x")
        ).sd.location
        insert(location)
        code, [found] = check(metastore_server, lake)
        assert code == 1
        assert (found["partition"], found["finding"], found["files"]) == ("part=x", "unknown files", 1)


def test_a_table_without_partitions_is_checked(metastore_server: MetastoreServer) -> None:
    with LakeClient(metastore_server.uri) as client:
        lake = make_table(client, {"primary-key": "id"}, {"id": "bigint", "v": "int"}, partitioned=False)
        lake.upsert(pa.table({"id": [1], "v": pa.array([1], pa.int32())}))
        publish(lake)
        assert check(metastore_server, lake) == (0, [])
        described = lake.describe()
        assert described.sd is not None
        insert(described.sd.location or "")
        code, [found] = check(metastore_server, lake)
        assert (code, found["finding"], found["partition"]) == (1, "unknown files", "")
