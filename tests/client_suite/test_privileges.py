"""Roles and privileges, as far as clients ask for them while they do other things."""

import time
from collections.abc import Iterator

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    GetRoleGrantsForPrincipalRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    NoSuchObjectException,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
)
from tests.support.builders import table
from tests.support.expect import UNDECLARED, refused

USER = PrincipalType.USER


def of_table(db: str, name: str = "t") -> HiveObjectRef:
    return HiveObjectRef(objectType=HiveObjectType.TABLE, dbName=db, objectName=name)


def grant(privilege: str = "SELECT") -> PrivilegeGrantInfo:
    return PrivilegeGrantInfo(privilege=privilege, createTime=0, grantor="boss", grantorType=USER, grantOption=False)


def bag(db: str, privilege: str = "SELECT") -> PrivilegeBag:
    granted = HiveObjectPrivilege(
        hiveObject=of_table(db), principalName="alice", principalType=USER, grantInfo=grant(privilege)
    )
    return PrivilegeBag(privileges=[granted])


@pytest.fixture
def role(client: ThriftClient, unused_name: str) -> Iterator[str]:
    name = f"role_{unused_name}"
    assert client.create_role(Role(roleName=name, createTime=5, ownerName="boss")) is True
    yield name
    client.drop_role(name)


class TestRoles:
    def test_two_are_always_there(self, client: ThriftClient) -> None:
        assert {"admin", "public"} <= set(client.get_role_names())

    def test_created_and_dropped(self, client: ThriftClient, unused_name: str) -> None:
        name = f"role_{unused_name}"
        client.create_role(Role(roleName=name, ownerName="boss"))
        assert name in client.get_role_names()
        assert client.drop_role(name) is True
        assert name not in client.get_role_names()

    def test_exists(self, client: ThriftClient, role: str) -> None:
        with refused(MetaException, UNDECLARED):
            client.create_role(Role(roleName=role, ownerName="boss"))

    def test_everybody_has_the_public_role(self, client: ThriftClient) -> None:
        assert [r.roleName for r in client.list_roles("nobody", USER)] == ["public"]

    def test_granted_and_revoked(self, client: ThriftClient, role: str) -> None:
        assert client.grant_role(role, "alice", USER, "boss", USER, True) is True
        assert {r.roleName for r in client.list_roles("alice", USER)} == {role, "public"}
        request = GetRoleGrantsForPrincipalRequest(principal_name="alice", principal_type=USER)
        grants = {g.roleName: g for g in client.get_role_grants_for_principal(request).principalGrants}
        assert grants.keys() == {role, "public"}
        assert (grants[role].grantOption, grants[role].grantorName) == (True, "boss")
        assert client.revoke_role(role, "alice", USER) is True
        assert [r.roleName for r in client.list_roles("alice", USER)] == ["public"]

    def test_an_unknown_role_cannot_be_granted(self, client: ThriftClient) -> None:
        with refused(MetaException, NoSuchObjectException, UNDECLARED):
            client.grant_role("no_such", "alice", USER, "boss", USER, False)


class TestPrivileges:
    @pytest.fixture(autouse=True)
    def created(self, client: ThriftClient, db: str) -> None:
        client.create_table(table(db))

    def test_nobody_has_any_at_first(self, client: ThriftClient, db: str) -> None:
        assert client.list_privileges("alice", USER, of_table(db)) == []
        assert client.get_privilege_set(of_table(db), "alice", ["staff"]) == PrincipalPrivilegeSet(
            userPrivileges={"alice": []}, groupPrivileges={"staff": []}, rolePrivileges={"public": []}
        )

    def test_granted(self, client: ThriftClient, db: str) -> None:
        assert client.grant_privileges(bag(db)) is True
        (listed,) = client.list_privileges("alice", USER, of_table(db))
        assert (listed.principalName, listed.principalType) == ("alice", USER)
        assert (listed.hiveObject.dbName, listed.hiveObject.objectName) == (db, "t")
        assert (listed.grantInfo.privilege, listed.grantInfo.grantor) == ("SELECT", "boss")
        assert abs(time.time() - listed.grantInfo.createTime) < 120
        found = client.get_privilege_set(of_table(db), "alice", ["staff"]).userPrivileges
        assert [g.privilege for g in found["alice"]] == ["SELECT"]

    def test_revoked(self, client: ThriftClient, db: str) -> None:
        client.grant_privileges(bag(db))
        assert client.revoke_privileges(bag(db)) is True
        assert client.list_privileges("alice", USER, of_table(db)) == []

    def test_only_what_was_granted_can_be_revoked(self, client: ThriftClient, db: str) -> None:
        with refused(MetaException, UNDECLARED):
            client.revoke_privileges(bag(db, "INSERT"))

    def test_a_new_table_brings_its_own(self, client: ThriftClient, db: str) -> None:
        own = PrincipalPrivilegeSet(
            userPrivileges={"alice": [grant("INSERT"), grant("SELECT")]}, groupPrivileges={}, rolePrivileges={}
        )
        client.create_table(table(db, "u", owner="alice", privileges=own))
        listed = client.list_privileges("alice", USER, of_table(db, "u"))
        assert sorted(each.grantInfo.privilege for each in listed) == ["INSERT", "SELECT"]

    def test_a_dropped_table_takes_them_along(self, client: ThriftClient, db: str) -> None:
        client.grant_privileges(bag(db))
        client.drop_table(db, "t", True)
        client.create_table(table(db))
        assert client.list_privileges("alice", USER, of_table(db)) == []

    def test_of_a_missing_table(self, client: ThriftClient, db: str) -> None:
        found = client.get_privilege_set(of_table(db, "no_such"), "alice", ["staff"])
        assert found.userPrivileges == {"alice": []}
