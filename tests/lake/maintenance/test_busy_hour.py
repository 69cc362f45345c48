"""A busy hour: many writers, two services, and kills of services, executors and the server.

Nothing runs twice at once, nothing is forgotten, no state is stale for long, and no writer fails.
"""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from lake.maintenance.executors.spark_submit import running
from lake.protocol.lake import ListJobsRequest, ServiceJob
from lake.tables.lake import LakeClient, LakeTable
from tests.lake.maintenance.conftest import merge_on_read
from tests.lake.maintenance.submitted_service import TWICE
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

TABLES = 3
WRITERS = 6
ROWS = 8
WITHIN = 120.0
"""Seconds after which no state of something killed may be left."""

AT_LAST = 300.0
"""Seconds within which all is done that is due, once nothing is killed any more."""


class Services:
    """Two services as processes."""

    def __init__(self, uri: str, lease_seconds: int, directory: Path) -> None:
        module = "tests.lake.maintenance.submitted_service"
        self._command = [sys.executable, "-m", module, uri, str(lease_seconds), str(directory)]
        self._log = directory / "services.log"
        self.processes = [self._started(), self._started()]

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)

    def kill(self, which: int) -> None:
        """Kills one, and starts another; what it had submitted goes on."""
        self.processes[which].kill()
        self.processes[which].wait()
        self.processes[which] = self._started()

    def pids(self) -> set[int]:
        return {each.pid for each in self.processes if each.poll() is None}

    def end(self) -> None:
        for each in self.processes:
            each.send_signal(signal.SIGTERM)
        for each in self.processes:
            each.wait(120)


class Writer(threading.Thread):
    """Upserts the same rows again and again, each time with a greater value; no two writers have the same rows."""

    def __init__(self, uri: str, table: str, first: int, stop: threading.Event, limit: "Iterator[int]") -> None:
        super().__init__(name=f"writer-{table}-{first}")
        self._uri, self._table, self._first, self._stop_event = uri, table, first, stop
        self._limit = limit
        self.commits = 0
        self.failure: Exception | None = None

    def run(self) -> None:
        with LakeClient(self._uri, retry_seconds=120) as lake:
            table = lake.table(self._table)
            while not self._stop_event.is_set() and next(self._limit, None) is not None:
                try:
                    upsert(table, self._first, self.commits + 1)
                except Exception as error:
                    self.failure = error
                    return
                self.commits += 1


def upsert(table: LakeTable, first: int, value: int) -> None:
    import pyarrow as pa

    ids = list(range(first, first + ROWS))
    columns: dict[str, Any] = {"id": ids, "v": [value] * ROWS, "a": [None] * ROWS, "b": [None] * ROWS}
    kinds = {"id": pa.int64(), "v": pa.int32(), "a": pa.int32(), "b": pa.string(), "part": pa.string()}
    columns["part"] = ["x"] * ROWS
    table.upsert(pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()}))


class Watch(threading.Thread):
    """Looks how long jobs and plans count as run by processes that are dead."""

    def __init__(self, uri: str, tables: list[str], services: Services, stop: threading.Event) -> None:
        super().__init__(name="watch")
        self._uri, self._tables, self._services, self._stop_event = uri, tables, services, stop
        self._since: dict[tuple[Any, ...], float] = {}
        self.longest: Counter[str] = Counter()

    def run(self) -> None:
        with LakeClient(self._uri, retry_seconds=0) as lake:
            while not self._stop_event.wait(0.5):
                with suppress(Exception):  # the server is being killed, too
                    self._look(lake)

    def _look(self, lake: LakeClient) -> None:
        pids, stale = self._services.pids(), set()
        jobs = lake.call(lambda client: client.lake_list_jobs(ListJobsRequest(states=["running"]))).jobs or []
        for job in jobs:
            if int((job.worker or "").rsplit("-", 2)[1]) not in pids:
                stale.add(("job", job.id, job.attempts))
        for name in self._tables:
            for each in lake.table(name).instants(actions=["compaction"], states=["inflight"]):
                if not running(f"tms-{each.timestamp}-", ("--table", f"hive.{name}")):
                    stale.add(("plan", name, each.timestamp, each.attempt))
        now = time.monotonic()
        self._since = {each: self._since.get(each, now) for each in stale}
        for each, since in self._since.items():
            self.longest[each[0]] = max(self.longest[each[0]], round(now - since))


def kill_an_executor(uri: str, random: Random) -> bool:
    found = running("tms-", ("--uri", uri))
    if not found:
        return False
    with suppress(psutil.Error):
        random.choice(found).kill()
    return True


def jobs_of(lake: LakeClient, *states: str) -> list[ServiceJob]:
    found: list[ServiceJob] = lake.call(
        lambda client: client.lake_list_jobs(ListJobsRequest(states=list(states), withLogs=True, limit=1_000))
    ).jobs
    return found


def busy(
    directory: Path, *, seconds: float, kills: int, commits: int, lease_seconds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Runs until the time is over, the kills are done and the commits, too."""
    random = Random(16)
    # Not less than the time that a server is away: else the instants of writers would be dead when it is back.
    options = ("--instant-heartbeat-seconds", "60", "--log-level", "warning")
    server = MetastoreServer(directory / "data", *options).start()
    stop, unwatched = threading.Event(), threading.Event()
    killed: Counter[str] = Counter()
    services = None
    try:
        with LakeClient(server.uri, retry_seconds=120) as lake:
            tables = [
                merge_on_read(lake, compaction__delta_commits="4", clean__commits_retained="2", clean__files="8")
                for _ in range(TABLES)
            ]
            names = [each.name.removeprefix("hive.") for each in tables]
            services = Services(server.uri, lease_seconds, directory)
            watch = Watch(server.uri, names, services, unwatched)
            watch.start()
            limit: Iterator[int] = iter(range(commits)) if commits else itertools.count()
            writers = [
                Writer(server.uri, names[each % TABLES], 1_000 * (each // TABLES), stop, limit)
                for each in range(WRITERS)
            ]
            begun = time.monotonic()
            for each in writers:
                each.start()
            for number in range(kills):
                time.sleep(max(0.0, begun + seconds * (number + 1) / (kills + 1) - time.monotonic()))
                what = random.choice(["service", "executor", "executor", "server"])
                if what == "executor" and not kill_an_executor(server.uri, random):
                    what = "service"
                if what == "service":
                    services.kill(random.randrange(2))
                if what == "server":
                    server.kill()
                    server.start()
                killed[what] += 1
            while any(each.is_alive() for each in writers) and (commits or time.monotonic() - begun < seconds):
                time.sleep(0.5)
            stop.set()
            for each in writers:
                each.join(300)
            took = time.monotonic() - begun
            assert [each.failure for each in writers if each.failure is not None] == []

            wait_until(lambda: not jobs_of(lake, "pending", "running"), AT_LAST, "that no job is left")
            for each in tables:
                assert not list(each.instants(actions=["compaction"], states=["requested", "inflight"]))
            unwatched.set()
            watch.join()
            # A lost job gives way to one of its kind that waits; none is set aside.
            aside = [each for each in jobs_of(lake, "failed") if each.outcome != "lost" or each.attempts >= 8]
            assert aside == [], aside[0].log
            assert not (directory / TWICE).exists(), (directory / TWICE).read_text()
            assert max(watch.longest.values(), default=0) <= WITHIN, dict(watch.longest)
            for index, table in enumerate(tables):
                expected = {
                    row: writer.commits
                    for number, writer in enumerate(writers)
                    if number % TABLES == index and writer.commits
                    for row in range(1_000 * (number // TABLES), 1_000 * (number // TABLES) + ROWS)
                }
                found = {each["id"]: each["v"] for each in table.scan().to_arrow().to_pylist()}
                assert found == expected
            done = Counter(each.action for each in jobs_of(lake, "succeeded"))
            commits = sum(each.commits for each in writers)
            with capsys.disabled():
                print(
                    f"\n{took:.0f} s, {commits:,} commits of {WRITERS} writers to {TABLES} tables, none failed."
                    f" Killed: {dict(killed)}. Jobs that succeeded: {dict(done)}."
                    f" Longest state of something dead: {dict(watch.longest)} s."
                )
    finally:
        stop.set()
        unwatched.set()
        if services is not None:
            services.end()
        server.stop()


@pytest.mark.long
@pytest.mark.timeout(0)
def test_two_hundred_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An hour. BUSY_SECONDS and BUSY_KILLS shorten it, BUSY_LEASE the time after which the dead count as dead."""
    busy(
        tmp_path,
        seconds=float(os.environ.get("BUSY_SECONDS", "3600")),
        kills=int(os.environ.get("BUSY_KILLS", "200")),
        commits=0,
        lease_seconds=int(os.environ.get("BUSY_LEASE", "60")),
        capsys=capsys,
    )


@pytest.mark.long
@pytest.mark.timeout(0)
def test_ten_thousand_commits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No writer fails because of a service. BUSY_COMMITS is another number of them."""
    commits = int(os.environ.get("BUSY_COMMITS", "10000"))
    busy(tmp_path, seconds=0, kills=0, commits=commits, lease_seconds=60, capsys=capsys)
