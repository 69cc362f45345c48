"""Java's clients: Hive's own within TLS, and Thrift's transport of SASL with the JDK's mechanism PLAIN."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
from tests.hive_client.conftest import HiveClient
from tests.metastore.server.login.conftest import Keys
from tests.metastore.server.stand_in import StandIn
from tests.support.jvm import pyspark_class_path, running
from tests.support.reference import missing
from tests.support.server import MetastoreServer

pytestmark = pytest.mark.hive


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaGateway]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    with running([pyspark_class_path()], tmp_path_factory.mktemp("jvm"), options=options) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def jvm(gateway: JavaGateway) -> Any:
    return gateway.jvm


@pytest.fixture(scope="module")
def trust_store(gateway: JavaGateway, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The authority in a keystore of Java's."""
    file = tmp_path_factory.mktemp("trust") / "trust.jks"
    jvm = gateway.jvm
    store = jvm.java.security.KeyStore.getInstance("JKS")
    store.load(None, None)
    stream = jvm.java.io.FileInputStream(str(keys.authority.file))
    certificate = jvm.java.security.cert.CertificateFactory.getInstance("X.509").generateCertificate(stream)
    store.setCertificateEntry("authority", certificate)
    password = gateway.new_array(jvm.char, 8)
    for at, character in enumerate("changeit"):
        password[at] = character
    store.store(jvm.java.io.FileOutputStream(str(file)), password)
    return file


@pytest.fixture(scope="module")
def tls_server(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Iterator[StandIn]:
    with StandIn(tmp_path_factory.mktemp("java") / "data", **keys.tls, tls_required=True) as server:
        yield server


@pytest.mark.long
def test_hives_client_within_tls(jvm: Any, tls_server: StandIn, trust_store: Path) -> None:
    client = HiveClient(
        jvm,
        "127.0.0.1",
        tls_server.port,
        {
            "hive.metastore.use.SSL": "true",
            "hive.metastore.truststore.path": str(trust_store),
            "hive.metastore.truststore.password": "changeit",
        },
    )
    assert client.getDatabase("some").name == "some"
    client.close()


@pytest.fixture(scope="module")
def password_server(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Iterator[StandIn]:
    settings = {"authentication": "plain", "password_file": str(keys.users), "credentials_without_tls": True}
    with StandIn(tmp_path_factory.mktemp("java_plain") / "data", **settings) as server:
        yield server


@pytest.mark.parametrize("password", ["secret", "wrong"])
def test_thrifts_sasl_transport(jvm: Any, password_server: StandIn, password: str) -> None:
    transport = jvm.org.apache.thrift.transport
    socket = transport.TSocket("127.0.0.1", password_server.port)
    sasl = jvm.org.apache.hive.service.auth.PlainSaslHelper.getPlainTransport("ann", password, socket)
    if password == "wrong":
        with pytest.raises(Py4JJavaError, match="wrong user or password"):
            sasl.open()
        return
    sasl.open()
    protocol = jvm.org.apache.thrift.protocol.TBinaryProtocol(sasl)
    client = jvm.org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore.Client(protocol)
    assert client.get_database("some").getName() == "some"
    assert client.getVersion() == "stand-in"
    sasl.close()


@pytest.fixture(scope="module")
def token_server(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Iterator[MetastoreServer]:
    options = ("--authentication", "plain,token", "--password-file", str(keys.users), "--credentials-without-tls")
    with MetastoreServer(tmp_path_factory.mktemp("java_token") / "data", *options, "--workers", "1") as server:
        yield server


def test_hives_client_with_a_delegation_token(jvm: Any, token_server: MetastoreServer) -> None:
    """Hadoop's classes read the token, and Hive's bridge logs in with it."""
    with ThriftClient.from_uri(token_server.uri, login=Login(user="ann", password="secret")) as client:
        text = client.get_delegation_token("ann", "hive/host@REALM")
    token = jvm.org.apache.hadoop.security.token.Token()
    token.decodeFromUrlString(text)
    assert token.getKind().toString() == "HIVE_DELEGATION_TOKEN"
    assert token.encodeToUrlString() == text
    identifier = jvm.org.apache.hadoop.hive.thrift.DelegationTokenIdentifier()
    stream = jvm.java.io.ByteArrayInputStream(token.getIdentifier())
    identifier.readFields(jvm.java.io.DataInputStream(stream))
    assert (identifier.getUser().getUserName(), identifier.getRenewer().toString()) == ("ann", "hive")
    assert identifier.getMaxDate() - identifier.getIssueDate() == 7 * 24 * 3600 * 1000

    socket = jvm.org.apache.thrift.transport.TSocket("127.0.0.1", token_server.port)
    bridge = jvm.org.apache.hadoop.hive.thrift.HadoopThriftAuthBridge.Client()
    properties = jvm.java.util.HashMap()
    properties.put("javax.security.sasl.qop", "auth")
    properties.put("javax.security.sasl.server.authentication", "true")
    transport = bridge.createClientTransport(None, "127.0.0.1", "DIGEST", text, socket, properties)
    transport.open()
    protocol = jvm.org.apache.thrift.protocol.TBinaryProtocol(transport)
    client = jvm.org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore.Client(protocol)
    assert client.get_database("default").getName() == "default"
    with pytest.raises(Py4JJavaError, match="log in with one"):
        client.get_delegation_token("ann", "hive")
    client.cancel_delegation_token(text)
    transport.close()
    with pytest.raises(Exception, match=r"DIGEST-MD5|token is not valid"):
        bridge.createClientTransport(None, "127.0.0.1", "DIGEST", text, socket, properties).open()
