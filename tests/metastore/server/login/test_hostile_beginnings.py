"""Handshakes and requests in which a byte is another, that are cut off, or that go on with anything.

Whatever comes, the connection ends soon, nothing of the server's insides is told, and its memory stays.
"""

import contextlib
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.protocol.sasl import messages as sasl
from lake.protocol.sasl.messages import Status
from metastore.server.credentials import logins
from tests.metastore.server.login.conftest import Keys
from tests.metastore.server.stand_in import StandIn, call, flat_memory

MB = 1 << 20


def _hello() -> bytes:
    """The first bytes of a TLS client."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


REQUEST = b"POST /metastore HTTP/1.1\r\nHost: x\r\nx-actor-username: ann\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /metastore HTTP/1.1\r\nHost: x\r\nx-actor-username: ann\r\nTransfer-Encoding: chunked\r\n\r\n"
MESSAGE = call("getVersion")

BEGINNINGS = {
    "tls": _hello(),
    "length": REQUEST % len(MESSAGE) + MESSAGE,
    "chunks": CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(MESSAGE), MESSAGE),
    "thrift": MESSAGE,
    # At last: hashes are still computed when the connections have ended.
    "plain": sasl.message(Status.START, b"PLAIN") + sasl.message(Status.OK, b"\0ann\0secret"),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Iterator[StandIn]:
    """It speaks everything, and has little patience."""
    more = {
        "authentication": "plain,header",
        "password_file": str(keys.users),
        "credentials_without_tls": True,
        "login_timeout_seconds": 1,
        "receive_timeout_seconds": 1,
    }
    directory: Path = tmp_path_factory.mktemp("beginnings") / "data"
    with StandIn(directory, **keys.tls, **more) as server:
        yield server
        for event in ("unexpected error in the event loop", "a request's thread failed", "internal error"):
            assert server.lines(event) == []


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_any_change_ends_the_connection_soon(server: StandIn, kind: str) -> None:
    whole = BEGINNINGS[kind]

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(whole) - 1))
        match data.draw(st.sampled_from(["byte", "cut", "more", "half"])):
            case "byte":
                sent = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]
            case "cut":
                sent = whole[:at]
            case "more":
                sent = whole + data.draw(st.binary(max_size=200))
            case _:
                sent = whole[:at] + whole
        with server.connect() as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(10)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := connection.recv(1 << 16):
                    answer += piece
            assert b"Traceback" not in answer
            assert len(answer) < 10_000

    hashing = logins.CHECK_THREADS * 32 * MB if kind == "plain" else 0
    with flat_memory(server.worker, hashing + 40 * MB):
        check()
