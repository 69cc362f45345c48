"""Hive 2.3's Java client, as Spark has it, logged in: by Kerberos, by a delegation token, and within TLS."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hive_client.conftest import HiveClient, JavaFailure
from tests.interop.logins import hive_clients
from tests.interop.logins.conftest import Door
from tests.interop.logins.hive_clients import CAROL, by_kerberos, by_token, lives, within_tls
from tests.support.jvm import SMALL, pyspark_class_path, running
from tests.support.reference import missing


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, keytab: Path, of_java: tuple[str, ...]) -> Iterator[Any]:
    """A JVM whose user is carol."""
    if (reason := missing()) is not None:
        pytest.skip(reason)
    options = ["-Xmx256m", *SMALL, *of_java]
    with running([pyspark_class_path()], tmp_path_factory.mktemp("hive2"), options=options) as gateway:
        hive_clients.log_in(gateway.jvm, CAROL, keytab)
        yield gateway.jvm


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
def test_kerberos(jvm: Any, door: Door, trust_store: Path, encrypted: bool) -> None:
    settings = by_kerberos() | (within_tls(trust_store) if encrypted else {})
    client = HiveClient(jvm, "localhost", door.server.port, settings)
    assert lives(client, door, f"hive2_kerberos_{encrypted}".lower()) == {("carol", "kerberos")}


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
def test_delegation_token(jvm: Any, door: Door, trust_store: Path, encrypted: bool) -> None:
    more = within_tls(trust_store) if encrypted else {}
    known = HiveClient(jvm, "localhost", door.server.port, by_kerberos() | more)
    text = known.getDelegationToken("carol", "carol")
    signature = f"hive2_{encrypted}"
    hive_clients.hold(jvm, text, signature)
    client = HiveClient(jvm, "localhost", door.server.port, by_token(signature) | more)
    assert lives(client, door, f"hive2_token_{encrypted}".lower()) == {("carol", "token")}
    known.cancelDelegationToken(text)
    known.close()
    with pytest.raises(Exception, match=r"DIGEST-MD5|not valid"):
        HiveClient(jvm, "localhost", door.server.port, by_token(signature) | more).getAllDatabases()


def test_tls_without_a_login(jvm: Any, door: Door, trust_store: Path) -> None:
    with pytest.raises((JavaFailure, Exception), match="answers nobody who has not logged in"):
        HiveClient(jvm, "localhost", door.server.port, within_tls(trust_store)).getAllDatabases()
