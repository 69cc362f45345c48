"""A random catalog of Hive 2.3 comes over by the command, and is the same on both sides."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    ColumnStatisticsObj,
    CreationMetadata,
    Database,
    ForeignKeysRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    NoSuchObjectException,
    PrimaryKeysRequest,
    SourceTable,
    Table,
)
from metastore.migration.mapping import Renaming
from tests.hive_client.conftest import HiveClient
from tests.metastore.migration.following import run as within
from tests.metastore.migration.going_back import check_all_kinds_go_back
from tests.metastore.migration.random_catalog import Catalog, Maker
from tests.support import builders, called
from tests.support.reference import HiveReference
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module")
def hive_uri(hive_reference: HiveReference) -> str:
    return f"thrift://{hive_reference.host}:{hive_reference.port}"


@pytest.fixture(scope="module")
def made(hive_reference: HiveReference, tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    with ThriftClient(hive_reference.host, hive_reference.port) as hive:
        return Maker(hive, "mig", tmp_path_factory.mktemp("old"), seed=1).make()


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path / "data", "--workers", "1") as server:
        yield server


def run(what: str, hive_uri: str, server: MetastoreServer | None, *options: str, code: int = 0) -> dict[str, Any]:
    arguments = ["migrate", what, hive_uri, "--databases", "mig_*", "--json", *options]
    if server is not None:
        arguments += ["--uri", server.uri]
    result = called.run(*arguments)
    assert result.returncode == code, result
    return json.loads(result.stdout)


def test_plan(hive_uri: str, made: Catalog) -> None:
    plan = run("plan", hive_uri, None)
    objects = plan["objects"]
    assert objects["databases"] == len(made.databases)
    assert objects["tables"] + objects["views"] == sum(map(len, made.tables.values()))
    assert objects["functions"] == len(made.databases)
    assert objects["partitions"] > 0 and objects["constraints"] > 0
    assert any("bit vectors" in each["text"] for each in plan["remarks"])
    assert not [each for each in plan["remarks"] if "can't be used" in each["text"]]


def test_all_comes_over_and_is_the_same_on_both_sides(
    hive_uri: str, hive_reference: HiveReference, made: Catalog, ours: MetastoreServer
) -> None:
    first = run("import", hive_uri, ours)
    assert (first["problems"], first["differences"]) == ([], [])
    assert first["added"] >= made.objects
    again = run("import", hive_uri, ours)
    assert (again["added"], again["problems"], again["differences"]) == (0, [], [])
    found = run("verify", hive_uri, ours)
    assert found["differing"] == 0
    assert found["compared"] >= made.objects
    assert all(each["digest_here"] == each["digest_there"] for each in found["kinds"].values())
    assert_clients_see_the_same(hive_reference, ours, made)
    with ThriftClient(ours.host, ours.port) as client:
        spoil(client, made)
    found = run("verify", hive_uri, ours, code=1)
    named = {(each["kind"], each["name"], each["text"]) for each in found["differences"]}
    database, other = made.databases
    assert ("tables", f"{other}.t_1", "it isn't here") in named
    assert ("tables", f"{database}.extra", "it isn't there") in named
    changed = [text for kind, name, text in named if (kind, name) == ("tables", f"{database}.t_0")]
    assert len(changed) == 1 and "parameters.spoilt: here 'x', there nothing" in changed[0]


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_catalog_of_ten_thousand_objects(
    hive_uri: str, hive_reference: HiveReference, ours: MetastoreServer, tmp_path: Path
) -> None:
    with ThriftClient(hive_reference.host, hive_reference.port) as hive:
        made = Maker(hive, "big", tmp_path, seed=11).make(databases=10, tables=30, partitions=20)
    assert made.objects >= 10_000
    options = ("--uri", ours.uri, "--databases", "big_*")
    first = within("import", hive_uri, *options)
    assert (first["problems"], first["differences"]) == ([], [])
    assert first["added"] >= made.objects
    found = within("verify", hive_uri, *options)
    assert found["differing"] == 0 and found["compared"] >= made.objects
    assert_clients_see_the_same(hive_reference, ours, made)


def assert_clients_see_the_same(hive_reference: HiveReference, ours: MetastoreServer, made: Catalog) -> None:
    jvm = hive_reference._gateway.jvm
    hive, own = (HiveClient(jvm, each.host, each.port) for each in (hive_reference, ours))
    try:
        assert_same(hive, own, made)
    finally:
        hive.close()
        own.close()


def assert_same(hive: HiveClient, own: HiveClient, made: Catalog) -> None:
    """What Hive's client gets of both is the same to the letter, but for ids, catalogs, and what 2.3 doesn't have."""
    for database in made.databases:
        assert bare(hive.getDatabase(database)) == bare(own.getDatabase(database))
        assert bare(hive.getFunction(database, "f_1")) == bare(own.getFunction(database, "f_1"))
        names = hive.getAllTables(database)
        assert sorted(names) == sorted(own.getAllTables(database)) == sorted(made.tables[database])
        for name in names:
            table = hive.getTable(database, name)
            assert bare(table) == bare(own.getTable(database, name))
            columns = [each.name for each in table.sd.cols]
            for client in ("getPrimaryKeys", "getForeignKeys"):
                keys = KEYS[client](database, name)
                assert all_bare(getattr(hive, client)(keys)) == all_bare(getattr(own, client)(keys))
            if not table.partitionKeys:
                assert by_column(hive.getTableColumnStatistics(database, name, columns)) == by_column(
                    own.getTableColumnStatistics(database, name, columns)
                )
                continue
            parts = hive.listPartitionNames(database, name, -1)
            assert parts == own.listPartitionNames(database, name, -1)
            assert all_bare(hive.listPartitions(database, name, -1)) == all_bare(own.listPartitions(database, name, -1))
            one, other = (each.getPartitionColumnStatistics(database, name, parts, columns) for each in (hive, own))
            assert {key: by_column(each) for key, each in one.items()} == {
                key: by_column(each) for key, each in other.items()
            }
        for ref in (
            HiveObjectRef(HiveObjectType.DATABASE, database),
            HiveObjectRef(HiveObjectType.TABLE, database, names[0]),
            HiveObjectRef(HiveObjectType.COLUMN, database, "t_0", None, "c1"),
        ):
            one, other = (each.list_privileges(None, None, ref) for each in (hive, own))
            assert sorted(map(repr, all_bare(one))) == sorted(map(repr, all_bare(other)))
    assert set(made.roles) <= set(own.listRoleNames())


KEYS: dict[str, Any] = {
    "getPrimaryKeys": PrimaryKeysRequest,
    "getForeignKeys": lambda database, table: ForeignKeysRequest(None, None, database, table),
}


NOT_IN_2_3 = {"catName": None, "catalogName": None, "id": None, "writeId": None, "createTime": None}


def bare(value: Any) -> Any:
    gone = dict(NOT_IN_2_3)
    if not isinstance(value, Database):
        del gone["createTime"]
    if isinstance(value, Table):
        gone["ownerType"] = None
    if isinstance(value, HiveObjectPrivilege):
        return value.replace(hiveObject=bare(value.hiveObject))
    return value.replace(**{name: each for name, each in gone.items() if name in value.field_names()})


def all_bare(some: list[Any]) -> list[Any]:
    return [bare(each) for each in some]


def by_column(some: list[ColumnStatisticsObj]) -> dict[str, ColumnStatisticsObj]:
    return {each.colName or "": each for each in some}


def spoil(client: ThriftClient, made: Catalog) -> None:
    database, other = made.databases
    table = client.get_table(database, "t_0")
    table.parameters["spoilt"] = "x"
    client.alter_table(database, "t_0", table)
    client.drop_table(other, "t_1", False)
    client.create_table(builders.table(database, "extra"))


@pytest.mark.long
def test_other_names_and_places(hive_uri: str, made: Catalog, ours: MetastoreServer, tmp_path: Path) -> None:
    with ThriftClient(*address(hive_uri)) as hive:
        place = hive.get_table(made.databases[0], "t_0").sd.location.split("/old")[0]
    options = ("--rename", f"{made.databases[0]}=renamed", "--location", f"{place}=s3a://lake/x")
    run("import", hive_uri, ours, *options)
    assert run("verify", hive_uri, ours, *options)["differing"] == 0
    assert run("verify", hive_uri, ours, code=1)["differing"] > 0
    together = ("--rename", f"{made.databases[0]}={made.databases[1]}", "--databases", "mig_*")
    for what in ("import", "verify", "plan"):
        target = () if what == "plan" else ("--uri", ours.uri)
        assert "would both become" in called.complaint("migrate", what, hive_uri, *together, *target)
    with ThriftClient(ours.host, ours.port) as client:
        assert made.databases[0] not in client.get_all_databases()
        assert client.get_table("renamed", "t_0").sd.location.startswith("s3a://lake/x/old")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_all_kinds_go_back(hive_uri: str, ours: MetastoreServer, tmp_path: Path, seed: int) -> None:
    check_all_kinds_go_back(hive_uri, ours, tmp_path, seed)


def address(uri: str) -> tuple[str, int]:
    host, port = uri.removeprefix("thrift://").split(":")
    return host, int(port)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 20))])
def test_a_killed_import_goes_on(hive_uri: str, made: Catalog, ours: MetastoreServer, seed: int) -> None:
    rng = random.Random(seed)
    arguments = ["migrate", "import", hive_uri, "--databases", "mig_*", "--uri", ours.uri, "--threads", "2"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("METASTORE_")}
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-m", "metastore", *arguments],
            env=clean,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for_tables(ours, rng.randrange(1, 9), process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    run("import", hive_uri, ours)
    assert run("verify", hive_uri, ours)["differing"] == 0
    assert run("import", hive_uri, ours)["added"] == 0


def wait_for_tables(server: MetastoreServer, count: int, process: "subprocess.Popen[bytes]") -> None:
    """Until so many tables came, or the import has ended."""
    with ThriftClient(server.host, server.port) as client:
        while process.poll() is None:
            found = 0
            for database in client.get_all_databases():
                try:
                    found += len(client.get_all_tables(database))
                except NoSuchObjectException:
                    continue
            if found >= count:
                return
            time.sleep(0.01)


def test_wrong_calls(hive_uri: str, hive_reference: HiveReference) -> None:
    line = called.complaint("migrate", "plan", "oracle://x", code=2)
    assert "is no metastore that can be read" in line
    line = called.complaint("migrate", "import", hive_uri, "--uri", hive_uri)
    assert "is no lake metastore" in line
    assert "no metastore answers" in called.complaint("migrate", "plan", "thrift://127.0.0.1:1")
    line = called.complaint("migrate", "import", hive_uri, "--rename", "a=b", "--rename", "c=b", code=2)
    assert "--rename" in line


def test_locations_are_mapped_by_their_beginning() -> None:
    renaming = Renaming.parse([], ["hdfs://a/w=s3a://b", "hdfs://a/x=s3a://c/"])
    assert renaming.location("hdfs://a/x/t") == "s3a://c/t"
    assert renaming.location("hdfs://a/w/y") == "s3a://b/y"
    assert renaming.location("hdfs://a/wy") == "hdfs://a/wy"
    assert renaming.location("hdfs://a/w") == "s3a://b"
    assert renaming.location(None) is None


def test_names_inside_a_materialized_view_get_the_new_name() -> None:
    source = SourceTable(builders.table("old", "a"), 1, 0, 0)
    view = builders.table("old", "mv", tableType="MATERIALIZED_VIEW")
    view.creationMetadata = CreationMetadata("hive", "old", "mv", {"old.a", "other.b"}, sourceTables=[source])
    made = Renaming.parse(["old=new"], []).table(view).creationMetadata
    assert made is not None and made.sourceTables is not None
    assert (made.dbName, made.tablesUsed) == ("new", {"new.a", "other.b"})
    assert made.sourceTables[0].table.dbName == "new"
    assert view.creationMetadata.tablesUsed == {"old.a", "other.b"}
