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
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    CommitTxnRequest,
    CreateCatalogRequest,
    LongColumnStatsData,
    OpenTxnRequest,
    Partition,
    StorageDescriptor,
)
from lake.protocol.lake import ImportRequest
from metastore.migration import importing
from metastore.migration.mapping import Renaming
from metastore.migration.objects import DatabaseKey, TableKey, TableParts
from metastore.migration.switching.cutting_over import compare
from metastore.migration.thrift_source import ThriftSource
from metastore.migration.verifying import Seen
from tests.metastore.migration import following
from tests.metastore.migration.random_catalog import Maker
from tests.support import builders, called
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
    result = called.run("migrate", what, pair[0].uri, "--uri", pair[1].uri, "--json", *options)
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
    for options, named in (
        (("--databases", "ow*"), ["own"]),
        (("--databases", "gone", "--rename", "gone=own"), ["own"]),
        (("--databases", "own", "--rename", "own=other"), []),
    ):
        found = run("verify", pair, *options, code=len(named))
        assert [each["name"] for each in found["differences"]] == named
        unmet = [each["name"] for each in found["uncompared"] if each["kind"] == "databases"]
        assert unmet == [options[1]]
    result = called.run(
        "migrate", "import", pair[0].uri, "--uri", pair[1].uri, "--databases", "slaes", "--rename", "a=b"
    )
    assert "--databases: no database there is called slaes" in result.stderr
    assert "--rename: no database there is called a\n" in result.stderr


def test_plan_counts_what_is_compared(
    pair: tuple[MetastoreServer, MetastoreServer], old: ThriftClient, tmp_path: Path
) -> None:
    Maker(old, "pl", tmp_path, seed=3).make(databases=1)
    only = ("--databases", "pl_*")
    planned = following.run("plan", pair[0].uri, *only)["objects"]
    assert following.run("import", pair[0].uri, "--uri", pair[1].uri, *only)["problems"] == []
    found = following.run("verify", pair[0].uri, "--uri", pair[1].uri, *only)["kinds"]
    assert planned["tables"] + planned["views"] == found["tables"]["compared"]
    for kind in ("constraints", "functions", "grants", "members", "partitions", "statistics"):
        assert planned[kind] == found[kind]["compared"] > 0


def test_what_both_answer_as_before_is_not_compared_again(
    pair: tuple[MetastoreServer, MetastoreServer],
    old: ThriftClient,
    new: ThriftClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And all else is, also where it lies between."""
    key, table = DatabaseKey("hive", "seen"), TableKey("hive", "seen", "t")
    old.create_database(builders.database("seen", locationUri=f"file:{tmp_path}/seen"))
    sd = builders.storage(location=f"file:{tmp_path}/seen/t")
    old.create_table(builders.external_table("seen", "t", keys=("dt",), sd=sd))
    old.add_partitions([builders.partition("seen", "t", each) for each in "12345"])
    count(old, "dt=5", 1)
    options = (pair[0].uri, "--uri", pair[1].uri, "--databases", "seen")
    following.run("import", *options)
    monkeypatch.setattr("metastore.migration.verifying.batches", lambda items: importing.batches(items, 2))
    there, here, seen = ThriftSource(pair[0].uri), ThriftSource(pair[1].uri), Seen()
    read: set[str] = set()
    asked = ThriftSource.partitions

    def partitions(source: ThriftSource, parts: TableParts, names: list[str]) -> list[Partition]:
        read.update(names)
        return asked(source, parts, names)

    monkeypatch.setattr(ThriftSource, "partitions", partitions)

    def compared() -> tuple[dict[str, int], set[str], set[str]]:
        read.clear()
        found = compare(there, here, key, Renaming(), 2, seen)
        counts = {kind: found.kinds[kind].compared for kind in ("partitions", "statistics")}
        return counts, found.affected.partitions.get(table, set()), {*read}

    counts, every = {"partitions": 5, "statistics": 1}, {f"dt={each}" for each in "12345"}
    assert compared() == (counts, set(), every)
    assert compared() == (counts, set(), set())
    old.add_partitions([builders.partition("seen", "t", "15")])
    assert compared() == (counts | {"partitions": 6}, {"dt=15"}, {"dt=1", "dt=15", "dt=2"})
    following.run("import", *options)
    read.clear()
    assert compared()[1:] == (set(), {"dt=1", "dt=15"})
    assert compared()[1:] == (set(), set())
    before = old.get_partition("seen", "t", ["3"])
    old.alter_partition("seen", "t", before.replace(parameters={**(before.parameters or {}), "a": "b"}))
    count(new, "dt=5", 2)
    assert compared()[1:] == ({"dt=3", "dt=5"}, {"dt=3", "dt=4", "dt=5"})
    assert compared()[1] == {"dt=3", "dt=5"}
    new.drop_partition("seen", "t", ["4"], False)
    assert compared()[1] == {"dt=3", "dt=4", "dt=5"}
    with here.heard() as answers:
        here._forget_client()
        here.last_event()
    assert answers() is None


def count(client: ThriftClient, partition: str, numbers: int) -> None:
    of = ColumnStatisticsDesc(isTblLevel=False, dbName="seen", tableName="t", partName=partition, lastAnalyzed=1)
    data = ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=0, highValue=9, numNulls=0, numDVs=numbers))
    own = ColumnStatistics(of, [ColumnStatisticsObj("id", "bigint", data)], engine="hive")
    client.update_partition_column_statistics(own)


def _transactional(sd: StorageDescriptor) -> ImportRequest:
    """Brought, since making one by a call asks for rights of a client that knows transactions."""
    table = builders.table("acid", "t", sd=sd, parameters={"transactional": "true"}, createTime=1)
    return ImportRequest(tables=[table])
