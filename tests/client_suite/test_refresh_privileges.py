"""Privileges replaced by what an authorizer says. Expectations are those of Hive 4's source."""

from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    CreateTableRequest,
    GrantRevokePrivilegeRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from tests.support.builders import table
from tests.support.expect import UNDECLARED, refused

pytestmark = pytest.mark.hive4

TABLE, COLUMN = HiveObjectType.TABLE, HiveObjectType.COLUMN


def grant(ref: HiveObjectRef, user: str, privilege: str, authorizer: str = "ranger") -> HiveObjectPrivilege:
    info = PrivilegeGrantInfo(privilege, 0, "admin", PrincipalType.USER, False)
    return HiveObjectPrivilege(ref, user, PrincipalType.USER, info, authorizer)


@pytest.fixture
def ref(client: ThriftClient, db: str) -> HiveObjectRef:
    client.create_table(table(db))
    return HiveObjectRef(TABLE, db, "t")


def refresh(client: ThriftClient, ref: HiveObjectRef, *grants: HiveObjectPrivilege, authorizer: Any = "ranger") -> None:
    request = GrantRevokePrivilegeRequest(privileges=PrivilegeBag(list(grants)))
    assert client.refresh_privileges(ref, authorizer, request).success is True


def present(client: ThriftClient, ref: HiveObjectRef) -> set[tuple[str, str, str]]:
    """Column (or ""), user and privilege of every grant on an object."""
    found = client.list_privileges(None, None, ref)
    return {(each.hiveObject.columnName or "", each.principalName, each.grantInfo.privilege) for each in found}


def test_what_is_not_said_any_more_goes(client: ThriftClient, ref: HiveObjectRef) -> None:
    refresh(client, ref, grant(ref, "alice", "SELECT,INSERT"), grant(ref, "bob", "SELECT"))
    assert present(client, ref) == {("", "alice", "SELECT"), ("", "alice", "INSERT"), ("", "bob", "SELECT")}
    before = {each.principalName: each.grantInfo for each in client.list_privileges(None, None, ref)}
    refresh(client, ref, grant(ref, "bob", "SELECT"), grant(ref, "carol", "DROP"))
    assert present(client, ref) == {("", "bob", "SELECT"), ("", "carol", "DROP")}
    after = {each.principalName: each.grantInfo for each in client.list_privileges(None, None, ref)}
    assert after["bob"].replace(createTime=0) == before["bob"].replace(createTime=0)


def test_what_others_granted_stays(client: ThriftClient, ref: HiveObjectRef) -> None:
    client.grant_privileges(PrivilegeBag([grant(ref, "alice", "SELECT", "SQL")]))
    refresh(client, ref, grant(ref, "bob", "SELECT"))
    refresh(client, ref)
    assert present(client, ref) == {("", "alice", "SELECT")}
    refresh(client, ref, authorizer=None)
    assert present(client, ref) == set()


def test_columns(client: ThriftClient, ref: HiveObjectRef, db: str) -> None:
    first, second = HiveObjectRef(COLUMN, db, "t", None, "id"), HiveObjectRef(COLUMN, db, "t", None, "name")
    refresh(client, ref, grant(ref, "alice", "SELECT"))
    whole = HiveObjectRef(COLUMN, db, "t")
    refresh(client, whole, grant(first, "alice", "SELECT"), grant(second, "alice", "SELECT"))
    refresh(client, whole, grant(second, "alice", "SELECT"), grant(second, "bob", "SELECT"))
    assert present(client, first) == set()
    assert present(client, second) == {("name", "alice", "SELECT"), ("name", "bob", "SELECT")}
    assert present(client, ref) == {("", "alice", "SELECT")}


def test_a_database(client: ThriftClient, db: str) -> None:
    ref = HiveObjectRef(HiveObjectType.DATABASE, db)
    refresh(client, ref, grant(ref, "alice", "ALL"))
    refresh(client, ref, grant(ref, "bob", "ALL"))
    assert present(client, ref) == {("", "bob", "ALL")}


def test_other_objects(client: ThriftClient, db: str) -> None:
    with refused(MetaException, message="Unexpected object type"):
        refresh(client, HiveObjectRef(HiveObjectType.GLOBAL))
    with refused(MetaException, UNDECLARED):
        refresh(client, HiveObjectRef(COLUMN, db, "t", None, "id"))


@pytest.mark.hive4(differs="has success without effect")
def test_a_missing_object(client: ThriftClient, db: str) -> None:
    with refused(MetaException):
        refresh(client, HiveObjectRef(TABLE, db, "no_such"))


@pytest.mark.hive4(differs="makes an external table of it")
def test_a_dry_run_translates_nothing(client: ThriftClient, db: str) -> None:
    new = table(db, "T", parameters={"a": "b"})
    assert client.translate_table_dryrun(CreateTableRequest(new)) == new.replace(catName="hive")
    assert client.get_all_tables(db) == []
