"""Everybody changes one table at once, through two servers: nothing hangs, and nobody gets a deadlock."""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lake.protocol.hive import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)
from lake.protocol.lake import InstantConflict
from metastore.services.model.visibility import Scope
from metastore.services.wiring import Metastore
from metastore.settings import Settings
from tests.metastore.services.readiness.lake import HOUR, HOURLY, StreamTable, at, hour
from tests.support import builders
from tests.support.postgres import Postgres

START = at("2026-01-01 00:00")
LONGEST_WAIT = 20  # seconds for a statement; whoever waits longer gets an error, and the test fails
NAMES = ("t", "renamed")

# What those hear who come at the wrong moment: the table has another name, the partition is gone.
EXPECTED = (
    InstantConflict,
    NoSuchObjectException,
    InvalidOperationException,
    InvalidObjectException,
    AlreadyExistsException,
)


@pytest.fixture
def servers(postgres: Postgres, tmp_path: Path) -> Iterator[list[Metastore]]:
    with postgres.fresh_database(upgraded=True) as url:
        settings = Settings(database_url=url, warehouse_dir=str(tmp_path), request_timeout_seconds=LONGEST_WAIT)
        opened = [Metastore.open(settings) for _ in range(2)]
        yield opened
        for each in opened:
            each.close()


class Storm:
    """What the threads do, each in its own way, to the table under whatever name it has."""

    def __init__(self, servers: list[Metastore], table: StreamTable) -> None:
        self._servers, self._table = servers, table
        self._batches = itertools.count()
        self._staging = threading.Lock()
        self.stop_at = 0.0
        self.done: Counter[str] = Counter()
        self.accepted: set[str] = set()

    def run(self, act: Callable[[StreamTable, random.Random], object], pause: float, seed: int) -> None:
        """Does it again and again, with a pause of so many seconds on average."""
        chance = random.Random(seed)
        while time.monotonic() < self.stop_at:
            table = self._table.through(chance.choice(self._servers))
            table.name = chance.choice(NAMES)
            try:
                act(table, chance)
                self.done[act.__name__] += 1
            except EXPECTED:
                self.done[f"{act.__name__}, too late"] += 1
            time.sleep(chance.uniform(0, 2 * pause))  # a random moment of the work

    def report(self, table: StreamTable, chance: random.Random) -> None:
        writer = threading.current_thread().name
        batch = next(self._batches)
        files = {f"part-{batch}-{number}": hour(chance.randrange(12)) for number in range(5)}
        with self._staging:  # or the writer would fill the place where the table was before it got another name
            begun = table.begin(batch, writer)
            table.stage(begun, *files)
            table.add(*files.values())
        reopen = sorted(set(files.values())) if chance.random() < 0.5 else []
        times = {"s": START + chance.randrange(12 * HOUR)}
        answer = table.report(batch, begun, files, writer=writer, reopen=reopen, chain=writer, **times)
        if answer.accepted:
            self.accepted |= set(files)

    def add(self, table: StreamTable, chance: random.Random) -> None:
        table.add(*(hour(number) for number in range(12)))

    def route(self, table: StreamTable, chance: random.Random) -> None:
        table.route(*(hour(number) for number in range(12)))

    def commit(self, table: StreamTable, chance: random.Random) -> None:
        table.commit(*chance.sample([hour(number) for number in range(12)], 3))

    def reopen(self, table: StreamTable, chance: random.Random) -> None:
        table.reopen(*chance.sample([hour(number) for number in range(12)], 3))

    def alter(self, table: StreamTable, chance: random.Random) -> None:
        names = chance.sample([hour(number) for number in range(12)], 3)
        changed = [table.get(name).replace(parameters={"commit": chance.choice(["true", "false"])}) for name in names]
        table.metastore.partitions.alter(table.db, table.name, changed, {})

    def rename_partition(self, table: StreamTable, chance: random.Random) -> None:
        old, new = hour(chance.randrange(12)), hour(12 + chance.randrange(12))
        values = [step.partition("=")[2] for step in old.split("/")]
        table.metastore.partitions.rename(table.db, table.name, values, table.partition(new), {})

    def drop(self, table: StreamTable, chance: random.Random) -> None:
        delete = chance.random() < 0.5
        table.metastore.partitions.drop(table.db, table.name, name=hour(chance.randrange(12)), delete_data=delete)

    def drop_some(self, table: StreamTable, chance: random.Random) -> None:
        names = chance.sample([hour(number) for number in range(12)], 3)
        table.metastore.partitions.drop_named(table.db, table.name, names, delete_data=True, if_exists=True)

    def commit_by_filter(self, table: StreamTable, chance: random.Random) -> None:
        table.metastore.partition_states.commit(table.reference, None, f"hr >= '{chance.randrange(12):02}'", None)

    def exchange(self, table: StreamTable, chance: random.Random) -> None:
        """To the other table, or back."""
        pair = [(table.db, table.name), (table.db, "other")]
        chance.shuffle(pair)
        spec = {"dt": "2026-01-01", "hr": f"{chance.randrange(12):02}"}
        try:
            table.metastore.partition_exchange.exchange(Scope.UNCOMMITTED, spec, *pair[0], *pair[1])
        except MetaException as error:  # a partition that is missing, or there already; a table that is being renamed
            expected = ("artition", "exists already", "table not found")
            if not any(text in str(error) for text in expected):
                raise

    def change_table(self, table: StreamTable, chance: random.Random) -> None:
        table.change(partition_watermark_idle__timeout=f"{chance.randrange(1, 9)} min")

    def truncate(self, table: StreamTable, chance: random.Random) -> None:
        table.metastore.tables.truncate(table.db, table.name, [hour(chance.randrange(12))])

    def rename(self, table: StreamTable, chance: random.Random) -> None:
        with self._staging:
            table.rename(NAMES[1 - NAMES.index(table.name)])

    def begin(self, table: StreamTable, chance: random.Random) -> None:
        table.begin(next(self._batches), "idle")

    def housekeep(self, table: StreamTable, chance: random.Random) -> None:
        table.metastore.readiness.commit_due_everywhere()
        table.metastore.housekeeping.run()


def storm(servers: list[Metastore], seconds: float) -> None:
    servers[0].databases.create(builders.database("d"))
    policy = {"partition.late-rows": "reopen", "sink.partition-commit.policy.kind": "metastore,success-file"}
    table = StreamTable(servers[0], "d", properties=HOURLY | policy | {"partition.create-empty": "true"})
    other = StreamTable(servers[0], "d", "other")
    running = Storm(servers, table)
    often = [running.add, *[running.report] * 4, running.route, running.commit, running.reopen, running.alter]
    seldom = [running.drop, running.drop_some, running.truncate, running.exchange, running.rename_partition]
    seldom += [running.commit_by_filter, running.change_table, running.rename, running.begin, running.housekeep]
    acts = [*((act, 0.0) for act in often), *((act, 0.3) for act in seldom)]
    running.stop_at = time.monotonic() + seconds
    with ThreadPoolExecutor(len(acts)) as pool:
        for future in [pool.submit(running.run, act, pause, seed) for seed, (act, pause) in enumerate(acts)]:
            future.result(seconds + 3 * LONGEST_WAIT)
    print(dict(running.done))
    assert all(running.done[act.__name__] for act in often)
    (table.name,) = {*servers[0].tables.names("d", None)} - {"other"}
    servers[0].readiness.commit_due_everywhere()
    servers[0].housekeeping.run()
    assert table.on_the_way() == 0
    found = []
    for each in (table, other):
        found += [path.rpartition("/")[2] for path in each.all_files()]
        assert all((each.directory / partition).is_dir() for partition in each.states())
    assert len(found) == len(set(found))  # none is in two places
    assert set(found) <= running.accepted


def test_a_few_seconds(servers: list[Metastore]) -> None:
    storm(servers, 6)


@pytest.mark.long
def test_half_a_minute(servers: list[Metastore]) -> None:
    storm(servers, 30)
