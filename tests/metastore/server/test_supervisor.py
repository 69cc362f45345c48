"""The supervisor's processes, started and killed as in life, with workers that speak lines of text."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg2
import pytest

from metastore.server.embedded_postgres import running_url
from tests.support.waiting import wait_until

NO_DATABASE = "postgresql://nobody@127.0.0.1:1/none"  # the stand-in worker never connects


class Server:
    """A supervisor with stand-in workers, in a process of its own."""

    def __init__(self, directory: Path, behaviour: str = "serve", **settings: Any) -> None:
        self.directory = directory
        self.log = directory.with_name(f"{directory.name}.log")
        self.port = 0
        values = {
            "host": "127.0.0.1",
            "port": 0,
            "data_dir": str(directory),
            "workers": 2,
            "drain_seconds": 10,
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.metastore.server.stand_in_worker",
                    behaviour,
                    json.dumps(values | settings),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def ready(self) -> "Server":
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("metastore ready thrift://127.0.0.1:"), (line, self.log.read_text())
        self.port = int(line.rpartition(":")[2])
        return self

    def connect(self) -> "Connection":
        return Connection(self.port)

    def workers(self) -> set[tuple[int, int]]:
        """Number and process of each worker: asked often enough, every one answers."""
        answers = set()
        for _ in range(100):
            with self.connect() as connection:
                number, pid = connection.ask("pid").split()
                answers.add((int(number), int(pid)))
        return answers

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def ends(self, seconds: float = 20) -> int:
        """Its exit code, once it ended."""
        return self.process.wait(seconds)

    def logged(self) -> str:
        return self.log.read_text()

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


class Connection:
    """A client's connection to a stand-in worker."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._lines = self._socket.makefile("r")

    def ask(self, command: str) -> str:
        self._socket.sendall(f"{command}\n".encode())
        return self.read()

    def read(self) -> str:
        return self._lines.readline().strip()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    servers = []

    def start(behaviour: str = "serve", *, directory: str = "data", **settings: Any) -> Server:
        servers.append(Server(tmp_path / directory, behaviour, **settings))
        return servers[-1]

    yield start
    for server in servers:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.process.pid, signal.SIGKILL)
        server.process.wait()


def until_reaped(pid: int) -> None:
    wait_until(lambda: not psutil.pid_exists(pid))


def gone(processes: list[psutil.Process]) -> bool:
    """Whether all of them ended; what nobody reaped yet counts as ended."""

    def ended(process: psutil.Process) -> bool:
        try:
            return process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    return all(ended(process) for process in processes)


def sql(url: str, statement: str) -> list[Any]:
    connection = psycopg2.connect(url.replace("+psycopg2", ""))
    with contextlib.closing(connection), connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def database(server: Server) -> str:
    url = running_url(server.directory)
    assert url is not None
    return url


class TestStop:
    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_a_signal_ends_everything_with_exit_code_0(self, start: Any, number: signal.Signals) -> None:
        if signal.getsignal(number) is signal.SIG_IGN:
            pytest.skip("the tests run under nohup, and so would the server")
        server = start().ready()
        family = server.family()
        server.signal(number)
        assert server.ends() == 0
        assert server.process.stdout.read() == ""  # the ready line was all
        wait_until(lambda: gone(family))
        assert not (server.directory / "postgres" / "postmaster.pid").exists()

    @pytest.mark.long
    def test_interrupting_the_whole_process_group_drains_too(self, start: Any) -> None:
        server = start().ready()
        with server.connect() as connection:
            assert connection.ask("work 1") == "begun"
            os.killpg(server.process.pid, signal.SIGINT)  # what a terminal does
            assert connection.read() == "done"
        assert server.ends() == 0

    def test_running_requests_finish_and_new_clients_are_refused(self, start: Any) -> None:
        server = start(database_url=NO_DATABASE).ready()
        with server.connect() as connection:
            assert connection.ask("work 1.5") == "begun"
            server.signal(signal.SIGTERM)
            wait_until(lambda: _refused(server.port), seconds=1)
            assert connection.read() == "done"
        assert server.ends() == 0

    def test_a_second_signal_kills(self, start: Any) -> None:
        server = start(database_url=NO_DATABASE, drain_seconds=100).ready()
        with server.connect() as connection:
            assert connection.ask("work 100") == "begun"
            server.signal(signal.SIGTERM)
            wait_until(lambda: "stopping" in server.logged())
            server.signal(signal.SIGTERM)
            assert server.ends(5) == 1

    @pytest.mark.long
    def test_workers_that_do_not_drain_in_time_are_killed(self, start: Any) -> None:
        server = start("hang", database_url=NO_DATABASE, drain_seconds=0).ready()
        family = server.family()
        server.signal(signal.SIGTERM)
        assert server.ends(10) == 1
        wait_until(lambda: gone(family))
        assert "killing processes that still work" in server.logged()

    @pytest.mark.long
    def test_a_signal_while_starting_ends_it_too(self, start: Any) -> None:
        server = start()
        wait_until((server.directory / "server.lock").exists)
        server.signal(signal.SIGTERM)
        assert server.ends() == 0
        assert server.process.stdout.read() == ""


class TestWorkers:
    def test_all_of_them_serve(self, start: Any) -> None:
        server = start(database_url=NO_DATABASE, workers=3).ready()
        assert {child.pid for child in server.family()} >= {pid for _, pid in server.workers()}
        assert len(server.family()) == 3

    @pytest.mark.long
    def test_one_that_exits_is_replaced(self, start: Any) -> None:
        server = start(database_url=NO_DATABASE, workers=1).ready()
        [(number, pid)] = server.workers()
        with server.connect() as connection:
            connection.ask("die")
        [(new_number, new_pid)] = server.workers()
        assert new_number == number and new_pid != pid
        assert "process ended" in server.logged() and "exit status 7" in server.logged()

    def test_one_that_is_killed_is_replaced(self, start: Any) -> None:
        server = start(database_url=NO_DATABASE, workers=1).ready()
        [(_, pid)] = server.workers()
        for _ in range(3):
            [(_, pid)] = server.workers()
            os.kill(pid, signal.SIGKILL)
            until_reaped(pid)
        assert server.logged().count("killed by SIGKILL") == 3

    @pytest.mark.long
    def test_the_log_says_which_process_speaks_and_when_it_ended(self, start: Any) -> None:
        server = start("fail", database_url=NO_DATABASE, workers=1)
        assert server.ends() == 1
        assert "process=worker-0" in server.logged()
        assert "RuntimeError: the stand-in has a bug" in server.logged()

    @pytest.mark.sampled(2)
    @pytest.mark.parametrize(
        ("behaviour", "reason"),
        [
            ("refuse", "worker-0 doesn't become ready: the stand-in refuses"),
            ("fail", "worker-0 doesn't become ready: RuntimeError: the stand-in has a bug"),
        ],
    )
    def test_without_any_that_becomes_ready_the_server_says_why_and_ends(
        self, start: Any, behaviour: str, reason: str
    ) -> None:
        server = start(behaviour, database_url=NO_DATABASE, workers=1)
        assert server.ends() == 1
        assert server.logged().splitlines()[-1] == f"Error: {reason}"
        assert server.process.stdout.read() == ""


class TestStart:
    @pytest.mark.long
    def test_a_port_in_use(self, start: Any) -> None:
        first = start(database_url=NO_DATABASE).ready()
        second = start(directory="other", database_url=NO_DATABASE, port=first.port)
        assert second.ends() == 1
        assert second.logged() == f"Error: port {first.port} of 127.0.0.1 is in use by another program\n"

    @pytest.mark.long
    def test_an_address_that_is_not_ours(self, start: Any) -> None:
        server = start(database_url=NO_DATABASE, host="192.0.2.1")
        assert server.ends() == 1
        assert server.logged() == "Error: can't listen on 192.0.2.1:0: Cannot assign requested address\n"

    @pytest.mark.long
    def test_a_data_directory_in_use(self, start: Any) -> None:
        first = start().ready()
        second = start()
        assert second.ends() == 1
        assert second.logged().splitlines()[-1] == (
            f"Error: the data directory {first.directory} is in use by another server "
            f"(process {first.process.pid}, thrift://127.0.0.1:{first.port})"
        )
        assert len(first.workers()) == 2

    def test_a_data_directory_that_can_not_be_made(self, start: Any, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        server = start(data_dir=str(tmp_path / "file" / "data"), database_url=NO_DATABASE)
        assert server.ends() == 1
        assert server.logged() == f"Error: can't use {tmp_path}/file/data as data directory: Not a directory\n"

    @pytest.mark.long
    def test_a_migration_that_fails(self, start: Any) -> None:
        server = start(database_url="postgresql://nobody@127.0.0.1:1/refused")
        assert server.ends() == 1
        assert server.logged().splitlines()[-1] == "Error: the stand-in's schema is too new"


class TestKilledSupervisor:
    def test_everything_ends_and_the_data_is_there_after_a_restart(self, start: Any) -> None:
        server = start().ready()
        sql(database(server), "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
        family = server.family()
        assert any(process.name() == "postgres" for process in family)
        server.process.kill()
        server.ends()
        again = start().ready()  # at once, while the old processes are still ending
        assert gone(family)
        assert sql(database(again), "SELECT count(*) FROM kept") == [(1000,)]
        again.signal(signal.SIGTERM)
        assert again.ends() == 0

    @pytest.mark.long
    def test_the_next_server_waits_for_requests_of_orphaned_workers(self, start: Any) -> None:
        server = start(database_url=NO_DATABASE).ready()
        with server.connect() as connection:
            assert connection.ask("work 2") == "begun"
            server.process.kill()
            server.ends()
            again = start(database_url=NO_DATABASE, port=server.port)
            assert connection.read() == "done"
        assert again.ready().port == server.port

    @pytest.mark.long
    def test_all_processes_killed_at_once(self, start: Any) -> None:
        server = start().ready()
        sql(database(server), "CREATE TABLE kept AS SELECT 42 AS n")
        for process in [*server.family(), psutil.Process(server.process.pid)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        again = start().ready()
        assert sql(database(again), "SELECT n FROM kept") == [(42,)]


class TestEmbeddedPostgres:
    def test_a_postmaster_that_dies_is_started_again(self, start: Any) -> None:
        server = start().ready()
        sql(database(server), "CREATE TABLE kept AS SELECT 42 AS n")
        for name in ("SIGKILL", "SIGQUIT"):
            number = int((server.directory / "postgres" / "postmaster.pid").read_text().split()[0])
            os.kill(number, signal.Signals[name])

            def answers() -> bool:
                with contextlib.suppress(psycopg2.OperationalError, AssertionError):
                    return sql(database(server), "SELECT n FROM kept") == [(42,)]
                return False

            until_reaped(number)
            wait_until(answers)
        assert len(server.workers()) == 2
        assert server.logged().count("the embedded Postgres ended") == 2

    def test_it_is_durable_and_has_connections_for_all_workers(self, start: Any) -> None:
        server = start(workers=2, threads=60).ready()
        names = ("fsync", "synchronous_commit", "full_page_writes", "listen_addresses", "max_connections")
        shown = [sql(database(server), f"SHOW {name}")[0][0] for name in names]
        assert shown[:4] == ["on", "on", "on", ""]
        assert int(shown[4]) >= 120
        assert (server.directory / "postgres").stat().st_mode & 0o777 == 0o700


class TestHttp:
    def test_metrics_of_all_workers(self, start: Any) -> None:
        server = start(database_url=NO_DATABASE, http_port=0).ready()
        [line] = [line for line in server.logged().splitlines() if "uri=http://" in line]
        uri = line.rpartition("uri=")[2]
        with contextlib.ExitStack() as connections:
            for _ in range(10):
                connections.enter_context(server.connect()).ask("pid")
            # The page's own connection to a worker may not have ended yet.
            wait_until(lambda: "metastore_connections 10.0" in _get(f"{uri}/metrics"))
            os.kill(next(pid for _, pid in server.workers()), signal.SIGKILL)
            wait_until(lambda: 'metastore_process_restarts_total{process="worker"} 1.0' in _get(f"{uri}/metrics"))
        wait_until(lambda: "metastore_connections 0.0" in _get(f"{uri}/metrics"))

    def test_its_process_is_replaced_and_ends_with_the_server(self, start: Any) -> None:
        server = start(database_url=NO_DATABASE, http_port=0, workers=1).ready()
        [line] = [line for line in server.logged().splitlines() if "uri=http://" in line]
        uri = line.rpartition("uri=")[2]
        [(_, worker)] = server.workers()
        [other] = [process for process in server.family() if process.pid != worker]
        other.kill()
        wait_until(lambda: "process ended" in server.logged())
        assert "# HELP" in _get(f"{uri}/metrics")
        family = server.family()
        server.signal(signal.SIGTERM)
        assert server.ends() == 0
        wait_until(lambda: gone(family))


def _get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as reply:
        return str(reply.read().decode())


def _refused(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return False
    except ConnectionRefusedError:
        return True
