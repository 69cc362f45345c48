"""Connections of threads."""

import threading
from contextlib import suppress
from typing import Protocol


class _Closes(Protocol):
    def close(self) -> object: ...


class Connections:
    """Each thread has its own. Those of threads that have ended are closed when another one is added: who follows for
    days has many threads, one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[tuple[threading.Thread, _Closes]] = []

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: _Closes) -> None:
        """One of the current thread."""
        with self._lock:
            ended = [each for thread, each in self._open if not thread.is_alive()]
            self._open = [pair for pair in self._open if pair[0].is_alive()]
            self._open.append((threading.current_thread(), connection))
        for each in ended:
            _close(each)

    def forget(self, connection: _Closes) -> None:
        """Closes one."""
        with self._lock:
            self._open = [pair for pair in self._open if pair[1] is not connection]
        _close(connection)

    def close(self) -> None:
        """Closes all."""
        with self._lock:
            found, self._open = self._open, []
        for _, each in found:
            _close(each)


def _close(connection: _Closes) -> None:
    with suppress(Exception):  # one that broke: drivers differ in what they raise
        connection.close()
