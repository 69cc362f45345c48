"""TLS on the port of plain Thrift."""

import contextlib
import json
import shutil
import socket
import ssl
import time
from pathlib import Path

import pytest
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.login import Login, LoginRefused
from tests.metastore.server.login.conftest import Keys
from tests.metastore.server.stand_in import StandIn, call, flat_memory, is_closed, read_reply
from tests.support.certificates import Authority
from tests.support.waiting import wait_until

MB = 1 << 20


def _wrapped(server: StandIn, keys: Keys, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(keys.authority.file))
    context.maximum_version = newest
    return context.wrap_socket(server.connect(), server_hostname="localhost")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, keys: Keys):
    with StandIn(tmp_path_factory.mktemp("tls") / "data", **keys.tls) as server:
        yield server
        assert server.lines("unexpected error in the event loop") == []


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_thrift_within_tls_beside_plain_thrift(server: StandIn, keys: Keys, newest: ssl.TLSVersion) -> None:
    with _wrapped(server, keys, newest) as connection, server.client() as plain:
        assert connection.version() == newest.name.replace("_", ".")
        for number in range(3):
            connection.sendall(call("getMetaConf", "0", sequence=number))
            assert read_reply(connection) == (number, "0")
        assert plain.getVersion() == "stand-in"


@pytest.mark.long
def test_large_messages_and_replies(server: StandIn, keys: Keys) -> None:
    with server.client(keys.login()) as client, flat_memory(server.worker, 40 * MB):
        assert len(client.get_partitions("db", "t", 60)) == 60_000
        assert client.get_database("x" * 5 * MB).name == "x" * 5 * MB


def test_a_reader_that_is_slow_is_waited_for_within_tls(server: StandIn, keys: Keys) -> None:
    with _wrapped(server, keys) as connection, flat_memory(server.worker, 20 * MB):
        connection.sendall(call("get_partitions", "db", "t", 60))
        time.sleep(0.5)
        got = 0
        while got < 30 * MB:
            got += len(connection.recv(1 << 20))


def test_bytes_that_come_one_by_one(server: StandIn, keys: Keys) -> None:
    context = ssl.create_default_context(cafile=str(keys.authority.file))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with server.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                break
            for byte in outgoing.read():
                connection.sendall(bytes([byte]))
            incoming.write(connection.recv(1 << 16))
        tls.write(call("getVersion"))
        for byte in outgoing.read():
            connection.sendall(bytes([byte]))
        incoming.write(connection.recv(1 << 16))
        assert b"stand-in" in tls.read(1 << 16)


def test_first_call_together_with_the_end_of_the_handshake(server: StandIn, keys: Keys) -> None:
    """In TLS 1.3 a client may send its first call before it has heard the server's last word."""
    context = ssl.create_default_context(cafile=str(keys.authority.file))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with server.connect() as connection:
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        connection.sendall(outgoing.read())
        incoming.write(connection.recv(1 << 16))
        tls.do_handshake()
        tls.write(call("getVersion"))
        connection.sendall(outgoing.read())
        incoming.write(connection.recv(1 << 16))
        assert b"stand-in" in tls.read(1 << 16)


def test_tls_within_tls_is_refused(server: StandIn, keys: Keys) -> None:
    with _wrapped(server, keys) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert connection.recv(100) == b"\x15\x03\x01\x00\x02\x02\x28"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
@pytest.mark.parametrize("version", ["TLSv1", "TLSv1_1"])
def test_older_versions_are_refused(server: StandIn, version: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    with pytest.raises(ssl.SSLError), server.connect() as connection:
        context.wrap_socket(connection)


def test_client_that_does_not_trust_the_server(server: StandIn, tmp_path: Path) -> None:
    with pytest.raises(LoginRefused, match="isn't trusted"):
        server.client(Login(authorities=Authority(tmp_path).file))


@pytest.mark.long
def test_end_of_the_connection_is_said_within_tls(tmp_path: Path, keys: Keys) -> None:
    """Without close_notify the client would have to take the end for an attack."""
    with StandIn(tmp_path / "data", **keys.tls) as server, _wrapped(server, keys) as waiting:
        waiting.suppress_ragged_eofs = False
        waiting.sendall(call("getVersion"))
        assert read_reply(waiting) == (1, "stand-in")
        server.stop()
        assert waiting.recv(1) == b""


def test_plain_connections_can_be_refused(tmp_path: Path, keys: Keys) -> None:
    with StandIn(tmp_path / "data", **keys.tls, tls_required=True) as server:
        with server.client() as client, pytest.raises(TApplicationException, match=r"hive\.metastore\.use\.SSL=true"):
            client.getVersion()
        with server.client(keys.login()) as client:
            assert client.getVersion() == "stand-in"
        [line] = server.lines("connection closed")
        assert line["reason"] == "not_encrypted"


@pytest.mark.long
def test_renewed_files_are_taken_and_broken_ones_are_not(tmp_path: Path, keys: Keys) -> None:
    def serial(server: StandIn) -> str:
        with _wrapped(server, keys) as connection:
            return str(connection.getpeercert()["serialNumber"])  # type: ignore[index]

    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    shutil.copy(keys.certificate, certificate)
    shutil.copy(keys.key, key)
    with StandIn(tmp_path / "data", tls_certificate=str(certificate), tls_key=str(key)) as server:
        before = serial(server)
        with _wrapped(server, keys) as old:
            certificate.write_text("not a certificate")
            [line] = wait_until(lambda: server.lines("renewed files of TLS can't be used; the ones before stay in use"))
            assert "certificate.pem" in line["error"]
            assert serial(server) == before
            renewed, renewed_key = keys.authority.issue("renewed", "localhost")
            renewed_key.replace(key)
            renewed.replace(certificate)
            wait_until(lambda: server.lines("renewed files of TLS are in use"))
            assert serial(server) != before
            old.sendall(call("getVersion"))
            assert read_reply(old) == (1, "stand-in")


# -- certificates of clients ---------------------------------------------------------------------------------


def test_certificate_is_an_identity(closed_server: StandIn, keys: Keys) -> None:
    certificate, key = keys.authority.issue("carol", "carol@example.com", common_name="carol")
    login = Login(authorities=keys.authority.file, certificate=certificate, key=key)
    with closed_server.client(login) as client:
        assert client.get_database("x" * MB).name == "x" * MB, "who has logged in may send much at once"
        assert json.loads(client.get_config_value("", "")) == ["carol", [], "certificate", None]


def test_certificate_of_another_authority(closed_server: StandIn, keys: Keys, tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path).issue("carol", common_name="carol")
    login = Login(authorities=keys.authority.file, certificate=certificate, key=key)
    with pytest.raises(LoginRefused, match="UNKNOWN_CA"), closed_server.client(login) as client:
        client.getVersion()


def test_certificate_without_such_a_name(closed_server: StandIn, keys: Keys) -> None:
    certificate, key = keys.authority.issue("nameless", "nobody.example.com")
    login = Login(authorities=keys.authority.file, certificate=certificate, key=key)
    with pytest.raises(TTransportException), closed_server.client(login) as client:
        client.getVersion()
    assert "0 names of the kind cn" in closed_server.lines("login refused")[-1]["cause"]


# -- hostile clients -----------------------------------------------------------------------------------------


def test_half_open_handshakes_count_and_end(tmp_path: Path, keys: Keys) -> None:
    settings = {"login_timeout_seconds": 1, "max_connections": 20}
    with StandIn(tmp_path / "data", **keys.tls, **settings) as server, contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(server.connect()).sendall(b"\x16\x03\x01\x02\x00\x01")
        wait_until(lambda: _refused(server))
        wait_until(lambda: len(server.lines("connection closed")) == 20)
        assert {line["reason"] for line in server.lines("connection closed")} == {"login_timeout"}
        with server.client(keys.login()) as client:
            assert client.getVersion() == "stand-in"


def _refused(server: StandIn) -> bool:
    with server.connect() as further:
        further.settimeout(0.2)
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            return further.recv(1) == b""
    return is_closed(further)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\xff\xff" + b"\x01" * 70_000,
        b"\x16\x03\x01\x40\x00" + b"\x01\x00\x3f\xfc" + b"\x03\x03" * 8_000,
        b"\x16\x03\x03\x00\x01\x00" * 3_000,
        b"\x16\x03\x01\x00\x05\x01\x00\xff\xff\xff" * 2_000,
    ],
    ids=["too long a record", "a long hello", "empty records", "an endless hello"],
)
def test_what_is_no_handshake_ends_the_connection(closed_server: StandIn, data: bytes) -> None:
    with closed_server.connect() as connection, flat_memory(closed_server.worker, 5 * MB):
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        assert closed_server.end_of(connection)["reason"] in ("tls", "login_size")
