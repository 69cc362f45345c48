"""An old metastore, a new one, and a front before both, with writers that write through it."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from lake.protocol.connection.thrift_client import ThriftClient
from metastore.migration.followed import Home, all_of
from metastore.migration.objects import DatabaseKey
from metastore.migration.thrift_source import ThriftSource
from tests.metastore.migration.following import complaint, run
from tests.metastore.migration.random_changes import Writer
from tests.support.front import FrontServer
from tests.support.server import MetastoreServer


class Place:
    """An old metastore, a new one, and a front before both."""

    def __init__(self, old: str, ours: MetastoreServer, front: FrontServer) -> None:
        self.old, self.ours, self.front = old, ours, front

    def switch(self, what: str, *databases: str, code: int | None = 0) -> Any:
        ways = ("--front", str(self.front.file), "--front-uri", self.front.uri, "--uri", self.ours.uri)
        return run(what, self.old, *databases, *ways, code=code)

    def complaint(self, what: str, *databases: str) -> str:
        ways = ("--front", str(self.front.file), "--front-uri", self.front.uri, "--uri", self.ours.uri)
        return complaint(what, self.old, *databases, *ways)

    def killed(self, seconds: float, what: str, *databases: str) -> bool:
        """Runs a command in a process that is killed after some seconds. Returns whether it had ended before."""
        ways = ("--front", str(self.front.file), "--front-uri", self.front.uri, "--uri", self.ours.uri)
        line = [sys.executable, "-m", "metastore", "migrate", what, self.old, *databases, *ways]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("METASTORE_")}
        process = subprocess.Popen(line, env=clean, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return False

    def client(self, server: str = "front") -> ThriftClient:
        uri = {"front": self.front.uri, "old": self.old, "ours": self.ours.uri}[server]
        return ThriftClient.from_uri(uri)

    def home(self, database: str) -> Home:
        key = DatabaseKey("hive", database)
        found = {each.state.home(key) for each in all_of(ThriftSource(self.ours.uri), self.old)}
        return next(iter(found - {Home.THERE}), Home.THERE)


def backends(old: str, ours: MetastoreServer) -> dict[str, str]:
    return {
        "old": f'uris = "{old}"  # the Hive\nprimary = true\n',
        "lake": f'uris = ["{ours.uri}"]\nprefix = "lake_"\nnumber = 1\n',
    }


class Going:
    """Writers that go on in a thread, through the front; what is refused they try again."""

    def __init__(self, place: Place, database: str, directory: Path, seed: int) -> None:
        self._ended = threading.Event()
        self.client = place.client()
        self.writer = Writer(self.client, [database], directory, seed)
        self._thread = threading.Thread(target=self._go_on)

    def _go_on(self) -> None:
        while not self._ended.is_set():
            self.writer.step()
            time.sleep(0.01)

    def __enter__(self) -> "Going":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        while not self.writer.counters:
            self.writer.step()
        self.client.close()

    def check(self, client: ThriftClient) -> None:
        """No acknowledged write is lost, none came twice."""
        for (database, table), count in self.writer.counters.items():
            if not database.endswith("_x"):
                assert client.get_table(database, table).parameters["n"] == str(count), (
                    table,
                    self.writer.refused[-30:],
                )
