"""Generated calls on roles and privileges."""

from hypothesis import strategies as st

from lake.protocol.hive import (
    GetPrincipalsInRoleRequest,
    GetRoleGrantsForPrincipalRequest,
    GrantRevokePrivilegeRequest,
    GrantRevokeRoleRequest,
    GrantRevokeType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
)
from tests.parity.calls import Call, Script
from tests.parity.values import FLAGS, Strategy, call, mostly, struct
from tests.support.builders import database, partition, table

SETUP: Script = [
    Call("create_database", database("N_a", ownerName="N_alice")),
    Call("create_table", table("N_a", "t", owner="N_alice", keys=("k",))),
    Call("create_table", table("N_a", "g", keys=("k",), parameters={"PARTITION_LEVEL_PRIVILEGE": "TRUE"})),
    Call("add_partitions", [partition("N_a", "t", "1"), partition("N_a", "t", "2")]),
    Call("add_partition", partition("N_a", "g", "1")),
    Call("create_role", Role(roleName="N_r1", ownerName="boss")),
]

ROLES = mostly("N_r1", "N_r2", odd=("N_R1", "N_nosuch", "", "public", "admin", "N_r3"))
USERS = mostly("N_alice", "N_bob", odd=("N_r1", "N_r2", "N_Alice"))
"""Names of the script's own: what is granted globally stays when it has ended."""

KINDS = mostly(PrincipalType.USER, PrincipalType.ROLE, odd=(PrincipalType.GROUP,))
PRIVILEGES = mostly("SELECT", "INSERT", odd=("select", "ALL", "SELECT,INSERT"))
GRANTORS = mostly("N_alice", "boss", odd=(None, ""))
CHANGES = st.sampled_from([GrantRevokeType.GRANT, GrantRevokeType.REVOKE])


@st.composite
def objects(draw: st.DrawFn) -> HiveObjectRef:
    kind = draw(st.sampled_from([k for k in HiveObjectType if k != HiveObjectType.DATACONNECTOR]))
    db = draw(mostly("N_a", odd=("N_A", "N_nosuch", None)))
    name = draw(mostly("t", "g", odd=("T", "nosuch", None)))
    values = draw(mostly(["1"], odd=(["2"], ["9"], [], None)))
    if kind == HiveObjectType.GLOBAL:
        return HiveObjectRef(objectType=kind)
    if kind == HiveObjectType.DATABASE:
        return HiveObjectRef(objectType=kind, dbName=db)
    if kind == HiveObjectType.TABLE:
        return HiveObjectRef(objectType=kind, dbName=db, objectName=name)
    if kind == HiveObjectType.PARTITION:
        return HiveObjectRef(objectType=kind, dbName=db, objectName=name, partValues=values)
    column = draw(mostly("id", "name", odd=("ID", "nosuch", None)))
    in_partition = draw(FLAGS)
    return HiveObjectRef(
        objectType=kind, dbName=db, objectName=name, partValues=values if in_partition else None, columnName=column
    )


def grants() -> Strategy:
    info = struct(
        PrivilegeGrantInfo,
        privilege=PRIVILEGES,
        createTime=st.sampled_from([0, 5, None]),
        grantor=GRANTORS,
        grantorType=KINDS,
        grantOption=st.sampled_from([None, True, False]),
    )
    return struct(HiveObjectPrivilege, hiveObject=objects(), principalName=USERS, principalType=KINDS, grantInfo=info)


def bags() -> Strategy:
    return struct(PrivilegeBag, privileges=st.lists(grants(), min_size=1, max_size=2))


def privilege_calls() -> Strategy:
    groups = st.sampled_from([None, [], ["N_g"]])
    return st.one_of(
        # Hive keeps a role without a name, which all later scripts would meet.
        call("create_role", struct(Role, roleName=ROLES.filter(bool), ownerName=GRANTORS)),
        call("drop_role", ROLES),
        call("get_role_names"),
        call("grant_role", ROLES, USERS, KINDS, GRANTORS, KINDS, FLAGS),
        call(
            "grant_role",
            mostly("N_r1"),
            mostly("N_alice", "N_bob"),
            st.just(PrincipalType.USER),
            GRANTORS,
            KINDS,
            FLAGS,
        ),
        call("revoke_role", ROLES, USERS, KINDS),
        call("list_roles", USERS, KINDS),
        call(
            "grant_revoke_role",
            struct(
                GrantRevokeRoleRequest,
                requestType=CHANGES,
                roleName=ROLES,
                principalName=USERS,
                principalType=KINDS,
                grantor=GRANTORS,
                grantorType=KINDS,
                grantOption=st.sampled_from([None, True, False]),
            ),
        ),
        call("get_principals_in_role", struct(GetPrincipalsInRoleRequest, roleName=ROLES)),
        call(
            "get_role_grants_for_principal",
            struct(GetRoleGrantsForPrincipalRequest, principal_name=USERS, principal_type=KINDS),
        ),
        call("grant_privileges", bags()),
        call("grant_privileges", bags()),
        call("grant_privileges", bags()),
        call("revoke_privileges", bags()),
        call(
            "grant_revoke_privileges",
            struct(
                GrantRevokePrivilegeRequest,
                requestType=CHANGES,
                privileges=bags(),
                revokeGrantOption=st.sampled_from([None, True, False]),
            ),
        ),
        call("get_privilege_set", objects(), USERS, groups),
        call("list_privileges", USERS, KINDS, objects()),
        call("list_privileges", USERS, KINDS, st.none()),
        call("list_privileges", st.none(), KINDS, objects()),
        call("get_partition_with_auth", st.just("N_a"), mostly("t", "g"), st.just(["1"]), USERS, groups),
        call("get_partitions_with_auth", st.just("N_a"), mostly("t", "g"), st.just(-1), USERS, groups),
        call("drop_partition", st.just("N_a"), mostly("t", "g"), st.just(["1"]), FLAGS),
    )


LAST_READS: Script = [
    *(
        Call("list_privileges", name, kind, HiveObjectRef())  # all that were granted
        for name in ("N_alice", "N_bob", "N_r1")
        for kind in (PrincipalType.USER, PrincipalType.ROLE)
    ),
    Call("get_principals_in_role", GetPrincipalsInRoleRequest(roleName="N_r1")),
]
