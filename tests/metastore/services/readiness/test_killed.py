"""Servers, and Postgres with them, are killed at random moments while streams write and an offline reader looks.

Every file of every batch is in a partition, once; and no partition is ever seen without one of its files.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from thrift.transport.TTransport import TTransportException

from lake.client.batches import BatchWriter, Staged
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import MetaException
from metastore.server.embedded_postgres import running_url
from tests.crash import processes
from tests.metastore.services.readiness.lake import HOUR, HOURLY, at, hour
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.target import local_path
from tests.support.waiting import wait_until

START = at("2026-01-01 00:00")
FILES = 60  # of a batch
OPTIONS = ("--workers", "1", "--readiness-seconds", "0.3", "--housekeeping-seconds", "1", "--drain-seconds", "5")


class Stream:
    """A query that writes batch after batch, hour after hour; `written` are the names of all its files.

    With each batch it says that the hour is over: it turns ready with the report of the slower of two queries, while
    its files are on their way.
    """

    def __init__(self, uris: str, name: str, seed: int) -> None:
        self._uris, self._name = uris, name
        self._chance = random.Random(f"{name} {seed}")
        self.batches = 0
        self.written: set[str] = set()

    def announce(self) -> None:
        """Says that there is such a source, before another one's progress makes hours ready without it."""
        with self._writer() as writer:
            batch = writer.begin(0)
            assert batch is not None
            batch.report({self._name: START}, {})

    def _writer(self) -> BatchWriter:
        return BatchWriter(self._uris, "d.t", self._name, chain="main", retry_seconds=60)

    def run(self, until: Callable[[], bool]) -> None:
        while not until():
            with self._writer() as writer:
                for _ in range(self._chance.randrange(1, 6)):  # then it crashes
                    self._write(writer, self.batches)
                    self.batches += 1
                # Started again, it repeats what it thinks wasn't finished.
                assert writer.begin(self.batches) is None

    def _write(self, writer: BatchWriter, number: int) -> None:
        batch = writer.begin(number + 1)
        assert batch is not None
        staging = local_path(batch.staging_location)
        staging.mkdir(parents=True, exist_ok=True)
        names = [batch.file_name(count) for count in range(FILES)]
        for name in names:
            (staging / name).write_text(f"{name} of {batch.attempt}")
        outcome = batch.report({self._name: START + (number + 1) * HOUR + 1}, {hour(number): Staged(names, FILES)})
        assert outcome.late.rerouted == 0
        self.written |= set(names)


class Reader:
    """Looks at what is ready, again and again, and remembers what it found there at first."""

    def __init__(self, servers: list[MetastoreServer], table: Path) -> None:
        self._servers, self._table = servers, table
        self.seen: dict[str, set[str]] = {}

    def run(self, until: Callable[[], bool]) -> None:
        while not until():
            for server in self._servers:
                with (
                    suppress(TTransportException, OSError, MetaException),
                    ThriftClient(server.host, server.port, timeout=5) as client,
                ):
                    self.look(client)
            time.sleep(0.02)

    def look(self, client: ThriftClient) -> None:
        for name in client.get_partition_names("d", "t", -1):
            if name not in self.seen:
                self.seen[name] = files(self._table / name)


def files(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.fixture
def seed() -> int:
    """Decides what is done and when somebody is killed; a failure says it."""
    chosen = random.randrange(1_000_000)
    print(f"seed {chosen}")
    return chosen


@pytest.fixture
def two_servers(tmp_path: Path, postgres_url: str) -> Iterator[tuple[list[MetastoreServer], str]]:
    """On one Postgres, which stays."""
    shared = ("--database-url", postgres_url, "--warehouse-dir", str(tmp_path / "warehouse"))
    servers = [MetastoreServer(tmp_path / name, *shared, *OPTIONS) for name in ("one", "two")]
    with ExitStack() as stack:
        with ThreadPoolExecutor(2) as pool:
            for server in pool.map(MetastoreServer.start, servers):
                stack.enter_context(server)
        yield servers, postgres_url


@pytest.mark.long
def test_two_servers_are_killed_in_turn(
    two_servers: tuple[list[MetastoreServer], str], tmp_path: Path, seed: int
) -> None:
    servers, url = two_servers
    run(servers, lambda: url, tmp_path / "warehouse", seed, rounds=3)


def test_server_and_its_postgres_are_killed(tmp_path: Path, seed: int) -> None:
    with MetastoreServer(tmp_path / "data", *OPTIONS) as server:
        run([server], lambda: running_url(server.data_dir) or "", tmp_path / "data/warehouse", seed, rounds=2)


@pytest.mark.long
def test_for_minutes(two_servers: tuple[list[MetastoreServer], str], tmp_path: Path, seed: int) -> None:
    servers, url = two_servers
    run(servers, lambda: url, tmp_path / "warehouse", seed, rounds=40)


def run(servers: list[MetastoreServer], url: Callable[[], str], warehouse: Path, seed: int, rounds: int) -> None:
    chance = random.Random(seed)
    policy = {"sink.partition-commit.policy.kind": "metastore,success-file"}
    with ThriftClient(servers[0].host, servers[0].port) as client:
        client.create_database(builders.database("d"))
        client.create_table(builders.table("d", "t", keys=("dt", "hr"), parameters=HOURLY | policy))
    table = warehouse / "d.db/t"
    uris = ",".join(server.uri for server in servers)
    streams = [Stream(uris, name, seed) for name in ("a", "b")]
    reader = Reader(servers, table)
    for stream in streams:
        stream.announce()
    over = threading.Event()
    with ThreadPoolExecutor(len(streams) + 1) as pool:
        futures = [pool.submit(stream.run, over.is_set) for stream in streams]
        futures.append(pool.submit(reader.run, over.is_set))
        try:
            for number in range(rounds):
                time.sleep(chance.uniform(0.2, 1.2))  # a random moment of the work
                victim = servers[number % len(servers)]
                processes.kill(processes.everything(victim))
                victim.start()
            wait_until(
                lambda: min(each.batches for each in streams) > rounds or any(each.done() for each in futures),
                60,
                "the streams get on",
            )
        finally:
            over.set()
        for future in futures:
            future.result(90)
    engine = create_engine(url())
    try:

        def nothing_on_its_way() -> bool:
            with engine.connect() as connection:
                return not connection.execute(text("SELECT count(*) FROM publications")).scalar_one()

        wait_until(nothing_on_its_way, 20, "what was accepted arrives")
    finally:
        engine.dispose()
    with ThriftClient(servers[0].host, servers[0].port) as client:

        def all_are_ready() -> bool:
            reader.look(client)
            return set(reader.seen) == {hour(number) for number in range(min(stream.batches for stream in streams))}

        wait_until(all_are_ready, 20, "what is complete turns ready")
    for name, seen in reader.seen.items():
        assert files(table / name) == seen, f"{name} changed after it was seen first"
        assert len(seen) == 2 * FILES + 1
        assert "_SUCCESS" in seen
    found = [path.name for path in table.glob("dt=*/hr=*/*") if path.name != "_SUCCESS"]
    assert len(found) == len(set(found))
    assert set(found) == set().union(*(stream.written for stream in streams))
    assert min(stream.batches for stream in streams) > rounds
