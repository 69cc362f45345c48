"""Partitions: adding, appending, reading one."""

import time
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPartitionsRequest,
    AlreadyExistsException,
    EnvironmentContext,
    FieldSchema,
    InvalidObjectException,
    MetaException,
    NoSuchObjectException,
    Order,
    Partition,
    PartitionListComposingSpec,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
)
from tests.support.builders import columns, external_table, partition, storage, table, view
from tests.support.expect import UNDECLARED, common, directories_below, refused

NOTHING_SKEWED = SkewedInfo(skewedColNames=[], skewedColValues=[], skewedColValueLocationMaps={})


@pytest.fixture(autouse=True)
def partitioned(client: ThriftClient, db: str) -> None:
    """Table `t` by ds and hr, table `k` by k."""
    client.create_table(table(db, keys=("ds", "hr")))
    client.create_table(table(db, "k", keys=("k",)))


class TestNormalForm:
    def test_the_least_a_client_can_send(self, client: ThriftClient, db: str, home: Path) -> None:
        client.add_partition(
            Partition(
                dbName=db.upper(),
                tableName="T",
                values=["2020-01-01", "1"],
                sd=StorageDescriptor(cols=columns("a:int"), serdeInfo=SerDeInfo()),
            )
        )
        stored = client.get_partition(db, "t", ["2020-01-01", "1"])
        assert abs(time.time() - stored.createTime) < 120
        assert common(stored) == Partition(
            values=["2020-01-01", "1"],
            dbName=db,
            tableName="t",
            createTime=stored.createTime,
            lastAccessTime=0,
            sd=StorageDescriptor(
                cols=columns("a:int"),
                location=f"file:{home}/t/ds=2020-01-01/hr=1",
                compressed=False,
                numBuckets=0,
                serdeInfo=SerDeInfo(parameters={}),
                bucketCols=[],
                sortCols=[],
                parameters={},
                skewedInfo=NOTHING_SKEWED,
                storedAsSubDirectories=False,
            ),
            parameters={"transient_lastDdlTime": str(stored.createTime)},
        )

    def test_all_a_client_can_send(self, client: ThriftClient, db: str, tmp_path: Path) -> None:
        skewed = SkewedInfo(skewedColNames=["Zz"], skewedColValues=[["1"]], skewedColValueLocationMaps={})
        client.add_partition(
            Partition(
                dbName=db,
                tableName="t",
                values=["full", "1"],
                createTime=5,
                lastAccessTime=6,
                sd=StorageDescriptor(
                    cols=columns("Zz:bigint#said"),
                    location=f"{tmp_path}/x/",
                    inputFormat="in.Format",
                    outputFormat="out.Format",
                    compressed=True,
                    numBuckets=3,
                    serdeInfo=SerDeInfo(name="n", serializationLib="l", parameters={"a": "b"}),
                    bucketCols=["Zz"],
                    sortCols=[Order(col="Zz", order=0)],
                    parameters={"x": "y"},
                    skewedInfo=skewed,
                    storedAsSubDirectories=True,
                ),
                parameters={"p": "v", "transient_lastDdlTime": "3"},
            )
        )
        stored = client.get_partition(db, "t", ["full", "1"])
        assert abs(time.time() - stored.createTime) < 120
        assert common(stored) == Partition(
            values=["full", "1"],
            dbName=db,
            tableName="t",
            createTime=stored.createTime,
            lastAccessTime=6,
            sd=StorageDescriptor(
                cols=columns("zz:bigint#said"),
                location=f"file:{tmp_path}/x",
                inputFormat="in.Format",
                outputFormat="out.Format",
                compressed=True,
                numBuckets=3,
                serdeInfo=SerDeInfo(name="n", serializationLib="l", parameters={"a": "b"}),
                bucketCols=["Zz"],
                sortCols=[Order(col="zz", order=0)],
                parameters={"x": "y"},
                skewedInfo=skewed,
                storedAsSubDirectories=True,
            ),
            parameters={"p": "v", "transient_lastDdlTime": "3"},
        )

    def test_columns_may_be_left_out(self, client: ThriftClient, db: str) -> None:
        client.add_partition(partition(db, "k", "1", sd=StorageDescriptor(serdeInfo=SerDeInfo())))
        assert client.get_partition(db, "k", ["1"]).sd.cols is None

    def test_column_types_are_not_checked(self, client: ThriftClient, db: str) -> None:
        client.add_partition(partition(db, "k", "1", sd=storage("a:nosuchtype")))
        assert client.get_partition(db, "k", ["1"]).sd.cols == columns("a:nosuchtype")

    def test_a_partition_of_a_view_needs_no_storage(self, client: ThriftClient, db: str) -> None:
        client.create_table(view(db, "v", keys=("k",)))
        client.add_partition(partition(db, "v", "1", sd=None))
        assert client.get_partition(db, "v", ["1"]).sd is None

    def test_a_partition_of_a_view_has_no_location(self, client: ThriftClient, db: str, tmp_path: Path) -> None:
        client.create_table(view(db, "v", keys=("k",)))
        client.add_partition(partition(db, "v", "1"))
        assert client.get_partition(db, "v", ["1"]).sd.location is None
        with refused(MetaException, message="Cannot specify location for a view partition"):
            client.add_partition(partition(db, "v", "2", location=str(tmp_path)))


class TestAdd:
    def test_returns_the_partition_with_its_location(self, client: ThriftClient, db: str, home: Path) -> None:
        added = client.add_partition(partition(db, "t", "x", "1"))
        assert (added.values, added.sd.location) == (["x", "1"], f"file:{home}/t/ds=x/hr=1")
        assert added.parameters["transient_lastDdlTime"] == str(added.createTime)

    def test_makes_the_directory(self, client: ThriftClient, db: str, home: Path) -> None:
        client.add_partition(partition(db, "t", "x", "1"))
        assert (home / "t" / "ds=x" / "hr=1").is_dir()

    def test_makes_the_directory_of_external_partitions_too(
        self, client: ThriftClient, db: str, tmp_path: Path
    ) -> None:
        client.create_table(external_table(db, "x", keys=("k",), sd=storage(location=f"{tmp_path}/x")))
        client.add_partition(partition(db, "x", "1"))
        assert (tmp_path / "x" / "k=1").is_dir()

    @pytest.mark.parametrize("location", [None, ""])
    def test_without_location_it_is_below_the_table(
        self, client: ThriftClient, db: str, home: Path, location: str | None
    ) -> None:
        client.add_partition(partition(db, "k", "1", location=location))
        assert client.get_partition(db, "k", ["1"]).sd.location == f"file:{home}/k/k=1"

    @pytest.mark.parametrize("given", ["{}/x", "file:{}/x", "file://{}/x", "{}/x/"])
    def test_normalises_the_location(self, client: ThriftClient, db: str, tmp_path: Path, given: str) -> None:
        client.add_partition(partition(db, "k", "1", location=given.format(tmp_path)))
        assert client.get_partition(db, "k", ["1"]).sd.location == f"file:{tmp_path}/x"
        assert (tmp_path / "x").is_dir()

    def test_counts_the_files_of_an_existing_directory(self, client: ThriftClient, db: str, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("abc")
        client.add_partition(partition(db, "k", "1", location=str(tmp_path)))
        client.add_partition(partition(db, "k", "2"))
        counted = client.get_partition(db, "k", ["1"]).parameters
        assert (counted["numFiles"], counted["totalSize"]) == ("1", "3")
        assert client.get_partition(db, "k", ["2"]).parameters.keys() == {"transient_lastDdlTime"}

    def test_with_environment_context(self, client: ThriftClient, db: str) -> None:
        context = EnvironmentContext(properties={"k": "v"})
        client.add_partition_with_environment_context(partition(db, "k", "1"), context)
        client.add_partition_with_environment_context(partition(db, "k", "2"))
        assert client.get_partition_names(db, "k", -1) == ["k=1", "k=2"]

    def test_an_int_key_takes_any_text_as_it_is(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db, "i", keys=("n:int",)))
        for value in ("7", "007", "abc"):
            client.add_partition(partition(db, "i", value))
        assert client.get_partition_names(db, "i", -1) == ["n=007", "n=7", "n=abc"]


class TestAddChecks:
    def test_exists(self, client: ThriftClient, db: str) -> None:
        client.add_partition(partition(db, "k", "1"))
        with refused(AlreadyExistsException, message="Partition already exists"):
            client.add_partition(partition(db, "k", "1"))

    @pytest.mark.parametrize("values", [[], ["x"], ["x", "y", "z"]])
    def test_as_many_values_as_keys(self, client: ThriftClient, db: str, values: list[str]) -> None:
        with refused(MetaException, message="Invalid partition key & values; keys [ds, hr, ], values ["):
            client.add_partition(partition(db, "t", *values))

    @pytest.mark.parametrize("values", [[], ["x"]])
    def test_a_table_without_keys_has_no_partitions(self, client: ThriftClient, db: str, values: list[str]) -> None:
        client.create_table(table(db, "plain"))
        with refused(MetaException, message="Invalid partition key & values; keys [], values ["):
            client.add_partition(partition(db, "plain", *values))

    def test_no_values(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException):
            client.add_partition(Partition(dbName=db, tableName="k", sd=storage()))

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        for name in (db, "no_such"):
            with refused(
                InvalidObjectException, message="Unable to add partition because table or database do not exist"
            ):
                client.add_partition(partition(name, "no_such", "1"))

    def test_storage_and_serde_are_needed(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, InvalidObjectException):
            client.add_partition(partition(db, "k", "1", sd=None))
        with refused(MetaException, InvalidObjectException, message="Invalid SerDeInfo object"):
            client.add_partition(partition(db, "k", "1", sd=storage(serdeInfo=None)))
        assert client.get_partition_names(db, "k", -1) == []

    def test_an_unusable_location(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException):
            client.add_partition(partition(db, "k", "1", location="relative/path"))


class TestNames:
    @pytest.mark.parametrize(
        ("value", "escaped"),
        [
            ("a/b=c d", "a%2Fb%3Dc d"),
            ("%:*?\"'#{}[]^\\~", "%25%3A%2A%3F%22%27%23%7B}%5B%5D%5E%5C~"),
            ("tab\tdel\x7f", "tab%09del%7F"),
            ("größe€𝄞", "größe€𝄞"),
            ("UPPER lower", "UPPER lower"),
            ("__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
            ("", "__HIVE_DEFAULT_PARTITION__"),
        ],
    )
    def test_escape_values_in_names_and_directories(
        self, client: ThriftClient, db: str, home: Path, value: str, escaped: str
    ) -> None:
        client.add_partition(partition(db, "k", value))
        assert client.get_partition_names(db, "k", -1) == [f"k={escaped}"]
        assert client.get_partition(db, "k", [value]).values == [value]
        assert client.get_partition(db, "k", [value]).sd.location == f"file:{home}/k/k={escaped}"
        assert directories_below(home / "k") == [f"k={escaped}"]


class TestAddMany:
    def test_returns_how_many(self, client: ThriftClient, db: str, home: Path) -> None:
        assert client.add_partitions([partition(db, "k", value) for value in "cab"]) == 3
        assert client.get_partition_names(db, "k", -1) == ["k=a", "k=b", "k=c"]
        assert directories_below(home / "k") == ["k=a", "k=b", "k=c"]

    def test_none(self, client: ThriftClient) -> None:
        assert client.add_partitions([]) == 0

    @pytest.mark.parametrize(
        ("bad", "error", "message"),
        [
            (("k", "old"), AlreadyExistsException, "Partition already exists"),
            (("k", "new"), MetaException, "Duplicate partitions in the list"),
            (("k", "too", "many"), MetaException, "Invalid partition key & values"),
            (("t", "x", "y"), MetaException, "Partition does not belong to target table"),
        ],
    )
    def test_all_or_none(self, client: ThriftClient, db: str, bad: tuple[str, ...], error: type, message: str) -> None:
        client.add_partition(partition(db, "k", "old"))
        with refused(error, message=message):
            client.add_partitions([partition(db, "k", "new"), partition(db, *bad)])
        assert client.get_partition_names(db, "k", -1) == ["k=old"]

    @pytest.mark.parametrize("columns", [("x:int", "x:string"), ("x:int", "X:int")])
    def test_two_columns_of_one_name(self, client: ThriftClient, db: str, columns: tuple[str, ...]) -> None:
        """Hive says which statement its database refused."""
        with refused(MetaException):
            client.add_partitions([partition(db, "k", "new", sd=storage(*columns))])
        assert client.get_partition_names(db, "k", -1) == []

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        message = f"Unable to add partitions because database or table {db}.no_such does not exist"
        with refused(InvalidObjectException, message=message):
            client.add_partitions([partition(db, "no_such", "1")])


class TestAddRequest:
    def add(self, client: ThriftClient, db: str, *values: str, **options: bool) -> list[Partition] | None:
        options.setdefault("ifNotExists", False)
        parts = [partition(db, "k", value) for value in values]
        request = AddPartitionsRequest(dbName=db, tblName="k", parts=parts, **options)
        return client.add_partitions_req(request).partitions

    def test_returns_what_it_added(self, client: ThriftClient, db: str, home: Path) -> None:
        added = self.add(client, db, "1", "2", needResult=True)
        assert [p.values for p in added] == [["1"], ["2"]]
        assert [p.sd.location for p in added] == [f"file:{home}/k/k=1", f"file:{home}/k/k=2"]

    def test_returns_nothing_if_not_asked(self, client: ThriftClient, db: str) -> None:
        assert self.add(client, db, "1", needResult=False) is None
        assert client.get_partition_names(db, "k", -1) == ["k=1"]

    def test_the_result_is_wanted_by_default(self, client: ThriftClient, db: str) -> None:
        assert [p.values for p in self.add(client, db, "1")] == [["1"]]

    def test_if_not_exists_skips_what_exists(self, client: ThriftClient, db: str) -> None:
        self.add(client, db, "1")
        added = self.add(client, db, "1", "2", ifNotExists=True, needResult=True)
        assert [p.values for p in added] == [["2"]]

    def test_otherwise_it_is_refused(self, client: ThriftClient, db: str) -> None:
        self.add(client, db, "1")
        with refused(AlreadyExistsException, message="Partition already exists"):
            self.add(client, db, "2", "1")
        assert client.get_partition_names(db, "k", -1) == ["k=1"]

    def test_the_same_twice_is_refused_even_so(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, message="Duplicate partitions in the list"):
            self.add(client, db, "1", "1", ifNotExists=True)

    def test_none(self, client: ThriftClient, db: str) -> None:
        assert not self.add(client, db, needResult=True)

    def test_of_another_table(self, client: ThriftClient, db: str) -> None:
        request = AddPartitionsRequest(dbName=db, tblName="k", parts=[partition(db, "t", "1", "2")], ifNotExists=False)
        with refused(MetaException, message="Partition does not belong to target table"):
            client.add_partitions_req(request)

    @pytest.mark.parametrize("names", [{"dbName": None}, {"tableName": None}, {"tableName": ""}, {"tableName": "K"}])
    def test_each_names_the_table_as_the_call_does(
        self, client: ThriftClient, db: str, names: dict[str, str | None]
    ) -> None:
        parts = [partition(db, "k", "1"), partition(db, "k", "2").replace(**names)]
        with refused(MetaException):
            client.add_partitions_req(AddPartitionsRequest(dbName=db, tblName="k", parts=parts, ifNotExists=False))
        with refused(MetaException):
            client.add_partitions(parts)
        assert client.get_partition_names(db, "k", -1) == []

    @pytest.mark.parametrize("column", [FieldSchema(name="a"), FieldSchema(type="int")])
    def test_columns_without_name_or_type(self, client: ThriftClient, db: str, column: FieldSchema) -> None:
        new = partition(db, "k", "1", sd=storage(cols=[*columns("z:int"), column]))
        with refused(MetaException):
            client.add_partition(new)
        with refused(MetaException):
            client.add_partitions([new])
        assert client.get_partition_names(db, "k", -1) == []

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        request = AddPartitionsRequest(
            dbName=db, tblName="no_such", parts=[partition(db, "no_such", "1")], ifNotExists=False
        )
        with refused(InvalidObjectException, message=f"{db}.no_such does not exist"):
            client.add_partitions_req(request)


class TestAddSpecs:
    def test_a_list_of_partitions(self, client: ThriftClient, db: str, home: Path) -> None:
        listed = PartitionListComposingSpec(partitions=[partition(db, "k", "1"), partition(db, "k", "2")])
        spec = PartitionSpec(dbName=db, tableName="k", partitionList=listed)
        assert client.add_partitions_pspec([spec]) == 2
        assert client.get_partition_names(db, "k", -1) == ["k=1", "k=2"]
        assert directories_below(home / "k") == ["k=1", "k=2"]

    def test_of_no_table(self, client: ThriftClient, db: str) -> None:
        listed = PartitionListComposingSpec(partitions=[partition(db, "k", "1").replace(dbName=None, tableName=None)])
        with refused(MetaException, UNDECLARED):
            client.add_partitions_pspec([PartitionSpec(dbName=db, tableName="k", partitionList=listed)])
        assert client.get_partition_names(db, "k", -1) == []

    def test_partitions_that_share_their_storage(self, client: ThriftClient, db: str, home: Path) -> None:
        root = f"file:{home}/k"
        shared = PartitionSpecWithSharedSD(
            sd=storage("a:int", location=root),
            partitions=[
                PartitionWithoutSD(values=["1"], createTime=0, lastAccessTime=0, relativePath="/k=1", parameters={}),
                PartitionWithoutSD(
                    values=["2"], createTime=0, lastAccessTime=0, relativePath="/odd", parameters={"p": "v"}
                ),
            ],
        )
        spec = PartitionSpec(dbName=db, tableName="k", rootPath=root, sharedSDPartitionSpec=shared)
        assert client.add_partitions_pspec([spec]) == 2
        first, second = client.get_partitions(db, "k", -1)
        assert (first.sd.location, second.sd.location) == (f"{root}/k=1", f"{root}/odd")
        assert first.sd.cols == second.sd.cols == columns("a:int")
        assert second.parameters["p"] == "v"
        assert directories_below(home / "k") == ["k=1", "odd"]
        with refused(AlreadyExistsException, message="Partition already exists"):
            client.add_partitions_pspec([spec])

    def test_none(self, client: ThriftClient) -> None:
        assert client.add_partitions_pspec([]) == 0

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        listed = PartitionListComposingSpec(partitions=[partition(db, "no_such", "1")])
        with refused(InvalidObjectException):
            client.add_partitions_pspec([PartitionSpec(dbName=db, tableName="no_such", partitionList=listed)])


class TestAppend:
    def test_takes_the_table_s_storage_and_makes_the_directory(self, client: ThriftClient, db: str, home: Path) -> None:
        appended = client.append_partition(db, "t", ["x", "1"])
        assert appended.sd.cols == client.get_table(db, "t").sd.cols
        assert appended.sd.location == f"file:{home}/t/ds=x/hr=1"
        assert common(client.get_partition(db, "t", ["x", "1"])) == common(appended)
        assert (home / "t" / "ds=x" / "hr=1").is_dir()

    def test_by_name_with_keys_in_any_order(self, client: ThriftClient, db: str) -> None:
        client.append_partition_by_name(db, "t", "ds=a%2Fb/hr=1")
        client.append_partition_by_name(db, "t", "hr=2/ds=c")
        assert [p.values for p in client.get_partitions(db, "t", -1)] == [["a/b", "1"], ["c", "2"]]

    def test_with_environment_context(self, client: ThriftClient, db: str) -> None:
        context = EnvironmentContext(properties={"k": "v"})
        client.append_partition_with_environment_context(db, "t", ["x", "1"], context)
        client.append_partition_by_name_with_environment_context(db, "t", "ds=x/hr=2", context)
        assert client.get_partition_names(db, "t", -1) == ["ds=x/hr=1", "ds=x/hr=2"]

    def test_exists(self, client: ThriftClient, db: str) -> None:
        client.append_partition(db, "k", ["1"])
        with refused(AlreadyExistsException, message="Partition already exists"):
            client.append_partition(db, "k", ["1"])

    @pytest.mark.parametrize("values", [[], ["x"], ["x", "y", "z"]])
    def test_as_many_values_as_keys(self, client: ThriftClient, db: str, values: list[str]) -> None:
        with refused(MetaException, message="Invalid partition key & values"):
            client.append_partition(db, "t", values)

    @pytest.mark.parametrize("name", ["ds=x", "xx=1/hr=1", "junk"])
    def test_an_incomplete_name(self, client: ThriftClient, db: str, name: str) -> None:
        with refused(InvalidObjectException, message="incomplete partition name - missing"):
            client.append_partition_by_name(db, "t", name)

    def test_no_name(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, message="Partition name is invalid."):
            client.append_partition_by_name(db, "t", "")

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(InvalidObjectException):
            client.append_partition(db, "no_such", ["1"])
        with refused(InvalidObjectException):
            client.append_partition_by_name(db, "no_such", "k=1")

    def test_a_view(self, client: ThriftClient, db: str) -> None:
        client.create_table(view(db, "v", keys=("k",)))
        with refused(MetaException, message="Cannot append a partition to a view"):
            client.append_partition(db, "v", ["1"])


class TestGet:
    @pytest.fixture(autouse=True)
    def filled(self, client: ThriftClient, db: str) -> None:
        client.add_partition(partition(db, "t", "a/b", "1"))

    def test_every_way_finds_the_same(self, client: ThriftClient, db: str) -> None:
        found = common(client.get_partition(db.upper(), "T", ["a/b", "1"]))
        assert common(client.get_partition_with_auth(db, "t", ["a/b", "1"], "alice", ["staff"])) == found
        assert common(client.get_partition_with_auth(db, "t", ["a/b", "1"])) == found
        assert common(client.get_partition_by_name(db, "t", "ds=a%2Fb/hr=1")) == found
        assert common(client.get_partition_by_name(db, "t", "hr=1/ds=a%2Fb")) == found

    def test_missing(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException, message="partition values=[x, 1]"):
            client.get_partition(db, "t", ["x", "1"])
        with refused(NoSuchObjectException, message="partition values=[x, 1]"):
            client.get_partition_by_name(db, "t", "ds=x/hr=1")
        with refused(NoSuchObjectException, message="partition values=[x, 1]"):
            client.get_partition_with_auth(db, "t", ["x", "1"], "alice", [])

    def test_values_are_compared_exactly(self, client: ThriftClient, db: str) -> None:
        for values in (["A/B", "1"], ["a%2Fb", "1"], ["a/b", "01"]):
            with refused(NoSuchObjectException):
                client.get_partition(db, "t", values)

    @pytest.mark.parametrize("values", [[], ["a/b"], ["a/b", "1", "2"]])
    def test_as_many_values_as_keys(self, client: ThriftClient, db: str, values: list[str]) -> None:
        with refused(MetaException, message="Invalid partition key & values; keys [ds, hr, ], values ["):
            client.get_partition(db, "t", values)

    @pytest.mark.parametrize("name", ["ds=a%2Fb", "DS=a%2Fb/HR=1", "garbage"])
    def test_incomplete_names(self, client: ThriftClient, db: str, name: str) -> None:
        with refused(NoSuchObjectException, message="incomplete partition name - missing"):
            client.get_partition_by_name(db, "t", name)

    def test_no_name(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, message="Partition name is invalid."):
            client.get_partition_by_name(db, "t", "")

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        for name in (db, "no_such"):
            with refused(NoSuchObjectException, message=f"{name}.no_such table not found"):
                client.get_partition(name, "no_such", ["1"])
        with refused(NoSuchObjectException, message=f"{db}.no_such table not found"):
            client.get_partition_by_name(db, "no_such", "k=1")

    def test_no_values(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, UNDECLARED):
            client.get_partition(db, "t", None)
