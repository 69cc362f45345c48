"""Hive 4's Java client logged in: Kerberos, delegation token, password, and token over HTTP, within TLS and without."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.java_gateway import JavaGateway

from tests.hive_client.conftest import HiveClient
from tests.interop import java
from tests.interop.logins import hive_clients
from tests.interop.logins.conftest import Door
from tests.interop.logins.hive_clients import CAROL, by_kerberos, by_token, lives, within_tls
from tests.support.jvm import SMALL, running
from tests.support.reference import missing
from tests.support.reference4 import HADOOP, NEWEST, NOT_OF_HADOOP


@pytest.fixture(scope="module")
def gateway(
    door: Door,
    class_path: Callable[..., list[Path]],
    tmp_path_factory: pytest.TempPathFactory,
    keytab: Path,
    of_java: tuple[str, ...],
) -> Iterator[JavaGateway]:
    """A JVM whose user is carol, and in whose environment is a token of dora's."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    program = java.find(17, 24)
    if program is None:
        pytest.skip("Hive 4's client needs Java 17 (Debian: apt-get install openjdk-17-jre-headless)")
    jars = [*class_path(*NEWEST.server, exclusions=("*:*",)), *class_path(*HADOOP, exclusions=tuple(NOT_OF_HADOOP))]
    directory = tmp_path_factory.mktemp("hive4-logins")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HMS_JWT", door.issuer.token(sub="dora"))
        with running(jars, directory, java=program, options=["-Xmx1g", *SMALL, *of_java]) as gateway:
            hive_clients.log_in(gateway.jvm, CAROL, keytab)
            yield gateway


@pytest.fixture
def jvm(gateway: JavaGateway) -> Any:
    return gateway.jvm


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def encrypted(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture
def more(encrypted: bool, trust_store: Path) -> dict[str, str]:
    return within_tls(trust_store) if encrypted else {}


def test_kerberos(jvm: Any, door: Door, encrypted: bool, more: dict[str, str]) -> None:
    client = HiveClient(jvm, "localhost", door.server.port, by_kerberos() | more)
    assert lives(client, door, f"hive4_kerberos_{encrypted}".lower()) == {("carol", "kerberos")}


def test_delegation_token(jvm: Any, door: Door, encrypted: bool, more: dict[str, str]) -> None:
    known = HiveClient(jvm, "localhost", door.server.port, by_kerberos() | more)
    text = known.getDelegationToken("carol", "carol")
    signature = f"hive4_{encrypted}"
    hive_clients.hold(jvm, text, signature)
    client = HiveClient(jvm, "localhost", door.server.port, by_token(signature) | more)
    assert lives(client, door, f"hive4_token_{encrypted}".lower()) == {("carol", "token")}
    assert known.renewDelegationToken(text) > 0
    known.cancelDelegationToken(text)
    known.close()
    with pytest.raises(Exception, match=r"DIGEST-MD5|not valid"):
        HiveClient(jvm, "localhost", door.server.port, by_token(signature) | more).getAllDatabases()


def password_settings(gateway: JavaGateway, user: str, password: str, directory: Path) -> dict[str, str]:
    """The password is in a credential store, under the user's name."""
    jvm = gateway.jvm
    store = f"localjceks://file{directory / 'passwords.jceks'}"
    configuration = jvm.org.apache.hadoop.conf.Configuration()
    configuration.set("hadoop.security.credential.provider.path", store)
    [provider] = jvm.org.apache.hadoop.security.alias.CredentialProviderFactory.getProviders(configuration)
    characters = gateway.new_array(jvm.char, len(password))
    for at, character in enumerate(password):
        characters[at] = character
    provider.createCredentialEntry(user, characters)
    provider.flush()
    return {
        "hive.metastore.client.auth.mode": "PLAIN",
        "hive.metastore.client.plain.username": user,
        "hadoop.security.credential.provider.path": store,
    }


def test_password(gateway: JavaGateway, door: Door, trust_store: Path, tmp_path: Path) -> None:
    settings = password_settings(gateway, "ann", "secret", tmp_path) | within_tls(trust_store)
    client = HiveClient(gateway.jvm, "localhost", door.server.port, settings)
    assert lives(client, door, "hive4_password") == {("ann", "plain")}


def test_wrong_password(gateway: JavaGateway, door: Door, trust_store: Path, tmp_path: Path) -> None:
    settings = password_settings(gateway, "ann", "wrong", tmp_path) | within_tls(trust_store)
    with pytest.raises(Exception, match="wrong user or password"):
        HiveClient(gateway.jvm, "localhost", door.server.port, settings)


def test_token_over_http(jvm: Any, door: Door, trust_store: Path) -> None:
    settings = within_tls(trust_store) | {
        "hive.metastore.client.thrift.transport.mode": "http",
        "hive.metastore.client.auth.mode": "JWT",
        "hive.metastore.trustmanagerfactory.algorithm": "PKIX",
    }
    client = HiveClient(jvm, "localhost", door.server.port, settings)
    assert lives(client, door, "hive4_http") == {("dora", "jwt")}
