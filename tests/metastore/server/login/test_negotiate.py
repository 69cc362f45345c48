"""Requests to the HTTP port with a ticket of Kerberos (SPNEGO), of a key distribution centre of MIT's."""

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import urllib3

from tests.metastore.server.login.conftest import Keys
from tests.metastore.server.login.test_http_port import http_port
from tests.support import kerberos
from tests.support.kerberos import REALM, SERVER, Realm, has_tickets
from tests.support.server import MetastoreServer

if (reason := kerberos.missing()) is not None:
    pytest.skip(reason, allow_module_level=True)

HTTP = f"HTTP/localhost@{REALM}"


class Port(NamedTuple):
    number: int
    keys: Keys

    def metrics(self, authorization: str | None, scheme: str = "https") -> tuple[int, str, list[str]]:
        """Status, text and challenges of the answer."""
        headers = {} if authorization is None else {"Authorization": authorization}
        with urllib3.PoolManager(ca_certs=str(self.keys.authority.file)) as pool:
            url = f"{scheme}://localhost:{self.number}/metrics"
            answer = pool.request("GET", url, headers=headers, retries=False, timeout=60)
            return answer.status, answer.data.decode(), answer.headers.getlist("WWW-Authenticate")


def served(directory: Path, realm: Realm, keys: Keys, keytab: Path) -> MetastoreServer:
    options = {
        "authentication": "kerberos",
        "kerberos-principal": SERVER,
        "kerberos-keytab": keytab,
        "auth-to-local": f"RULE:[1:$1@$0](.*@{REALM})s/@.*//",
        "tls-certificate": keys.certificate,
        "tls-key": keys.key,
        "authorization": "sql-standard",
        "admins": "bob",
        "audit": "all",
        "audit-log": directory / "audit.log",
        "http-port": 0,
        "workers": 1,
    }
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    environment = dict(os.environ) | realm.environment
    return MetastoreServer(directory / "data", *flags, "--no-metrics-anonymous", environment=environment)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("negotiate")


@pytest.fixture(scope="module")
def port(directory: Path, realm: Realm, tickets: object, keys: Keys) -> Iterator[Port]:
    keytab = directory / "keytab"
    realm.extract(SERVER, keytab)
    realm.add(HTTP)
    realm.extract(HTTP, keytab)
    with served(directory, realm, keys, keytab) as server:
        yield Port(http_port(server), keys)
        text = server.log.read_text()
        assert "internal error" not in text
        assert "a request to the HTTP port failed" not in text
        assert "a request's login can't be checked" not in text


def ticket(variables: dict[str, str], service: str = "HTTP@localhost", mechanism: str = "1.3.6.1.5.5.2") -> str:
    """The authorization that a client with these tickets sends."""
    import gssapi

    with has_tickets(variables):
        name = gssapi.Name(service, gssapi.NameType.hostbased_service)
        context = gssapi.SecurityContext(name=name, mech=gssapi.OID.from_int_seq(mechanism), usage="initiate")
        token = context.step()
    return f"Negotiate {base64.b64encode(token).decode()}"


def test_a_ticket_opens_the_port(port: Port, tickets: dict[str, dict[str, str]], directory: Path) -> None:
    status, text, _ = port.metrics(ticket(tickets["bob"]))
    assert status == 200, text
    assert "metastore_requests_total" in text
    found = [json.loads(line) for line in (directory / "audit.log").read_text().splitlines()]
    assert [(each["user"], each["mechanism"]) for each in found if each["method"] == "lake_event_groups"] == [
        ("bob", "kerberos")
    ]


def test_curl_gets_in(port: Port, tickets: dict[str, dict[str, str]]) -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    command = ["curl", "--silent", "--show-error", "--fail", "--cacert", str(port.keys.authority.file)]
    command += ["--negotiate", "--user", ":", f"https://localhost:{port.number}/metrics"]
    run = subprocess.run(command, env=dict(os.environ) | tickets["ann"], capture_output=True, text=True, timeout=60)
    if "SPNEGO" not in subprocess.run(["curl", "--version"], capture_output=True, text=True).stdout:
        pytest.skip("this curl doesn't know SPNEGO")
    assert run.returncode == 0, run.stderr
    assert "metastore_requests_total" in run.stdout


def test_who_has_none_is_asked_for_one(port: Port) -> None:
    status, text, challenges = port.metrics(None)
    assert (status, challenges) == (401, ["Negotiate"])
    assert "a ticket (Negotiate)" in text


def test_a_ticket_is_good_for_one_request(port: Port, tickets: dict[str, dict[str, str]]) -> None:
    mine = ticket(tickets["ann"])
    assert port.metrics(mine)[0] == 200
    status, text, _ = port.metrics(mine)
    assert status == 401
    assert "Negotiate is not valid" in text


@pytest.mark.parametrize("value", ["", "!", "AAAA", base64.b64encode(b"\x60" * 3000).decode()])
def test_what_is_no_ticket(port: Port, value: str) -> None:
    status, text, _ = port.metrics(f"Negotiate {value}")
    assert status == 401
    assert "Negotiate" in text


def test_a_ticket_for_another_service(port: Port, tickets: dict[str, dict[str, str]]) -> None:
    """The server has the key of `metastore/localhost`, too, but that is for Thrift."""
    assert port.metrics(ticket(tickets["ann"], "metastore@localhost"))[0] == 401


def test_a_part_of_a_negotiation_opens_nothing(port: Port, tickets: dict[str, dict[str, str]]) -> None:
    token = base64.b64decode(ticket(tickets["ann"]).split()[1])
    for length in (1, 2, 10, len(token) // 2, len(token) - 1):
        assert port.metrics(f"Negotiate {base64.b64encode(token[:length]).decode()}")[0] == 401


def test_a_user_without_rule_is_refused(port: Port, tickets: dict[str, dict[str, str]]) -> None:
    status, text, _ = port.metrics(ticket(tickets["trino/coordinator"]))
    assert (status, "trino/coordinator" in text) == (401, True), text


def test_without_encryption_no_ticket_is_taken(port: Port, tickets: dict[str, dict[str, str]]) -> None:
    status, text, _ = port.metrics(ticket(tickets["ann"]), scheme="http")
    assert status == 401
    assert "within TLS" in text


def test_without_a_key_of_its_own_the_port_offers_nothing(
    tmp_path: Path, realm: Realm, tickets: dict[str, dict[str, str]], keys: Keys
) -> None:
    with served(tmp_path, realm, keys, realm.keytab) as server:
        status, text, challenges = Port(http_port(server), keys).metrics(ticket(tickets["ann"]))
        assert (status, challenges) == (401, [])
        assert "HTTP/host" in text
