"""Two servers with two workers each on one Postgres and one Redis, and all that may happen to them."""

import re
import shutil
import signal
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import redis

from lake.protocol.connection.thrift_client import ThriftClient
from tests.crash import processes
from tests.support.postgres import Postgres
from tests.support.redis import RedisServer
from tests.support.server import MetastoreServer

WORKERS = 2
LEVELS = ("memory", "redis", "database")


def _metrics_of(server: MetastoreServer) -> str:
    *_, url = re.findall(r"uri=(http://\S+)", server.log.read_text())
    return _fetched(f"{url}/metrics")


def answers_of(server: MetastoreServer) -> dict[str, int]:
    """How many replies came from where since the server was started."""
    text = _metrics_of(server)
    counts = dict(re.findall(r'metastore_cache_answers_total\{level="(\w+)"\} (\S+)', text))
    return {level: int(float(counts.get(level, 0))) for level in LEVELS}


class Cluster:
    """Methods are for the thread that made it: Postgres ends together with it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack as stack:
            self._postgres = Postgres(self._directory / "database")
            stack.callback(self._postgres.close)
            self.database_url = self._postgres.url("postgres")
            self._redis_files = self._directory / "redis"
            self.redis = stack.enter_context(RedisServer(self._redis_files))
            self.servers = [self._server(name) for name in ("one", "two")]
            with ThreadPoolExecutor() as pool:
                for server in pool.map(MetastoreServer.start, self.servers):
                    stack.enter_context(server)
            self._stack = stack.pop_all()
        return self

    def _server(self, name: str) -> MetastoreServer:
        return MetastoreServer(
            self._directory / name,
            *("--database-url", self.database_url, "--warehouse-dir", str(self._directory / "warehouse")),
            *("--cache-redis-url", self.redis.url, "--workers", str(WORKERS), "--http-port", "0"),
            *("--housekeeping-seconds", "1", "--drain-seconds", "2"),
        )

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, value, trace)

    def client(self, server: int) -> ThriftClient:
        """Raises TTransportException where nobody listens."""
        return ThriftClient("127.0.0.1", self.servers[server].port, timeout=20)

    def answers(self) -> dict[str, int]:
        """How many replies came from where, on all servers."""
        counts = [answers_of(server) for server in self.servers]
        return {level: sum(each[level] for each in counts) for level in LEVELS}

    def leases(self) -> int:
        """How many leases workers have taken since their server was started."""
        found = [re.search(r"(?m)^metastore_cache_leases_total (\S+)$", _metrics_of(server)) for server in self.servers]
        return sum(int(float(each[1])) for each in found if each is not None)

    # -- what may happen -------------------------------------------------------------------------------------

    def kill_worker(self, server: int, worker: int) -> None:
        """The supervisor starts another."""
        children = processes.workers(self.servers[server])
        processes.kill([children[worker % len(children)]])

    def kill_server(self, server: int, seconds: float) -> None:
        """It is started again after a while."""
        processes.kill(processes.everything(self.servers[server]))
        time.sleep(seconds)
        self.servers[server].start()

    def pause_worker(self, server: int, worker: int, seconds: float) -> None:
        children = processes.workers(self.servers[server])
        with suppress(psutil.NoSuchProcess):
            _pause(children[worker % len(children)], seconds)

    def kill_postgres(self, seconds: float) -> None:
        self._postgres.kill()
        time.sleep(seconds)
        self._postgres.start()

    def copy_postgres(self) -> None:
        """Its data directory as it is now, for `restore_postgres`."""
        self._postgres.close()
        subprocess.run(["cp", "-a", self._directory / "database", self._directory / "database-copy"], check=True)
        self._postgres.start()

    def restore_postgres(self) -> None:
        """What was written since the copy is gone, and its transactions' ids are given out again."""
        self._postgres.close()
        shutil.rmtree(self._directory / "database")
        subprocess.run(["cp", "-a", self._directory / "database-copy", self._directory / "database"], check=True)
        self._postgres.start()

    def crash_postgres(self) -> None:
        """One of its processes is killed: it ends all others, recovers, and goes on with the same postmaster."""
        with suppress(psutil.NoSuchProcess, IndexError):
            postmaster = psutil.Process(self._postmaster())
            backends = [each for each in postmaster.children() if " ".join(each.cmdline()).count("postgres:")]
            backends[-1].kill()

    def _postmaster(self) -> int:
        return int((self._directory / "database/postgres/postmaster.pid").read_text().split()[0])

    def kill_redis(self, seconds: float) -> None:
        self.redis.kill()
        time.sleep(seconds)
        self.redis.start()

    def lose_redis(self) -> None:
        """It comes back empty."""
        self.redis.lose()
        self.redis.start()

    def flush_redis(self) -> None:
        with self.redis.client() as client:
            client.flushall()

    def shrink_redis(self, seconds: float) -> None:
        """It evicts nearly everything, and takes nearly nothing, for a while."""
        with self.redis.client() as client, suppress(redis.ResponseError):
            client.config_set("maxmemory-policy", "allkeys-random")
            client.config_set("maxmemory", "1mb")
            time.sleep(seconds)
            client.config_set("maxmemory", "0")

    def copy_redis(self) -> None:
        """Its data as they are now, for `restore_redis`."""
        copy = self._directory / "redis-copy"
        shutil.rmtree(copy, ignore_errors=True)
        self.redis.kill()
        shutil.copytree(self._redis_files, copy)
        self.redis.start()

    def restore_redis(self) -> None:
        """It comes back with the data of the last copy, if there is one."""
        copy = self._directory / "redis-copy"
        if copy.exists():
            self.redis.kill()
            shutil.rmtree(self._redis_files)
            shutil.copytree(copy, self._redis_files)
            self.redis.start()

    def pause_redis(self, seconds: float) -> None:
        """It takes requests, and answers when the pause is over."""
        (listener,) = (
            each
            for each in psutil.Process().children()
            if "redis-server" in each.name() and str(self.redis.port) in " ".join(each.cmdline())
        )
        _pause(listener, seconds)


def _fetched(url: str, seconds: float = 20.0) -> str:
    """A page of a process that may just have been killed, and started again."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=seconds) as answer:
                return str(answer.read().decode())
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _pause(process: psutil.Process, seconds: float) -> None:
    process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        process.send_signal(signal.SIGCONT)
