"""Tables whose partitions have privileges of their own: the parameter PARTITION_LEVEL_PRIVILEGE."""

from collections.abc import Callable
from typing import Any

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    Partition,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from tests.support.builders import partition, table

READS: dict[str, Callable[[ThriftClient, str], Partition]] = {
    "get_partition_with_auth": lambda c, db: c.get_partition_with_auth(db, "t", ["1"], "alice", ["g"]),
    "get_partitions_with_auth": lambda c, db: c.get_partitions_with_auth(db, "t", -1, "alice", ["g"])[0],
    "get_partitions_ps_with_auth": lambda c, db: c.get_partitions_ps_with_auth(db, "t", ["1"], -1, "alice", ["g"])[0],
}


def give(client: ThriftClient, ref: HiveObjectRef, user: str, privilege: str) -> None:
    info = PrivilegeGrantInfo(privilege, 0, "admin", PrincipalType.USER, False)
    client.grant_privileges(PrivilegeBag([HiveObjectPrivilege(ref, user, PrincipalType.USER, info)]))


def make(client: ThriftClient, db: str, *, own: str | None = "true") -> None:
    """A table on which alice may select, and bob insert, with a partition."""
    parameters = {} if own is None else {"PARTITION_LEVEL_PRIVILEGE": own}
    client.create_table(table(db, keys=("k",), parameters=parameters))
    ref = HiveObjectRef(HiveObjectType.TABLE, db, "t", [])
    give(client, ref, "alice", "SELECT")
    give(client, ref, "bob", "INSERT")
    client.add_partition(partition(db, "t", "1"))


def as_dicts(privileges: PrincipalPrivilegeSet) -> dict[str, Any]:
    """Who may do what; groups and roles without anything left out."""
    by_kind = (privileges.userPrivileges, privileges.groupPrivileges, privileges.rolePrivileges)
    return {name: [i.privilege for i in infos] for kind in by_kind for name, infos in (kind or {}).items() if infos}


@pytest.mark.parametrize("read", READS)
def test_a_new_partition_has_those_of_its_table(client: ThriftClient, db: str, read: str) -> None:
    make(client, db)
    found = READS[read](client, db)
    assert as_dicts(found.privileges) == {"alice": ["SELECT"]}
    assert found.privileges.groupPrivileges == {"g": []}
    assert found.privileges.rolePrivileges == {"public": []}


@pytest.mark.parametrize("read", READS)
def test_other_tables_tell_nothing(client: ThriftClient, db: str, read: str) -> None:
    make(client, db, own=None)
    assert READS[read](client, db).privileges is None


def test_they_are_the_partitions_own(client: ThriftClient, db: str) -> None:
    make(client, db, own="TRUE")
    ref = HiveObjectRef(HiveObjectType.PARTITION, db, "t", ["1"])
    give(client, ref, "alice", "DROP")
    give(client, HiveObjectRef(HiveObjectType.TABLE, db, "t", []), "alice", "ALTER")
    found = client.get_partition_with_auth(db, "t", ["1"], "alice", [])
    assert sorted(as_dicts(found.privileges)["alice"]) == ["DROP", "SELECT"]
    listed = client.list_privileges("bob", PrincipalType.USER, ref)
    assert [each.grantInfo.privilege for each in listed] == ["INSERT"]


def test_many_partitions(client: ThriftClient, db: str) -> None:
    make(client, db)
    client.add_partitions([partition(db, "t", value) for value in ("2", "3")])
    give(client, HiveObjectRef(HiveObjectType.PARTITION, db, "t", ["2"]), "alice", "DROP")
    found = client.get_partitions_with_auth(db, "t", -1, "alice", [])
    assert [sorted(as_dicts(each.privileges)["alice"]) for each in found] == [
        ["SELECT"],
        ["DROP", "SELECT"],
        ["SELECT"],
    ]


def test_who_asks_by_a_spec_says_user_and_groups(client: ThriftClient, db: str) -> None:
    make(client, db)
    (found,) = client.get_partitions_ps_with_auth(db, "t", ["1"], -1, "alice", None)
    assert found.privileges is None
