"""The HTTP port asks for the same logins as the Thrift ports, and decides by the same rights."""

import base64
import json
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import urllib3

from lake.protocol.connection.login import Login
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)
from lake.subscriptions import subscribe
from metastore.server.credentials import http_credentials
from metastore.server.credentials.identity import Denied
from metastore.server.credentials.logins import Logins
from metastore.settings import load
from tests.metastore.server.login.conftest import Keys
from tests.metastore.services.hudi.recordings import callbacks, recording
from tests.support.command import output
from tests.support.json_web_keys import AUDIENCE, ISSUER, KeyServer
from tests.support.server import MetastoreServer

VERSION = "1.2.0"
BODY_OF_HUDI = callbacks(VERSION)[0]["body"]
KEY = "a key"


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


ANN, BOB, ROOT = basic("ann", "secret"), basic("bob", "bob's"), basic("trino", "proxy")
WRONG = basic("ann", "bob's")


class Port(NamedTuple):
    """A server, its HTTP port, and the directory of a table of Hudi's, `shop.orders`."""

    server: MetastoreServer
    number: int
    keys: Keys
    directory: Path
    issuer: KeyServer
    audit: Path

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] = {}, body: bytes = b"", **options: Any
    ) -> tuple[int, str, list[str]]:
        """Status, text and challenges of the answer. `scheme`: else https; the rest are urllib3's options."""
        scheme = options.pop("scheme", "https")
        with urllib3.PoolManager(ca_certs=str(self.keys.authority.file), **options) as pool:
            url = f"{scheme}://localhost:{self.number}{path}"
            answer = pool.request(method, url, headers=dict(headers), body=body, retries=False, timeout=60)
            return answer.status, answer.data.decode(), answer.headers.getlist("WWW-Authenticate")

    def metrics(self, headers: Mapping[str, str] = {}, **options: Any) -> tuple[int, str, list[str]]:
        return self.ask("GET", "/metrics", headers, **options)

    def commit(self, headers: Mapping[str, str] = {}, **options: Any) -> tuple[int, str, list[str]]:
        body = BODY_OF_HUDI.replace("/tmp/hudi-recorded/orders", str(self.directory))
        return self.ask("POST", "/hudi/commits", headers, body.encode(), **options)

    def login(self, user: str, password: str) -> Login:
        return self.keys.login(user, password)

    def client(self, user: str, password: str) -> ThriftClient:
        return ThriftClient(self.server.host, self.server.port, login=self.login(user, password))


def http_port(server: MetastoreServer) -> int:
    match = re.search(r"uri=http://\S+:(\d+)", server.log.read_text())
    assert match is not None
    return int(match[1])


def privilege(name: str, grantee: str, kind: PrincipalType = PrincipalType.USER) -> PrivilegeBag:
    ref = HiveObjectRef(HiveObjectType.TABLE, "shop", "orders")
    given = PrivilegeGrantInfo(name, 0, "trino", PrincipalType.USER, False)
    return PrivilegeBag([HiveObjectPrivilege(ref, grantee, kind, given, "SQL")])


def register(port: Port) -> None:
    """Makes the table `shop.orders`, as its administrator."""
    recording(VERSION, "orders").put("written", port.directory)
    variables = {
        "METASTORE_TLS_CA": str(port.keys.authority.file),
        "METASTORE_USER": "trino",
        "METASTORE_PASSWORD": "proxy",
        "METASTORE_URI": f"thrift://localhost:{port.server.port}",
    }
    output("hudi", "import", str(port.directory), "--table", "shop.orders", **variables)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Iterator[Port]:
    """trino is the administrator; ann may write the table, bob may read it, the certificate's carol sees nothing."""
    directory = tmp_path_factory.mktemp("http_port")
    issuer = KeyServer()
    issuer.add("a")
    options = {
        "tls-certificate": keys.certificate,
        "tls-key": keys.key,
        "tls-client-ca": keys.authority.file,
        "authentication": "plain,jwt,token,certificate",
        "password-file": keys.users,
        "jwt-keys": issuer.url,
        "jwt-issuer": ISSUER,
        "jwt-audience": AUDIENCE,
        "authorization": "sql-standard",
        "admins": "trino",
        "audit-log": directory / "audit.log",
        "http-port": 0,
        "hudi-callback-key": KEY,
        "login-timeout-seconds": 3,
        "login-max-bytes": 8192,
        "workers": 1,
    }
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    with MetastoreServer(directory / "data", *flags, "--no-metrics-anonymous") as server:
        found = Port(server, http_port(server), keys, directory / "orders", issuer, directory / "audit.log")
        register(found)
        with found.client("trino", "proxy") as client:
            client.grant_privileges(privilege("INSERT", "ann"))
            client.grant_privileges(privilege("SELECT", "bob"))
            client.grant_privileges(privilege("SUBSCRIBE", "bob"))
        with subscribe(server.uri, group="readers", login=found.login("trino", "proxy")) as events:
            events.poll(0.1)
        yield found
        text = server.log.read_text()
        assert "internal error" not in text
        assert "a request to the HTTP port failed" not in text
        for secret in ("secret", "bob's", ANN["Authorization"].split()[1]):
            assert secret not in text
    issuer.close()


def carol(port: Port) -> dict[str, str]:
    certificate, key = port.keys.authority.issue("carol", common_name="carol")
    return {"cert_file": str(certificate), "key_file": str(key)}


def challenged(answer: tuple[int, str, list[str]]) -> bool:
    status, _, challenges = answer
    return status == 401 and [each.split()[0] for each in challenges] == ["Basic", "Bearer"]


# -- each endpoint, with each login --------------------------------------------------------------------------


def test_probes_ask_for_no_login(port: Port) -> None:
    for scheme in ("http", "https"):
        for path in ("/ready", "/health"):
            status, text, _ = port.ask("GET", path, WRONG, scheme=scheme)
            assert (status, json.loads(text)) == (200, {"status": "ok"})


def test_metrics(port: Port) -> None:
    nobody = port.metrics()
    assert challenged(nobody) and "doesn't say who sends it" in nobody[1]
    wrong = port.metrics(WRONG)
    assert challenged(wrong) and "wrong user or password" in wrong[1]
    status, text, _ = port.metrics(ANN)
    assert status == 200 and "metastore_requests_total" in text
    assert 'mechanism="plain",outcome="denied"' in text
    assert "readers" not in text, "who may not list groups doesn't see them"
    for who in (BOB, ROOT):
        status, text, _ = port.metrics(who)
        assert status == 200 and "readers" in text
    assert port.ask("HEAD", "/metrics", ANN)[0] == 200
    assert port.ask("HEAD", "/metrics")[0] == 401


def test_hudis_commits(port: Port) -> None:
    for none in ({}, {"HUDI-CALLBACK-KEY": KEY}):
        assert challenged(port.commit(none)), "the key is for servers that ask for no login"
    assert challenged(port.commit(WRONG))
    status, text, _ = port.commit(BOB)
    assert status == 403
    assert text.startswith("Permission denied: user [bob] does not have [TIMELINE] privilege on [shop.orders]"), text
    assert "(authentication: plain)" in text
    hidden = port.commit(**carol(port))
    other = f"{port.directory}-that-is-not-there"
    missing = port.ask("POST", "/hudi/commits", ROOT, json.dumps({"basePath": other, "tableName": ""}).encode())
    assert hidden[0] == missing[0] == 404
    assert hidden[1] == missing[1].replace(other, str(port.directory))
    for who in (ANN, ROOT):
        status, text, _ = port.commit(who)
        assert status == 200 and "instants were new" in text


def test_other_paths_tell_nothing(port: Port) -> None:
    assert port.ask("GET", "/hudi/commits")[0] == 404
    assert port.ask("POST", "/metrics", ANN)[0] == 404


# -- each way to log in --------------------------------------------------------------------------------------


def test_bearer_tokens(port: Port) -> None:
    assert port.commit(bearer(port.issuer.token()))[0] == 200
    refused = port.commit(bearer(port.issuer.token(sub="bob")))
    assert refused[0] == 403 and "(authentication: jwt)" in refused[1]
    assert "expired" in port.metrics(bearer(port.issuer.token(exp=1)))[1]


def test_issued_tokens(port: Port) -> None:
    with port.client("ann", "secret") as ann:
        token = ann.get_delegation_token("ann", "ann")
        assert port.commit(bearer(token))[0] == 200
        ann.cancel_delegation_token(token)
    refused = port.commit(bearer(token))
    assert challenged(refused) and refused[1] == "the bearer token is not valid\n"
    with port.client("bob", "bob's") as bob:
        other = bob.get_delegation_token("bob", "bob")
    refused = port.commit(bearer(other))
    assert refused[0] == 403 and "user [bob]" in refused[1] and "(authentication: token)" in refused[1]
    changed = base64.urlsafe_b64decode(other + "==")
    at = changed.index(b"bob")
    forged = changed[:at] + b"ann" + changed[at + 3 :]
    assert port.commit(bearer(base64.urlsafe_b64encode(forged).decode().rstrip("=")))[0] == 401


def test_certificates(port: Port) -> None:
    status, text, _ = port.metrics(**carol(port))
    assert status == 200 and "readers" not in text


def test_without_encryption_no_credentials_are_taken(port: Port) -> None:
    for headers in (ANN, bearer(port.issuer.token())):
        status, text, _ = port.metrics(headers, scheme="http")
        assert status == 401 and "within TLS only" in text


@pytest.mark.parametrize(
    "value",
    ["Basic", "Basic !", "Basic " + base64.b64encode(b"ann").decode(), "Basic YW5uOg==", "Digest x", "Basic /w=="],
)
def test_credentials_that_mean_nothing(keys: Keys, value: str) -> None:
    given = {"authentication": "plain", "password_file": str(keys.users), "credentials_without_tls": True}
    logins = Logins(load(given)[0])
    with pytest.raises(Denied):
        sent = http_credentials.given([value], [], logins, encrypted=False)
        assert sent is not None
        http_credentials.check(sent, logins, "127.0.0.1:1")


def test_a_request_says_once_who_sends_it(port: Port) -> None:
    context = ssl.create_default_context(cafile=str(port.keys.authority.file))
    with context.wrap_socket(socket.create_connection(("localhost", port.number)), server_hostname="localhost") as it:
        line = f"Authorization: {ANN['Authorization']}\r\n"
        it.sendall(f"GET /metrics HTTP/1.1\r\nHost: x\r\n{line}{line}\r\n".encode())
        assert b"says more than once" in it.recv(1_000) + it.recv(1_000)


def test_a_name_that_only_the_header_says_counts_for_nothing(port: Port) -> None:
    assert port.metrics({"x-actor-username": "trino"})[0] == 401
    assert port.commit(BOB | {"x-actor-username": "trino"})[0] == 403


# -- what is recorded ----------------------------------------------------------------------------------------


def test_calls_are_in_the_audit_log(port: Port) -> None:
    port.commit(BOB)
    port.commit(ANN)
    records = [json.loads(line) for line in port.audit.read_text().splitlines()]
    refused, done = [each for each in records if each["method"] == "lake_refresh_hudi"][-2:]
    assert (refused["user"], refused["mechanism"], refused["allowed"]) == ("bob", "plain", False)
    assert (done["user"], done["allowed"], done["outcome"]) == ("ann", True, "ok")
    assert refused["peer"].startswith("127.0.0.1:")
    assert refused["peer"] != done["peer"]


# -- limits --------------------------------------------------------------------------------------------------


def plain(port: Port) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port.number), timeout=30)


def test_heads_are_bounded(port: Port) -> None:
    with plain(port) as it:
        it.sendall(b"GET /metrics HTTP/1.1\r\n" + b"X: " + b"x" * 9_000)
        assert it.recv(100).split()[1] == b"431"


def test_lengths_that_are_none(port: Port) -> None:
    for length in ("9" * 6_000, "-1", "much"):
        with plain(port) as it:
            it.sendall(f"POST /hudi/commits HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
            assert it.recv(100).split()[1] == b"400"


def test_heads_that_come_byte_by_byte(port: Port) -> None:
    for head in (b"GET /ready HTTP/1.0\r\nX: y\r\n\r\n", b"GET /ready HTTP/1.0\n\n"):
        with plain(port) as it:
            it.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in head:
                it.sendall(bytes([byte]))
            assert it.recv(100).split()[1] == b"200"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("beginning", [b"", b"GET /metr", b"\x16", b"\x16\x03\x01\x00\xff"])
def test_beginnings_are_waited_for_only_so_long(port: Port, beginning: bytes) -> None:
    started = time.monotonic()
    with plain(port) as it:
        it.sendall(beginning)
        assert it.recv(100) == b""
    assert time.monotonic() - started < 10


def test_bodies_are_not_read_of_those_who_may_not_send_them(port: Port) -> None:
    with plain(port) as it:
        it.sendall(b"POST /hudi/commits HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n")
        assert it.recv(100).split()[1] == b"401"


def test_wrong_logins_are_answered_later_and_later(port: Port) -> None:
    for _ in range(4):
        assert port.metrics(WRONG)[0] == 401
    started = time.monotonic()
    assert port.metrics(WRONG)[0] == 401
    assert time.monotonic() - started > 0.5
    started = time.monotonic()
    assert port.metrics(ANN)[0] == 200
    assert time.monotonic() - started < 2


# -- other settings ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "open_to_all"),
    [
        ({}, True),
        ({"http_host": "::1"}, True),
        ({"http_host": "0.0.0.0"}, False),
        ({"http_host": "metastore.example"}, False),
        ({"http_host": "0.0.0.0", "metrics_anonymous": True}, True),
        ({"metrics_anonymous": False}, False),
    ],
)
def test_who_sees_metrics_without_a_login(given: dict[str, object], open_to_all: bool) -> None:
    assert load(given)[0].metrics_anonymous is open_to_all


def test_metrics_for_everybody(tmp_path: Path, keys: Keys) -> None:
    """On the loopback interface that is the default."""
    options = (*("--authentication", "plain", "--password-file", str(keys.users)), "--credentials-without-tls")
    with MetastoreServer(tmp_path / "data", *options, "--http-port", "0", "--workers", "1") as server:
        url = f"http://127.0.0.1:{http_port(server)}"
        assert urllib3.request("GET", f"{url}/metrics").status == 200
        answer = urllib3.request("POST", f"{url}/hudi/commits", body=b"{}", headers=ANN)
        assert answer.status == 400, "who logs in needs no key"
        assert urllib3.request("POST", f"{url}/hudi/commits", body=b"{}").status == 401


def test_where_encryption_is_required(tmp_path: Path, keys: Keys) -> None:
    options = (
        *("--authentication", "plain,none", "--password-file", str(keys.users), "--tls-required"),
        *("--tls-certificate", str(keys.certificate), "--tls-key", str(keys.key), "--no-metrics-anonymous"),
    )
    with MetastoreServer(tmp_path / "data", *options, "--http-port", "0", "--workers", "1") as server:
        port = Port(server, http_port(server), keys, tmp_path, KeyServer(), tmp_path)
        status, text, _ = port.metrics(scheme="http")
        assert status == 401 and "tls_required" in text
        assert port.metrics()[0] == 200, "nobody has to log in"
        assert port.metrics(WRONG)[0] == 401
        assert port.ask("GET", "/ready", scheme="http")[0] == 200
        port.issuer.close()


def test_who_comes_without_a_login_has_the_rights_of_public(tmp_path: Path, keys: Keys) -> None:
    """With the key alone, where `none` is allowed."""
    options = (
        *("--authentication", "plain,none", "--password-file", str(keys.users), "--hudi-callback-key", KEY),
        *("--tls-certificate", str(keys.certificate), "--tls-key", str(keys.key), "--no-metrics-anonymous"),
        *("--authorization", "sql-standard", "--admins", "trino", "--http-port", "0", "--workers", "1"),
    )
    with MetastoreServer(tmp_path / "data", *options) as server:
        port = Port(server, http_port(server), keys, tmp_path / "orders", KeyServer(), tmp_path)
        port.issuer.close()
        register(port)
        key = {"HUDI-CALLBACK-KEY": KEY}
        assert port.commit()[0] == 401
        assert port.commit(key)[0] == 404
        with port.client("trino", "proxy") as root:
            root.grant_privileges(privilege("SELECT", "public", PrincipalType.ROLE))
            refused = port.commit(key)
            assert refused[0] == 403 and "user [anonymous]" in refused[1] and "(authentication: none)" in refused[1]
            root.grant_privileges(privilege("TIMELINE", "public", PrincipalType.ROLE))
        assert port.commit(key)[0] == 200
        assert port.metrics()[0] == 200
