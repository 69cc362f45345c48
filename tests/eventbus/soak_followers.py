"""Subscribers of every kind, each a process that records its events and may be killed at any moment."""

import argparse
import contextlib
import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Self

from thrift.Thrift import TException

from eventbus import Event, Listener
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import NotificationEventRequest
from lake.subscriptions import SourceUnavailable, subscribe

GROUP = "soak"
MOST_UNACKNOWLEDGED = 20
DIRECTORY = "LISTENER_DIRECTORY"


class SeenEvent(NamedTuple):
    """One event as a subscriber got it; `digest` covers all of its fields."""

    number: int
    table: str
    digest: str


def digest(
    number: int, type: str, catalog: str | None, database: str | None, table: str | None, payload: Mapping[str, Any]
) -> str:
    said = [number, type, catalog, database, table, payload]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]


def seen_event(
    number: int, type: str, catalog: str | None, database: str | None, table: str | None, payload: Any
) -> SeenEvent:
    return SeenEvent(number, f"{database}.{table}", digest(number, type, catalog, database, table, payload))


def _told(event: Event) -> SeenEvent:
    return seen_event(event.number, event.type.value, event.catalog, event.database, event.table, event.payload)


def write_down(file: Path, one: SeenEvent) -> None:
    """What was written is there however the process ends."""
    with file.open("a") as notes:
        notes.write(json.dumps(one) + "\n")


def noted(file: Path) -> list[SeenEvent]:
    return [SeenEvent(*json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


class Noting(Listener):
    """In an outlet's process."""

    def on_event(self, event: Event) -> None:
        write_down(Path(os.environ[DIRECTORY]) / "listener", _told(event))


class Follower:
    """One of the processes. Give it its arguments; it is started with the block, and killed at its end."""

    def __init__(self, directory: Path, name: str, *arguments: str) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self._command = [sys.executable, "-m", __name__, *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=log, stderr=log)

    def kill(self) -> None:
        assert self._process is not None
        self.check()
        self._process.kill()
        self._process.wait()

    def check(self) -> None:
        """A subscriber does not end by itself, whatever happens to what it follows."""
        assert self._process is not None
        assert self._process.poll() is None, f"{self.name} ended:\n{self.log.read_text()[-4000:]}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


def follow(uri: str, file: Path) -> None:
    """By itself: goes on after the last number that it noted."""
    last = max((each.number for each in noted(file)), default=0)
    with subscribe(uri, start=last or "earliest") as events:
        for event in events:
            write_down(file, _told(event))


def work(uri: str, file: Path) -> None:
    """A member of a group; it acknowledges now and then, so that its successor gets some events again."""
    chance = random.Random()
    with subscribe(uri, group=GROUP, start="earliest") as events:
        while True:
            with contextlib.suppress(SourceUnavailable):
                for event in events.poll(5):
                    write_down(file, _told(event))
                    if chance.random() < 1 / MOST_UNACKNOWLEDGED:
                        events.acknowledge(event)
                if events.position:
                    events.acknowledge()


def receive(port: int, file: Path) -> None:
    """A webhook's receiver."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["data"]
            fields = ("number", "type", "catalog", "database", "table", "payload")
            write_down(file, seen_event(*(event[field] for field in fields)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


def follow_notifications(uris: list[str], file: Path) -> None:
    """A client of Hive's: it asks again and again, and goes on after the last number that it noted."""
    last = max((each.number for each in noted(file)), default=0)
    turn = 0
    while True:
        turn += 1
        with contextlib.suppress(TException, OSError), ThriftClient.from_uri(uris[turn % len(uris)]) as client:
            while True:
                for each in client.get_next_notification(NotificationEventRequest(last, 50)).events:
                    assert each.eventId == last + 1, f"{each.eventId} after {last}"
                    write_down(file, seen_notification(each))
                    last = each.eventId
                time.sleep(0.2)
        time.sleep(0.2)


def seen_notification(each: Any) -> SeenEvent:
    return seen_event(each.eventId, each.eventType, None, each.dbName, each.tableName, each.message)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def end_with_the_test() -> None:
    """The other end of the pipe is open in the test's process alone."""
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["alone", "member", "notifications", "webhook"])
    parser.add_argument("place", help="URIs, or a port")
    parser.add_argument("file", type=Path)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_the_test, daemon=True).start()
    if arguments.kind == "alone":
        follow(arguments.place, arguments.file)
    elif arguments.kind == "member":
        work(arguments.place, arguments.file)
    elif arguments.kind == "notifications":
        follow_notifications(arguments.place.split(","), arguments.file)
    else:
        receive(int(arguments.place), arguments.file)


if __name__ == "__main__":
    main()
