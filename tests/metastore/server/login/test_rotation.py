"""Certificates, keytabs and keys of tokens are exchanged beside clients that go on calling: none of them notices."""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lake.protocol.connection.login import Login, LoginRefused
from lake.protocol.connection.thrift_client import ThriftClient
from tests.metastore.server.login.conftest import Keys
from tests.metastore.server.stand_in import StandIn
from tests.support.json_web_keys import AUDIENCE, ISSUER, KeyServer
from tests.support.kerberos import REALM, SERVER, Realm, has_tickets
from tests.support.waiting import wait_until

KEYS_SECONDS = 11
"""A little more than the server lets pass before it fetches keys again."""


class Calling:
    """A connected client that calls without a pause, by a thread."""

    def __init__(self, client: ThriftClient) -> None:
        self.calls = 0
        self.failure: Exception | None = None
        self._client = client
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stopped.wait(0.002):
                assert self._client.getVersion() == "stand-in"
                self.calls += 1
        except Exception as error:
            self.failure = error

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._client.close()


@contextmanager
def calling(*made: Callable[[], ThriftClient]) -> Iterator[list[Calling]]:
    """Clients that call during the block; each goes on after it, and none has failed."""
    all_of_them = [Calling(make()) for make in made]
    try:
        wait_until(lambda: all(each.calls for each in all_of_them))
        yield all_of_them
        before = [each.calls for each in all_of_them]
        wait_until(lambda: all(each.failure or each.calls > was for each, was in zip(all_of_them, before, strict=True)))
    finally:
        for each in all_of_them:
            each.stop()
    assert [each.failure for each in all_of_them] == [None] * len(all_of_them)


@pytest.mark.long
def test_all_at_once(tmp_path: Path, keys: Keys, realm: Realm, tickets: dict[str, dict[str, str]]) -> None:
    certificate, key, keytab = tmp_path / "certificate.pem", tmp_path / "key.pem", tmp_path / "keytab"
    for source, target in ((keys.certificate, certificate), (keys.key, key), (realm.keytab, keytab)):
        shutil.copy(source, target)
    issuer = KeyServer()
    issuer.add("old")
    given = {
        **{"authentication": "plain,kerberos,jwt", "password_file": str(keys.users)},
        **{"tls_certificate": str(certificate), "tls_key": str(key)},
        **{"kerberos_principal": SERVER, "kerberos_keytab": str(keytab)},
        **{"jwt_keys": issuer.url, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE},
    }
    authorities = str(keys.authority.file)
    password = Login(authorities=authorities, user="ann", password="secret")
    ticket = Login(authorities=authorities, kerberos_principal=SERVER)
    bearer = Login(authorities=authorities, token=issuer.token("old"))
    with StandIn(tmp_path / "data", os.environ | realm.environment, **given) as server, has_tickets(tickets["ann"]):

        def connected(login: Login) -> Callable[[], ThriftClient]:
            return lambda: ThriftClient("localhost", server.port, timeout=30, login=login)

        def accepted(login: Login) -> bool:
            try:
                with connected(login)() as client:
                    return client.getVersion() == "stand-in"
            except LoginRefused:
                return False

        with calling(*map(connected, (password, ticket, bearer))) as clients:
            renewed, renewed_key = keys.authority.issue("rotated", "localhost")
            renewed_key.replace(key)
            renewed.replace(certificate)
            wait_until(lambda: server.lines("renewed files of TLS are in use"))

            other = tmp_path / "other-keytab"
            realm.add(f"unused@{REALM}")
            realm.extract(f"unused@{REALM}", other)
            other.replace(keytab)
            assert not accepted(ticket), "the new keytab has no key of the server's"
            shutil.copy(realm.keytab, tmp_path / "again")
            (tmp_path / "again").replace(keytab)
            assert accepted(ticket)

            issuer.add("new")
            del issuer.keys["old"]
            new = Login(authorities=authorities, token=issuer.token("new"))
            wait_until(lambda: accepted(new), 4 * KEYS_SECONDS, "the new key is known")
            assert accepted(password)
            assert [each.failure for each in clients] == [None, None, None]
        assert server.lines("unexpected error in the event loop") == []
    issuer.close()
