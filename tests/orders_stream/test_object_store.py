"""Batches on a warehouse where nothing can be renamed, and directories are but prefixes of names."""

import io
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lake.client.batches import Batch, BatchWriter, LateCounts, Staged
from lake.protocol.connection.thrift_client import ThriftClient
from tests.orders_stream import lake
from tests.orders_stream.lake import at, hour
from tests.support import object_store
from tests.support.server import MetastoreServer

BUCKET = "lake"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MetastoreServer]:
    """A server whose warehouse is a bucket of a stand-in for S3."""
    options = ["--warehouse-dir", f"s3a://{BUCKET}/warehouse", "--workers", "1"]
    with object_store.running(BUCKET), MetastoreServer(tmp_path / "data", *options) as running:
        yield running


def find(location: str) -> list[str]:
    """The files below a location, relative to it, without what marks directories."""
    fs, path = fsspec.url_to_fs(location)
    fs.invalidate_cache()
    files = (key.removeprefix(path).lstrip("/") for key, facts in fs.find(path, detail=True).items() if facts["size"])
    return sorted(files)


def stage(batch: Batch, name: str, *ids: int) -> dict[str, Staged]:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}), buffer)
    with fsspec.open(f"{batch.staging_location}/{batch.file_name(0)}", "wb") as file:
        file.write(buffer.getvalue())
    return {name: Staged([batch.file_name(0)], rows=len(ids))}


def test_batches(server: MetastoreServer) -> None:
    with ThriftClient(server.host, server.port) as client:
        table = lake.create_table(client)
        writer = BatchWriter(server.uri, table, "w")
        steps = [(hour(0), at(0), 1), (hour(1), at(1.5), 2), (hour(0), at(0.5), 3)]
        for number, (name, event_time, row) in enumerate(steps):
            batch = writer.begin(number)
            assert batch is not None
            given_up = writer.begin(number)
            assert given_up is not None
            stage(given_up, name, row)
            outcome = batch.report({"s": event_time}, stage(batch, name, row))
            if number == 1:
                lake.wait_until_ready(client, table, hour(0))
        assert outcome.late == LateCounts(rerouted=1)
        assert writer.begin(2) is None
        location = client.get_table(*table.split(".")).sd.location
        assert location.startswith(f"s3a://{BUCKET}/")
        assert fsspec.filesystem("s3").exists(f"{location}/{hour(0)}/_SUCCESS")
        assert [file for file in find(location) if not file.startswith(".staging/w/2/")] == [
            f"{hour(0)}/part-w-0-0.parquet",
            f"{hour(1)}/part-w-1-0.parquet",
            f"{hour(1)}/part-w-2-0.parquet",
        ]
        assert writer.begin(3) is not None
        assert [file for file in find(location) if ".staging" in file] == []
        writer.close()
