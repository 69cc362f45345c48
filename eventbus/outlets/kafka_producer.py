"""Puts batches of records into a topic of Kafka, in order, with librdkafka.

The producer is idempotent: when it retries after a lost response, no record is doubled or reordered.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lake.protocol.errors import UserError

ANSWER_SECONDS = 30.0
"""Time limit for Kafka to accept a batch. After that a new producer sends it again."""
_LOOK_SECONDS = 0.5
_CRITICAL = 2  # a level of syslog: librdkafka's errors reach our log through `NotTaken`


class NotTaken(Exception):
    """Kafka did not accept all records of a batch."""


class BadKafkaOptions(UserError):
    """librdkafka rejects an option."""


class Record(NamedTuple):
    """`key` decides on the partition. `timestamp`: in milliseconds since 1970; 0: now."""

    key: bytes
    value: bytes
    headers: Sequence[tuple[str, bytes]] = ()
    timestamp: int = 0


class TopicProducer:
    """Sends to one topic. Not thread-safe."""

    def __init__(self, servers: str, topic: str, options: Mapping[str, str]) -> None:
        """`servers`: bootstrap servers. `options`: librdkafka's. Raises BadKafkaOptions."""
        self._topic = topic
        self.settings = {
            "client.id": "metastore",
            "partitioner": "murmur2_random",  # the one of Java's producers
            "log_level": _CRITICAL,
            **options,
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            # No time limit: if one record were dropped, later ones would arrive before it.
            "message.timeout.ms": 0,
            "error_cb": self._note_error,
        }
        self._error = ""
        self._producer: Producer | None = self._new_producer()

    def send(self, records: Sequence[Record]) -> dict[int, KafkaError]:
        """Waits until Kafka has taken all records. Returns those that it refused, by their place in `records`.

        After a refusal nothing is known of the records behind it. Raises NotTaken.
        """
        producer = self._producer = self._producer or self._new_producer()
        refused: dict[int, KafkaError] = {}
        try:
            for place, record in enumerate(records):
                producer.produce(
                    self._topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    timestamp=record.timestamp,
                    on_delivery=partial(_note_refusal, refused, place),
                )
            self._wait(producer)
        except (KafkaException, BufferError, NotTaken) as error:
            self._discard(producer)
            raise error if isinstance(error, NotTaken) else NotTaken(str(error)) from None
        if refused:
            self._discard(producer)
        return refused

    def close(self) -> None:
        """Drops what was not sent."""
        if self._producer is not None:
            self._discard(self._producer)

    def _wait(self, producer: Producer) -> None:
        deadline = time.monotonic() + ANSWER_SECONDS
        while left := producer.flush(_LOOK_SECONDS):
            if time.monotonic() > deadline:
                why = f": {self._error}" if self._error else ""
                raise NotTaken(f"{left} records were not accepted within {ANSWER_SECONDS:g} s{why}")

    def _discard(self, producer: Producer) -> None:
        """Drops a producer and its unsent records. The next attempt sends all of them again, in order."""
        self._producer = None
        producer.purge()
        producer.flush(_LOOK_SECONDS)

    def _new_producer(self) -> Producer:
        self._error = ""
        try:
            return Producer(self.settings)
        except KafkaException as error:
            raise BadKafkaOptions(f"kafka_options: {error.args[0].str()}") from None

    def _note_error(self, error: KafkaError) -> None:
        self._error = error.str()


def _note_refusal(refused: dict[int, KafkaError], place: int, error: KafkaError | None, _: Message) -> None:
    if error is not None:
        refused[place] = error
