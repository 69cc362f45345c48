"""Partitions through Hive's Java client."""

from pathlib import Path

import pytest

from lake.protocol.hive import (
    AlreadyExistsException,
    EnvironmentContext,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionEventType,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionValuesRequest,
    PartitionWithoutSD,
    UnknownTableException,
)
from tests.hive_client.conftest import HiveClient, JavaFailure
from tests.support.builders import columns, external_table, partition, storage, table
from tests.support.target import Target

VALUES = [("2020-01-01", "10"), ("2020-01-01", "9"), ("2020-01-02", "1"), ("a/b %", "1")]
NAMES = ["ds=2020-01-01/hr=10", "ds=2020-01-01/hr=9", "ds=2020-01-02/hr=1", "ds=a%2Fb %25/hr=1"]


@pytest.fixture(autouse=True)
def empty(client: HiveClient, db: str) -> None:
    client.createTable(table(db, "p", keys=("ds", "hr:int")))


@pytest.fixture
def filled(client: HiveClient, db: str) -> None:
    client.add_partitions([partition(db, "p", *values) for values in VALUES])


def values_of(partitions: list[Partition]) -> list[tuple[str, ...]]:
    return [tuple(each.values) for each in partitions]


class TestAdd:
    def test_one(self, client: HiveClient, db: str, home: Path) -> None:
        added = client.add_partition(partition(db, "p", "x", "1", parameters={"k": "v"}))
        assert added.sd.location == f"file:{home}/p/ds=x/hr=1"
        got = client.getPartition(db, "p", ["x", "1"])
        assert (got.dbName, got.tableName, got.values) == (db, "p", ["x", "1"])
        assert got.parameters["k"] == "v" and got.sd.cols == storage().cols
        assert (home / "p" / "ds=x" / "hr=1").is_dir()
        with pytest.raises(AlreadyExistsException):
            client.add_partition(partition(db, "p", "x", "1"))

    def test_many(self, client: HiveClient, db: str, tmp_path: Path) -> None:
        elsewhere = partition(db, "p", "elsewhere", "1", location=str(tmp_path / "elsewhere"))
        assert client.add_partitions([elsewhere, *(partition(db, "p", "many", str(hr)) for hr in range(300))]) == 301
        assert client.getPartition(db, "p", "ds=elsewhere/hr=1").sd.location == f"file:{tmp_path}/elsewhere"
        assert len(client.listPartitions(db, "p", -1)) == 301
        assert client.add_partitions([]) == 0

    def test_all_or_none(self, client: HiveClient, db: str) -> None:
        client.add_partition(partition(db, "p", "x", "1"))
        with pytest.raises(AlreadyExistsException):
            client.add_partitions([partition(db, "p", "y", "1"), partition(db, "p", "x", "1")])
        assert client.listPartitionNames(db, "p", -1) == ["ds=x/hr=1"]

    def test_those_that_are_missing(self, client: HiveClient, db: str) -> None:
        client.add_partition(partition(db, "p", "x", "1"))
        both = [partition(db, "p", "y", "1"), partition(db, "p", "x", "1")]
        assert values_of(client.add_partitions(both, True, True)) == [("y", "1")]
        assert client.add_partitions([partition(db, "p", "z", "1")], True, False) is None
        assert client.getNumPartitionsByFilter(db, "p", "") == 3

    def test_spec_that_lists_them(self, client: HiveClient, db: str, home: Path) -> None:
        spec = PartitionSpec(
            db, "p", f"{home}/p", partitionList=PartitionListComposingSpec([partition(db, "p", *VALUES[0])])
        )
        assert client.add_partitions_pspec(self.proxy(client, spec)) == 1
        assert client.listPartitionNames(db, "p", -1) == NAMES[:1]

    def test_spec_that_shares_a_descriptor(self, client: HiveClient, db: str, home: Path) -> None:
        members = [
            PartitionWithoutSD(values=["s", str(hr)], createTime=1, relativePath=f"/s{hr}", parameters={"n": str(hr)})
            for hr in (1, 2)
        ]
        shared = PartitionSpecWithSharedSD(members, storage(location=f"file:{home}/p"))
        spec = PartitionSpec(db, "p", f"file:{home}/p", sharedSDPartitionSpec=shared)
        assert client.add_partitions_pspec(self.proxy(client, spec)) == 2
        got = client.getPartition(db, "p", ["s", "2"])
        assert (got.sd.location, got.parameters["n"]) == (f"file:{home}/p/s2", "2")

    @staticmethod
    def proxy(client: HiveClient, *specs: PartitionSpec) -> object:
        factory = client.jvm.org.apache.hadoop.hive.metastore.partition.spec.PartitionSpecProxy.Factory
        return factory.get(client.to_java(list(specs)))

    def test_append(self, client: HiveClient, db: str, home: Path) -> None:
        assert client.appendPartition(db, "p", ["x", "1"]).values == ["x", "1"]
        appended = client.appendPartition(db, "p", "ds=a%2Fb/hr=2")
        assert (appended.values, appended.sd.location) == (["a/b", "2"], f"file:{home}/p/ds=a%2Fb/hr=2")
        with pytest.raises(AlreadyExistsException):
            client.appendPartition(db, "p", "ds=x/hr=1")

    def test_mistakes(self, client: HiveClient, db: str) -> None:
        with pytest.raises(InvalidObjectException):
            client.add_partition(partition(db, "no_such_table", "x", "1"))
        with pytest.raises(MetaException):
            client.add_partition(partition(db, "p", "x"))


@pytest.mark.usefixtures("filled")
class TestGet:
    def test_one(self, client: HiveClient, db: str) -> None:
        for name, values in zip(NAMES, VALUES, strict=True):
            assert client.getPartition(db, "p", name).values == list(values)
            assert client.getPartition(db, "p", list(values)).values == list(values)
        assert client.getPartitionWithAuthInfo(db, "p", list(VALUES[0]), "me", ["us"]).values == list(VALUES[0])
        with pytest.raises(NoSuchObjectException):
            client.getPartition(db, "p", ["nosuch", "1"])
        with pytest.raises(NoSuchObjectException):
            client.getPartition(db, "no_such_table", ["x", "1"])

    def test_all(self, client: HiveClient, db: str) -> None:
        assert values_of(client.listPartitions(db, "p", -1)) == VALUES
        assert values_of(client.listPartitions(db, "p", 2)) == VALUES[:2]
        assert values_of(client.listPartitionsWithAuthInfo(db, "p", -1, "me", [])) == VALUES

    def test_by_first_values(self, client: HiveClient, db: str) -> None:
        assert values_of(client.listPartitions(db, "p", ["2020-01-01", ""], -1)) == VALUES[:2]
        assert values_of(client.listPartitions(db, "p", ["", "1"], -1)) == VALUES[2:]
        assert values_of(client.listPartitionsWithAuthInfo(db, "p", ["", "1"], 1, "me", [])) == VALUES[2:3]

    def test_by_names(self, client: HiveClient, db: str) -> None:
        found = client.getPartitionsByNames(db, "p", [NAMES[3], "ds=nosuch/hr=1", NAMES[0], NAMES[0]])
        assert values_of(found) == [VALUES[0], VALUES[3]]

    def test_by_filter(self, client: HiveClient, db: str) -> None:
        assert values_of(client.listPartitionsByFilter(db, "p", "ds = '2020-01-01' and hr < 10", -1)) == [VALUES[1]]
        assert values_of(client.listPartitionsByFilter(db, "p", 'ds like "2020.*"', -1)) == VALUES[:3]
        assert values_of(client.listPartitionsByFilter(db, "p", "", 1)) == VALUES[:1]
        assert client.getNumPartitionsByFilter(db, "p", "hr = 1 or hr = 10") == 3
        with pytest.raises(MetaException):
            client.listPartitionsByFilter(db, "p", "nosuch = 'x'", -1)

    def test_names(self, client: HiveClient, db: str) -> None:
        assert client.listPartitionNames(db, "p", -1) == NAMES
        assert client.listPartitionNames(db, "p", 3) == NAMES[:3]
        assert sorted(client.listPartitionNames(db, "p", ["2020-01-01", ""], -1)) == NAMES[:2]

    def test_values(self, client: HiveClient, db: str) -> None:
        rows = client.listPartitionValues(PartitionValuesRequest(db, "p", columns("hr:int"))).partitionValues
        assert [row.row for row in rows] == [["1"], ["10"], ["9"]]

    def test_specs(self, client: HiveClient, db: str) -> None:
        def found(proxy: object) -> list[tuple[str, ...]]:
            iterator = client.call(proxy, "getPartitionIterator")
            some = []
            while client.call(iterator, "hasNext"):
                some.append(client.call(iterator, "next"))
            return values_of(some)

        proxy = client.listPartitionSpecs(db, "p", -1)
        assert client.call(proxy, "size") == 4
        assert found(proxy) == VALUES
        assert found(client.listPartitionSpecs(db, "p", 2)) == VALUES[:2]
        assert found(client.listPartitionSpecsByFilter(db, "p", "hr = 1", -1)) == VALUES[2:]

    def test_missing_table(self, client: HiveClient, db: str) -> None:
        with pytest.raises(NoSuchObjectException):
            client.listPartitions(db, "no_such_table", -1)
        with pytest.raises(NoSuchObjectException):
            client.listPartitionsByFilter(db, "no_such_table", "ds = 'x'", -1)

    def test_names_that_cannot_be_told(self, client: HiveClient, db: str, target: Target) -> None:
        """The client knows no exception but MetaException; Hive's server fails to send another one."""
        with pytest.raises(MetaException if target.name == "ours" else JavaFailure):
            client.listPartitionNames(db, "no_such_table", -1)
        with pytest.raises(MetaException if target.name == "ours" else JavaFailure):
            client.listPartitionNames(None, "p", -1)


@pytest.mark.usefixtures("filled")
class TestDrop:
    def test_by_values_and_name(self, client: HiveClient, db: str, home: Path) -> None:
        assert client.dropPartition(db, "p", list(VALUES[0]), True) is True
        assert client.dropPartition(db, "p", NAMES[3], True) is True
        assert client.listPartitionNames(db, "p", -1) == NAMES[1:3]
        assert not (home / "p" / "ds=a%2Fb %25").exists()
        assert not (home / "p" / "ds=2020-01-01" / "hr=10").exists()
        assert (home / "p" / "ds=2020-01-01" / "hr=9").is_dir()
        with pytest.raises(NoSuchObjectException):
            client.dropPartition(db, "p", list(VALUES[0]), True)

    def test_without_data(self, client: HiveClient, db: str, home: Path) -> None:
        client.dropPartition(db, "p", list(VALUES[0]), False)
        assert (home / "p" / "ds=2020-01-01" / "hr=10").is_dir()

    def test_purge(self, client: HiveClient, db: str, home: Path) -> None:
        options = client.jvm.org.apache.hadoop.hive.metastore.PartitionDropOptions.instance()
        purge = options.deleteData(True).purgeData(True)
        assert client.dropPartition(db, "p", list(VALUES[0]), purge) is True
        assert not (home / "p" / "ds=2020-01-01" / "hr=10").exists()


@pytest.mark.usefixtures("filled")
class TestAlter:
    def test_one(self, client: HiveClient, db: str, tmp_path: Path) -> None:
        changed = client.getPartition(db, "p", list(VALUES[0]))
        changed.parameters = {"k": "v"}
        changed.sd.location = str(tmp_path / "moved")
        changed.sd.cols = columns("id:bigint")
        client.alter_partition(db, "p", changed)
        got = client.getPartition(db, "p", list(VALUES[0]))
        assert (got.sd.location, got.parameters["k"]) == (f"file:{tmp_path}/moved", "v")
        assert got.sd.cols == changed.sd.cols

    def test_quick_statistics(self, client: HiveClient, db: str, home: Path) -> None:
        (home / "p" / "ds=2020-01-01" / "hr=10" / "data").write_text("12345")
        changed = client.getPartition(db, "p", list(VALUES[0]))
        changed.parameters["numFiles"] = "77"
        client.alter_partition(db, "p", changed, EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"}))
        assert client.getPartition(db, "p", list(VALUES[0])).parameters["numFiles"] == "77"
        client.alter_partition(db, "p", changed)
        got = client.getPartition(db, "p", list(VALUES[0])).parameters
        assert (got["numFiles"], got["totalSize"]) == ("1", "5")

    def test_many(self, client: HiveClient, db: str) -> None:
        changed = client.listPartitions(db, "p", -1)
        for number, each in enumerate(changed):
            each.parameters["number"] = str(number)
        client.alter_partitions(db, "p", changed[:2])
        client.alter_partitions(db, "p", changed[2:], EnvironmentContext({}))
        got = client.listPartitions(db, "p", -1)
        assert [each.parameters["number"] for each in got] == ["0", "1", "2", "3"]

    def test_missing(self, client: HiveClient, db: str) -> None:
        with pytest.raises(InvalidOperationException, match="alter is not possible"):
            client.alter_partition(db, "p", partition(db, "p", "nosuch", "1", location="/tmp/nosuch"))

    def test_rename(self, client: HiveClient, db: str, home: Path) -> None:
        (home / "p" / "ds=2020-01-01" / "hr=10" / "data").write_text("12345")
        renamed = client.getPartition(db, "p", list(VALUES[0]))
        renamed.values = ["new", "0"]
        client.renamePartition(db, "p", list(VALUES[0]), renamed)
        assert client.listPartitionNames(db, "p", -1) == [*NAMES[1:], "ds=new/hr=0"]
        got = client.getPartition(db, "p", ["new", "0"])
        assert got.sd.location == f"file:{home}/p/ds=new/hr=0"
        assert (home / "p" / "ds=new" / "hr=0" / "data").read_text() == "12345"

    def test_rename_to_what_is_there(self, client: HiveClient, db: str) -> None:
        renamed = client.getPartition(db, "p", list(VALUES[0]))
        renamed.values = list(VALUES[1])
        with pytest.raises(InvalidOperationException, match="already exists"):
            client.renamePartition(db, "p", list(VALUES[0]), renamed)

    def test_rename_of_an_external_one(self, client: HiveClient, db: str, tmp_path: Path) -> None:
        client.createTable(external_table(db, "e", keys=("ds",), sd=storage(location=str(tmp_path))))
        client.add_partition(partition(db, "e", "old"))
        renamed = client.getPartition(db, "e", ["old"])
        renamed.values = ["new"]
        client.renamePartition(db, "e", ["old"], renamed)
        assert client.getPartition(db, "e", ["new"]).sd.location == f"file:{tmp_path}/ds=old"


@pytest.mark.usefixtures("filled")
class TestExchange:
    @pytest.fixture(autouse=True)
    def another(self, client: HiveClient, db: str) -> None:
        client.createTable(table(db, "q", keys=("ds", "hr:int")))

    def test_one(self, client: HiveClient, db: str, home: Path) -> None:
        (home / "p" / "ds=2020-01-02" / "hr=1" / "data").write_text("12345")
        client.exchange_partition({"ds": "2020-01-02", "hr": "1"}, db, "p", db, "q")
        assert client.listPartitionNames(db, "q", -1) == NAMES[2:3]
        assert (home / "q" / "ds=2020-01-02" / "hr=1" / "data").read_text() == "12345"

    def test_several(self, client: HiveClient, db: str) -> None:
        moved = client.exchange_partitions({"ds": "2020-01-01"}, db, "p", db, "q")
        assert sorted(values_of(moved)) == VALUES[:2]
        assert client.listPartitionNames(db, "q", -1) == NAMES[:2]
        assert client.listPartitionNames(db, "p", -1) == NAMES[2:]

    def test_nothing_matches(self, client: HiveClient, db: str) -> None:
        with pytest.raises(MetaException):
            client.exchange_partitions({"ds": "nosuch"}, db, "p", db, "q")


class TestEvents:
    def test_mark(self, client: HiveClient, db: str) -> None:
        event = client.jvm.org.apache.hadoop.hive.metastore.api.PartitionEventType.findByValue(
            PartitionEventType.LOAD_DONE
        )
        spec = {"ds": "x", "hr": "1"}
        assert client.isPartitionMarkedForEvent(db, "p", spec, event) is False
        client.markPartitionForEvent(db, "p", spec, event)
        assert client.isPartitionMarkedForEvent(db, "p", spec, event) is True
        with pytest.raises(UnknownTableException):
            client.markPartitionForEvent(db, "no_such_table", spec, event)


class TestNames:
    def test_parts_of_a_name(self, client: HiveClient) -> None:
        assert client.partitionNameToVals("ds=a%2Fb/hr=1") == ["a/b", "1"]
        assert client.partitionNameToSpec("ds=a%2Fb/hr=1") == {"ds": "a/b", "hr": "1"}

    def test_any_character_is_valid(self, client: HiveClient) -> None:
        client.validatePartitionNameCharacters(["a/b", "ü", "%"])
