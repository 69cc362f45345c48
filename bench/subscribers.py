"""Subscribers in processes of their own, which record when they get an event that has a `n`."""

import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from eventbus import Event, Listener
from lake.subscriptions import subscribe

DIRECTORY = "BENCH_DIRECTORY"
LISTENER = "listener"
PARAMETER = "n"
_spawn = multiprocessing.get_context("spawn")


def write_down(file: Path, payload: Mapping[str, Any]) -> None:
    """Number and moment; the clock is the same for all processes."""
    now = time.monotonic_ns()
    number = payload.get("after", {}).get("parameters", {}).get(PARAMETER)
    if number is not None:
        with file.open("a") as notes:
            notes.write(f"{number} {now}\n")


def noted(file: Path) -> dict[int, int]:
    """The moments (ns) in which events came first, by their `n`."""
    found: dict[int, int] = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        number, moment = line.split()
        found.setdefault(int(number), int(moment))
    return found


class Noting(Listener):
    """In the process of an outlet."""

    def on_event(self, event: Event) -> None:
        write_down(Path(os.environ[DIRECTORY]) / LISTENER, event.payload)


@contextmanager
def follower(uri: str, file: Path) -> Iterator[None]:
    """A process that follows `thrift://` or `redis://`; it has begun when the block does."""
    with _process(_follow, uri, file):
        yield


@contextmanager
def receiver(file: Path) -> Iterator[str]:
    """A webhook's URL, and the process behind it."""
    with _process(_receive, file) as port:
        yield f"http://127.0.0.1:{port}/"


@contextmanager
def _process(life: Callable[..., None], *arguments: object) -> Iterator[Any]:
    """Yields what the process says when it is ready."""
    here, there = _spawn.Pipe()
    process = _spawn.Process(target=life, args=(*arguments, there), daemon=True)
    process.start()
    there.close()
    try:
        yield here.recv()
    finally:
        process.kill()
        process.join()


def _follow(uri: str, file: Path, ready: "Connection[Any, Any]") -> None:
    with subscribe(uri, start="latest") as events:
        while not events.position:
            events.poll()
        ready.send(None)
        for event in events:
            write_down(file, event.payload)


def _receive(file: Path, ready: "Connection[Any, Any]") -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            write_down(file, body["data"]["payload"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ready.send(server.server_address[1])
    server.serve_forever()
