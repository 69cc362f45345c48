"""The table management service: how soon it decides, how many events and tables it copes with, what writers notice."""

import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import structlog
from rich.progress import track

from bench import beside_writers
from bench.figures import Figure, Report
from bench.options import Options
from lake.client.lake_types import Completion, DataFile, Instant
from lake.maintenance.planner import Planner
from lake.maintenance.queue import Queue
from lake.maintenance.receiver import GROUP, TYPES, Receiver
from lake.protocol.errors import UserError
from lake.protocol.hive import Table
from lake.protocol.lake import TableReference
from lake.subscriptions import subscribe
from lake.tables.lake import LakeClient, LakeTable
from tests.support import builders
from tests.support.server import MetastoreServer

COMMITS_PER_SECOND = 30
FILES_PER_TABLE = 10
TABLES_TOGETHER = 100
"""Tables whose first commits are completed in one call."""

_WALK = """
import json, resource, sys, threading, time
from lake.tables.lake import LakeClient
from lake.protocol.errors import UserError
from lake.maintenance.planner import Planner
from lake.maintenance.queue import Queue
from lake.maintenance.receiver import Receiver

with LakeClient(sys.argv[1]) as client:
    queue = Queue(client, "bench")
    begun = time.perf_counter()
    Receiver(sys.argv[1], Planner(queue, {}), queue, threading.Event()).sweep()
    seconds = time.perf_counter() - begun
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def run(options: Options) -> Report:
    """A server on its embedded Postgres, a receiver and planner as a service has them; jobs run beside writers only."""
    report = Report("table-services")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        server = stack.enter_context(MetastoreServer(home / "data", "--log-level", "warning"))
        client = stack.enter_context(LakeClient(server.uri))
        client.call(lambda opened: opened.create_database(builders.database("bench")))
        if options.wants("latency"):
            _latency(report, server, client, seconds=5 if options.quick else 60)
        if options.wants("events"):
            _events(report, server, client, count=500 if options.quick else 20_000)
        if options.wants("tables"):
            _tables(report, server, count=50 if options.quick else 100_000)
        if options.wants("writers"):
            turns = (1, 15) if options.quick else (5, 300)
            beside_writers.measure(report, server, rounds=options.rounds or turns[0], commits=turns[1])
    return report


def _create(client: LakeClient, name: str) -> None:
    made = builders.table("bench", name, sd=builders.parquet("id:bigint"))
    client.call(lambda opened: opened.create_table(made))


def _make(client: LakeClient, name: str) -> Table:
    _create(client, name)
    return client.table(f"bench.{name}").describe()


def _commit(client: LakeClient, name: str, number: int) -> int:
    """Commits small files, which nobody reads. Returns the position."""
    [done] = client.complete([_begun(client, name, number, files=1)])
    return done.instant.position or 0


def _begun(client: LakeClient, name: str, number: int, files: int) -> tuple[LakeTable, Instant, Completion]:
    """A commit's instant that is begun, and what completes it."""
    table = client.table(f"bench.{name}")
    instant = table.begin().instant
    added = [
        DataFile("", f"g{number}-{each}", instant.timestamp, f"{number}-{each}.parquet", 1_000, rows=1)
        for each in range(files)
    ]
    return table, instant, Completion(added=added)


def _latency(report: Report, server: MetastoreServer, client: LakeClient, seconds: int) -> None:
    """From a commit's answer to when the decision about it is stored."""
    names = [f"busy{number}" for number in range(5)]
    for name in names:
        _make(client, name)
    committed: dict[tuple[str, int], float] = {}
    decided: dict[tuple[str, int], float] = {}

    class Timed(Queue):
        def record(self, table: TableReference, position: int, *rest: object) -> list:  # type: ignore[type-arg]
            found = super().record(table, position, *rest)  # type: ignore[arg-type]
            at = time.perf_counter()
            for key in list(committed):
                if key[0] == table.table and key[1] <= position:
                    decided.setdefault(key, at)
            return found

    stop = threading.Event()
    with LakeClient(server.uri) as looking:
        queue = Timed(looking, "bench")
        receiver = threading.Thread(target=Receiver(server.uri, Planner(queue, {}), queue, stop).run)
        receiver.start()
        time.sleep(3)
        begun = time.perf_counter()
        for number in track(range(seconds * COMMITS_PER_SECOND), "committing", transient=True):
            time.sleep(max(0.0, begun + number / COMMITS_PER_SECOND - time.perf_counter()))
            name = names[number % len(names)]
            position = _commit(client, name, number)
            committed[name, position] = time.perf_counter()
        rate = len(committed) / (time.perf_counter() - begun)
        time.sleep(5)
        stop.set()
        receiver.join()
    if missed := committed.keys() - decided.keys():
        raise UserError(f"{len(missed)} commits led to no decision within 5 s")
    section = report.section(
        "From a commit to its decision", f"{rate:.0f} commits/s (aim 30), 5 tables, one service. Aim: p99 2 s."
    )
    lags = [max(0.0, decided[each] - committed[each]) for each in committed]
    section.figures.append(Figure.of("lag", "s", lags, samples=True))


def _events(report: Report, server: MetastoreServer, client: LakeClient, count: int) -> None:
    """A backlog of events is received, and each burst looked at."""
    made = [_make(client, f"burst{number}") for number in range(20)]
    with LakeClient(server.uri) as looking, subscribe(server.uri, types=TYPES, group=GROUP, start="latest") as events:
        events.poll(0)
        for number in track(range(count), "altering tables", transient=True):
            table = made[number % len(made)]
            client.call(lambda opened, one=table: opened.alter_table("bench", one.tableName, one))  # type: ignore[misc]
        queue = Queue(looking, "bench")
        receiver = Receiver(server.uri, Planner(queue, {}), queue, threading.Event())
        begun = time.perf_counter()
        received = 0
        while received < count:
            received += receiver.receive(events, 5)
        rate = received / (time.perf_counter() - begun)
    section = report.section("The receiver alone", f"A backlog of {count:,} events of 20 tables. Aim: 1,000/s.")
    section.figures.append(Figure.of("events received and decided", "1/s", [rate]))


def _make_many(uri: str, numbers: range) -> None:
    """Makes tables with a commit each."""
    with LakeClient(uri) as client:
        for number in numbers:
            _create(client, f"many{number}")
        client.complete([_begun(client, f"many{number}", 0, FILES_PER_TABLE) for number in numbers])


def _tables(report: Report, server: MetastoreServer, count: int) -> None:
    """A process that has never looked walks over all tables."""
    batches = [range(first, min(first + TABLES_TOGETHER, count)) for first in range(0, count, TABLES_TOGETHER)]
    with ThreadPoolExecutor(4) as pool:
        made = pool.map(partial(_make_many, server.uri), batches)
        for _ in track(made, "making tables", total=len(batches), transient=True):
            pass
    walked = subprocess.run(
        [sys.executable, "-c", _WALK, server.uri], check=True, capture_output=True, text=True
    ).stdout.splitlines()[-1]
    seconds, megabytes = json.loads(walked)
    title = f"{count:,} tables of {FILES_PER_TABLE} files"
    section = report.section(title, "One planner looks at each once; no directory is listed. Aim: 512 MB.")
    section.figures.append(Figure.of("time", "s", [seconds]))
    section.figures.append(Figure.of("memory at its peak", "MiB", [megabytes]))
