"""`metastore migrate verify` names what differs, also what isn't an object, and says what it can't compare.

One server of ours comes over to another one.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AbortTxnsRequest,
    AllocateTableWriteIdsRequest,
    Catalog,
    CommitTxnRequest,
    CreateCatalogRequest,
    OpenTxnRequest,
    StorageDescriptor,
)
from lake.protocol.lake import ImportRequest
from tests.support import builders, command
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MetastoreServer, MetastoreServer]]:
    """The old server, and the new one."""
    home = tmp_path_factory.mktemp("pair")
    with (
        MetastoreServer(home / "old", "--workers", "1") as old,
        MetastoreServer(home / "new", "--workers", "1") as new,
    ):
        yield old, new


@pytest.fixture
def old(pair: tuple[MetastoreServer, MetastoreServer]) -> Iterator[ThriftClient]:
    with ThriftClient(pair[0].host, pair[0].port) as client:
        yield client


@pytest.fixture
def new(pair: tuple[MetastoreServer, MetastoreServer]) -> Iterator[ThriftClient]:
    with ThriftClient(pair[1].host, pair[1].port) as client:
        yield client


def run(what: str, pair: tuple[MetastoreServer, MetastoreServer], *options: str, code: int = 0) -> dict[str, Any]:
    result = command.run("migrate", what, pair[0].uri, "--uri", pair[1].uri, "--json", *options)
    assert result.returncode == code, result
    return json.loads(result.stdout)


def write(client: ThriftClient, database: str, table: str) -> int:
    """Opens a transaction with a write id of the table."""
    [number] = client.open_txns(OpenTxnRequest(1, "me", "here")).txn_ids
    client.allocate_table_write_ids(AllocateTableWriteIdsRequest(database, table, txnIds=[number]))
    return number


@pytest.mark.long
def test_write_ids_that_have_moved_on_are_told(
    pair: tuple[MetastoreServer, MetastoreServer], old: ThriftClient, new: ThriftClient, tmp_path: Path
) -> None:
    place = f"file:{tmp_path}/acid"
    old.create_database(builders.database("acid", locationUri=place))
    sd = builders.storage(location=f"{place}/t")
    old.lake_import(_transactional(sd))
    for abort in (False, True, False):
        number = write(old, "acid", "t")
        if abort:
            old.abort_txns(AbortTxnsRequest([number]))
        else:
            old.commit_txn(CommitTxnRequest(number))
    only = ("--databases", "acid")
    assert run("import", pair, *only)["problems"] == []
    assert run("import", pair, *only)["problems"] == []
    found = run("verify", pair, *only)
    assert (found["differing"], found["kinds"]["write ids"]["compared"]) == (0, 1)
    old.commit_txn(CommitTxnRequest(write(old, "acid", "t")))
    for options in ((), ("--replace",)):
        [problem] = run("import", pair, *only, *options, code=1)["problems"]
        assert (problem["kind"], problem["name"]) == ("write ids", "acid.t")
        assert "is 3 here, and 4 there" in problem["text"] and "Drop it here without its data" in problem["text"]
    [difference] = run("verify", pair, *only, code=1)["differences"]
    assert (difference["kind"], difference["name"]) == ("write ids", "acid.t")
    new.drop_table("acid", "t", False)
    assert run("import", pair, *only)["problems"] == []
    assert run("verify", pair, *only)["differing"] == 0


def test_what_is_here_only_is_named(
    pair: tuple[MetastoreServer, MetastoreServer], new: ThriftClient, tmp_path: Path
) -> None:
    run("import", pair)
    assert run("verify", pair)["differing"] == 0
    new.create_catalog(CreateCatalogRequest(Catalog("own", None, f"file:{tmp_path}/own")))
    new.create_database(builders.database("own", locationUri=f"file:{tmp_path}/own.db"))
    found = run("verify", pair, code=1)
    assert {(each["kind"], each["name"], each["text"]) for each in found["differences"]} == {
        ("catalogs", "own", "it isn't there"),
        ("databases", "own", "it isn't there"),
    }
    assert any("other engines" in each["text"] for each in found["uncompared"])


def _transactional(sd: StorageDescriptor) -> ImportRequest:
    """Brought, since making one by a call asks for rights of a client that knows transactions."""
    table = builders.table("acid", "t", sd=sd, parameters={"transactional": "true"}, createTime=1)
    return ImportRequest(tables=[table])
