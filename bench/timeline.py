"""Timelines: what a commit and a read cost in tables of a few files and of a million."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import psutil
import structlog
from rich.progress import Progress
from sqlalchemy import NullPool, create_engine, text

from bench import services
from bench.figures import Figure, Report
from bench.options import Options
from lake.protocol.lake import (
    BeginInstantRequest,
    CompleteInstantRequest,
    DataFile,
    ListInstantsRequest,
    ReadChangesRequest,
    SnapshotRequest,
    TableReference,
)
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from tests.support import builders

PER_PARTITION = 1_000
AT_ONCE = 100_000
"""Files that one commit brings while a table is filled."""

WRITERS, TABLES_EACH, COMMITS_EACH = 16, 4, 100

FULL, QUICK = (10_000, 100_000, 1_000_000), (2_000,)


def run(options: Options) -> Report:
    """Tables of several sizes, on a Postgres of its own, without a network between."""
    report = Report("timeline")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with services.opened() as (metastore, url):
        metastore.databases.create(builders.database("bench"))
        for size in QUICK if options.quick else FULL:
            _measure(metastore, report, size, rounds=options.rounds or (5 if options.quick else 100))
        _many_tables(metastore, report, url, rounds=options.rounds or (3 if options.quick else 10))
    return report


def _many_tables(metastore: Metastore, report: Report, url: str, rounds: int) -> None:
    """Each of many writers begins and completes commits in tables of its own, one after the other."""
    tables = [_Table(metastore, f"many{number}") for number in range(WRITERS * TABLES_EACH)]
    for each in tables:
        each.fill(PER_PARTITION)
    section = report.section(
        f"{WRITERS} writers over {len(tables)} tables",
        f"{PER_PARTITION:,} files to a table; each commit rewrites a file group. The aims on 2 cores: 200 completions a"
        " second, with 2 ms of Postgres's CPU time for each.",
    )
    rates, workers, postgres = [], [], []
    with _postmaster(url) as postmaster, ThreadPoolExecutor(WRITERS) as pool:
        for number in range(rounds + 1):  # the first one prepares statements
            began, mine, its = time.perf_counter(), time.process_time(), _cpu_seconds(postmaster)
            list(pool.map(partial(_write, group=number), (tables[writer::WRITERS] for writer in range(WRITERS))))
            elapsed = time.perf_counter() - began
            if number:
                rates.append(COMMITS_EACH * WRITERS / elapsed)
                workers.append((time.process_time() - mine) * 1000 / (COMMITS_EACH * WRITERS))
                postgres.append((_cpu_seconds(postmaster) - its) * 1000 / (COMMITS_EACH * WRITERS))
    section.figures += [
        Figure.of("completions per second", "1/s", rates),
        Figure.of("CPU time of the worker for each", "ms", workers),
        Figure.of("CPU time of Postgres for each", "ms", postgres),
    ]


def _write(tables: Sequence["_Table"], group: int) -> None:
    for number in range(COMMITS_EACH):
        tables[number % len(tables)].rewrite("dt=00000", f"g{(group * COMMITS_EACH + number) % PER_PARTITION}")


@contextmanager
def _postmaster(url: str) -> Iterator[psutil.Process]:
    """The process whose children serve the connections."""
    engine = create_engine(url, poolclass=NullPool)
    with engine.connect() as connection:
        backend = psutil.Process(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())
        postmaster = backend.parent()
    assert postmaster is not None
    yield postmaster


def _cpu_seconds(postmaster: psutil.Process) -> float:
    """The CPU time of Postgres's processes, all of which live as long as the measurement."""
    return sum(times.user + times.system for times in (each.cpu_times() for each in postmaster.children()))


def _measure(metastore: Metastore, report: Report, files: int, rounds: int) -> None:
    table = _Table(metastore, f"t{files}")
    with Progress(transient=True) as progress:
        for _ in progress.track(range(0, files, AT_ONCE), description=f"filling a table with {files:,} files"):
            table.fill(min(AT_ONCE, files))
    section = report.section(
        f"A table of {files:,} files",
        f"{PER_PARTITION:,} files to a partition; each commit rewrites a file group.",
    )
    filled = -(-files // AT_ONCE)  # the position of the commit that filled it
    middle = f"dt={files // PER_PARTITION // 2:05d}"

    def timed(name: str, action: Callable[[], object]) -> None:
        action()
        samples = []
        for _ in range(rounds):
            began = time.perf_counter()
            action()
            samples.append((time.perf_counter() - began) * 1000)
        section.figures.append(Figure.of(name, "ms", samples, samples=True))

    groups: Iterator[int] = iter(range(1 << 30))
    timed("begin and complete a commit", lambda: table.rewrite(middle, f"g{next(groups) % PER_PARTITION}"))
    timed("the latest files of a partition", lambda: table.read(partitions=[middle]))
    timed("its files as they were before", lambda: table.read(partitions=[middle], asOfPosition=filled))
    timed("by filter", lambda: table.read(filter=f"dt = '{middle[3:]}'"))
    timed("changes of the last 10 commits", table.last_changes)
    timed("the last 100 instants", table.last_instants)


class _Table:
    def __init__(self, metastore: Metastore, name: str) -> None:
        self._metastore = metastore
        self._named = TableReference(database="bench", table=name)
        self._partitions = 0
        metastore.tables.create(builders.table("bench", name, keys=("dt",)), {})

    def fill(self, files: int) -> None:
        """One commit with so many files, in partitions of their own."""
        added = []
        for _ in range(files // PER_PARTITION):
            partition = f"dt={self._partitions:05d}"
            self._partitions += 1
            added += [_file(partition, f"g{number}", "0") for number in range(PER_PARTITION)]
        self._commit(added)

    def rewrite(self, partition: str, group: str) -> None:
        begun = self._begin()
        self._complete(begun, [_file(partition, group, begun)])

    def read(self, **fields: Any) -> None:
        found = self._metastore.file_snapshots.read(Scope.READY, SnapshotRequest(table=self._named, **fields))
        _require(len(found.files or ()) == PER_PARTITION)

    def last_changes(self) -> None:
        position = self._metastore.timeline_queries.position(self._named).position or 0
        request = ReadChangesRequest(table=self._named, after=max(0, position - 10))
        _require(self._metastore.file_snapshots.changes(Scope.READY, request).changes)

    def last_instants(self) -> None:
        _require(
            self._metastore.timeline_queries.listing(
                ListInstantsRequest(table=self._named, latestFirst=True, limit=100)
            )
        )

    def _commit(self, added: list[DataFile]) -> None:
        self._complete(self._begin(), added)

    def _begin(self) -> str:
        request = BeginInstantRequest(table=self._named, action="commit", state="inflight")
        return self._metastore.timeline.begin(request).timestamp or ""

    def _complete(self, timestamp: str, added: list[DataFile]) -> None:
        request = CompleteInstantRequest(self._named, timestamp, "commit", added=added)
        self._metastore.instant_completion.complete([request])


def _require(found: object) -> None:
    """Raises RuntimeError where a read that is measured finds nothing, or the wrong thing."""
    if not found:
        raise RuntimeError("what is measured doesn't answer as it should")


def _file(partition: str, group: str, slice: str) -> DataFile:
    return DataFile(partition, group, slice, f"{partition}/{group}_{slice}.parquet", size=1 << 20, rows=1_000)
