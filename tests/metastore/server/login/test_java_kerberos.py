"""Hive's own client in Java, and a proxy user's, logging in by Kerberos."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hive_client.conftest import HiveClient
from tests.metastore.server.login.conftest import Keys
from tests.metastore.server.stand_in import StandIn
from tests.support import kerberos
from tests.support.jvm import SMALL, pyspark_class_path, running
from tests.support.kerberos import REALM, SERVER, Realm
from tests.support.reference import missing

pytestmark = [pytest.mark.hive, pytest.mark.long]

ANN, TRINO = f"ann@{REALM}", f"trino/coordinator@{REALM}"


@pytest.fixture(scope="module")
def keytab(realm: Realm, tickets: dict[str, dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clients' keys; their passwords hold no longer."""
    file = tmp_path_factory.mktemp("clients") / "keytab"
    for principal in (ANN, TRINO):
        realm.extract(principal, file)
    return file


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, realm: Realm) -> Iterator[Any]:
    if (reason := missing() or kerberos.missing()) is not None:
        pytest.skip(reason)
    configuration = realm.environment["KRB5_CONFIG"]
    options = [
        *SMALL,
        "-Xmx256m",
        f"-Djava.security.krb5.conf={configuration}",
        "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
        "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    ]
    with running([pyspark_class_path()], tmp_path_factory.mktemp("jvm"), options=options) as gateway:
        hadoop = gateway.jvm.org.apache.hadoop.conf.Configuration()
        hadoop.set("hadoop.security.authentication", "kerberos")
        hadoop.set("hadoop.security.auth_to_local", "DEFAULT RULE:[2:$1]")
        gateway.jvm.org.apache.hadoop.security.UserGroupInformation.setConfiguration(hadoop)
        yield gateway.jvm


def client_settings(protection: str) -> dict[str, str]:
    return {
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.kerberos.principal": f"metastore/_HOST@{REALM}",
        "hadoop.security.authentication": "kerberos",
        "hadoop.rpc.protection": protection,
    }


@pytest.mark.parametrize(
    ("protection", "offered"),
    [
        ("privacy", "auth-conf"),
        ("authentication", "auth"),
        ("integrity", "auth-int,auth"),
        ("privacy", "auth"),
    ],
)
def test_hives_client(
    jvm: Any, realm: Realm, keytab: Path, keys: Keys, tmp_path: Path, protection: str, offered: str
) -> None:
    """`hadoop.rpc.protection` must be one that the server offers."""
    given = {
        "authentication": "kerberos",
        "kerberos_principal": SERVER,
        "kerberos_keytab": str(realm.keytab),
        "kerberos_protection": offered,
        "password_file": str(keys.users),
    }
    jvm.org.apache.hadoop.security.UserGroupInformation.loginUserFromKeytab(ANN, str(keytab))
    with StandIn(tmp_path / "data", os.environ | realm.environment, **given) as server:
        if (protection, offered) == ("privacy", "auth"):
            with pytest.raises(Exception, match="No common protection layer between client and server"):
                HiveClient(jvm, "localhost", server.port, client_settings(protection))
            return
        client = HiveClient(jvm, "localhost", server.port, client_settings(protection))
        name = "long" * 100_000
        assert client.getDatabase(name).name == name
        assert client.getConfigValue("", "") == '["ann", ["dev", "ops"], "kerberos", null]'
        client.close()


def test_proxy_user(jvm: Any, realm: Realm, keytab: Path, keys: Keys, tmp_path: Path) -> None:
    """Hadoop's proxy user logs in as itself and names the user in SASL's authorization id."""
    given = {
        "authentication": "kerberos",
        "kerberos_principal": SERVER,
        "kerberos_keytab": str(realm.keytab),
        "password_file": str(keys.users),
        "proxy_users": {"trino": ["group:dev", "host:127.0.0.1"]},
    }
    transport = jvm.org.apache.thrift.transport
    properties = jvm.java.util.HashMap()
    properties.put("javax.security.sasl.qop", "auth-conf")
    properties.put("javax.security.sasl.server.authentication", "true")
    users = jvm.org.apache.hadoop.security.UserGroupInformation
    with StandIn(tmp_path / "data", os.environ | realm.environment, **given) as server:
        users.loginUserFromKeytab(TRINO, str(keytab))
        socket = transport.TSocket("localhost", server.port)
        sasl = transport.TSaslClientTransport("GSSAPI", "ann", "metastore", "localhost", properties, None, socket)
        assuming = jvm.org.apache.hadoop.hive.thrift.client.TUGIAssumingTransport(sasl, users.getLoginUser())
        assuming.open()
        protocol = jvm.org.apache.thrift.protocol.TBinaryProtocol(assuming)
        client = jvm.org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore.Client(protocol)
        assert client.get_config_value("", "") == '["ann", ["dev", "ops"], "kerberos", "trino"]'
        assuming.close()
