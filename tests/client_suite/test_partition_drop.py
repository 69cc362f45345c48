"""Dropping partitions: one, by name, many in one request."""

import shutil
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    DropPartitionsRequest,
    EnvironmentContext,
    MetaException,
    NoSuchObjectException,
    Partition,
    RequestPartsSpec,
)
from tests.support.builders import external_table, partition, table
from tests.support.expect import directories_below, files_below, refused

NAMES = ["ds=1/hr=a", "ds=1/hr=b", "ds=2/hr=a"]
FILES = [f"{name}/file" for name in NAMES]


def fill(client: ThriftClient, db: str, name: str, directory: Path) -> None:
    client.add_partitions([partition(db, name, ds, hr) for ds, hr in (("1", "a"), ("1", "b"), ("2", "a"))])
    for file in FILES:
        (directory / file).write_text("data")


@pytest.fixture
def directory(client: ThriftClient, db: str, home: Path) -> Path:
    """The directory of table `t`, which has three partitions with a file each."""
    client.create_table(table(db, keys=("ds", "hr")))
    fill(client, db, "t", home / "t")
    return home / "t"


class TestOne:
    def test_goes_with_its_files(self, client: ThriftClient, db: str, directory: Path) -> None:
        assert client.drop_partition(db.upper(), "T", ["1", "a"], True) is True
        assert client.get_partition_names(db, "t", -1) == NAMES[1:]
        assert files_below(directory) == FILES[1:]

    def test_the_last_one_takes_the_directories_between_along(
        self, client: ThriftClient, db: str, directory: Path
    ) -> None:
        client.drop_partition(db, "t", ["1", "a"], True)
        client.drop_partition(db, "t", ["1", "b"], True)
        assert directories_below(directory) == ["ds=2", "ds=2/hr=a"]
        client.drop_partition(db, "t", ["2", "a"], True)
        assert directory.is_dir()
        assert directories_below(directory) == []

    def test_without_delete_data_the_files_stay(self, client: ThriftClient, db: str, directory: Path) -> None:
        client.drop_partition(db, "t", ["1", "a"], False)
        assert client.get_partition_names(db, "t", -1) == NAMES[1:]
        assert files_below(directory) == FILES

    def test_files_of_external_tables_stay(self, client: ThriftClient, db: str, home: Path) -> None:
        client.create_table(external_table(db, "x", keys=("ds", "hr")))
        fill(client, db, "x", home / "x")
        client.drop_partition(db, "x", ["1", "a"], True)
        assert client.get_partition_names(db, "x", -1) == NAMES[1:]
        assert files_below(home / "x") == FILES

    def test_files_elsewhere_go_too(self, client: ThriftClient, db: str, directory: Path, tmp_path: Path) -> None:
        client.add_partition(partition(db, "t", "3", "c", location=f"{tmp_path}/x"))
        client.drop_partition(db, "t", ["3", "c"], True)
        assert not (tmp_path / "x").exists()

    def test_a_directory_that_is_gone_already(self, client: ThriftClient, db: str, directory: Path) -> None:
        shutil.rmtree(directory / "ds=1" / "hr=a")
        client.drop_partition(db, "t", ["1", "a"], True)
        assert client.get_partition_names(db, "t", -1) == NAMES[1:]

    def test_by_name_with_keys_in_any_order(self, client: ThriftClient, db: str, directory: Path) -> None:
        assert client.drop_partition_by_name(db, "t", "ds=1/hr=a", True) is True
        assert client.drop_partition_by_name(db, "t", "hr=b/ds=1", True) is True
        assert client.get_partition_names(db, "t", -1) == NAMES[2:]

    def test_with_environment_context(self, client: ThriftClient, db: str, directory: Path) -> None:
        purge = EnvironmentContext(properties={"ifPurge": "TRUE"})
        client.drop_partition_with_environment_context(db, "t", ["1", "a"], True, purge)
        client.drop_partition_by_name_with_environment_context(db, "t", "ds=1/hr=b", True, None)
        assert files_below(directory) == FILES[2:]

    def test_missing(self, client: ThriftClient, db: str, directory: Path) -> None:
        with refused(NoSuchObjectException, message="partition values=[9, 9]"):
            client.drop_partition(db, "t", ["9", "9"], True)
        with refused(NoSuchObjectException, message="partition values=[9, 9]"):
            client.drop_partition_by_name(db, "t", "ds=9/hr=9", True)

    @pytest.mark.parametrize("values", [[], ["1"], ["1", "a", "x"]])
    def test_as_many_values_as_keys(self, client: ThriftClient, db: str, directory: Path, values: list[str]) -> None:
        with refused(MetaException, message="Invalid partition key & values"):
            client.drop_partition(db, "t", values, True)
        assert files_below(directory) == FILES

    def test_an_incomplete_name(self, client: ThriftClient, db: str, directory: Path) -> None:
        with refused(NoSuchObjectException, message="incomplete partition name - missing hr"):
            client.drop_partition_by_name(db, "t", "ds=1", True)
        with refused(MetaException, message="Partition name is invalid."):
            client.drop_partition_by_name(db, "t", "", True)

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException):
            client.drop_partition(db, "no_such", ["1"], True)
        with refused(NoSuchObjectException, message=f"{db}.no_such table not found"):
            client.drop_partition_by_name(db, "no_such", "k=1", True)


class TestMany:
    def drop(self, client: ThriftClient, db: str, *names: str, **options: bool) -> list[Partition] | None:
        request = DropPartitionsRequest(dbName=db, tblName="t", parts=RequestPartsSpec(names=list(names)), **options)
        return client.drop_partitions_req(request).partitions

    def test_returns_what_it_dropped(self, client: ThriftClient, db: str, directory: Path) -> None:
        dropped = self.drop(client, db, NAMES[0], NAMES[2], deleteData=True)
        assert sorted(p.values for p in dropped) == [["1", "a"], ["2", "a"]]
        assert client.get_partition_names(db, "t", -1) == NAMES[1:2]
        assert files_below(directory) == FILES[1:2]

    def test_returns_nothing_if_not_asked(self, client: ThriftClient, db: str, directory: Path) -> None:
        assert self.drop(client, db, NAMES[0], deleteData=True, needResult=False) is None
        assert client.get_partition_names(db, "t", -1) == NAMES[1:]

    def test_files_stay_by_default(self, client: ThriftClient, db: str, directory: Path) -> None:
        self.drop(client, db, *NAMES)
        assert client.get_partition_names(db, "t", -1) == []
        assert files_below(directory) == FILES

    def test_if_exists_skips_those_that_do_not(self, client: ThriftClient, db: str, directory: Path) -> None:
        dropped = self.drop(client, db, NAMES[0], "ds=9/hr=9", deleteData=True, ifExists=True)
        assert [p.values for p in dropped] == [["1", "a"]]

    @pytest.mark.parametrize("missing", ["ds=9/hr=9", "ds=2"])
    @pytest.mark.parametrize("options", [{}, {"ifExists": False}])
    def test_all_or_none_otherwise(
        self, client: ThriftClient, db: str, directory: Path, missing: str, options: dict[str, bool]
    ) -> None:
        with refused(NoSuchObjectException, message="Some partitions to drop are missing"):
            self.drop(client, db, NAMES[0], missing, deleteData=True, **options)
        assert client.get_partition_names(db, "t", -1) == NAMES
        assert files_below(directory) == FILES

    def test_the_same_twice(self, client: ThriftClient, db: str, directory: Path) -> None:
        dropped = self.drop(client, db, NAMES[0], NAMES[0], deleteData=True, ifExists=True)
        assert [p.values for p in dropped] == [["1", "a"]]

    def test_none(self, client: ThriftClient, db: str, directory: Path) -> None:
        assert self.drop(client, db, deleteData=True) == []

    def test_missing_table(self, client: ThriftClient, db: str) -> None:
        with refused(NoSuchObjectException, message=f"{db}.t table not found"):
            self.drop(client, db, "k=1", deleteData=True)
