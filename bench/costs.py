"""What calls cost Postgres: by this one plans what one Postgres can carry."""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psutil
from sqlalchemy import Engine, NullPool, create_engine, text

from bench.counting import CountingRelay
from bench.figures import Report
from bench.options import Options
from bench.postgres import LoopbackPostgres
from bench.shapes import DATABASE, HOURS, Shape
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPartitionsRequest,
    CommitTxnRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockType,
    OpenTxnRequest,
    UnlockRequest,
)
from lake.protocol.lake import BeginInstantRequest, CompleteInstantRequest, DataFile, TableReference
from tests.support import builders
from tests.support.server import MetastoreServer

SHAPE = Shape(columns=50, partitions=10_000)
SETTLE_SECONDS = 2.0
"""After which events have got their numbers and nobody is busy any more."""


@dataclass(frozen=True)
class Cost:
    """Of one call, or of one transaction."""

    name: str
    round_trips: float
    sent: float
    received: float
    wal: float
    cpu_ms: float
    ms: float


@dataclass
class Costs:
    """Of calls, one after the other, on one connection."""

    title: str
    about: str
    costs: list[Cost] = field(default_factory=list)

    headings = ("", "round trips", "bytes to Postgres", "bytes from it", "WAL bytes", "its CPU, ms", "took, ms")

    def rows(self) -> list[list[str]]:
        return [
            [
                each.name,
                f"{each.round_trips:.1f}",
                *(f"{value:,.0f}" for value in (each.sent, each.received, each.wal)),
                *(f"{value:.2f}" for value in (each.cpu_ms, each.ms)),
            ]
            for each in self.costs
        ]


@dataclass
class Sizes:
    """Of what is kept, with its indexes."""

    title: str
    about: str
    bytes_each: dict[str, float] = field(default_factory=dict)

    headings = ("", "bytes")

    def rows(self) -> list[list[str]]:
        return [[name, f"{size:,.0f}"] for name, size in self.bytes_each.items()]


class Meter:
    """Measures calls of a server whose Postgres is behind a relay."""

    def __init__(self, relay: CountingRelay, engine: Engine, postmaster: psutil.Process) -> None:
        self._relay, self._engine, self._postmaster = relay, engine, postmaster

    def cost(self, name: str, call: Callable[[], object], times: int) -> Cost:
        """What one of so many calls costs, after one that isn't counted."""
        call()
        time.sleep(SETTLE_SECONDS)  # events get their numbers after the call
        counts = self._relay.counts
        before, wal, cpu = (counts.round_trips, counts.sent, counts.received), self._wal(), self._cpu()
        began = time.perf_counter()
        for _ in range(times):
            call()
        seconds = time.perf_counter() - began
        time.sleep(SETTLE_SECONDS)
        after = (counts.round_trips, counts.sent, counts.received)
        round_trips, sent, received = ((now - then) / times for now, then in zip(after, before, strict=True))
        return Cost(
            name,
            round_trips,
            sent,
            received,
            wal=(self._wal() - wal) / times,
            cpu_ms=(self._cpu() - cpu) * 1000 / times,
            ms=seconds * 1000 / times,
        )

    def size(self, table: str) -> int:
        """Bytes of a table and its indexes."""
        with self._engine.connect() as connection:
            connection.execute(text(f"VACUUM FULL {table}"))
            return int(connection.execute(text("SELECT pg_total_relation_size(:t)"), {"t": table}).scalar_one())

    def rows(self, table: str) -> int:
        with self._engine.connect() as connection:
            return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())

    def _wal(self) -> int:
        with self._engine.connect() as connection:
            query = text("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")
            return int(connection.execute(query).scalar_one())

    def _cpu(self) -> float:
        return cpu_seconds(self._postmaster.children())


def cpu_seconds(processes: Iterable[psutil.Process]) -> float:
    """What they have used so far, without those that have ended: autovacuum's come and go."""
    seconds = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds += times.user + times.system
    return seconds


def run(options: Options) -> Report:
    """Calls through one server on a Postgres behind a relay; nothing else is going on."""
    report = Report("costs")
    times = options.rounds or (3 if options.quick else 300)
    shape = Shape(SHAPE.columns, 10 * HOURS) if options.quick else SHAPE
    with _cluster() as (server, meter), ThriftClient(server.host, server.port) as client:
        bench = _Calls(client, shape)
        for title, about, calls in bench.calls():
            section = Costs(title, about)
            report.sections.append(section)
            section.costs += [
                meter.cost(name, call, max(2, times // part)) for name, call, part in calls if options.wants(name)
            ]
        report.sections.append(_sizes(meter))
    return report


@contextmanager
def _cluster() -> Iterator[tuple[MetastoreServer, Meter]]:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        postgres = LoopbackPostgres(home / "postgres")
        stack.callback(postgres.close)
        url = postgres.create("costs")
        assert url.host is not None and url.port is not None
        relay = CountingRelay(url.host, url.port)
        stack.callback(relay.close)
        through = url.set(port=relay.port).update_query_dict({"sslmode": "disable"})
        engine = create_engine(
            url.set(drivername="postgresql+psycopg2"), poolclass=NullPool, isolation_level="AUTOCOMMIT"
        )
        postmaster = psutil.Process(int((home / "postgres/postgres/postmaster.pid").read_text().split()[0]))
        options = ("--database-url", through.render_as_string(hide_password=False), "--workers", "1")
        # Background work would be counted with the calls.
        quiet = ("--readiness-seconds", "3600", "--housekeeping-seconds", "3600")
        server = stack.enter_context(MetastoreServer(home / "data", *options, *quiet))
        yield server, Meter(relay, engine, postmaster)


Named = tuple[str, Callable[[], object], int]
"""A call, its name, and by what to divide how often it is made."""


class _Calls:
    """What is measured: a table with partitions, one with a timeline, and new tables."""

    def __init__(self, client: ThriftClient, shape: Shape) -> None:
        self._client, self._shape = client, shape
        self._numbers = count(shape.partitions)
        self._last = shape.partitions
        self._made: list[str] = []
        client.create_database(builders.database(DATABASE))
        client.create_table(shape.table("big"))
        for first in range(0, shape.partitions, 1000):
            self._add(range(first, min(first + 1000, shape.partitions)))
        self._table = client.get_table(DATABASE, "big")
        self._partition = client.get_partition(DATABASE, "big", shape.values(0))
        client.create_table(shape.table("lake"))
        self._lake = TableReference(database=DATABASE, table="lake")

    def calls(self) -> Iterator[tuple[str, str, list[Named]]]:
        ask, shape = self._client, self._shape
        names = shape.names()
        yield (
            "Reads, hot",
            "The same call again and again, answered out of the worker's memory: one poll of Postgres shows whether"
            " that still holds. Calls that arrive together share one such poll.",
            [("get_table", lambda: ask.get_table(DATABASE, "big"), 1)],
        )
        tables, chunks = count(), count()

        def other_table() -> None:
            ask.get_table(DATABASE, f"n{next(tables)}")

        def other_partitions() -> None:
            at = next(chunks) * 100 % (shape.partitions - 100)
            ask.get_partitions_by_names(DATABASE, "big", names[at : at + 100])

        def other_day() -> None:
            value = shape.values(next(chunks) * HOURS % shape.partitions)[0]
            ask.get_partitions_by_filter(DATABASE, "big", f"dt = '{value}'", -1)

        yield (
            "Writes",
            f"A table has {shape.columns} columns. Each call is a transaction, with its event.",
            [
                ("create_table", self._create, 1),
                ("alter_table", self._alter, 1),
                ("add_partition", lambda: self._add([next(self._numbers)]), 1),
                ("add_partitions, 100", lambda: self._add([next(self._numbers) for _ in range(100)]), 10),
                ("alter_partition", self._alter_partition, 1),
                ("drop_partition", self._drop_partition, 1),
                ("lock, unlock", self._lock, 1),
                ("open_txns, commit_txn", self._transaction, 1),
                ("begin and complete an instant of one file", self._commit, 1),
            ],
        )
        yield (
            "Reads, cold",
            "Another object each time, not read before.",
            [
                ("get_table", other_table, 1),
                ("get_partitions_by_names, 100", other_partitions, 5),
                (f"get_partitions_by_filter, {HOURS}", other_day, 5),
            ],
        )
        yield (
            "Drops",
            "Of a table without partitions.",
            [("drop_table", lambda: ask.drop_table(DATABASE, self._made.pop(), True), 2)],
        )

    def _create(self) -> None:
        name = f"n{len(self._made)}"
        self._client.create_table(self._shape.table(name))
        self._made.append(name)

    def _alter(self) -> None:
        self._table.parameters["changed"] = str(next(self._numbers))
        self._client.alter_table(DATABASE, "big", self._table)

    def _add(self, numbers: Iterable[int]) -> None:
        parts = [self._shape.partition("big", number) for number in numbers]
        self._client.add_partitions_req(AddPartitionsRequest(DATABASE, "big", parts, False, needResult=False))

    def _alter_partition(self) -> None:
        self._partition.parameters["changed"] = str(next(self._numbers))
        self._client.alter_partition(DATABASE, "big", self._partition)

    def _drop_partition(self) -> None:
        self._last -= 1
        self._client.drop_partition(DATABASE, "big", self._shape.values(self._last), False)

    def _lock(self) -> None:
        component = LockComponent(LockType.SHARED_READ, LockLevel.TABLE, DATABASE, "big")
        lock = self._client.lock(LockRequest([component], user="bench", hostname="bench"))
        self._client.unlock(UnlockRequest(lock.lockid))

    def _transaction(self) -> None:
        opened = self._client.open_txns(OpenTxnRequest(1, "bench", "bench"))
        self._client.commit_txn(CommitTxnRequest(opened.txn_ids[0]))

    def _commit(self) -> None:
        begun = self._client.lake_begin_instant(BeginInstantRequest(self._lake, "commit", state="inflight"))
        name = f"f{next(self._numbers)}"
        partition = self._shape.name(0)
        file = DataFile(partition, name, "1", f"{partition}/{name}.parquet", size=1 << 20, rows=1_000)
        self._client.lake_complete_instants(
            [CompleteInstantRequest(self._lake, begun.timestamp, "commit", added=[file])]
        )


def _sizes(meter: Meter) -> Sizes:
    """Of a row in the larger tables, as packed as they ever are. What tables and partitions share is left out."""
    sizes = Sizes("What is kept", "A row with its part of the indexes, after VACUUM FULL.")
    for table in ("tables", "partitions", "events", "instants", "data_files"):
        sizes.bytes_each[table] = meter.size(table) / max(meter.rows(table), 1)
    return sizes
