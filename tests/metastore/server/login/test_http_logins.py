"""Thrift over HTTP, and bearer tokens."""

import base64
import contextlib
import http.client
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException
from thrift.transport.THttpClient import THttpClient
from thrift.transport.TTransport import TBufferedTransport

from lake.protocol.connection.login import Login, LoginRefused
from tests.metastore.server.login.conftest import Keys
from tests.metastore.server.stand_in import StandIn, call, flat_memory
from tests.support.json_web_keys import AUDIENCE, ISSUER, KeyServer
from tests.support.waiting import wait_until

MB = 1 << 20


@pytest.fixture(scope="module")
def key_server() -> Iterator[KeyServer]:
    server = KeyServer()
    server.add("a")
    server.add("e", "EC")
    yield server
    server.close()


def settings_of(keys: str, **more: Any) -> dict[str, Any]:
    return {"authentication": "jwt", "jwt_keys": keys, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE} | more


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, key_server: KeyServer) -> Iterator[StandIn]:
    """It takes tokens without TLS, so that tests may speak HTTP by hand."""
    settings = settings_of(key_server.url, credentials_without_tls=True, login_timeout_seconds=2)
    with StandIn(tmp_path_factory.mktemp("http") / "data", **settings) as server:
        yield server
        assert server.lines("unexpected error in the event loop") == []
        assert server.lines("a request's thread failed") == []
        assert server.lines("a request's login can't be checked") == []


@pytest.fixture(scope="module")
def header_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandIn]:
    with StandIn(tmp_path_factory.mktemp("header") / "data", authentication="header,none") as server:
        yield server


@pytest.mark.long
def test_calls_with_a_token_within_tls(tmp_path: Path, keys: Keys, key_server: KeyServer) -> None:
    with StandIn(tmp_path / "data", **settings_of(key_server.url), **keys.tls) as server:
        login = Login(authorities=keys.authority.file, token=key_server.token())
        with server.client(login) as client, flat_memory(server.worker, 40 * MB):
            assert json.loads(client.get_config_value("", "")) == ["ann", ["dev"], "jwt", None]
            assert len(client.get_partitions("db", "t", 40)) == 40_000
            assert client.get_database("x" * 3 * MB).name == "x" * 3 * MB
            client.shutdown()
            assert client.getVersion() == "stand-in"
        assert len(server.lines("login")) == 1, "one session, however many requests"
        with pytest.raises(LoginRefused, match="within TLS only"), server.client(Login(token=key_server.token())) as it:
            it.getVersion()
        with server.client() as client, pytest.raises(TApplicationException, match="has not logged in"):
            client.getVersion()


@pytest.mark.parametrize("path", ["/metastore", "/metastore/", "/metastore/*"])
def test_thrifts_own_client(server: StandIn, key_server: KeyServer, path: str) -> None:
    http_client = THttpClient(f"http://127.0.0.1:{server.port}{path}")
    http_client.setCustomHeaders({"Authorization": f"Bearer {key_server.token('e', 'ES256')}"})
    for _ in range(2):
        transport = TBufferedTransport(http_client)
        transport.write(call("getVersion"))
        transport.flush()
        assert TBinaryProtocolAccelerated(transport, fallback=False).readMessageBegin()[0] == "getVersion"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda keys: keys.token(exp=int(time.time()) - 120), "has expired"),
        (lambda keys: keys.token(exp=None), "not valid"),
        (lambda keys: keys.token(iss="https://another.example"), "not valid"),
        (lambda keys: keys.token(aud="another"), "not valid"),
        (lambda keys: keys.token(aud=None), "not valid"),
        (lambda keys: keys.token(iss=None), "not valid"),
        (lambda keys: keys.token(sub=None), "not valid"),
        (lambda keys: keys.token(sub=""), "name can't be used"),
        (lambda keys: keys.token(groups=[1]), "names no user"),
        (lambda keys: keys.token(nbf=int(time.time()) + 600), "not valid"),
        (lambda keys: keys.token()[:-8] + "AAAAAAAA", "not valid"),
        (lambda keys: jwt.encode({"sub": "ann"}, None, "none"), "algorithm is not accepted"),
        (lambda keys: keys.token(algorithm="RS512"), "algorithm is not accepted"),
        (lambda keys: jwt.encode({"sub": "ann"}, b"k" * 32, "HS256"), "algorithm is not accepted"),
        (lambda keys: "x" * 20_000, "too long"),
        (lambda keys: "a.b.c", "not valid"),
        (lambda keys: "", "not valid"),
    ],
    ids=[
        "expired", "no exp", "iss", "aud", "no aud", "no iss", "no sub", "empty sub", "groups", "nbf", "signature",
        "alg none", "alg not listed", "alg HS256", "too long", "garbage", "nothing",
    ],
)  # fmt: skip
def test_tokens_that_are_refused(
    server: StandIn, key_server: KeyServer, make: Callable[[KeyServer], str], text: str
) -> None:
    status, body = post(server, call("getVersion"), {"Authorization": f"Bearer {make(key_server)}"})
    assert status == 401
    assert text in body
    assert "Traceback" not in body


@pytest.mark.long
def test_key_that_was_added_later(tmp_path: Path) -> None:
    keys = KeyServer()
    keys.add("a")
    with StandIn(tmp_path / "data", **settings_of(keys.url, credentials_without_tls=True)) as server:
        assert post(server, call("getVersion"), bearer(keys))[0] == 200
        asked = keys.asked
        forged = {"Authorization": f"Bearer {keys.token()}"}
        keys.add("later")
        for _ in range(5):  # within the rate keys are fetched no second time
            assert post(server, call("getVersion"), {"Authorization": f"Bearer {keys.token('later')}"})[0] == 401
        assert keys.asked == asked
        assert post(server, call("getVersion"), forged)[0] == 200
    keys.close()


def test_keys_in_a_file(tmp_path: Path) -> None:
    keys = KeyServer()
    keys.add("a")
    file = tmp_path / "keys.json"
    file.write_bytes(keys.key_set())
    with StandIn(tmp_path / "data", **settings_of(str(file), credentials_without_tls=True)) as server:
        assert post(server, call("getVersion"), bearer(keys))[0] == 200
        keys.add("later")
        assert post(server, call("getVersion"), {"Authorization": f"Bearer {keys.token('later')}"})[0] == 401
        file.write_bytes(keys.key_set())
        assert post(server, call("getVersion"), {"Authorization": f"Bearer {keys.token('later')}"})[0] == 200
        file.write_text("{}")
        assert post(server, call("getVersion"), bearer(keys))[0] == 200, "a broken file changes nothing"
        assert server.lines("the renewed file of keys can't be used")
    keys.close()


@pytest.mark.long
def test_server_of_keys_that_does_not_answer(tmp_path: Path) -> None:
    keys = KeyServer()
    keys.add("a")
    keys.silent.set()
    with StandIn(tmp_path / "data", **settings_of(keys.url, credentials_without_tls=True)) as server:
        began = time.monotonic()
        status, body = post(server, call("getVersion"), bearer(keys))
        assert (status, time.monotonic() - began < 8) == (503, True)
        assert "can't be checked" in body
    keys.close()


# -- requests ------------------------------------------------------------------------------------------------


def test_passwords_instead_of_a_token(tmp_path: Path, keys: Keys, key_server: KeyServer) -> None:
    settings = settings_of(key_server.url, authentication="plain,jwt", password_file=str(keys.users))
    with StandIn(tmp_path / "data", **settings, credentials_without_tls=True) as server:
        for password, status in (("secret", 200), ("guess", 401)):
            sent = base64.b64encode(f"ann:{password}".encode()).decode()
            answer = post(server, call("getVersion"), {"Authorization": f"Basic {sent}"})
            assert answer[0] == status, answer
        assert [line["mechanism"] for line in server.lines("login")] == ["plain"]
        [refused] = server.lines("login refused")
        assert (refused["user"], refused["mechanism"]) == ("ann", "plain")
        assert "guess" not in server.log.read_text()


def test_header_that_the_server_believes(header_server: StandIn) -> None:
    status, body = post(header_server, call("get_config_value", "", ""), {"x-actor-username": "ann"}, raw=True)
    assert status == 200
    assert b'["ann", [], "header", null]' in body
    status, body = post(header_server, call("get_config_value", "", ""), {}, raw=True)
    assert b'[null, [], "none", null]' in body


def test_users_who_share_a_connection(header_server: StandIn) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", header_server.port, timeout=20)
    for user in ("ann", "bob", "bob", "ann"):
        connection.request("POST", "/metastore", call("get_config_value", "", ""), {"x-actor-username": user})
        assert f'["{user}", [], "header", null]'.encode() in connection.getresponse().read()
    connection.request("POST", "/metastore", call("get_config_value", "", ""))
    assert b'[null, [], "none", null]' in connection.getresponse().read()


def test_set_ugi_changes_nobody_who_has_logged_in(closed_server: StandIn, keys: Keys) -> None:
    """The stand-in's own `set_ugi` does: what is tested here is the server's."""
    from metastore.api.configuration import set_ugi
    from metastore.api.methods import Call
    from metastore.api.session import Session
    from metastore.services.access.caller import Caller

    nothing: Any = None
    proven = Session("1", Caller("ann", ("dev",), "plain"))
    assert set_ugi(Call(proven, nothing, False), "root", ["wheel"]) == ["wheel", "root"]
    assert (proven.caller.user, proven.caller.groups) == ("ann", ("dev",))
    claimed = Session("1", Caller(None))
    assert set_ugi(Call(claimed, nothing, False), "root", ["wheel"]) == ["wheel"]
    assert (claimed.caller.user, claimed.caller.groups) == ("root", ("wheel",))


def test_chunks_pipelines_and_continue(server: StandIn, key_server: KeyServer) -> None:
    message = call("getVersion")
    head = f"POST /metastore HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key_server.token()}\r\n".encode()
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    chunked += b"".join(b"%x\r\n%b\r\n" % (1, message[at : at + 1]) for at in range(len(message))) + b"0\r\n\r\n"
    whole = head + b"Content-Length: %d\r\n\r\n" % len(message) + message
    with server.connect() as connection:
        connection.sendall(chunked + whole + chunked)
        stream = connection.makefile("rb")
        for _ in range(3):
            assert b"stand-in" in response(stream)[1]
        connection.sendall(head + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(message))
        assert stream.readline() == b"HTTP/1.1 100 \r\n"
        assert stream.readline() == b"\r\n"
        connection.sendall(message)
        assert b"stand-in" in response(stream)[1]
        for byte in whole:
            connection.sendall(bytes([byte]))
        assert b"stand-in" in response(stream)[1]


def test_long_reply_comes_in_chunks(server: StandIn, key_server: KeyServer) -> None:
    with flat_memory(server.worker, 20 * MB):
        status, body = post(server, call("get_partitions", "db", "t", 60), bearer(key_server), raw=True)
    assert (status, len(body) > 30 * MB) == (200, True)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/metastore", 405), ("GET", "/", 404), ("POST", "/other", 404), ("PUT", "/metastore", 405)],
)
def test_other_requests(server: StandIn, method: str, path: str, status: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request(method, path)
    answer = connection.getresponse()
    assert answer.status == status
    assert answer.getheader("Connection") == "close"
    assert len(answer.read()) < 200


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "http"),
        (b"nonsense", "not_thrift"),
        (call("getVersion")[:-1], "http"),
        (call("getVersion") + call("getVersion"), "malformed"),
    ],
    ids=["empty", "no Thrift", "half a message", "two messages"],
)
def test_bodies_that_are_not_one_message(server: StandIn, key_server: KeyServer, body: bytes, reason: str) -> None:
    head = f"POST /metastore HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key_server.token()}\r\n"
    with server.connect() as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        line = server.end_of(connection)
    assert line["reason"] == reason


@pytest.mark.parametrize(
    "data",
    [
        b"POST /metastore HTTP/1.1\r\nHost: x\r\n" + b"X: " + b"x" * 200_000,
        b"POST /metastore HTTP/1.1\r\n" + b"X: y\r\n" * 100_000,
        b"POST /metastore HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST /metastore HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"POST /metastore HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /metastore\r\n\r\n",
        b"POST \xff\xfe HTTP/9.9\r\n\r\n",
        b"POST /metastore HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 300_000,
        b"POST /metastore HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YTpi\r\nContent-Length: 0\r\n\r\n",
        b"POST /metastore HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
    ],
    ids=[
        "long header", "many headers", "two lengths", "gzip", "negative length", "no version", "bytes",
        "no login and a long body", "Basic", "two logins",
    ],
)  # fmt: skip
def test_hostile_requests(server: StandIn, data: bytes) -> None:
    with server.connect() as connection, flat_memory(server.worker, 5 * MB):
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        with contextlib.suppress(ConnectionError):
            answer = connection.recv(1 << 16)
            assert re.match(rb"HTTP/1.1 [45]\d\d ", answer)
            assert b"Traceback" not in answer
        assert server.end_of(connection)["reason"] == "http"


def test_nonsense_behind_a_message_that_is_answered(server: StandIn, key_server: KeyServer) -> None:
    """The end of the body is malformed, while a thread works on the message."""
    head = f"POST /metastore HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key_server.token()}\r\n"
    message = call("getMetaConf", "0.5")
    with server.connect() as connection:
        chunk = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\nnonsense\r\n" % (len(message), message)
        connection.sendall(head.encode() + chunk)
        assert server.end_of(connection)["reason"] == "http"
    time.sleep(0.6)  # in which the thread ends, whose reply nobody takes
    assert server.lines("unexpected error in the event loop") == []


def test_request_that_never_ends(server: StandIn) -> None:
    with server.connect() as connection:
        connection.sendall(b"POST /metastore HTTP/1.1\r\nHost: x\r\n")
        assert server.end_of(connection)["reason"] == "receive_timeout"


@pytest.mark.long
def test_stop_while_a_request_is_answered(tmp_path: Path) -> None:
    with StandIn(tmp_path / "data", authentication="header") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("POST", "/metastore", call("getMetaConf", "1"), {"x-actor-username": "ann"})
        time.sleep(0.3)
        threading.Thread(target=server.stop).start()
        answer = connection.getresponse()
        assert (answer.status, answer.read()[-2:]) == (200, b"1\x00")
        wait_until(lambda: server.stopped)


def bearer(keys: KeyServer) -> dict[str, str]:
    return {"Authorization": f"Bearer {keys.token()}"}


def post(server: StandIn, body: bytes, headers: dict[str, str], *, raw: bool = False) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request("POST", "/metastore", body, headers)
    answer = connection.getresponse()
    found = answer.read()
    connection.close()
    return answer.status, found if raw else found.decode(errors="replace")


def response(stream: Any) -> tuple[bytes, bytes]:
    status = stream.readline()
    length = 0
    while (line := stream.readline()) != b"\r\n":
        if line.lower().startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    return status, stream.read(length)
