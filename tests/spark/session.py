"""A Spark session in a process of its own, driven from a test."""

import contextlib
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("programs") / "session.py"

#: The Spark lines that tests run, and the interpreter that has each: the tests' own has Spark 4.
LINES = {"3.5": ROOT / ".venv-spark35/bin/python", "4": Path(sys.executable)}


def require(line: str) -> None:
    """Skips the test where a Spark line or Java is missing."""
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java (Debian: apt-get install openjdk-17-jre-headless)")
    if not LINES[line].exists():
        pytest.skip(f"PySpark {line} is not set up: tools/setup.sh --spark35")


def spark_of(line: str) -> Path:
    """Where a line's PySpark has its Spark."""
    require(line)
    (package,) = LINES[line].parents[1].glob("lib/python*/site-packages/pyspark")
    return package


def mark_spark_tests(
    items: Sequence[pytest.Item], directory: Path, on_older_line: Callable[[str], bool] = lambda test: True
) -> None:
    """Marks the tests below a directory. An ordinary run has a third of a test's cases on the newer line, and
    one on the older, if `on_older_line` says so. Which, depends on their names alone."""
    cases: dict[tuple[str, bool], list[pytest.Item]] = {}
    for item in items:
        if directory in item.path.parents:
            item.add_marker(pytest.mark.spark)
            if item.get_closest_marker("long") is None:
                cases.setdefault((item.nodeid.partition("[")[0], "spark3.5" in item.name), []).append(item)
    for (test, is_older), found in cases.items():
        most = int(on_older_line(test)) if is_older else -(-len(found) // 3)
        for item in sorted(found, key=lambda each: zlib.crc32(each.nodeid.encode()))[most:]:
            item.add_marker(pytest.mark.long)


class SparkError(Exception):
    """A statement failed in Spark; the text begins with the name of Spark's exception."""


class SparkSession:
    """A Spark session of one line on one metastore. Its log is `log`; close it when done."""

    program = PROGRAM
    #: Further options of the program.
    options: tuple[str, ...] = ()

    def __init__(
        self,
        line: str,
        uri: str,
        warehouse: str,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        **settings: str,
    ) -> None:
        """Starts Spark and waits until it is there. `settings` are Spark's, with underscores for their dots.

        `environment`: further variables.
        """
        self.line = line
        self.log = directory / "spark.log"
        scratch = directory / "scratch"
        scratch.mkdir(parents=True)
        foreign = ("SPARK_", "PYSPARK_", "HADOOP_", "HIVE_")
        command = [str(LINES[line]), str(self.program), "--uri", uri, "--warehouse", warehouse]
        command += ["--scratch", str(scratch), *self.options]
        command += ["--settings", json.dumps({k.replace("_", "."): v for k, v in settings.items()})]
        variables = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
        variables |= environment or {}
        variables["PYTHONPATH"] = str(ROOT)  # for Spark's Python workers
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=directory,
                env=variables,
            )
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._late = 0
        """Answers that nobody waits for any more."""
        threading.Thread(target=self._read, daemon=True).start()
        self.version: str = self._answer()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def _answer(self, timeout: float = 400.0) -> Any:
        line = self._next(timeout)
        while line is not None and self._late:
            self._late -= 1
            line = self._next(timeout)
        if line is None:
            end = self.log.read_text(errors="replace")[-4000:]
            raise RuntimeError(f"Spark {self.line} ended with {self._process.wait()}:\n{end}")
        answer = json.loads(line)
        if "error" in answer:
            message = answer["message"].split("JVM stacktrace")[0].strip()
            raise SparkError(f"{answer['error']}: {message}")
        return answer["result"]

    def _next(self, timeout: float) -> str | None:
        try:
            return self._answers.get(timeout=timeout)
        except queue.Empty:
            self._late += 1
            raise TimeoutError(f"Spark {self.line} did not answer within {timeout} s") from None

    def _ask(self, request: dict[str, str]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def sql(self, statement: str) -> list[list[Any]]:
        """The rows a statement answers; decimals, dates and times as text. Raises SparkError."""
        return self._ask({"sql": statement})

    def python(self, code: str) -> Any:
        """What `code` leaves in `result`; it finds the session as `spark`. Raises SparkError."""
        return self._ask({"python": code})

    def value(self, query: str) -> Any:
        """The one value a query answers."""
        return self.sql(query)[0][0]

    def column(self, query: str, index: int = 0) -> list[Any]:
        """One column of what a query answers."""
        return [row[index] for row in self.sql(query)]

    def describe(self, table: str, partition: str = "") -> dict[str, str]:
        """DESCRIBE TABLE EXTENDED by its first column; of a partition, its own facts before the table's."""
        described: dict[str, str] = {}
        for row in self.sql(f"DESCRIBE TABLE EXTENDED {table} {partition}"):
            described.setdefault(row[0], row[1])
        return described

    def partitions(self, table: str, spec: str = "") -> list[str]:
        return self.column(f"SHOW PARTITIONS {table} {spec}")

    def properties(self, table: str) -> dict[str, str]:
        return dict(self.sql(f"SHOW TBLPROPERTIES {table}"))

    def directories_read(self, query: str) -> set[str]:
        """The last parts of the directories whose files a query reads, as `key=value/key=value`."""
        files = self.python(f"result = spark.sql({query!r}).inputFiles()")
        return {"/".join(part for part in file.split("/")[:-1] if "=" in part) for file in files}

    def kill(self) -> None:
        """Kills Python and the JVM, as a crash would."""
        python = psutil.Process(self._process.pid)
        for process in (*python.children(recursive=True), python):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def close(self) -> None:
        """Stops Spark and its JVM."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ConfiguredSession(SparkSession):
    """A session that `lake.spark.configure` made, with a given jar."""

    program = ROOT / "tests/spark/programs/configured.py"

    def __init__(self, line: str, uri: str, warehouse: str, jar: Path, directory: Path, **settings: str) -> None:
        self.options = ("--jar", str(jar))
        # Compiling takes longer than running tiny queries.
        usual = {
            "spark_sql_codegen_wholeStage": "false",
            "spark_sql_adaptive_enabled": "false",
        }
        super().__init__(line, uri, warehouse, directory, **{**usual, **settings})
