"""A server of two is killed under load: clients that know both go on, and none sees an error."""

import itertools
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lake.client.reconnecting import ReconnectingClient, connect_to
from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import AlreadyExistsException, NoSuchObjectException, Table
from lake.subscriptions import subscribe
from tests.cluster.conftest import Prepare
from tests.support import builders
from tests.support.jvm import OPENED, pyspark_jars
from tests.support.redis import RedisServer
from tests.support.reference import missing
from tests.support.server import MetastoreServer
from tests.support.waiting import wait_until

NUMBERS = itertools.count()


@pytest.fixture
def pair(prepare: Prepare, redis: RedisServer) -> list[MetastoreServer]:
    """Two servers with a cache in common."""
    with ThreadPoolExecutor(2) as pool:
        servers = list(pool.map(lambda name: prepare(name, "--cache-redis-url", redis.url).start(), ("one", "two")))
    with ThriftClient(servers[0].host, servers[0].port) as client:
        client.create_database(builders.database("d"))
    return servers


def uris(servers: list[MetastoreServer]) -> str:
    return ",".join(server.uri for server in servers)


def kill_in_turn(servers: list[MetastoreServer], count: Callable[[], int]) -> None:
    """Each of them once, while what the clients do adds up to more and more."""

    def goes_on() -> None:
        before = count()
        wait_until(lambda: count() > before + 20, 60, "the clients go on")

    for server in servers:
        goes_on()
        server.kill()
        goes_on()
        server.start()
    goes_on()


class Client(threading.Thread):
    """Makes tables and uses them until they are stopped, each in a way that shows what it did before."""

    def __init__(self, uris: str, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.made: list[str] = []
        self.error: Exception | None = None
        self._uris, self._stop_it = uris, stop

    def run(self) -> None:
        try:
            with ReconnectingClient(connect_to(self._uris, timeout=20), retry_seconds=60) as client:
                while not self._stop_it.is_set():
                    self._use(client, f"t{next(NUMBERS)}")
        except Exception as error:
            self.error = error

    def _use(self, client: ReconnectingClient, name: str) -> None:
        table = builders.table("d", name, keys=("ds",), parameters={"seen": "no"})
        client.change(lambda server: server.create_table(table), done=AlreadyExistsException)
        self.made.append(name)
        for value in ("1", "2"):
            partition = builders.partition("d", name, value)
            client.change(lambda server, new=partition: server.add_partition(new), done=AlreadyExistsException)
        assert client.call(lambda server: server.get_partition_names("d", name, -1)) == ["ds=1", "ds=2"]
        found: Table = client.call(lambda server: server.get_table("d", name))
        assert found.parameters is not None
        found.parameters["seen"] = "yes"
        client.call(lambda server: server.alter_table("d", name, found))
        assert client.call(lambda server: server.get_table("d", name)).parameters["seen"] == "yes"
        client.change(lambda server: server.drop_table("d", name, True), done=NoSuchObjectException)
        assert name not in client.call(lambda server: server.get_all_tables("d"))


@pytest.mark.long
def test_our_clients(pair: list[MetastoreServer]) -> None:
    stop, told_all = threading.Event(), threading.Event()
    answer: list[str | None] = []

    def follow() -> None:
        with subscribe(uris(pair), tables="d.*", types=["CREATE_TABLE"], start="earliest") as subscription:
            while not told_all.is_set():
                answer.extend(event.table for event in subscription.poll(wait=1.0))

    subscriber = threading.Thread(target=follow, daemon=True)
    subscriber.start()
    clients = [Client(uris(pair[::step]), stop) for step in (1, -1, 1, -1)]
    for client in clients:
        client.start()
    try:
        kill_in_turn(pair, lambda: sum(len(client.made) for client in clients))
    finally:
        stop.set()
    for client in clients:
        client.join(60)
        assert not client.is_alive()
        assert client.error is None, repr(client.error)
    made = {name for client in clients for name in client.made}
    wait_until(lambda: made <= set(answer), 60, "the subscriber got an event of every table")
    told_all.set()
    subscriber.join(60)
    assert len(answer) == len(set(answer))


@pytest.mark.hive
@pytest.mark.long
def test_hive_s_clients(pair: list[MetastoreServer], tmp_path: Path) -> None:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    program = Path(__file__).with_name("Failover.java")
    command = ["java", *OPENED, "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{pyspark_jars()}/*", program, uris(pair)]
    lines: list[str] = []
    with (tmp_path / "java.log").open("wb") as log:
        java = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
    with java:

        def follow() -> None:
            assert java.stdout is not None
            lines.extend(line.strip() for line in java.stdout)

        threading.Thread(target=follow, daemon=True).start()
        try:
            wait_until(lambda: bool(lines), 120, "Hive's clients begin")
            kill_in_turn(pair, lambda: len(lines))
        finally:
            java.stdin.close()
            java.wait(120)
    assert lines[-1] == "fine", (tmp_path / "java.log").read_text()[-4000:]
