"""Logins by Kerberos (SASL GSSAPI), with a key distribution centre of MIT's."""

import json
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.login import BadLogin, Login, LoginRefused
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.services import METHODS
from tests.metastore.server.login.conftest import Keys
from tests.metastore.server.stand_in import StandIn, call, flat_memory
from tests.support import kerberos
from tests.support.kerberos import REALM, SERVER, Realm, has_tickets

if (reason := kerberos.missing()) is not None:
    pytest.skip(reason, allow_module_level=True)

MB = 1 << 20
BY_TICKET = Login(kerberos_principal=SERVER)
LAYERS = ("auth", "auth-int", "auth-conf")


@pytest.fixture
def as_ann(tickets: dict[str, dict[str, str]]) -> Iterator[None]:
    with has_tickets(tickets["ann"]):
        yield


@contextmanager
def server_of(directory: Path, realm: Realm, **options: Any) -> Iterator[StandIn]:
    defaults = {
        "authentication": "kerberos",
        "kerberos_principal": f"metastore/localhost@{REALM}",
        "kerberos_keytab": str(realm.keytab),
    }
    with StandIn(directory, os.environ | realm.environment, **(defaults | options)) as server:
        yield server
        for failure in (
            "unexpected error in the event loop",
            "a request's thread failed",
            "a login failed with an error",
        ):
            assert server.lines(failure) == []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, realm: Realm, keys: Keys) -> Iterator[StandIn]:
    options = {
        "password_file": str(keys.users),
        "auth_to_local": ["RULE:[2:$1;$2](trino;.*)s/;.*//", "RULE:[1:$1@$0](.*@LAKE.EXAMPLE)s/@.*//"],
        "proxy_users": {"trino": ["ann", "group:ops", "host:127.0.0.0/8"], "bob": ["*", "host:10.0.0.0/8"]},
        "receive_timeout_seconds": 2,
        "max_message_bytes": 2 * MB,
        **keys.tls,
    }
    with server_of(tmp_path_factory.mktemp("kerberos") / "data", realm, **options) as server:
        yield server


def whoami(client: ThriftClient) -> list[object]:
    found: list[object] = json.loads(client.get_config_value("", ""))
    return found


@pytest.fixture
def choosing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has clients choose a security layer, whatever the server offers."""
    from lake.protocol.connection import kerberos as of_client
    from lake.protocol.sasl.gssapi_layers import SecurityLayer

    def choose(name: str) -> None:
        layer = SecurityLayer[name.upper().replace("-", "_")]
        monkeypatch.setattr(of_client.Gssapi, "_layer", lambda self, offered: layer)

    return choose


class Recorded:
    """What goes over a client's socket, in both directions."""

    def __init__(self, client: ThriftClient) -> None:
        self.below = client._socket._below
        self.sent, self.received = bytearray(), bytearray()
        write, read = self.below.write, self.below.read

        def recorded_write(data: bytes) -> None:
            self.sent += data
            write(data)

        def recorded_read(size: int) -> bytes:
            data: bytes = read(size)
            self.received += data
            return data

        self.below.write, self.below.read = recorded_write, recorded_read


@pytest.mark.usefixtures("as_ann")
@pytest.mark.parametrize("layer", LAYERS)
def test_login_with_a_ticket(server: StandIn, choosing: Any, layer: str) -> None:
    choosing(layer)
    with server.client(BY_TICKET) as client:
        assert whoami(client) == ["ann", ["dev", "ops"], "kerberos", None]
        recorded = Recorded(client)
        assert len(client.get_partitions("db", "t", 20)) == 20_000
        assert client.get_database("nobody_reads_this" * 60_000).name == "nobody_reads_this" * 60_000
        seen = b"nobody_reads_this" in recorded.sent, b"nobody_reads_this" in recorded.received
        assert seen == (layer != "auth-conf", layer != "auth-conf")


@pytest.mark.usefixtures("as_ann")
def test_strongest_layer_unless_tls_encrypts(server: StandIn, keys: Keys) -> None:
    with server.client(BY_TICKET) as client:
        recorded = Recorded(client)
        client.get_database("secret")
        assert b"secret" not in recorded.sent
    within_tls = Login(authorities=keys.authority.file, kerberos_principal=f"metastore/_HOST@{REALM}")
    with ThriftClient("localhost", server.port, login=within_tls) as client:
        assert whoami(client)[0] == "ann"
        assert client._socket._mechanism.protection is None


@pytest.mark.usefixtures("as_ann")
def test_changed_repeated_and_plain_frames_end_the_connection(server: StandIn, choosing: Any) -> None:
    choosing("auth-int")

    def flipped(frame: bytes) -> bytes:
        return frame[:-1] + bytes((frame[-1] ^ 1,))

    def plain(frame: bytes) -> bytes:
        return frame[:4] + b"\x80\x01\x00\x01".ljust(len(frame) - 4, b"\0")

    for change in (flipped, plain, lambda frame: frame + frame):
        client = server.client(BY_TICKET)
        write = client._socket._below.write
        client._socket._below.write = lambda data, write=write, change=change: write(change(data))
        with pytest.raises(TTransportException):
            client.getVersion()
            client.getVersion()
        connection = server.lines("connection closed")[-1]
        assert connection["reason"] == "login", connection
        assert "a protected message can't be read" in connection["detail"]


@pytest.mark.usefixtures("as_ann")
def test_frames_that_are_too_long_or_never_end(server: StandIn) -> None:
    for header, sent, reason in ((1 << 24, b"", "message_size"), (MB, b"x" * (MB // 2), "receive_timeout")):
        client = server.client(BY_TICKET)
        connection: socket.socket = client._socket._below.handle
        with flat_memory(server.worker, 4 * MB):
            connection.sendall(header.to_bytes(4) + sent)
            assert server.end_of(connection)["reason"] == reason
        client.close()


@pytest.mark.usefixtures("as_ann")
def test_calls_that_come_together(server: StandIn, choosing: Any) -> None:
    """While one is answered, the frames of the next ones arrive: none is lost, and all in their order."""
    choosing("auth-conf")
    with server.client(BY_TICKET) as client:
        sasl_transport = client._socket
        waiting: list[bytes] = []
        below = sasl_transport._below
        write = below.write
        below.write = waiting.append
        names = [f"n{number}" + "x" * 50_000 * number for number in range(8)]
        for sequence, name in enumerate(names, 1):
            sasl_transport.write(call("get_database", name, sequence=sequence))
            sasl_transport.flush()
        below.write = write
        write(b"".join(waiting))
        for sequence, name in enumerate(names, 1):
            answered, _, got = client._protocol.readMessageBegin()
            assert (answered, got) == ("get_database", sequence)
            result = METHODS["get_database"].result()
            client._protocol._fast_decode(result, client._protocol, [type(result), type(result).thrift_spec])
            client._protocol.readMessageEnd()
            assert result.success.name == name


@pytest.mark.parametrize(
    ("acting_as", "outcome"), [("ann", ["ann", ["dev", "ops"], "kerberos", "trino"]), ("bob", None)]
)
def test_proxy_user(
    server: StandIn, tickets: dict[str, dict[str, str]], acting_as: str, outcome: list[object] | None
) -> None:
    login = Login(kerberos_principal=SERVER, acting_as=acting_as)
    with has_tickets(tickets["trino/coordinator"]):
        if outcome is not None:
            with server.client(login) as client:
                assert whoami(client) == outcome
            return
        with pytest.raises(LoginRefused, match="user trino may not act as 'bob'"):
            server.client(login)
    assert server.lines("login refused")[-1]["user"] == f"trino/coordinator@{REALM}"


def test_client_without_tickets(server: StandIn, realm: Realm, tmp_path: Path) -> None:
    with (
        has_tickets(realm.environment | {"KRB5CCNAME": str(tmp_path / "none")}),
        pytest.raises(LoginRefused, match=rf"can't log in to {SERVER} by Kerberos: .*klist"),
    ):
        server.client(BY_TICKET)


def test_call_without_a_login(server: StandIn) -> None:
    with server.client(Login()) as client, pytest.raises(TApplicationException, match="it takes kerberos"):
        client.getVersion()


@pytest.mark.usefixtures("as_ann")
def test_keytab_that_is_replaced(tmp_path: Path, realm: Realm) -> None:
    """The server takes it at the next login; who is connected doesn't notice."""
    keytab = tmp_path / "keytab"
    shutil.copy(realm.keytab, keytab)
    with server_of(tmp_path / "data", realm, kerberos_keytab=str(keytab)) as server, server.client(BY_TICKET) as client:
        keytab.unlink()
        with pytest.raises(LoginRefused, match="the server can't use its keytab"):
            server.client(BY_TICKET)
        assert str(keytab) in server.lines("login refused")[-1]["cause"]
        shutil.copy(realm.keytab, keytab)
        server.client(BY_TICKET).close()
        assert client.getVersion() == "stand-in"


def test_files_that_can_not_be_used(tmp_path: Path, realm: Realm) -> None:
    from metastore.server.credentials.kerberos import BadKeytab, Kerberos
    from metastore.settings import load

    other = tmp_path / "other"
    realm.extract(f"krbtgt/{REALM}@{REALM}", other)
    for file, text in ((tmp_path / "missing", "can't read the keytab"), (other, f"has no key of {SERVER}")):
        given = {"authentication": "kerberos", "kerberos_principal": SERVER, "kerberos_keytab": str(file)}
        with has_tickets(realm.environment), pytest.raises(BadKeytab, match=text):
            Kerberos(load(given)[0])


def test_logins_that_do_not_go_together() -> None:
    with pytest.raises(BadLogin, match="not by several of them"):
        Login(kerberos_principal=SERVER, user="ann", password="secret")
    with pytest.raises(BadLogin, match="logs in by password or Kerberos"):
        Login(acting_as="ann")
    environment = {"METASTORE_KERBEROS_PRINCIPAL": SERVER, "METASTORE_ACTING_AS": "ann"}
    assert Login.from_environment(environment) == Login(kerberos_principal=SERVER, acting_as="ann")
