"""Processes that begin as copies of one that has imported the server's modules.

A server's start is most of all the import of some 1,500 modules, and a run of the tests starts hundreds of servers.
"""

import multiprocessing
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TextIO

_MODULES = ["metastore.cli.serve", "metastore.cli.federate", "metastore.cli.database", "metastore.server.worker"]
_BEFORE_PYTHON = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "LANG", "LC_")
"""Variables that are looked at when a process begins, by the beginnings of their names."""


class Forked:
    """A process that calls `target(*arguments)`, used as one of `subprocess.Popen`.

    It is in a session of its own. It has no input, its output is piped, and its errors go to the end of `log`.
    """

    def __init__(
        self, target: Callable[..., object], *arguments: object, environment: Mapping[str, str], log: Path
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([*_MODULES, __name__])
        reader, writer = context.Pipe(duplex=False)
        place = (dict(environment), log, writer, str(Path.cwd()))
        # What is still there at the end of the tests ends with them.
        self._process = context.Process(target=_run, args=(target, arguments, *place), daemon=True)
        self._process.start()
        writer.close()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.stdout: TextIO = os.fdopen(os.dup(reader.fileno()))
        reader.close()

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it ends. Raises TimeoutExpired."""
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def can_begin_so(environment: Mapping[str, str]) -> bool:
    """Whether a process with this environment may be a copy: not if other variables than here act on its beginning."""
    return not any(
        name.startswith(_BEFORE_PYTHON) and os.environ.get(name) != environment.get(name)
        for name in {*environment, *os.environ}
    )


def _run(
    target: Callable[..., object],
    arguments: tuple[object, ...],
    environment: Mapping[str, str],
    log: Path,
    output: Connection,
    directory: str,
) -> None:
    os.setsid()
    os.chdir(directory)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output.fileno(), 1)
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), 2)
    output.close()
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined] # it may have children
    target(*arguments)
