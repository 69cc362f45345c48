"""Altering, renaming and exchanging partitions, and marking them for events."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    EnvironmentContext,
    FieldSchema,
    InvalidOperationException,
    InvalidPartitionException,
    MetaException,
    NoSuchObjectException,
    Partition,
    PartitionEventType,
    UnknownTableException,
)
from tests.support.builders import columns, database, external_table, partition, storage, table
from tests.support.expect import UNDECLARED, common, files_below, refused
from tests.support.target import Target

KEEP = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})


@pytest.fixture
def directory(client: ThriftClient, db: str, home: Path) -> Path:
    """The directory of table `t`, which has the partitions 1/a, 1/b and 2/a with a file each."""
    client.create_table(table(db, keys=("ds", "hr")))
    fill(client, db, "t", home / "t")
    return home / "t"


def fill(client: ThriftClient, db: str, name: str, directory: Path) -> None:
    pairs = (("1", "a"), ("1", "b"), ("2", "a"))
    client.add_partitions([partition(db, name, *pair) for pair in pairs])
    for ds, hr in pairs:
        (directory / f"ds={ds}" / f"hr={hr}" / "file").write_text("data")


def locations(client: ThriftClient, db: str, name: str) -> list[str]:
    return [p.sd.location.removeprefix("file:") for p in client.get_partitions(db, name, -1)]


class TestAlter:
    def test_stores_what_the_new_partition_says(self, client: ThriftClient, db: str, directory: Path) -> None:
        new = client.get_partition(db, "t", ["1", "a"])
        new.lastAccessTime = 5
        new.parameters = {"a": "b", "transient_lastDdlTime": "7"}
        new.sd.cols = columns("Z:bigint")
        new.sd.serdeInfo.parameters = {"field.delim": ","}
        new.sd.inputFormat = "other.Format"
        client.alter_partition(db, "t", new)
        stored = client.get_partition(db, "t", ["1", "a"])
        assert stored.lastAccessTime == 5
        assert stored.parameters["a"] == "b"
        assert stored.parameters["transient_lastDdlTime"] == "7"
        assert stored.sd.cols == columns("z:bigint")
        assert stored.sd.serdeInfo.parameters == {"field.delim": ","}
        assert stored.sd.inputFormat == "other.Format"

    def test_other_partitions_and_the_table_stay(self, client: ThriftClient, db: str, directory: Path) -> None:
        before = common(client.get_partition(db, "t", ["1", "b"])), common(client.get_table(db, "t"))
        new = client.get_partition(db, "t", ["1", "a"])
        new.sd.cols = columns("z:bigint")
        client.alter_partition(db, "t", new)
        assert (common(client.get_partition(db, "t", ["1", "b"])), common(client.get_table(db, "t"))) == before

    def test_fills_transient_last_ddl_time_if_missing(self, client: ThriftClient, db: str, directory: Path) -> None:
        new = client.get_partition(db, "t", ["1", "a"])
        new.parameters = None
        client.alter_partition(db, "t", new)
        assert int(client.get_partition(db, "t", ["1", "a"]).parameters["transient_lastDdlTime"]) > 0

    def test_refreshes_quick_statistics(self, client: ThriftClient, db: str, directory: Path) -> None:
        new = client.get_partition(db, "t", ["1", "a"])
        new.parameters = {"totalSize": "99", "numRows": "5"}
        client.alter_partition_with_environment_context(db, "t", new, None)
        stored = client.get_partition(db, "t", ["1", "a"]).parameters
        assert (stored["numFiles"], stored["totalSize"], stored["numRows"]) == ("1", "4", "5")

    def test_unless_the_client_forbids_it(self, client: ThriftClient, db: str, directory: Path) -> None:
        new = client.get_partition(db, "t", ["1", "a"])
        new.parameters = {"totalSize": "99", "transient_lastDdlTime": "7"}
        client.alter_partition_with_environment_context(db, "t", new, KEEP)
        assert client.get_partition(db, "t", ["1", "a"]).parameters == new.parameters

    def test_a_new_location_moves_nothing(self, client: ThriftClient, db: str, directory: Path, tmp_path: Path) -> None:
        new = client.get_partition(db, "t", ["1", "a"])
        new.sd.location = f"{tmp_path}/new/"
        client.alter_partition(db, "t", new)
        assert client.get_partition(db, "t", ["1", "a"]).sd.location == f"file:{tmp_path}/new"
        assert (directory / "ds=1" / "hr=a" / "file").exists()
        assert not (tmp_path / "new").exists()

    @pytest.mark.parametrize("location", [None, ""])
    def test_a_partition_without_location_is_refused(
        self, client: ThriftClient, db: str, directory: Path, location: str | None
    ) -> None:
        new = client.get_partition(db, "t", ["1", "a"])
        new.sd.location = location
        with refused(MetaException, InvalidOperationException):
            client.alter_partition(db, "t", new)

    @pytest.mark.parametrize("missing", ["dbName", "tableName"])
    def test_a_partition_that_names_no_table(
        self, client: ThriftClient, db: str, directory: Path, missing: str
    ) -> None:
        new = client.get_partition(db, "t", ["1", "a"]).replace(**{missing: None})
        with refused(MetaException, InvalidOperationException):
            client.alter_partition(db, "t", new)
        with refused(MetaException, InvalidOperationException):
            client.rename_partition(db, "t", ["1", "a"], new.replace(values=["3", "a"]))

    @pytest.mark.parametrize("column", [FieldSchema(name="a"), FieldSchema(type="int")])
    def test_columns_without_name_or_type(
        self, client: ThriftClient, db: str, directory: Path, column: FieldSchema
    ) -> None:
        new = client.get_partition(db, "t", ["1", "a"])
        new.sd.cols = [*columns("z:bigint"), column]
        with refused(MetaException, InvalidOperationException):
            client.alter_partition(db, "t", new)

    def test_names_in_any_case(self, client: ThriftClient, db: str, directory: Path) -> None:
        new = client.get_partition(db, "t", ["1", "a"])
        new.dbName, new.tableName, new.parameters = db.upper(), "T", {"p": "v"}
        client.alter_partition(db.upper(), "T", new)
        assert client.get_partition(db, "t", ["1", "a"]).parameters["p"] == "v"

    def test_missing(self, client: ThriftClient, db: str, directory: Path) -> None:
        with refused(InvalidOperationException, message="alter is not possible"):
            client.alter_partition(db, "t", partition(db, "t", "9", "9", location="/x"))

    def test_as_many_values_as_keys(self, client: ThriftClient, db: str, directory: Path) -> None:
        with refused(MetaException, message="Invalid partition key & values"):
            client.alter_partition(db, "t", partition(db, "t", "1", location="/x"))

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        for name in (db, "no_such"):
            with refused(
                InvalidOperationException,
                message="Unable to alter partition because table or database does not exist.",
            ):
                client.alter_partition(name, "no_such", partition(name, "no_such", "1", location="/x"))


class TestAlterMany:
    def changed(self, client: ThriftClient, db: str) -> list[Partition]:
        new = [client.get_partition(db, "t", values) for values in (["1", "a"], ["1", "b"])]
        for each in new:
            each.parameters = {"p": "v"}
        return new

    def values(self, client: ThriftClient, db: str) -> list[str | None]:
        return [p.parameters.get("p") for p in client.get_partitions(db, "t", -1)]

    def test_alters_all(self, client: ThriftClient, db: str, directory: Path) -> None:
        client.alter_partitions(db, "t", self.changed(client, db))
        assert self.values(client, db) == ["v", "v", None]

    def test_with_environment_context(self, client: ThriftClient, db: str, directory: Path) -> None:
        client.alter_partitions_with_environment_context(db, "t", self.changed(client, db), KEEP)
        assert self.values(client, db) == ["v", "v", None]
        assert "numFiles" not in client.get_partition(db, "t", ["1", "a"]).parameters

    def test_or_none(self, client: ThriftClient, db: str, directory: Path) -> None:
        missing = partition(db, "t", "9", "9", location="/x")
        with refused(InvalidOperationException, message="Alter partition operation failed"):
            client.alter_partitions(db, "t", [*self.changed(client, db), missing])
        assert self.values(client, db) == [None, None, None]

    def test_no_partitions(self, client: ThriftClient, db: str, directory: Path) -> None:
        client.alter_partitions(db, "t", [])
        assert self.values(client, db) == [None, None, None]

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(InvalidOperationException, message="table or database does not exist."):
            client.alter_partitions(db, "no_such", [partition(db, "no_such", "1", location="/x")])


class TestRename:
    def rename(self, client: ThriftClient, db: str, name: str, old: list[str], new: list[str]) -> None:
        renamed = client.get_partition(db, name, old)
        renamed.values = new
        client.rename_partition(db, name, old, renamed)

    def test_the_data_of_a_managed_partition_moves(self, client: ThriftClient, db: str, directory: Path) -> None:
        self.rename(client, db, "t", ["1", "a"], ["3", "a/b"])
        assert client.get_partition_names(db, "t", -1) == ["ds=1/hr=b", "ds=2/hr=a", "ds=3/hr=a%2Fb"]
        assert client.get_partition(db, "t", ["3", "a/b"]).sd.location == f"file:{directory}/ds=3/hr=a%2Fb"
        assert files_below(directory) == ["ds=1/hr=b/file", "ds=2/hr=a/file", "ds=3/hr=a%2Fb/file"]

    def test_and_keeps_its_attributes(self, client: ThriftClient, db: str, directory: Path) -> None:
        client.add_partition(partition(db, "t", "4", "a", parameters={"p": "v"}, sd=storage("z:int")))
        self.rename(client, db, "t", ["4", "a"], ["5", "a"])
        renamed = client.get_partition(db, "t", ["5", "a"])
        assert (renamed.parameters["p"], renamed.sd.cols) == ("v", columns("z:int"))

    def test_the_old_name_is_free(self, client: ThriftClient, db: str, directory: Path) -> None:
        self.rename(client, db, "t", ["1", "a"], ["3", "a"])
        with refused(NoSuchObjectException):
            client.get_partition(db, "t", ["1", "a"])
        client.add_partition(partition(db, "t", "1", "a"))

    def test_an_external_partition_stays_where_it_is(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(external_table(db, "x", keys=("ds", "hr")))
        fill(client, db, "x", home / "x")
        self.rename(client, db, "x", ["1", "a"], ["3", "c"])
        assert client.get_partition(db, "x", ["3", "c"]).sd.location == f"file:{home}/x/ds=1/hr=a"
        assert (home / "x" / "ds=1" / "hr=a" / "file").exists()

    @pytest.mark.parametrize("new", [["1", "b"], ["1", "a"]])
    def test_onto_a_partition_that_exists(self, client: ThriftClient, db: str, directory: Path, new: list[str]) -> None:
        with refused(InvalidOperationException, message=f"Partition already exists:{db}.t.[{', '.join(new)}]"):
            self.rename(client, db, "t", ["1", "a"], new)
        assert (directory / "ds=1" / "hr=a" / "file").exists()

    def test_onto_a_directory_that_exists(self, client: ThriftClient, db: str, directory: Path) -> None:
        (directory / "ds=7" / "hr=7").mkdir(parents=True)
        with refused(InvalidOperationException, message="already exists"):
            self.rename(client, db, "t", ["1", "a"], ["7", "7"])
        assert (directory / "ds=1" / "hr=a" / "file").exists()
        assert client.get_partition(db, "t", ["1", "a"]).sd.location == f"file:{directory}/ds=1/hr=a"

    @pytest.mark.parametrize("new", [[], ["9"], ["9", "9", "9"]])
    def test_as_many_values_as_keys(self, client: ThriftClient, db: str, directory: Path, new: list[str]) -> None:
        with refused(MetaException, message="Invalid partition key & values"):
            self.rename(client, db, "t", ["1", "a"], new)

    def test_missing(self, client: ThriftClient, db: str, directory: Path) -> None:
        with refused(InvalidOperationException, message="old partition does not exist"):
            client.rename_partition(db, "t", ["8", "8"], partition(db, "t", "9", "9"))

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(InvalidOperationException, message="table or database does not exist."):
            client.rename_partition(db, "no_such", ["1"], partition(db, "no_such", "2"))


class TestExchange:
    @pytest.fixture(autouse=True)
    def destination(self, client: ThriftClient, db: str, directory: Path, unused_name: str) -> Iterator[str]:
        """A table of the same shape in another database, with a partition 9/a."""
        client.create_database(database(unused_name))
        client.create_table(table(unused_name, "u", keys=("ds", "hr")))
        client.add_partition(partition(unused_name, "u", "9", "a"))
        yield unused_name
        client.drop_database(unused_name, True, True)

    def test_moves_one_partition(
        self, client: ThriftClient, db: str, directory: Path, destination: str, warehouse: Path
    ) -> None:
        there = warehouse / f"{destination}.db" / "u"
        client.exchange_partition({"ds": "1", "hr": "a"}, db, "t", destination, "u")
        assert client.get_partition_names(db, "t", -1) == ["ds=1/hr=b", "ds=2/hr=a"]
        assert client.get_partition_names(destination, "u", -1) == ["ds=1/hr=a", "ds=9/hr=a"]
        assert client.get_partition(destination, "u", ["1", "a"]).sd.location == f"file:{there}/ds=1/hr=a"
        assert files_below(there) == ["ds=1/hr=a/file"]
        assert files_below(directory) == ["ds=1/hr=b/file", "ds=2/hr=a/file"]

    @pytest.mark.parametrize("spec", [{"ds": "1"}, {"ds": "1", "hr": ""}])
    def test_moves_all_below_a_prefix_and_returns_them(
        self, client: ThriftClient, db: str, destination: str, warehouse: Path, spec: dict[str, str]
    ) -> None:
        moved = client.exchange_partitions(spec, db, "t", destination, "u")
        assert sorted(p.values for p in moved) == [["1", "a"], ["1", "b"]]
        assert {(p.dbName, p.tableName) for p in moved} == {(destination, "u")}
        assert client.get_partition_names(db, "t", -1) == ["ds=2/hr=a"]
        assert client.get_partition_names(destination, "u", -1) == ["ds=1/hr=a", "ds=1/hr=b", "ds=9/hr=a"]
        assert files_below(warehouse / f"{destination}.db" / "u") == ["ds=1/hr=a/file", "ds=1/hr=b/file"]

    def test_all_or_none(self, client: ThriftClient, db: str, directory: Path, destination: str) -> None:
        client.add_partition(partition(destination, "u", "1", "b"))
        with refused(MetaException):
            client.exchange_partitions({"ds": "1"}, db, "t", destination, "u")
        assert len(client.get_partition_names(db, "t", -1)) == 3
        assert client.get_partition_names(destination, "u", -1) == ["ds=1/hr=b", "ds=9/hr=a"]
        assert len(files_below(directory)) == 3

    # Hive forgets its transaction after the following refusals: each has a connection of its own, which ends it.

    @pytest.mark.parametrize("spec", [{"ds": "7"}, {"nosuch": "1"}, {"DS": "1"}, {}])
    def test_a_spec_that_finds_nothing(self, target: Target, db: str, destination: str, spec: dict[str, str]) -> None:
        with target.connect() as own, refused(MetaException, NoSuchObjectException):
            own.exchange_partitions(spec, db, "t", destination, "u")

    @pytest.mark.parametrize("spec", [{"hr": "a"}, {"ds": "", "hr": "a"}])
    def test_a_spec_with_a_gap(
        self, target: Target, db: str, directory: Path, destination: str, spec: dict[str, str]
    ) -> None:
        with target.connect() as own, refused(MetaException):
            own.exchange_partitions(spec, db, "t", destination, "u")
        with target.connect() as client:
            assert len(client.get_partition_names(db, "t", -1)) == 3
            assert client.get_partition_names(destination, "u", -1) == ["ds=9/hr=a"]
        assert len(files_below(directory)) == 3

    def test_keys_that_the_table_has_not(self, client: ThriftClient, db: str, destination: str) -> None:
        moved = client.exchange_partitions({"ds": "1", "hr": "a", "mi": "5"}, db, "t", destination, "u")
        assert [p.values for p in moved] == [["1", "a"]]

    def test_a_partition_that_lies_elsewhere(
        self, target: Target, db: str, destination: str, directory: Path, tmp_path: Path
    ) -> None:
        with target.connect() as own, refused(MetaException):
            own.add_partition(partition(db, "t", "3", "a", location=str(tmp_path / "others")))
            own.exchange_partitions({"ds": "3", "hr": "a"}, db, "t", destination, "u")
        with target.connect() as client:
            assert client.get_partition(db, "t", ["3", "a"]).sd.location == f"file:{tmp_path}/others"
        assert (tmp_path / "others").is_dir()

    def test_a_partition_whose_directory_is_gone(
        self, target: Target, db: str, destination: str, directory: Path
    ) -> None:
        shutil.rmtree(directory / "ds=1")
        with target.connect() as own, refused(MetaException):
            own.exchange_partitions({"ds": "1"}, db, "t", destination, "u")
        with target.connect() as client:
            assert len(client.get_partition_names(db, "t", -1)) == 3

    @pytest.mark.parametrize(
        "other", [{"keys": ("ds",)}, {"keys": ("ds", "hr"), "sd": storage("other:int")}], ids=["keys", "columns"]
    )
    def test_tables_of_different_shape(self, target: Target, db: str, destination: str, other: dict) -> None:
        with target.connect() as own, refused(MetaException, message="The tables have different schemas."):
            own.create_table(table(destination, "w", **other))
            own.exchange_partitions({"ds": "1"}, db, "t", destination, "w")

    @pytest.mark.parametrize(
        ("source", "destination_table"), [("no_such", "u"), ("t", "no_such"), ("", "u"), ("t", "")]
    )
    def test_missing_tables(
        self, target: Target, db: str, destination: str, source: str, destination_table: str
    ) -> None:
        with target.connect() as own, refused(MetaException, UNDECLARED):
            own.exchange_partitions({"ds": "1"}, db, source, destination, destination_table)

    @pytest.mark.usefixtures("directory")
    def test_missing_databases(self, target: Target, db: str, destination: str) -> None:
        for source, goal in (("no_such", destination), (db, "no_such")):
            with target.connect() as own, refused(MetaException, UNDECLARED):
                own.exchange_partition({"ds": "1"}, source, "t", goal, "u")


class TestEvents:
    DONE = PartitionEventType.LOAD_DONE

    def test_a_partition_is_marked_once_said_so(self, client: ThriftClient, db: str, directory: Path) -> None:
        values = {"ds": "1", "hr": "a"}
        assert client.isPartitionMarkedForEvent(db, "t", values, self.DONE) is False
        client.markPartitionForEvent(db, "t", values, self.DONE)
        assert client.isPartitionMarkedForEvent(db, "t", values, self.DONE) is True
        assert client.isPartitionMarkedForEvent(db, "t", {"ds": "1", "hr": "b"}, self.DONE) is False

    def test_it_need_not_exist(self, client: ThriftClient, db: str, directory: Path) -> None:
        client.markPartitionForEvent(db, "t", {"ds": "99", "hr": "x"}, self.DONE)
        assert client.isPartitionMarkedForEvent(db, "t", {"ds": "99", "hr": "x"}, self.DONE) is True

    @pytest.mark.parametrize("method", ["markPartitionForEvent", "isPartitionMarkedForEvent"])
    def test_all_keys_are_needed(self, client: ThriftClient, db: str, directory: Path, method: str) -> None:
        with refused(
            InvalidPartitionException,
            message="Number of partition columns in table: 2 doesn't match with number of supplied partition values: 1",
        ):
            client.call(method, db, "t", {"ds": "1"}, self.DONE)
        with refused(InvalidPartitionException, message="No value found for partition column: ds"):
            client.call(method, db, "t", {"nosuch": "1", "hr": "a"}, self.DONE)

    @pytest.mark.parametrize("method", ["markPartitionForEvent", "isPartitionMarkedForEvent"])
    def test_missing_table(self, client: ThriftClient, db: str, method: str) -> None:
        with refused(UnknownTableException, message="Table: no_such is not found."):
            client.call(method, db, "no_such", {"k": "1"}, self.DONE)


class TestNamesOfPartitions:
    """Calls that only compute: names to values and back."""

    @pytest.mark.parametrize(
        ("name", "spec"),
        [
            ("a=1/b=2", {"a": "1", "b": "2"}),
            ("a=%2F/b=x y", {"a": "/", "b": "x y"}),
            ("A=1", {"A": "1"}),
            ("a=1//b=2", {"a": "1", "b": "2"}),
            ("/a=1/", {"a": "1"}),
            ("a=1/b", {"a": "1"}),
            ("a=1=2", {"a=1": "2"}),
            ("a=%zz/b=%4", {"a": "%zz", "b": "%4"}),
            ("ds=__HIVE_DEFAULT_PARTITION__", {"ds": "__HIVE_DEFAULT_PARTITION__"}),
            ("a", {}),
            ("a=", {}),
            ("=1", {}),
            ("", {}),
        ],
    )
    def test_a_name_is_taken_apart(self, client: ThriftClient, name: str, spec: dict[str, str]) -> None:
        assert client.partition_name_to_spec(name) == spec
        assert client.partition_name_to_vals(name) == list(spec.values())

    @pytest.mark.parametrize("values", [["a", "b"], ["a,b"], ["ü", "日本"], ["a/b", "\n"], []])
    @pytest.mark.parametrize("strict", [False, True])
    def test_every_character_is_valid_by_default(self, client: ThriftClient, values: list[str], strict: bool) -> None:
        assert client.partition_name_has_valid_characters(values, strict) is True
