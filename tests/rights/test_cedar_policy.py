"""Policies in Cedar: what they decide over the wire, and files that change while the server runs."""

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException, NoSuchObjectException, PrincipalType, Role
from metastore.services.access import policy_files
from metastore.services.access.caller import Caller
from metastore.services.access.cedar_policy import CedarPolicy
from metastore.services.access.policy_files import BadPolicy, PolicyFiles
from metastore.services.access.rights import Action, Kind, Securable
from metastore.settings import Settings
from metastore.store import Database
from tests.rights.conftest import as_user
from tests.rights.test_matrix import HIDDEN_FROM, NAMED, Users, compare
from tests.rights.world import HIDDEN, HIDDEN_TABLE, OPEN, OPEN_TABLE, OWNER, READER, WRITER, World, fill
from tests.support import builders
from tests.support.expect import refused
from tests.support.server import MetastoreServer

NO_DATABASE = cast(Database, None)
"""For policies that look neither at owners nor at roles."""

POLICIES = f"""
// who may do what in the world of the matrix
permit(principal in User::"{READER}", action in Action::"reading", resource in Table::"hive.{OPEN}.{OPEN_TABLE}");
permit(principal in User::"{WRITER}", action in [Action::"SEE", Action::"LIST", Action::"INSERT", Action::"WRITE"],
       resource in Table::"hive.{OPEN}.{OPEN_TABLE}");
permit(principal, action == Action::"SEE", resource == Database::"hive.{OPEN}")
when {{ ["{READER}", "{WRITER}", "{OWNER}"].contains(principal.name) }};
permit(principal, action, resource) when {{ principal in resource.owner }};
@id("nobody drops; not even with a ; in the text")
forbid(principal, action == Action::"DROP", resource)
when {{ resource.parameters has "frozen" && resource.parameters["frozen"] == "yes;" }};
permit(principal in Role::"team", action in Action::"reading", resource in Database::"hive.shared");
permit(principal in Group::"staff", action == Action::"SEE", resource is Database) when {{ context.peer.isLoopback() }};
"""


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("policies")
    (directory / "world.cedar").write_text(POLICIES)
    return directory


@pytest.fixture(scope="module")
def server(policies: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    directory = tmp_path_factory.mktemp("cedar")
    audit = ("--audit", "all", "--audit-log", str(directory / "audit.log"))
    who = ("--admins", "root", "--trust-unproven-users", "--workers", "1")
    options = ("--authorization", "policy", "--policy-file", str(policies), *who, *audit)
    with MetastoreServer(directory / "data", *options) as server:
        yield server


@pytest.fixture(scope="module")
def root(server: MetastoreServer) -> Iterator[ThriftClient]:
    with as_user(server, "root") as client:
        yield client


@pytest.fixture(scope="module")
def filled(server: MetastoreServer, root: ThriftClient) -> World:
    world = fill(server, root)
    root.create_database(builders.database("shared", ownerName="somebody"))
    root.create_table(builders.table("shared", owner="somebody", parameters={"frozen": "yes;"}))
    return world


@pytest.mark.long
@pytest.mark.parametrize("role", HIDDEN_FROM, ids=list(HIDDEN_FROM))
def test_what_is_hidden_looks_like_what_is_missing(filled: World, root: ThriftClient, role: str) -> None:
    users = Users(filled)
    try:
        compare(users, root, role, [(method, "plain") for method in NAMED])
    finally:
        users.close()


def test_lists_have_what_may_be_seen(server: MetastoreServer, filled: World) -> None:
    with as_user(server, READER) as reader, as_user(server, "x", "staff") as staff, as_user(server, None) as nobody:
        assert reader.get_all_databases() == [OPEN]
        assert reader.get_all_tables(OPEN) == [OPEN_TABLE]
        assert reader.get_all_tables(HIDDEN) == []
        assert {OPEN, HIDDEN, "shared"} <= set(staff.get_all_databases())
        assert staff.get_all_tables(HIDDEN) == []
        assert nobody.get_all_databases() == []


def test_a_partition_is_in_its_table(server: MetastoreServer, filled: World) -> None:
    with as_user(server, READER) as reader:
        assert reader.get_partition(OPEN, OPEN_TABLE, ["1"]).values == ["1"]
        with refused(MetaException, message=f"user [{READER}] does not have [DELETE] privilege on"):
            reader.drop_partition(OPEN, OPEN_TABLE, ["1"], False)
        with refused(NoSuchObjectException, message="table not found"):
            reader.get_partition(OPEN, HIDDEN_TABLE, ["1"])


def test_owners_roles_and_parameters(server: MetastoreServer, root: ThriftClient, filled: World) -> None:
    with as_user(server, "somebody") as owner, as_user(server, "member") as member:
        table = owner.get_table("shared", "t")
        with refused(MetaException, message="does not have [DROP] privilege on [shared.t]"):
            owner.drop_table("shared", "t", True)  # forbidden, although an owner may do everything
        assert member.get_all_tables("shared") == []
        root.create_role(Role("team", 0, "root"))
        root.grant_role("team", "member", PrincipalType.USER, "root", PrincipalType.USER, False)
        assert member.get_all_tables("shared") == ["t"]  # at once
        owner.alter_table("shared", "t", table.replace(parameters={"frozen": "no"}))
        owner.drop_table("shared", "t", True)
    with as_user(server, "root") as admin:
        assert admin.get_all_tables("shared") == []
    records = [json.loads(line) for line in (server.data_dir.parent / "audit.log").read_text().splitlines()]
    drops = [each["reason"] for each in records if each["method"] == "drop_table" and each["object"] == "shared.t"]
    assert drops == ["forbidden by policy world.cedar:9", "policy world.cedar:8"]


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def test_changed_files_are_taken_and_broken_ones_are_not(
    server: MetastoreServer, policies: Path, filled: World
) -> None:
    added = policies / "added.cedar"
    with as_user(server, "late") as late, as_user(server, "root") as root:
        try:
            assert late.get_all_databases() == []
            added.write_text(f'permit(principal == User::"late", action, resource == Database::"hive.{OPEN}");')
            until(lambda: late.get_all_databases() == [OPEN])
            assert root.getOption("authorization.trouble") == ""
            added.write_text("permit(principal action);")
            said = "those before them stay in force"
            until(lambda: said in server.log.read_text())
            assert "line 1 of" in server.log.read_text()
            assert "added.cedar" in root.getOption("authorization.trouble")
            assert late.get_all_databases() == [OPEN]
            assert HIDDEN in root.get_all_databases()
        finally:
            added.unlink(missing_ok=True)
        until(lambda: late.get_all_databases() == [] and root.getOption("authorization.trouble") == "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("// one\n\npermit(principal, action, resource)\nwhen { 1 + };", r"line 3 of .*wrong\.cedar.*unexpected"),
        (
            'permit(principal, action, resource);\nforbid(principal, action == Action::"DORP", resource);',
            "line 2.*DORP",
        ),
        ("permit(principal is Usr, action, resource);", "line 1 .*no type 'Usr'"),
        ('forbid(principal, action, resource) when { principal in Grp::"x" };', "no type 'Grp'"),
        ("permit(principal == ?principal, action, resource);", "template"),
        ("// nothing\n", "there is no policy"),
    ],
)
def test_policies_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "wrong.cedar").write_text(text)
    with pytest.raises(BadPolicy, match=message):
        PolicyFiles(tmp_path)


RANDOM_POLICIES = [
    'permit(principal, action, resource in Database::"hive.a");',
    'permit(principal == User::"u", action == Action::"SEE", resource == Table::"hive.b.t3");',
    'permit(principal in Group::"g", action, resource is Table) when { principal.name == "u" };',
    'forbid(principal, action, resource == Table::"hive.a.t1");',
    'forbid(principal, action, resource in Catalog::"other");',
    'permit(principal, action, resource) when { resource has name && resource.name like "t*2" };',
    'permit(principal, action == Action::"SELECT", resource) when { context.column == "c" };',
    'forbid(principal, action, resource == Table::"hive.b.odd%2Ename");',
    'permit(principal, action, resource) when { context.mechanism == "jwt" && resource in Database::"other.b" };',
    'forbid(principal, action, resource is Table) when { resource.values == ["x"] };',
]


@pytest.mark.long
@given(st.data())
@settings(max_examples=30, deadline=None)
def test_lists_are_decided_like_each_object_of_them(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(RANDOM_POLICIES), min_size=1, max_size=5, unique=True))
    path = tmp_path_factory.mktemp("random") / "p.cedar"
    path.write_text("\n".join(chosen))
    authorizer = CedarPolicy(NO_DATABASE, path)
    objects = [
        Securable(Kind.TABLE, catalog, database, table, column=column)
        for catalog in ("hive", "other")
        for database in "ab"
        for table in ("t1", "t2", "t3", "t4", "odd.name", "x%2Ey")
        for column in (None, "c")
    ] + [Securable(Kind.DATABASE, "hive", "a"), Securable(Kind.DATABASE, "hive", "b")]
    objects = data.draw(st.permutations(objects))
    for caller in (Caller("u", ("g",), "jwt"), Caller("u", (), "kerberos"), Caller("v", ("g",), "jwt")):
        for action in (Action.SEE, Action.SELECT):
            # Others each time, so that nothing is remembered.
            one_by_one = [CedarPolicy(NO_DATABASE, path).decide(caller, action, each).allowed for each in objects[:12]]
            assert authorizer.visible(caller, objects, action)[:12] == one_by_one
            assert authorizer.visible(caller, objects, action)[:12] == one_by_one
            assert [
                each.allowed for each in authorizer.decide_all(caller, [(action, x) for x in objects[:12]])
            ] == one_by_one


def test_decisions_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_files, "LOOK_SECONDS", 0)
    monkeypatch.setattr(policy_files, "MAX_DECIDED", 3)
    path = tmp_path / "one.cedar"
    path.write_text('permit(principal, action, resource in Database::"hive.a");')
    authorizer = CedarPolicy(NO_DATABASE, path)
    asked: list[int] = []
    ask = authorizer._ask

    def counted(*given: Any) -> Any:
        asked.append(len(given[3]))
        return ask(*given)

    monkeypatch.setattr(authorizer, "_ask", counted)
    caller = Caller("u", (), "jwt", peer="127.0.0.1:7")
    objects = [Securable(Kind.TABLE, "hive", "a", f"t{number}") for number in range(5)]
    assert authorizer.visible(caller, objects) == [True] * 5
    assert asked == [1], "no policy tells them apart"
    assert authorizer.decide(caller, Action.SELECT, objects[1]).allowed
    assert authorizer.decide(replace(caller, peer="127.0.0.1:8"), Action.SELECT, objects[1]).allowed
    assert asked == [1, 1]
    assert all(each.allowed for each in authorizer.decide_all(caller, [(Action.DROP, each) for each in objects]))
    assert asked == [1, 1, 5], "more than are remembered are decided all the same"
    path.write_text('forbid(principal, action, resource in Database::"hive.a");')
    os.utime(path, (1, 1))
    assert not authorizer.decide(caller, Action.SELECT, objects[1]).allowed


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadPolicy, match="can't be read"):
        PolicyFiles(tmp_path / "none.cedar")


def test_a_file_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_files, "LOOK_SECONDS", 0)
    path = tmp_path / "one.cedar"
    path.write_text("permit(principal, action, resource);")
    files = PolicyFiles(path)
    first = files.current()
    path.write_text("nonsense")
    assert files.current() is first
    assert "line 1" in str(files.broken)
    path.unlink()
    assert files.current() is first
    path.write_text("forbid(principal, action, resource);")
    os.utime(path, (1, 1))
    assert files.current() is not first
    assert files.broken is None


def test_policy_and_its_file_need_each_other() -> None:
    for values in ({"authorization": "policy"}, {"policy_file": "/p.cedar"}):
        with pytest.raises(ValueError, match="need each other"):
            Settings(**values)  # type: ignore[arg-type]


def test_a_policy_that_fails_refuses(server: MetastoreServer, policies: Path, filled: World) -> None:
    added = policies / "failing.cedar"
    with as_user(server, READER) as reader:
        assert reader.get_all_tables(OPEN) == [OPEN_TABLE]
        try:
            # Cedar would leave the forbid out, and the permits would hold.
            added.write_text(
                'forbid(principal, action, resource is Table) when { resource.parameters.missing == "x" };'
            )
            until(lambda: reader.get_all_tables(OPEN) == [])
        finally:
            added.unlink()
        until(lambda: reader.get_all_tables(OPEN) == [OPEN_TABLE])
    assert "a policy failed, which refuses" in server.log.read_text()
