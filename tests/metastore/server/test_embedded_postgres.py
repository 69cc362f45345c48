"""The embedded Postgres on its own, in the states that crashes and other users leave behind."""

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg2
import pytest
from structlog.testing import capture_logs

from metastore.server.embedded_postgres import EmbeddedPostgres, PostgresError, running_url
from tests.support.processes import suspend


@contextlib.contextmanager
def running(data_dir: Path) -> Iterator[str]:
    postgres = EmbeddedPostgres(data_dir)
    try:
        yield postgres.start()
    finally:
        postgres.stop()


def sql(url: str, statement: str) -> list[tuple[object, ...]]:
    connection = psycopg2.connect(url.replace("+psycopg2", ""))
    with contextlib.closing(connection), connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def leave_running(data_dir: Path) -> subprocess.Popen[bytes]:
    """Start the Postgres of a data directory in a way that nothing stops it."""
    owner = (data_dir / "postgres").stat()
    with running(data_dir):
        pid = (data_dir / "postgres" / "postmaster.pid").read_text().split()[0]
        [command, *arguments] = psutil.Process(int(pid)).cmdline()
    change = ["setpriv", f"--reuid={owner.st_uid}", f"--regid={owner.st_gid}", "--clear-groups"]
    capability = ["--securebits=+no_setuid_fixup", "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    launcher = [*change, *capability] if os.geteuid() == 0 else []
    with (data_dir / "log" / "postgres.log").open("ab") as log:
        process = subprocess.Popen(
            [*launcher, command, *arguments], cwd="/", stdout=log, stderr=log, start_new_session=True
        )
    while running_url(data_dir) is None:
        assert process.poll() is None
    return process


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data directory with a stopped Postgres that holds a row."""
    with running(tmp_path) as url:
        sql(url, "CREATE TABLE kept AS SELECT 42 AS n")
    return tmp_path


def assert_row_is_kept(data_dir: Path) -> None:
    with running(data_dir) as url:
        assert sql(url, "SELECT n FROM kept") == [(42,)]


def test_data_survives_a_stop(data_dir: Path) -> None:
    assert_row_is_kept(data_dir)
    assert running_url(data_dir) is None


def test_names_sort_by_their_bytes(tmp_path: Path) -> None:
    with running(tmp_path) as url:
        names = sql(url, "SELECT n FROM (VALUES ('b'), ('a_b'), ('ä'), ('a1'), ('B')) AS t (n) ORDER BY n")
        assert names == [("B",), ("a1",), ("a_b",), ("b",), ("ä",)]
        assert sql(url, "SHOW server_encoding") == [("UTF8",)]


def test_the_url_of_a_running_one(data_dir: Path) -> None:
    with running(data_dir) as url:
        assert running_url(data_dir) == url


def test_one_that_was_left_running_is_stopped(data_dir: Path) -> None:
    left_over = leave_running(data_dir)
    assert_row_is_kept(data_dir)
    assert left_over.poll() is not None


def test_backends_that_outlived_their_postmaster_are_stopped(data_dir: Path) -> None:
    """Two generations of processes writing the same files would destroy them."""
    left_over = leave_running(data_dir)
    url = running_url(data_dir)
    assert url is not None
    busy = psycopg2.connect(url.replace("+psycopg2", ""))
    with contextlib.closing(busy):
        backend = psutil.Process(busy.info.backend_pid)
        suspend(backend)  # as one deep in a long statement: it doesn't notice that its postmaster died
        left_over.kill()
        left_over.wait()
        started = subprocess.Popen(["sh", "-c", f"sleep 1; kill -CONT {backend.pid}"])
        assert_row_is_kept(data_dir)
        started.wait()
    assert not backend.is_running() or backend.status() == psutil.STATUS_ZOMBIE


def test_lock_files_that_name_a_living_process_which_is_not_postgres(data_dir: Path) -> None:
    """After a container or a machine starts anew, process numbers mean other processes."""
    files = data_dir / "postgres"
    lines = [str(os.getpid()), str(files), "1", "5432", str(files), "", "", "ready"]
    (files / "postmaster.pid").write_text("\n".join(lines) + "\n")
    (files / ".s.PGSQL.5432.lock").write_text(f"{os.getpid()}\n{files}\n1\n5432\n{files}\n")
    assert_row_is_kept(data_dir)


def test_an_initdb_that_was_killed_is_done_again(tmp_path: Path) -> None:
    unfinished = tmp_path / "postgres.new"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    with running(tmp_path) as url:
        assert sql(url, "SELECT 1") == [(1,)]
    assert not unfinished.exists()


@pytest.mark.long
@pytest.mark.parametrize("name", ["x" * 120, "comma,in the name", "späce 'n quote"])
def test_paths_that_sockets_or_urls_do_not_like(tmp_path: Path, name: str) -> None:
    with running(tmp_path / name) as url:
        assert sql(url, "SELECT 1") == [(1,)]
        assert running_url(tmp_path / name) == url


def test_a_directory_for_temporary_files_that_sockets_do_not_like_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / ("t" * 120)
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with running(temporary / "data") as url:
        assert sql(url, "SELECT 1") == [(1,)]


def test_a_socket_directory_that_somebody_else_prepared_is_refused(tmp_path: Path) -> None:
    postgres = EmbeddedPostgres(tmp_path / ("x" * 120))
    directory = Path(postgres.url.split("host=")[1].split("&")[0])
    directory.mkdir()
    directory.chmod(0o777)
    try:
        with pytest.raises(PostgresError, match="isn't private"):
            postgres.start()
    finally:
        directory.rmdir()


def test_files_of_an_unknown_postgres(data_dir: Path) -> None:
    (data_dir / "postgres" / "PG_VERSION").write_text("9\n")
    with pytest.raises(PostgresError, match=r"was made by Postgres 9; the installed .* has 16, 18"):
        EmbeddedPostgres(data_dir).start()


def test_the_reason_why_it_does_not_start_is_reported(data_dir: Path) -> None:
    with (data_dir / "postgres" / "postgresql.conf").open("a") as configuration:
        configuration.write("shared_preload_libraries = 'missing'\n")
    with pytest.raises(PostgresError) as error:
        EmbeddedPostgres(data_dir).start()
    assert 'could not access file "missing"' in str(error.value)
    assert "\n" not in str(error.value)


def test_waiting_can_be_given_up(data_dir: Path) -> None:
    def stop_waiting() -> None:
        raise TimeoutError

    postgres = EmbeddedPostgres(data_dir)
    with pytest.raises(TimeoutError):
        postgres.start(while_waiting=stop_waiting)
    postgres.stop()
    assert_row_is_kept(data_dir)


def test_stops_in_order_in_the_background_of_a_shell(data_dir: Path) -> None:
    """There SIGINT is ignored, by Postgres too until it listens."""

    def stop_waiting() -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        postgres = EmbeddedPostgres(data_dir)
        with pytest.raises(TimeoutError):
            postgres.start(while_waiting=stop_waiting)
        with capture_logs() as logs:
            postgres.stop()
    finally:
        signal.signal(signal.SIGINT, before)
    assert "the embedded Postgres is slow to stop" not in [each["event"] for each in logs]


def is_postgres_in(process: psutil.Process, directory: Path) -> bool:
    with contextlib.suppress(psutil.Error):  # others come and go, or have ended and nobody waited for them
        return process.name() == "postgres" and process.cwd() == str(directory)
    return False


def test_nobody_else_may_connect(data_dir: Path) -> None:
    with running(data_dir):
        assert (data_dir / "postgres").stat().st_mode & 0o777 == 0o700
        listening = {
            connection.laddr.port
            for process in psutil.process_iter()
            if is_postgres_in(process, data_dir / "postgres")
            for connection in process.net_connections("inet")
        }
        assert listening == set()
        nobody = pwd.getpwnam("nobody").pw_uid
        if os.geteuid() == 0:
            child = os.fork()
            if child == 0:
                os.setuid(nobody)
                with socket.socket(socket.AF_UNIX) as client:
                    os._exit(client.connect_ex(str(data_dir / "postgres" / ".s.PGSQL.5432")) == 0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
