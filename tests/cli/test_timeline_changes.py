"""Commands of `metastore timeline` that change a table, as users run them."""

import json
import uuid
from collections.abc import Iterator

import pytest

from lake.client.lake_types import Completion, DataFile
from lake.protocol.connection.thrift_client import ThriftClient
from lake.tables.lake import LakeClient, LakeTable
from tests.support import builders
from tests.support.called import complaint, output, run
from tests.support.server import MetastoreServer


@pytest.fixture
def orders(metastore_server: MetastoreServer) -> Iterator[LakeTable]:
    """A table with three commits, each of which writes the one file group anew."""
    name = f"cli_changes_{uuid.uuid4().hex[:8]}"
    with ThriftClient.from_uri(metastore_server.uri) as client:
        client.create_database(builders.database(name))
        client.create_table(builders.table(name, "orders", keys=("dt",)))
    with LakeClient(metastore_server.uri) as lake:
        table = lake.table(f"{name}.orders")
        for number in range(3):
            with table.writing() as writing:
                path = f"dt=1/{number}.parquet"
                file = DataFile("dt=1", "a", writing.instant.timestamp, path, size=10, rows=1)
                writing.complete(Completion(added=[file]))
        yield table


def timestamps(table: LakeTable) -> list[str]:
    return [each.timestamp for each in table.instants(states=["completed"]) if each.action == "commit"]


def paths(table: LakeTable) -> list[str]:
    return [each.path for each in table.snapshot(include_uncommitted=True)]


def test_a_rollback_undoes_what_came_after_too(metastore_server: MetastoreServer, orders: LakeTable) -> None:
    first, second, third = timestamps(orders)
    arguments = ("timeline", "rollback", orders.name, second, "--uri", metastore_server.uri)
    planned = json.loads(output(*arguments, "--dry-run", "--json"))
    assert [each["timestamp"] for each in planned["undone"]] == [second, third]
    assert planned["rollback"] is None
    assert "--yes" in complaint_after_table(*arguments)
    assert paths(orders) == ["dt=1/2.parquet"]
    done = run(*arguments, "--yes")
    assert done.returncode == 0, done.stderr
    assert paths(orders) == ["dt=1/0.parquet"]
    assert timestamps(orders) == [first]


def complaint_after_table(*arguments: str) -> str:
    """What a command says on stderr that shows what it would do and may not."""
    result = run(*arguments)
    assert result.returncode == 2, result
    return result.stderr


def test_what_is_not_there_is_not_undone(metastore_server: MetastoreServer, orders: LakeTable) -> None:
    said = complaint("timeline", "rollback", orders.name, "20200101000000000", "--yes", "--uri", metastore_server.uri)
    assert "no completed instant 20200101000000000" in said


def test_an_instant_is_aborted(metastore_server: MetastoreServer, orders: LakeTable) -> None:
    begun = orders.begin().instant
    arguments = ("timeline", "abort", orders.name, begun.timestamp, "--uri", metastore_server.uri)
    assert run(*arguments, "--dry-run").stderr == "would abort 1 instant\n"
    assert [each.timestamp for each in orders.instants(states=["inflight"])] == [begun.timestamp]
    output(*arguments, "--yes")
    assert list(orders.instants(states=["inflight"])) == []
    assert "that isn't complete" in complaint(*arguments, "--yes")


def test_superseded_files_are_cleaned(metastore_server: MetastoreServer, orders: LakeTable) -> None:
    arguments = ("timeline", "clean", orders.name, "--uri", metastore_server.uri)
    assert run(*arguments, "--yes").returncode == 2  # nothing says what is kept
    planned = json.loads(output(*arguments, "--keep-commits", "1", "--dry-run", "--json"))
    assert planned == {"files": ["dt=1/0.parquet", "dt=1/1.parquet"], "bytes": 20, "clean": None}
    cleaned = json.loads(output(*arguments, "--keep-commits", "1", "--yes", "--json"))
    assert cleaned["clean"] is not None
    assert paths(orders) == ["dt=1/2.parquet"]
    assert run(*arguments, "--keep-commits", "1", "--yes").stderr == "deleted 0 files, 0 bytes\n"


def test_a_snapshot_is_kept(metastore_server: MetastoreServer, orders: LakeTable) -> None:
    first, _, third = timestamps(orders)
    uri = ("--uri", metastore_server.uri)
    kept = json.loads(output("timeline", "savepoint", orders.name, first, "--name", "the start", *uri, "--json"))
    assert kept == {"timestamp": first, "position": 1, "name": "the start"}
    last = run("timeline", "savepoint", orders.name, *uri)
    assert last.stderr == f"kept the snapshot of {third}, position 3\n"
    assert "the start" in output("timeline", "show", orders.name, *uri)
    planned = output("timeline", "clean", orders.name, "--keep-commits", "1", "--dry-run", "--json", *uri)
    assert json.loads(planned)["files"] == ["dt=1/1.parquet"]
    assert "a savepoint 'the start' already" in complaint(
        "timeline", "savepoint", orders.name, timestamps(orders)[1], "--name", "the start", *uri
    )
    assert run("timeline", "delete-savepoint", orders.name, "the start", *uri).stderr == "deleted 1 savepoint\n"
    assert "no savepoint 'the start'" in complaint("timeline", "delete-savepoint", orders.name, "the start", *uri)
