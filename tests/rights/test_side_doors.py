"""Ways around a right: other spellings of a name, fields that are easily forgotten, calls of other protocols."""

import itertools
from collections.abc import Iterator

import pytest

from metastore.client.thrift_client import ThriftClient
from metastore.wire.hive import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from metastore.wire.lake import ListPartitionsRequest, TableReference
from tests.rights.conftest import as_user
from tests.rights.world import grant
from tests.support import builders
from tests.support.expect import refused
from tests.support.server import MetastoreServer

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def root(guarded: MetastoreServer) -> Iterator[ThriftClient]:
    with as_user(guarded, "root") as client:
        yield client


@pytest.fixture
def db(root: ThriftClient) -> str:
    name = f"side{next(NUMBERS)}"
    root.create_database(builders.database(name, ownerName="somebody"))
    root.create_table(builders.table(name, keys=("dt",), owner="somebody", parameters={}))
    root.add_partition(builders.partition(name, "t", "1"))
    root.add_partition(builders.partition(name, "t", "2", parameters={"commit": "false"}))
    return name


@pytest.fixture
def user(guarded: MetastoreServer, db: str) -> Iterator[ThriftClient]:
    with as_user(guarded, f"u_{db}") as client:
        yield client


class TestDecoratedNamesInReferences:
    """They show uncommitted partitions, as decorated names in arguments of their own do."""

    def test_of_our_own_calls(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        grant(root, f"u_{db}", "SELECT", db, "t")
        wanted = ListPartitionsRequest(TableReference(database=db, table=" T@includeUncommit"))
        with refused(MetaException, message=f"does not have [READ_UNCOMMITTED] privilege on [{db}.t]"):
            user.lake_list_partitions(wanted)
        with refused(MetaException, message="READ_UNCOMMITTED"):
            user.lake_get_watermark(wanted.table)
        grant(root, f"u_{db}", "READ_UNCOMMITTED", db, "t")
        assert len(user.lake_list_partitions(wanted).partitions) == 2

    def test_of_privileges(self, user: ThriftClient, root: ThriftClient, db: str) -> None:
        """The privileges of an uncommitted partition are read as the partition is."""
        grant(root, f"u_{db}", "SELECT", db, "t")
        of_partition = HiveObjectRef(HiveObjectType.PARTITION, db, "t", ["2"])
        info = PrivilegeGrantInfo("DROP", 0, "root", PrincipalType.USER, False)
        bag = PrivilegeBag([HiveObjectPrivilege(of_partition, f"u_{db}", PrincipalType.USER, info)])
        root.grant_privileges(bag)
        ref = of_partition.replace(objectName="t@includeuncommit")
        assert user.list_privileges(f"u_{db}", PrincipalType.USER, ref) == []
        assert user.get_privilege_set(ref, f"u_{db}", []).userPrivileges is None
        grant(root, f"u_{db}", "READ_UNCOMMITTED", db, "t")
        assert len(user.list_privileges(f"u_{db}", PrincipalType.USER, ref)) == 1
