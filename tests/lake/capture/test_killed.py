"""Kills capture, source and metastore: nothing is lost, and nothing is there twice."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lake.capture.postgres import capture as capture_module
from lake.capture.postgres.capture import Capture
from lake.protocol.connection.closing import Closing
from lake.tables.lake import LakeClient
from tests.lake.capture.conftest import SETTINGS
from tests.lake.capture.shop import Source
from tests.support.postgres import Postgres
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[3]
KILLED = """
import os, signal, sys
from lake.capture.postgres.capture import Capture, Options
from lake.tables.lake import LakeClient
uri, source, into, slot, step, count = sys.argv[1:]
left = int(count)
def pause(reached):
    global left
    left -= reached == step
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
with LakeClient(uri) as client:
    options = Options(source=source, publication="shop", into=into, slot=slot, chunk_rows=10, interval=0.05)
    capture = Capture(client, options)
    capture.pause = pause
    capture.run(once=True)
"""
STEPS = ("streaming", "chunk", "before", "completed", "acknowledged")


def kill_at(source: Source, uri: str, step: str, count: int = 1) -> None:
    """Runs a capture that is killed when it reaches a step for the n-th time, if it does."""
    command = [sys.executable, "-c", KILLED, uri, source.url, source.into, source.slot, step, str(count)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr


def filled(source: Source) -> None:
    source.run("CREATE TABLE t (id int PRIMARY KEY, n int, body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL")
    source.run("INSERT INTO t SELECT n, 0, repeat(md5(n::text), 100) FROM generate_series(1, 30) n")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("step", STEPS)
def test_a_capture_that_is_killed(source: Source, metastore_server: MetastoreServer, step: str) -> None:
    filled(source)
    kill_at(source, metastore_server.uri, step)
    source.run("UPDATE t SET n = 1 WHERE id % 3 = 0; DELETE FROM t WHERE id = 4; UPDATE t SET id = 99 WHERE id = 8")
    source.capture()
    source.check("t", "id")
    positions = [(row["epoch"], row["commit_lsn"], row["ordinal"]) for row in source.raw("t")]
    assert len(set(positions)) == len(positions), "nothing is there twice"
    reads = [row["after"] for row in source.raw("t") if row["op"] == "read"]
    assert len(reads) < 30 + 10, "chunks that were committed aren't read again, single rows may be"


@pytest.fixture
def own_postgres(tmp_path: Path) -> Iterator[Postgres]:
    server = Postgres(tmp_path / "source", {**SETTINGS, "fsync": "on"})
    yield server
    server.close()


def test_a_source_that_is_killed(own_postgres: Postgres, metastore_server: MetastoreServer) -> None:
    with LakeClient(metastore_server.uri) as client, LakeClient(metastore_server.uri) as own:
        source = Source(own_postgres.url("postgres"), client)
        filled(source)
        capture = Capture(own, source.options(chunk_rows=5, interval=0.05))
        reached = threading.Event()
        capture.pause = lambda step: reached.set() if step == "chunk" else None
        errors: list[BaseException] = []

        def run() -> None:
            try:
                capture.run(once=True)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        assert reached.wait(60)
        own_postgres.kill()
        own_postgres.start()
        thread.join(60)
        assert not errors
        source.connection = source.connect()
        source.run("UPDATE t SET n = 2 WHERE id < 9")
        source.capture()
        source.check("t", "id")


def test_a_source_that_shuts_down(
    own_postgres: Postgres, metastore_server: MetastoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_module, "_LAG_SECONDS", 1e9)  # it looks at the source when that asks, and only then
    with LakeClient(metastore_server.uri) as client, LakeClient(metastore_server.uri) as own:
        source = Source(own_postgres.url("postgres"), client)
        filled(source)
        with Running(Capture(own, source.options(interval=0.05))) as running:
            wait_until(lambda: running.capture.result.batches)
            source.run("BEGIN; UPDATE t SET n = 3; ROLLBACK")  # the end of the log isn't acknowledged
            source.connection.close()
            began = time.monotonic()
            own_postgres.stop()
            assert time.monotonic() - began < 30, "without a signal that cuts off sessions"
            own_postgres.start()
            source.run("UPDATE t SET n = 2 WHERE id < 9")
            wait_until(lambda: source.replayed("t", ("id",)) == source.rows("t"))


class Running(Closing):
    """A capture in a thread. Raises its error when it is closed."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.capture.run()
        except BaseException as error:
            self._errors.append(error)

    def close(self) -> None:
        self.capture.stop()
        self._thread.join(60)
        assert not self._errors


def test_a_metastore_that_is_killed(source: Source, tmp_path: Path) -> None:
    with MetastoreServer(tmp_path / "own") as server, LakeClient(server.uri) as client:
        source.client = client
        filled(source)
        capture = Capture(client, source.options(chunk_rows=5))
        killed = []

        def pause(step: str) -> None:
            if step == "before" and not killed:
                killed.append(step)
                server.kill()
                server.start()

        capture.pause = pause
        capture.run(once=True)
        assert killed
        source.run("UPDATE t SET n = 2 WHERE id < 9")
        source.capture()
        source.check("t", "id")


KEY = st.integers(1, 12)
INSERT = "INSERT INTO t VALUES ({0}, {1}, repeat(md5('{1}'), 100)) ON CONFLICT (id) DO UPDATE SET n = {1}"
STATEMENT = st.one_of(
    st.builds(INSERT.format, KEY, KEY),
    st.builds("UPDATE t SET n = n + 1 WHERE id = {}".format, KEY),
    st.builds("UPDATE t SET body = repeat(md5('{1}'), 90) WHERE id = {0}".format, KEY, KEY),
    st.builds("UPDATE t SET id = {1} WHERE id = {0} AND NOT EXISTS (SELECT 1 FROM t WHERE id = {1})".format, KEY, KEY),
    st.builds("DELETE FROM t WHERE id = {}".format, KEY),
    st.just("TRUNCATE t"),
)
TRANSACTION = st.tuples(st.lists(STATEMENT, min_size=1, max_size=5), st.booleans())
LOG_WITHOUT_CHANGES = (["CREATE TABLE other (id int PRIMARY KEY)", "DROP TABLE other"], True)
ACTION = st.one_of(
    st.just(("run", [LOG_WITHOUT_CHANGES])),
    st.builds(lambda some: ("run", some), st.lists(TRANSACTION, min_size=1, max_size=4)),
    st.builds(lambda step, n: ("kill", (step, n)), st.sampled_from(STEPS), st.integers(1, 3)),
)


def _play(source: Source, uri: str, actions: list[tuple[str, object]], *, in_process: bool) -> None:
    source.begin_anew()  # what one example leaves behind must not fail the next
    source.run("DROP TABLE IF EXISTS t")
    source.run("CREATE TABLE t (id int PRIMARY KEY, n int, body text); ALTER TABLE t ALTER body SET STORAGE EXTERNAL")
    source.run("INSERT INTO t SELECT n, 0, repeat(md5(n::text), 100) FROM generate_series(1, 12, 2) n")
    for kind, what in actions:
        if kind == "run":
            for statements, commits in what:  # type: ignore[attr-defined]
                source.run(f"BEGIN; {'; '.join(statements)}; {'COMMIT' if commits else 'ROLLBACK'}")
        elif in_process:
            step, count = what  # type: ignore[misc]
            _fail_at(source, step, count)
        else:
            step, count = what  # type: ignore[misc]
            kill_at(source, uri, step, count)
    source.capture(chunk_rows=3)
    source.check("t", "id")
    positions = [(row["epoch"], row["commit_lsn"], row["ordinal"]) for row in source.raw("t")]
    assert len(set(positions)) == len(positions)


class _Failed(Exception):
    pass


def _fail_at(source: Source, step: str, count: int) -> None:
    """Ends a capture by an exception when it reaches a step for the n-th time: what it left open is aborted."""
    capture = Capture(source.client, source.options(chunk_rows=3, interval=0.0))
    left = count

    def pause(reached: str) -> None:
        nonlocal left
        left -= reached == step
        if left == 0:
            raise _Failed

    capture.pause = pause
    with suppress(_Failed):
        capture.run(once=True)


USUAL = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)


@settings(USUAL, max_examples=6)
@given(actions=st.lists(ACTION, min_size=2, max_size=6))
def test_random_transactions_and_failures(
    source: Source, metastore_server: MetastoreServer, actions: list[tuple[str, object]]
) -> None:
    _play(source, metastore_server.uri, actions, in_process=True)


@pytest.mark.long
@settings(USUAL, max_examples=40)
@given(actions=st.lists(ACTION, min_size=2, max_size=8))
def test_random_transactions_and_kills(
    source: Source, metastore_server: MetastoreServer, actions: list[tuple[str, object]]
) -> None:
    _play(source, metastore_server.uri, actions, in_process=False)
