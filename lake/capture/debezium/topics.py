"""Messages in topics of Kafka, read by librdkafka, as the outlet to Kafka is written."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Record

from lake.capture.debezium.events import Event, record_of
from lake.capture.debezium.inputs import Arrived, Input
from lake.capture.debezium.state import Offset
from lake.capture.errors import CaptureError

_ANSWER_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 10.0  # between two looks for new partitions
_BATCH: Final = 1_000
_CRITICAL = 2  # a level of syslog
_FIXED = {
    "group.id": "metastore-capture",  # required; no offset is ever committed under it
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    # The offsets are in the raw table's instants: a lost one must never be taken for another.
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
}


class TopicInput(Input):
    """Reads all partitions of some topics, those that are added later as well."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        """`url`: `kafka://host:port,host:port?topic=a&topic=b`. `options`: librdkafka's.

        Raises CaptureError for another URL, or for options that librdkafka refuses.
        """
        parts = urlsplit(url)
        self._topics = sorted(set(parse_qs(parts.query).get("topic", [])))
        if not parts.netloc or "@" in parts.netloc or not self._topics:
            raise CaptureError("give Kafka as kafka://host:port?topic=NAME, and logins in the file of --kafka-options")
        self.source = f"topics {' '.join(self._topics)}"
        settings: dict[str, Any] = {"log_level": _CRITICAL, **options, "bootstrap.servers": parts.netloc, **_FIXED}
        try:
            self._consumer = Consumer(settings)
        except KafkaException as error:
            raise CaptureError(f"--kafka-options: {error.args[0].str()}") from None
        self._offsets: dict[str, Offset] = {}
        self._waiting: set[str] = set()  # places whose end of the beginning hasn't been reached
        self._known: set[tuple[str, int]] = set()
        self._ends: dict[str, int] = {}
        self._next: dict[str, int] = {}  # where each place is read on
        self._looked = 0.0

    def close(self) -> None:
        self._consumer.close()

    def begin(self, offsets: Mapping[str, Offset]) -> None:
        self._offsets = dict(offsets)
        try:
            self._find(must_exist=True)
        except KafkaException as error:
            raise ConnectionError(f"Kafka: {error.args[0].str()}") from None

    def _find(self, *, must_exist: bool = False) -> None:
        """Assigns the partitions that aren't read yet. Raises KafkaException, CaptureError."""
        self._looked = time.monotonic()
        for topic in self._topics:
            found = self._consumer.list_topics(topic, _ANSWER_SECONDS).topics[topic]
            if found.error is not None and must_exist:
                raise CaptureError(f"the topic {topic} can't be read: {found.error.str()}")
            for partition in sorted(found.partitions):
                if (topic, partition) not in self._known:
                    self._assign(topic, partition)

    def _assign(self, topic: str, partition: int) -> None:
        place = f"{topic}/{partition}"
        low, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), _ANSWER_SECONDS)
        known = self._offsets.get(place)
        if known is not None and not low <= known.at <= high:
            raise CaptureError(
                f"{place} has the messages from {low} to {high}, not those from {known.at}, which come next: they were"
                " removed, or the topic was made anew; start again with --new-snapshot, and let Debezium read its"
                " tables anew"
            )
        start = OFFSET_BEGINNING if known is None else known.at
        self._consumer.incremental_assign([TopicPartition(topic, partition, start)])
        self._known.add((topic, partition))
        self._next[place] = low if known is None else known.at
        self._wait_for(place, high)

    def _wait_for(self, place: str, end: int) -> None:
        self._ends[place] = end
        if end > self._next[place]:
            self._waiting.add(place)

    def gone(self) -> Sequence[str]:
        return ()

    @property
    def has_caught_up(self) -> bool:
        return not self._waiting

    def look_again(self) -> None:
        try:
            self._find()
            for topic, partition in self._known:
                _, high = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), _ANSWER_SECONDS)
                self._wait_for(f"{topic}/{partition}", high)
        except KafkaException as error:
            raise ConnectionError(f"Kafka: {error.args[0].str()}") from None

    def read(self, seconds: float) -> Sequence[Arrived]:
        found = []
        try:
            if time.monotonic() - self._looked > _LOOK_SECONDS:
                self._find()
            for record in self._consumer.consume(_BATCH, min(seconds, 0.2)):
                if (arrived := self._arrived(record)) is not None:
                    found.append(arrived)
        except KafkaException as error:
            raise ConnectionError(f"Kafka: {error.args[0].str()}") from None
        return found

    def _arrived(self, record: Record) -> Arrived | None:
        error, place, offset = record.error(), f"{record.topic()}/{record.partition()}", record.offset()
        if error is not None:
            self._fail(error, place)
            if offset is not None and offset >= 0:
                self._next[place] = offset
            return None
        assert offset is not None
        self._next[place] = offset + 1
        if offset + 1 >= self._ends.get(place, 0):
            self._waiting.discard(place)
        try:
            event = record_of(_bytes(record.value()), _bytes(record.key()), self.placeholder)
        except CaptureError as problem:
            raise CaptureError(f"{place}, offset {offset}: {problem}") from None
        is_truncation = isinstance(event, Event) and event.op == "truncate"
        if is_truncation and sum(1 for t, _ in self._known if t == record.topic()) > 1:
            raise CaptureError(
                f"{place}, offset {offset}: a truncation has no order among the messages of other partitions: give the"
                " topic one partition, or let the connector skip truncations (skipped.operations=t)"
            )
        return Arrived(place, Offset(offset + 1), event)

    def _fail(self, error: KafkaError, place: str) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            self._waiting.discard(place)  # what remained were marks of transactions
            return
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise CaptureError(
                f"{place}: messages were removed before they were captured: start again with --new-snapshot"
            )
        raise ConnectionError(f"Kafka, {place}: {error.str()}")


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
