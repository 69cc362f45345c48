"""Events in a topic of Kafka, by librdkafka.

A record's key is what the event is about, so that the events of a table are in one partition, in order. The producer
is idempotent: what it sends again, because an answer was lost, is not doubled or put into another order. Events that a
process has sent but not noted come twice.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from eventbus.cloud_events import CONTENT_TYPE, body_of, subject_of
from eventbus.events import Event
from eventbus.outlets import Outlet
from metastore.errors import UserError

ANSWER_SECONDS = 30.0
"""For Kafka to take a batch; then it is sent again, by a producer of its own."""
_LOOK_SECONDS = 0.5
_MESSAGE_BYTES = "message.max.bytes"
_DEFAULT_MESSAGE_BYTES = 1_000_000  # librdkafka's; a broker takes a little more
_FRAME_BYTES = 500  # of a record beside its key and value, by far
_CRITICAL = 2  # a level of syslog: what goes wrong is told by `NotTaken`


class NotTaken(Exception):
    """Kafka did not take all events of a batch."""


class BadKafkaOptions(UserError):
    """librdkafka does not understand an option."""


class KafkaOutlet(Outlet):
    """Sends every event. While Kafka is down they wait in the log."""

    name = "kafka"
    batch = 100
    longest_pause = 10.0
    from_oldest = True

    def __init__(self, servers: str, topic: str, source: str, options: Mapping[str, str]) -> None:
        """`source` is CloudEvents' name for this metastore, `options` are librdkafka's. Raises BadKafkaOptions."""
        self._topic = topic
        self._source = source
        self._too_large: set[int] = set()  # numbers of events that the broker takes only without their payload
        self._settings = {
            "client.id": "metastore",
            "partitioner": "murmur2_random",  # the one of Java's producers
            "log_level": _CRITICAL,
            **options,
            "bootstrap.servers": servers,
            "enable.idempotence": True,
            # None is given up while later ones are sent: they would come before it.
            "message.timeout.ms": 0,
            "error_cb": self._note_error,
        }
        self._error = ""
        self._producer: Producer | None = self._new_producer()
        self._max_bytes = int(options.get(_MESSAGE_BYTES, _DEFAULT_MESSAGE_BYTES)) - _FRAME_BYTES

    def deliver(self, events: Sequence[Event]) -> None:
        """Raises NotTaken."""
        producer = self._producer = self._producer or self._new_producer()
        refused: dict[int, KafkaError] = {}
        try:
            for event in events:
                self._send(producer, event, refused)
            self._wait(producer)
        except (KafkaException, BufferError, NotTaken) as error:
            self._give_up(producer)
            raise error if isinstance(error, NotTaken) else NotTaken(str(error)) from None
        if refused:
            self._give_up(producer)
            number, why = min(refused.items())
            self._too_large.update(n for n, each in refused.items() if each.code() == KafkaError.MSG_SIZE_TOO_LARGE)
            raise NotTaken(f"event {number}: {why.str()}")
        self._too_large.clear()

    def close(self) -> None:
        if self._producer is not None:
            self._give_up(self._producer)

    def _send(self, producer: Producer, event: Event, refused: dict[int, KafkaError]) -> None:
        key = subject_of(event).encode()
        room = 0 if event.number in self._too_large else self._max_bytes - len(key)
        producer.produce(
            self._topic,
            key=key,
            value=body_of(event, self._source, room),
            headers=[
                ("number", str(event.number).encode()),
                ("type", event.type.encode()),
                ("content-type", CONTENT_TYPE.encode()),
            ],
            timestamp=event.time,
            on_delivery=partial(_note_refusal, refused, event.number),
        )

    def _wait(self, producer: Producer) -> None:
        deadline = time.monotonic() + ANSWER_SECONDS
        while left := producer.flush(_LOOK_SECONDS):
            if time.monotonic() > deadline:
                why = f": {self._error}" if self._error else ""
                raise NotTaken(f"{left} events are not taken within {ANSWER_SECONDS:g} s{why}")

    def _give_up(self, producer: Producer) -> None:
        """Forgets what is not sent: it is sent anew, in order."""
        self._producer = None
        producer.purge()
        producer.flush(_LOOK_SECONDS)

    def _new_producer(self) -> Producer:
        self._error = ""
        try:
            return Producer(self._settings)
        except KafkaException as error:
            raise BadKafkaOptions(f"kafka_options: {error.args[0].str()}") from None

    def _note_error(self, error: KafkaError) -> None:
        self._error = error.str()


def _note_refusal(refused: dict[int, KafkaError], number: int, error: KafkaError | None, _: Message) -> None:
    if error is not None:
        refused[number] = error
