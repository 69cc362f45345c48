"""What grants, roles and owners allow, over the wire."""

import itertools
from collections.abc import Iterator

import pytest
from thrift.Thrift import TApplicationException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AbortTxnRequest,
    ForeignKeysRequest,
    GrantRevokePrivilegeRequest,
    GrantRevokeType,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    NoSuchObjectException,
    OpenTxnRequest,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
)
from tests.rights.conftest import as_user
from tests.rights.world import HIDDEN_TABLE, OPEN, OPEN_TABLE, READER, World, grant, revoke
from tests.support import builders
from tests.support.expect import refused
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)
ROLE, GROUP = PrincipalType.ROLE, PrincipalType.GROUP


@pytest.fixture(scope="module")
def root(world: World) -> Iterator[ThriftClient]:
    with as_user(world.server, "root") as client:
        yield client


@pytest.fixture
def db(root: ThriftClient) -> str:
    """A database with a table `t`, and a user `u_<name>` who has no rights yet."""
    name = f"db{next(NUMBERS)}"
    root.create_database(builders.database(name, ownerName="somebody"))
    root.create_table(builders.table(name, keys=("dt",), owner="somebody"))
    for value in ("1", "2"):
        root.add_partition(builders.partition(name, "t", value))
    return name


@pytest.fixture
def user(guarded: MetastoreServer, db: str) -> Iterator[ThriftClient]:
    with as_user(guarded, f"u_{db}") as client:
        yield client


def sees(client: ThriftClient, db: str) -> bool:
    """Whether a table is visible, in each way to look for it."""
    try:
        found = client.get_table(db, "t").tableName == "t"
    except NoSuchObjectException:
        found = False
    assert client.get_all_tables(db) == (["t"] if found else [])
    assert (db in client.get_all_databases()) == found
    assert bool(client.get_table_meta(db, "*", None)) == found
    assert len(client.get_table_objects_by_name(db, ["t"])) == int(found)
    return found


class TestWhoHasAPrivilege:
    def test_nobody_at_first(self, user: ThriftClient, db: str) -> None:
        assert not sees(user, db)

    @pytest.mark.parametrize("table", ["t", None], ids=["on the table", "on the database"])
    def test_a_user(self, user: ThriftClient, root: ThriftClient, db: str, table: str | None) -> None:
        grant(root, f"u_{db}", "SELECT", db, table)
        assert sees(user, db)
        revoke(root, f"u_{db}", "SELECT", db, table)
        assert not sees(user, db)

    def test_of_everything(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        grant(root, f"u_{db}", "SELECT")
        assert sees(user, db)
        revoke(root, f"u_{db}", "SELECT")
        assert not sees(user, db)

    def test_a_group(self, guarded: MetastoreServer, root: ThriftClient, db: str) -> None:
        grant(root, f"g_{db}", "SELECT", db, "t", kind=GROUP)
        with as_user(guarded, "x", f"g_{db}") as member, as_user(guarded, "x", "other") as other:
            assert sees(member, db)
            assert not sees(other, db)

    def test_a_role_of_a_role(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        for role in ("inner", "outer"):
            root.create_role(Role(f"{role}_{db}"))
        grant(root, f"inner_{db}", "SELECT", db, "t", kind=ROLE)
        root.grant_role(f"outer_{db}", f"u_{db}", PrincipalType.USER, "root", PrincipalType.USER, False)
        assert not sees(user, db)
        root.grant_role(f"inner_{db}", f"outer_{db}", ROLE, "root", PrincipalType.USER, False)
        assert sees(user, db)
        assert user.get_role_names() == sorted([f"inner_{db}", f"outer_{db}", "public"])
        root.drop_role(f"outer_{db}")
        assert not sees(user, db)

    def test_everybody(self, guarded: MetastoreServer, root: ThriftClient, db: str) -> None:
        grant(root, "public", "SELECT", db, "t", kind=ROLE)
        with as_user(guarded, None) as nobody:
            assert sees(nobody, db)
        revoke(root, "public", "SELECT", db, "t", kind=ROLE)

    def test_administrators_by_role(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        with refused(MetaException, message="does not have [ADMIN] privilege"):
            user.create_role(Role(f"r_{db}"))
        root.grant_role("admin", f"u_{db}", PrincipalType.USER, "root", PrincipalType.USER, False)
        assert user.create_role(Role(f"r_{db}"))
        assert sees(user, db)
        root.revoke_role("admin", f"u_{db}", PrincipalType.USER)
        assert not sees(user, db)

    def test_owners(self, guarded: MetastoreServer, root: ThriftClient, db: str) -> None:
        root.create_role(Role(f"owners_{db}"))
        root.grant_role(f"owners_{db}", f"u_{db}", PrincipalType.USER, "root", PrincipalType.USER, False)
        value = root.get_table(db, "t")
        with as_user(guarded, f"u_{db}") as user, as_user(guarded, f"owners_{db}") as of_the_same_name:
            assert not sees(user, db)
            root.alter_table(db, "t", value.replace(owner=f"owners_{db}", ownerType=ROLE))
            assert sees(user, db)
            assert not sees(of_the_same_name, db)
            root.alter_table(db, "t", value.replace(owner=f"owners_{db}", ownerType=PrincipalType.USER))
            assert not sees(user, db)
            assert sees(of_the_same_name, db)
            of_the_same_name.drop_table(db, "t", False)

    def test_the_owner_of_a_database(self, guarded: MetastoreServer, db: str) -> None:
        with as_user(guarded, "somebody") as owner:
            assert sees(owner, db)
            owner.drop_database(db, True, True)

    def test_who_may_create_tables_sees_their_own(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        grant(root, f"u_{db}", "CREATE", db)
        assert user.get_all_tables(db) == []
        user.create_table(builders.table(db, "mine", owner="somebody"))
        assert user.get_table(db, "mine").owner == f"u_{db}"
        assert user.get_all_tables(db) == ["mine"]
        user.drop_table(db, "mine", True)

    def test_everybody_knows_default(self, user: ThriftClient) -> None:
        assert user.get_database("default").name == "default"
        with refused(MetaException, message="does not have [CREATE] privilege on [default]"):
            user.create_table(builders.table("default", "anything"))


class TestPartsOfATable:
    def test_a_partition(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        ref = HiveObjectRef(HiveObjectType.PARTITION, db, "t", ["1"])
        info = PrivilegeGrantInfo("SELECT", 0, "root", PrincipalType.USER, False)
        root.grant_privileges(PrivilegeBag([HiveObjectPrivilege(ref, f"u_{db}", PrincipalType.USER, info)]))
        assert sees(user, db)
        assert user.get_partition(db, "t", ["1"]).values == ["1"]
        with refused(MetaException, message="does not have [SELECT]"):
            user.get_partition(db, "t", ["2"])
        with refused(MetaException, message="does not have [SELECT]"):
            user.get_partitions(db, "t", -1)

    def test_a_column(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        ref = HiveObjectRef(HiveObjectType.COLUMN, db, "t", None, "id")
        info = PrivilegeGrantInfo("SELECT", 0, "root", PrincipalType.USER, False)
        root.grant_privileges(PrivilegeBag([HiveObjectPrivilege(ref, f"u_{db}", PrincipalType.USER, info)]))
        assert sees(user, db)
        with pytest.raises(TApplicationException, match="no result"):  # allowed, and there are none
            user.get_table_column_statistics(db, "t", "id")
        with refused(MetaException, message=f"privilege on [{db}.t.name]"):
            user.get_table_column_statistics(db, "t", "name")


def privileges(name: str, privilege: str, db: str, grantor: str, *, option: bool = False) -> PrivilegeBag:
    ref = HiveObjectRef(HiveObjectType.TABLE, db, "t")
    info = PrivilegeGrantInfo(privilege, 0, grantor, PrincipalType.USER, option)
    return PrivilegeBag([HiveObjectPrivilege(ref, name, PrincipalType.USER, info)])


class TestWhoMayGrant:
    def test_with_the_grant_option(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        grant(root, f"u_{db}", "SELECT", db, "t")
        with refused(MetaException, message="does not have [SELECT] privilege"):
            user.grant_privileges(privileges("friend", "SELECT", db, f"u_{db}"))
        revoke(root, f"u_{db}", "SELECT", db, "t")
        grant(root, f"u_{db}", "SELECT", db, "t", option=True)
        assert user.grant_privileges(privileges("friend", "SELECT", db, f"u_{db}"))
        for bag in (
            privileges("friend", "INSERT", db, f"u_{db}"),
            privileges("friend", "SELECT,INSERT", db, f"u_{db}"),
            privileges("friend", "ALL", db, f"u_{db}"),
            privileges("friend", "No such", db, f"u_{db}"),
        ):
            with refused(MetaException, message="does not have"):
                user.grant_privileges(bag)
            with refused(MetaException, message="does not have"):
                user.grant_revoke_privileges(GrantRevokePrivilegeRequest(GrantRevokeType.GRANT, bag))
            with refused(MetaException, message="does not have"):
                user.refresh_privileges(
                    HiveObjectRef(HiveObjectType.TABLE, db, "t"), None, GrantRevokePrivilegeRequest(privileges=bag)
                )

    def test_not_in_anothers_name(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        grant(root, f"u_{db}", "SELECT", db, "t", option=True)
        with refused(MetaException, message="does not have [ADMIN]"):
            user.grant_privileges(privileges("friend", "SELECT", db, "somebody"))

    def test_roles_with_their_grant_option(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        root.create_role(Role(f"r_{db}"))
        root.grant_role(f"r_{db}", f"u_{db}", PrincipalType.USER, "root", PrincipalType.USER, False)
        with refused(MetaException, message=f"does not have [GRANT] privilege on [role r_{db}]"):
            user.grant_role(f"r_{db}", "friend", PrincipalType.USER, f"u_{db}", PrincipalType.USER, False)
        root.revoke_role(f"r_{db}", f"u_{db}", PrincipalType.USER)
        root.grant_role(f"r_{db}", f"u_{db}", PrincipalType.USER, "root", PrincipalType.USER, True)
        assert user.grant_role(f"r_{db}", "friend", PrincipalType.USER, f"u_{db}", PrincipalType.USER, False)

    def test_what_others_have_is_told_to_those_who_may_grant(
        self, user: ThriftClient, root: ThriftClient, db: str
    ) -> None:
        grant(root, f"u_{db}", "SELECT", db, "t")
        grant(root, "friend", "SELECT", db, "t")
        ref = HiveObjectRef(HiveObjectType.TABLE, db, "t")
        assert {each.principalName for each in root.list_privileges(None, None, ref)} == {"friend", f"u_{db}"}
        assert {each.principalName for each in user.list_privileges(None, None, ref)} == {f"u_{db}"}
        with refused(MetaException, message="does not have [ADMIN]"):
            user.list_roles("friend", PrincipalType.USER)


def test_kept_replies_are_given_to_those_who_may_have_them(guarded: MetastoreServer, world: World) -> None:
    """One asks, another one gets nothing, whoever asked first, and nobody after a REVOKE."""
    with as_user(guarded, "root") as root, as_user(guarded, READER) as reader, as_user(guarded, "kept") as other:
        for _ in range(3):
            assert reader.get_table(OPEN, OPEN_TABLE).tableName == OPEN_TABLE
            with refused(NoSuchObjectException, message="table not found"):
                other.get_table(OPEN, OPEN_TABLE)
        for _ in range(20):
            grant(root, "kept", "SELECT", OPEN, OPEN_TABLE)
            assert len(other.get_partitions(OPEN, OPEN_TABLE, -1)) == 2
            revoke(root, "kept", "SELECT", OPEN, OPEN_TABLE)
            with refused(NoSuchObjectException, message="table not found"):
                other.get_partitions(OPEN, OPEN_TABLE, -1)


def test_a_foreign_key_to_a_hidden_table_is_hidden(guarded: MetastoreServer, world: World) -> None:
    request = ForeignKeysRequest(None, None, OPEN, OPEN_TABLE)
    with as_user(guarded, "root") as root, as_user(guarded, READER) as reader:
        assert [each.pktable_name for each in root.get_foreign_keys(request).foreignKeys] == [HIDDEN_TABLE]
        assert reader.get_foreign_keys(request).foreignKeys == []


def test_who_has_no_right_at_all_ends_no_transaction(guarded: MetastoreServer, world: World) -> None:
    with as_user(guarded, READER) as reader, as_user(guarded, "stranger") as stranger:
        (number,) = reader.open_txns(OpenTxnRequest(1, "reader", "here")).txn_ids
        with pytest.raises(Exception, match="does not have"):
            stranger.abort_txn(AbortTxnRequest(number))
        reader.abort_txn(AbortTxnRequest(number))
