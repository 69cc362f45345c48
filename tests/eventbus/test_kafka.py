"""Events in a topic of Kafka."""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eventbus import Event, EventType
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UserError
from lake.protocol.events.types import Origin
from metastore.server import outlets
from metastore.settings import Settings
from tests.eventbus.changes import first_seen, log_of, make
from tests.support import builders, dump
from tests.support.command import complaint
from tests.support.server import MetastoreServer

pytest.importorskip("confluent_kafka")

from eventbus.outlets import kafka, kafka_producer
from tests.support.kafka import KafkaServer
from tests.support.waiting import wait_until

TOPIC = "lake.changes"


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaServer]:
    with KafkaServer() as broker:
        yield broker


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, broker: KafkaServer) -> Iterator[MetastoreServer]:
    directory = tmp_path_factory.mktemp("kafka")
    options = ("--workers", "1", "--kafka-servers", broker.servers, "--kafka-topic", TOPIC)
    with MetastoreServer(
        directory / "data", *options, "--kafka-options", "message.max.bytes=60000,linger.ms=1"
    ) as server:
        yield server


@pytest.fixture
def client(server: MetastoreServer) -> Iterator[ThriftClient]:
    with ThriftClient(server.host, server.port) as client:
        yield client


def arrived(client: ThriftClient) -> list[int]:
    """The numbers of the log, once all of them are in Kafka."""
    committed = [each.number for each in log_of(client)]
    wait_until(lambda: client.lake_event_positions("kafka", None).group == committed[-1], 60)
    return committed


def test_records(client: ThriftClient, broker: KafkaServer) -> None:
    client.create_database(builders.database("shop"))
    client.create_table(builders.table("shop", "orders", keys=("dt",)))
    client.create_table(builders.table("shop", "large", parameters={"long": "x" * 100_000}))
    client.add_partitions([builders.partition("shop", "orders", str(day)) for day in range(3)])
    arrived(client)
    answer = {each.number: each for each in log_of(client) if each.database == "shop"}
    found: dict[int, Any] = {}
    for record in broker.records(TOPIC):
        headers = dict(record.headers() or [])
        found[int(headers["number"] or b"")] = record
    assert found.keys() >= answer.keys()
    for number, event in answer.items():
        record, headers = found[number], dict(found[number].headers())
        names = [name for name in (event.catalog, event.database, event.table) if name]
        assert record.key() == ".".join(names).encode()
        assert headers["type"] == event.type.encode()
        assert record.timestamp()[1] == event.time
        body = json.loads(record.value())
        assert (body["id"], body["type"]) == (str(number), f"lake.metastore.{event.type}")
        if event.table == "large":
            assert (body["data"]["truncated"], body["data"]["payload"]) == (True, None)
        else:
            assert body["data"]["payload"] == json.loads(event.payload)


@pytest.mark.long
def test_nothing_is_lost_while_kafka_hangs_or_the_server_dies(
    server: MetastoreServer, client: ThriftClient, broker: KafkaServer
) -> None:
    make(client, "before", 8)
    broker.pause()
    make(client, "during", 8)
    server.kill()
    server.start()
    with ThriftClient(server.host, server.port) as again:
        make(again, "after", 8)
        broker.go_on()
        for name in ("before", "during", "after"):
            again.drop_database(name, True, True)
        committed = arrived(again)
    numbers: list[int] = []
    by_key: defaultdict[bytes, list[int]] = defaultdict(list)
    for record in broker.records(TOPIC):
        number = int(dict(record.headers() or [])["number"] or b"")
        numbers.append(number)
        by_key[bytes(record.key() or b"")].append(number)
    assert sorted(set(numbers)) == committed
    for each in by_key.values():
        assert first_seen(each) == sorted(set(each))


def test_what_kafka_does_not_take_is_sent_again(
    tmp_path: Path, broker: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_producer, "ANSWER_SECONDS", 1.0)
    events = [
        Event(number, EventType.CREATE_TABLE, 1, Origin(), "hive", "d", f"t{number % 3}", {}) for number in range(1, 7)
    ]
    outlet = kafka.KafkaOutlet(broker.servers, "again", "/metastore", {})
    outlet.deliver(events[:2])
    broker.pause()
    with pytest.raises(kafka_producer.NotTaken, match="2 records were not accepted within 1 s"):
        outlet.deliver(events[2:4])
    broker.go_on()
    monkeypatch.setattr(kafka_producer, "ANSWER_SECONDS", 60.0)
    outlet.deliver(events[2:])
    outlet.close()
    found = [int(dict(each.headers() or [])["number"] or b"") for each in broker.records("again")]
    assert sorted(set(found)) == [1, 2, 3, 4, 5, 6]


def test_settings_that_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    database = ("--database-url", "postgresql://x/y")
    said = complaint(
        "outlets", "run", "--kafka-servers", "localhost:1", "--kafka-options", "no.such.thing=1", *database
    )
    assert said == 'Error: kafka_options: No such configuration property: "no.such.thing"'
    assert "--kafka-servers: bad value" in complaint("outlets", "run", "--kafka-servers", "a b", *database, code=2)
    monkeypatch.delitem(sys.modules, "eventbus.outlets.kafka")
    monkeypatch.delitem(sys.modules, "eventbus.outlets.kafka_producer")
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(UserError, match=r"pip install 'lake-metastore\[kafka\]'"):
        outlets.outlet("kafka", Settings(kafka_servers="localhost:9092"))


def test_options_in_either_form() -> None:
    written = "security.protocol=sasl_ssl, sasl.password=a=b,enable.ssl.certificate.verification=false"
    assert Settings(kafka_options=written).kafka_options == {  # type: ignore[arg-type]
        **{"security.protocol": "sasl_ssl", "sasl.password": "a=b"},
        **{"enable.ssl.certificate.verification": "false"},
    }
    table: Any = {"linger.ms": 5, "enable.ssl.certificate.verification": False}
    assert Settings(kafka_options=table).kafka_options == {
        **{"linger.ms": "5", "enable.ssl.certificate.verification": "false"},
    }


@pytest.mark.long
def test_a_log_that_was_put_back_without_a_trace(postgres_url: str, tmp_path: Path, broker: KafkaServer) -> None:
    """The newest records tell; from then on records are of another epoch."""
    topic = "restored"
    options = ("--workers", "1", "--database-url", postgres_url, "--kafka-servers", broker.servers)
    server = MetastoreServer(tmp_path / "data", *options, "--kafka-topic", topic)
    with server, ThriftClient(server.host, server.port) as client:
        make(client, "kept", 3)
        arrived(client)
    dump.dump(postgres_url, tmp_path / "backup")
    with server.start(), ThriftClient(server.host, server.port) as client:
        make(client, "undone", 3)
        arrived(client)
    dump.restore_rows(postgres_url, tmp_path / "backup")
    with server.start(), ThriftClient(server.host, server.port) as client:
        wait_until(lambda: "BEGIN_EPOCH" in [each.type for each in log_of(client)])
        make(client, "new", 3)
        arrived(client)
    answer: defaultdict[str, set[tuple[str, str | None]]] = defaultdict(set)
    for record in broker.records(topic):
        headers = dict(record.headers() or [])
        body = json.loads(record.value() or b"")
        assert body["data"]["epoch"].encode() == headers["epoch"]
        answer[body["data"]["epoch"]].add((body["id"], body["data"]["database"]))
    first, second = answer.values()
    assert {database for _, database in first} == {"kept", "undone"}
    assert "undone" not in {database for _, database in second}
    assert {"new", None} <= {database for _, database in second}
    assert {id for id, _ in first}.isdisjoint(id for id, _ in second)
