"""Privileges and roles: kept and returned as Hive 2.3 does (measured), with an error where that has an accident."""

import time
from typing import Any

import pytest

from lake.protocol.hive import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    PrincipalPrivilegeSet,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
    RolePrincipalGrant,
)
from metastore.services.access.privileges import PrivilegeService, keep_creators
from metastore.services.access.roles import RoleService
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from metastore.store.access.privileges import Principal
from metastore.store.engine.names import TableName
from metastore.store.table import tables
from tests.support import builders
from tests.support.expect import refused

USER, ROLE, GROUP = PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP
GLOBAL = HiveObjectRef(HiveObjectType.GLOBAL)


@pytest.fixture(scope="module")
def privileges(metastore: Metastore) -> PrivilegeService:
    return PrivilegeService(metastore.database)


@pytest.fixture(scope="module")
def roles(metastore: Metastore) -> RoleService:
    service = RoleService(metastore.database)
    service.bootstrap()
    service.bootstrap()
    return service


@pytest.fixture
def role(roles: RoleService, db: str) -> str:
    """A role of this test's own."""
    roles.create(Role(f"role_{db}", ownerName="o"))
    return f"role_{db}"


def grant_role(roles: RoleService, role: str, name: str, kind: PrincipalType = USER, *, option: bool = False) -> None:
    roles.grant(role, Principal(kind, name), grantor="me", grantor_type=USER, grant_option=option)


class TestRoles:
    def test_those_that_are_always_there(self, roles: RoleService, privileges: PrivilegeService) -> None:
        assert [name for name in roles.names() if not name.startswith("role_")] == ["admin", "public"]
        found = privileges.find(Scope.READY, Principal(ROLE, "admin"), GLOBAL)
        assert [(g.grantInfo and g.grantInfo.privilege, g.grantInfo and g.grantInfo.grantOption) for g in found] == [
            ("All", True)
        ]
        for name in ("admin", "public"):
            with refused(MetaException, message="public,admin roles can't be dropped"):
                roles.drop(name)
            with refused(MetaException):
                roles.create(Role(name))

    def test_names_keep_their_case(self, roles: RoleService, role: str) -> None:
        roles.create(Role(role.upper()))
        assert {role, role.upper()} <= set(roles.names())
        with refused(MetaException, message=f"Role {role} already exists"):
            roles.create(Role(role))
        with refused(MetaException):
            roles.create(Role())

    def test_members(self, roles: RoleService, role: str) -> None:
        before = int(time.time())
        grant_role(roles, role, f"joe_{role}", option=True)
        [member] = roles.members(role)
        assert before <= (member.grantTime or 0) <= time.time()
        assert member == RolePrincipalGrant(role, f"joe_{role}", USER, True, member.grantTime, "me", USER)
        joe = Principal(USER, f"joe_{role}")
        public = RolePrincipalGrant("public", joe.name, USER, False, 0)
        assert roles.grants_of(joe) == [member, public]
        own, implied = roles.of_principal(joe)
        assert (own.roleName, own.ownerName, implied) == (role, "o", Role("public", 0, "public"))
        assert roles.of_principal(Principal(GROUP, joe.name)) == []
        assert roles.members("none") == roles.members("public") == []

    def test_what_can_not_be_granted(self, roles: RoleService, role: str) -> None:
        grant_role(roles, role, "ann")
        for message, name, principal in (
            ("Principal ann already has the role", role, Principal(USER, "ann")),
            ("none role can not be found", "none", Principal(USER, "ann")),
            ("No user can be added to public", "public", Principal(USER, "ann")),
            ("Role none does not exist", role, Principal(ROLE, "none")),
            ("no cycles allowed", role, Principal(ROLE, role)),
        ):
            with refused(MetaException, message=message):
                grant_role(roles, name, principal.name, PrincipalType(principal.type))

    def test_no_circles(self, roles: RoleService, role: str) -> None:
        for name in ("b", "c"):
            roles.create(Role(f"{role}_{name}"))
        grant_role(roles, role, f"{role}_b", ROLE)
        grant_role(roles, f"{role}_b", f"{role}_c", ROLE)
        with refused(MetaException, message="no cycles allowed"):
            grant_role(roles, f"{role}_c", role, ROLE)

    def test_revoke(self, roles: RoleService, role: str) -> None:
        grant_role(roles, role, "ann", option=True)
        ann = Principal(USER, "ann")
        roles.revoke(role, ann, only_grant_option=True)
        assert [m.grantOption for m in roles.members(role)] == [False]
        with refused(MetaException, message="User ann does not have grant option with role"):
            roles.revoke(role, ann, only_grant_option=True)
        roles.revoke(role, ann)
        roles.revoke(role, ann)
        assert roles.members(role) == []
        with refused(MetaException):
            roles.revoke("none", ann)
        with refused(MetaException, message="public role can't be revoked"):
            roles.revoke("public", ann)

    def test_a_dropped_role_leaves_nothing(self, roles: RoleService, privileges: PrivilegeService, role: str) -> None:
        roles.create(Role(f"{role}_other"))
        grant_role(roles, f"{role}_other", role, ROLE)
        grant_role(roles, role, "ann")
        given(privileges, GLOBAL, role, "ALL", ROLE)
        roles.drop(role)
        roles.drop(role)
        assert roles.members(f"{role}_other") == []
        roles.create(Role(role))
        assert roles.members(role) == privileges.find(Scope.READY, Principal(ROLE, role), GLOBAL) == []


def given(
    service: PrivilegeService,
    ref: HiveObjectRef,
    name: str,
    privilege: str,
    kind: PrincipalType = USER,
    *,
    grantor: str = "gr",
    option: bool = False,
) -> None:
    service.grant(bag(ref, name, privilege, kind, grantor=grantor, option=option))


def bag(
    ref: HiveObjectRef,
    name: str,
    privilege: str,
    kind: PrincipalType = USER,
    *,
    grantor: str = "gr",
    option: bool = False,
) -> PrivilegeBag:
    info = PrivilegeGrantInfo(privilege, 3, grantor, USER, option)
    return PrivilegeBag([HiveObjectPrivilege(ref, name, kind, info)])


def as_dicts(found: PrincipalPrivilegeSet) -> dict[str, Any]:
    """Who has which privileges, and what is not set at all."""
    return {
        name: None if by_name is None else {n: [i.privilege for i in infos] for n, infos in by_name.items()}
        for name, by_name in (
            ("users", found.userPrivileges),
            ("groups", found.groupPrivileges),
            ("roles", found.rolePrivileges),
        )
    }


class Objects:
    """A table and a partitioned table in a database of its own, and references to what is there."""

    def __init__(self, metastore: Metastore, db: str) -> None:
        self.db = db
        metastore.tables.create(builders.table(db, "t"), {})
        metastore.tables.create(builders.table(db, "p", keys=("k", "l")), {})
        metastore.partitions.add(db, "p", [builders.partition(db, "p", "1", "a b")], {})

    def ref(self, kind: HiveObjectType, table: str | None = None, **fields: Any) -> HiveObjectRef:
        return HiveObjectRef(objectType=kind, dbName=self.db, objectName=table, **fields)

    @property
    def database(self) -> HiveObjectRef:
        return self.ref(HiveObjectType.DATABASE)

    @property
    def table(self) -> HiveObjectRef:
        return self.ref(HiveObjectType.TABLE, "t")

    @property
    def partition(self) -> HiveObjectRef:
        return self.ref(HiveObjectType.PARTITION, "p", partValues=["1", "a b"])

    @property
    def column(self) -> HiveObjectRef:
        return self.ref(HiveObjectType.COLUMN, "t", columnName="id")

    @property
    def partitions_column(self) -> HiveObjectRef:
        return self.ref(HiveObjectType.COLUMN, "p", partValues=["1", "a b"], columnName="id")

    @property
    def all(self) -> list[HiveObjectRef]:
        return [self.database, self.table, self.partition, self.column, self.partitions_column]


@pytest.fixture
def objects(metastore: Metastore, db: str) -> Objects:
    return Objects(metastore, db)


class TestPrivileges:
    def test_of_every_object(self, privileges: PrivilegeService, roles: RoleService, objects: Objects) -> None:
        joe = f"joe_{objects.db}"
        for number, ref in enumerate(objects.all):
            given(privileges, ref, joe, f"P{number}")
        for number, ref in enumerate(objects.all):
            found = as_dicts(privileges.of_object(Scope.READY, ref, joe, ["g"]))
            assert found == {"users": {joe: [f"P{number}"]}, "groups": {"g": []}, "roles": {"public": []}}
            [listed] = privileges.find(Scope.READY, Principal(USER, joe), ref)
            assert listed.hiveObject == ref.replace(catName="hive")
        every = privileges.find(Scope.READY, Principal(USER, joe), HiveObjectRef())
        assert [g.grantInfo and g.grantInfo.privilege for g in every] == ["P0", "P1", "P2", "P3", "P4"]
        assert len(privileges.find(Scope.READY, Principal(USER, joe), HiveObjectRef(HiveObjectType.COLUMN))) == 2

    def test_of_principals_that_are_asked_for(
        self, privileges: PrivilegeService, roles: RoleService, role: str, objects: Objects
    ) -> None:
        roles.create(Role(f"{role}_2"))
        grant_role(roles, role, f"g_{role}", GROUP)
        grant_role(roles, f"{role}_2", role, ROLE)
        given(privileges, objects.table, f"{role}_2", "DELETE", ROLE)
        given(privileges, objects.table, f"g_{role}", "SELECT", GROUP)
        given(privileges, objects.table, "joe", "INSERT,UPDATE")
        by_group = {role: [], f"{role}_2": ["DELETE"]}
        for user, groups, expected in (
            ("joe", None, {"users": {"joe": ["INSERT", "UPDATE"]}, "groups": None, "roles": {"public": []}}),
            ("joe", [], {"users": {"joe": ["INSERT", "UPDATE"]}, "groups": None, "roles": {"public": []}}),
            (None, [f"g_{role}"], {"users": None, "groups": {f"g_{role}": ["SELECT"]}, "roles": by_group}),
            (None, None, {"users": None, "groups": None, "roles": None}),
            (
                f"ann_{role}",
                ["h", f"g_{role}"],
                {
                    "users": {f"ann_{role}": []},
                    "groups": {"h": [], f"g_{role}": ["SELECT"]},
                    "roles": by_group | {"public": []},
                },
            ),
        ):
            assert as_dicts(privileges.of_object(Scope.READY, objects.table, user, groups)) == expected

    def test_global_ones_are_returned_only_where_there_are_some(
        self, privileges: PrivilegeService, roles: RoleService, db: str
    ) -> None:
        nothing = {"users": None, "groups": None, "roles": None}
        assert as_dicts(privileges.of_object(Scope.READY, GLOBAL, f"joe_{db}", None)) == nothing
        assert as_dicts(privileges.of_object(Scope.READY, GLOBAL, f"joe_{db}", ["g"])) == nothing | {"groups": {}}
        given(privileges, GLOBAL, f"joe_{db}", "ALL")
        assert as_dicts(privileges.of_object(Scope.READY, GLOBAL, f"joe_{db}", None)) == nothing | {
            "users": {f"joe_{db}": ["ALL"]}
        }

    def test_what_is_not_there_has_none(
        self, privileges: PrivilegeService, roles: RoleService, objects: Objects
    ) -> None:
        for ref in (
            objects.ref(HiveObjectType.TABLE, "none"),
            HiveObjectRef(HiveObjectType.DATABASE, dbName="nowhere"),
            objects.ref(HiveObjectType.PARTITION, "p", partValues=["1", "b"]),
            objects.ref(HiveObjectType.PARTITION, "p"),
        ):
            assert as_dicts(privileges.of_object(Scope.READY, ref, "joe", None))["users"] == {"joe": []}
            if ref.objectType == HiveObjectType.PARTITION and not ref.partValues:
                with refused(MetaException, message="values are missing"):
                    privileges.find(Scope.READY, None, ref)
            else:
                assert privileges.find(Scope.READY, None, ref) == []
            with refused(MetaException, message="there is no"):
                given(privileges, ref, "joe", "SELECT")
            with refused(MetaException):
                privileges.revoke(bag(ref, "joe", "SELECT"))
        with refused(MetaException, message=f"{objects.db}.none table not found"):
            privileges.of_object(
                Scope.READY, objects.ref(HiveObjectType.PARTITION, "none", partValues=["1"]), "joe", None
            )
        with refused(MetaException):
            privileges.of_object(Scope.READY, HiveObjectRef(HiveObjectType.DATACONNECTOR, "x"), "joe", None)

    def test_all_of_a_grant_or_nothing(
        self, privileges: PrivilegeService, roles: RoleService, objects: Objects
    ) -> None:
        both = PrivilegeBag(
            [
                *(bag(objects.table, "joe", "SELECT").privileges or ()),
                *(bag(objects.table, "none", "SELECT", ROLE).privileges or ()),
            ]
        )
        with refused(MetaException, message="Role none does not exist"):
            privileges.grant(both)
        assert privileges.find(Scope.READY, None, objects.table) == []
        privileges.grant(PrivilegeBag())

    def test_granted_twice(self, privileges: PrivilegeService, roles: RoleService, objects: Objects) -> None:
        for ref in objects.all:
            given(privileges, ref, "joe", "SELECT")
            with refused(MetaException, message="SELECT is already granted on "):
                given(privileges, ref, "joe", "SELECT", grantor="GR")
            given(privileges, ref, "joe", "SELECT", grantor="another")
            assert len(privileges.find(Scope.READY, None, ref)) == 2

    def test_revoke(self, privileges: PrivilegeService, roles: RoleService, objects: Objects) -> None:
        for ref in objects.all:
            given(privileges, ref, "joe", "SELECT", grantor="a")
            given(privileges, ref, "joe", "SELECT", grantor="b")
            privileges.revoke(bag(ref, "joe", "select"))
            assert len(privileges.find(Scope.READY, None, ref)) == 1
            privileges.revoke(bag(ref, "joe", "SELECT"))
            with refused(MetaException, message="No grant (SELECT) found"):
                privileges.revoke(bag(ref, "joe", "SELECT"))
            privileges.revoke(bag(ref, "joe", " "))

    def test_revoke_the_grant_option(self, privileges: PrivilegeService, roles: RoleService, objects: Objects) -> None:
        given(privileges, objects.table, "joe", "SELECT", option=True)
        wanted = bag(objects.table, "joe", "SELECT")
        privileges.revoke(wanted, only_grant_option=True)
        [left] = privileges.find(Scope.READY, None, objects.table)
        assert left.grantInfo is not None
        assert left.grantInfo.grantOption is False
        with refused(MetaException, message="User joe does not have grant option with privilege SELECT"):
            privileges.revoke(wanted, only_grant_option=True)

    def test_they_go_with_their_object(
        self, metastore: Metastore, privileges: PrivilegeService, roles: RoleService, objects: Objects
    ) -> None:
        joe = Principal(USER, f"joe_{objects.db}")
        for ref in objects.all:
            given(privileges, ref, joe.name, "SELECT")
        metastore.partitions.drop(objects.db, "p", values=["1", "a b"], delete_data=False)
        metastore.partitions.add(objects.db, "p", [builders.partition(objects.db, "p", "1", "a b")], {})
        assert (
            privileges.find(Scope.READY, None, objects.partition)
            == privileges.find(Scope.READY, None, objects.partitions_column)
            == []
        )
        metastore.tables.drop(objects.db, "t", delete_data=False)
        kinds = [g.hiveObject and g.hiveObject.objectType for g in privileges.find(Scope.READY, joe, HiveObjectRef())]
        assert kinds == [HiveObjectType.DATABASE]
        metastore.databases.drop(objects.db, delete_data=False, cascade=True)
        assert privileges.find(Scope.READY, joe, HiveObjectRef()) == []

    def test_they_are_not_a_renamed_tables_business(
        self, metastore: Metastore, privileges: PrivilegeService, roles: RoleService, objects: Objects
    ) -> None:
        given(privileges, objects.table, "joe", "SELECT")
        table = metastore.tables.get(objects.db, "t")
        metastore.tables.alter(objects.db, "t", table.replace(tableName="u"), {})
        assert len(privileges.find(Scope.READY, None, objects.ref(HiveObjectType.TABLE, "U"))) == 1

    def test_what_a_creator_says(
        self, metastore: Metastore, privileges: PrivilegeService, roles: RoleService, objects: Objects
    ) -> None:
        infos = [PrivilegeGrantInfo(p, 9, "gr", USER, True) for p in ("INSERT", "SELECT")]
        with metastore.database.write() as tx:
            row = tables.find(tx, TableName("hive", objects.db, "t"))
            assert row is not None
            keep_creators(tx, row.id, None)
            keep_creators(tx, row.id, PrincipalPrivilegeSet({"own": infos}, {"g": infos[:1]}, {"admin": infos[1:]}))
        found = as_dicts(privileges.of_object(Scope.READY, objects.table, "own", ["g"]))
        assert found == {
            "users": {"own": ["INSERT", "SELECT"]},
            "groups": {"g": ["INSERT"]},
            "roles": {"public": []},
        }
        [admin] = privileges.find(Scope.READY, Principal(ROLE, "admin"), objects.table)
        assert admin.grantInfo is not None
        assert admin.grantInfo == PrivilegeGrantInfo("SELECT", admin.grantInfo.createTime, "gr", USER, True)
        assert (admin.grantInfo.createTime or 0) > 9
