"""Uncommitted partitions, as Hive's Java client sees them."""

from collections.abc import Callable

import pytest

from lake.protocol.hive import AlreadyExistsException, MetaException, NoSuchObjectException
from tests.hive_client.conftest import HiveClient
from tests.support.builders import partition, table

READY, HIDDEN = "ds=a", "ds=b"
ALIAS = "t@includeUnCommit"


@pytest.fixture(autouse=True)
def filled(client: HiveClient, db: str) -> None:
    client.createTable(table(db, keys=("ds",)))
    client.add_partition(partition(db, "t", "a"))
    client.add_partition(partition(db, "t", "b", parameters={"commit": "false"}))


def names(client: HiveClient, db: str, name: str = "t") -> list[str]:
    return list(client.listPartitionNames(db, name, -1))


def test_set_metaconf(client: HiveClient, connect: Callable[[], HiveClient], db: str) -> None:
    assert client.getMetaConf("includeUnCommit") == "false" and names(client, db) == [READY]
    client.setMetaConf("includeUnCommit", "true")
    assert client.getMetaConf("includeUnCommit") == "true" and names(client, db) == [READY, HIDDEN]
    assert [one.values for one in client.listPartitions(db, "t", -1)] == [["a"], ["b"]]
    assert names(connect(), db) == [READY]
    with pytest.raises(MetaException, match="true or false"):
        client.setMetaConf("includeUnCommit", "perhaps")
    client.setMetaConf("includeUnCommit", "false")
    assert names(client, db) == [READY]


def test_decorated_name(client: HiveClient, db: str) -> None:
    assert client.getTable(db, ALIAS).tableName == ALIAS.lower()
    assert client.tableExists(db, ALIAS) and client.getAllTables(db) == ["t"]
    assert names(client, db, ALIAS) == [READY, HIDDEN]
    assert client.getPartition(db, ALIAS, ["b"]).tableName == ALIAS.lower()
    with pytest.raises(MetaException, match="write to t instead"):
        client.dropTable(db, ALIAS)
    with pytest.raises(MetaException, match="write to t instead"):
        client.dropPartition(db, ALIAS, ["b"], True)


def test_load_path(client: HiveClient, db: str) -> None:
    """How Hive writes into a partition that it can't see: looks it up, adds it, finds that it exists, alters it."""
    with pytest.raises(NoSuchObjectException):
        client.getPartition(db, "t", ["b"])
    found = client.getPartitionWithAuthInfo(db, "t", ["b"], "me", ["us"])
    assert found.parameters["commit"] == "false"
    with pytest.raises(AlreadyExistsException):
        client.add_partition(partition(db, "t", "b"))
    client.alter_partition(db, "t", found.replace(parameters={"numRows": "3"}))
    found = client.getPartitionWithAuthInfo(db, "t", ["b"], "me", ["us"])
    assert (found.parameters["numRows"], found.parameters["commit"]) == ("3", "false")
    assert names(client, db) == [READY]


def test_committed_by_an_alteration(client: HiveClient, db: str) -> None:
    found = client.getPartitionWithAuthInfo(db, "t", ["b"], "me", ["us"])
    client.alter_partition(db, "t", found.replace(parameters=found.parameters | {"commit": "true"}))
    assert names(client, db) == [READY, HIDDEN]
