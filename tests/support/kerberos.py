"""A realm of Kerberos with a key distribution centre of MIT's, for tests."""

import contextlib
import importlib.util
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REALM = "LAKE.EXAMPLE"
SERVER = f"metastore/localhost@{REALM}"

_WHERE = f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin"


def missing() -> str | None:
    """Why there can be no realm here; None if there can."""
    for module in ("gssapi", "k5test"):
        if importlib.util.find_spec(module) is None:
            return f"needs the package {module} (tools/setup.sh --logins)"
    for program in ("krb5kdc", "kadmin.local", "kinit"):
        if shutil.which(program, path=_WHERE) is None:
            return f"needs {program} (tools/setup.sh --logins)"
    return None


class Realm:
    """A running realm. `environment` leads programs to it."""

    def __init__(self, realm: Any, directory: Path) -> None:
        self._realm = realm
        self._directory = directory
        self.environment: dict[str, str] = {"KRB5_CONFIG": realm.env["KRB5_CONFIG"]}
        self.of_administrator: dict[str, str] = self.environment | {"KRB5_KDC_PROFILE": realm.env["KRB5_KDC_PROFILE"]}
        """Variables for `kadmin.local`, too."""
        self.keytab = directory / "server.keytab"
        realm.addprinc(SERVER)
        self.extract(SERVER, self.keytab)

    def add(self, principal: str) -> dict[str, str]:
        """A new principal. Returns the variables of a program that has its tickets."""
        cache = self._directory / f"tickets-{principal.replace('/', '-')}"
        self._realm.addprinc(principal, "secret")
        self._realm.kinit(principal, "secret", flags=["-c", str(cache)])
        return self.environment | {"KRB5CCNAME": str(cache)}

    def extract(self, principal: str, keytab: Path) -> None:
        """Adds the keys of a principal to a keytab."""
        self._realm.extract_keytab(principal, str(keytab))

    def set_password(self, principal: str, password: str) -> None:
        self._realm.change_password(principal, password)

    def stop(self) -> None:
        self._realm.stop()


@contextlib.contextmanager
def running(directory: Path) -> Iterator[Realm]:
    """A realm on the loopback interface until the end of the block; only where nothing is `missing`."""
    import k5test

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    libraries = {"libdefaults": {"rdns": "false", "dns_canonicalize_hostname": "false", "udp_preference_limit": "1"}}
    started = k5test.K5Realm(realm=REALM, portbase=port, krb5_conf=libraries, create_user=False, create_host=False)
    realm = Realm(started, directory)
    try:
        yield realm
    finally:
        realm.stop()
        shutil.rmtree(started.tmpdir, ignore_errors=True)


@contextlib.contextmanager
def has_tickets(variables: dict[str, str]) -> Iterator[None]:
    """This process has the tickets to which variables lead."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield
