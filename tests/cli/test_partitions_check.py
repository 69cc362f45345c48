"""`metastore partitions check` of keyed tables: files that an engine wrote past the timeline are found."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.tables.lake import LakeClient, LakeTable
from lake.tables.publishing import publish
from tests.lake.tables.keyed.histories import make_table
from tests.support import called
from tests.support.server import MetastoreServer
from tests.support.target import local_path

COLUMNS = {"id": "bigint", "v": "int", "part": "string"}


def run(server: MetastoreServer, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    done = called.run(*arguments, "--uri", server.uri, "--json")
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def check(server: MetastoreServer, lake: LakeTable, *options: str) -> tuple[int, list[dict[str, Any]]]:
    return run(server, "partitions", "check", lake.name, *options)


def insert(location: str, below: str = "") -> None:
    """What an engine's INSERT leaves."""
    directory = local_path(location) / below
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": [9], "v": pa.array([9], pa.int32())}), directory / "part-00000-1.snappy.parquet")
    (directory / "_SUCCESS").touch()


@pytest.mark.sampled(2)
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


def files(directory: Path) -> list[Path]:
    return sorted(each for each in directory.rglob("*.parquet") if each.is_file())


def test_repair_sets_files_aside_and_drops_what_an_engine_added(metastore_server: MetastoreServer) -> None:
    """Nothing is deleted: the rows can be read where they are, and upserted."""
    with LakeClient(metastore_server.uri) as client:
        lake = make_table(client, {"primary-key": "id,part"}, COLUMNS)
        lake.upsert(pa.table({"id": [1], "v": pa.array([1], pa.int32()), "part": ["x"]}))
        publish(lake)
        database, name = lake.reference.database or "", lake.reference.table or ""
        base = lake.describe().sd.location  # type: ignore[union-attr]
        added = client.call(lambda opened: opened.append_partition(database, name, ["engine"]))
        empty = client.call(lambda opened: opened.append_partition(database, name, ["empty"]))
        kept = client.call(lambda opened: opened.get_partition(database, name, ["x"]))
        for location in (kept.sd.location, added.sd.location, f"{base}/part=refused", f"{base}/part=x"):
            insert(location)
        before = files(local_path(base))
        _, found = check(metastore_server, lake, "--repair", "--dry-run")
        assert sorted((each["partition"], each["state"]) for each in found) == [
            ("part=engine", "ready"),
            ("part=refused", "no partition"),
            ("part=x", "no partition"),  # where the partition was before it was published
            ("part=x", "ready"),
        ]
        assert (files(local_path(base)), run(metastore_server, "check", database)) == (
            before,
            (1, [{"table": lake.name, "directories": 4, "files": 4}]),
        )

        code, found = check(metastore_server, lake, "--repair", "--yes")
        assert code == 0
        assert [each["partition"] for each in found if each["dropped"]] == ["part=engine"]
        names = client.call(lambda opened: opened.get_partition_names(database, name, -1))
        assert names == ["part=empty", "part=x"]
        assert len(files(local_path(base))) == len(before)
        for each in found:
            place = local_path(str(each["moved_to"]))
            assert [row["id"] for row in pq.ParquetFile(files(place)[0]).read().to_pylist()] == [9]
        assert (check(metastore_server, lake), run(metastore_server, "check", database)) == ((0, []), (0, []))
        assert local_path(empty.sd.location).is_dir()
        assert lake.scan().to_arrow().to_pylist() == [{"id": 1, "v": 1, "part": "x"}]


@pytest.mark.long
def test_what_a_repair_refuses(metastore_server: MetastoreServer) -> None:
    with LakeClient(metastore_server.uri) as client:
        lake = make_table(client, {}, COLUMNS)
        uri = ("--uri", metastore_server.uri)
        done = called.run("partitions", "check", lake.name, *uri, "--repair")
        assert (done.returncode, "has no primary key" in done.stderr) == (2, True)
        keyed = make_table(client, {"primary-key": "id"}, {"id": "bigint", "v": "int"}, partitioned=False)
        insert(keyed.describe().sd.location or "")  # type: ignore[union-attr]
        done = called.run("partitions", "check", keyed.name, *uri, "--repair")
        assert (done.returncode, "give --yes" in done.stderr) == (2, True)
        assert check(metastore_server, keyed)[1][0]["files"] == 1
        # A table without partitions is set right, too, and its rows are beside it.
        code, [found] = check(metastore_server, keyed, "--repair", "--yes")
        assert (code, found["dropped"], len(files(local_path(found["moved_to"])))) == (0, False, 1)
        assert check(metastore_server, keyed) == (0, [])
