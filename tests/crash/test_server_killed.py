"""The whole server, or a part of it that the rest can't live without, dies in the middle of a storm of changes."""

import contextlib
import random
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from thrift.transport.TTransport import TTransportException

from lake.protocol.connection.thrift_client import ThriftClient
from tests.crash import processes
from tests.crash.storm import Storm
from tests.support import builders
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

ROUNDS = 1
SHARED_MEMORY = Path("/dev/shm")
FILES = 3000


def everything(server: MetastoreServer) -> list[psutil.Process]:
    return processes.everything(server)


def all_but_postgres(server: MetastoreServer) -> list[psutil.Process]:
    return [each for each in processes.everything(server) if each.name() != "postgres"]


def supervisor(server: MetastoreServer) -> list[psutil.Process]:
    return [psutil.Process(server.pid)]


@pytest.mark.parametrize(
    "victims",
    [
        pytest.param(everything, id="everything"),
        pytest.param(all_but_postgres, id="all_but_postgres", marks=pytest.mark.long),
        pytest.param(supervisor, id="supervisor", marks=pytest.mark.long),
    ],
)
def test_what_was_acknowledged_is_there_after_a_restart(
    victims: Callable[[MetastoreServer], list[psutil.Process]], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    server = MetastoreServer(tmp_path / "data", "--drain-seconds", "5")
    with server:
        storm = Storm(lambda: ThriftClient(server.host, server.port, timeout=20), tmp_path / "data/warehouse", seed)
        for _ in range(ROUNDS):
            before = storm.acknowledged
            storm.start()
            time.sleep(chance.uniform(0.3, 2.0))  # a random moment of the work
            doomed = victims(server)
            chance.shuffle(doomed)
            processes.kill(doomed)
            storm.stop()
            assert storm.acknowledged > before
            server.start()
            storm.settle()


@pytest.fixture
def other_device(tmp_path: Path) -> Iterator[Path]:
    """A directory on another device than the warehouse: data that moves there is copied, which takes its time."""
    if not SHARED_MEMORY.is_dir() or SHARED_MEMORY.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs a second device, /dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="metastore-test-", dir=SHARED_MEMORY))
    yield directory
    shutil.rmtree(directory)


@pytest.mark.long
def test_data_arrives_although_the_server_is_killed_while_it_copies(tmp_path: Path, other_device: Path) -> None:
    server = MetastoreServer(tmp_path / "data", "--workers", "1")
    with server:
        with ThriftClient(server.host, server.port) as client:
            client.create_database(builders.database("near"))
            client.create_database(builders.database("far", locationUri=f"file:{other_device}/far.db"))
            client.create_table(builders.table("near", "t", keys=("ds",)))
            client.add_partition(builders.partition("near", "t", "1"))
        source = tmp_path / "data/warehouse/near.db/t"
        target = other_device / "far.db/t"
        for number in range(FILES):
            (source / "ds=1" / f"file{number:04}").write_text(str(number))

        def rename() -> None:
            with ThriftClient(server.host, server.port) as client:
                table = client.get_table("near", "t")
                table.dbName = "far"
                with contextlib.suppress(TTransportException, OSError):
                    client.alter_table("near", "t", table)

        def copying() -> bool:
            return any(target.parent.glob(".metastore-move-*/ds=1/file0*"))

        renaming = threading.Thread(target=rename, daemon=True)
        renaming.start()
        for _ in range(2):  # at first while the client waits, then while it is made good
            wait_until(copying, 20, "the copy begins")
            processes.kill(processes.everything(server))
            assert not target.exists()
            server.start()
        renaming.join(20)

        def arrived() -> bool:
            return target.exists() and not source.exists()

        wait_until(arrived, 30, "the data arrives")
        with ThriftClient(server.host, server.port) as client:
            assert client.get_all_tables("near") == []
            assert client.get_table("far", "t").sd.location == f"file:{target}"
            assert client.get_partition("far", "t", ["1"]).sd.location == f"file:{target}/ds=1"
        wait_until(lambda: not list(target.glob(".metastore-move*")), 10, "the mark is removed")
        assert [path.name for path in target.parent.iterdir()] == ["t"]
        found = {path.name: path.read_text() for path in (target / "ds=1").iterdir()}
        assert found == {f"file{number:04}": str(number) for number in range(FILES)}
