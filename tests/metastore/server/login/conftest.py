"""Servers that ask who comes in, and what their clients prove it with."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from lake.protocol.connection.login import Login
from metastore.server.credentials import password_file
from tests.metastore.server.stand_in import StandIn
from tests.support import kerberos
from tests.support.certificates import Authority
from tests.support.kerberos import REALM, Realm


class Keys(NamedTuple):
    """Files of logins. `users` has ann (dev, ops; "secret"), bob ("bob's") and trino ("proxy")."""

    authority: Authority
    certificate: Path
    key: Path
    users: Path

    @property
    def tls(self) -> dict[str, str]:
        """The server's settings for TLS."""
        return {"tls_certificate": str(self.certificate), "tls_key": str(self.key)}

    def login(self, user: str | None = None, password: str | None = None) -> Login:
        """Within TLS, with a password if there is one."""
        return Login(authorities=self.authority.file, user=user, password=password)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    directory = tmp_path_factory.mktemp("keys")
    authority = Authority(directory)
    certificate, key = authority.issue("server", "localhost", "127.0.0.1")
    users = directory / "users"
    password_file.add(users, "ann", "secret", ("dev", "ops"), allow_weak=True)
    password_file.add(users, "bob", "bob's", (), allow_weak=True)
    password_file.add(users, "trino", "proxy", (), allow_weak=True)
    return Keys(authority, certificate, key, users)


@pytest.fixture(scope="session")
def closed_server(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Iterator[StandIn]:
    """A server that lets in those with a password or certificate, and takes TLS as well as plain connections."""
    settings = keys.tls | {
        "authentication": "plain,certificate",
        "password_file": str(keys.users),
        "tls_client_ca": str(keys.authority.file),
        "proxy_users": "trino=ann",
        "login_timeout_seconds": 5,
        "login_max_bytes": 4096,
    }
    with StandIn(tmp_path_factory.mktemp("closed") / "data", **settings) as server:
        yield server
        assert server.lines("unexpected error in the event loop") == []
        assert server.lines("a request's thread failed") == []


@pytest.fixture(scope="session")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    if (reason := kerberos.missing()) is not None:
        pytest.skip(reason)
    with kerberos.running(tmp_path_factory.mktemp("realm")) as realm:
        yield realm


@pytest.fixture(scope="session")
def tickets(realm: Realm) -> dict[str, dict[str, str]]:
    """The variables of programs that have tickets, by principal without realm."""
    return {name: realm.add(f"{name}@{REALM}") for name in ("ann", "trino/coordinator", "job/one", "bob")}
