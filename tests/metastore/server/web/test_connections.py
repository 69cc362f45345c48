"""The HTTP port's connections, with clients that don't do as they should. They also show that uvicorn's protocol still
has the parts that `HttpProtocol` changes."""

import asyncio
import contextlib
import logging
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from lake.protocol.connection import http_server
from metastore.server.credentials.certificates import CertificateFiles
from metastore.server.web import application as module
from metastore.server.web import connections
from metastore.server.web.application import application
from metastore.server.web.connections import Port
from metastore.server.web.requests import body
from metastore.settings import load
from tests.support.certificates import Authority
from tests.support.waiting import wait_until

LIMIT = 10_000
LARGE = 32 << 20
NO_WORKER = b"no worker answers"


class Served:
    """A port with `/length` (of the body), `/large`, and `/wait`, which waits until `go` is set."""

    def __init__(self, tls: CertificateFiles | None, **options: Any) -> None:
        chosen = {"login_timeout_seconds": 1, "login_max_bytes": 2048, "receive_timeout_seconds": 1, "port": 1}
        self.settings = load(chosen | options)[0]
        self.tls = tls
        self.draining, self.go = threading.Event(), threading.Event()
        self.waiting = threading.Semaphore(0)
        self.errors: list[dict[str, Any]] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.number: int = self.listener.getsockname()[1]
        self._started = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),))

    def app(self) -> Starlette:
        found = application(self.settings, None, self.draining)
        for path, answer in (("/length", self._length), ("/large", self._large), ("/wait", self._wait)):
            found.router.routes.append(Route(path, answer, methods=["GET", "HEAD", "POST"]))
        return found

    def _length(self, request: Request) -> Response:
        return PlainTextResponse(f"{len(body(request, LIMIT))} bytes")

    def _large(self, request: Request) -> Response:
        return PlainTextResponse(b"x" * LARGE)

    def _wait(self, request: Request) -> Response:
        self.waiting.release()
        self.go.wait(30)
        return PlainTextResponse("waited")

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.loop.set_exception_handler(lambda loop, context: self.errors.append(context))
        self.port = Port(self.app(), self.settings, self.tls)
        self.accepting = asyncio.create_task(self.port.serve(self.listener))
        self._started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await self.accepting
        await self.port.finish()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.number), timeout=15)

    def send(self, *pieces: bytes) -> bytes:
        """All that the server sends until it closes the connection."""
        with self.connect() as it:
            for each in pieces:
                it.sendall(each)
            return read(it)

    def start(self) -> None:
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: a test has stopped the server
            self.loop.call_soon_threadsafe(self.accepting.cancel)
        self._thread.join(20)
        self.listener.close()


def read(it: socket.socket, until: bytes | None = None) -> bytes:
    """What the server sends until it closes the connection, or until some bytes end it."""
    found = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while piece := it.recv(1 << 16):
            found += piece
            if until is not None and found.endswith(until):
                break
    return bytes(found)


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: x", *headers, "\r\n"]).encode()


CLOSE = "Connection: close"


@contextlib.contextmanager
def running(tls: CertificateFiles | None = None, **options: Any) -> Iterator[Served]:
    server = Served(tls, **options)
    server.start()
    try:
        yield server
    finally:
        server.go.set()
        server.stop()
        assert server.errors == []


@pytest.fixture
def served(caplog: pytest.LogCaptureFixture) -> Iterator[Served]:
    with running() as server:
        yield server
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


# -- time ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "beginning",
    [b"", b"GET /len", get("/length", "Content-Length: 0") + b"GET /len", get("/length", "Content-Length: 0")],
    ids=["nothing", "half a head", "half a second head", "no second request"],
)
def test_a_head_has_a_time_limit_from_the_connection_or_the_last_response(served: Served, beginning: bytes) -> None:
    answer = served.send(beginning)
    assert answer.endswith(b"0 bytes") if b"length" in beginning else answer == b""


def test_a_head_that_drips_has_the_same_limit(served: Served) -> None:
    with served.connect() as it:
        dripped = threading.Event()

        def drip() -> None:
            with contextlib.suppress(OSError):
                while not dripped.wait(0.1):
                    it.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        assert read(it) == b""
        dripped.set()
        thread.join()


def test_a_body_that_does_not_come_is_408(served: Served) -> None:
    assert served.send(get("/length", "Content-Length: 5", CLOSE, method="POST"), b"ab").split()[1] == b"408"


def test_an_answer_that_nobody_takes_is_cut(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "ANSWER_SECONDS", 1)
    with served.connect() as it:
        it.sendall(get("/large"))
        wait_until(lambda: bool(served.port._state.connections), what="the connection")
        wait_until(lambda: not served.port._state.connections, 15, "its end")
        assert len(read(it)) < LARGE


def test_a_slow_request_has_time(served: Served) -> None:
    """The limit on heads doesn't end it."""
    with served.connect() as it:
        it.sendall(get("/wait"))
        served.waiting.acquire()
        threading.Event().wait(1.5)
        served.go.set()
        assert read(it, b"waited").endswith(b"waited")


# -- sizes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", "\r\n\r\n"], ids=["incomplete", "complete"])
def test_large_heads(served: Served, end: str) -> None:
    head = f"GET /length HTTP/1.1\r\nHost: x\r\nX: {'x' * 3000}{end}".encode()
    answer = served.send(head)
    assert answer.split()[1] == b"431" and b"login_max_bytes" in answer


def test_bodies(served: Served) -> None:
    def post(*pieces: bytes, **headers: str) -> tuple[bytes, bytes]:
        named = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        answer = served.send(get("/length", *named, CLOSE, method="POST"), *pieces)
        return answer.split()[1], answer.partition(b"\r\n\r\n")[2]

    chunked = {"Transfer_Encoding": "chunked"}
    assert post(b"abc", Content_Length="3") == (b"200", b"3 bytes")
    assert post(b"x" * LIMIT, Content_Length=str(LIMIT)) == (b"200", b"%d bytes" % LIMIT)
    assert post(b"", Content_Length=str(LIMIT + 1))[0] == b"413"
    assert post(b"")[0] == b"411"
    assert post(b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\n\r\n", **chunked) == (b"200", b"5 bytes")
    assert post(*[b"3e8\r\n" + b"x" * 1000 + b"\r\n"] * 11, b"0\r\n\r\n", **chunked)[0] == b"413"
    assert post(b"no chunk\r\n\r\n", **chunked)[0] == b"400"
    assert post(b"x", Content_Length="1", **chunked)[0] == b"400"
    assert post(b"x", Transfer_Encoding="gzip")[0] == b"501"


def test_an_early_refusal_reaches_a_client_that_sends(served: Served) -> None:
    answer = served.send(get("/length", f"Content-Length: {1 << 20}", method="POST"), b"x" * (1 << 20))
    assert answer.split()[1] == b"413"


def test_a_client_that_waits_with_its_body(served: Served) -> None:
    with served.connect() as it:
        it.sendall(get("/length", "Content-Length: 3", "Expect: 100-continue", method="POST"))
        assert read(it, b"\r\n\r\n").split()[1] == b"100"
        it.sendall(b"abc")
        assert read(it, b"3 bytes").endswith(b"3 bytes")
    refused = get("/none", "Content-Length: 3", "Expect: 100-continue", CLOSE, method="POST")
    assert served.send(refused).split()[1] == b"404"


# -- connections ---------------------------------------------------------------------------------------------


def test_connections_of_one_address(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_OF_ADDRESS", 3)
    with contextlib.ExitStack() as opened:
        several = [opened.enter_context(served.connect()) for _ in range(3)]
        wait_until(lambda: served.port._open.total() == 3, what="the connections")
        assert served.send() == b""
        assert served.port._open.total() == 3
        for each in several:
            each.sendall(get("/length", "Content-Length: 0", CLOSE))
            assert read(each).endswith(b"0 bytes")
    wait_until(lambda: not served.port._open, what="their end")
    assert served.send(get("/length", "Content-Length: 0", CLOSE)).endswith(b"0 bytes")


def test_requests_that_follow_one_another(served: Served) -> None:
    first = get("/length", "Content-Length: 1", method="POST") + b"a"
    head = get("/ready", method="HEAD")
    last = get("/length", "Content-Length: 2", CLOSE, method="POST") + b"ab"
    answer = served.send(first + head + first + last)
    assert answer.count(b"HTTP/1.1 ") == 4
    assert answer.count(b"1 bytes") == 2 and answer.endswith(b"2 bytes")
    assert NO_WORKER not in answer, "what answers HEAD has no body"


def test_a_client_that_sends_no_more_gets_its_answer(served: Served) -> None:
    for sent, answered in ((get("/wait"), b"waited"), (get("/wait") + get("/length")[:9], b"waited")):
        with served.connect() as it:
            it.sendall(sent)
            served.waiting.acquire()
            it.shutdown(socket.SHUT_WR)
            served.go.set()
            assert read(it).endswith(answered)
    assert served.send(get("/ready", CLOSE)).split()[1] == b"503"


def test_clients_that_leave(served: Served) -> None:
    for sent in (
        get("/wait"),
        get("/length", "Content-Length: 5", method="POST") + b"a",
        get("/large"),
        b"GET",
        *[get("/large")] * 20,
    ):
        with served.connect() as it:
            it.sendall(sent)
            if b"wait" in sent:
                served.waiting.acquire()
    served.go.set()
    wait_until(lambda: not served.port._open, what="the connections' end")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\0\1\2\3\r\n\r\n", b"400"),
        (b"\x16\3\1\r\n\r\n", b"400"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"404"),
        (b"GET /length HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /l\xc3\xa4nge HTTP/1.1\r\nHost: x\r\n\r\n", b"400"),
        (get("http://x/ready", CLOSE), b"404"),
        (get("*", CLOSE, method="OPTIONS"), b"404"),
        (get("/ready/", CLOSE), b"404"),
        (get("/ready", "Connection: upgrade, close", "Upgrade: websocket"), b"503"),
        (get("/length", "Content-Length: 1", "Content-Length: 2"), b"400"),
        (get("/length", "Content-Length : 1"), b"400"),
        (get("/length", "Transfer-Encoding: chunked", method="HEAD") + b"no chunk\r\n", b"400"),
    ],
)
def test_odd_heads(served: Served, sent: bytes, status: bytes) -> None:
    assert served.send(sent).split()[1] == status


# -- many at once, and the end -------------------------------------------------------------------------------


def test_probes_do_not_wait_for_the_threads_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_AT_ONCE", 2)
    with running() as served, contextlib.ExitStack() as opened:
        for _ in range(3):
            opened.enter_context(served.connect()).sendall(get("/wait"))
        served.waiting.acquire()
        served.waiting.acquire()
        for path in ("/live", "/health", "/ready"):
            assert NO_WORKER in served.send(get(path, CLOSE))
        assert not served.waiting.acquire(blocking=False)


def test_a_server_that_stops(served: Served) -> None:
    """Who waits for an answer gets it, and reads that the connection ends. Probes are answered."""
    with served.connect() as busy, served.connect() as idle, served.connect() as fresh:
        idle.sendall(get("/length", "Content-Length: 0"))
        read(idle, b"0 bytes")
        busy.sendall(get("/wait"))
        served.waiting.acquire()
        served.draining.set()
        served.loop.call_soon_threadsafe(served.port.drain)
        assert read(idle) == b""
        for connection in (fresh, served.connect()):
            with connection:
                connection.sendall(get("/ready"))
                answer = read(connection)
                assert b"the server is stopping" in answer and b"connection: close" in answer.lower()
        served.loop.call_soon_threadsafe(served.accepting.cancel)
        served.go.set()
        answer = read(busy)
        assert answer.endswith(b"waited") and b"connection: close" in answer.lower()


def test_a_handler_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> str:
        raise RuntimeError("secret")

    monkeypatch.setattr(module, "_trouble", fail)
    with running() as served:
        answer = served.send(get("/live"))
        assert answer.split()[1] == b"500" and b"secret" not in answer


# -- TLS -----------------------------------------------------------------------------------------------------


def common_name(served: Served, name: str, authority: Authority) -> object:
    context = ssl.create_default_context(cafile=str(authority.file))
    context.check_hostname = False
    with context.wrap_socket(served.connect(), server_hostname=name) as it:
        it.sendall(get("/length", "Content-Length: 0", CLOSE))
        assert b"0 bytes" in read(it)  # type: ignore[arg-type]
        certificate = it.getpeercert()
        assert certificate is not None
        return dict(pair for [pair] in certificate["subject"])["commonName"]  # type: ignore[misc]


def test_encrypted_connections(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other = authority.issue("one", "localhost", common_name="one"), authority.issue("two", common_name="two")
    files = {"tls_certificate": str(tmp_path / "used.pem"), "tls_key": str(tmp_path / "used.key")}

    def use(pair: tuple[Path, Path]) -> None:
        for source, target in zip(pair, files.values(), strict=True):
            shutil.copy(source, target)

    use(one)
    tls = CertificateFiles(load(files)[0])
    with running(tls, **files) as served:
        assert served.send(get("/length", "Content-Length: 0", CLOSE)).endswith(b"0 bytes")
        assert common_name(served, "localhost", authority) == "one"
        assert common_name(served, "elsewhere.example", authority) == "one"
        use(other)
        tls.look()
        assert common_name(served, "localhost", authority) == "two"
        for beginning in (b"\x16", b"\x16\3\1\0\xff"):
            assert served.send(beginning) == b""
        assert served.send(b"\x16no TLS" + b"x" * 100)[:1] in (b"", b"\x15"), "nothing, or an alert"
        assert common_name(served, "localhost", authority) == "two"
        wait_until(lambda: not served.port._open, what="the connections' end")


def test_an_encrypted_answer_that_is_taken_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of it when the server closes the connection has a time limit, so that has to be little."""
    monkeypatch.setattr(connections, "_TLS_SHUTDOWN_SECONDS", 0.5)
    authority = Authority(tmp_path)
    certificate, key = authority.issue("one", "localhost")
    files = {"tls_certificate": str(certificate), "tls_key": str(key)}
    context = ssl.create_default_context(cafile=str(authority.file))
    with (
        running(CertificateFiles(load(files)[0]), **files) as served,
        context.wrap_socket(served.connect(), server_hostname="localhost") as it,
    ):
        it.sendall(get("/large", CLOSE))
        assert it.recv(1)
        threading.Event().wait(1)
        assert len(read(it)) > LARGE
