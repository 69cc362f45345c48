"""Logins and rights together, on a real server: who has proven a name has the rights of that name, and no others."""

from collections.abc import Iterator

import pytest

from lake.protocol.connection.login import LoginRefused
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    MetaException,
    NoSuchObjectException,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from tests.metastore.server.login.conftest import Keys
from tests.support import builders
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Iterator[MetastoreServer]:
    """Trino is the administrator, and may act for ann."""
    options = {
        "tls-certificate": keys.certificate,
        "tls-key": keys.key,
        "authentication": "plain",
        "password-file": keys.users,
        "proxy-users": "trino=ann",
        "authorization": "sql-standard",
        "admins": "trino",
    }
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    with MetastoreServer(tmp_path_factory.mktemp("rights") / "data", *flags) as own:
        with ThriftClient(own.host, own.port, login=keys.login("trino", "proxy")) as client:
            client.create_database(builders.database("shop"))
            client.create_table(builders.table("shop", "orders"))
            client.create_table(builders.table("shop", "wages"))
            client.grant_privileges(readable("orders", "dev", PrincipalType.GROUP))
        yield own


def readable(table: str, name: str, kind: PrincipalType) -> PrivilegeBag:
    """SELECT on a table."""
    ref = HiveObjectRef(HiveObjectType.TABLE, "shop", table)
    grant = PrivilegeGrantInfo("SELECT", 0, "trino", PrincipalType.USER, False)
    return PrivilegeBag([HiveObjectPrivilege(ref, name, kind, grant, "SQL")])


def test_a_group_s_rights_are_those_of_its_members(server: MetastoreServer, keys: Keys) -> None:
    with ThriftClient(server.host, server.port, login=keys.login("ann", "secret")) as ann:
        assert ann.get_all_tables("shop") == ["orders"]
        assert ann.get_table("shop", "orders").tableName == "orders"
        ann.set_ugi("trino", ["admin"])  # counts for nothing
        with pytest.raises(NoSuchObjectException):
            ann.get_table("shop", "wages")
        with pytest.raises(MetaException, match=r"user \[ann\] does not have .* \(authentication: plain\)"):
            ann.drop_table("shop", "orders", True)


def test_others_see_nothing(server: MetastoreServer, keys: Keys) -> None:
    with ThriftClient(server.host, server.port, login=keys.login("bob", "bob's")) as bob:
        assert bob.get_all_databases() == ["default"]
        with pytest.raises(NoSuchObjectException):
            bob.get_table("shop", "orders")


def test_who_proves_nothing_gets_no_answer(server: MetastoreServer, keys: Keys) -> None:
    with pytest.raises(LoginRefused), ThriftClient(server.host, server.port, login=keys.login("ann", "wrong")):
        pass
    with ThriftClient(server.host, server.port) as nobody, pytest.raises(Exception, match="has not logged in"):
        nobody.get_all_databases()
