"""Our server, started and stopped as a user would."""

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from lake.cli import main
from tests.support.forked import Forked, can_begin_so
from tests.support.postgres import copy_data_directory

READY = "metastore ready "
SERVER = "METASTORE_TEST_SERVER"
"""The variable that names the Python of another environment: servers of its version run in place of this one's."""


class ServerDidNotStart(Exception):
    """The process ended, or reported nothing for too long, before it was ready."""


def _command(arguments: list[str]) -> None:
    main(arguments, prog_name="metastore")


class MetastoreServer:
    """`metastore serve` on a free port of the loopback interface, in a process group of its own.

    `options` are further command line options, `environment` further variables. What the process writes to stderr
    goes to `log`; what it prints on stdout is in `output`.
    """

    command = "serve"
    from_template = True
    """Whether a new server begins with a copy of a database that has the schema."""
    is_copy = True
    """Whether its process begins as a copy of one that has its modules, and not as users start it."""

    def __init__(self, data_dir: Path, *options: str, environment: dict[str, str] | None = None, port: int = 0) -> None:
        self.data_dir = data_dir
        self.log = data_dir.with_name(data_dir.name + ".log")
        self.output: list[str] = []
        self.host, self.port = "127.0.0.1", port
        self._options = options
        self._environment = environment or {}
        self._process: subprocess.Popen[str] | Forked | None = None

    @classmethod
    def on_database(cls, url: str, directory: Path, *options: str) -> Self:
        """A server with one worker, on a database of the test's own. All else that it keeps is in `directory`."""
        places = ("--database-url", url, "--warehouse-dir", str(directory / "warehouse"))
        return cls(directory / "data", *places, "--workers", "1", *options)

    @property
    def uri(self) -> str:
        return f"thrift://{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        assert self._process is not None, "the server was not started"
        return self._process.pid

    def start(self, timeout: float = 60.0) -> Self:
        """Starts the process and returns when it accepts connections. A restart uses the same port.

        Raises ServerDidNotStart, with what it wrote, if it ends before or isn't ready after `timeout` seconds.
        """
        if self.from_template and self._embeds_postgres() and not self.data_dir.exists():
            copy_data_directory(self.data_dir)
        self._process = self._begun()
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read_output, args=(self._process, lines), daemon=True).start()
        while True:
            try:
                line = lines.get(timeout=timeout)
            except queue.Empty:
                self.kill()
                raise ServerDidNotStart(f"not ready after {timeout} s; {self.log_tail()}") from None
            if line is None:
                code = self._process.wait()
                raise ServerDidNotStart(f"exited with {code}; {self.log_tail()}")
            if line.startswith(READY):
                address = urlsplit(line.removeprefix(READY).strip())
                self.host, self.port = address.hostname or self.host, address.port or self.port
                return self

    def _begun(self) -> "subprocess.Popen[str] | Forked":
        arguments = [
            *(self.command, "--host", self.host, "--port", str(self.port), "--data-dir", str(self.data_dir)),
            *self._options,
        ]
        environment = {**os.environ, **self._environment}
        if self.is_copy and SERVER not in os.environ and can_begin_so(environment):
            return Forked(_command, arguments, environment=environment, log=self.log)
        python = [os.environ[SERVER], "-P"] if SERVER in os.environ else [sys.executable]  # -P: not this tree's code
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*python, "-m", "lake.cli", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                start_new_session=True,
            )

    def _embeds_postgres(self) -> bool:
        """Whether nothing names another database."""
        named = "--database-url" in self._options or "--config" in self._options
        return not named and "METASTORE_DATABASE_URL" not in self._environment

    def _read_output(self, process: "subprocess.Popen[str] | Forked", lines: "queue.SimpleQueue[str | None]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.output.append(line)
            lines.put(line)
        lines.put(None)

    def log_tail(self, characters: int = 4000) -> str:
        """The end of what the server logged."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"end of {self.log}:\n{text[-characters:]}"

    def stop(self, timeout: float = 30.0) -> int:
        """Asks the server to end (SIGTERM) and returns its exit code."""
        assert self._process is not None, "the server was not started"
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """Kills the server and all its processes at once (SIGKILL), as a power cut would."""
        assert self._process is not None, "the server was not started"
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Suspends all its processes: connections stay open without an answer."""
        os.killpg(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.pid, signal.SIGCONT)

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        return self if self.running() else self.start()

    def __exit__(self, *_: object) -> None:
        if self.running():
            self.stop()
