"""One address that tries passwords keeps nobody else out, and no probe fails meanwhile."""

import base64
import contextlib
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3
from prometheus_client.parser import text_string_to_metric_families

from lake.protocol.sasl import messages as sasl
from lake.protocol.sasl.messages import Status
from metastore.server.credentials import password_file
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

CLIENTS = 12
USERS = ("ann", "bob", "carl", "dora", "prom")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    directory = tmp_path_factory.mktemp("flood")
    for name in USERS:
        password_file.add(directory / "users", name, f"pw-{name}", (), allow_weak=True)
    options = (
        *(
            "--authentication",
            "plain,token,header",
            "--password-file",
            str(directory / "users"),
            "--credentials-without-tls",
        ),
        *("--http-port", "0", "--no-metrics-anonymous", "--workers", "2", "--audit", "all"),
        *("--audit-log", str(directory / "audit.log")),
    )
    with MetastoreServer(directory / "data", *options) as server:
        yield server


def http_url(server: MetastoreServer) -> str:
    match = re.search(r"uri=(http://\S+)", server.log.read_text())
    assert match is not None
    return match[1]


def plain_login(server: MetastoreServer, user: str, password: str, source: str) -> sasl.Message:
    """The server's answer to a login by SASL PLAIN from an address of the loopback interface."""
    with socket.create_connection((server.host, server.port), timeout=30, source_address=(source, 0)) as connection:
        connection.sendall(sasl.message(Status.START, b"PLAIN"))
        connection.sendall(sasl.message(Status.OK, f"\0{user}\0{password}".encode()))
        buffer = bytearray()
        while (message := sasl.take_message(buffer, 1 << 16)) is None:
            piece = connection.recv(1 << 12)
            if not piece:
                raise ConnectionError("closed without an answer")
            buffer += piece
        return message


@contextlib.contextmanager
def flood(server: MetastoreServer, source: str = "127.0.0.1", *, url: str | None = None) -> Iterator[Counter[str]]:
    """Clients of one address that try passwords while the block runs: by SASL, or over HTTP at a URL.

    Yields the answers that they have got.
    """
    stop = threading.Event()
    answers: Counter[str] = Counter()

    def attack(number: int) -> None:
        tries = 0
        while not stop.is_set():
            tries += 1
            try:
                if url is not None:
                    headers = urllib3.make_headers(basic_auth=f"ann:wrong{number}.{tries}")
                    answers[str(urllib3.request("POST", url, headers=headers, retries=False).status)] += 1
                else:
                    answers[plain_login(server, "ann", f"wrong{number}.{tries}", source).payload.decode()] += 1
            except (OSError, urllib3.exceptions.HTTPError) as error:
                answers[type(error).__name__] += 1

    threads = [threading.Thread(target=attack, args=(number,)) for number in range(CLIENTS)]
    for each in threads:
        each.start()
    try:
        wait_until(lambda: sum(answers.values()) > 3, 30, "the flood has begun")
        yield answers
    finally:
        stop.set()
        for each in threads:
            each.join()


@pytest.mark.long
def test_others_get_in_during_a_flood_and_after_it(server: MetastoreServer) -> None:
    url = http_url(server)
    with flood(server) as answers:
        for user in ("bob", "carl"):
            assert plain_login(server, user, f"pw-{user}", "127.0.0.2").status is Status.COMPLETE
            assert urllib3.request("GET", f"{url}/ready", timeout=10).status == 200
            assert urllib3.request("GET", f"{url}/health", timeout=10).status == 200
        refusals = [text for text in answers if "try again" in text]
        wait_until(lambda: any("try again" in text for text in answers), 10, "some are refused at once")
        assert all("wrong user or password" in text or "try again" in text for text in answers), (answers, refusals)
    assert plain_login(server, "dora", "pw-dora", "127.0.0.2").status is Status.COMPLETE


@pytest.mark.long
def test_who_logged_in_before_gets_in_from_the_same_address_too(server: MetastoreServer) -> None:
    """Both workers know bob's password by now, or learn it within a few tries."""
    for _ in range(8):
        plain_login(server, "bob", "pw-bob", "127.0.0.3")
    with flood(server, "127.0.0.3"):
        assert plain_login(server, "bob", "pw-bob", "127.0.0.3").status is Status.COMPLETE


@pytest.mark.long
def test_another_user_of_the_same_address_waits_for_a_moment_only(server: MetastoreServer) -> None:
    with flood(server, "127.0.0.4"):
        wait_until(
            lambda: plain_login(server, "prom", "pw-prom", "127.0.0.4").status is Status.COMPLETE, 20, "prom gets in"
        )


@pytest.mark.long
def test_the_http_port_answers_during_a_flood_of_its_own(server: MetastoreServer) -> None:
    url = http_url(server)
    with flood(server, url=f"{url}/hudi/commits") as answers:
        wait_until(lambda: answers["429"] > 0, 20, "some are refused at once")
        assert urllib3.request("GET", f"{url}/ready", timeout=10).status == 200
        assert plain_login(server, "carl", "pw-carl", "127.0.0.2").status is Status.COMPLETE
        assert set(answers) <= {"401", "429"}
    token = base64.b64encode(b"prom:pw-prom").decode()
    wait_until(
        lambda: urllib3.request("GET", f"{url}/metrics", headers={"Authorization": f"Basic {token}"}).status == 200,
        10,
        "who knows the password gets in",
    )


@pytest.mark.long
def test_others_get_in_during_a_flood_of_thrift_over_http(server: MetastoreServer) -> None:
    with flood(server, url=f"http://{server.host}:{server.port}/metastore") as answers:
        wait_until(lambda: answers["429"] > 0, 20, "some are refused at once")
        assert urllib3.request("GET", f"{http_url(server)}/ready", timeout=10).status == 200
        assert plain_login(server, "dora", "pw-dora", "127.0.0.5").status is Status.COMPLETE
        assert set(answers) <= {"401", "429"}


@pytest.mark.long
def test_metrics_and_logs_of_a_flood(server: MetastoreServer) -> None:
    """The logs have some attempts and the number of the others."""
    with flood(server) as answers:
        wait_until(lambda: any("try again" in text for text in answers), 20, "some are refused at once")
    for _ in range(8):  # more often than there are workers, so that one of them knows the password
        assert plain_login(server, "bob", "pw-bob", "127.0.0.2").status is Status.COMPLETE
    headers = urllib3.make_headers(basic_auth="prom:pw-prom")
    text = urllib3.request("GET", f"{http_url(server)}/metrics", headers=headers).data.decode()
    counts = {
        sample.labels["outcome"]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "metastore_login_checks_total" and sample.labels["kind"] == "password"
    }
    assert counts["refused"] > 0 and counts["checked"] > 0 and counts["known"] > 0
    path = Path(server.data_dir.parent / "audit.log")
    wait_until(lambda: '"others":' in path.read_text(), 15, "the summary is written")
    denied = [line for line in path.read_text().splitlines() if '"outcome":"denied"' in line]
    attempts = counts["refused"] + counts["checked"]
    assert 0 < len(denied) < attempts
