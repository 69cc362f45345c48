"""Events as signed HTTP requests."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lake.protocol.connection.thrift_client import ThriftClient
from tests.eventbus.changes import log_of, make
from tests.eventbus.hooks import Receiver
from tests.support import builders
from tests.support.called import complaint, output
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

SECRET = "between us"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="module")
def moody() -> Iterator[Receiver]:
    """Takes what is about `good` tables alone."""
    with Receiver() as receiver:
        receiver.answers = {"bad": 500, "moved": 302, "bad_too": 400}
        yield receiver


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver, moody: Receiver) -> Iterator[MetastoreServer]:
    directory = tmp_path_factory.mktemp("webhooks")
    settings = directory / "metastore.toml"
    settings.write_text(
        f"""
        workers = 1
        event_source = "/lake"
        event_webhook_max_bytes = "20KiB"

        [[event_webhooks]]
        name = "all"
        url = "{receiver.url}"
        secret = "{SECRET}"

        [[event_webhooks]]
        name = "moody"
        url = "{moody.url}"
        tables = ["shop.*"]
        types = ["CREATE_TABLE"]
        attempts = 2
        """
    )
    with MetastoreServer(directory / "data", "--config", str(settings)) as server:
        yield server


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        client.set_ugi("ann", [])
        yield client


@pytest.mark.long
def test_cloud_events(client: ThriftClient, receiver: Receiver) -> None:
    """The attributes that CloudEvents 1.0 requires, and a signature that receivers can compute."""
    make(client, "clouds", 2)
    wait_until(lambda: any(each.event["subject"] == "hive.clouds.t0" for each in receiver.requests))
    request = next(each for each in receiver.requests if each.event["subject"] == "hive.clouds.t0")
    event = request.event
    assert request.path == "/hook"
    assert request.headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert (event["specversion"], event["source"], event["type"]) == ("1.0", "/lake", "lake.metastore.CREATE_TABLE")
    assert event["time"].endswith("Z")
    data = event["data"]
    assert (data["user"], data["table"], event["id"]) == ("ann", "t0", str(data["number"]))
    assert data["payload"]["after"]["tableName"] == "t0"
    expected = "sha256=" + hmac.new(SECRET.encode(), request.body, hashlib.sha256).hexdigest()
    assert request.headers["X-Metastore-Signature"] == expected


def test_everything_in_order(client: ThriftClient, receiver: Receiver) -> None:
    make(client, "many", 30)
    committed = [each.number for each in log_of(client)]
    wait_until(lambda: len(receiver.requests) >= len(committed))
    assert [each.event["data"]["number"] for each in receiver.requests] == committed


def test_a_long_payload_is_left_out(client: ThriftClient, receiver: Receiver) -> None:
    client.create_database(builders.database("long"))
    client.create_table(builders.table("long", "t", parameters={"text": "x" * 30_000}))
    wait_until(lambda: any(each.event["subject"] == "hive.long.t" for each in receiver.requests))
    request = next(each for each in receiver.requests if each.event["subject"] == "hive.long.t")
    assert len(request.body) < 20 * 1024
    assert (request.event["data"]["truncated"], request.event["data"]["payload"]) == (True, None)


def test_what_is_not_taken_becomes_a_dead_letter_and_can_be_sent_again(
    server: MetastoreServer, client: ThriftClient, moody: Receiver
) -> None:
    """Tries again, gives up, goes on; a redirect is not followed."""
    client.create_database(builders.database("shop"))
    for name in ("good", "bad", "moved", "bad_too", "better"):
        client.create_table(builders.table("shop", name))
    wait_until(lambda: any(each.event["data"]["table"] == "better" for each in moody.requests))
    asked = [each.event["data"]["table"] for each in moody.requests]
    assert asked == ["good", "bad", "bad", "moved", "moved", "bad_too", "bad_too", "better"]
    assert {each.path for each in moody.requests} == {"/hook"}

    dead = json.loads(output("events", "dead-letters", "list", "--uri", server.uri, "--json"))
    assert [(each["name"], each["attempts"]) for each in dead] == [
        ("shop.bad", 2),
        ("shop.moved", 2),
        ("shop.bad_too", 2),
    ]
    assert dead[0]["error"] == "NotAccepted: HTTP 500"
    assert "HTTP 302 http://localhost" in dead[1]["error"]
    shown = output("events", "dead-letters", "list", "--uri", server.uri, "--outlet", "webhook:moody")
    assert "shop.bad_too" in shown

    assert "webhook:moody has no dead letter 1 " in complaint(
        "events", "dead-letters", "resend", "webhook:moody", "1", "--uri", server.uri
    )
    moody.answers = {"bad_too": 400}
    assert output("events", "dead-letters", "resend", "webhook:moody", "--uri", server.uri).startswith(
        "3 to be sent again: "
    )

    def left() -> list[tuple[str, int]]:
        found = json.loads(output("events", "dead-letters", "list", "--uri", server.uri, "--json"))
        return [(each["name"], each["attempts"]) for each in found]

    wait_until(lambda: left() == [("shop.bad_too", 3)])
    assert [each.event["data"]["table"] for each in moody.requests[8:]] == ["bad", "moved", "bad_too"]

    assert "webhook:moody has no dead letter 1" in complaint(
        "events", "dead-letters", "discard", "webhook:moody", "1", "--uri", server.uri
    )
    assert output("events", "dead-letters", "discard", "webhook:moody", "--uri", server.uri).startswith("1 discarded: ")
    assert left() == []


@pytest.mark.long
def test_a_receiver_that_is_away_is_waited_for(tmp_path: Path) -> None:
    with Receiver() as receiver:
        port = receiver.port
    options = ("--workers", "1", "--event-webhooks", f"late=http://127.0.0.1:{port}/", "--event-attempts", "1")
    with MetastoreServer(tmp_path / "data", *options) as server, ThriftClient(server.host, server.port) as client:
        make(client, "d", 3)
        wait_until(lambda: len(client.lake_dead_events("webhook:late")) == 3)
        assert all("refused" in each.error for each in client.lake_dead_events(None))
        assert client.lake_event_groups()[0].position == 3
