"""Clients that want the same name at the same moment: whoever wins, a table or partition has its directory."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddPartitionsRequest,
    AlreadyExistsException,
    EnvironmentContext,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
)
from metastore.server.embedded_postgres import running_url
from metastore.warehouse import Warehouse
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.target import local_path

RACERS = 6
HEATS = 40

Act = Callable[[ThriftClient, int, int], None]  # of a client, by its number, in a heat
Check = Callable[[ThriftClient, int], None]
Race = Callable[[Act, Check], None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetastoreServer]:
    with MetastoreServer(tmp_path_factory.mktemp("races") / "data") as server:
        with ThriftClient(server.host, server.port) as client:
            client.create_database(builders.database("races"))
        yield server


@pytest.fixture
def race(server: MetastoreServer) -> Iterator[Race]:
    """Has several clients do something at once, heat after heat, and looks at the result of each."""
    with ExitStack() as stack:
        clients = [stack.enter_context(ThriftClient(server.host, server.port)) for _ in range(RACERS)]
        pool = stack.enter_context(ThreadPoolExecutor(RACERS))

        def run(act: Act, check: Check) -> None:
            for heat in range(HEATS):
                start = threading.Barrier(RACERS, timeout=30)

                def race_one(number: int, heat: int = heat, start: threading.Barrier = start) -> None:
                    start.wait()
                    act(clients[number], number, heat)

                list(pool.map(race_one, range(RACERS)))
                check(clients[0], heat)

        yield run


def has_directory(location: str) -> bool:
    return local_path(location).is_dir()


def test_create_table(race: Race) -> None:
    wins: list[int] = []

    def create(client: ThriftClient, number: int, heat: int) -> None:
        try:
            client.create_table(builders.table("races", f"c{heat}"))
            wins.append(heat)
        except AlreadyExistsException:
            pass

    def check(client: ThriftClient, heat: int) -> None:
        assert wins.count(heat) == 1
        assert has_directory(client.get_table("races", f"c{heat}").sd.location)

    race(create, check)


def test_create_database(race: Race) -> None:
    def create(client: ThriftClient, number: int, heat: int) -> None:
        with suppress(AlreadyExistsException):
            client.create_database(builders.database(f"d{heat}"))

    def check(client: ThriftClient, heat: int) -> None:
        assert has_directory(client.get_database(f"d{heat}").locationUri)

    race(create, check)


def test_add_different_partitions(server: MetastoreServer, race: Race) -> None:
    """Nobody is in anybody's way: all succeed."""
    with ThriftClient(server.host, server.port) as client:
        client.create_table(builders.table("races", "q", keys=("ds",)))

    def add(client: ThriftClient, number: int, heat: int) -> None:
        new = [builders.partition("races", "q", f"{heat}-{number}-{value}") for value in range(5)]
        assert client.add_partitions(new) == 5

    def check(client: ThriftClient, heat: int) -> None:
        assert len(client.get_partition_names("races", "q", -1)) == 5 * RACERS * (heat + 1)

    race(add, check)


def test_add_partitions(server: MetastoreServer, race: Race) -> None:
    """As Spark's dynamic inserts do: several jobs, overlapping partitions, those that exist are fine."""
    with ThriftClient(server.host, server.port) as client:
        client.create_table(builders.table("races", "p", keys=("ds",)))

    def add(client: ThriftClient, number: int, heat: int) -> None:
        new = [builders.partition("races", "p", f"{heat}-{value}") for value in (number, number + 1)]
        request = AddPartitionsRequest(dbName="races", tblName="p", parts=new, ifNotExists=True)
        with suppress(AlreadyExistsException):  # Hive, too, tells the slower one so
            client.add_partitions_req(request)

    def check(client: ThriftClient, heat: int) -> None:
        for partition in client.get_partitions("races", "p", -1):
            assert has_directory(partition.sd.location), partition.values

    race(add, check)


def test_drop_and_create_table(race: Race) -> None:
    def act(client: ThriftClient, number: int, heat: int) -> None:
        try:
            if number % 2:
                client.create_table(builders.table("races", "again"))
            else:
                client.drop_table("races", "again", True)
        except (AlreadyExistsException, NoSuchObjectException):
            pass

    def check(client: ThriftClient, heat: int) -> None:
        for name in client.get_tables("races", "again"):
            assert has_directory(client.get_table("races", name).sd.location)

    race(act, check)


def test_commit_without_lock(server: MetastoreServer, race: Race) -> None:
    """As Iceberg's Java client commits without locks: whoever still finds the expected value wins, and nobody else."""
    with ThriftClient(server.host, server.port) as client:
        client.create_table(builders.external_table("races", "ice", parameters={"metadata_location": "start"}))
    wins: list[str] = []

    def commit(client: ThriftClient, number: int, heat: int) -> None:
        table = client.get_table("races", "ice")
        expected, new = wins[heat - 1] if heat else "start", f"heat {heat} racer {number}"
        context = {"expected_parameter_key": "metadata_location", "expected_parameter_value": expected}
        table.parameters["metadata_location"] = new
        with suppress(MetaException):
            client.alter_table_with_environment_context("races", "ice", table, EnvironmentContext(context))
            wins.append(new)

    def check(client: ThriftClient, heat: int) -> None:
        assert len(wins) == heat + 1
        assert client.get_table("races", "ice").parameters["metadata_location"] == wins[-1]

    race(commit, check)


def test_change_columns(server: MetastoreServer, race: Race) -> None:
    """Whoever waits for a change of the columns, to make another or to add and drop partitions, finds the table."""
    with ThriftClient(server.host, server.port) as client:
        client.create_table(builders.table("races", "wide", keys=("ds",)))
        location = client.get_table("races", "wide").sd.location

    def act(client: ThriftClient, number: int, heat: int) -> None:
        if number % 2:
            columns = ("id:bigint", "name:string", f"c{heat}_{number}:int")
            table = builders.table("races", "wide", keys=("ds",), sd=builders.storage(*columns, location=location))
            client.alter_table("races", "wide", table)
        else:
            client.add_partition(builders.partition("races", "wide", f"{heat}-{number}"))
            client.drop_partition("races", "wide", [f"{heat}-{number}"], True)

    def check(client: ThriftClient, heat: int) -> None:
        assert client.get_table("races", "wide").sd.cols[2].name.startswith(f"c{heat}_")
        assert client.get_partition_names("races", "wide", -1) == []

    race(act, check)


@pytest.mark.long
def test_drop_database(server: MetastoreServer, race: Race) -> None:
    """What is added to a table while its database is dropped goes with it, or comes too late."""
    url = running_url(server.data_dir)
    assert url is not None
    orphans = text("SELECT count(*) FROM partitions WHERE table_id NOT IN (SELECT id FROM tables)")

    def prepare(client: ThriftClient) -> None:
        client.create_database(builders.database("gone"))
        client.create_table(builders.table("gone", "t", keys=("ds",)))

    def act(client: ThriftClient, number: int, heat: int) -> None:
        if number == 0:
            client.drop_database("gone", True, True)
            return
        with suppress(InvalidObjectException):
            for value in range(10):
                client.add_partition(builders.partition("gone", "t", f"{number}-{value}"))

    def check(client: ThriftClient, heat: int) -> None:
        with engine.connect() as connection:
            assert connection.execute(orphans).scalar_one() == 0
        prepare(client)

    with ThriftClient(server.host, server.port) as client:
        prepare(client)
    engine = create_engine(url)
    race(act, check)
    engine.dispose()


def test_directories_below_the_same_one(tmp_path: Path) -> None:
    """Who removes the last partition below a directory removes that, too; somebody may be about to use it."""
    warehouse = Warehouse(str(tmp_path))

    def make_and_remove(number: int) -> int:
        made = 0
        for _ in range(500):
            made += warehouse.make_directory(f"{tmp_path}/t/ds=1/hr={number}")
            warehouse.delete_empty_directory(f"{tmp_path}/t/ds=1/hr={number}")
            warehouse.delete_empty_directory(f"{tmp_path}/t/ds=1")
        return made

    with ThreadPoolExecutor(RACERS) as pool:
        assert list(pool.map(make_and_remove, range(RACERS))) == [500] * RACERS


def test_rename_to_a_name_that_others_create(server: MetastoreServer, race: Race) -> None:
    """Whoever comes first has the name; the renamed table's data arrives although others made its directory."""
    with ThriftClient(server.host, server.port) as client:
        for heat in range(HEATS):
            client.create_table(builders.table("races", f"old{heat}"))
            (local_path(client.get_table("races", f"old{heat}").sd.location) / "data").touch()
    renamed: list[int] = []

    def act(client: ThriftClient, number: int, heat: int) -> None:
        with suppress(AlreadyExistsException, InvalidOperationException):
            if number:
                client.create_table(builders.table("races", f"new{heat}"))
            else:
                table = client.get_table("races", f"old{heat}")
                table.tableName = f"new{heat}"
                client.alter_table("races", f"old{heat}", table)
                renamed.append(heat)

    def check(client: ThriftClient, heat: int) -> None:
        holder = "new" if heat in renamed else "old"
        table = client.get_table("races", f"{holder}{heat}")
        assert (local_path(table.sd.location) / "data").exists()
        client.drop_table("races", table.tableName, True)

    race(act, check)
