"""Indexes of Hive 2.3."""

import time
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AlreadyExistsException,
    Index,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)
from tests.support.builders import storage, table
from tests.support.expect import UNDECLARED, common, refused

DDL_TIME = "transient_lastDdlTime"
HANDLER = "org.apache.hadoop.hive.ql.index.compact.CompactIndexHandler"

pytestmark = pytest.mark.hive2


def index(db: str, name: str = "i", **fields: Any) -> Index:
    defaults: dict[str, Any] = {
        "indexHandlerClass": HANDLER,
        "origTableName": "t",
        "indexTableName": f"{db}__t_{name.lower()}__",
        "lastAccessTime": 0,
        "sd": storage("id:bigint"),
        "parameters": {"p": "v"},
        "deferredRebuild": True,
    }
    return Index(indexName=name, dbName=db, **(defaults | fields))


def add(client: ThriftClient, db: str, name: str = "i", **fields: Any) -> Index:
    """Adds an index on table `t` with a table for its data."""
    new = index(db, name, **fields)
    data = table(db, new.indexTableName or "", tableType="INDEX_TABLE", sd=storage("id:bigint", "_offset:bigint"))
    return client.add_index(new, data)


@pytest.fixture
def base(client: ThriftClient, db: str) -> str:
    """A database with a table `t`."""
    client.create_table(table(db))
    return db


class TestAdd:
    def test_answers_what_was_sent_with_the_time(self, client: ThriftClient, base: str) -> None:
        added = add(client, base)
        assert abs(time.time() - added.createTime) < 120
        parameters = {"p": "v", DDL_TIME: str(added.createTime)}
        expected = index(base, createTime=added.createTime, parameters=parameters)
        added.sd = expected.sd = None  # in Java's answer its flags and numbers have values
        assert added == expected

    def test_reads_back(self, client: ThriftClient, base: str) -> None:
        added = add(client, base.upper(), "I", indexTableName="Data")
        found = client.get_index_by_name(base.upper(), " T", "i ")
        assert found == client.get_index_by_name(base, "t", "I")
        assert (found.indexName, found.dbName, found.origTableName, found.indexTableName) == ("i", base, "t", "data")
        assert (found.createTime, found.lastAccessTime, found.deferredRebuild) == (added.createTime, 0, True)
        assert found.indexHandlerClass == HANDLER
        assert found.parameters == added.parameters
        assert common(found.sd).cols == storage("id:bigint").cols
        assert found.sd.bucketCols == [] and found.sd.skewedInfo.skewedColNames == []

    def test_the_table_of_its_data_is_made(self, client: ThriftClient, base: str, home: Path) -> None:
        add(client, base)
        assert client.get_table(base, f"{base}__t_i__").tableType == "INDEX_TABLE"
        assert (home / f"{base}__t_i__").is_dir()

    def test_exists(self, client: ThriftClient, base: str) -> None:
        add(client, base)
        with refused(AlreadyExistsException, message="Index already exists:"):
            add(client, base, "I", indexTableName="other")
        assert client.get_index_names(base, "t", -1) == ["i"]

    def test_no_such_table(self, client: ThriftClient, db: str) -> None:
        message = "Unable to add index because database or the orginal table do not exist"
        with refused(InvalidObjectException, message=message):
            add(client, db)
        assert client.get_all_tables(db) == []

    def test_the_table_of_its_data_is_there(self, client: ThriftClient, base: str) -> None:
        client.create_table(table(base, "data"))
        with refused(InvalidObjectException, message="Unable to add index because index table already exists"):
            add(client, base, indexTableName="data")


class TestFind:
    def test_missing(self, client: ThriftClient, base: str) -> None:
        with refused(NoSuchObjectException, message=f"{base}.t index=no_such not found"):
            client.get_index_by_name(base, "t", "no_such")
        with refused(NoSuchObjectException, message=f"{base}.nope index=i not found"):
            client.get_index_by_name(base, "nope", "i")

    def test_all_of_a_table(self, client: ThriftClient, base: str) -> None:
        for name in ("b", "a", "c"):
            add(client, base, name)
        assert client.get_index_names(base, "T", -1) == ["a", "b", "c"]
        assert client.get_index_names(base, "t", 1) == ["a", "b", "c"]
        found = {each.indexName: each for each in client.get_indexes(base, "t", -1)}
        assert sorted(found) == ["a", "b", "c"]
        assert found["b"] == client.get_index_by_name(base, "t", "b")

    def test_a_missing_table_has_none(self, client: ThriftClient, db: str) -> None:
        assert client.get_indexes(db, "no_such", -1) == []
        assert client.get_index_names("no_such", "t", -1) == []


class TestAlter:
    def test_changes_parameters_alone(self, client: ThriftClient, base: str) -> None:
        add(client, base)
        before = client.get_index_by_name(base, "t", "i")
        new = index(base, parameters={"q": "w"}, indexHandlerClass="other", deferredRebuild=False)
        client.alter_index(base, "t", "I", new)
        after = client.get_index_by_name(base, "t", "i")
        assert after.parameters.pop(DDL_TIME).isdigit()
        assert after.parameters == {"q": "w"}
        after.parameters = before.parameters
        assert after == before

    def test_missing(self, client: ThriftClient, base: str) -> None:
        with refused(MetaException, InvalidOperationException, message=f"{base}.t index=no_such not found"):
            client.alter_index(base, "t", "no_such", index(base, "no_such"))


class TestDrop:
    def test_takes_the_table_of_its_data_along(self, client: ThriftClient, base: str, home: Path) -> None:
        add(client, base)
        assert client.drop_index_by_name(base, "t", "I", True) is True
        assert client.get_index_names(base, "t", -1) == []
        assert client.get_all_tables(base) == ["t"]
        assert not (home / f"{base}__t_i__").exists()

    def test_leaves_its_data(self, client: ThriftClient, base: str, home: Path) -> None:
        add(client, base)
        client.drop_index_by_name(base, "t", "i", False)
        assert client.get_all_tables(base) == ["t"]
        assert (home / f"{base}__t_i__").is_dir()

    def test_missing(self, client: ThriftClient, base: str) -> None:
        with refused(NoSuchObjectException, message=f"{base}.t index=no_such not found"):
            client.drop_index_by_name(base, "t", "no_such", True)

    def test_the_table_of_its_data_stays_while_it_is_there(self, client: ThriftClient, base: str) -> None:
        add(client, base)
        with refused(MetaException, UNDECLARED, message="Please do drop index instead."):
            client.drop_table(base, f"{base}__t_i__", True)
        assert client.get_index_names(base, "t", -1) == ["i"]

    def test_goes_with_its_table(self, client: ThriftClient, base: str, home: Path) -> None:
        add(client, base)
        client.drop_table(base, "t", False)
        assert client.get_all_tables(base) == []
        assert not (home / f"{base}__t_i__").exists()
        assert (home / "t").is_dir()
