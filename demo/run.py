"""The demo: starts the server as a user would, lets Spark use it, stops it, and leaves nothing behind.

First a tour of what any Hive metastore does (`spark_tour.py`), then what none of them does: tables with a primary key
in SQL, which DuckDB reads, too (`keyed_story.py`), partitions seen when they are complete (`stream_story.py`), tables
that are compacted beside their writers (`table_services_story.py`), and layers of tables that follow a database by
increments (`warehouse_story.py`).
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

READY = "metastore ready "
START_SECONDS = 60
STOP_SECONDS = 30
#: Variables that would make the demo something else than the default: another database, another Spark.
FOREIGN_SETTINGS = ("METASTORE_", "SPARK_", "PYSPARK_", "HADOOP_", "HIVE_")

console = Console(highlight=False)


class DemoFailed(Exception):
    """The server did not do what it should; the message is for the user."""


class ProgramFailed(Exception):
    """A program of the demo found something wrong, and has said what."""


def environment() -> dict[str, str]:
    """This process's environment without the settings of other metastores and Sparks."""
    return {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN_SETTINGS)}


def last_lines(file: Path, count: int = 15) -> str:
    return "\n".join(file.read_text(errors="replace").splitlines()[-count:])


def complaints(log: Path) -> str:
    """The end of what a server logged, without the calls that went well."""
    lines = log.read_text(errors="replace").splitlines()
    return "\n".join([line for line in lines if " outcome=ok " not in line][-20:])


def wait_until_ready(server: subprocess.Popen[bytes], output: Path, log: Path) -> str:
    """The URI in the server's line `metastore ready thrift://HOST:PORT`; `DemoFailed` if it doesn't come."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        for line in output.read_text().splitlines():
            if line.startswith(READY):
                return line.removeprefix(READY).strip()
        if server.poll() is not None:
            raise DemoFailed(f"The server ended with exit code {server.returncode}:\n{last_lines(log)}")
        time.sleep(0.05)
    raise DemoFailed(f"The server was not ready after {START_SECONDS} s:\n{last_lines(log)}")


@contextmanager
def temporary_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="metastore-demo-") as directory:
        yield Path(directory)


@contextmanager
def running_server(directory: Path) -> Iterator[tuple[str, str]]:
    """A server on its embedded default, keeping everything in `directory`. SIGTERM ends it.

    Yields its URI and that of its Iceberg REST catalog.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        http_port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("metastore")), "serve", "--host", "127.0.0.1"]
    command += ["--port", "0", "--data-dir", str(directory / "data"), "--http-port", str(http_port)]
    output, log = directory / "server.out", directory / "server.log"
    console.print(f"[dim]$ metastore {' '.join(command[1:])}")
    begun = time.monotonic()
    with output.open("wb") as stdout, log.open("wb") as stderr:
        # In a session of its own: Ctrl-C reaches us alone, and we stop the server in order.
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=environment(),
            start_new_session=True,
        )
    try:
        with console.status("Starting the metastore …"):
            uri = wait_until_ready(server, output, log)
        console.print(f"[bold green]✓[/] {READY}{uri}  [dim]after {time.monotonic() - begun:.1f} s")
        yield uri, f"http://127.0.0.1:{http_port}/iceberg"
    except ProgramFailed:
        console.print(Panel(Text(complaints(log)), title="The server's log", border_style="red"))
        raise
    finally:
        with console.status("Stopping the metastore …"):
            server.terminate()
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()
                raise DemoFailed(f"The server did not stop within {STOP_SECONDS} s of SIGTERM.") from None
    if server.returncode != 0:
        raise DemoFailed(f"The server ended with exit code {server.returncode}:\n{last_lines(log)}")
    console.print("[bold green]✓[/] The metastore drained its connections and exited.")


def run_program(name: str, *arguments: str) -> None:
    """Runs one of the demo's programs. Raises ProgramFailed if its exit code isn't 0."""
    program = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name(name)), *arguments],
        stdin=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,
    )
    try:
        if program.wait() != 0:
            raise ProgramFailed
    finally:
        if program.poll() is None:
            program.terminate()
            program.wait()


def leave(number: int, _frame: FrameType | None) -> None:
    """Ends the program in order at the first signal; the ones after it don't disturb the clearing up."""
    for known in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(known, signal.SIG_IGN)
    console.print("\n[yellow]Stopping, and clearing up.")
    sys.exit(128 + number)


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    try:
        with temporary_directory() as directory, running_server(directory) as (uri, iceberg):
            run_program("spark_tour.py", "--uri", uri, *sys.argv[1:])
            run_program("keyed_story.py", "--uri", uri, "--iceberg", iceberg)
            run_program("stream_story.py", "--uri", uri)
            run_program("table_services_story.py", "--uri", uri)
            run_program("warehouse_story.py", "--uri", uri)
    except ProgramFailed:
        return 1
    except DemoFailed as error:
        console.print(Panel(Text(str(error)), title="The demo failed", border_style="red"))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
