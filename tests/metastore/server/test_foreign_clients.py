"""Clients of other protocols get an answer in their own, and one line of the log says what to configure."""

import http.client
import socket
import ssl
from collections.abc import Iterator

import pytest

from lake.protocol.codec.foreign import Foreign, recognised
from metastore.server.foreign_clients import ForeignClients
from tests.metastore.server.stand_in import StandIn


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with StandIn(tmp_path_factory.mktemp("foreign") / "data") as server:
        yield server
        with server.client() as client:
            assert client.getVersion() == "stand-in"
        assert server.lines("unexpected error in the event loop") == []


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_of_tls(server: StandIn, newest: ssl.TLSVersion) -> None:
    context = ssl.create_default_context()
    context.maximum_version = newest
    with pytest.raises(ssl.SSLError, match=r"(?i)alert.handshake.failure"), server.connect() as connection:
        context.wrap_socket(connection, server_hostname="localhost")


@pytest.mark.parametrize(("method", "status"), [("GET", 400), ("POST", 501), ("HEAD", 400), ("PUT", 400)])
def test_a_client_of_http(server: StandIn, method: str, status: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    body = b"\x80\x01\x00\x01" * 100_000 if method in ("POST", "PUT") else None
    connection.request(method, "/metastore", body=body, headers={"Content-Type": "application/x-thrift"})
    response = connection.getresponse()
    text = response.read().decode()
    assert response.status == status
    assert response.getheader("Connection") == "close"
    if method == "HEAD":
        assert text == ""
    else:
        assert "this port speaks plain Thrift" in text
        assert "hive.metastore.client.thrift.transport.mode=binary" in text
    connection.close()


@pytest.mark.parametrize("mechanism", [b"GSSAPI", b"PLAIN", b"DIGEST-MD5"])
def test_a_client_of_sasl(server: StandIn, mechanism: bytes) -> None:
    """As Thrift's TSaslClientTransport: a state, a length, the mechanism; then the same with what it has to say."""
    with server.connect() as connection:
        connection.sendall(b"\x01" + len(mechanism).to_bytes(4) + mechanism)
        connection.sendall(b"\x02" + (4).to_bytes(4) + b"\0u\0p")
        answer = connection.makefile("rb")
        assert answer.read(1) == b"\x03", "BAD: what comes is why"
        text = answer.read(int.from_bytes(answer.read(4))).decode()
        assert answer.read() == b""
    assert "hive.metastore.sasl.enabled=false" in text
    assert "this port speaks plain Thrift" in text


def test_first_bytes_that_come_one_by_one(server: StandIn) -> None:
    for first, answer in ((b"GET / HTTP/1.1", b"HTTP/1.1 400"), (b"\x16\x03\x01", b"\x15\x03\x01\x00\x02\x02")):
        with server.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in first[:-1]:
                connection.sendall(bytes([byte]))
            connection.sendall(first[-1:])
            got = b""
            while piece := connection.recv(1 << 16):
                got += piece
            assert got.startswith(answer)


def test_what_only_begins_like_http_is_no_thrift(server: StandIn) -> None:
    with server.connect() as connection:
        connection.sendall(b"GETTY")
        assert server.end_of(connection)["reason"] == "not_thrift"


def test_one_line_however_many_come(server: StandIn) -> None:
    for _ in range(50):
        with server.connect() as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 400"
    lines = [line for line in server.lines("connection closed") if line["reason"] == "http"]
    assert 1 <= len(lines) < 10
    assert "http_port" in lines[0]["detail"]


def test_the_next_line_says_how_many_were_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[dict[str, object]] = []
    now = [0.0]
    monkeypatch.setattr("metastore.server.foreign_clients.time.monotonic", lambda: now[0] + 1_000)
    monkeypatch.setattr("metastore.server.foreign_clients.log.warning", lambda _event, **facts: said.append(facts))
    clients, tls = ForeignClients(), recognised(b"\x16\x03\x01")
    assert isinstance(tls, Foreign)
    for moment in (0.0, 1.0, 2.0, 11.0):
        now[0] = moment
        clients.rejected("127.0.0.1:1", tls)
    assert [(each["reason"], each["others"]) for each in said] == [("tls", 0), ("tls", 2)]
