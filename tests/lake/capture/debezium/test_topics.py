"""Messages in topics of Kafka."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from lake.capture.debezium.capture import DebeziumCapture, DebeziumOptions
from lake.capture.debezium.state import DebeziumState
from lake.capture.debezium.topics import TopicInput
from lake.capture.errors import CaptureError
from lake.tables.lake import LakeClient
from tests.lake.capture.debezium.messages import change, order
from tests.lake.capture.debezium.test_files import Landing, shown, snapshot
from tests.support.kafka import KafkaServer
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaServer]:
    with KafkaServer() as server:
        yield server


@pytest.fixture
def landing(tmp_path: Path, metastore_server: MetastoreServer) -> Iterator[Landing]:
    with LakeClient(metastore_server.uri) as client:
        yield Landing(tmp_path, client)


def send(kafka: KafkaServer, topic: str, *messages: Any) -> None:
    """Sends messages as Debezium does: a delete is followed by a tombstone."""
    producer = Producer({"bootstrap.servers": kafka.servers, "log_level": 2})
    for each in messages:
        key = json.dumps(each["key"])
        producer.produce(topic, key=key, value=json.dumps(each["value"]))
        if each["value"].get("payload", {}).get("op") == "d":
            producer.produce(topic, key=key)
    assert producer.flush(30) == 0


def test_topics_are_captured_once(kafka: KafkaServer, landing: Landing) -> None:
    source = f"kafka://{kafka.servers}?topic=shop.public.orders"
    send(kafka, "shop.public.orders", order("r", 1, "a"), order("c", 2, "b"), order("d", 1), order("u", 2, "c"))
    assert landing.capture(source=source) == {"public.orders": 5}
    assert landing.capture(source=source) == {}
    send(kafka, "shop.public.orders", order("u", 2, "d"))
    stopped = DebeziumCapture(landing.client, DebeziumOptions(source=source, into=landing.into))
    stopped.pause = lambda step: (_ for _ in ()).throw(RuntimeError(step)) if step == "before" else None
    with pytest.raises(RuntimeError, match="before"):
        stopped.run(once=True)
    assert landing.capture(source=source) == {"public.orders": 1}
    of_two = [row["op"] for row in landing.raw() if row["after"] and '"id":2' in row["after"]]
    assert of_two == ["insert", "update", "update"]
    assert sum(each.at for each in landing.state().offsets.values()) == 6, "tombstones are passed, too"


def test_messages_that_were_removed(kafka: KafkaServer, landing: Landing) -> None:
    send(kafka, "kept", order("c", 1, "a"))
    source = f"kafka://{kafka.servers}?topic=kept"
    landing.capture(source=source)
    with TopicInput(source, {}) as opened:
        offsets = {name: type(each)(each.at + 1_000) for name, each in landing.state().offsets.items()}
        with pytest.raises(CaptureError, match="--new-snapshot"):
            opened.begin(offsets)


@pytest.mark.long
def test_rows_that_another_partition_got_before_the_end_of_a_snapshot(kafka: KafkaServer, landing: Landing) -> None:
    send(kafka, "before", order("c", 1, "a"))
    landing.capture(source=f"kafka://{kafka.servers}?topic=before")
    send(kafka, "after", snapshot(2, "last"))
    options = DebeziumOptions(
        source=f"kafka://{kafka.servers}?topic=after", into=landing.into, batch_rows=1, new_snapshot=True
    )
    capture = DebeziumCapture(landing.client, options)
    seen: list[list[int]] = []

    def look(state: DebeziumState) -> None:
        if not seen:
            send(kafka, "after", *[snapshot(each, "true") for each in range(3, 20)])
        seen.append(shown(landing, "public.orders"))

    capture.on_commit = look
    capture.run(once=True)
    assert seen[0] == [1]
    assert all(each in ([1], [*range(2, 20)]) for each in seen)
    assert seen[-1] == [*range(2, 20)]


def test_what_is_refused(kafka: KafkaServer, landing: Landing) -> None:
    for url in ("kafka://broker:9092", "kafka://user:secret@broker:9092?topic=a"):
        with pytest.raises(CaptureError, match="--kafka-options") as refused:
            TopicInput(url, {})
        assert "secret" not in str(refused.value)
    with pytest.raises(CaptureError, match="--kafka-options: No such configuration"):
        TopicInput("kafka://broker:9092?topic=a", {"nothing": "x"})
    # The broker of the tests makes topics with several partitions.
    send(kafka, "truncated", {"key": None, "value": change("t", None, None)})
    with pytest.raises(CaptureError, match=r"truncated/\d, offset 0: a truncation has no order"):
        landing.capture(source=f"kafka://{kafka.servers}?topic=truncated")


def test_a_broker_that_hangs_for_a_while(landing: Landing) -> None:
    with KafkaServer() as own:
        send(own, "hangs", order("c", 1, "a"))
        options = DebeziumOptions(source=f"kafka://{own.servers}?topic=hangs", into=landing.into, interval=0.1)
        capture = DebeziumCapture(landing.client, options)
        thread = threading.Thread(target=capture.run)
        thread.start()
        try:
            wait_until(lambda: capture.result.batches == 1, seconds=30, what="the first message is captured")
            own.pause()
            time.sleep(2)
            assert thread.is_alive()
            own.go_on()
            send(own, "hangs", order("u", 1, "b"))
            wait_until(lambda: capture.result.batches == 2, seconds=30, what="the second message is captured")
        finally:
            capture.stop()
            thread.join(30)
        assert landing.ops() == ["insert", "update"]
