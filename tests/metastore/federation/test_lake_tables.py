"""What only lake metastores have, through a front under other names; and what it says where a Hive is."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException
from lake.protocol.lake import (
    CommitPartitionsRequest,
    ListPartitionsRequest,
    SnapshotRequest,
    TableReference,
)
from lake.tables.lake import LakeClient
from tests.metastore.federation.stand_in import StandIn
from tests.metastore.federation.test_failures import answers
from tests.support import builders
from tests.support.front import FrontServer
from tests.support.reference import HiveReference
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
REFUSED = (MetaException, TApplicationException)


@pytest.fixture(scope="module")
def front(
    metastore_server: MetastoreServer, hive_reference: HiveReference, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontServer]:
    """Twice the same lake metastore, as if it were two: ids of tables are the same there."""
    lake = f'uris = "{metastore_server.uri}"'
    backends = {
        "hive": f'uris = "thrift://{hive_reference.host}:{hive_reference.port}"\nprefix = "lh_"\nprimary = true',
        "one": f'{lake}\nprefix = "l1_"\nnumber = 1',
        "two": f'{lake}\nprefix = "l2_"\nnumber = 2',
        "bare": f'{lake}\nprefix = "l3_"',
    }
    with FrontServer(tmp_path_factory.mktemp("lake_front"), backends) as server:
        yield server


@pytest.fixture
def client(front: FrontServer) -> Iterator[ThriftClient]:
    with ThriftClient(front.host, front.port) as connection:
        yield connection


@pytest.fixture
def name(ours: ThriftClient) -> Iterator[str]:
    found = f"lt{next(NUMBERS)}"
    ours.create_database(builders.database(found))
    yield found
    ours.drop_database(found, True, True)


def test_readiness(client: ThriftClient, name: str) -> None:
    db = f"l1_{name}"
    client.create_table(builders.table(db, "t", keys=("a",)))
    for value in "12":
        client.add_partition(builders.partition(db, "t", value, parameters={"commit": "false"}))
    assert client.get_partition_names(db, "t", -1) == []
    assert client.get_partition_names(db, "t@includeuncommit", -1) == ["a=1", "a=2"]
    table = TableReference(database=db, table="t", id=client.get_table(db, "t").id)
    assert client.lake_get_watermark(table).uncommitted == 2
    assert client.lake_get_watermark(table).tableId == table.id
    assert client.lake_commit_partitions(CommitPartitionsRequest(table, names=["a=1"])).committed == ["a=1"]
    listed = client.lake_list_partitions(ListPartitionsRequest(table, includeUncommitted=True)).partitions
    assert [(each.name, each.ready) for each in listed] == [("a=1", True), ("a=2", False)]
    assert client.get_partition_names(db, "t", -1) == ["a=1"]
    client.setMetaConf("includeUnCommit", "true")
    assert client.get_partition_names(db, "t", -1) == ["a=1", "a=2"]


def test_keyed_tables_of_two(front: FrontServer, client: ThriftClient, ours: ThriftClient, name: str) -> None:
    """A table's id and a moment are those of one metastore: none is taken for another one's."""
    made = builders.table(name, "t", sd=builders.parquet("id:bigint", "b:string"), parameters={"primary-key": "id"})
    ours.create_table(made)
    ids = [client.get_table(f"{prefix}_{name}", "t").id for prefix in ("l1", "l2")]
    assert len(set(ids)) == 2
    with LakeClient(f"thrift://{front.host}:{front.port}") as lake:
        tables = [lake.table(f"{prefix}_{name}.t") for prefix in ("l1", "l2")]
        tables[0].upsert(pa.table({"id": pa.array([1, 2], pa.int64()), "b": ["x", "y"]}))
        for table in tables:
            assert sorted(table.scan().to_arrow().column("id").to_pylist()) == [1, 2]
    where = TableReference(database=f"l1_{name}", table="t")
    moment = client.lake_timeline_position(where).moment
    assert client.lake_get_snapshot(SnapshotRequest(where, asOfMoment=moment)).files
    with pytest.raises(REFUSED, match="one backend"):
        client.lake_get_snapshot(SnapshotRequest(where.replace(database=f"l2_{name}"), asOfMoment=moment))
    with pytest.raises(REFUSED, match="was another backend's before"):
        client.lake_timeline_position(TableReference(database=f"l2_{name}", table="t", id=ids[0]))
    client.create_table(client.get_table(f"l1_{name}", "t").replace(dbName=f"l2_{name}", tableName="copy"))
    assert ours.get_all_tables(name) == ["copy", "t"]


def test_what_hives_and_others_say(client: ThriftClient, hive: ThriftClient, name: str) -> None:
    hive.create_database(builders.database(name))
    hive.create_table(builders.table(name, "t", keys=("a",)))
    table = TableReference(database=f"lh_{name}", table="t")
    calls: list[Any] = [
        lambda: client.get_table(f"lh_{name}", "t@includeuncommit"),
        lambda: client.get_partition_names(f"lh_{name}", "T@includeUnCommit", -1),
        lambda: client.get_table(f"lh_{name}", "t@iceberg"),
    ]
    for call in calls:
        with pytest.raises(REFUSED, match="backend hive is no lake metastore, so its partitions are all ready"):
            call()
    for call in (lambda: client.lake_get_watermark(table), lambda: client.lake_timeline_position(table)):
        with pytest.raises(TApplicationException, match="no lake metastore of this version"):
            call()
    with pytest.raises(REFUSED, match=r"give backends\.bare a number"):
        client.lake_get_watermark(table.replace(database=f"l3_{name}"))
    assert client.get_table(f"lh_{name}", "t").tableName == "t"
    hive.drop_database(name, True, True)


def test_a_port_that_shows_what_is_uncommitted(tmp_path: Path) -> None:
    with (
        StandIn(answers("d", getMetaConf=lambda key: "true")) as port,
        FrontServer(tmp_path / "front", {"it": f'uris = "{port.uri}"'}) as front,
        ThriftClient(front.host, front.port) as client,
        pytest.raises(MetaException, match=r"name its ordinary port in backends\.it"),
    ):
        client.get_all_databases()
