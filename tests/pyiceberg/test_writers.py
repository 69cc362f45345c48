"""Two processes that append to one table at the same time."""

import subprocess
import sys
from collections import Counter

import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField, StringType

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import ShowLocksRequest
from tests.support.server import MetastoreServer

APPENDS = 8
WRITERS = ("one", "two")
RETRIES = {
    "commit.retry.num-retries": "100",
    "commit.retry.min-wait-ms": "10",
    "commit.retry.max-wait-ms": "200",
}


@pytest.mark.long
def test_no_append_is_lost(
    metastore_server: MetastoreServer, catalog: HiveCatalog, namespace: str, client: ThriftClient
) -> None:
    schema = Schema(NestedField(1, "writer", StringType()), NestedField(2, "number", IntegerType()))
    catalog.create_table((namespace, "t"), schema, properties=RETRIES)

    command = [sys.executable, "-m", "tests.pyiceberg.writer", metastore_server.uri, namespace, "t"]
    writers = [
        subprocess.Popen(
            [*command, name, str(APPENDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in WRITERS
    ]
    try:
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
        errors = []
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            errors.append(writer.communicate(timeout=120)[1])
            assert writer.returncode == 0, errors[-1]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert "retrying" in "".join(errors) or "Wait on lock" in "".join(errors), "they never met"

    table = catalog.load_table((namespace, "t"))
    found = Counter((each["writer"], each["number"]) for each in table.scan().to_arrow().to_pylist())
    assert found == {(name, number): 3 for name in WRITERS for number in range(APPENDS)}

    history = [entry.snapshot_id for entry in table.history()]
    assert len(history) == len(set(history)) == APPENDS * len(WRITERS)
    parents = [snapshot.parent_snapshot_id for snapshot in map(table.snapshot_by_id, history) if snapshot]
    assert parents == [None, *history[:-1]]
    assert client.show_locks(ShowLocksRequest(dbname=namespace)).locks == []
