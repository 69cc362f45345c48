"""With `only_allowed_locations` nobody but the operator's administrators names a place outside of the allowed ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.hive import (
    AlterCatalogRequest,
    Catalog,
    CreateCatalogRequest,
    Function,
    FunctionType,
    InvalidOperationException,
    MetaException,
    PrincipalType,
    ResourceUri,
    SkewedInfo,
    StorageDescriptor,
)
from lake.protocol.lake import ImportHudiRequest, ImportRequest, TableReference
from tests.rights.conftest import OPTIONS, as_user
from tests.rights.world import grant
from tests.support import builders
from tests.support.expect import refused
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    directory = tmp_path_factory.mktemp("confined")
    places = ("--only-allowed-locations", "--allowed-locations", str(directory / "all"))
    with MetastoreServer(directory / "data", *OPTIONS, *places, "--workers", "1") as server:
        with as_user(server, "root") as root:
            root.create_database(builders.database("mine", ownerName="bob"))
            for user in ("bob", "second"):
                grant(root, user, "ALL")
                root.grant_role("admin", user, PrincipalType.USER, "root", PrincipalType.USER, False)
            root.create_table(builders.table("mine", keys=("dt",), owner="bob"))
            root.add_partition(builders.partition("mine", "t", "1"))
        yield server


def skewed(sd: StorageDescriptor, place: str) -> StorageDescriptor:
    """Storage whose rows of a frequent value are in a place of their own."""
    return sd.replace(skewedInfo=SkewedInfo(["id"], [["1"]], {("1",): place}))


@pytest.mark.parametrize("name", ["bob", "second"], ids=["the owner, of the role admin", "of the role admin"])
def test_no_other_place(server: MetastoreServer, tmp_path: Path, name: str) -> None:
    place = f"file:{tmp_path}/there"
    sd = builders.storage("id:bigint", location=place)
    hudi = TableReference(database="mine", table="x")
    jar = Function("f", "mine", "a.B", None, None, 0, FunctionType.JAVA, [ResourceUri(1, f"{place}/evil.jar")])
    with as_user(server, name) as user:
        table, partition = user.get_table("mine", "t"), user.get_partition("mine", "t", ["1"])
        database = user.get_database("mine")
        calls = [
            lambda: user.create_table(builders.table("mine", "x", sd=sd)),
            lambda: user.create_table(builders.external_table("mine", "x", sd=sd)),
            lambda: user.alter_table("mine", "t", table.replace(sd=table.sd.replace(location=place))),
            lambda: user.add_partition(builders.partition("mine", "t", "2", location=place)),
            lambda: user.alter_partition("mine", "t", partition.replace(sd=partition.sd.replace(location=place))),
            lambda: user.create_table(builders.table("mine", "x", sd=skewed(builders.storage("id:bigint"), place))),
            lambda: user.alter_table("mine", "t", table.replace(sd=skewed(table.sd, place))),
            lambda: user.add_partition(builders.partition("mine", "t", "2", sd=skewed(builders.storage(), place))),
            lambda: user.alter_partition("mine", "t", partition.replace(sd=skewed(partition.sd, place))),
            lambda: user.create_database(builders.database("x", locationUri=place)),
            lambda: user.alter_database("mine", database.replace(locationUri=place)),
            lambda: user.create_function(jar),
            lambda: user.create_catalog(CreateCatalogRequest(Catalog("x", None, place))),
            lambda: user.alter_catalog(AlterCatalogRequest("hive", Catalog("hive", None, place))),
            lambda: user.lake_import_hudi(ImportHudiRequest(hudi, place, {}, [])),
            lambda: user.lake_import(ImportRequest(catalogs=[Catalog("x", None, place)])),
            lambda: user.lake_import(ImportRequest(databases=[builders.database("x", locationUri=place)])),
            lambda: user.lake_import(ImportRequest(functions=[jar])),
            lambda: user.lake_import(ImportRequest(tables=[builders.table("mine", "x", sd=sd)])),
            lambda: user.lake_import(ImportRequest(tables=[table.replace(sd=sd)], overwrite=True)),
            lambda: user.lake_import(ImportRequest(partitions=[builders.partition("mine", "t", "2", location=place)])),
        ]
        for call in calls:
            with refused(MetaException, InvalidOperationException, message="see allowed_locations"):
                call()
        assert user.get_table("mine", "t") == table
        assert user.get_partition("mine", "t", ["1"]) == partition
        assert user.get_all_tables("mine") == ["t"]
    assert not (tmp_path / "there").exists()


def test_rows_of_frequent_values_below_the_own_place(server: MetastoreServer) -> None:
    with as_user(server, "bob") as user:
        partition = user.get_partition("mine", "t", ["1"])
        own = skewed(partition.sd, f"{partition.sd.location}/id=1")
        user.alter_partition("mine", "t", partition.replace(sd=own))
        assert user.get_partition("mine", "t", ["1"]).sd.skewedInfo == own.skewedInfo
        user.alter_partition("mine", "t", partition)


def test_usual_and_allowed_places(server: MetastoreServer) -> None:
    base = server.data_dir.parent
    with as_user(server, "bob") as bob:
        home = bob.get_database("mine").locationUri
        for name, place in (("a", None), ("b", f"{home}/b"), ("c", f"file:{base}/all/c")):
            bob.create_table(builders.table("mine", name, sd=builders.storage("id:bigint", location=place)))
        bob.add_partition(builders.partition("mine", "t", "3", location=f"{home}/t/elsewhere"))
        for name in "abc":
            bob.drop_table("mine", name, True)
        bob.drop_partition("mine", "t", ["3"], True)


def test_administrators_of_the_settings(server: MetastoreServer, tmp_path: Path) -> None:
    with as_user(server, "root") as root:
        sd = builders.storage("id:bigint", location=f"file:{tmp_path}/there")
        root.create_table(builders.table("mine", "r", sd=sd))
        root.drop_table("mine", "r", True)
