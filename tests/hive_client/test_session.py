"""What Hive's Java client asks for besides data: settings, privileges, roles."""

from collections.abc import Callable

import pytest

from lake.protocol.hive import ConfigValSecurityException, HiveObjectRef, HiveObjectType, MetaException, PrincipalType
from tests.hive_client.conftest import HiveClient
from tests.support.builders import table

DIRECT_SQL = "hive.metastore.try.direct.sql"


def test_settings_of_a_session(client: HiveClient, connect: Callable[[], HiveClient]) -> None:
    assert client.getMetaConf(DIRECT_SQL) == "true"
    client.setMetaConf(DIRECT_SQL, "false")
    assert client.getMetaConf(DIRECT_SQL) == "false"
    assert connect().getMetaConf(DIRECT_SQL) == "true"
    with pytest.raises(MetaException):
        client.setMetaConf("no.such.setting", "x")


def test_settings_of_the_server(client: HiveClient) -> None:
    assert client.getConfigValue("hive.metastore.warehouse.dir", "x") != "x"
    assert client.getConfigValue("hive.no.such.setting", "50") == "50"
    with pytest.raises(ConfigValSecurityException):
        client.getConfigValue("javax.jdo.option.ConnectionPassword", "")


def test_privileges(client: HiveClient, db: str) -> None:
    client.createTable(table(db, "t"))
    found = client.get_privilege_set(HiveObjectRef(HiveObjectType.TABLE, db, "t"), "me", ["us"])
    assert found.userPrivileges == {"me": []} and found.groupPrivileges == {"us": []}
    assert found.rolePrivileges == {"public": []}


def test_roles(client: HiveClient) -> None:
    assert {"admin", "public"} <= set(client.listRoleNames())
    user = client.jvm.org.apache.hadoop.hive.metastore.api.PrincipalType.findByValue(PrincipalType.USER)
    assert [role.roleName for role in client.list_roles("someone", user)] == ["public"]


def test_many_clients(connect: Callable[[], HiveClient], db: str) -> None:
    clients = [connect() for _ in range(20)]
    for number, one in enumerate(clients):
        one.createTable(table(db, f"t{number}"))
    assert all(len(one.getAllTables(db)) == 20 for one in clients)


def test_reconnect(client: HiveClient, db: str) -> None:
    client.reconnect()
    assert client.getDatabase(db).name == db
