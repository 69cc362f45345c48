"""An old metastore, a new one, and a front before both, with writers that write through it."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from click.testing import CliRunner

from lake.protocol.connection.thrift_client import ThriftClient
from metastore.cli.migrate import migrate
from metastore.migration.followed import Home, all_of
from metastore.migration.objects import DatabaseKey
from metastore.migration.thrift_source import ThriftSource
from tests.metastore.migration.following import complaint, run
from tests.metastore.migration.random_changes import Tables, Writer
from tests.support.front import FrontServer
from tests.support.server import MetastoreServer


class Killable(Protocol):
    """A server."""

    def kill(self) -> None: ...

    def start(self) -> object: ...


class Place:
    """An old metastore, a new one, and a front before both. `servers`: those of them that may be killed."""

    def __init__(
        self, old: str, ours: MetastoreServer, front: FrontServer, servers: Mapping[str, Killable] | None = None
    ) -> None:
        self.servers = servers or {}
        self.old, self.ours, self.front = old, ours, front
        with closing(ThriftSource(old)) as source:
            self.is_lake = bool(source.ours)
        """Whether the old one is one of ours."""
        self.said = front.file.with_name("commands.log")
        """What commands in processes of their own have said."""

    def switch(self, what: str, *databases: str, code: int | None = 0) -> Any:
        ways = ("--front", str(self.front.file), "--front-uri", self.front.uri, "--uri", self.ours.uri)
        return run(what, self.old, *databases, *ways, code=code)

    def tried(self, what: str, *databases: str) -> bool:
        """Whether a command ended well."""
        ways = ("--front", str(self.front.file), "--front-uri", self.front.uri, "--uri", self.ours.uri)
        result = CliRunner().invoke(migrate, [what, self.old, *databases, *ways])
        return result.exit_code == 0

    def complaint(self, what: str, *databases: str) -> str:
        ways = ("--front", str(self.front.file), "--front-uri", self.front.uri, "--uri", self.ours.uri)
        return complaint(what, self.old, *databases, *ways)

    def killed(self, seconds: float, what: str, *databases: str) -> bool:
        """Runs a command in a process that is killed after some seconds. Returns whether it had ended well before."""
        ways = () if what in ("import", "follow") else ("--front", str(self.front.file), "--front-uri", self.front.uri)
        line = [sys.executable, "-m", "metastore", "migrate", what, self.old, *databases, *ways, "--uri", self.ours.uri]
        clean = {key: value for key, value in os.environ.items() if not key.startswith("METASTORE_")}
        with self.said.open("ab") as said:
            said.write(f"--- {what}, for {seconds:.1f} s\n".encode())
            said.flush()
            process = subprocess.Popen(line, env=clean, stdout=said, stderr=said)
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            return False

    def client(self, server: str = "front") -> ThriftClient:
        uri = {"front": self.front.uri, "old": self.old, "ours": self.ours.uri}[server]
        return ThriftClient.from_uri(uri)

    def tables(self, database: str) -> list[str]:
        """Those that the front shows."""
        with self.client() as client:
            return list(client.get_all_tables(database))

    def home(self, database: str) -> Home:
        key = DatabaseKey("hive", database)
        here = ThriftSource(self.ours.uri)
        found = {each.state.home(key) for each in all_of(here, self.old)}
        here.close()
        return next(iter(found - {Home.THERE}), Home.THERE)


def backends(old: str, ours: MetastoreServer) -> dict[str, str]:
    return {
        "old": f'uris = "{old}"  # the Hive\nprimary = true\n',
        "lake": f'uris = ["{ours.uri}"]\nprefix = "lake_"\nnumber = 1\n',
    }


class Going:
    """A writer that goes on in a thread, through the front; what is refused it tries again.

    `kept`: the tables as a writer before has left them.
    """

    def __init__(self, place: Place, database: str, directory: Path, seed: int, kept: Tables | None = None) -> None:
        self._ended = threading.Event()
        self.writer = Writer(
            place.client(),
            [database],
            directory,
            seed,
            connect=place.client,
            careful=not place.is_lake,
            kept=kept or {},
        )
        self._thread = threading.Thread(target=self._go_on)
        self._error: BaseException | None = None

    def _go_on(self) -> None:
        try:
            while not self._ended.is_set():
                self.writer.step()
                time.sleep(0.01)
        except BaseException as error:
            self._error = error

    def __enter__(self) -> "Going":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        assert self._error is None, self._error
        while not self.writer.kept:
            self.writer.step()
        self.writer.client.close()

    def check(self, client: ThriftClient) -> None:
        """No acknowledged write is lost, none came twice."""
        self.writer.check(client)
