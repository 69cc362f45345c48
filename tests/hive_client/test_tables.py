"""Tables through Hive's Java client."""

from pathlib import Path

import pytest

from lake.protocol.hive import (
    AlreadyExistsException,
    EnvironmentContext,
    InvalidObjectException,
    InvalidOperationException,
    NoSuchObjectException,
    Order,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    UnknownDBException,
    UnknownTableException,
)
from tests.hive_client.conftest import HiveClient
from tests.support.builders import SERDE, columns, external_table, partition, storage, table, view

TEXT_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
TEXT_OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"


class TestCreate:
    def test_everything_comes_back(self, client: HiveClient, db: str, home: Path) -> None:
        descriptor = StorageDescriptor(
            cols=columns("id:bigint#the key", "m:map<string,array<int>>", "d:decimal(10,2)"),
            inputFormat=TEXT_INPUT,
            outputFormat=TEXT_OUTPUT,
            compressed=True,
            numBuckets=4,
            serdeInfo=SerDeInfo(name="s", serializationLib=SERDE, parameters={"field.delim": ","}),
            bucketCols=["id"],
            sortCols=[Order("id", 1)],
            parameters={"in": "sd"},
            skewedInfo=SkewedInfo(["id"], [["1"], ["2"]], {}),
            storedAsSubDirectories=True,
        )
        client.createTable(
            table(
                db,
                "Full",
                keys=("ds#the day", "hr:int"),
                sd=descriptor,
                owner="me",
                retention=7,
                parameters={"p": "ünï", "long": "x" * 4000},
            )
        )
        got = client.getTable(db, "full")
        assert (got.dbName, got.tableName, got.tableType) == (db, "full", "MANAGED_TABLE")
        assert (got.owner, got.retention) == ("me", 7)
        assert got.parameters["p"] == "ünï" and got.parameters["long"] == "x" * 4000
        assert got.partitionKeys == columns("ds#the day", "hr:int")
        assert got.sd.replace(location=None) == descriptor
        assert got.sd.location == f"file:{home}/full"
        assert (home / "full").is_dir()
        assert client.tableExists(db, "FULL")
        assert client.getFields(db, "full") == descriptor.cols
        assert client.getSchema(db, "full") == descriptor.cols + got.partitionKeys

    def test_mistakes(self, client: HiveClient, db: str) -> None:
        client.createTable(table(db, "t"))
        with pytest.raises(AlreadyExistsException):
            client.createTable(table(db, "t"))
        with pytest.raises(InvalidObjectException, match=r"no\\name is not a valid object name"):
            client.createTable(table(db, "no\\name"))
        with pytest.raises(InvalidObjectException):
            client.createTable(table("no_such_database", "t"))
        with pytest.raises(InvalidObjectException, match="Invalid column type: nosuch"):
            client.createTable(table(db, "u", sd=storage("a:nosuch")))

    def test_external(self, client: HiveClient, db: str, tmp_path: Path) -> None:
        client.createTable(external_table(db, "e", sd=storage(location=str(tmp_path / "e"))))
        assert client.getTable(db, "e").tableType == "EXTERNAL_TABLE"
        assert (tmp_path / "e").is_dir()
        client.dropTable(db, "e", True, False, True)
        assert (tmp_path / "e").is_dir()

    def test_view(self, client: HiveClient, db: str) -> None:
        client.createTable(view(db, "v"))
        got = client.getTable(db, "v")
        assert (got.tableType, got.sd.location) == ("VIRTUAL_VIEW", None)
        assert (got.viewOriginalText, got.viewExpandedText) == ("select id from t", "select `t`.`id` from `d`.`t`")


class TestGet:
    def test_missing(self, client: HiveClient, db: str) -> None:
        with pytest.raises(NoSuchObjectException, match=rf"{db}.no_such_table table not found"):
            client.getTable(db, "no_such_table")
        assert not client.tableExists(db, "no_such_table")
        with pytest.raises(UnknownTableException):
            client.getFields(db, "no_such_table")

    def test_several(self, client: HiveClient, db: str) -> None:
        for name in ("b", "a", "c"):
            client.createTable(table(db, name))
        found = client.getTableObjectsByName(db, ["c", "nosuch", "a", "a"])
        assert sorted(each.tableName for each in found) == ["a", "c"]
        with pytest.raises(UnknownDBException):
            client.getTableObjectsByName("no_such_database", ["a"])


class TestLists:
    @pytest.fixture(autouse=True)
    def several(self, client: HiveClient, db: str, tmp_path: Path) -> None:
        client.createTable(table(db, "one", owner="me", parameters={"purpose": "test"}))
        client.createTable(table(db, "two", owner="you"))
        client.createTable(external_table(db, "three", owner="me", sd=storage(location=str(tmp_path / "three"))))
        client.createTable(view(db, "four"))

    def test_by_pattern(self, client: HiveClient, db: str) -> None:
        assert client.getAllTables(db) == ["four", "one", "three", "two"]
        assert client.getTables(db, "t*") == ["three", "two"]
        assert client.getTables(db, "O*|four") == ["four", "one"]
        assert client.getTables(db, "nosuch*") == []
        assert client.getAllTables("no_such_database") == []

    def test_by_type(self, client: HiveClient, db: str) -> None:
        types = client.jvm.org.apache.hadoop.hive.metastore.TableType
        assert client.getTables(db, "*", types.MANAGED_TABLE) == ["one", "two"]
        assert client.getTables(db, "t*", types.EXTERNAL_TABLE) == ["three"]
        assert client.getTables(db, "*", types.VIRTUAL_VIEW) == ["four"]
        assert client.getTables(db, "*", types.INDEX_TABLE) == []

    def test_meta(self, client: HiveClient, db: str) -> None:
        found = client.getTableMeta(db, "*o*", [])
        assert sorted((each.tableName, each.tableType) for each in found) == [
            ("four", "VIRTUAL_VIEW"),
            ("one", "MANAGED_TABLE"),
            ("two", "MANAGED_TABLE"),
        ]
        found = client.getTableMeta(db, "*", ["EXTERNAL_TABLE"])
        assert [(each.dbName, each.tableName) for each in found] == [(db, "three")]

    def test_by_filter(self, client: HiveClient, db: str) -> None:
        def names(text: str, limit: int = -1) -> list[str]:
            return sorted(client.listTableNamesByFilter(db, text, limit))

        assert names('hive_filter_field_owner__ = "me"') == ["one", "three"]
        assert names('hive_filter_field_params__purpose = "test"') == ["one"]
        assert names('hive_filter_field_owner__ like ".*o.*" or hive_filter_field_last_access__ > 5') == ["two"]
        assert len(names('hive_filter_field_owner__ = "me"', 1)) == 1


class TestAlter:
    def test_columns_and_parameters(self, client: HiveClient, db: str) -> None:
        client.createTable(table(db, "t", parameters={"a": "1"}))
        changed = client.getTable(db, "t")
        changed.parameters = {"b": "2"}
        changed.owner = "another"
        changed.sd.cols = columns("id:bigint", "name:string", "more:array<int>#new")
        client.alter_table(db, "t", changed)
        got = client.getTable(db, "t")
        assert got.sd.cols == changed.sd.cols and got.owner == "another"
        assert got.parameters["b"] == "2" and "a" not in got.parameters

    def test_incompatible_type(self, client: HiveClient, db: str) -> None:
        client.createTable(table(db, "t"))
        changed = client.getTable(db, "t")
        changed.sd.cols = columns("id:int", "name:string")
        with pytest.raises(InvalidOperationException, match="types incompatible"):
            client.alter_table(db, "t", changed)

    @pytest.mark.parametrize("cascade", [False, True])
    def test_cascade(self, client: HiveClient, db: str, cascade: bool) -> None:
        client.createTable(table(db, "t", keys=("ds",)))
        client.add_partition(partition(db, "t", "a"))
        changed = client.getTable(db, "t")
        changed.sd.cols = columns("id:bigint", "name:string", "more")
        client.alter_table(db, "t", changed, cascade)
        assert client.getTable(db, "t").sd.cols == changed.sd.cols
        kept = columns("id:bigint", "name:string")
        assert client.getPartition(db, "t", ["a"]).sd.cols == (changed.sd.cols if cascade else kept)

    def test_environment_context(self, client: HiveClient, db: str, home: Path) -> None:
        client.createTable(table(db, "t", keys=("ds",)))
        client.createTable(table(db, "u"))
        client.add_partition(partition(db, "t", "a"))
        changed = client.getTable(db, "t")
        changed.sd.cols = columns("id:bigint")
        client.alter_table_with_environmentContext(db, "t", changed, EnvironmentContext({"CASCADE": "true"}))
        assert client.getPartition(db, "t", ["a"]).sd.cols == changed.sd.cols

        (home / "u" / "data").write_text("12345")
        changed = client.getTable(db, "u")
        changed.parameters["numFiles"] = "77"
        unchecked = EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
        client.alter_table_with_environmentContext(db, "u", changed, unchecked)
        assert client.getTable(db, "u").parameters["numFiles"] == "77"
        client.alter_table(db, "u", changed)
        got = client.getTable(db, "u").parameters
        assert (got["numFiles"], got["totalSize"]) == ("1", "5")

    def test_rename(self, client: HiveClient, db: str, home: Path) -> None:
        client.createTable(table(db, "t", keys=("ds",)))
        client.add_partition(partition(db, "t", "a"))
        (home / "t" / "ds=a" / "data").write_text("12345")
        renamed = client.getTable(db, "t")
        renamed.tableName = "Renamed"
        client.alter_table(db, "t", renamed)
        assert client.getAllTables(db) == ["renamed"]
        assert client.getTable(db, "renamed").sd.location == f"file:{home}/renamed"
        assert client.getPartition(db, "renamed", "ds=a").sd.location == f"file:{home}/renamed/ds=a"
        assert (home / "renamed" / "ds=a" / "data").read_text() == "12345"
        assert not (home / "t").exists()

    def test_mistakes(self, client: HiveClient, db: str) -> None:
        client.createTable(table(db, "t"))
        client.createTable(table(db, "u"))
        with pytest.raises(InvalidOperationException, match="table not found"):
            client.alter_table(db, "no_such_table", table(db, "t"))
        renamed = client.getTable(db, "t")
        renamed.tableName = "u"
        with pytest.raises(InvalidOperationException, match="already exists"):
            client.alter_table(db, "t", renamed)

    def test_insert_is_notified(self, client: HiveClient, db: str) -> None:
        """What Hive's client tells after INSERT: it needs no answer but that nothing is wrong."""
        client.createTable(table(db, "t"))
        client.insertTable(client.getTable(db, "t"), False)


class TestDrop:
    def test_with_data(self, client: HiveClient, db: str, home: Path) -> None:
        client.createTable(table(db, "t", keys=("ds",)))
        client.add_partition(partition(db, "t", "a"))
        client.dropTable(db, "t")
        assert not client.tableExists(db, "t")
        assert not (home / "t").exists()

    def test_without_data(self, client: HiveClient, db: str, home: Path) -> None:
        client.createTable(table(db, "t"))
        client.dropTable(db, "t", False, False)
        assert (home / "t").is_dir()

    def test_purge(self, client: HiveClient, db: str, home: Path) -> None:
        client.createTable(table(db, "t"))
        (home / "t" / "data").write_text("12345")
        client.dropTable(db, "t", True, False, True)
        assert not (home / "t").exists()

    def test_missing(self, client: HiveClient, db: str) -> None:
        with pytest.raises(NoSuchObjectException):
            client.dropTable(db, "no_such_table", True, False)
        client.dropTable(db, "no_such_table", True, True)
