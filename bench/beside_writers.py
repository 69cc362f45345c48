"""What a writer notices of table services: beside it, in it, or not at all."""

import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from rich.progress import track

from bench.figures import Figure, Report
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.errors import UserError
from lake.tables.compaction import plan_compaction, run_compaction
from lake.tables.lake import LakeClient, LakeTable
from tests.support import builders
from tests.support.server import MetastoreServer

COMMITS_PER_SECOND = 5
COMMITS_PER_COMPACTION = 10
ROWS = 500
WARM = 3
"""Commits of each turn that aren't counted: connections are made, and statements prepared."""

CALLS = {"lake_begin_instant": "begin", "lake_complete_instants": "complete"}
HOWS = ("no compaction", "a service beside it", "compaction in the writer")


class _Timed(ThriftClient):
    """A client that notes how long its calls take."""

    seconds: dict[str, list[float]]

    def call(self, name: str, *args: Any, **named: Any) -> Any:
        begun = time.perf_counter()
        try:
            return super().call(name, *args, **named)
        finally:
            self.seconds[name].append(time.perf_counter() - begun)


class _Turn:
    """One writer's commits to a table of its own, paced, and what they took."""

    def __init__(self, server: MetastoreServer, number: int, how: str) -> None:
        self.calls: dict[str, list[float]] = defaultdict(list)
        self.commits: list[float] = []
        self._server, self._how = server, how
        self._name = f"bench.writer{number}"

    def run(self, count: int) -> None:
        def connect() -> ThriftClient:
            client = _Timed(self._server.host, self._server.port)
            client.seconds = self.calls
            return client

        with LakeClient(connect) as lake:
            table = self._made(lake)
            begun = time.perf_counter()
            for number in track(range(WARM + count), f"writing: {self._how}", transient=True):
                time.sleep(max(0.0, begun + number / COMMITS_PER_SECOND - time.perf_counter()))
                if number == WARM:
                    self.calls.clear()
                    self.commits.clear()
                at = time.perf_counter()
                table.upsert(_rows(number))
                if self._how == "compaction in the writer" and number % COMMITS_PER_COMPACTION == 0:
                    made = plan_compaction(table)[0]
                    if made is not None:
                        run_compaction(table, made.timestamp)
                self.commits.append(time.perf_counter() - at)

    def _made(self, lake: LakeClient) -> LakeTable:
        properties = {"primary-key": "id", "bucket": "2", "table-type": "merge-on-read"}
        name = self._name.removeprefix("bench.")
        made = builders.table("bench", name, sd=builders.parquet("id:bigint", "v:bigint"), parameters=properties)
        lake.call(lambda opened: opened.create_table(made))
        return lake.table(self._name)


def _rows(number: int) -> pa.Table:
    ids = pa.array(range(number * ROWS // 2, number * ROWS // 2 + ROWS), pa.int64())
    return pa.table({"id": ids, "v": pa.array([number] * ROWS, pa.int64())})


@contextmanager
def _service(uri: str) -> Iterator[None]:
    """`metastore table-services run`, in Arrow, as a process of its own."""
    command = [sys.executable, "-m", "metastore", "table-services", "run", "--uri", uri, "--executor", "arrow"]
    command += ["--default", f"compaction.delta-commits={COMMITS_PER_COMPACTION}", "--log-level", "error"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if not any(line.startswith("table services ready") for line in process.stdout):
                raise UserError("the table services ended before they were ready")
            yield
        finally:
            process.terminate()
            process.wait()


def measure(report: Report, server: MetastoreServer, *, rounds: int, commits: int) -> None:
    """Turns about, so that whatever else the machine does meets all of them alike."""
    calls: dict[str, dict[str, list[float]]] = {how: defaultdict(list) for how in HOWS}
    whole: dict[str, list[float]] = {how: [] for how in HOWS}
    for number in range(rounds * len(HOWS)):
        how = HOWS[number % len(HOWS)]
        turn = _Turn(server, number, how)
        if how == "a service beside it":
            with _service(server.uri):
                turn.run(commits)
        else:
            turn.run(commits)
        for name, shown in CALLS.items():
            calls[how][shown] += turn.calls[name]
        whole[how] += turn.commits
    pace = f"{COMMITS_PER_SECOND} commits/s of {ROWS} rows to a merge-on-read table, {rounds} turns of {commits}."
    section = report.section("A writer's calls", f"{pace} Aim: with a service at most 1.1 times the p99 without.")
    for shown in CALLS.values():
        p99 = {}
        for how in HOWS[:2]:
            figure = Figure.of(f"{shown}, {how}", "ms", [1000 * each for each in calls[how][shown]], samples=True)
            section.figures.append(figure)
            p99[how] = figure.p99 or figure.median
        ratio = p99["a service beside it"] / p99["no compaction"]
        section.figures.append(Figure.of(f"{shown}: p99 with, by p99 without", "", [ratio]))
    which = f"A compaction every {COMMITS_PER_COMPACTION} commits, by the service or the writer."
    section = report.section("A writer's commits", f"{pace} {which}")
    for how in HOWS:
        section.figures.append(Figure.of(how, "ms", [1000 * each for each in whole[how]], samples=True))
