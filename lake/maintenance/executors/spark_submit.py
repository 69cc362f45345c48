"""Runs plans by spark-submit, in one process for each attempt, so that none can harm another or the service.

The attempt's tag is in the process's command line. A process that outlives its service is found there by the next one,
which waits for its end instead of running the plan a second time.
"""

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil

from lake.maintenance.decisions.decisions import CLUSTERING, COMPACTION
from lake.maintenance.executors.base import Stopped, Task, prefix_of
from lake.protocol.errors import UserError

_LOOK_SECONDS = 0.5
_STOP_SECONDS = 20.0
_LOG_BYTES = 16_000

RUN_PLAN = Path(__file__).with_name("programs") / "run_plan.py"
"""The program that runs one plan."""


class SubmissionFailed(Exception):
    """The process ended otherwise than in order; the message has the end of what it wrote."""


class SparkSubmit:
    """The command, as it runs programs of which each has a tag."""

    def __init__(self, options: Sequence[str] = (), *, command: Sequence[str] | None = None) -> None:
        """`options`: further ones of spark-submit's, such as `--master`. `command`: instead of PySpark's own.

        Raises UserError if there is no spark-submit.
        """
        self._options = list(options)
        self._command = list(command or _spark_submit())

    def run(
        self,
        program: Path,
        arguments: Sequence[str],
        tag: str,
        prefix: str,
        stop: threading.Event,
        *,
        having: Sequence[str] = (),
    ) -> str:
        """Runs a program to its end, or waits for an earlier attempt, as `running` finds it. Returns a log.

        Raises Stopped soon after `stop` is set, SubmissionFailed.
        """
        for each in running(prefix, having):
            return self._wait_for(each, stop)
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                [*self._command, "--name", tag, *self._options, str(program), *arguments, "--tag", tag],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # it outlives the service, and is found by its tag
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
            )
            while process.poll() is None:
                if stop.wait(_LOOK_SECONDS):
                    _end(process.pid)
                    process.wait()
                    raise Stopped
            output.seek(max(0, output.seek(0, os.SEEK_END) - _LOG_BYTES))
            text = output.read().decode(errors="replace")
        if process.returncode != 0:
            raise SubmissionFailed(f"{shlex.join(self._command)} exited with {process.returncode}:\n{text}")
        return text

    @staticmethod
    def _wait_for(process: psutil.Process, stop: threading.Event) -> str:
        """Waits for an attempt that an earlier service has left behind."""
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            if stop.wait(_LOOK_SECONDS):
                _end(process.pid)
                raise Stopped
        return f"process {process.pid} had been started by a service before, and has ended"


class SparkSubmitExecutor:
    """`spark-submit` of a program that runs one plan."""

    actions: Collection[str] = frozenset({COMPACTION, CLUSTERING})

    def __init__(self, uri: str, options: Sequence[str] = (), *, command: Sequence[str] | None = None) -> None:
        """`options` and `command` are SparkSubmit's. Raises UserError if there is no spark-submit."""
        self._uri = uri
        self._submit = SparkSubmit(options, command=command)

    def run(self, task: Task, stop: threading.Event) -> str:
        arguments, prefix = task.arguments(self._uri), prefix_of(task.instant)
        return self._submit.run(RUN_PLAN, arguments, task.tag, prefix, stop, having=task.table_arguments)

    def close(self) -> None:
        pass


def running(prefix: str, having: Sequence[str] = ()) -> list[psutil.Process]:
    """The processes of this host that run attempts whose tags begin so.

    `having`: words that follow one another in their command lines, such as `Task.table_arguments`: two tables may have
    plans of the same timestamp.
    """
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            arguments = process.cmdline()
            named = [value for flag, value in pairwise(arguments) if flag == "--tag"]
            if not any(value.startswith(prefix) for value in named) or not _has(arguments, having):
                continue
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _has(words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether some words follow one another among others."""
    count = len(wanted)
    return any(list(words[at : at + count]) == list(wanted) for at in range(len(words) - count + 1))


def _end(pid: int) -> None:
    """Ends a process with its children: in order, or else at once."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
    except psutil.Error:
        return
    for each in family:
        with suppress(psutil.Error):
            each.send_signal(signal.SIGTERM)
    _, alive = psutil.wait_procs(family, timeout=_STOP_SECONDS)
    for each in alive:
        with suppress(psutil.Error):
            each.kill()


def _spark_submit() -> list[str]:
    if home := os.environ.get("SPARK_HOME"):
        return [str(Path(home) / "bin" / "spark-submit")]
    try:
        import pyspark
    except ImportError:
        raise UserError("no spark-submit: set SPARK_HOME, or pip install 'lake-metastore-client[spark]'") from None
    return [str(Path(pyspark.__file__).parent / "bin" / "spark-submit")]
