"""What clients saw of a cluster in trouble, looked at afterwards: was every read the truth at some moment?"""

import itertools
import random
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from thrift.Thrift import TException
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import Partition, Table
from tests.metastore.cache.cluster import Cluster
from tests.metastore.cache.histories import History
from tests.support import builders

PASSING = ("try again", "can't be reached")  # what the server says while its database is away

RARE = (0.3, 0.5, 1)
"""Seconds between two changes of a writer that let leases begin."""

Look = Callable[[ThriftClient], Hashable]
"""Reads what a register holds."""


@dataclass(frozen=True)
class Register:
    """Something in the metastore that one writer changes, and ways to read it."""

    history: History
    looks: tuple[Look, ...]


@dataclass
class Shop:
    """A writer's database. Its table is replaced where nobody knows what became of a change."""

    name: str
    registers: list[Register] = field(default_factory=list)  # readers look at the last ones more often

    def new_table(self, number: int) -> tuple[Table, History, History]:
        """Not created yet."""
        name = f"t{number}"
        mark = History(f"{self.name}.{name} mark", "0")
        partitions = History(f"{self.name}.{name} partitions", ())
        table = builders.table(self.name, name, keys=("ds",), parameters={"mark": "0"})
        return table, mark, partitions

    def offer(self, table: str, mark: History, partitions: History) -> None:
        """From now on readers look at the table."""
        by_names = [f"ds={number}" for number in range(1000)]
        self.registers += [
            Register(
                mark,
                (
                    lambda client: client.get_table(self.name, table).parameters["mark"],
                    lambda client: client.get_table_objects_by_name(self.name, [table])[0].parameters["mark"],
                ),
            ),
            Register(
                partitions,
                (
                    lambda client: tuple(sorted(client.get_partition_names(self.name, table, -1))),
                    lambda client: names(client.get_partitions(self.name, table, -1)),
                    lambda client: names(client.get_partitions_by_names(self.name, table, by_names)),
                    lambda client: names(client.get_partitions_by_filter(self.name, table, "ds >= '0'", -1)),
                ),
            ),
        ]


def names(partitions: list[Partition]) -> tuple[str, ...]:
    return tuple(sorted(f"ds={(each.values or [''])[0]}" for each in partitions))


class Clients:
    """Writers and readers in threads; they go on whatever is down, and record the answers."""

    def __init__(
        self,
        cluster: Cluster,
        seed: int,
        writers: int,
        readers: int,
        pauses: Sequence[float] = (0, 0, 0.01, 0.1),
    ) -> None:
        """`pauses`: the seconds between two changes of a writer, one of these."""
        self._cluster = cluster
        self._pauses = pauses
        self._seed = seed
        self.shops = [Shop(f"d{number}") for number in range(writers)]
        self._stopping = threading.Event()
        self.failures: list[BaseException] = []
        work = [partial(self._write, each) for each in self.shops] + [self._read] * readers
        self._threads = [
            threading.Thread(target=self._run, args=(each, random.Random(f"{seed} {number}")), daemon=True)
            for number, each in enumerate(work)
        ]

    def __enter__(self) -> "Clients":
        with self._cluster.client(0) as client:
            for shop in self.shops:
                client.create_database(builders.database(shop.name))
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a call doesn't return"

    @property
    def histories(self) -> list[History]:
        return [each.history for shop in self.shops for each in shop.registers]

    def _run(self, work: Callable[[random.Random], None], chance: random.Random) -> None:
        while not self._stopping.is_set():
            try:
                work(chance)
            except (TTransportException, OSError):
                time.sleep(0.1)
            except TException as error:  # of whatever kind the method declares
                if not any(each in (getattr(error, "message", None) or "") for each in PASSING):
                    self.failures.append(error)
                    return
                time.sleep(0.1)
            except BaseException as error:
                self.failures.append(error)
                return

    # -- a writer --------------------------------------------------------------------------------------------

    def _write(self, shop: Shop, chance: random.Random) -> None:
        """A table of its own, until a change fails; whoever reads what was changed does so through the other server."""
        first = chance.randrange(2)
        with self._cluster.client(first) as client, self._cluster.client(1 - first) as other:
            table, mark, partitions = shop.new_table(len(shop.registers))
            client.create_table(table)
            table = client.get_table(shop.name, table.tableName)
            shop.offer(table.tableName, mark, partitions)
            there: list[str] = []
            for number in itertools.count(1):
                if self._stopping.is_set():
                    return
                register = chance.choice(shop.registers[-2:])
                if register.history is mark:
                    table.parameters["mark"] = str(number)
                    write = mark.write(str(number))
                    client.alter_table(shop.name, table.tableName, table)
                elif len(there) < 3 or chance.random() < 0.5:
                    there.append(str(number))
                    write = partitions.write(tuple(sorted(f"ds={each}" for each in there)))
                    client.add_partition(builders.partition(shop.name, table.tableName, there[-1]))
                else:
                    gone = there.pop(0)
                    write = partitions.write(tuple(sorted(f"ds={each}" for each in there)))
                    client.drop_partition(shop.name, table.tableName, [gone], True)
                write.acknowledged = time.monotonic()
                look(register, chance, other)
                time.sleep(chance.choice(self._pauses))

    # -- a reader --------------------------------------------------------------------------------------------

    def _read(self, chance: random.Random) -> None:
        with self._cluster.client(chance.randrange(2)) as client:
            while not self._stopping.is_set():
                registers = chance.choice(self.shops).registers
                if not registers:
                    time.sleep(0.05)
                    continue
                look(chance.choice(registers[-2:] if chance.random() < 0.8 else registers), chance, client)


def look(register: Register, chance: random.Random, client: ThriftClient) -> None:
    begun = time.monotonic()
    register.history.read(begun, chance.choice(register.looks)(client))


def troubles(cluster: Cluster, chance: random.Random) -> list[Callable[[], None]]:
    """One of each kind."""
    server, worker = chance.randrange(2), chance.randrange(4)
    return [
        cluster.flush_redis,
        cluster.copy_redis,
        cluster.restore_redis,
        cluster.lose_redis,
        partial(cluster.kill_redis, chance.choice([0, 1])),
        partial(cluster.pause_redis, chance.uniform(0.1, 2)),
        partial(cluster.shrink_redis, chance.uniform(0.1, 1)),
        partial(cluster.kill_worker, server, worker),
        partial(cluster.pause_worker, server, worker, chance.uniform(0.1, 1.5)),
        partial(cluster.kill_server, server, chance.choice([0, 1])),
        partial(cluster.kill_postgres, chance.choice([0, 1])),
        cluster.crash_postgres,
    ]


def check(clients: Clients) -> None:
    histories = clients.histories
    print(f"{sum(len(each.reads) for each in histories)} reads of {len(histories)} registers")
    assert clients.failures == []
    assert [error for history in histories for error in history.errors()] == []


@pytest.fixture
def seed() -> int:
    chosen = random.randrange(1_000_000)
    print(f"seed {chosen}")
    return chosen


def test_nothing_old_is_read(tmp_path: Path, seed: int) -> None:
    """A worker and Postgres die, and a copy of Redis comes back late."""
    with Cluster(tmp_path) as cluster, Clients(cluster, seed, writers=2, readers=4) as clients:
        time.sleep(1.5)  # clients go on for a while
        cluster.copy_redis()
        time.sleep(1)  # clients go on for a while
        cluster.kill_worker(0, 0)
        cluster.crash_postgres()
        time.sleep(1.5)  # clients go on for a while
        cluster.restore_redis()
        cluster.pause_redis(0.5)
        time.sleep(1)  # clients go on for a while
        answers = cluster.answers()
    check(clients)
    assert answers["memory"] > 20, f"the cache should have been of use: {answers}"


@pytest.mark.long
def test_nothing_old_is_read_under_leases(tmp_path: Path, seed: int) -> None:
    """Changes are rare, so that workers take leases. A worker that holds one is paused and killed, as is Postgres."""
    with Cluster(tmp_path) as cluster, Clients(cluster, seed, writers=2, readers=6, pauses=RARE) as clients:
        time.sleep(3)  # clients go on for a while
        cluster.pause_worker(0, 1, 1.0)
        cluster.pause_worker(1, 0, 1.0)
        cluster.crash_postgres()
        time.sleep(3)  # clients go on for a while
        leases = cluster.leases()
        cluster.kill_worker(1, 1)
        time.sleep(1)  # clients go on for a while
    check(clients)
    assert leases > 2, "leases should have been taken"


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_nothing_old_is_read_under_leases_in_a_long_time_of_trouble(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    leases = 0
    with Cluster(tmp_path) as cluster, Clients(cluster, seed, writers=2, readers=6, pauses=RARE) as clients:
        for _ in range(4):
            coming = troubles(cluster, chance)
            chance.shuffle(coming)
            for trouble in coming:
                time.sleep(chance.uniform(1, 3))  # a random moment of the work
                trouble()
            leases += cluster.leases()
        time.sleep(3)  # clients go on for a while
    check(clients)
    assert leases > 5, f"leases should have been taken, more than {leases}"


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_nothing_old_is_read_in_a_long_time_of_trouble(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    with Cluster(tmp_path) as cluster, Clients(cluster, seed, writers=3, readers=6) as clients:
        for _ in range(5):
            coming = troubles(cluster, chance)
            chance.shuffle(coming)
            for trouble in coming:
                time.sleep(chance.uniform(0.2, 3))  # a random moment of the work
                trouble()
        time.sleep(3)  # clients go on for a while
        answers = cluster.answers()
    check(clients)
    assert answers["memory"] > 100 and answers["redis"] > 10, f"the cache should have been of use: {answers}"


@pytest.mark.long
def test_a_database_is_put_back(tmp_path: Path) -> None:
    """Kept replies, in memory and Redis, are of a future that the database doesn't know any more."""
    with Cluster(tmp_path) as cluster:

        def mark(server: int, value: str | None = None) -> str:
            """What is read, on a new connection; after it has been written, if there is a value."""
            deadline = time.monotonic() + 30
            while True:
                try:
                    with cluster.client(server) as client:
                        table: Table = client.get_table("d", "t")
                        if value is not None:
                            client.alter_table("d", "t", table.replace(parameters={"mark": value}))
                        return str((table.parameters or {})["mark"])
                except TException as error:
                    assert time.monotonic() < deadline, error
                    time.sleep(0.1)

        with cluster.client(0) as client:
            client.create_database(builders.database("d"))
            client.create_table(builders.table("d", "t", parameters={"mark": "old"}))
        cluster.copy_postgres()
        for number in range(20):
            mark(0, f"lost {number}")
        assert {mark(server) for server in (0, 1) for _ in range(10)} == {"lost 19"}
        cluster.restore_postgres()
        assert {mark(server) for server in (0, 1) for _ in range(10)} == {"old"}
        mark(1, "new")  # with the id of a transaction that the kept replies have seen
        assert {mark(server) for server in (0, 1) for _ in range(10)} == {"new"}
