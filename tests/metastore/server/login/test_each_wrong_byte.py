"""Logins by each mechanism in which one byte, each in turn, is another.

Whichever it is: who comes in is who logged in, or nobody does; the server tells nothing of its insides, and goes on.
"""

import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
from tests.metastore.server.login.conftest import Keys
from tests.support.json_web_keys import AUDIENCE, ISSUER, KeyServer
from tests.support.kerberos import SERVER, Realm, has_tickets
from tests.support.server import MetastoreServer

pytestmark = pytest.mark.long

AT_ONCE = 16
ADDRESSES = itertools.count(2)


class Relay:
    """Passes one connection on to a port, with one byte of the client's changed. `passed`: bytes of the client's."""

    def __init__(self, port: int, at: int, change: int) -> None:
        self.passed = 0
        self._at, self._change = at, change
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._upstream = socket.socket()
        number = next(ADDRESSES)  # who fails often from an address is answered slowly
        self._upstream.bind((f"127.1.{number >> 8 & 255}.{number & 255}", 0))
        self._upstream.connect(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        client, _ = self._listener.accept()
        with client:
            back = threading.Thread(target=self._answers, args=(client,), daemon=True)
            back.start()
            with contextlib.suppress(OSError):
                while data := bytearray(client.recv(1 << 16)):
                    if self.passed <= self._at < self.passed + len(data):
                        data[self._at - self.passed] ^= self._change
                    self.passed += len(data)
                    self._upstream.sendall(data)
                self._upstream.shutdown(socket.SHUT_WR)
            back.join()

    def _answers(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := self._upstream.recv(1 << 16):
                client.sendall(data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.close()
        self._upstream.close()


class Place(NamedTuple):
    server: MetastoreServer
    audit: Path
    logins: dict[str, Login]


@pytest.fixture(scope="module")
def place(
    tmp_path_factory: pytest.TempPathFactory, keys: Keys, realm: Realm, tickets: dict[str, dict[str, str]]
) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("bytes")
    issuer = KeyServer()
    issuer.add("e", "EC")
    options = (
        *("--authentication", "plain,token,kerberos,jwt,certificate", "--password-file", str(keys.users)),
        *("--tls-certificate", str(keys.certificate), "--tls-key", str(keys.key)),
        *("--tls-client-ca", str(keys.authority.file), "--credentials-without-tls", "--login-timeout-seconds", "3"),
        *("--kerberos-principal", SERVER, "--kerberos-keytab", str(realm.keytab)),
        *("--jwt-keys", issuer.url, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE),
        *("--audit", "all", "--audit-log", str(directory / "audit.log"), "--workers", "1", "--proxy-users", "ann=*"),
    )
    certificate, key = keys.authority.issue("ann", common_name="ann")
    with (
        MetastoreServer(directory / "data", *options, environment=realm.environment) as server,
        has_tickets(tickets["ann"]),
    ):
        password = Login(user="ann", password="secret")
        with ThriftClient("127.0.0.1", server.port, login=password) as client:
            token = client.get_delegation_token("ann", "ann")
        logins = {
            "password": password,
            "delegation token": Login(token=token),
            "kerberos": Login(kerberos_principal=SERVER),
            "bearer token": Login(token=issuer.token("e", "ES256")),
            "certificate": Login(str(keys.authority.file), str(certificate), str(key)),
        }
        yield Place(server, directory / "audit.log", logins)
    issuer.close()


def attempt(place: Place, kind: str, at: int, change: int) -> int:
    """A login and a call, through a relay. Returns how many bytes the client has sent."""
    relay = Relay(place.server.port, at, change)
    try:
        with ThriftClient("127.0.0.1", relay.port, timeout=5, login=place.logins[kind]) as client:
            client.getVersion()
    except Exception as error:  # whatever a client of Thrift's makes of it
        assert "Traceback" not in str(error)
    finally:
        relay.close()
    return relay.passed


STEPS = {"password": 1, "delegation token": 3, "kerberos": 5, "bearer token": 5, "certificate": 11}
"""Every how manieth byte is changed: messages of kilobytes would take too long."""


@pytest.mark.parametrize("kind", STEPS)
def test_who_comes_in_is_who_logged_in(place: Place, kind: str) -> None:
    length = attempt(place, kind, -1, 0)
    assert length > 20
    places = list(itertools.product(range(0, length, STEPS[kind]), (0x01, 0x80)))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        sizes = list(pool.map(lambda each: attempt(place, kind, *each), places))
    assert len(sizes) == len(places)
    records = [json.loads(line) for line in place.audit.read_text().splitlines()]
    assert {each["user"] for each in records} == {"ann"}
    assert {each["real_user"] for each in records} == {None}
    with ThriftClient("127.0.0.1", place.server.port, login=place.logins[kind]) as client:
        assert client.getVersion()
    log = place.server.log.read_text()
    for event in ("Traceback", "unexpected error", "a login failed with an error", "internal error"):
        assert event not in log
