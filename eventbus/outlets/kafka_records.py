"""Puts records that aren't events into a topic of Kafka."""

import os
import socket
from collections.abc import Mapping, Sequence

from eventbus.outlets.kafka_producer import NotTaken, Record, TopicProducer


class TopicDestination:
    """Each record is a message. Those of one process have the same key, so that they stay in order."""

    def __init__(self, servers: str, topic: str, options: Mapping[str, str]) -> None:
        """`servers`: bootstrap servers. `options`: librdkafka's. Raises BadKafkaOptions."""
        self._producer = TopicProducer(servers, topic, options)
        self._key = f"{socket.gethostname()}:{os.getpid()}".encode()

    def send(self, records: Sequence[str]) -> None:
        """See `Destination`. Raises NotTaken."""
        refused = self._producer.send([Record(self._key, each.encode()) for each in records])
        if refused:
            raise NotTaken(next(iter(refused.values())).str())
