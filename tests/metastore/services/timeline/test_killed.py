"""Writers of every strategy and a reader of changes, while the servers are killed again and again.

Each commit adds one to the rows of the file groups that it rewrites, after what it read: an update that is lost, or
that counts twice since a reply was lost, shows in the sum. Several tables change together, or not at all.
"""

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from lake.client.reconnecting import ReconnectingClient, connect_to
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import InvalidOperationException, NoSuchObjectException
from lake.protocol.lake import (
    BeginInstantRequest,
    CompleteInstantRequest,
    InstantConflict,
    ReadChangesRequest,
    SnapshotRequest,
    TableReference,
)
from metastore.services.instant_rules.conflicts import Strategy
from tests.crash import processes
from tests.metastore.services.timeline.lake import DAY, file
from tests.support import builders
from tests.support.server import MetastoreServer

TABLES = [TableReference(database="d", table=name) for name in ("one", "two")]
GROUPS = [(DAY(1), "a"), (DAY(1), "b"), (DAY(2), "a")]
WRITERS = 6


@pytest.fixture
def servers(tmp_path: Path, postgres_url: str) -> Iterator[list[MetastoreServer]]:
    options = ("--database-url", postgres_url, "--warehouse-dir", str(tmp_path / "warehouse"), "--workers", "1")
    pair = [MetastoreServer(tmp_path / name, *options) for name in ("one", "two")]
    with ExitStack() as stack:
        for server in pair:
            stack.enter_context(server)
        yield pair


class Storm:
    """Writers and a reader, until they are stopped. The answers that writers got are in `committed`."""

    def __init__(self, servers: list[MetastoreServer], seed: int) -> None:
        self._uris = ",".join(server.uri for server in servers)
        self._seed = seed
        self._stopped = threading.Event()
        self.committed: Counter[tuple[str, str, str]] = Counter()
        self.refused: Counter[Strategy] = Counter()
        self._lock = threading.Lock()

    def client(self) -> ReconnectingClient:
        return ReconnectingClient(connect_to(self._uris, timeout=20), retry_seconds=60)

    def stop(self) -> None:
        self._stopped.set()

    def write(self, number: int) -> None:
        chance = random.Random(self._seed * 100 + number)
        with self.client() as client:
            while not self._stopped.is_set():
                tables = chance.sample(TABLES, chance.choice((1, 1, 2)))
                groups = chance.sample(GROUPS, chance.choice((1, 2)))
                strategy = chance.choice(list(Strategy))
                requests = [self._prepare(client, table, groups, strategy) for table in tables]
                if chance.random() < 0.05:
                    continue  # as if it had died: nothing of it is ever seen
                try:
                    client.call(lambda to, some=requests: to.lake_complete_instants(some))
                except (InstantConflict, InvalidOperationException) as error:
                    # The latter if a slice that began later was quicker.
                    assert isinstance(error, InstantConflict) or "later slice" in (error.message or "")
                    with self._lock:
                        self.refused[strategy] += 1
                    for each in requests:
                        client.call(lambda to, e=each: to.lake_delete_instant(e.table, e.timestamp, e.action))
                    continue
                with self._lock:
                    for table in tables:
                        self.committed.update((table.table or "", *each) for each in groups)

    @staticmethod
    def _prepare(
        client: ReconnectingClient, table: TableReference, groups: list[tuple[str, str]], strategy: Strategy
    ) -> CompleteInstantRequest:
        begin = BeginInstantRequest(table=table, action="commit", state="inflight")
        begun = client.call(lambda to: to.lake_begin_instant(begin))
        wanted = SnapshotRequest(table=table, asOfPosition=begun.readPosition)
        found = client.call(lambda to: to.lake_get_snapshot(wanted)).files
        rows = {(each.partition, each.fileGroup): each.rows for each in found}
        added = [file(*each, begun.timestamp, rows=rows.get(each, 0) + 1) for each in groups]
        return CompleteInstantRequest(table, begun.timestamp, "commit", added=added, strategy=strategy)

    def follow(self, table: TableReference) -> list[int]:
        """Adds up changes from the beginning, each time to what the snapshot is then; the positions it came to."""
        position, files, seen = 0, set(), []
        with self.client() as client:
            last = False
            while not last:
                last = self._stopped.is_set()
                request = ReadChangesRequest(table=table, after=position)
                answer = client.call(lambda to, r=request: to.lake_read_changes(r))
                for each in answer.changes:
                    assert each.instant.position > position
                    position = each.instant.position
                    files -= {gone.path for gone in each.removed}
                    files |= {come.path for come in each.added}
                assert answer.position >= position
                position = answer.position
                at = SnapshotRequest(table=table, asOfPosition=position)
                assert files == {each.path for each in client.call(lambda to, r=at: to.lake_get_snapshot(r)).files}
                seen.append(position)
        return seen


def run(servers: list[MetastoreServer], seed: int, blows: int) -> None:
    print(f"seed {seed}")
    chance = random.Random(seed)
    with ThriftClient(servers[0].host, servers[0].port) as client:
        client.create_database(builders.database("d"))
        for table in TABLES:
            client.create_table(builders.table("d", table.table or "", keys=("dt",)))
    storm = Storm(servers, seed)
    with ThreadPoolExecutor(WRITERS + len(TABLES)) as threads:
        writing = [threads.submit(storm.write, number) for number in range(WRITERS)]
        following = [threads.submit(storm.follow, table) for table in TABLES]
        try:
            for blow in range(blows):
                time.sleep(chance.uniform(0.5, 1.5))  # a random moment of the work
                victim = servers[blow % 2]
                if chance.random() < 0.5:
                    with suppress(IndexError):
                        processes.kill([chance.choice(processes.workers(victim))])
                else:
                    victim.kill()
                    victim.start()
            time.sleep(1)  # writers go on for a while
        finally:
            storm.stop()
        for each in writing:
            each.result(120)
        positions = [each.result(120) for each in following]
    refused = {str(each): count for each, count in storm.refused.items()}
    print(f"{sum(storm.committed.values())} rewritten file groups, refused completions: {refused}")
    assert sum(storm.committed.values()) > 0
    with ThriftClient(servers[0].host, servers[0].port) as client:
        for table, seen in zip(TABLES, positions, strict=True):
            files = client.lake_get_snapshot(SnapshotRequest(table=table)).files
            rows = {(table.table, each.partition, each.fileGroup): each.rows for each in files}
            assert rows == {key: count for key, count in storm.committed.items() if key[0] == table.table}
            assert seen[-1] <= client.lake_timeline_position(table).position
            for name, sums in _hive_rows(client, table).items():
                assert sums == sum(count for key, count in rows.items() if key[1] == name)


def _hive_rows(client: ThriftClient, table: TableReference) -> dict[str, int]:
    found = {}
    for name in client.get_partition_names(table.database, table.table, -1):
        with suppress(NoSuchObjectException):
            parameters = client.get_partition_by_name(table.database, table.table, name).parameters
            found[name] = int(parameters["numRows"])
    return found


@pytest.mark.long
def test_servers_are_killed(servers: list[MetastoreServer]) -> None:
    run(servers, 7, 3)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_servers_are_killed_for_minutes(servers: list[MetastoreServer]) -> None:
    run(servers, int(os.environ.get("TIMELINE_SEED", "0")) or random.randrange(1 << 30), 90)
