"""What somebody else has made here isn't taken for what came over, and nothing that couldn't come over is forgotten."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    Catalog,
    CreateCatalogRequest,
    Function,
    FunctionType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
)
from lake.protocol.lake import ImportRequest
from metastore.migration.followed import Followed, all_of
from metastore.migration.mapping import Selection
from metastore.migration.objects import DatabaseKey, TableKey
from metastore.migration.thrift_source import ThriftSource
from tests.metastore.migration.following import complaint, differences, follow, run
from tests.support import builders
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("old") / "data", "--workers", "1") as server:
        yield server


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("new") / "data", "--workers", "1") as server:
        yield server


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """A second one that is left."""
    with MetastoreServer(tmp_path_factory.mktemp("another") / "data", "--workers", "1") as server:
        yield server


@pytest.fixture
def there(old: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(old.host, old.port) as client:
        yield client


@pytest.fixture
def here(ours: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(ours.host, ours.port) as client:
        yield client


def made(client: ThriftClient, name: str, place: Path, **fields: Any) -> None:
    client.create_database(builders.database(name, locationUri=f"file:{place}/{name}", **fields))


def table(database: str, name: str, place: Path) -> Any:
    return builders.table(database, name, sd=builders.storage(location=f"file:{place}/{database}/{name}"))


def function(database: str, name: str, class_name: str, time: int = 0) -> Function:
    return Function(name, database, class_name, "boss", PrincipalType.USER, time, FunctionType.JAVA, [])


def kept(ours: MetastoreServer, old: MetastoreServer, databases: str) -> Followed:
    [found] = [each for each in all_of(ThriftSource(ours.uri), old.uri) if each.databases == databases]
    return found


def test_grants_to_a_role_that_is_not_here_come_once_it_is(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    """Until then they are named each time, and others come."""
    made(there, "oa", tmp_path)
    options = ("--databases", "oa")
    run("import", old.uri, "--uri", ours.uri, *options)
    there.create_role(Role("oa_role", 0, "boss"))
    there.create_table(table("oa", "t", tmp_path))
    ref = HiveObjectRef(HiveObjectType.TABLE, "oa", "t")
    info = PrivilegeGrantInfo("SELECT", 0, "boss", PrincipalType.USER, False)
    who = (("oa_role", PrincipalType.ROLE), ("somebody", PrincipalType.USER))
    there.grant_privileges(PrivilegeBag([HiveObjectPrivilege(ref, *each, info) for each in who]))
    missing = ("grants", "oa_role (role): SELECT on table oa.t by boss", "it isn't here")
    for _ in range(2):
        [problem] = follow(old.uri, ours, *options, code=1)["problems"]
        assert problem["name"] == "SELECT on oa.t to oa_role" and "oa_role does not exist" in problem["text"]
        assert kept(ours, old, "oa").state.ungranted == {TableKey("hive", "oa", "t")}
        assert differences(old.uri, ours, *options) == [missing]
    here.create_role(Role("oa_role", 0, "boss"))
    assert follow(old.uri, ours, *options)["problems"] == []
    assert differences(old.uri, ours, *options) == []
    assert kept(ours, old, "oa").state.ungranted == set()


def test_functions_of_others_stay(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    for client in (there, here):
        made(client, "ob", tmp_path)
    here.create_table(table("ob", "mine", tmp_path))
    there.create_table(table("ob", "theirs", tmp_path))
    options = ("--databases", "ob")
    run("import", old.uri, "--uri", ours.uri, *options, code=None)
    here.lake_import(ImportRequest(functions=[function("ob", each, "here.Own", 5) for each in ("f", "same")]))
    there.lake_import(ImportRequest(functions=[function("ob", "same", "here.Own", 6)]))
    for name in ("f", "g"):
        there.create_function(function("ob", name, "there.First"))
    there.alter_function("ob", "g", function("ob", "g", "there.Second"))
    for _ in range(2):
        found = follow(old.uri, ours, *options, code=1)
        problems = {each["name"]: each["text"] for each in found["problems"] if each["kind"] == "functions"}
        assert sorted(problems) == ["ob.f", "ob.same"]
        assert all("another function has this name here" in each for each in problems.values())
        assert [here.get_function("ob", each).className for each in ("f", "g", "same")] == [
            *("here.Own", "there.Second", "here.Own"),
        ]
    here.drop_function("ob", "f")
    found = follow(old.uri, ours, *options, code=1)
    assert [each["name"] for each in found["problems"] if each["kind"] == "functions"] == ["ob.same"]
    assert here.get_function("ob", "f").className == "there.First"
    there.alter_function("ob", "f", function("ob", "f", "there.Third"))
    follow(old.uri, ours, *options, code=1)
    assert here.get_function("ob", "f").className == "there.Third"


def test_properties_of_databases_of_others_stay(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    """Also of an empty one, and where it is compared before a cut-over."""
    made(there, "oc", tmp_path)
    made(here, "oc", tmp_path / "own", description="of others", ownerName="me", parameters={"a": "1"})
    own = here.get_database("oc")
    options = ("--databases", "oc")
    assert run("import", old.uri, "--uri", ours.uri, *options, code=1)["differing"] == 1
    there.alter_database("oc", there.get_database("oc").replace(description="new"))
    there.create_table(table("oc", "t", tmp_path))
    for _ in range(2):
        [problem] = follow(old.uri, ours, *options, code=1)["problems"]
        assert "it was here before the import" in problem["text"] and "description: here 'of others'" in problem["text"]
        assert (here.get_database("oc"), here.get_all_tables("oc")) == (own, ["t"])
    said = complaint("cut-over", old.uri, "oc", "--uri", ours.uri, *options, "--frozen-by-hand")
    assert "oc differs, so it stays" in said and "import --replace" in said
    assert here.get_database("oc") == own
    # Once it is the same it is known to be the one there.
    run("import", old.uri, "--uri", ours.uri, *options, "--replace")
    there.alter_database("oc", there.get_database("oc").replace(description="newer"))
    assert follow(old.uri, ours, *options)["problems"] == []
    assert here.get_database("oc").description == "newer"
    there.drop_database("oc", False, True)
    assert follow(old.uri, ours, *options)["problems"] == []
    assert "oc" not in here.get_all_databases()


def test_an_empty_database_of_others_stays_theirs(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    made(there, "od", tmp_path)
    made(here, "od", tmp_path / "own", description="of others")
    options = ("--databases", "od")
    run("import", old.uri, "--uri", ours.uri, *options, code=1)
    here.lake_import(ImportRequest(tables=[table("od", "t", tmp_path).replace(createTime=5)]))
    there.create_table(table("od", "t", tmp_path))
    problems = {each["name"]: each["text"] for each in follow(old.uri, ours, *options, code=1)["problems"]}
    assert sorted(problems) == ["hive.od", "od.t"] and "another table has this name here" in problems["od.t"]
    there.drop_table("od", "t", False)
    follow(old.uri, ours, *options, code=None)
    assert here.get_table("od", "t").createTime == 5
    here.drop_table("od", "t", False)
    there.drop_database("od", False, True)
    [problem] = follow(old.uri, ours, *options, code=1)["problems"]
    assert (problem["kind"], problem["name"]) == ("databases", "od")
    assert here.get_database("od").description == "of others"
    here.drop_database("od", False, True)
    assert follow(old.uri, ours, *options)["problems"] == []


def test_a_database_that_gets_the_name_of_one_that_was_dropped_is_of_others(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    made(there, "oe", tmp_path)
    options = ("--databases", "oe")
    run("import", old.uri, "--uri", ours.uri, *options)
    there.drop_database("oe", False, True)
    follow(old.uri, ours, *options)
    made(here, "oe", tmp_path / "own", description="of others")
    here.lake_import(ImportRequest(tables=[table("oe", "t", tmp_path).replace(createTime=5)]))
    # A comparison, as where there is no log.
    state = kept(ours, old, "oe")
    state.take()
    state.state.compare = True
    state.keep()
    follow(old.uri, ours, *options, code=None)
    assert here.get_all_tables("oe") == ["t"]
    made(there, "oe", tmp_path)
    there.create_table(table("oe", "t", tmp_path))
    found = follow(old.uri, ours, *options, code=1)
    assert {each["kind"] for each in found["problems"]} == {"database", "tables"}
    assert (here.get_database("oe").description, here.get_table("oe", "t").createTime) == ("of others", 5)


@pytest.mark.long
def test_catalogs_of_others_stay(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, here: ThriftClient, tmp_path: Path
) -> None:
    for client, place in ((there, "old"), (here, "new")):
        client.create_catalog(CreateCatalogRequest(Catalog("of", place, f"file:{tmp_path}/{place}")))
    options = ("--databases", "of.*")
    run("import", old.uri, "--uri", ours.uri, *options, code=None)
    there.create_database(builders.database("d", locationUri=f"file:{tmp_path}/d", catalogName="of"))
    for _ in range(2):
        found = follow(old.uri, ours, *options, code=1)
        assert ("catalog", "of") in {(each["kind"], each["name"]) for each in found["problems"]}
        assert here.get_database("@of#d").locationUri == f"file:{tmp_path}/d"
    [catalog] = [each for each in ThriftSource(ours.uri).catalogs() if each.name == "of"]
    assert (catalog.description, catalog.locationUri) == ("new", f"file:{tmp_path}/new")


@pytest.mark.parametrize("replace", [pytest.param((), marks=pytest.mark.long), ("--replace",)])
def test_nothing_is_brought_into_another_table(
    old: MetastoreServer,
    there: ThriftClient,
    ours: MetastoreServer,
    here: ThriftClient,
    tmp_path: Path,
    replace: tuple[str, ...],
) -> None:
    """Whose partitions would be those of both then."""
    name = f"of{len(replace)}"
    for client in (there, here):
        made(client, name, tmp_path)
    for client, value in ((here, "1"), (there, "2")):
        kept_in = table(name, "t", tmp_path / value).replace(partitionKeys=builders.columns("dt:string"))
        client.lake_import(ImportRequest(tables=[kept_in.replace(createTime=int(value))]))
        client.add_partitions([builders.partition(name, "t", value)])
    ref = HiveObjectRef(HiveObjectType.TABLE, name, "t")
    info = PrivilegeGrantInfo("SELECT", 0, "boss", PrincipalType.USER, False)
    there.grant_privileges(PrivilegeBag([HiveObjectPrivilege(ref, "them", PrincipalType.USER, info)]))
    options = ("--uri", ours.uri, "--databases", name)
    [problem] = run("import", old.uri, *options, *replace, code=1)["problems"]
    assert problem["name"] == f"{name}.t" and "it is another table" in problem["text"]
    assert here.get_partition_names(name, "t", -1) == ["dt=1"]
    assert "them" not in {each.principalName for each in here.list_privileges(None, None, ref)}
    here.drop_table(name, "t", False)
    assert run("import", old.uri, *options, *replace)["problems"] == []
    assert here.get_partition_names(name, "t", -1) == ["dt=2"]
    assert "them" in {each.principalName for each in here.list_privileges(None, None, ref)}


def test_two_metastores_with_databases_of_one_name(
    old: MetastoreServer,
    there: ThriftClient,
    another: MetastoreServer,
    ours: MetastoreServer,
    here: ThriftClient,
    tmp_path: Path,
) -> None:
    """The second one's isn't mixed with that of the first, but by another name."""
    names = ("--databases", "og,og_*")
    with ThriftClient(another.host, another.port) as second:
        for client, begin in ((there, "first"), (second, "second")):
            made(client, "og", tmp_path / begin)
            client.create_table(table("og", begin, tmp_path / begin))
        made(second, "og_own", tmp_path / "second")
        run("import", old.uri, "--uri", ours.uri, *names)
        for more in ((), ("--replace",)):
            [problem] = run("import", another.uri, "--uri", ours.uri, *names, *more, code=1)["problems"]
            assert (problem["kind"], problem["name"]) == ("databases", "og")
            assert (
                f"og came from {old.uri}, and isn't known to be this one: give this one another name by --rename"
                in problem["text"]
            )
        second.create_table(table("og", "late", tmp_path / "second"))
        second.create_table(table("og_own", "t", tmp_path / "second"))
        for _ in range(2):
            [problem] = follow(another.uri, ours, *names, code=1)["problems"]
            assert (problem["kind"], problem["name"]) == ("databases", "og")
        said = complaint("cut-over", another.uri, "og", "--uri", ours.uri, *names, "--frozen-by-hand")
        assert f"og came from {old.uri}" in said
        assert (here.get_all_tables("og"), here.get_all_tables("og_own")) == (["first"], ["t"])
        run("cut-over", old.uri, "og", "--uri", ours.uri, *names, "--frozen-by-hand")
        for what in ("import", "follow"):
            arguments = (another.uri, "--uri", ours.uri, *names, *(("--until-current",) if what == "follow" else ()))
            [problem] = run(what, *arguments, code=1)["problems"]
            assert (problem["kind"], problem["name"]) == ("databases", "og")
        run("roll-back", old.uri, "og", "--uri", ours.uri, *names, "--frozen-by-hand")
        there.create_table(table("og", "next", tmp_path / "first"))
        assert follow(old.uri, ours, *names)["problems"] == []
        assert here.get_all_tables("og") == ["first", "next"]
        assert "before" in complaint("import", another.uri, "--uri", ours.uri, *names, "--rename", "og_own=og_other")
        renamed = (*names, "--rename", "og=og_2")
        found = run("import", another.uri, "--uri", ours.uri, *renamed, code=None)
        assert (found["problems"], {each["kind"] for each in found["differences"]} <= {"catalog"}) == ([], True)
        second.create_table(table("og", "later", tmp_path / "second"))
        assert follow(another.uri, ours, *names)["problems"] == []
        assert [each for each in differences(another.uri, ours, *renamed) if each[0] != "catalogs"] == []
        assert here.get_all_tables("og_2") == ["late", "later", "second"]
        assert here.get_all_tables("og") == ["first", "next"]


@pytest.mark.long
def test_two_imports_at_once_do_not_mix_databases_of_one_name(
    old: MetastoreServer,
    there: ThriftClient,
    another: MetastoreServer,
    ours: MetastoreServer,
    here: ThriftClient,
    tmp_path: Path,
) -> None:
    names = [f"oi_{number:02}" for number in range(20)]
    with ThriftClient(another.host, another.port) as second:
        for client, begin in ((there, "first"), (second, "second")):
            for name in names:
                made(client, name, tmp_path / begin)
                client.create_table(table(name, begin, tmp_path / begin))
    line = [sys.executable, "-m", "metastore", "migrate", "import"]
    clean = {key: value for key, value in os.environ.items() if not key.startswith("METASTORE_")}
    options = ("--uri", ours.uri, "--databases", "oi_*", "--json")
    under_way = [
        subprocess.Popen([*line, each.uri, *options], env=clean, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for each in (old, another)
    ]
    said = [json.loads(each.communicate()[0])["problems"] for each in under_way]
    refused = [{each["name"] for each in problems if each["kind"] == "databases"} for problems in said]
    assert sorted([*refused[0], *refused[1]]) == names
    for name in names:
        assert here.get_all_tables(name) == ["second" if name in refused[0] else "first"]


def test_views_under_other_names_are_told(
    old: MetastoreServer, there: ThriftClient, ours: MetastoreServer, tmp_path: Path
) -> None:
    """Their text may name a database here that is another one."""
    made(there, "oh", tmp_path)
    there.create_table(builders.view("oh", "v"))
    found = run("import", old.uri, "--uri", ours.uri, "--databases", "oh", "--rename", "oh=oh_2", code=None)
    [remark] = found["remarks"]
    assert (remark["kind"], remark["name"]) == ("views", "oh.v") and "its text stays as it is" in remark["text"]


def test_patterns_without_a_catalog_mean_hives() -> None:
    def fits(pattern: str, *key: str) -> bool:
        return Selection.parse(pattern).includes(DatabaseKey(*key))

    assert not fits("sp*", "spark", "default")
    assert all(fits(each, "spark", "sales") for each in ("*", "spark.*", "*.sales", "s*.s*"))
    assert all(fits(each, "hive", "sales") for each in ("*", "sales", "s*", "hive.sales", "*.sales"))
