"""One server that asks who comes in, by all ways at once, and what its clients prove it with."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.metastore.server.login import conftest as logins
from tests.metastore.server.login.conftest import Keys
from tests.support.json_web_keys import AUDIENCE, ISSUER, KeyServer
from tests.support.kerberos import REALM, SERVER, Realm
from tests.support.server import MetastoreServer

keys = logins.keys
realm = logins.realm
tickets = logins.tickets


class Door(NamedTuple):
    """The server, its audit log, and the issuer that it believes."""

    server: MetastoreServer
    audit: Path
    issuer: KeyServer

    @property
    def uri(self) -> str:
        """By a name, since certificates and principals of hosts have one."""
        return f"thrift://localhost:{self.server.port}"

    def came_in(self, method: str, about: str) -> set[tuple[str, str]]:
        """Who called a method, or the newer form of it, about an object, and how each was proven."""
        records = [json.loads(line) for line in self.audit.read_text().splitlines()]
        called = [each for each in records if each["method"].startswith(method) and about in each["object"]]
        return {(each["user"], each["mechanism"]) for each in called}


@contextmanager
def opened(directory: Path, keys: Keys, realm: Realm, warehouse: str | None = None) -> Iterator[Door]:
    """A door with its files in a directory."""
    issuer = KeyServer()
    issuer.add("a")
    options = (
        *("--authentication", "plain,kerberos,certificate,jwt,token", "--password-file", str(keys.users)),
        *("--tls-certificate", str(keys.certificate), "--tls-key", str(keys.key)),
        *("--tls-client-ca", str(keys.authority.file)),
        *("--kerberos-principal", SERVER, "--kerberos-keytab", str(realm.keytab)),
        *("--jwt-keys", issuer.url, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE),
        *("--audit", "all", "--audit-log", str(directory / "audit.log"), "--workers", "1"),
        *("--warehouse-dir", warehouse or str(directory / "warehouse")),
    )
    with MetastoreServer(directory / "data", *options, environment=realm.environment) as server:
        yield Door(server, directory / "audit.log", issuer)
    issuer.close()


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory, keys: Keys, realm: Realm) -> Iterator[Door]:
    with opened(tmp_path_factory.mktemp("door"), keys, realm) as door:
        yield door


@pytest.fixture(scope="session")
def trust_store(keys: Keys) -> Path:
    return keys.authority.trust_store("trust")


@pytest.fixture(scope="session")
def keytab(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The key of `carol`, who has no password."""
    file = tmp_path_factory.mktemp("carol") / "keytab"
    realm.add(f"carol@{REALM}")
    realm.extract(f"carol@{REALM}", file)
    return file


@pytest.fixture(scope="session")
def of_java(realm: Realm) -> tuple[str, ...]:
    """Options of a JVM that finds the realm."""
    return (
        f"-Djava.security.krb5.conf={realm.environment['KRB5_CONFIG']}",
        "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
        "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    )
