"""A webhook's receiver, and listeners that tests have the server run."""

import json
import os
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, Self

from eventbus import Event, Listener, NewEvent, PreEventListener, Veto


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Receiver:
    """An HTTP server that notes what it is sent; `answers` are statuses by table (by default 204)."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: dict[str | None, int] = {}
        self.arrived: dict[int, float] = {}
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = Request(self.path, dict(self.headers), body)
                receiver.arrived.setdefault(request.event["data"]["number"], time.time())
                receiver.requests.append(request)
                status = receiver.answers.get(request.event["data"]["table"], 204)
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", f"http://localhost:{receiver.port}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def write_down(name: str, event: Event) -> None:
    line = json.dumps({"number": event.number, "type": event.type, "table": event.table, "time": time.time()})
    with (Path(os.environ["LISTENER_DIRECTORY"]) / name).open("a") as file:
        file.write(line + "\n")


def noted(directory: Path, name: str) -> list[dict[str, Any]]:
    path = directory / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class Everything(Listener):
    def on_event(self, event: Event) -> None:
        write_down("everything", event)


class Slow(Listener):
    def on_event(self, event: Event) -> None:
        time.sleep(3600)  # hangs


class Poisoned(Listener):
    """Fails on tables named `poison*` until there is a file `cured`."""

    types = ["CREATE_TABLE"]

    def on_event(self, event: Event) -> None:
        write_down("tried", event)
        if (event.table or "").startswith("poison") and not Path(os.environ["LISTENER_DIRECTORY"], "cured").exists():
            raise RuntimeError(f"can't swallow {event.table}")
        write_down("poisoned", event)


class Fatal(Listener):
    """Ends the process when it gets an event of a table named `fatal*`."""

    types = ["CREATE_TABLE"]

    def on_event(self, event: Event) -> None:
        write_down("met", event)
        if (event.table or "").startswith("fatal"):
            os.kill(os.getpid(), signal.SIGSEGV)
        write_down("survived", event)


def creations(event: Event) -> None:
    write_down("creations", event)


creations.types = ["CREATE_TABLE", "CREATE_DATABASE"]  # type: ignore[attr-defined]


class Police(PreEventListener):
    """Vetoes by the table's name."""

    def before_event(self, event: NewEvent) -> None:
        if event.table == "forbidden":
            raise Veto("no table of this name, please")
        if event.table == "broken":
            raise RuntimeError("out of order")
        if event.table == "hanging":
            time.sleep(3600)  # hangs
        if event.type == "DROP_DATABASE":
            raise Veto("databases stay")
        if event.type == "CREATE_FUNCTION":
            raise Veto("no functions")
