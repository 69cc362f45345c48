"""Sends events to a Kafka topic, with librdkafka.

A record's key is the event's subject, so that the events of a table are in one partition, in order. If the process ends
before it has stored its position, the last events are sent twice.
"""

import time
from collections.abc import Mapping, Sequence

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from eventbus.outlets.base import Diverged, LogState, Outlet
from eventbus.outlets.cloud_events import CONTENT_TYPE, body_of, subject_of
from eventbus.outlets.kafka_producer import NotTaken, Record, TopicProducer
from lake.protocol.events.types import Event

_LOOK_SECONDS = 0.5
_MESSAGE_BYTES = "message.max.bytes"
_DEFAULT_MESSAGE_BYTES = 1_000_000  # librdkafka's; a broker takes a little more
_FRAME_BYTES = 500  # more than a record takes beside its key and value

_READ_SECONDS = 10.0
_FORBIDDEN = (  # writing may be allowed where reading is not
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
)
_OF_PRODUCERS = frozenset({"partitioner", "enable.idempotence", "message.timeout.ms", "error_cb"})

lines = structlog.get_logger(__name__)


class KafkaOutlet(Outlet):
    """Sends every event to a topic. While Kafka is down, events wait in the log."""

    name = "kafka"
    batch = 100
    longest_pause = 10.0
    from_oldest = True

    def __init__(self, servers: str, topic: str, source: str, options: Mapping[str, str]) -> None:
        """`servers`: bootstrap servers. `source`: the CloudEvents `source`. `options`: librdkafka's.

        Raises BadKafkaOptions.
        """
        self._topic = topic
        self._source = source
        self._too_large: set[int] = set()  # numbers of events that the broker accepts only without their payload
        self._producer = TopicProducer(servers, topic, options)
        self._max_bytes = int(options.get(_MESSAGE_BYTES, _DEFAULT_MESSAGE_BYTES)) - _FRAME_BYTES

    def resume(self, position: int, log: LogState) -> int:
        """Compares the newest records with the log, which may have been restored. Raises Diverged, NotTaken."""
        self.history = log.history
        delivered: dict[int, str] = {}
        for identity, epoch, number, mark in self._newest():
            if identity == log.history.identity and epoch == log.history.now.name:
                delivered[number] = mark
        wrong = [number for number, mark in delivered.items() if log.differs(number, mark)]
        if wrong:
            # Earlier records of the same partitions may differ, too: only records that were compared are sure.
            raise Diverged(max((number for number in delivered if number < min(wrong)), default=log.trimmed))
        return position

    def _newest(self) -> list[tuple[str, str, int, str]]:
        """Log, epoch, number and mark of each partition's last record, where it has these headers."""
        consumer = Consumer(
            {
                **{name: value for name, value in self._producer.settings.items() if name not in _OF_PRODUCERS},
                "group.id": "metastore-outlet",  # required; no offset is ever committed under it
                "enable.auto.commit": False,
            }
        )
        found: list[tuple[str, str, int, str]] = []
        try:
            topic = consumer.list_topics(self._topic, _READ_SECONDS).topics[self._topic]
            ends = []
            for partition in topic.partitions:
                low, high = consumer.get_watermark_offsets(TopicPartition(self._topic, partition), _READ_SECONDS)
                if high > low:
                    ends.append(TopicPartition(self._topic, partition, high - 1))
            consumer.assign(ends)
            deadline = time.monotonic() + _READ_SECONDS
            read: set[int | None] = set()
            while len(read) < len(ends) and time.monotonic() < deadline:
                for record in consumer.consume(len(ends), _LOOK_SECONDS):
                    if record.error() is None:
                        read.add(record.partition())
                        headers = {name: _text(value) for name, value in dict(record.headers() or []).items()}
                        if {"log", "epoch", "number", "mark"} <= headers.keys():
                            number = int(headers["number"])
                            found.append((headers["log"], headers["epoch"], number, headers["mark"]))
            if len(read) < len(ends):
                lines.warning("not all newest records of the topic can be read", topic=self._topic)
        except KafkaException as error:
            if error.args[0].code() not in _FORBIDDEN:
                raise NotTaken(f"the newest records can't be read: {error.args[0].str()}") from None
            lines.warning("the newest records of the topic may not be read", topic=self._topic, error=str(error))
        finally:
            consumer.close()
        return found

    def deliver(self, events: Sequence[Event]) -> None:
        """Raises NotTaken."""
        refused = self._producer.send([self._record(event) for event in events])
        if refused:
            too_large = [place for place, why in refused.items() if why.code() == KafkaError.MSG_SIZE_TOO_LARGE]
            self._too_large.update(events[place].number for place in too_large)
            place, why = min(refused.items())
            raise NotTaken(f"event {events[place].number}: {why.str()}")
        self._too_large.clear()

    def close(self) -> None:
        self._producer.close()

    def _record(self, event: Event) -> Record:
        key = subject_of(event).encode()
        room = 0 if event.number in self._too_large else self._max_bytes - len(key)
        headers = [
            ("number", str(event.number).encode()),
            ("type", event.type.encode()),
            ("content-type", CONTENT_TYPE.encode()),
            *self._origin(event),
        ]
        return Record(key, body_of(event, self._source, room, self.history), headers, event.time)

    def _origin(self, event: Event) -> list[tuple[str, bytes]]:
        """The headers that say which log and which epoch an event comes from."""
        if self.history is None:
            return []
        origin = {"log": self.history.identity, "epoch": self.history.now.name, "mark": event.mark or ""}
        return [(name, value.encode()) for name, value in origin.items()]


def _text(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""
