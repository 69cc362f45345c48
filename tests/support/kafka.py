"""A broker of Kafka: librdkafka's own, in a process that may be stopped."""

import os
import signal
import subprocess
import sys
import time
from typing import Self

from confluent_kafka import Consumer, Message, Producer, TopicPartition


class KafkaServer:
    """One broker that keeps records in memory. `pause` lets it hang until `go_on`."""

    def __init__(self) -> None:
        self.servers = ""
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.kafka"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.servers = self._process.stdout.readline().strip()
        assert self.servers, "the broker did not start"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)  # its threads run until the signal has reached all of them

    def go_on(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def records(self, topic: str) -> list[Message]:
        """All that is in a topic by now, partition by partition."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "test", "log_level": 2})
        try:
            partitions = [
                TopicPartition(topic, each, 0) for each in consumer.list_topics(topic, 30).topics[topic].partitions
            ]
            ends = {each.partition: consumer.get_watermark_offsets(each, 30)[1] for each in partitions}
            consumer.assign(partitions)
            found: list[Message] = []
            deadline = time.monotonic() + 60
            while len(found) < sum(ends.values()):
                assert time.monotonic() < deadline, "the broker doesn't give what it has"
                found += [each for each in consumer.consume(1000, 0.2) if each.error() is None]
        finally:
            consumer.close()
        return sorted(found, key=lambda each: (each.partition(), each.offset()))


def main() -> None:
    producer = Producer({"test.mock.num.brokers": 1})
    [broker] = producer.list_topics(timeout=60).brokers.values()
    print(f"{broker.host}:{broker.port}", flush=True)
    sys.stdin.read()  # until whoever started it is gone


if __name__ == "__main__":
    main()
