"""Logins by SASL PLAIN, and what is refused to those who don't log in."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.login import Login, LoginRefused
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.sasl import messages as sasl
from lake.protocol.sasl.messages import Status
from metastore.server.credentials import password_file
from tests.metastore.server.login.conftest import Keys
from tests.metastore.server.stand_in import AnyProtocolClient, StandIn, call, flat_memory, is_closed, read_reply
from tests.support.waiting import wait_until

MB = 1 << 20


def whoami(client: ThriftClient) -> list[object]:
    found: list[object] = json.loads(client.get_config_value("", ""))
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Iterator[StandIn]:
    """It takes passwords without TLS, so that tests may speak SASL by hand."""
    settings = {
        "authentication": "plain",
        "password_file": str(keys.users),
        "credentials_without_tls": True,
        "login_timeout_seconds": 3,
        "login_max_bytes": 4096,
        "proxy_users": "trino=ann",
    }
    with StandIn(tmp_path_factory.mktemp("passwords") / "data", **settings) as server:
        yield server
        with server.client(Login(user="ann", password="secret")) as client:
            assert client.getVersion() == "stand-in"
        assert server.lines("unexpected error in the event loop") == []
        assert server.lines("a request's thread failed") == []
        assert server.lines("a login failed with an error") == []


def test_password_within_tls(closed_server: StandIn, keys: Keys) -> None:
    with closed_server.client(keys.login("ann", "secret")) as client:
        assert whoami(client) == ["ann", ["dev", "ops"], "plain", None]
        assert len(client.get_partitions("db", "t", 20)) == 20_000
        assert client.get_database("x" * MB).name == "x" * MB
    [line] = [line for line in closed_server.lines("login") if line["user"] == "ann"][-1:]
    assert (line["mechanism"], line["encrypted"]) == ("plain", True)


@pytest.mark.parametrize(("user", "password"), [("ann", "wrong"), ("nobody", "secret"), ("ann", "secret ")])
def test_wrong_password(closed_server: StandIn, keys: Keys, user: str, password: str) -> None:
    with pytest.raises(LoginRefused, match="wrong user or password"):
        closed_server.client(keys.login(user, password))
    text = closed_server.log.read_text()
    assert f'"{password}"' not in text
    assert closed_server.lines("login refused")[-1]["user"] == user


def test_password_without_tls_is_refused_unread(closed_server: StandIn) -> None:
    with pytest.raises(LoginRefused, match="within TLS only"):
        closed_server.client(Login(user="ann", password="secret"))


@pytest.mark.parametrize(("framed", "compact"), [(False, False), (True, False), (False, True), (True, True)])
def test_call_without_a_login(server: StandIn, framed: bool, compact: bool) -> None:
    with pytest.raises(TApplicationException, match="answers nobody who has not logged in"):
        AnyProtocolClient(server.port, framed=framed, compact=compact).call("getVersion")


@pytest.mark.parametrize(("framed", "compact"), [(False, False), (True, False), (False, True), (True, True)])
def test_what_follows_an_introduction_is_answered_too(server: StandIn, framed: bool, compact: bool) -> None:
    """Hive's clients take no notice of what becomes of `set_ugi`."""
    client = AnyProtocolClient(server.port, framed=framed, compact=compact)
    for name, arguments in (("set_ugi", ("ann", [])), ("getVersion", ())):
        with pytest.raises(TApplicationException, match="answers nobody who has not logged in"):
            client.call(name, *arguments)
    with pytest.raises(TTransportException):
        client.call("getVersion")
    with server.connect() as connection:
        connection.sendall(call("set_ugi", "ann", []) * 2 + call("getVersion"))
        assert server.end_of(connection)["reason"] == "not_logged_in"


def test_call_without_a_login_is_refused_though_it_never_ends(server: StandIn) -> None:
    with server.connect() as connection, flat_memory(server.worker, 5 * MB):
        with contextlib.suppress(ConnectionError):
            connection.sendall(call("get_database", "x" * 20 * MB)[: 10 * MB])
        assert server.end_of(connection)["reason"] == "login_size"


def test_silent_connection_ends(server: StandIn) -> None:
    with server.connect() as connection:
        assert server.end_of(connection)["reason"] == "login_timeout"


def test_frames_of_any_size_and_replies_in_frames(server: StandIn) -> None:
    with logged_in(server) as connection:
        message = call("getMetaConf", "0")
        for size in (1, 7, len(message)):
            frames = [message[at : at + size] for at in range(0, len(message), size)]
            connection.sendall(b"".join(len(each).to_bytes(4) + each for each in [*frames, b""]))
            reply = connection.makefile("rb").read(4 + len(answer_of("getMetaConf", "0")))
            assert reply == len(reply[4:]).to_bytes(4) + answer_of("getMetaConf", "0")
        connection.sendall((2 * len(message)).to_bytes(4) + message + message)  # two calls in a frame
        assert connection.makefile("rb").read(2 * len(reply)) == 2 * reply


def test_nothing_but_a_frame_follows(server: StandIn) -> None:
    with logged_in(server) as connection:
        connection.sendall(b"\xff\xff\xff\xff")
        assert server.end_of(connection)["reason"] == "message_size"


@pytest.mark.parametrize(
    ("authorization", "user", "password", "outcome"),
    [
        ("ann", "trino", "proxy", ["ann", ["dev", "ops"], "plain", "trino"]),
        ("trino", "trino", "proxy", ["trino", [], "plain", None]),
        ("bob", "trino", "proxy", "user trino may not act as 'bob'"),
        ("bob", "ann", "secret", "user ann may not act as 'bob'"),
        ("ann", "trino", "wrong", "wrong user or password"),
    ],
)
def test_acting_as_somebody_else(
    server: StandIn, authorization: str, user: str, password: str, outcome: list[object] | str
) -> None:
    with server.connect() as connection:
        answer = negotiate(connection, f"{authorization}\0{user}\0{password}".encode())
        if isinstance(outcome, str):
            assert answer.status is Status.BAD
            assert outcome in answer.payload.decode()
            return
        assert answer == (Status.COMPLETE, b"")
        message = call("get_config_value", "", "")
        connection.sendall(len(message).to_bytes(4) + message)
        connection.recv(4)
        assert json.loads(read_reply(connection)[1]) == outcome


def test_client_that_waits_for_a_challenge(server: StandIn) -> None:
    with server.connect() as connection:
        assert negotiate(connection, b"") == (Status.OK, b"")
        connection.sendall(sasl.message(Status.COMPLETE, b"\0ann\0secret"))
        assert read_message(connection).status is Status.COMPLETE


@pytest.mark.parametrize(
    ("sent", "status", "text"),
    [
        (sasl.message(Status.START, b"GSSAPI"), Status.BAD, "Unsupported mechanism type GSSAPI"),
        (sasl.message(Status.OK, b"PLAIN"), Status.ERROR, "Expecting START status"),
        (sasl.message(Status.START, b"PLAIN") * 2, Status.ERROR, "Expected OK or COMPLETE, got START"),
        (sasl.message(Status.START, b"PLAIN") + sasl.message(Status.OK, b"ann"), Status.BAD, "two NUL characters"),
        (sasl.message(Status.START, b"PLAIN") + sasl.message(Status.OK, b"\0ann\0"), Status.BAD, "two NUL characters"),
        (sasl.message(Status.START, b"PLAIN") + sasl.message(Status.OK, b"\0\xff\0a"), Status.BAD, "UTF-8"),
    ],
    ids=["mechanism", "no start", "two starts", "no NUL", "no password", "no UTF-8"],
)
def test_what_negotiation_is_refused_with(server: StandIn, sent: bytes, status: Status, text: str) -> None:
    with server.connect() as connection:
        connection.sendall(sent)
        answer = read_message(connection)
        assert answer.status is status
        assert text in answer.payload.decode()
        assert connection.recv(1) == b""


@pytest.mark.long
def test_failed_logins_are_slowed(tmp_path: Path, keys: Keys) -> None:
    settings = {"authentication": "plain", "password_file": str(keys.users), "credentials_without_tls": True}
    with StandIn(tmp_path / "data", **settings) as server:
        took = []
        for _ in range(5):
            began = time.monotonic()
            with pytest.raises(LoginRefused):
                server.client(Login(user="ann", password="wrong"))
            took.append(time.monotonic() - began)
        assert took[4] >= 1
        with server.client(Login(user="ann", password="secret")) as client:  # who knows the password doesn't wait
            assert client.getVersion() == "stand-in"


def test_changed_file_of_passwords(tmp_path: Path) -> None:
    users = tmp_path / "users"
    password_file.add(users, "ann", "old", (), allow_weak=True)
    settings = {"authentication": "plain", "password_file": str(users), "credentials_without_tls": True}
    with StandIn(tmp_path / "data", **settings) as server:
        for password in ("old", "old"):  # the second time it is remembered
            server.client(Login(user="ann", password=password)).close()
        password_file.add(users, "ann", "new", ("admins",), allow_weak=True)
        with pytest.raises(LoginRefused, match="wrong user or password"):
            server.client(Login(user="ann", password="old"))
        with server.client(Login(user="ann", password="new")) as client:
            assert whoami(client)[1] == ["admins"]
            content = users.read_text()
            users.write_text("nonsense")
            with pytest.raises(LoginRefused, match="passwords can't be checked"):
                server.client(Login(user="ann", password="new"))
            assert client.getVersion() == "stand-in", "who is in stays in"
            users.write_text(content)
            password_file.remove(users, "ann")
            with pytest.raises(LoginRefused, match="wrong user or password"):
                server.client(Login(user="ann", password="new"))


def test_password_hook(tmp_path: Path) -> None:
    (tmp_path / "door.py").write_text(
        "import time\n"
        "def check(user, password, peer):\n"
        "    if user == 'slow': time.sleep(60)\n"
        "    if user == 'broken': raise RuntimeError(password)\n"
        "    return ['guests'] if password == user[::-1] else None\n"
    )
    settings = {
        "authentication": "plain",
        "password_hook": "door:check",
        "password_hook_seconds": 0.5,
        "credentials_without_tls": True,
    }
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', Path.cwd())}"}
    with StandIn(tmp_path / "data", environment=environment, **settings) as server:
        with server.client(Login(user="ann", password="nna")) as client:
            assert whoami(client) == ["ann", ["guests"], "plain", None]
        for user, text in (("ann", "wrong user"), ("slow", "can't be checked"), ("broken", "can't be checked")):
            with pytest.raises(LoginRefused, match=text):
                server.client(Login(user=user, password="guess"))
        assert "guess" not in server.log.read_text()


# -- hostile clients -----------------------------------------------------------------------------------------

GOOD = (sasl.message(Status.START, b"PLAIN"), sasl.message(Status.OK, b"\0ann\0wrong"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_hostile_negotiations_end_soon_and_leave_no_trace(server: StandIn, data: st.DataObject) -> None:
    """A good negotiation in which a byte is another, that is cut off, or whose lengths are huge; and any bytes."""
    whole = b"".join(GOOD)
    at = data.draw(st.integers(0, len(whole) - 1))
    kind = data.draw(st.sampled_from(["byte", "cut", "length", "any"]))
    if kind == "byte":
        sent = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]
    elif kind == "cut":
        sent = whole[:at]
    elif kind == "length":
        first = data.draw(st.sampled_from(GOOD))
        sent = first[:1] + data.draw(st.integers(4097, 2**32 - 1)).to_bytes(4) + first[5:]
    else:
        sent = b"\x01\x00\x00\x00\x05PLAIN" + data.draw(st.binary(max_size=300))
    with server.connect() as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(8)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(1 << 16):
                answer += piece
        assert b"Traceback" not in answer
        assert len(answer) < 2_000


def test_ten_thousand_bytes_of_messages(server: StandIn) -> None:
    """Empty responses are answered with empty challenges, but not for ever."""
    with server.connect() as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(sasl.message(Status.START, b"PLAIN") + sasl.message(Status.OK) * 10_000)
        assert server.end_of(connection)["reason"] == "login_size"


def test_client_that_resets_before_its_answer(server: StandIn) -> None:
    """The answer to a wrong password may have to wait; nobody is there any more when it is sent."""
    for _ in range(6):
        with server.connect() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.sendall(b"".join(GOOD))
    wait_until(lambda: len(server.lines("login refused")) >= 1)
    assert server.lines("unexpected error in the event loop") == []


def test_half_open_negotiations_leave_room_for_others(server: StandIn) -> None:
    with contextlib.ExitStack() as stack:
        half_open = [stack.enter_context(server.connect()) for _ in range(300)]
        for connection in half_open:
            connection.sendall(sasl.message(Status.START, b"PLAIN") + b"\x02\x00\x00")
        began = time.monotonic()
        with server.client(Login(user="ann", password="secret")) as client:
            assert client.getVersion() == "stand-in"
        assert time.monotonic() - began < 2
        wait_until(lambda: all(is_closed(each) for each in half_open), seconds=20)


def negotiate(connection: socket.socket, response: bytes) -> sasl.Message:
    connection.sendall(sasl.message(Status.START, b"PLAIN") + sasl.message(Status.OK, response))
    return read_message(connection)


def read_message(connection: socket.socket) -> sasl.Message:
    stream = connection.makefile("rb", buffering=0)
    header = stream.read(5)
    assert header is not None
    length = int.from_bytes(header[1:])
    return sasl.Message(Status(header[0]), (stream.read(length) or b"") if length else b"")


@contextlib.contextmanager
def logged_in(server: StandIn) -> Iterator[socket.socket]:
    with server.connect() as connection:
        assert negotiate(connection, b"\0ann\0secret").status is Status.COMPLETE
        yield connection


def answer_of(name: str, value: str) -> bytes:
    from lake.protocol.codec import binary
    from lake.protocol.services import METHODS

    return binary.message_header(name, binary.REPLY, 1) + binary.encode(METHODS[name].result(success=value))
