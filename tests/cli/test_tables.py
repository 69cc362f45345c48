"""`metastore tables` and what else shows a table to people."""

import json
import uuid

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from tests.support import builders
from tests.support.called import complaint, output, run
from tests.support.server import MetastoreServer


@pytest.fixture
def database(metastore_server: MetastoreServer) -> str:
    """A database with a partitioned table `orders`, one partition ready and one not, and a table `plain`."""
    name = f"cli_tables_{uuid.uuid4().hex[:8]}"
    with ThriftClient.from_uri(metastore_server.uri) as client:
        client.create_database(builders.database(name))
        client.create_table(builders.table(name, "plain"))
        client.create_table(builders.table(name, "orders", keys=("dt",)))
        for value, ready in (("1", "true"), ("2", "false")):
            client.add_partition(builders.partition(name, "orders", value, parameters={"commit": ready}))
    return name


def test_tables_are_listed(metastore_server: MetastoreServer, database: str) -> None:
    uri = ("--uri", metastore_server.uri)
    lines = output("tables", "list", database, *uri).splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["database", "table", "type"],
        [database, "orders", "MANAGED_TABLE"],
        [database, "plain", "MANAGED_TABLE"],
    ]
    found = json.loads(output("tables", "list", database, "--pattern", "pl*", "--json", *uri))
    assert [(each["database"], each["table"]) for each in found] == [(database, "plain")]


def test_a_table_is_shown(metastore_server: MetastoreServer, database: str) -> None:
    uri = ("--uri", metastore_server.uri)
    shown = output("tables", "show", f"{database}.orders", *uri)
    assert "1 ready, 1 uncommitted" in shown
    assert "partition key" in shown
    found = json.loads(output("tables", "show", f"{database}.orders", "--json", *uri))
    assert (found["partitions_ready"], found["partitions_uncommitted"]) == (1, 1)
    assert [key["name"] for key in found["partition_keys"]] == ["dt"]
    assert "not partitioned" in output("tables", "show", f"{database}.plain", *uri)
    assert "not found" in complaint("tables", "show", f"{database}.nothing", *uri)


def test_the_status_counts_uncommitted_partitions(metastore_server: MetastoreServer, database: str) -> None:
    counted = json.loads(output("status", "--json", "--uri", metastore_server.uri))
    assert counted["partitions"] >= 1
    assert counted["uncommitted_partitions"] >= 1
    assert " uncommitted" in output("status", "--uri", metastore_server.uri)


class TestReopening:
    def test_all_asks_first(self, metastore_server: MetastoreServer, database: str) -> None:
        table, uri = f"{database}.orders", ("--uri", metastore_server.uri)
        # dt=1 is the only one that is ready: to name it hides the table as well.
        for which in (("--all",), ("dt=1",), ("--filter", "dt >= '0'")):
            refused = complaint("partitions", "reopen", table, *which, *uri, code=2)
            assert "hides all partitions" in refused
            assert "--yes" in refused
        assert ready(metastore_server, table) == ["dt=1"]
        planned = json.loads(output("partitions", "reopen", table, "--all", "--dry-run", "--json", *uri))
        assert planned == {"would_be_reopened": ["dt=1"]}
        assert ready(metastore_server, table) == ["dt=1"]
        output("partitions", "reopen", table, "--all", "--yes", *uri)
        assert ready(metastore_server, table) == []

    def test_some_does_not_ask(self, metastore_server: MetastoreServer, database: str) -> None:
        table, uri = f"{database}.orders", ("--uri", metastore_server.uri)
        output("partitions", "commit", table, "--all", *uri)
        output("partitions", "reopen", table, "dt=2", *uri)
        assert ready(metastore_server, table) == ["dt=1"]


def ready(server: MetastoreServer, table: str) -> list[str]:
    found = json.loads(output("partitions", "list", table, "--json", "--uri", server.uri))
    return [each["name"] for each in found if each["ready"]]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shell: str) -> None:
    assert "_METASTORE_COMPLETE" in output("completion", shell)


def test_a_table_without_a_database_is_no_table() -> None:
    assert run("tables", "show", "orders").returncode == 2
