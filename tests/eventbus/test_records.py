"""Records that aren't events, on their way to a webhook or a Redis stream."""

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from eventbus.outlets import records
from eventbus.outlets.records import RecordOutlet, StreamDestination, WebhookDestination
from eventbus.outlets.webhooks import SIGNATURE, signature
from tests.support.redis import RedisServer
from tests.support.waiting import wait_until


class Destination:
    """Keeps what it is sent, unless it is away."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.calls: list[int] = []
        self.away = threading.Event()

    def send(self, records: Sequence[str]) -> None:
        self.calls.append(len(records))
        if self.away.is_set():
            raise OSError("away")
        self.found += records


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(records, "_LONGEST_PAUSE", 0.02)


def test_nothing_waits_and_nothing_is_out_of_order(quick: None) -> None:
    destination = Destination()
    lost: list[int] = []
    outlet = RecordOutlet("test", destination, lost=lost.append, room=2_000)
    destination.away.set()
    for number in range(1_200):
        outlet.add(str(number))
    wait_until(lambda: len(destination.calls) > 2, 10, "it has tried again")
    destination.away.clear()
    wait_until(lambda: len(destination.found) == 1_200, 10, "all have come")
    assert destination.found == [str(number) for number in range(1_200)]
    assert max(destination.calls) <= records.AT_ONCE
    outlet.close()
    assert lost == []


def test_what_does_not_fit_is_counted(quick: None) -> None:
    destination = Destination()
    lost: list[int] = []
    destination.away.set()
    outlet = RecordOutlet("test", destination, lost=lost.append, room=10)
    outlet.add("first")
    wait_until(lambda: bool(destination.calls), 10, "it is being sent")
    for number in range(15):
        outlet.add(str(number))
    assert sum(lost) == 5
    outlet.close()
    assert sum(lost) == 16, "one was on its way, ten waited"
    assert destination.found == []
    outlet.add("too late")
    assert sum(lost) == 17


def test_what_hangs_when_it_is_closed_is_counted() -> None:
    going_on = threading.Event()

    class Hanging(Destination):
        def send(self, records: Sequence[str]) -> None:
            super().send(records)
            going_on.wait()

    destination = Hanging()
    lost: list[int] = []
    outlet = RecordOutlet("test", destination, lost=lost.append)
    outlet.add("first")
    wait_until(lambda: bool(destination.calls), 10, "it is being sent")
    for number in range(5):
        outlet.add(str(number))
    outlet.close(0.1)
    assert sum(lost) == 6
    going_on.set()


def test_closing_delivers_what_waits(quick: None) -> None:
    destination = Destination()
    outlet = RecordOutlet("test", destination)
    for number in range(1_000):
        outlet.add(str(number))
    outlet.close()
    assert len(destination.found) == 1_000


class Hook(ThreadingHTTPServer):
    """Notes bodies and signatures, and answers with `status`."""

    def __init__(self) -> None:
        self.bodies: list[tuple[bytes, str | None]] = []
        self.status = 204
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.bodies.append((body, self.headers.get(SIGNATURE)))
                self.send_response(hook.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/audit"


@pytest.fixture
def hook() -> Iterator[Hook]:
    server = Hook()
    yield server
    server.shutdown()
    server.server_close()


def test_a_webhook_gets_lines(hook: Hook, quick: None) -> None:
    hook.status = 503
    outlet = RecordOutlet("test", WebhookDestination(hook.url, "secret"))
    outlet.add(json.dumps({"n": 1}))
    wait_until(lambda: len(hook.bodies) >= 2, 10, "it was refused, and sent again")
    hook.status = 200
    outlet.add(json.dumps({"n": 2}))
    wait_until(lambda: any(b'"n": 2' in body for body, _ in hook.bodies), 10, "the second has come")
    outlet.close()
    body, signed = hook.bodies[-1]
    assert [json.loads(line) for line in body.splitlines()][-1] == {"n": 2}
    assert signed == signature(body, "secret")


def test_a_stream_in_redis(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as server:
        outlet = RecordOutlet("test", StreamDestination(server.url, "records"))
        for number in range(3):
            outlet.add(json.dumps({"n": number}))
        outlet.close()
        with server.client() as client:
            entries: Any = client.xrange("records")
    assert [json.loads(fields["record"])["n"] for _, fields in entries] == [0, 1, 2]
