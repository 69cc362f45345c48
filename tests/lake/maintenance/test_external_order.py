"""An external policy decides, within its time, about jobs that may start."""

import http.server
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from lake.maintenance.external_order import ExternalOrder, load
from lake.maintenance.scheduling import in_order
from lake.protocol.errors import UsageError
from lake.protocol.lake import ServiceJob

NOW = 1_767_268_800_000
JOBS = [
    ServiceJob(id=1, priority=0, gain=1.0),
    ServiceJob(id=2, priority=0, gain=9.0),
    ServiceJob(id=3, priority=0, gain=5.0, notBefore=NOW + 1),
]


def own(jobs: Sequence[ServiceJob], now: int) -> list[int]:
    return in_order(jobs, now, "fifo")


def greatest_gain(jobs: Sequence[ServiceJob], now: int) -> list[int]:
    """A policy that knows nothing of pauses, and answers twice."""
    return [each.id or 0 for each in sorted(jobs, key=lambda each: -(each.gain or 0))] * 2


def test_it_decides() -> None:
    order = ExternalOrder(load(f"{__name__}:greatest_gain"), own)
    assert order(JOBS, NOW) == [2, 1], "a job that has to wait waits"
    assert order(JOBS, NOW + 1) == [2, 3, 1]
    assert ExternalOrder(lambda jobs, now: [2], own)(JOBS, NOW) == [2], "it may leave jobs out"


def fail(jobs: Sequence[ServiceJob], now: int) -> list[int]:
    raise RuntimeError("no model")


@pytest.mark.parametrize(
    "function", [fail, lambda jobs, now: ["2"], lambda jobs, now: None, lambda jobs: []], ids=["fails", "s", "n", "a"]
)
def test_without_an_answer_the_services_own_order_counts(function: Callable[..., Any]) -> None:
    assert ExternalOrder(function, own)(JOBS, NOW) == [1, 2]


def test_it_has_little_time() -> None:
    go = threading.Event()
    asked: list[int] = []

    def slow(jobs: Sequence[ServiceJob], now: int) -> list[int]:
        asked.append(now)
        go.wait(30)
        return [2]

    order = ExternalOrder(slow, own, seconds=0.1)
    assert order(JOBS, NOW) == [1, 2]
    assert order(JOBS, NOW) == [1, 2]
    assert asked == [NOW], "it isn't asked again while it works"
    go.set()


@pytest.mark.parametrize(
    "place", ["", "nothing", "no.such.module:f", f"{__name__}:missing", f"{__name__}:NOW"], ids=range(5)
)
def test_what_is_no_policy(place: str) -> None:
    with pytest.raises(UsageError, match="can't be used as a policy"):
        load(place)


@contextmanager
def endpoint(status: int, answer: object) -> Iterator[tuple[str, list[Any]]]:
    """An HTTP endpoint, and what it was asked."""
    asked: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/order", asked
        server.shutdown()


def test_an_endpoint_decides() -> None:
    with endpoint(200, [2, 1]) as (url, asked):
        assert ExternalOrder(load(url), own)(JOBS, NOW) == [2, 1]
    [said] = asked
    assert said["now"] == NOW
    assert [(each["id"], each["gain"]) for each in said["jobs"]] == [(1, 1.0), (2, 9.0), (3, 5.0)]


@pytest.mark.parametrize(("status", "answer"), [(500, [2]), (200, {"jobs": [2]}), (200, ["2"]), (200, None)])
def test_an_endpoint_that_fails(status: int, answer: object) -> None:
    with endpoint(status, answer) as (url, _):
        assert ExternalOrder(load(url), own)(JOBS, NOW) == [1, 2]


def test_an_endpoint_that_is_away() -> None:
    assert ExternalOrder(load("http://127.0.0.1:1/"), own)(JOBS, NOW) == [1, 2]
