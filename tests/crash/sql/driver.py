"""A driver of Spark that runs statements in several sessions at once, and of which anything may be killed meanwhile."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from tests.crash import processes
from tests.spark.session import ConfiguredSession, SparkError

#: Notes in a journal what begins and ends: a driver that is killed can't answer.
RUNNING = """
import json, os, sys, time
from concurrent.futures import ThreadPoolExecutor
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType

journal = os.open({journal!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def note(*line):
    os.write(journal, (json.dumps(line) + "\\n").encode())

def slow(text):
    import time
    time.sleep(0.1)
    return text

spark.sparkContext.pythonExec = sys.executable

def run(given):
    session = spark.newSession()
    session.udf.register("slow", slow, StringType())
    for number, settings, code, text in given:
        for name, value in settings.items():
            session.conf.set(name, value)
        note("begin", number)
        try:
            exec(text, {{"spark": session}}) if code else session.sql(text)
            note("done", number)
        except Exception as error:
            note("failed", number, str(error).split("JVM stacktrace")[0])

with ThreadPoolExecutor({sessions}) as pool:
    list(pool.map(run, {given!r}))
os.close(journal)
result = None
"""

SETTINGS = {
    "spark_ui_showConsoleProgress": "false",
    "spark_task_maxFailures": "4",
    "spark_deploy_maxExecutorRetries": "-1",
    "spark_executor_memory": "512m",
    "spark_executor_extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark_hadoop_hive_metastore_client_socket_timeout": "20",
    "spark_hadoop_hive_metastore_client_connect_retry_delay": "1",
}


class Run(NamedTuple):
    """A statement that a driver runs. `is_code`: Python's, otherwise SQL. `settings`: of the session."""

    number: int
    settings: dict[str, str]
    is_code: bool
    text: str


class Note(NamedTuple):
    """A line of the journal: that a statement began, was done, or failed and why."""

    what: str
    number: int
    error: str = ""


class Driver:
    """A session in a process of its own. `is_cluster`: its tasks run in two executors, which are processes, too."""

    def __init__(self, line: str, uri: str, warehouse: Path, jar: Path, directory: Path, is_cluster: bool) -> None:
        self.directory = directory
        self.line, self.is_cluster = line, is_cluster
        master = "local-cluster[2,1,1024]" if is_cluster else "local[2,4]"
        self.session = ConfiguredSession(line, uri, str(warehouse), jar, directory, **SETTINGS, spark_master=master)
        self._process = psutil.Process(self.session._process.pid)
        self._runs = 0
        self._killed = False

    def __str__(self) -> str:
        return f"Spark {self.session.version}{', two executors' if self.is_cluster else ''}"

    @property
    def lives(self) -> bool:
        return self._process.is_running() and self._process.status() != psutil.STATUS_ZOMBIE

    def run(self, sessions: Sequence[Sequence[Run]]) -> list[Note]:
        """Runs the statements of each session one after the other, the sessions at the same time."""
        self._runs += 1
        journal = self.directory / f"journal-{self._runs}"
        given = [[tuple(each) for each in statements] for statements in sessions]
        code = RUNNING.format(journal=str(journal), sessions=len(given), given=given)
        try:
            self.session.python(code)
        except (RuntimeError, OSError):
            assert self._killed, "the driver ended by itself"
        text = journal.read_text() if journal.exists() else ""
        return [Note(*json.loads(line)) for line in text.splitlines()]

    def ask(self, code: str) -> Any:
        """What code leaves in `result`."""
        return self.session.python(code)

    def kill(self, spares_executors: bool = False) -> None:
        """Kills the driver and its workers, as a crash would. Executors that are spared find out, and end."""
        self._killed = True
        found = self._process.children(recursive=True)
        if spares_executors:
            executors = {each.pid for each in self._executors()}
            below = {each.pid for one in self._executors() for each in one.children(recursive=True)}
            found = [each for each in found if each.pid not in executors | below]
        processes.kill([self._process, *found])

    def kill_an_executor(self, chance: random.Random) -> None:
        self._kill_one(self._executors, chance)

    def kill_a_python_worker(self, chance: random.Random) -> None:
        """Kills one, or the process that forks them."""
        self._kill_one(lambda: self._named("pyspark.daemon"), chance)

    def _kill_one(self, some: Callable[[], Iterator[psutil.Process]], chance: random.Random) -> None:
        if found := list(some()):
            processes.kill([chance.choice(found)])

    def _executors(self) -> Iterator[psutil.Process]:
        return self._named("CoarseGrainedExecutorBackend")

    def _named(self, name: str) -> Iterator[psutil.Process]:
        try:
            children = self._process.children(recursive=True)
        except psutil.NoSuchProcess:
            return
        for each in children:
            try:
                if any(name in argument for argument in each.cmdline()):
                    yield each
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue

    def close(self) -> None:
        if self.lives:
            try:
                self.session.close()
            except (SparkError, OSError):
                self.kill()
