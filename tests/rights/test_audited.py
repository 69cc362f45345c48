"""Every record of the audit log says what its call was about."""

import json
from pathlib import Path
from typing import Any

import pytest

from lake.protocol import lake
from lake.protocol.connection.login import Login, LoginRefused
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    GrantRevokePrivilegeRequest,
    GrantRevokeRoleRequest,
    GrantRevokeType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
)
from lake.protocol.services import METHODS
from metastore.api import load
from metastore.api.methods import HANDLERS
from metastore.api.rights import audited
from metastore.server.credentials import password_file
from metastore.server.dispatch import described
from tests.rights.calls import made, named_methods, ways
from tests.support import builders
from tests.support.server import MetastoreServer

load()

OF_TABLES = {
    "table", "described", "lake", "full", "ref", "instant", "hudi_instant", "jobs", "submitted_jobs", "lease",
    "hudi_import", "grants", "refreshed_grants", "table_change", "partition_change", "new_partitions",
}  # fmt: skip
OF_NO_OBJECT = {"everything", "principal", "locks", "hudi_refresh"}
"""Kinds of needs that name none, or have a test of their own below."""


@pytest.mark.parametrize("way", ["plain", "with the catalog before", "in capitals"])
def test_every_method_that_names_an_object_is_recorded_with_it(way: str) -> None:
    name = ways("the_db", "the_table")[way]
    wrong = {}
    for method in named_methods():
        kinds = {need.kind for need in HANDLERS[method].rule.needs} - OF_NO_OBJECT
        if not kinds:
            continue
        arguments = made(method, name).arguments
        found = audited.objects(method, arguments, described(arguments))
        if kinds & OF_TABLES:
            expected = "the_db.the_table"
        else:
            expected = {"role": "role admin", "catalog": "catalog hive"}.get(next(iter(kinds)), "the_db")
        if expected not in found:
            wrong[method] = found
    assert wrong == {}


def audit_of(method: str, *args: Any, value: Any = None) -> tuple[str, list[dict[str, Any]]]:
    arguments = METHODS[method].args(**dict(zip(METHODS[method].argument_names, args, strict=True)))
    return audited.objects(method, arguments, described(arguments)), audited.details(method, arguments, value)


def privilege(grantee: str, kind: PrincipalType, *, option: bool) -> HiveObjectPrivilege:
    ref = HiveObjectRef(HiveObjectType.COLUMN, "shop", "orders", ["2026"], "price")
    return HiveObjectPrivilege(ref, grantee, kind, PrivilegeGrantInfo("SELECT", 0, "root", PrincipalType.USER, option))


GRANTED = {
    "privilege": "SELECT",
    "object": "shop.orders.2026.price",
    "grantee": "role:etl",
    "grant_option": True,
    "grantor": "root",
}


def test_grants() -> None:
    bag = PrivilegeBag([privilege("etl", PrincipalType.ROLE, option=True), privilege("ann", 1, option=False)])  # type: ignore[arg-type]
    second = GRANTED | {"grantee": "user:ann", "grant_option": False}
    for method in ("grant_privileges", "revoke_privileges"):
        assert audit_of(method, bag) == ("shop.orders", [GRANTED, second])
    request = GrantRevokePrivilegeRequest(GrantRevokeType.REVOKE, bag, True)
    more = {"action": "revoke", "only_grant_option": True}
    assert audit_of("grant_revoke_privileges", request)[1] == [GRANTED | more, second | more]
    ref = HiveObjectRef(HiveObjectType.TABLE, "shop", "orders")
    request = GrantRevokePrivilegeRequest(GrantRevokeType.GRANT, bag)
    assert audit_of("refresh_privileges", ref, "x", request)[1] == [
        each | {"action": "grant"} for each in (GRANTED, second)
    ]
    everything = privilege("ann", PrincipalType.USER, option=False)
    everything.hiveObject = HiveObjectRef(HiveObjectType.GLOBAL)
    assert audit_of("grant_privileges", PrivilegeBag([everything]))[1][0]["object"] == "the metastore"


def test_roles() -> None:
    assert audit_of("create_role", Role("etl", 0, "root")) == ("role etl", [])
    assert audit_of("drop_role", "etl") == ("role etl", [])
    given = {"role": "etl", "grantee": "group:ops", "grant_option": True}
    assert audit_of("grant_role", "etl", "ops", PrincipalType.GROUP, "root", PrincipalType.USER, True) == (
        "role etl",
        [given],
    )
    assert audit_of("revoke_role", "etl", "ann", PrincipalType.USER)[1] == [{"role": "etl", "grantee": "user:ann"}]
    request = GrantRevokeRoleRequest(GrantRevokeType.REVOKE, "etl", "ops", PrincipalType.GROUP, grantOption=True)
    assert audit_of("grant_revoke_role", request) == ("role etl", [given | {"action": "revoke"}])


def test_locks_renames_exchanges_and_jobs() -> None:
    components = [
        LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, "shop", "orders"),
        LockComponent(LockType.SHARED_READ, LockLevel.DB, "hr"),
    ]
    assert audit_of("lock", LockRequest(components, 1, "ann", "host"))[0] == "shop.orders, hr"
    assert audit_of("alter_table", "shop", "orders", builders.table("hr", "sales"))[0] == "shop.orders, hr.sales"
    assert audit_of("exchange_partition", {}, "shop", "a", "hr", "b")[0] == "shop.a, hr.b"
    assert audit_of("drop_partition_by_name", "shop", "orders", "dt=1", True)[0] == "shop.orders.dt=1"
    assert audit_of("lake_cancel_job", 7) == ("", [{"job": 7}])
    assert audit_of("lake_refresh_hudi", "/lake/orders", None)[1] == [{"location": "/lake/orders"}]


def test_imports() -> None:
    request = lake.ImportRequest(
        tables=[builders.table("shop", "orders")],
        partitions=[builders.partition("shop", "orders", value) for value in "12"],
        grants=[privilege("ann", PrincipalType.USER, option=False)],
    )
    assert audit_of("lake_import", request)[1] == [
        {"kind": "table", "object": "shop.orders"},
        {"kind": "partitions", "object": "shop.orders"},
        {"privilege": "SELECT", "object": "shop.orders.2026.price", "grantee": "user:ann"},
    ]


def test_many_objects_and_strange_ones() -> None:
    partitions = [builders.partition("shop", f"t{number}", "1") for number in range(150)]
    found = audit_of("add_partitions", partitions)[0]
    assert found.startswith("shop.t0.") or found.startswith("shop.t0, ")
    assert found.endswith(", shop.t99, 50 more")
    assert audit_of("get_table", None, "orders")[0] == "orders", "no database: Hive refuses that"
    assert audit_of("grant_privileges", PrivilegeBag([HiveObjectPrivilege()]))[0] == ""
    reference = lake.TableReference(database="Shop", table="Orders", catalog="spark")
    assert audit_of("lake_get_watermark", reference)[0] == "spark.shop.orders"


@pytest.mark.long
def test_logins_tokens_and_grants_in_a_servers_log(tmp_path: Path) -> None:
    users, path = tmp_path / "users", tmp_path / "audit.log"
    for name in ("root", "ann"):
        password_file.add(users, name, f"pw-{name}", (), allow_weak=True)
    options = (
        *("--authentication", "plain,token", "--password-file", str(users), "--credentials-without-tls"),
        *("--authorization", "sql-standard", "--admins", "root", "--audit-log", str(path), "--workers", "1"),
    )
    with MetastoreServer(tmp_path / "data", *options) as server:

        def client(login: Login) -> ThriftClient:
            return ThriftClient(server.host, server.port, login=login)

        with pytest.raises(LoginRefused, match="wrong user or password"):
            client(Login(user="ann", password="guess"))
        with client(Login(user="root", password="pw-root")) as root:
            root.create_database(builders.database("shop"))
            root.create_table(builders.table("shop", "orders"))
            bag = PrivilegeBag([privilege("ann", PrincipalType.USER, option=False)])
            bag.privileges[0].hiveObject = HiveObjectRef(HiveObjectType.TABLE, "shop", "orders")  # type: ignore[index]
            root.grant_privileges(bag)
        with client(Login(user="ann", password="pw-ann")) as ann:
            token = ann.get_delegation_token("ann", "yarn")
        with client(Login(token=token)) as job:
            job.cancel_delegation_token(token)
        found = [json.loads(line) for line in path.read_text().splitlines()]
        for secret in ("pw-ann", "guess", token):
            assert secret not in path.read_text()

    def of(method: str) -> list[dict[str, Any]]:
        return [each for each in found if each["method"] == method]

    logins = [(each["user"], each["mechanism"], each["outcome"], each["allowed"]) for each in of("login")]
    assert logins == [
        ("ann", "plain", "denied", False),
        ("root", "plain", "ok", True),
        ("ann", "plain", "ok", True),
        ("ann", "token", "ok", True),
    ]
    assert of("login")[0]["reason"] == "wrong password"
    assert all(each["peer"].startswith("127.0.0.1:") for each in of("login"))
    [granted] = of("grant_privileges")
    assert granted["details"] == [
        {
            "privilege": "SELECT",
            "object": "shop.orders",
            "grantee": "user:ann",
            "grant_option": False,
            "grantor": "root",
        }
    ]
    [issued] = of("get_delegation_token")
    [item] = issued["details"]
    assert (item["owner"], item["renewer"]) == ("ann", "yarn")
    assert of("login")[-1]["details"] == [{"token": item["token"]}], "which token was used"
    assert of("cancel_delegation_token")[0]["details"] == [item]
