"""A stand-in for Kubernetes' API: pods of one namespace, whose containers run as processes of this host.

It answers what `PodCluster` asks, over HTTP, to the official client. What it doesn't know, it refuses.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

PODS = "/api/v1/namespaces/tables/pods"


class KubernetesApi:
    """The API and its kubelet, until the block ends.

    `program`: what every container runs in place of its command; by default, that command. `lost`: answers to so many
    of the next creations get lost. `phases`: what pods say of themselves in place of their state, by name.
    """

    def __init__(self) -> None:
        self.program: Callable[[dict[str, Any]], Sequence[str]] = _own
        self.lost = 0
        self.refusal: int | None = None
        self.phases: dict[str, str] = {}
        self.created: list[str] = []
        self._lock = threading.RLock()
        self._pods: dict[str, dict[str, Any]] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "KubernetesApi":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        for process in self._processes.values():
            process.kill()
            process.wait()

    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._pods)

    def pod(self, name: str) -> dict[str, Any]:
        """A pod as the API shows it."""
        with self._lock:
            return self._shown(name)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                address = urlsplit(self.path)
                self._answer(*api._get(address.path, parse_qs(address.query)))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = api._create(urlsplit(self.path).path, body)
                if status == 201 and api.lost:
                    api.lost -= 1
                    self.close_connection = True
                    return
                self._answer(status, answer)

            def do_DELETE(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self._answer(*api._delete(urlsplit(self.path).path))

            def _answer(self, status: int, answer: Any) -> None:
                text = isinstance(answer, str)
                content = answer.encode() if text else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain" if text else "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def _get(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        with self._lock:
            if path == PODS:
                label, _, value = query["labelSelector"][0].partition("=")
                found = [self._shown(name) for name in sorted(self._pods)]
                chosen = [each for each in found if each["metadata"]["labels"].get(label) == value]
                return 200, {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": chosen}
            name, _, rest = path.removeprefix(f"{PODS}/").partition("/")
            if name not in self._pods:
                return _failure(404, "NotFound")
            if rest == "log":
                output = self._processes[name].stdout
                assert output is not None
                return 200, output.read().decode()
            return 200, self._shown(name)

    def _create(self, path: str, pod: dict[str, Any]) -> tuple[int, Any]:
        with self._lock:
            if path != PODS:
                return _failure(404, "NotFound")
            if self.refusal is not None:
                return _failure(self.refusal, "Refused")
            name = pod["metadata"]["name"]
            if name in self._pods:
                return _failure(409, "AlreadyExists")
            container = pod["spec"]["containers"][0]
            given = {each["name"]: each["value"] for each in container.get("env", ())}
            self._pods[name] = pod
            self.created.append(name)
            self._processes[name] = subprocess.Popen(
                self.program(container), env={**os.environ, **given}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            return 201, self._shown(name)

    def _delete(self, path: str) -> tuple[int, Any]:
        name = path.removeprefix(f"{PODS}/")
        with self._lock:
            if name not in self._pods:
                return _failure(404, "NotFound")
            shown, process = self._shown(name), self._processes[name]

        def end() -> None:
            process.terminate()
            process.wait()
            with self._lock:
                self._pods.pop(name, None)

        threading.Thread(target=end).start()
        return 200, shown

    def _shown(self, name: str) -> dict[str, Any]:
        code = self._processes[name].poll()
        phase = "Running" if code is None else "Failed" if code else "Succeeded"
        return {**self._pods[name], "status": {"phase": self.phases.get(name, phase)}}


def _own(container: dict[str, Any]) -> list[str]:
    command = [*container["command"], *container["args"]]
    return [sys.executable if each == "python3" else each for each in command]


def _failure(status: int, reason: str) -> tuple[int, dict[str, Any]]:
    return status, {"kind": "Status", "status": "Failure", "reason": reason, "code": status, "message": reason}
