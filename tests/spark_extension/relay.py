"""A relay between Spark and a metastore, which can hold or lose requests."""

import contextlib
import socket
import threading
from collections import Counter
from typing import Self


class Relay:
    """Listens on `uri`. What happens to the next request for a method is set by `lose` or `hold`."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        #: How many requests for a method arrived.
        self.requests: Counter[str] = Counter()
        #: Whether a request that was held was passed by another one.
        self.overtaken = False
        self._rules: dict[str, str] = {}
        self._passed = threading.Event()
        self._sockets: list[socket.socket] = []

    def lose(self, method: str) -> None:
        """The connection of the next request for the method is closed, and the request does not reach the server."""
        self._rules[method] = "lose"
        self.requests[method] = 0

    def hold(self, method: str) -> None:
        """The next request for the method waits until another one arrives, at most for some seconds."""
        self._rules[method] = "hold"
        self.requests[method] = 0
        self._passed.clear()

    def close_connections(self) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """From now on nobody listens."""
        self._passed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.close_connections()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.create_connection(self._server)
                self._sockets += [near, far]
                threading.Thread(target=self._copy, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self._copy, args=(far, near, False), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, inspects: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if inspects and not self._passes(data):
                    break
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _passes(self, data: bytes) -> bool:
        for method in list(self.requests):
            if method.encode() in data:
                self.requests[method] += 1
                rule = self._rules.pop(method, None)
                if rule == "lose":
                    return False
                if rule == "hold":
                    self.overtaken = self._passed.wait(10)
                else:
                    self._passed.set()
        return True
