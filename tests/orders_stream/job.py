"""The job of `examples.orders_stream.orders`, started as a user would, killed, and started again."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Job:
    """`python -m examples.orders_stream.orders` in a process group of its own; what it prints goes to `log`.

    `options` are its command line options but --uri. Started again, it goes on by its checkpoint.
    """

    def __init__(self, uri: str, log: Path, *options: str) -> None:
        self.log = log
        self._command = [sys.executable, "-m", "examples.orders_stream.orders", "--uri", uri, *options]
        self._command += ["--conf", "spark.driver.extraJavaOptions=-XX:+UseSerialGC -XX:TieredStopAtLevel=1"]
        self._command += ["--conf", "spark.driver.memory=768m"]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        foreign = ("SPARK_", "PYSPARK_", "HADOOP_", "HIVE_")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                env={key: value for key, value in os.environ.items() if not key.startswith(foreign)},
                start_new_session=True,
            )

    def wait(self, timeout: float = 240.0) -> int:
        """Its exit code, once it has ended by itself."""
        assert self._process is not None
        return self._process.wait(timeout)

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> int:
        """Asks it to end (SIGTERM); its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(60)

    def kill(self) -> None:
        """Kills driver and JVM at once (SIGKILL)."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.kill()
