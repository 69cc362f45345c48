"""The `metastore` command as users run it: a process, its output, its exit code."""

import json
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import psutil
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import Connection, make_url

from lake.cli import main
from lake.cli.output import FITTED, print_table
from metastore import __version__
from metastore.settings import Settings, flag_name, markdown_table
from metastore.store import migrations
from metastore.store.registry import properties
from tests.support import called
from tests.support.command import complaint, output, run
from tests.support.processes import suspend
from tests.support.server import MetastoreServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    """A server on its embedded default, with the HTTP port."""
    with MetastoreServer(tmp_path_factory.mktemp("cli") / "data", "--http-port", "0") as server:
        yield server


@pytest.fixture(scope="module")
def http(server: MetastoreServer) -> str:
    match = re.search(r"uri=(http://\S+)", server.log.read_text())
    assert match is not None
    return match[1]


def commands(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, each with its name as it is typed."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, *path, name)


@contextmanager
def web_server() -> Iterator[str]:
    """The thrift:// URI of a port that speaks something else."""

    def answer(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client:
            client.recv(1000)
            client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        yield f"thrift://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


class TestCommand:
    @pytest.mark.parametrize("module", ["metastore", "lake.cli"])
    def test_help_lists_the_commands(self, module: str) -> None:
        result = run("--help", module=module)
        assert result.returncode == 0
        assert result.stdout.startswith("Usage: metastore [OPTIONS] COMMAND")
        for command in ("serve", "status", "partitions", "watermark", "db", "settings"):
            assert re.search(rf"^  {command} +[A-Z].*\.$", result.stdout, re.MULTILINE)

    def test_help_imports_no_command(self) -> None:
        code = "import sys; sys.argv[1:] = ['--help']\nfrom lake.cli import main\nmain(standalone_mode=False)"
        code += "\nheavy = {'pydantic', 'sqlalchemy', 'rich', 'thrift', 'structlog'} & sys.modules.keys()"
        code += "\nassert not heavy, heavy"
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)

    def test_every_command_explains_itself(self) -> None:
        """A summary that fits the list of commands on a terminal, and an example."""
        seen = 0
        for path, command in commands(main):
            name = " ".join(path)
            assert command.help, name
            summary = command.get_short_help_str(limit=1000)
            assert 10 < len(summary) <= 60 and summary.endswith("."), (name, summary)
            if not isinstance(command, click.Group):
                assert "Example" in command.help and f"metastore {name}" in command.help, name
            for option in command.params:
                if isinstance(option, click.Option):
                    assert option.help, (name, option.name)
            seen += 1
        assert seen > 30

    @pytest.mark.parametrize("command", [("serve",), ("partitions", "list"), ("events", "dead-letters", "resend")])
    def test_help_is_printed(self, command: tuple[str, ...]) -> None:
        assert called.output(*command, "--help").startswith(f"Usage: metastore {' '.join(command)}")

    @pytest.mark.parametrize("old", ["dead", "resend", "discard"])
    def test_dead_letters_are_a_group(self, old: str) -> None:
        assert called.run("events", old).returncode == 2

    def test_version(self) -> None:
        assert output("--version") == f"metastore, version {__version__}\n"

    def test_an_unknown_command(self) -> None:
        result = run("sreve")
        assert result.returncode == 2
        assert "there is no command 'sreve'. Did you mean 'serve'?" in result.stderr
        result = run("partitions", "lits")
        assert result.returncode == 2
        assert "Did you mean 'list'?" in result.stderr


class TestSettings:
    def test_values_and_where_they_come_from(self, tmp_path: Path) -> None:
        file = tmp_path / "metastore.toml"
        file.write_text('threads = 5\ndatabase_url = "postgresql://u:s3cret@h/d"\n')
        shown = output("settings", "--port", "1234", METASTORE_WORKERS="7", METASTORE_CONFIG=str(file))
        rows = {line.split()[0]: line.split()[1:] for line in shown.splitlines()[1:]}
        assert rows["port"] == ["1234", "--port"]
        assert rows["workers"] == ["7", "METASTORE_WORKERS"]
        assert rows["threads"] == ["5", "threads", "in", str(file)]
        assert rows["log_level"] == ["info", "default"]
        assert rows["database_url"][0] == "postgresql+psycopg2://u:***@h/d"
        assert list(rows) == list(Settings.model_fields)

    def test_as_json(self) -> None:
        shown = json.loads(called.output("settings", "--json", "--http-port", "8080"))
        assert shown["http_port"] == {"value": "8080", "from": "--http-port"}

    def test_as_the_table_in_the_readme(self) -> None:
        assert called.output("settings", "--markdown") == markdown_table() + "\n"

    def test_each_is_a_flag_of_serve(self) -> None:
        shown = called.output("serve", "--help")
        missing = [name for name in Settings.model_fields if f"  {flag_name(name)}" not in shown]
        assert missing == ["tls_key_password", "ldap_bind_password"]  # secrets that have no other form are no arguments

    def test_bad_ones(self, tmp_path: Path) -> None:
        assert complaint("settings", code=2, METASTORE_PORT="http").startswith(
            "Error: METASTORE_PORT: bad value 'http':"
        )
        assert complaint("serve", "--port", "99999", code=2).startswith("Error: --port: bad value '99999':")
        missing = tmp_path / "missing.toml"
        expected = f"Error: can't read the settings file {missing}: No such file or directory"
        assert complaint("serve", "--config", str(missing), code=2) == expected


class TestServe:
    def test_a_database_that_is_not_there(self, tmp_path: Path) -> None:
        line = complaint(
            *("serve", "--port", "0", "--data-dir", str(tmp_path)),
            *("--database-url", "postgresql://u:s3cret@127.0.0.1:1/d"),
        )
        assert line.startswith("Error: can't use the database postgresql+psycopg2://u:***@127.0.0.1:1/d: ")
        assert "Connection refused" in line

    def test_a_schema_that_is_newer_than_the_server(self, tmp_path: Path, upgraded_url: str) -> None:
        make_newer(upgraded_url)
        line = complaint("serve", "--port", "0", "--data-dir", str(tmp_path), "--database-url", upgraded_url)
        assert "from_the_future" in line and "upgrade the server" in line

    def test_a_database_of_ones_own(self, tmp_path: Path, upgraded_url: str) -> None:
        begun_by_users = MetastoreServer(tmp_path / "data", "--database-url", upgraded_url)
        begun_by_users.is_copy = False
        with begun_by_users as server:
            assert json.loads(output("status", "--json", "--uri", server.uri))["schema"] == migrations.head()
            assert not (tmp_path / "data" / "postgres").exists()
            assert server.stop() == 0
        assert server.output == [f"metastore ready {server.uri}\n"]

    @pytest.mark.long
    def test_log_lines_as_json(self, tmp_path: Path, postgres_url: str) -> None:
        with MetastoreServer(tmp_path / "data", "--database-url", postgres_url, "--log-format", "json") as server:
            output("status", "--uri", server.uri)
            server.stop()
        lines = [json.loads(line) for line in server.log.read_text().splitlines()]
        assert {"timestamp", "level", "event"} <= set.intersection(*(set(line) for line in lines))
        assert {"ready", "stopping"} <= {line["event"] for line in lines}


class TestStatus:
    def test_of_a_running_server(self, server: MetastoreServer) -> None:
        shown = output("status", METASTORE_URI=server.uri)
        rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in shown.splitlines()}
        assert rows["uri"] == server.uri
        assert rows["schema"] == migrations.head()
        assert int(rows["workers"]) >= 1
        assert int(rows["connections"]) >= 1
        for name in ("version", "databases", "tables", "partitions", "functions", "uptime"):
            assert rows[name], name

    def test_as_json(self, server: MetastoreServer) -> None:
        report = json.loads(called.output("status", "--json", "--uri", server.uri))
        assert report["databases"] >= 1
        assert report["uptime_seconds"] >= 0

    def test_of_a_server_that_is_not_there(self) -> None:
        uri = "thrift://127.0.0.1:1"
        assert called.complaint("status", "--uri", uri) == f"Error: no metastore answers at {uri}: Connection refused"

    def test_of_something_that_is_no_metastore(self) -> None:
        with web_server() as uri:
            assert called.complaint("status", "--uri", uri).startswith(f"Error: no metastore answers at {uri}")

    @pytest.mark.parametrize("uri", ["http://127.0.0.1:9083", "nonsense", "thrift://", "thrift://h:port"])
    def test_of_a_bad_uri(self, uri: str) -> None:
        assert called.complaint("status", "--uri", uri, code=2).startswith("Error: bad --uri: ")


class TestDatabase:
    def test_the_embedded_one(self, tmp_path: Path) -> None:
        data_dir = str(tmp_path / "data")
        head = migrations.head()
        expected = f"Error: there is no database in {data_dir}"
        assert complaint("db", "current", "--data-dir", data_dir) == expected
        assert output("db", "upgrade", "--data-dir", data_dir) == f"schema upgraded from nothing to {head}\n"
        assert output("db", "upgrade", METASTORE_DATA_DIR=data_dir) == f"schema is at {head}, as before\n"
        assert output("db", "current", "--data-dir", data_dir) == f"{head} (up to date)\n"

    def test_that_of_a_running_server(self, server: MetastoreServer) -> None:
        expected = f"{migrations.head()} (up to date)\n"
        assert output("db", "current", "--data-dir", str(server.data_dir)) == expected

    @pytest.mark.long
    def test_an_external_one(self, postgres_url: str) -> None:
        head = migrations.head()
        assert output("db", "current", "--database-url", postgres_url) == f"no schema (this version needs {head})\n"
        assert output("db", "upgrade", "--database-url", postgres_url).endswith(f"to {head}\n")
        assert output("db", "current", METASTORE_DATABASE_URL=postgres_url) == f"{head} (up to date)\n"

    def test_one_that_is_newer(self, upgraded_url: str) -> None:
        make_newer(upgraded_url)
        assert "upgrade the server" in complaint("db", "upgrade", "--database-url", upgraded_url)

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize(
        ("change", "reason"),
        [
            ({"host": "127.0.0.1", "port": 1, "query": {}}, 'server at "127.0.0.1", port 1 failed: Connection refused'),
            ({"host": "nowhere.invalid", "query": {}}, 'could not translate host name "nowhere.invalid"'),
            ({"database": "missing"}, 'database "missing" does not exist'),
            ({"username": "stranger"}, 'role "stranger" does not exist'),
        ],
    )
    def test_one_that_can_not_be_used(self, postgres_url: str, change: dict[str, object], reason: str) -> None:
        url = make_url(postgres_url).set(**change)  # type: ignore[arg-type]
        line = complaint("db", "current", "--database-url", url.render_as_string(hide_password=False))
        assert line.startswith("Error: can't use the database postgresql+psycopg2://")
        assert reason in line


class TestHttp:
    def test_a_healthy_server(self, http: str) -> None:
        assert fetch(f"{http}/health") == (200, '{"status": "ok"}\n')
        assert fetch(f"{http}/ready?verbose") == (200, '{"status": "ok"}\n')
        assert fetch(f"{http}/")[0] == 404
        assert fetch(f"{http}/hudi/commits", data=b"{}")[0] == 404  # unless it is switched on

    def test_metrics_count_requests(self, server: MetastoreServer, http: str) -> None:
        def count(method: str) -> float:
            pattern = rf'^metastore_requests_total{{method="{method}",outcome="ok"}} (\S+)$'
            match = re.search(pattern, fetch(f"{http}/metrics")[1], re.MULTILINE)
            return float(match[1]) if match else 0.0

        before = count("getCounters")
        called.output("status", "--uri", server.uri)
        assert count("getCounters") == before + 1
        _, metrics = fetch(f"{http}/metrics")
        for name in ("request_seconds_bucket", "received_bytes_total", "sent_bytes_total", "connections"):
            assert f"metastore_{name}" in metrics

    def test_without_its_database_it_is_not_healthy(self, tmp_path: Path, upgraded_url: str) -> None:
        with MetastoreServer(
            tmp_path / "data", "--database-url", upgraded_url, "--http-port", "0", "--workers", "1"
        ) as server:
            match = re.search(r"uri=(http://\S+)", server.log.read_text())
            assert match is not None
            http = match[1]
            assert fetch(f"{http}/health")[0] == 200
            name = make_url(upgraded_url).database
            with admin(upgraded_url) as connection:
                connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
                connection.execute(
                    text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"),
                    {"name": name},
                )
            status, body = fetch(f"{http}/health")
            assert status == 503
            assert "database" in json.loads(body)["reason"]

    @pytest.mark.long
    def test_a_server_that_is_stopping_is_not_ready(self, tmp_path: Path, postgres_url: str) -> None:
        with MetastoreServer(
            tmp_path / "data",
            *("--database-url", postgres_url, "--http-port", "0", "--workers", "1", "--drain-seconds", "90"),
        ) as server:
            match = re.search(r"uri=(http://\S+)", server.log.read_text())
            assert match is not None
            worker = next(
                process
                for process in psutil.Process(server.pid).children()
                if server.port in {connection.laddr.port for connection in process.net_connections()}
            )
            suspend(worker)  # it can't drain
            psutil.Process(server.pid).terminate()
            deadline = time.monotonic() + 60
            reason = ""
            while reason != "the server is stopping" and time.monotonic() < deadline:
                status, body = fetch(f"{match[1]}/ready")
                reason = json.loads(body)["reason"]
                assert status == 503, reason
            worker.resume()
            assert reason == "the server is stopping"


def make_newer(url: str) -> None:
    """Let a database with the schema look like one that a newer server upgraded."""
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'from_the_future'"))
        properties.put(connection, "schema.compatible_from", "from_the_future")
    engine.dispose()


@contextmanager
def admin(url: str) -> Iterator[Connection]:
    engine = create_engine(make_url(url).set(database="postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def fetch(url: str, data: bytes | None = None) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, data, timeout=30) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class TestOutput:
    def test_a_table_that_is_not_for_a_terminal_has_a_line_for_each_row(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        print_table(("name", "rows"), [("[bold]a[/bold]", 1000), ("b" * 300, None)])
        header, first, second = capsys.readouterr().out.splitlines()
        assert header.split() == ["name", "rows"]
        assert first.split() == ["[bold]a[/bold]", "1,000"]
        assert second.split() == ["b" * 300, "-"]

    def test_many_rows_are_not_fitted_to_a_terminal(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FORCE_COLOR", "1")
        print_table(("name", "rows"), [("b" * 300, number) for number in range(FITTED + 1)])
        lines = capsys.readouterr().out.splitlines()
        assert [line.split() for line in lines[1:]] == [["b" * 300, f"{number:,}"] for number in range(FITTED + 1)]


@pytest.mark.parametrize(
    ("command", "summary"),
    [
        (("tables", "list"), "0 tables"),
        (("events", "groups"), "0 groups"),
        (("events", "dead-letters", "list"), "0 dead letters"),
    ],
)
def test_an_empty_list_is_a_count_without_a_table(
    server: MetastoreServer, command: tuple[str, ...], summary: str
) -> None:
    listed = called.run(*command, "--uri", server.uri)
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "", f"{summary}\n")
    assert json.loads(called.output(*command, "--json", "--uri", server.uri)) == []


def test_an_empty_list_of_undeletable_files(server: MetastoreServer) -> None:
    listed = run("db", "undeletable", "--data-dir", str(server.data_dir))
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "", "0 tables\n")
